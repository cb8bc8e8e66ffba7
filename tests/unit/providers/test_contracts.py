"""Contracts as data: resolving, refusing what is unknown, showing where a key came from."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.errors import SettingsError, UsageError
from surefoot.providers import contracts
from surefoot.providers.contract_keys import RULE_IDS, SCHEMA

SHIPPED = ["compat/chat", "openai/chat", "azure/chat", "deepseek/chat", "kimi/chat"]
SHIPPED += ["llamacpp/chat", "vllm/chat", "ollama/chat", "local/chat"]


def write(folder: Path, text: str, name: str = "acme.toml") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def acme(extra: str = "", schema: int = 1) -> str:
    return f'[contract]\nschema = {schema}\nid = "acme/chat"\nbase = "compat/chat"\nrevision = 3\ntier = 1\n{extra}'


def test_wc_1_every_shipped_contract_resolves_and_gives_every_key() -> None:
    assert set(SHIPPED) <= set(contracts.contract_ids())
    for name in contracts.contract_ids():
        contract = contracts.resolve(name)
        assert set(SCHEMA) <= set(contract)
        assert contract["contract.id"] == name


def test_wc_1_an_unknown_key_is_an_error_that_names_it(tmp_path: Path) -> None:
    folder = write(tmp_path, acme("[pairing]\nresult_position = 1\n"))
    with pytest.raises(SettingsError, match=r"acme\.toml.*'pairing\.result_position'"):
        contracts.resolve("acme/chat", [folder])


def test_wc_1_an_unknown_value_is_an_error_that_names_what_is_allowed(tmp_path: Path) -> None:
    folder = write(tmp_path, acme('[ids]\npolicy = "guess"\n'))
    with pytest.raises(SettingsError, match=r"ids\.policy = 'guess'.*alias, verbatim, native_kimi"):
        contracts.resolve("acme/chat", [folder])


def test_wc_1_an_unknown_rule_id_is_an_error_that_names_it(tmp_path: Path) -> None:
    folder = write(tmp_path, acme('[rules]\n"OC-99" = "enforce"\n'))
    with pytest.raises(SettingsError, match=r"unknown rule id 'OC-99'"):
        contracts.resolve("acme/chat", [folder])


def test_wc_5_an_unknown_level_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path, acme('[rules]\n"OC-01" = "maybe"\n'))
    with pytest.raises(SettingsError, match=r"enforce, suspect, off"):
        contracts.resolve("acme/chat", [folder])


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ("[limits]\nwindow_tokens = -1\n", "limits.window_tokens"),
        ("[ids]\nmax_length = true\n", "ids.max_length"),
        ('[ids]\npattern = "("\n', "ids.pattern"),
        ('[stream]\nusage = "usage"\n', "stream.usage"),
        ('[errors]\ncodes = { a = "nice" }\n', "errors.codes"),
        ("[errors]\nhistory_fault_status = [9]\n", "errors.history_fault_status"),
        ('[errors]\nfamilies = { replay_love = [["a"]] }\n', "errors.families"),
        ('[tools]\nhosted = { dance = ["x"] }\n', "tools.hosted"),
        ("[pairing]\nbatch_split = 1\n", "pairing.batch_split"),
        ("[pairing]\norphan_result = {}\n", "pairing.orphan_result = {} is not known; use one of reject"),
        ('[pairing]\norphan_result = ""\n', "pairing.orphan_result = '' is not known"),
        ("[pairing]\norphan_result = true\n", "pairing.orphan_result = true is not known"),
        ("[rules]\nOC-01 = {}\n", "OC-01"),
        ("[manners]\n", "unknown key 'manners'"),
        ('[errors]\nquota_text = [""]\n', "errors.quota_text must be a list of texts, none of them blank"),
        ('[stream]\nterminal = [" "]\n', "stream.terminal must be a list"),
        ('[errors]\ncodes = { "" = "quota" }\n', "errors.codes"),
        ("[errors]\nfamilies = { replay_ids = [[]] }\n", "errors.families must be a table"),
        ('[errors]\nfamilies = { replay_ids = [["x", ""]] }\n', "errors.families"),
        ('[tools]\nhosted = { search = [""] }\n', "tools.hosted"),
    ],
)
def test_wc_1_a_value_of_the_wrong_type_is_refused(tmp_path: Path, extra: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        contracts.resolve("acme/chat", [write(tmp_path, acme(extra))])


def test_wc_1_a_newer_schema_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="schema 2 is newer"):
        contracts.resolve("acme/chat", [write(tmp_path, acme(schema=2))])


def test_wc_1_a_file_that_is_no_toml_names_itself(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"acme\.toml"):
        contracts.resolve("acme/chat", [write(tmp_path, "[contract")])


def test_wc_1_the_owners_own_contract_is_found_and_inherits(tmp_path: Path) -> None:
    families = '[errors]\nfamilies.replay_reasoning = [["reasoning_content", "must include"]]\n'
    folder = write(tmp_path, acme(families + '[ids]\nmax_length = 40\n[rules]\n"LS-03" = "enforce"\n'))
    contract = contracts.resolve("acme/chat", [folder])
    assert contract["ids.max_length"] == 40
    assert contract["ids.policy"] == "alias"
    assert contract["errors.families"] == {"replay_reasoning": [["reasoning_content", "must include"]]}
    assert contract.rules["LS-03"] == "enforce"
    assert contract.rules["OC-01"] == "enforce"
    assert "acme/chat" in contracts.contract_ids([folder])


def test_wc_2_show_gives_each_key_with_its_origin(tmp_path: Path) -> None:
    folder = write(tmp_path, acme("[ids]\nmax_length = 40\n"))
    lines = contracts.show("acme/chat", [folder])
    assert any(line.startswith("ids.max_length") and line.endswith("40  # acme/chat") for line in lines)
    assert any(line.startswith("ids.policy") and line.endswith("# compat/chat") for line in lines)


def test_wc_2_an_id_nobody_knows_is_named_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"'nobody/chat'.*compat/chat"):
        contracts.resolve("nobody/chat")


def test_wc_2_a_loop_of_bases_is_refused(tmp_path: Path) -> None:
    text = '[contract]\nschema = 1\nid = "{0}/chat"\nbase = "{1}/chat"\n'
    write(tmp_path, text.format("a", "b"), "a.toml")
    write(tmp_path, text.format("b", "a"), "b.toml")
    with pytest.raises(SettingsError, match="loop"):
        contracts.resolve("a/chat", [tmp_path])


def test_wc_4_reasoning_protocol_replaces_four_keys_and_nothing_else() -> None:
    plain = contracts.resolve("compat/chat")
    laid = plain.with_reasoning_protocol("deepseek")
    changed = {key for key in plain if plain[key] != laid[key]}
    assert changed <= {"reasoning.carrier", "reasoning.required", "reasoning.when", "reasoning.empty_ok"}
    assert laid["reasoning.required"] == "all_with_tools"
    assert laid.digest != plain.digest
    assert plain.with_reasoning_protocol(None) is plain
    with pytest.raises(SettingsError, match="deepseek, mimo, kimi, none"):
        plain.with_reasoning_protocol("gpt")


def test_wc_7_the_digest_is_stable_and_follows_every_key(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    write(one, acme("[ids]\nmax_length = 40\n"))
    write(two, acme("[ids]\nmax_length = 41\n"))
    first = contracts.resolve("acme/chat", [one])
    assert first.digest == contracts.resolve("acme/chat", [one]).digest
    assert first.digest != contracts.resolve("acme/chat", [two]).digest
    assert first.digest.startswith("sha256:")


def test_wc_5_the_built_in_table_holds() -> None:
    enforced = {
        name: {rule for rule, level in contracts.resolve(name).rules.items() if level == "enforce"}
        for name in SHIPPED
    }
    chat = {"OC-01", "OC-02", "OC-03", "OC-04", "OC-06", "OC-08", "OC-09", "OC-12", "DS-11"}
    assert enforced["compat/chat"] == chat | {"LS-01", "LS-05"}
    assert enforced["openai/chat"] == chat | {"OC-05", "OC-07"} == enforced["azure/chat"]
    assert enforced["deepseek/chat"] == chat | {"DS-03", "DS-06", "LS-01"}
    assert enforced["kimi/chat"] == chat | {"KI-01", "KI-03", "KI-04"}
    assert enforced["llamacpp/chat"] == chat | {"LS-02", "LS-03", "LS-05"}
    assert enforced["vllm/chat"] == chat | {"LS-01", "LS-05"} == enforced["ollama/chat"]
    for name in SHIPPED:
        assert set(contracts.resolve(name).rules) <= RULE_IDS


def test_ux_25_a_contract_of_another_wire_than_the_endpoint_speaks_is_refused_by_name(tmp_path: Path) -> None:
    assert contracts.resolve_for("x", "chat", "openai/chat", [tmp_path / "none"]).id == "openai/chat"
    with pytest.raises(SettingsError) as raised:
        contracts.resolve_for("x", "anthropic", "openai/chat")
    told = "Endpoint 'x' speaks the wire 'anthropic', and its contract 'openai/chat' is one of another wire."
    assert (raised.value.message, raised.value.next_command) == (
        told,
        "surefoot contract show compat/anthropic",
    )
