"""What a diagnosis is made of: inputs, reason texts, families; each sentence of the specification has its rows."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest

from surefoot.providers import contracts, diagnosis
from surefoot.providers.diagnosis import FAMILIES, diagnose, is_opaque, read_reasons

COMPAT = contracts.resolve("compat/chat")
LONG = "x" * 5000


def body(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else json.dumps(value, ensure_ascii=False).encode()


# --- PR-4 ------------------------------------------------------------------------------------


def test_pr_4_a_diagnosis_is_made_of_status_body_and_contract_alone() -> None:
    assert list(inspect.signature(diagnose).parameters) == ["status", "body", "contract", "complete"]
    source = inspect.getsource(diagnosis)
    assert not any(f"import {name}" in source for name in ("time", "datetime", "os", "random", "logging"))
    text = body({"error": {"message": "tool_calls must be followed by tool messages"}})
    assert len({diagnose(400, text, COMPAT) for _ in range(5)}) == 1


@pytest.mark.parametrize("text", [b"", b'{"model":"m"}', b"  "])
def test_pr_4_pr_9_a_body_that_was_cut_or_broke_off_is_never_called_opaque(text: bytes) -> None:
    assert is_opaque(400, text, complete=True) and not is_opaque(400, text, complete=False)
    assert diagnose(400, text, COMPAT, complete=False).kind == "upstream_reason_unrecognised"


# --- PR-7 ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ({"error": {"message": "One A"}}, ["one a"]),
        ({"error": {"message": "A b", "param": "c d"}}, ["a b", "c d"]),
        ({"error": {"message": "A b", "param": "messages[2]"}}, ["a b"]),
        ({"message": "A"}, ["a"]),
        ({"detail": "A"}, ["a"]),
        ({"msg": "A"}, ["a"]),
        ({"error": "A"}, ["a"]),
        ({"error": {"metadata": {"raw": "A"}}}, ["a"]),
        (
            {
                "error": {"message": "1", "param": "2 2", "metadata": {"raw": "6"}},
                "message": "3",
                "detail": "4",
                "msg": "5",
            },
            ["1", "2 2", "3", "4", "5", "6"],
        ),
        ({"other": "A", "error": {"note": "B"}}, []),
        ("just words of a proxy, 1", ["just words of a proxy, 1"]),
        ("Bad Request", []),
        ("w " * 600, []),
        ({"error": {"message": LONG}}, ["x" * 4096]),
    ],
)  # fmt: skip
def test_pr_7_reason_texts_are_collected_in_their_order_and_cut(value: Any, texts: list[str]) -> None:
    assert list(read_reasons(body(value), COMPAT).texts) == texts


def _nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"error": {"message": "the innermost"}}
    for _ in range(depth):
        inner = {"error": {"message": "DeepSeek 400: " + json.dumps(inner)}}
    return inner


@pytest.mark.parametrize(("depth", "found"), [(0, True), (1, True), (2, True), (3, True), (4, False)])
def test_pr_7_an_object_in_a_text_is_unwrapped_at_most_three_levels_deep(depth: int, found: bool) -> None:
    reasons = read_reasons(body(_nested(depth)), COMPAT)
    assert ("the innermost" in reasons.texts) is found
    assert reasons.unwrapped is (depth > 0)


@pytest.mark.parametrize(
    ("value", "codes"),
    [
        ({"error": {"code": "1214", "type": "t", "status": "s", "http_code": "400"}}, {"1214", "t", "s", "400"}),
        ({"code": 400, "type": "T"}, {"400", "t"}),
        ({"error": {"details": {"error_code": "d"}, "metadata": {"error_type": "m"}}}, {"d", "m"}),
        ({"error": {"code": True, "type": ["x"]}}, set()),
    ],
)  # fmt: skip
def test_pr_7_codes_are_compared_as_strings(value: Any, codes: set[str]) -> None:
    assert set(read_reasons(body(value), COMPAT).codes) == codes


# --- PR-11 -----------------------------------------------------------------------------------

PAIRS = [(family, pair) for family, pairs in FAMILIES.items() for pair in pairs]


@pytest.mark.parametrize(("family", "pair"), PAIRS, ids=[" + ".join(pair) for _, pair in PAIRS])
def test_pr_11_subject_and_obligation_stand_in_the_same_text(family: str, pair: tuple[str, ...]) -> None:
    together = {"error": {"message": f"Fault: {' … '.join(pair)}."}}
    found = diagnose(400, body(together), COMPAT).kind
    assert found in FAMILIES
    if not any(all(part in " … ".join(pair) for part in other) for name, other in PAIRS if name != family):
        assert found == family
    if len(pair) == 2:
        apart = {"error": {"message": f"Fault: {pair[0]}."}, "message": f"Fault: {pair[1]}."}
        others = [other for _, other in PAIRS if len(other) == 1 and other[0] in pair]
        assert others or diagnose(400, body(apart), COMPAT).kind == "rejected"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "replay_pairing"),
        (422, "replay_pairing"),
        (404, "rejected"),
        (409, "transient"),
        (500, "transient"),
    ],
)
def test_pr_11_only_certain_statuses_speak_of_the_history(status: int, kind: str) -> None:
    text = body({"error": {"message": "No tool output found for function call call_1."}})
    assert diagnose(status, text, COMPAT).kind == kind


def test_pr_11_or_05_a_404_counts_for_items_that_were_not_stored_alone() -> None:
    said = "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false."
    text = body({"error": {"message": said}})
    assert diagnose(404, text, contracts.resolve("openai/responses")).kind == "replay_reasoning"
    other = body({"error": {"message": "The model does not exist: tool_calls must be followed by x."}})
    assert diagnose(404, other, COMPAT).kind == "rejected"


@pytest.mark.parametrize("status", [404, 500, 502])
def test_pr_11_a_text_unwrapped_from_a_gateway_counts_under_any_status(status: int) -> None:
    inner = json.dumps({"error": {"message": "No tool output found for function call call_1."}})
    assert (
        diagnose(status, body({"error": {"message": f"Upstream 400: {inner}"}}), COMPAT).kind
        == "replay_pairing"
    )


def test_pr_11_contracts_add_fragments_of_their_own() -> None:
    text = body({"error": {"message": "Unterminated string starting at: line 1 column 14 (char 13)"}})
    assert diagnose(400, text, contracts.resolve("vllm/chat")).kind == "replay_arguments"
    assert diagnose(400, text, COMPAT).kind == "rejected"
    declared = {**COMPAT, "errors.families": {"replay_ids": [["the moon", "is twice"]]}}
    assert diagnose(400, body({"message": "The moon here is twice."}), declared).kind == "replay_ids"


@pytest.mark.parametrize("wire", ["chat", "responses", "anthropic"])
def test_pr_11_a_text_about_another_wires_field_is_believed(wire: str) -> None:
    text = body({"error": {"message": "The `content[].thinking` in the thinking mode must be passed back."}})
    assert diagnose(400, text, contracts.resolve(f"compat/{wire}")).kind == "replay_reasoning"
