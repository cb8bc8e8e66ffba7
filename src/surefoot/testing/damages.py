"""Random cuts and damages of recorded histories, projected and judged by the emulator's own checks.

    python -m surefoot.testing.damages --count 10000 [--seed N]

Owns: recording a history by speaking with the emulator in this process, what a damage is, and
the verdict. Does not own: repairs (`providers`), the rules that judge them (`emulator`).

A damaged history passes when the request made of it is accepted, at once or after one repair
of the plan its refusal leads to; an undamaged one when its bytes are those that were sent.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from surefoot.core.history import AssistantWords, CallAsked, Message, ResultGiven, UserWords
from surefoot.core.lifecycle import Book
from surefoot.providers import contracts, ladder, rules
from surefoot.providers.diagnosis import certainty, diagnose
from surefoot.providers.port import ModelRequest, ToolSpec
from surefoot.providers.projection import WIRES, InForce, Projection, project
from surefoot.providers.repairs import Repair
from surefoot.providers.shaping import EMPTY_RESULT, FAILED_WITHOUT_TEXT, body_bytes, messages_of
from surefoot.testing.emulator.exchange import Exchange, Rooms
from surefoot.testing.emulator.fault_plan import FaultPlan
from surefoot.testing.emulator.profiles import PATHS
from surefoot.testing.emulator.profiles import WIRES as PROFILES
from surefoot.testing.emulator.request_log import RequestLog
from surefoot.testing.emulator.scripts import Script, Scripts
from surefoot.testing.emulator.stored import Stored
from surefoot.testing.emulator.wire_out import Request
from surefoot.testing.replaying import KEY, SYSTEM, TIER_ONE, Peer

TOOLS = (ToolSpec("look", "Look.", {"type": "object", "properties": {"label": {"type": "string"}}}),)
PATH_OF = {wire: path for path, wire in PATHS.items()}


class Talk:
    """One conversation with a profile, in this process: the emulator's exchange without a socket."""

    def __init__(self, peer: Peer, steps: Sequence[dict[str, Any]]) -> None:
        self.peer = peer
        self.wire = WIRES[peer.wire]()
        self.contract = contracts.resolve(peer.contract).with_reasoning_protocol(peer.reasoning_protocol)
        self.profile = PROFILES[peer.wire][peer.profile]
        scripts = Scripts()
        scripts.add(Script(list(steps)))
        self.rooms = Rooms(FaultPlan(), scripts, Stored(), PROFILES["chat"])
        self.log = RequestLog()

    def project(self, messages: Sequence[Message], repairs: Sequence[Repair] = ()) -> Projection:
        """These messages as the wire would have them."""
        request = ModelRequest(
            self.peer.model, SYSTEM, messages, TOOLS, effort=self.peer.effort, endpoint="emulated"
        )
        force = InForce(tuple(repairs)) if repairs else None
        return project(messages, Book(), self.contract, force, request=request, wire=self.wire)

    def encode(self, messages: Sequence[Message]) -> Mapping[str, Any]:
        """The request body for these messages."""
        return self.project(messages).body

    def ask(self, body: Mapping[str, Any]) -> tuple[int, bytes]:
        """Status and body of the answer."""
        content = body_bytes(body)
        headers = {"authorization": f"Bearer {KEY}", "x-api-key": KEY}
        path = "/" + self.peer.profile + "/" + PATH_OF[self.peer.wire]
        entry = self.log.arrived(profile=self.peer.profile, path=path, headers=headers, body=content)
        exchange = Exchange(
            self.rooms, self.profile, Request("POST", path, headers, content), entry, nth=entry.sequence
        )
        out = exchange.answer()
        return out.status, b"".join(out.pieces)

    def reply(self, content: bytes, turn: int) -> AssistantWords:
        """The reply as it would be stored."""
        decoder = self.wire.decoder(self.contract, stream=True)
        decoder.feed(content)
        reply = decoder.end()
        calls = tuple(
            CallAsked(
                f"cal_{turn}_{n}", f"att_{turn}_{n}", n, one.name, one.arguments or "", one.provider_call_id
            )
            for n, one in enumerate(reply.calls)
        )
        issuer = {"endpoint": "emulated", "model": self.peer.model, "contract": self.peer.contract}
        return AssistantWords(turn, reply.text, calls, self.peer.wire, reply.raw, issuer)


@dataclass(slots=True)
class Recorded:
    """A healthy history and the messages of every request it was sent in."""

    talk: Talk
    messages: list[Message] = field(default_factory=list)
    sent: list[Any] = field(default_factory=list)


def record(peer: Peer, dice: random.Random) -> Recorded:
    """A conversation of one to three turns, each with up to two batches of calls."""
    steps: list[dict[str, Any]] = []
    shape: list[int] = []
    for turn in range(dice.randint(1, 3)):
        batches = dice.randint(0 if turn else 1, 2)
        shape.append(batches)
        for number in range(batches):
            calls = [
                {"name": "look", "args": {"label": f"{turn}{number}{n}"}} for n in range(dice.randint(1, 3))
            ]
            steps.append(
                {
                    "thinking": f"I look {turn}.{number}.",
                    "calls": calls,
                    "text": dice.choice(["", "Looking."]),
                }
            )
        steps.append({"text": f"Answer {turn}.", "thinking": "So."})
    talk = Talk(peer, steps)
    made = Recorded(talk)
    turn_id = 0
    for turn, batches in enumerate(shape):
        made.messages.append(UserWords(f"t{turn}", f"Question {turn}?"))
        for _ in range(batches + 1):
            turn_id += 1
            body = talk.encode(made.messages)
            made.sent.append(messages_of(body))
            status, content = talk.ask(body)
            if status != 200:
                raise AssertionError(f"{peer.name}: a healthy request was refused: {content.decode()}")
            message = talk.reply(content, turn_id)
            made.messages.append(message)
            made.messages += [
                ResultGiven(one, dice.choice(["2 effects", "", "no such label"]), False)
                for one in message.calls
            ]
    made.messages.append(UserWords("t9", "And now?"))
    return made


# --- damages ------------------------------------------------------------------------------

Damage = Callable[[list[Message], random.Random], list[Message]]


def _places(messages: Sequence[Message], kind: type[Any]) -> list[int]:
    return [n for n, one in enumerate(messages) if isinstance(one, kind)]


def _cut_front(messages: list[Message], dice: random.Random) -> list[Message]:
    return messages[dice.randrange(len(messages)) :]


def _cut_tail(messages: list[Message], dice: random.Random) -> list[Message]:
    return messages[: dice.randint(1, len(messages))]


def _lose(messages: list[Message], dice: random.Random) -> list[Message]:
    gone = dice.randrange(len(messages))
    return messages[:gone] + messages[gone + 1 :]


def _lose_result(messages: list[Message], dice: random.Random) -> list[Message]:
    places = _places(messages, ResultGiven)
    return messages if not places else _without(messages, dice.choice(places))


def _double_result(messages: list[Message], dice: random.Random) -> list[Message]:
    places = _places(messages, ResultGiven)
    if not places:
        return messages
    place = dice.choice(places)
    return [*messages[:place], messages[place], *messages[place:]]


def _double_reply(messages: list[Message], dice: random.Random) -> list[Message]:
    places = _places(messages, AssistantWords)
    if not places:
        return messages
    place, later = dice.choice(places), dice.choice(places)
    copied = messages[place : max(place + 1, later)]
    return [*messages[: max(place + 1, later)], *copied, *messages[max(place + 1, later) :]]


def _shuffle_results(messages: list[Message], dice: random.Random) -> list[Message]:
    places = _places(messages, ResultGiven)
    if not places:
        return messages
    place, other = dice.choice(places), dice.randrange(len(messages))
    rest = _without(messages, place)
    return [*rest[:other], messages[place], *rest[other:]]


def _words_between(messages: list[Message], dice: random.Random) -> list[Message]:
    place = dice.randint(0, len(messages))
    return [*messages[:place], UserWords("tx", "By the way."), *messages[place:]]


def _without(messages: list[Message], place: int) -> list[Message]:
    return messages[:place] + messages[place + 1 :]


def _assistant(change: Callable[[AssistantWords, random.Random], AssistantWords]) -> Damage:
    def damage(messages: list[Message], dice: random.Random) -> list[Message]:
        places = _places(messages, AssistantWords)
        if not places:
            return messages
        place = dice.choice(places)
        message = messages[place]
        changed = change(message, dice) if isinstance(message, AssistantWords) else message
        return [*messages[:place], changed, *messages[place + 1 :]]

    return damage


def _raw_edit(
    keys: Sequence[str], edit: Callable[[Any], Any]
) -> Callable[[AssistantWords, random.Random], AssistantWords]:
    def change(message: AssistantWords, dice: random.Random) -> AssistantWords:
        del dice
        return dataclasses.replace(message, raw=_edited(message.raw, frozenset(keys), edit))

    return change


def _edited(value: Any, keys: frozenset[str], edit: Callable[[Any], Any]) -> Any:
    if isinstance(value, Mapping):
        changed = {key: edit(one) if key in keys else _edited(one, keys, edit) for key, one in value.items()}
        return {key: one for key, one in changed.items() if one is not _GONE}
    return [_edited(one, keys, edit) for one in value] if isinstance(value, list) else value


_GONE = object()
_SECRETS = ("signature", "encrypted_content", "thought_signature")
_REASONING = ("reasoning_content", "reasoning", "thinking", "reasoning_details")


def _bent(value: Any) -> Any:
    return "A" + value[1:] if isinstance(value, str) and value else value


def _lost_raw(message: AssistantWords, dice: random.Random) -> AssistantWords:
    del dice
    return dataclasses.replace(message, raw={}, wire="")


def _foreign(message: AssistantWords, dice: random.Random) -> AssistantWords:
    return dataclasses.replace(
        message, issuer={**message.issuer, dice.choice(["model", "endpoint"]): "other"}
    )


def _bad_ids(message: AssistantWords, dice: random.Random) -> AssistantWords:
    bad = dice.choice(["", "same", "x" * 90, "id with space", None])
    calls = tuple(dataclasses.replace(one, provider_call_id=bad) for one in message.calls)
    return dataclasses.replace(message, calls=calls)


def _bad_arguments(message: AssistantWords, dice: random.Random) -> AssistantWords:
    text = dice.choice(['{"label": "a', "", "[]", "null", "not json", '{"label": NaN}'])
    calls = tuple(dataclasses.replace(one, arguments=text) for one in message.calls)
    raw = _edited(message.raw, frozenset({"arguments"}), lambda _: text)
    return dataclasses.replace(message, calls=calls, raw=raw)


DAMAGES: Mapping[str, Damage] = {
    "cut_front": _cut_front,
    "cut_tail": _cut_tail,
    "lose_message": _lose,
    "lose_result": _lose_result,
    "double_result": _double_result,
    "double_reply": _double_reply,
    "shuffle_results": _shuffle_results,
    "words_between": _words_between,
    "reasoning_gone": _assistant(_raw_edit(_REASONING, lambda _: _GONE)),
    "reasoning_null": _assistant(_raw_edit(_REASONING, lambda _: None)),
    "secret_gone": _assistant(_raw_edit(_SECRETS, lambda _: _GONE)),
    "secret_bent": _assistant(_raw_edit(_SECRETS, _bent)),
    "item_ids_bent": _assistant(_raw_edit(("id",), lambda _: "x_1")),
    "raw_lost": _assistant(_lost_raw),
    "foreign_issuer": _assistant(_foreign),
    "bad_ids": _assistant(_bad_ids),
    "bad_arguments": _assistant(_bad_arguments),
}


# --- verdict ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one damaged history fared: `accepted`, `repaired`, or what went wrong."""

    how: str
    detail: str = ""

    @property
    def good(self) -> bool:
        return self.how in ("accepted", "repaired")


def judge(talk: Talk, messages: Sequence[Message]) -> Verdict:
    """Project these messages; accepted at once, or after the one repair that its refusal leads to."""
    made = talk.project(messages)
    whole, body, findings = made.request.messages, made.body, list(made.findings)
    refusing = rules.refusing(findings)
    linked = False
    made_up = invented(body, whole)
    if made_up:
        return Verdict("invented", made_up)
    if refusing:
        kind = refusing[0].kind
    else:
        status, content = talk.ask(body)
        if status == 200:
            return Verdict("accepted")
        seen = diagnose(status, content, talk.contract)
        heard = certainty(
            seen.kind, status, [(one.rule, one.kind) for one in findings], reasoned=seen.reasoned
        )
        kind, linked = heard.kind, seen.linked
    ground = ladder.Ground(messages, talk.contract, lambda repairs: talk.project(messages, repairs))
    found = ladder.plan(ground, ladder.Refused(kind, tuple(findings), linked))
    if found is None:
        return Verdict("no_plan", f"{kind}: {[one.rule for one in refusing]}")
    made_up = invented(found.body, whole)
    if made_up:
        return Verdict("invented", made_up)
    status, content = talk.ask(found.body)
    return (
        Verdict("repaired")
        if status == 200
        else Verdict("refused_again", f"{kind}: {content.decode()[:300]}")
    )


PLAIN = ("", None, EMPTY_RESULT, FAILED_WITHOUT_TEXT)
"""What may stand for a result that was blank."""


def calls_in(body: Mapping[str, Any]) -> list[Any]:
    """The wire id of every call a request shows, on any wire."""
    shown = [one.get("call_id") for one in body.get("input", ()) if one.get("type") == "function_call"]
    for message in body.get("messages", ()):
        shown += [call.get("id") for call in message.get("tool_calls") or ()]
        shown += [block.get("id") for block in _blocks(message) if block.get("type") == "tool_use"]
    return shown


def results_in(body: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """Wire id and text of every result a request shows, on any wire."""
    outputs = [one for one in body.get("input", ()) if one.get("type") == "function_call_output"]
    shown = [(one.get("call_id"), one.get("output")) for one in outputs]
    for message in body.get("messages", ()):
        if message.get("role") == "tool":
            shown.append((message.get("tool_call_id"), message.get("content")))
        results = [block for block in _blocks(message) if block.get("type") == "tool_result"]
        shown += [(block.get("tool_use_id"), block.get("content")) for block in results]
    return shown


def _blocks(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def invented(body: Mapping[str, Any], messages: Sequence[Message]) -> str:
    """A result in the request that no stored result says, or nothing: no repair makes up an outcome."""
    stored = {one.text for one in messages if isinstance(one, ResultGiven)}
    made_up = [one for _, one in results_in(body) if one not in stored and one not in PLAIN]
    return str(made_up[0]) if made_up else ""


def healthy_bytes_differ(made: Recorded) -> bool:
    """Whether any request of a healthy history is no longer a prefix of what would be sent now (PR-48)."""
    now = messages_of(made.talk.encode(made.messages))
    return any(json.dumps(now[: len(one)]) != json.dumps(one) for one in made.sent)


def run(count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Play `count` damaged histories over every tier-1 contract in turn."""
    counts: Counter[str] = Counter()
    faults: list[str] = []
    for number in range(count):
        dice = random.Random(seed * 1_000_003 + number)
        peer = TIER_ONE[number % len(TIER_ONE)]
        made = record(peer, dice)
        if healthy_bytes_differ(made):
            faults.append(f"seed {seed} number {number} {peer.name}: healthy bytes changed")
        names = dice.sample(sorted(DAMAGES), dice.randint(1, 3))
        messages: list[Message] = list(made.messages)
        for name in names:
            messages = DAMAGES[name](messages, dice) or messages
        verdict = judge(made.talk, messages)
        counts[verdict.how] += 1
        if not verdict.good:
            faults.append(f"seed {seed} number {number} {peer.name} {names}: {verdict.how} {verdict.detail}")
    return counts, faults


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what became of the damaged histories; 1 when any was not accepted in the end."""
    parser = argparse.ArgumentParser(prog="python -m surefoot.testing.damages")
    parser.add_argument("--count", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    counts, faults = run(given.count, given.seed)
    told = ", ".join(f"{how} {number}" for how, number in sorted(counts.items()))
    sys.stdout.write(f"{given.count} damaged histories over {len(TIER_ONE)} contracts: {told}\n")
    sys.stdout.writelines(f"{fault}\n" for fault in faults[:40])
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
