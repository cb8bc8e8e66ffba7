"""Certainty of a refusal, the plan per family, and what each repair does to the wire copy."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from surefoot.core.history import AssistantWords, CallAsked, Message, ResultGiven, UserWords
from surefoot.core.lifecycle import Book
from surefoot.core.model import Receipt, State
from surefoot.providers import contracts, ladder, repairs
from surefoot.providers.anthropic import AnthropicWire
from surefoot.providers.chat import ChatWire
from surefoot.providers.diagnosis import FAMILIES, certainty, diagnose
from surefoot.providers.missing import NOT_EXECUTED, OUTCOME_UNKNOWN, receipt_first, with_missing_results
from surefoot.providers.port import ModelRequest, ToolSpec, Wire
from surefoot.providers.projection import InForce, project
from surefoot.providers.responses import ResponsesWire
from surefoot.providers.rules import Finding

WIRES: dict[str, Wire] = {"chat": ChatWire(), "responses": ResponsesWire(), "anthropic": AnthropicWire()}
TOOLS = (ToolSpec("look", "Look.", {"type": "object"}),)


def call(number: int) -> CallAsked:
    return CallAsked(f"cal_{number}", f"att_{number}", 0, "look", "{}", f"call_{number}")


def words(wire: str, number: int, text: str = "") -> AssistantWords:
    one = call(number)
    chat = {"role": "assistant", "content": text, "reasoning_content": "thought",
            "tool_calls": [{"id": one.provider_call_id, "type": "function",
                            "function": {"name": "look", "arguments": "{}"}}]}  # fmt: skip
    responses = {"output": [
        {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "enc",
         "content": [{"type": "reasoning_text", "text": "thought"}]},
        {"type": "function_call", "id": f"fc_{number}", "call_id": one.provider_call_id, "name": "look",
         "arguments": "{}", "status": "completed"}]}  # fmt: skip
    anthropic = {"role": "assistant", "stop_reason": "tool_use", "content": [
        {"type": "thinking", "thinking": f"thought {number}", "signature": f"sig{number}=="}, 
        *([{"type": "text", "text": text}] if text else []),
        {"type": "tool_use", "id": one.provider_call_id, "name": "look", "input": {}}]}  # fmt: skip
    raw: Mapping[str, Any] = {"chat": chat, "responses": responses, "anthropic": anthropic}[wire]
    return AssistantWords(number, text, (one,), wire, raw)


def history(wire: str) -> list[Message]:
    return [
        UserWords("t1", "go"), words(wire, 1, "Looking."), ResultGiven(call(1), "1", False),
        words(wire, 2), ResultGiven(call(2), "2", False),
    ]  # fmt: skip


def ground(name: str, messages: Sequence[Message], **more: Any) -> ladder.Ground:
    contract = contracts.resolve(name)
    wire = WIRES[name.partition("/")[2]]

    def encode(repairs: Sequence[tuple[str, int]]) -> ladder.Encoded:
        effort = "low" if name.endswith("anthropic") else None
        request = ModelRequest("m", "s", messages, TOOLS, effort=effort)
        return project(messages, Book(), contract, InForce(tuple(repairs)), request=request, wire=wire)

    return ladder.Ground(messages, contract, encode, **more)


# --- certainty ------------------------------------------------------------------------------


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_pr_12_the_validator_confirms_what_it_found_and_notes_what_it_missed(family: str) -> None:
    found = certainty(family, 400, [("XX-01", family)])
    assert (found.kind, found.word, found.rules, found.notes) == (family, "confirmed", ("XX-01",), ())
    missed = certainty(family, 400, [])
    unseen = family == "replay_signature"  # no client can check a signature
    assert missed.word == ("confirmed" if unseen else "reported")
    assert missed.notes == (() if unseen else ("validator_missed",))


@pytest.mark.parametrize(
    "kind", ["upstream_reason_missing", "upstream_reason_unrecognised", "quota", "schema"]
)
def test_pr_12_findings_never_rename_another_refusal(kind: str) -> None:
    found = certainty(kind, 400, [("OC-01", "replay_pairing")])
    assert (found.kind, found.word, found.rules) == (kind, "none", ("OC-01",))


@pytest.mark.parametrize(
    ("status", "kind"), [(400, "replay_ids"), (422, "replay_ids"), (302, "rejected"), (None, "rejected")]
)
def test_pr_10_line_16_a_reason_nothing_matches_is_probable_with_a_finding(
    status: int | None, kind: str
) -> None:
    found = certainty("rejected", status, [("MS-01", "replay_ids")])
    assert (found.kind, found.word) == (kind, "probable" if kind == "replay_ids" else "none")
    assert certainty("rejected", status, [("AN-16", "schema")]).kind == "rejected"


def test_pr_15_at_most_sixteen_rules_are_kept() -> None:
    assert len(certainty("replay_ids", 400, [(f"XX-{n:02d}", "replay_ids") for n in range(40)]).rules) == 16


@pytest.mark.parametrize(
    ("text", "linked"),
    [
        (
            "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.",
            True,
        ),
        ("The `reasoning_text` in the thinking mode must be passed back to the API.", False),
    ],
)
def test_pr_53_a_refusal_tells_whether_it_speaks_of_linked_items(text: str, linked: bool) -> None:
    seen = diagnose(
        400, json.dumps({"error": {"message": text}}).encode(), contracts.resolve("openai/responses")
    )
    assert (seen.kind, seen.linked) == ("replay_reasoning", linked)


# --- plans ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind", "added"),
    [
        ("deepseek/chat", "replay_reasoning", {("R14", 1), ("R14", 3)}),
        ("deepseek/responses", "replay_reasoning", {("R14", 1), ("R14", 3)}),
        ("compat/chat", "replay_reasoning", {("R14", 1), ("R14", 3)}),
        ("compat/anthropic", "replay_signature", {("R11", 1), ("R11", 3)}),
        ("compat/chat", "replay_pairing", {("R14", 1), ("R14", 3)}),
        ("compat/chat", "replay_ids", {("R14", 1), ("R14", 3)}),
        ("compat/chat", "replay_arguments", {("R14", 1), ("R14", 3)}),
        ("deepseek/chat", "upstream_reason_missing", {("R14", 1), ("R14", 3)}),
        ("compat/chat", "upstream_reason_unrecognised", {("R11", 1), ("R11", 3)}),
    ],
)
def test_pr_50_pr_53_the_first_level_that_holds_is_taken(
    name: str, kind: str, added: set[tuple[str, int]]
) -> None:
    found = ladder.plan(ground(name, history(name.partition("/")[2])), ladder.Refused(kind))
    assert found is not None
    assert set(found.added) == added


CARRIERS, SEGMENTS = (("R11", 1), ("R11", 3)), (("R14", 1), ("R14", 3))


@pytest.mark.parametrize(
    ("protocol", "kind", "tried"),
    [
        # Nothing is declared: what the contract does not require is omitted, and that is enough for no reason.
        (None, "upstream_reason_missing", [CARRIERS]),
        (None, "upstream_reason_unrecognised", [CARRIERS]),
        # A refusal that speaks of reasoning: without carriers the finding of them stays, so the segments go.
        (None, "replay_reasoning", [CARRIERS, SEGMENTS]),
        # Required: no placeholder takes the place of what was sent and refused.
        ("deepseek", "upstream_reason_missing", [SEGMENTS]),
        ("deepseek", "replay_reasoning", [CARRIERS, SEGMENTS]),
        ("kimi", "replay_reasoning", [CARRIERS, SEGMENTS]),
        # No carrier is sent at all, so to omit them changes no byte.
        ("none", "upstream_reason_missing", [CARRIERS, SEGMENTS]),
        ("none", "replay_reasoning", [CARRIERS, SEGMENTS]),
    ],
)
def test_pr_50_pr_53_behind_a_gateway_carriers_go_before_segments_and_no_placeholder_ends_the_ladder(
    protocol: str | None, kind: str, tried: list[Any]
) -> None:
    contract = contracts.resolve("compat/chat").with_reasoning_protocol(protocol)
    messages, levels = history("chat"), []

    def encode(repaired: Sequence[tuple[str, int]]) -> ladder.Encoded:
        levels.append(tuple(repaired))
        request = ModelRequest("m", "s", messages, TOOLS)
        return project(
            messages, Book(), contract, InForce(tuple(repaired)), request=request, wire=WIRES["chat"]
        )

    found = ladder.plan(ladder.Ground(messages, contract, encode), ladder.Refused(kind))
    assert found is not None and levels == [(), *tried] and found.added == tried[-1]


def test_pr_53_linked_items_are_unlinked_first() -> None:
    messages = history("responses")
    found = ladder.plan(ground("openai/responses", messages), ladder.Refused("replay_reasoning", linked=True))
    assert found is not None and {rid for rid, _ in found.added} == {"R10"}
    kinds = [item.get("type") for item in found.body["input"]]
    assert "reasoning" not in kinds and not any("id" in item for item in found.body["input"])


def test_pr_50_r9_is_asked_for_only_where_the_endpoint_can() -> None:
    messages = history("anthropic")
    found = ladder.plan(
        ground("anthropic-bound/anthropic", messages, may_drop=True), ladder.Refused("replay_signature")
    )
    assert found is not None and found.added == (("R9", -1),)
    other = ladder.plan(ground("anthropic-bound/anthropic", messages), ladder.Refused("replay_signature"))
    assert other is not None and "R9" not in {rid for rid, _ in other.added}


def test_pr_27_pr_53_nothing_to_change_is_no_plan() -> None:
    plain: list[Message] = [
        UserWords("t1", "go"),
        AssistantWords(1, "hi", (), "chat", {"content": "hi"}),
        UserWords("t2", "on"),
    ]
    for kind in (*FAMILIES, "upstream_reason_missing"):
        assert ladder.plan(ground("compat/chat", plain), ladder.Refused(kind)) is None


def test_pr_43_a_later_plan_starts_from_the_repairs_in_force() -> None:
    messages = history("chat")
    first = (("R14", 1),)
    found = ladder.plan(ground("compat/chat", messages, in_force=first), ladder.Refused("replay_pairing"))
    assert found is not None and found.repairs[: len(first)] == first and found.added == (("R14", 3),)


def test_pr_53_findings_lead_a_wordless_refusal_before_anything_is_removed() -> None:
    messages = history("responses")
    finding = Finding("OR-03", "replay_reasoning", "input.1", "suspect")
    found = ladder.plan(
        ground("compat/responses", messages), ladder.Refused("upstream_reason_missing", (finding,))
    )
    assert found is not None and {rid for rid, _ in found.added} == {"R10"}


# --- repairs --------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", sorted(WIRES))
def test_pr_51_a_carrier_is_omitted_and_never_becomes_text(wire: str) -> None:
    message = words(wire, 1, "Looking.")
    stripped = repairs.without_carrier(message)
    assert repairs.has_carrier(message) and not repairs.has_carrier(stripped)
    assert "thought" not in str(stripped.raw) and stripped.calls == message.calls
    assert "thought" in str(message.raw)  # what was received stays (PR-47)
    assert repairs.without_carrier(stripped) is stripped


@pytest.mark.parametrize("wire", sorted(WIRES))
def test_pr_54_a_removed_segment_keeps_its_text_and_loses_call_and_result(wire: str) -> None:
    messages = history(wire)
    shown = repairs.repaired(messages, [("R14", 1), ("R14", 3)])
    assert [type(one).__name__ for one in shown] == ["UserWords", "AssistantWords"]
    assert shown[0] is messages[0]
    kept = shown[1]
    assert isinstance(kept, AssistantWords) and (kept.text, kept.calls, kept.raw) == ("Looking.", (), {})
    one = repairs.repaired(messages, [("R14", 3)])
    assert one[:3] == messages[:3] and len(one) == 3


@pytest.mark.promise("projection:no-invented-success")
def test_pr_56_a_missing_result_is_one_of_two_constants_and_never_looks_like_output() -> None:
    messages: list[Message] = [UserWords("t1", "go"), words("chat", 1), words("chat", 2)]
    book = Book([receipt(1, State.NOT_STARTED), receipt(2, State.STARTED)])
    shown = with_missing_results(messages, book.attempts)
    given = [one for one in shown if isinstance(one, ResultGiven)]
    assert [(one.text, one.is_error) for one in given] == [(NOT_EXECUTED, True), (OUTCOME_UNKNOWN, True)]
    assert with_missing_results(history("chat"), book.attempts) == history("chat")


def receipt(number: int, state: State, **fields: Any) -> Receipt:
    return Receipt("s", "t", f"cal_{number}", f"att_{number}", 0, state=state, **fields)


def test_pr_56_a_stored_result_that_is_missing_comes_back_from_its_receipt_unchanged() -> None:
    messages: list[Message] = [UserWords("t1", "go"), words("chat", 1), words("chat", 2)]
    told: list[dict[str, Any]] = [
        {"text": "three effects", "isError": False},
        {"text": "no", "isError": True},
    ]
    ended = [receipt(1, State.SUCCEEDED, result=told[0]), receipt(2, State.FAILED, result=told[1])]
    shown = with_missing_results(messages, Book(ended).attempts)
    given = [one for one in shown if isinstance(one, ResultGiven)]
    assert [(one.text, one.is_error) for one in given] == [("three effects", False), ("no", True)]


def test_oc_03_of_two_results_that_differ_the_receipts_own_stands_first() -> None:
    first, second = ResultGiven(call(1), "cancelled", True), ResultGiven(call(1), "three effects", False)
    messages: list[Message] = [UserWords("t1", "go"), words("chat", 1), first, second]
    book = Book([receipt(1, State.SUCCEEDED, result={"text": "three effects"})])
    assert receipt_first(messages, book.attempts)[2:] == [second, first]
    far = Book([receipt(1, State.SUCCEEDED, result_ref="blob")])  # its text lies elsewhere
    assert receipt_first(messages, far.attempts)[2:] == [second, first]
    assert receipt_first(messages, Book().attempts) == messages
