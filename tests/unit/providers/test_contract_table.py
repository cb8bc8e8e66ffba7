"""The built-in contracts against the table of the wires document, and what lies over them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import SettingsError
from surefoot.providers import contracts, projection, rules
from surefoot.providers.contract_keys import RULE_IDS, SCHEMA
from surefoot.providers.responses import ResponsesWire
from surefoot.providers.rules import CLASSES

CHAT = "OC-01 OC-02 OC-03 OC-04 OC-06 OC-08 OC-09 OC-12 DS-11"
RESP = "OR-01 OR-02 OR-06 OR-08 OR-09 OR-10 OR-14"
MSG = " ".join(f"AN-{n:02d}" for n in (*range(1, 7), *range(13, 21)))
NO_06_18 = MSG.replace("AN-06 ", "").replace("AN-18 ", "")
KIMI = f"{CHAT} KI-01 KI-03 KI-04"
MM = "MM-01 MM-02 MM-03 MM-05"
SIGNED = f"{MSG} AN-07 AN-10 AN-11 AN-12"

TABLE: list[tuple[str, int, str, str, dict[str, Any]]] = [
    (
        "compat/chat",
        1,
        f"{CHAT} LS-01 LS-05",
        "OC-05 OC-07 LS-03 KI-01",
        {"reasoning.required": "as_received"},
    ),
    ("openai/chat", 1, f"{CHAT} OC-05 OC-07", "LS-01", {"reasoning.carrier": "none", "ids.max_length": 40}),
    ("azure/chat", 1, f"{CHAT} OC-05 OC-07", "LS-01", {"ids.max_length": 40}),
    (
        "deepseek/chat",
        1,
        f"{CHAT} DS-03 DS-06 LS-01",
        "DS-08",
        {
            "reasoning.required": "all_with_tools",
            "reasoning.empty_ok": True,
            "reasoning.missing_at_receipt": "regenerate",
        },
    ),
    ("deepseek-v32/chat", 1, f"{CHAT} DS-02 DS-06", "", {"reasoning.required": "tool_turns_since_user"}),
    ("deepseek-r1/chat", 1, f"{CHAT} DS-01 DS-06", "", {"reasoning.required": "forbidden"}),
    (
        "kimi/chat",
        1,
        KIMI,
        "LS-01",
        {"reasoning.required": "tool_turns", "reasoning.empty_ok": True, "ids.policy": "verbatim"},
    ),
    (
        "kimi-k3/chat",
        1,
        f"{KIMI} KI-02 KI-06",
        "LS-01",
        {"reasoning.required": "all_turns", "reasoning.when": "always", "ids.unique": "batch"},
    ),
    ("kimi-selfhosted/chat", 1, f"{KIMI} KI-05", "LS-03", {"ids.policy": "native_kimi"}),
    (
        "llamacpp/chat",
        1,
        f"{CHAT} LS-02 LS-03 LS-05",
        "",
        {"errors.history_fault_status": [500], "pairing.same_role_neighbours": "merge"},
    ),
    (
        "vllm/chat",
        1,
        f"{CHAT} LS-01 LS-05",
        "LS-03 MS-01 MS-02",
        {"pairing.same_role_neighbours": "merge"},
    ),
    ("ollama/chat", 1, f"{CHAT} LS-01 LS-05", "LS-03", {"arguments.type": "string"}),
    ("compat/responses", 1, RESP, "OR-03 OR-04", {"reasoning.required": "as_received"}),
    (
        "openai/responses",
        1,
        f"{RESP} OR-03 OR-04 OR-05",
        "OR-07 OR-11",
        {
            "reasoning.carrier": "item_encrypted",
            "reasoning.required": "with_items",
            "reasoning.binding": "account",
        },
    ),
    ("azure/responses", 1, f"{RESP} OR-03 OR-04 OR-05", "OR-07 OR-11", {}),
    (
        "deepseek/responses",
        1,
        RESP,
        "DS-05",
        {"reasoning.carrier": "item_text", "reasoning.required": "tool_turns", "pairing.chaining": "none"},
    ),
    ("xai/responses", 1, f"{RESP} OR-13", "OR-03 OR-04", {"reasoning.required": "as_received"}),
    ("compat/anthropic", 1, MSG, "AN-08 AN-10 AN-12", {"reasoning.required": "as_received"}),
    (
        "anthropic/anthropic",
        1,
        SIGNED,
        "AN-08 AN-09",
        {
            "reasoning.carrier": "thinking_signed",
            "reasoning.required": "open_tool_loop",
            "reasoning.drop_block": True,
            "reasoning.off_forbids": True,
            "reasoning.binding": "model",
        },
    ),
    ("anthropic-bound/anthropic", 1, f"{SIGNED} AN-09", "AN-08", {"reasoning.binding": "prefix"}),
    (
        "deepseek/anthropic",
        1,
        f"{NO_06_18} DS-04 DS-07",
        "",
        {
            "reasoning.carrier": "thinking_unsigned",
            "reasoning.required": "tool_turns",
            "reasoning.empty_ok": True,
            "reasoning.missing_at_receipt": "regenerate",
        },
    ),
    (
        "mistral/chat",
        2,
        f"{CHAT} MS-01 MS-02 MS-03 MS-04 LS-01",
        "",
        {
            "pairing.after_results": "assistant_or_tool",
            "pairing.final_role": "user_or_tool",
            "errors.history_fault_status": [500],
        },
    ),
    (
        "gemini/chat",
        2,
        f"{CHAT} GE-01 GE-02 LS-01",
        "GE-03 GE-04",
        {
            "reasoning.carrier": "thought_signature",
            "reasoning.required": "first_call_of_step",
            "reasoning.binding": "backend",
        },
    ),
    (
        "glm/chat",
        2,
        f"{CHAT} GL-02 GL-03",
        "GL-01",
        {
            "reasoning.carrier": "reasoning_content",
            "reasoning.required": "as_received",
            "errors.wordless": ["1214"],
        },
    ),
    ("qwen/chat", 2, f"{CHAT} QW-01 QW-02", "", {}),
    (
        "minimax/chat",
        2,
        f"{CHAT} {MM}",
        "",
        {"reasoning.carrier": "reasoning_details", "errors.wordless": ["2013"]},
    ),
    ("minimax/responses", 2, f"{RESP} {MM}", "", {"errors.wordless": ["2013"]}),
    (
        "mimo/chat",
        2,
        f"{CHAT} MI-01 MI-02",
        "",
        {
            "reasoning.required": "tool_turns",
            "reasoning.empty_ok": False,
            "errors.wordless": ["Param Incorrect"],
        },
    ),
    (
        "openrouter/chat",
        2,
        f"{CHAT} OC-05 RT-03 LS-01",
        "RT-04",
        {"reasoning.carrier": "reasoning_details", "errors.unwrap": True},
    ),
    ("groq/chat", 2, f"{CHAT} OC-10", "", {}),
    ("litellm/chat", 2, f"{CHAT} LS-01 LS-05", "OC-05 OC-07 LS-03 KI-01", {}),
    (
        "kimi/anthropic",
        2,
        f"{MSG.replace('AN-06 ', '')} KI-01",
        "",
        {"reasoning.carrier": "thinking_unsigned", "reasoning.required": "tool_turns"},
    ),
]
OURS = {"local/chat"}
"""Contracts beside the table: the embedded small model."""


@pytest.mark.parametrize(
    ("name", "tier", "enforced", "suspected", "keys"), TABLE, ids=[one[0] for one in TABLE]
)
def test_wc_5_a_built_in_contract_is_as_the_table_says(
    name: str, tier: int, enforced: str, suspected: str, keys: dict[str, Any]
) -> None:
    contract = contracts.resolve(name)
    at = {
        level: {rule for rule, given in contract.rules.items() if given == level}
        for level in ("enforce", "suspect")
    }
    assert at == {"enforce": set(enforced.split()), "suspect": set(suspected.split())}
    assert {key: contract[key] for key in keys} == keys
    assert contract["contract.tier"] == tier


def test_wc_10_the_table_is_whole_and_every_rule_has_a_class_and_a_check() -> None:
    assert set(contracts.contract_ids()) == {one[0] for one in TABLE} | OURS
    for name in contracts.contract_ids():
        contract = contracts.resolve(name)
        assert set(SCHEMA) <= set(contract)
        used = {rule for rule, level in contract.rules.items() if level != "off"}
        assert used <= RULE_IDS & set(CLASSES)


def test_wc_2_the_roots_give_every_key_themselves_and_differ_as_written() -> None:
    chat, responses, claude = (
        contracts.resolve(f"compat/{wire}") for wire in ("chat", "responses", "anthropic")
    )
    for root in (chat, responses, claude):
        assert set(root.origin.values()) == {root.id}
    assert {key for key in SCHEMA if chat[key] != responses[key]} == {
        "pairing.results_position",
        "ids.max_length",
        "ids.unique",
        "ids.item_prefixes",
        "content.result",
        "tools.hosted",
        "tools.hosted_forms",
        "stream.terminal",
        "errors.codes",
    }
    assert {key for key in SCHEMA if chat[key] != claude[key]} == {
        "pairing.results_position",
        "pairing.final_role",
        "pairing.server_tool_pairs",
        "ids.pattern",
        "ids.unique",
        "arguments.type",
        "content.result",
        "content.empty_text",
        "content.error_result_text",
        "content.result_media",
        "cache.markers_max",
        "cache.forbidden_on",
        "tools.hosted",
        "tools.hosted_forms",
        "stream.terminal",
        "errors.shape",
        "errors.codes",
    }


@pytest.mark.parametrize("wire", ["responses", "anthropic"])
def test_wc_1_an_owner_can_declare_an_endpoint_of_every_wire(tmp_path: Path, wire: str) -> None:
    text = f'[contract]\nschema = 1\nid = "acme/{wire}"\n[ids]\nmax_length = 7\n[rules]\n"OC-05" = "off"\n'
    (tmp_path / "acme.toml").write_text(text, encoding="utf-8")
    contract = contracts.resolve(f"acme/{wire}", [tmp_path])
    assert contract["ids.max_length"] == 7
    assert contract.origin["stream.terminal"] == f"compat/{wire}"


def test_wc_3_no_name_of_a_model_or_host_selects_a_contract() -> None:
    """No module that reads, checks or projects holds a vendor's name as a value to compare with."""
    vendors = ("deepseek", "kimi", "moonshot", "claude", "gpt-", "gemini", "mistral", "qwen", "glm-")
    folder = Path(rules.__file__).parent
    for path in (
        *folder.glob("rules*.py"),
        *folder.glob("*_stream.py"),
        *folder.glob("responses*.py"),
        *folder.glob("anthropic*.py"),
        Path(projection.__file__),
    ):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        texts = [
            one.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Compare)
            for one in ast.walk(node)
            if isinstance(one, ast.Constant) and isinstance(one.value, str)
        ]
        assert [text for text in texts if text != "native_kimi" and any(v in text for v in vendors)] == [], (
            path
        )


def test_wc_4_pr_77_a_protocol_on_responses_adopts_the_replay_rule_and_nothing_else() -> None:
    plain = contracts.resolve("compat/responses")
    for name, rule in (("deepseek", "DS-05"), ("mimo", "MI-01")):
        laid = plain.with_reasoning_protocol(name)
        changed = {key for key in laid if laid[key] != plain.get(key)}
        assert changed == {"reasoning.carrier", "reasoning.required", f"rules.{rule}"}
        assert (laid["reasoning.carrier"], laid["reasoning.required"]) == ("item_text", "tool_turns")
        assert (laid["reasoning.when"], laid["reasoning.empty_ok"]) == ("thinking_on", False)
        assert laid.rules[rule] == "suspect"
        assert laid.origin["reasoning.carrier"] == f"reasoning_protocol={name}"


def test_wc_4_a_protocol_that_the_wire_does_not_know_is_named() -> None:
    with pytest.raises(SettingsError, match=r"'kimi'.*'responses'.*deepseek, mimo"):
        contracts.resolve("compat/responses").with_reasoning_protocol("kimi")
    with pytest.raises(SettingsError, match=r"'anthropic'.*leave it out"):
        contracts.resolve("compat/anthropic").with_reasoning_protocol("deepseek")


def test_pr_79_a_protocol_changes_the_digest_of_the_contract() -> None:
    plain = contracts.resolve("compat/responses")
    digests = {plain.with_reasoning_protocol(name).digest for name in (None, "deepseek", "mimo")}
    assert len(digests) == 3


def test_pr_77_headers_paths_and_limits_stay_those_of_the_wire() -> None:
    wire = ResponsesWire()
    assert (wire.path, wire.key_header, dict(wire.headers)) == ("/responses", "authorization", {})
    laid = contracts.resolve("compat/responses").with_reasoning_protocol("deepseek")
    assert laid["errors.trace_headers"] == contracts.resolve("compat/responses")["errors.trace_headers"]
    assert laid["limits.window_tokens"] == 0


def test_wc_6_unknown_is_a_value_of_its_own(tmp_path: Path) -> None:
    text = '[contract]\nschema = 1\nid = "acme/chat"\n[pairing]\norphan_result = "unknown"\n'
    (tmp_path / "acme.toml").write_text(text, encoding="utf-8")
    assert contracts.resolve("acme/chat", [tmp_path])["pairing.orphan_result"] == "unknown"
