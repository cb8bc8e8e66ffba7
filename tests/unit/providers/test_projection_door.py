"""The one door from a history to a request: pure, told of every repair, and silent about a healthy history."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import surefoot
from surefoot.core.history import AssistantWords, CallAsked, Message, ResultGiven, UserWords
from surefoot.core.lifecycle import Book
from surefoot.core.restated import OPENING
from surefoot.providers import contracts
from surefoot.providers.missing import OUTCOME_UNKNOWN
from surefoot.providers.port import ModelRequest, ToolSpec
from surefoot.providers.projection import WIRES, InForce, Projection, project
from surefoot.providers.shaping import body_bytes
from surefoot.testing.damages import healthy_bytes_differ, record
from surefoot.testing.replaying import TIER_ONE, Peer

TOOLS = (ToolSpec("look", "Look.", {"type": "object"}),)
SOURCE = Path(surefoot.__file__).parent


def call(number: int = 0, **more: Any) -> CallAsked:
    given = {"asked_name": "look", "arguments": "{}", "provider_call_id": f"call_{number}", **more}
    return CallAsked(f"cal_{number}", f"att_{number}", 0, **given)


def reply(wire: str, number: int = 0, *calls: CallAsked, text: str = "", **raw: Any) -> AssistantWords:
    """One stored reply in the JSON of its wire."""
    if wire == "chat":
        stored: dict[str, Any] = {"role": "assistant", "content": text, **raw}
    elif wire == "responses":
        items = [
            {"type": "function_call", "id": f"fc_{number}{n}", "call_id": one.provider_call_id, "name": "look",
             "arguments": one.arguments} for n, one in enumerate(calls)
        ]  # fmt: skip
        stored = {"output": [*raw.get("before", ()), *items]}
    else:
        uses = [
            {"type": "tool_use", "id": one.provider_call_id, "name": "look", "input": {}} for one in calls
        ]
        stored = {"role": "assistant", "stop_reason": "tool_use", "content": [*raw.get("before", ()), *uses]}
    return AssistantWords(number + 1, text, calls, wire, stored, raw.get("issuer", {}))


def shown(
    messages: Sequence[Message], contract: str = "compat/chat", force: InForce | None = None, **more: Any
) -> Projection:
    rules: Mapping[str, Any] = contracts.resolve(contract)
    request = ModelRequest("m", "s", (), TOOLS, endpoint="here", **more)
    return project(messages, Book(), rules, force, request=request)


def round_of(wire: str, number: int = 0, **more: Any) -> list[Message]:
    one = call(number, **more)
    return [UserWords("t", "go"), reply(wire, number, one), ResultGiven(one, "ok", False)]


GO = UserWords("t", "go")
A, B = call(0), call(1)
THINK = {"type": "thinking", "thinking": "hm", "signature": "sig=="}
REASON = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "enc"}
ELSEWHERE = {"endpoint": "there", "contract": "other/anthropic", "model": "m"}
CASES: list[tuple[str, str, list[Message], set[tuple[str, int]]]] = [
    ("R1", "compat/chat",
     [GO, reply("chat", 0, A, B), ResultGiven(B, "b", False), ResultGiven(A, "a", False)], {("R1", 2), ("R1", 3)}),
    ("R1 words between", "compat/responses",
     [GO, reply("responses", 0, A), UserWords("t2", "wait"), ResultGiven(A, "a", False)], {("R1", 3)}),
    ("R2 blank arguments", "compat/chat", round_of("chat", arguments=""), {("R2", 1)}),
    ("R2 neighbours", "llamacpp/chat", [GO, UserWords("t2", "and?")], {("R2", 1)}),
    ("R2 blank error", "compat/anthropic",
     [GO, reply("anthropic", 0, A), ResultGiven(A, "", True)], {("R2", 2)}),
    ("R3 no id", "compat/chat", round_of("chat", provider_call_id=None), {("R3", 1)}),
    ("R3 pattern", "compat/anthropic", round_of("anthropic", provider_call_id="a.b"), {("R3", 1)}),
    ("R3 length", "compat/responses", round_of("responses", provider_call_id="x" * 86), {("R3", 1)}),
    ("R5", "compat/chat", [GO, reply("chat", 0, A)], {("R5", 1)}),
    ("R5 messages", "compat/anthropic", [GO, reply("anthropic", 0, A)], {("R5", 1)}),
    ("R5 items", "compat/responses", [GO, reply("responses", 0, A)], {("R5", 1)}),
    ("R6", "compat/anthropic", [GO, reply("anthropic", text="half", before=[{"type": "text", "text": "half"}])],
     {("R6", -1)}),
    ("R6 order", "mistral/chat", [*round_of("chat", provider_call_id="abcdefghi"), UserWords("t2", "so?")],
     {("R6", -1)}),
    ("R7", "compat/chat", [*round_of("chat"), ResultGiven(A, "ok", False)], {("R7", 3)}),
    ("R8", "kimi/chat", round_of("chat"), {("R8", 1)}),
    ("R8 messages", "deepseek/anthropic", round_of("anthropic"), {("R8", 1)}),
    ("R10", "compat/responses",
     [GO, *round_of("responses")[1:], reply("responses", 0, B), ResultGiven(B, "b", False)], {("R10", 3)}),
    ("R11 foreign", "anthropic/anthropic",
     [GO, reply("anthropic", 0, A, before=[THINK], issuer=ELSEWHERE), ResultGiven(A, "a", False),
      reply("anthropic", 3, text="so", before=[{"type": "text", "text": "so"}]), UserWords("t2", "and?")],
     {("R11", 1)}),
    ("R11 forbidden", "deepseek-r1/chat",
     [GO, reply("chat", 0, A, reasoning_content="hm"), ResultGiven(A, "a", False)], {("R11", 1)}),
    ("R11 dangling", "openai/responses",
     [GO, AssistantWords(1, "", (), "responses", {"output": [REASON]}), UserWords("t2", "so?")], {("R11", 1)}),
    ("R12", "compat/chat", [GO, ResultGiven(A, "a", False)], {("R12", 1)}),
    ("R12 messages", "compat/anthropic", [GO, ResultGiven(A, "a", False)], {("R12", 1)}),
    ("R12 items", "compat/responses", [GO, ResultGiven(A, "a", False)], {("R12", 1)}),
    ("R13", "compat/chat", round_of("chat", arguments='{"label": "a'), {("R13", 1)}),
    ("R13 messages", "compat/anthropic", round_of("anthropic", arguments="[1]"), {("R13", 1)}),
    ("R13 items", "compat/responses", round_of("responses", arguments="no"), {("R13", 1)}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "contract", "messages", "told"), CASES, ids=[case[0] for case in CASES])
def test_pr_47_each_ordinary_repair_is_told_with_its_place(
    name: str, contract: str, messages: list[Message], told: set[tuple[str, int]]
) -> None:
    effort = "low" if contract == "anthropic/anthropic" else None
    made = shown(messages, contract, effort=effort)
    assert set(made.repairs) >= told, made.repairs
    assert {rid for rid, _ in made.repairs} == {rid for rid, _ in told}, made.repairs
    assert [one for one in made.findings if one.level == "enforce"] == []


@pytest.mark.parametrize("wire", list(WIRES))
@pytest.mark.promise("projection:pure")
def test_pr_47_pr_48_a_healthy_history_is_told_of_nothing_and_encoded_unchanged(wire: str) -> None:
    messages = [*round_of(wire), UserWords("t2", "and now?")]
    before = json.dumps([str(one) for one in messages])
    made = shown(messages, f"compat/{wire}")
    assert made.repairs == () and [one for one in made.findings if one.level == "enforce"] == []
    plain = WIRES[wire]().encode(
        ModelRequest("m", "s", messages, TOOLS, endpoint="here"), contracts.resolve(f"compat/{wire}")
    )
    assert body_bytes(made.body) == body_bytes(plain)
    assert json.dumps([str(one) for one in messages]) == before
    assert all(one is two for one, two in zip(made.request.messages, messages, strict=True))


@pytest.mark.promise("projection:prefix-stable")
@pytest.mark.parametrize("peer", TIER_ONE, ids=lambda peer: peer.name)
def test_pr_47_pr_48_recorded_sessions_of_every_contract_stay_the_same_to_the_byte(peer: Peer) -> None:
    for seed in range(3):
        made = record(peer, random.Random(f"{peer.name} {seed}"))
        assert not healthy_bytes_differ(made)
        told = made.talk.project(made.messages)
        kept = made.talk.contract["reasoning.required"] != "forbidden"  # else no carrier may return at all
        never = {"R1", "R5", "R7", "R12", "R13", "R14", *(("R11",) if kept else ())}
        assert not never & {rid for rid, _ in told.repairs}, told.repairs


@pytest.mark.parametrize("wire", list(WIRES))
def test_pr_47_the_repair_of_an_incident_and_its_facts_come_through_the_same_door(wire: str) -> None:
    messages = [*round_of(wire), UserWords("t2", "and now?")]
    made = shown(messages, f"compat/{wire}", InForce((("R14", 1),), ((3, Book()),)))
    assert ("R14", 1) in made.repairs
    text = json.dumps(made.body)
    assert OPENING in text and "call_0" not in text
    moved = [UserWords("t0", "before"), *messages]
    again = shown(moved, f"compat/{wire}", InForce((("R14", 1),), ((3, Book()),), offset=1))
    assert ("R14", 2) in again.repairs and OPENING in json.dumps(again.body)


def test_pr_47_a_missing_result_says_that_its_outcome_is_unknown() -> None:
    made = shown([GO, reply("chat", 0, A)])
    assert OUTCOME_UNKNOWN in json.dumps(made.body)


SCRIPT = """
import hashlib, random
from surefoot.testing.damages import DAMAGES, record
from surefoot.testing.replaying import TIER_ONE
from surefoot.providers.shaping import body_bytes
seen = hashlib.sha256()
for peer in TIER_ONE:
    dice = random.Random(peer.name)
    made = record(peer, dice)
    messages = list(made.messages)
    for name in dice.sample(sorted(DAMAGES), 3):
        messages = DAMAGES[name](messages, dice) or messages
    told = made.talk.project(messages)
    seen.update(body_bytes(told.body) + repr((told.repairs, told.findings)).encode())
print(seen.hexdigest())
"""


@pytest.mark.promise("projection:pure")
def test_pr_47_the_same_input_gives_the_same_bytes_in_every_process() -> None:
    seen = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(SOURCE.parent), "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1


def test_pr_47_no_other_part_of_the_program_encodes_a_request() -> None:
    callers = [
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if re.search(
            r"(wire|spoken|Wire\(\))\.encode\(|\brepaired\(|with_missing_results\(", path.read_text()
        )
    ]
    doors = {"providers/projection.py", "providers/repairs.py", "providers/missing.py"}
    assert set(callers) == doors
