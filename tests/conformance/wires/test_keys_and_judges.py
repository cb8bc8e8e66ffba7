"""Keys that let something pass: it is sent, the validator lets it, and only the rule they are about refuses it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.history import AssistantWords, CallAsked, Message, ResultGiven, UserWords
from surefoot.core.lifecycle import Book
from surefoot.core.model import TurnStatus
from surefoot.providers import contracts
from surefoot.providers.contracts import Contract
from surefoot.providers.port import ModelRequest, ToolSpec
from surefoot.providers.projection import project
from surefoot.providers.rules import refusing
from surefoot.providers.shaping import body_bytes
from surefoot.testing.emulator import anthropic_rules, chat_rules, responses_rules
from surefoot.testing.emulator.profiles import WIRES
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.emulator.stored import Stored
from surefoot.testing.replaying import Peer, Stand

CALL = CallAsked("c0", "a0", 0, "note", "{}", "call_1")
ORPHAN = CallAsked("c9", "a9", 0, "note", "{}", "call_9")
GO = UserWords("t", "go")
ASKED = [GO, AssistantWords(1, "", (CALL,), "", {})]
OK = ResultGiven(CALL, "ok", False)
LOST: list[Message] = [GO, ResultGiven(ORPHAN, "lost", False), UserWords("t", "and?")]
TWICE: list[Message] = [*ASKED, OK, ResultGiven(CALL, "again", False)]
TALK: list[Message] = [*ASKED, OK, UserWords("t", "and?")]


def over(name: str, **keys: Any) -> Contract:
    found = contracts.resolve(name)
    return dataclasses.replace(found, keys_by_name={**found.keys_by_name, **keys})


def shown(contract: Contract, history: list[Message]) -> tuple[dict[str, Any], list[str]]:
    """The request as it would leave, and the rules for which it would not."""
    request = ModelRequest("m", "s", (), (ToolSpec("note", "Notes.", {}),))
    made = project(history, Book(), contract, request=request)
    return json.loads(body_bytes(made.body)), [one.rule for one in refusing(list(made.findings))]


def verdict(contract: Contract, body: dict[str, Any], *, off: str = "") -> tuple[str, ...]:
    """The rules for which the emulator refuses the request, with one rule switched off."""
    profile, without = WIRES[contract.wire]["compat"], frozenset({off})
    if contract.wire == "responses":
        found = responses_rules.check(body, profile, Stored(), off=without)
    else:
        judge = anthropic_rules if contract.wire == "anthropic" else chat_rules
        found = judge.check(body, profile, off=without)
    return () if found is None else found.rules


PAIRS = [
    ("compat/chat", "pairing.orphan_result", LOST, "OC-02"),
    ("compat/chat", "pairing.duplicate_result", TWICE, "OC-03"),
    ("compat/responses", "pairing.orphan_result", LOST, "OR-02"),
    ("compat/anthropic", "pairing.orphan_result", LOST, "AN-02"),
    ("compat/anthropic", "pairing.duplicate_result", TWICE, "AN-04"),
]


@pytest.mark.parametrize(("name", "key", "history", "rule"), PAIRS, ids=[f"{p[0]}-{p[3]}" for p in PAIRS])
def test_we_20_what_a_key_accepts_is_sent_as_it_was_and_refused_only_by_the_rule_it_is_about(
    name: str, key: str, history: list[Message], rule: str
) -> None:
    for value in ("reject", "unknown"):  # without evidence the client does not rely on it (WC-6)
        careful = over(name, **{key: value})
        body, refused = shown(careful, history)
        assert refused == [] and verdict(careful, body) == (), value
    accepting = over(name, **{key: "accept"})
    body, refused = shown(accepting, history)
    assert refused == [] and verdict(accepting, body) == (rule,)
    assert verdict(accepting, body, off=rule) == ()


@pytest.mark.parametrize("name", ["compat/chat", "compat/responses", "compat/anthropic"])
@pytest.mark.parametrize(
    "position", ["contiguous", "same_input", "next_message_first", "next_turn", "next_turn_only"]
)
def test_wc_8_wherever_results_may_stand_the_place_they_are_sent_at_is_one_of_them(
    name: str, position: str
) -> None:
    contract = over(name, **{"pairing.results_position": position})
    for history in (TALK, [*ASKED, UserWords("t", "typed meanwhile"), OK, UserWords("t", "and?")]):
        body, refused = shown(contract, history)
        assert refused == [] and verdict(contract, body) == ()


async def test_x_12_a_body_above_the_limit_is_not_sent_and_the_refusal_says_what_to_do(
    tmp_path: Path,
) -> None:
    peer = Peer("chat", "compat", "compat/chat", declared={"limits.body_bytes": 3000})
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([{"text": "Done."}])
        assert (await stand.crew.controller.submit("Go.")).status is TurnStatus.COMPLETED
        end = await stand.crew.controller.submit("x" * 3000)
        assert (end.status, end.reason) == (TurnStatus.FAILED, "SF-PROVIDER-REFUSED")
        assert "limits.body_bytes = 3000" in str(end.error) and "/compact" in str(end.error)
        assert stand.statuses() == [200] and await stand.records() == []
