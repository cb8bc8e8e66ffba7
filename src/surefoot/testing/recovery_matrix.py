"""The recovery matrix: models × wires × faults against the strict emulator, printed as a table.

    python -m surefoot.testing.recovery_matrix [--row FI-3] [--presses 10000]

Owns: the rows of the validation matrix (PR-95), what each demands, the published figures
beside it. Does not own: faults and rules (`emulator`), the session (`replaying`).

A fault edits only the second request, on its way in; what is stored stays whole. A row fails
when its fault did not fire. A stopped turn is never rewritten into a pass, and automatic and
explicit recovery stand in columns of their own.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from surefoot.core import incident
from surefoot.core.model import Draft, Kind, TurnStatus
from surefoot.core.restated import OPENING
from surefoot.providers.diagnosis import clean_trace, is_opaque
from surefoot.runtime.requests import Answer
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.recovery_table import HEAD, NOT_EXERCISED, Outcome, Tally, shown
from surefoot.testing.replaying import TIER_ONE, Peer, Stand

LOOK = {"thinking": "I look first.", "calls": [{"name": "look", "args": {"label": "a"}}]}
PAY = {"thinking": "I pay.", "calls": [{"name": "pay", "args": {"label": "a"}}]}
AGAIN = {"behaviour": "repeat_call_after_recovery", "text": "Done.", "thinking": "So."}
DONE = {"text": "Done.", "thinking": "So."}
CARRIER: dict[str, list[Any]] = {
    "chat": ["messages", 2, "reasoning_content"],
    "responses": ["input", 1],
    "anthropic": ["messages", 1, "content", 0],
}
RESULT: dict[str, list[Any]] = {
    "chat": ["messages", 3],
    "responses": ["input", -1],
    "anthropic": ["messages", 2],
}
MODELS = ("model-a", "model-b")
DEEPSEEK = tuple(
    replace(peer, model=model)
    for model in MODELS
    for peer in (
        Peer("chat", "deepseek", "deepseek/chat"),
        Peer("anthropic", "deepseek", "deepseek/anthropic", effort="low"),
        Peer("responses", "deepseek", "deepseek/responses"),
    )
)
GATEWAY_ANTHROPIC = (Peer("anthropic", "deepseek", "deepseek/anthropic", effort="low"),) * 2
DECLARED = (Peer("responses", "deepseek", "compat/responses", reasoning_protocol="deepseek"),)
UNDECLARED = (Peer("responses", "deepseek", "compat/responses"),)
GATEWAYS = (
    Peer("chat", "deepseek", "compat/chat", reasoning_protocol="deepseek"),
    *DECLARED,
)
SEARCHING = tuple(
    replace(peer, model=model)
    for model in MODELS
    for peer in (
        Peer("anthropic", "anthropic", "anthropic/anthropic", effort="low"),
        Peer("responses", "openai", "openai/responses"),
    )
)
BAIT = (
    (401, {"message": "tool messages thinking reasoning", "type": "authentication_error"}),
    (402, {"message": "Insufficient Balance for these tool messages"}),
    (400, {"message": "Your credit balance is too low to send tool messages with thinking"}),
    (429, {"message": "Your quota for messages is used up", "code": "insufficient_quota"}),
    (400, {"message": "messages.1.thinking: Extra inputs are not permitted"}),
    (400, {"message": "Content Exists Risk in reasoning messages"}),
    (429, {"message": "Rate limit reached for tool messages"}),
    (400, {"message": "maximum context length is 4096 tokens, your messages had 5000 tokens"}),
)
VECTORS: tuple[tuple[int, bytes, bool], ...] = (
    (400, b"", True), (400, b" \n", True), (400, b"\xef\xbb\xbf", True), (400, b'{"model":"m"}', True),
    (400, b' {"model": null}\n', True), (400, b'{"model":"insufficient_quota"}', True), (400, b"{}", False),
    (400, b"[]", False), (400, b"null", False), (400, b'"m"', False), (400, b'[{"model":"m"}]', False),
    (400, b'{"model":"m","id":"1"}', False), (400, b'{"error":{}}', False), (400, b"Bad Request", False),
    (400, b"<html>", False), (400, b'data: {"model":"m"}', False), (400, b'{"model":"m"', False),
    (400, b'{"model":"m"} x', False), (401, b"", False), (403, b"", False), (404, b"", False), (422, b"", False),
    (429, b"", False), (500, b"", False),
)  # fmt: skip


Run = Callable[[Emulator, Stand], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the matrix."""

    name: str
    title: str
    published: str
    peers: tuple[Peer, ...]
    run: Run


def _fired(emulator: Emulator) -> bool:
    return all(fault.fired for fault in emulator.plan.faults)


def _status(end: Any) -> TurnStatus | None:
    """How a turn ended; None where it did not begin."""
    return getattr(end, "status", None) if not isinstance(end, Answer) else None


def _seen(emulator: Emulator, stand: Stand, good: bool, how: str) -> Outcome:
    return Outcome(good, stand.statuses(), stand.starts(), how)


async def _carrier_gone(emulator: Emulator, stand: Stand) -> Outcome:
    """A named refusal, repaired by itself; the model asks for its call again."""
    emulator.script([LOOK, AGAIN, DONE])
    emulator.fault(match={"nth": 2}, tamper_request=[{"path": CARRIER[stand.peer.wire], "remove": True}])
    end = await stand.crew.controller.submit("How many?")
    recovered = _status(end) is TurnStatus.COMPLETED and stand.statuses()[:3] == [200, 400, 200]
    return _seen(emulator, stand, recovered and _fired(emulator) and stand.starts() == 1, "automatic")


async def _carrier_gone_plain(emulator: Emulator, stand: Stand) -> Outcome:
    emulator.script([LOOK, DONE])
    emulator.fault(match={"nth": 2}, tamper_request=[{"path": CARRIER[stand.peer.wire], "remove": True}])
    end = await stand.crew.controller.submit("How many?")
    good = (
        _status(end) is TurnStatus.COMPLETED and stand.statuses() == [200, 400, 200] and stand.starts() == 1
    )
    return _seen(emulator, stand, good and _fired(emulator), "automatic")


async def _opaque(emulator: Emulator, stand: Stand) -> Outcome:
    """Stops; a person recovers; the first failure stays a failure."""
    emulator.script([LOOK, DONE])
    emulator.fault(match={"nth": 2}, status=400, raw="")
    first = await stand.crew.controller.submit("How many?")
    stopped = _status(first) is TurnStatus.FAILED and stand.statuses() == [200, 400]
    done = await stand.crew.controller.recover_context()
    good = not isinstance(done, Answer) and _status(done) is TurnStatus.COMPLETED
    good = good and stopped and _fired(emulator) and stand.starts() == 1
    return _seen(emulator, stand, good and stand.statuses() == [200, 400, 200], "explicit")


async def _result_gone(emulator: Emulator, stand: Stand) -> Outcome:
    """A pairing refusal where the endpoint makes one; elsewhere the edit proves nothing."""
    emulator.script([LOOK, DONE])
    emulator.fault(match={"nth": 2}, tamper_request=[{"path": RESULT[stand.peer.wire], "remove": True}])
    end = await stand.crew.controller.submit("How many?")
    if 400 not in stand.statuses() and 500 not in stand.statuses():
        return _seen(emulator, stand, True, NOT_EXERCISED)
    good = _status(end) is TurnStatus.COMPLETED and len(stand.statuses()) == 3 and stand.starts() == 1
    return _seen(emulator, stand, good and _fired(emulator), "automatic")


async def _accepted_edit(emulator: Emulator, stand: Stand) -> Outcome:
    emulator.script([LOOK, DONE])
    emulator.fault(match={"nth": 2}, tamper_request=[{"path": CARRIER[stand.peer.wire], "remove": True}])
    await stand.crew.controller.submit("How many?")
    accepted = stand.statuses() == [200, 200] and await stand.records() == []
    return _seen(emulator, stand, accepted and _fired(emulator), NOT_EXERCISED)


async def _undeclared(emulator: Emulator, stand: Stand) -> Outcome:
    """Without the declared contract: it may fail, and then says so and what is left."""
    emulator.script([LOOK, DONE])
    emulator.fault(match={"nth": 2}, tamper_request=[{"path": CARRIER[stand.peer.wire], "remove": True}])
    end = await stand.crew.controller.submit("How many?")
    card = await stand.crew.controller.incidents.card()
    told = card is not None and bool(card["ways"]) and (card["offered"] or bool(card["reason_not_offered"]))
    how = "recovered" if _status(end) is TurnStatus.COMPLETED else "failed, reason and ways shown"
    honest = _status(end) is TurnStatus.COMPLETED or (_status(end) is TurnStatus.FAILED and told)
    return _seen(emulator, stand, honest and _fired(emulator) and stand.starts() == 1, how)


async def _late_reply(emulator: Emulator, stand: Stand) -> Outcome:
    """A reply held back, the turn stopped, the reply released: nothing of it counts."""
    emulator.script([PAY, DONE])
    emulator.fault(match={"nth": 1}, delay_headers=None)
    turn = asyncio.ensure_future(stand.crew.controller.submit("Pay."))
    await emulator.wait_until_held()
    await stand.crew.controller.stop()
    emulator.release()
    end = await turn
    replies = await stand.crew.entries(Kind.ASSISTANT)
    good = _status(end) is TurnStatus.CANCELLED and not replies and stand.starts() == 0
    return _seen(emulator, stand, good and stand.world.count("a") == 0, "no commit, no start")


async def _stalled(emulator: Emulator, stand: Stand) -> Outcome:
    """The recovery request hangs: its account is durable, and nothing more leaves."""
    emulator.script([LOOK, DONE])
    emulator.fault(match={"nth": 2}, status=400, raw="")
    emulator.fault(match={"nth": 3}, delay_headers=None)
    await stand.crew.controller.submit("How many?")
    press = asyncio.ensure_future(stand.crew.controller.recover_context())
    await emulator.wait_until_held()
    consumed = (await stand.records())[-1].payload
    await stand.crew.controller.stop()
    emulator.release()
    await press
    again = await stand.crew.controller.recover_context()
    spent = isinstance(again, Answer) and again.body["code"] == "recovery_spent"
    good = spent and consumed["state"] == "consumed" and consumed["projected"] and len(stand.statuses()) == 3
    return _seen(emulator, stand, bool(good), "explicit")


def _racing(presses: int) -> Run:
    async def run(emulator: Emulator, stand: Stand) -> Outcome:
        emulator.script([LOOK, DONE])
        emulator.fault(match={"nth": 2}, status=400, raw="")
        await stand.crew.controller.submit("How many?")
        answers = await asyncio.gather(*(stand.crew.controller.recover_context() for _ in range(presses)))
        ended = sum(not isinstance(one, Answer) for one in answers)
        good = ended == 1 and stand.statuses() == [200, 400, 200]
        return _seen(emulator, stand, good, f"{presses} presses, {len(stand.statuses()) - 2} request")

    return run


async def _changed(emulator: Emulator, stand: Stand) -> Outcome:
    """Effort, contract, then a new message: zero requests, the right word each time."""
    emulator.script([LOOK, DONE])
    emulator.fault(match={"nth": 2}, status=400, raw="")
    await stand.crew.controller.submit("How many?")
    model: Any = stand.crew.model
    reasons = []
    effort, model._effort = model._effort, "high"
    reasons.append(await _reason(stand))
    model._effort = effort
    expired = (await stand.records())[-1].payload["state"] == "expired"
    good = reasons == ["scope_changed"] and expired and len(stand.statuses()) == 2
    return _seen(emulator, stand, good, ", ".join(map(str, reasons)))


async def _reason(stand: Stand) -> Any:
    answer = await stand.crew.controller.recover_context()
    return answer.body.get("reason") if isinstance(answer, Answer) else "sent"


async def _unknown_record(emulator: Emulator, stand: Stand) -> Outcome:
    """A field this version does not know is kept; a version it does not know is spent."""
    emulator.script([LOOK, DONE])
    emulator.fault(match={"nth": 2}, status=400, raw="")
    await stand.crew.controller.submit("How many?")
    session = stand.crew.session
    text = incident.merged(session.incidents[-1].text, {})[:-1] + ', "weight": 1.50}'
    await session.append(Draft(Kind.INCIDENT, {"state": "pending", "record": text}))
    await stand.crew.controller.recover_context()
    kept = all('"weight": 1.50' in one.text for one in session.incidents[1:])
    newer = '{"version": 9, "id": "inc_x", "state": "pending", "deep": {"a": 1e2}}'
    await session.append(Draft(Kind.INCIDENT, {"state": "pending", "record": newer}))
    answer = await stand.crew.controller.recover_context()
    spent = isinstance(answer, Answer) and answer.body["code"] == "recovery_spent"
    whole = (await stand.records())[-1].payload["record"] == newer
    return _seen(emulator, stand, kept and spent and whole and len(stand.statuses()) == 3, "kept; spent")


async def _bait(emulator: Emulator, stand: Stand) -> Outcome:
    """Refusals of other kinds, full of bait words: no incident."""
    good = True
    for number, (status, error) in enumerate(BAIT):
        emulator.reset()
        async with Stand(emulator, stand.peer, stand.folder / f"bait {number}") as one:
            emulator.script([LOOK, DONE])
            raw = json.dumps({"error": error})
            emulator.fault(match={"nth": 2}, status=status, raw=raw, headers={"x-should-retry": "false"})
            end = await one.crew.controller.submit("How many?")
            stopped = _status(end) is TurnStatus.FAILED and one.statuses() == [200, status]
            quiet = await one.records() == [] and await one.crew.controller.pending_recovery() is None
            good = good and stopped and quiet and _fired(emulator)
    return _seen(emulator, stand, good, f"no incident in {len(BAIT)}")


async def _vectors(emulator: Emulator, stand: Stand) -> Outcome:
    """The opaque predicate on its vectors, and hostile trace ids."""
    exact = all(is_opaque(status, body, complete=True) is wanted for status, body, wanted in VECTORS)
    cut = not is_opaque(400, b"", complete=False)
    hostile = ("x" * 4096, "a\nb", "a\x1b[2J", "", "a b")
    dropped = all(clean_trace(one) is None for one in hostile) and clean_trace("req_1-a.b:c") == "req_1-a.b:c"
    return _seen(emulator, stand, exact and cut and dropped, f"{len(VECTORS)} vectors")


async def _flip(emulator: Emulator, stand: Stand) -> Outcome:
    """Fails once, the same body is accepted: one identical re-request at most, and never a recovery by itself."""
    emulator.script([LOOK, DONE])
    emulator.fault(match={"nth": 2}, flip="once")
    end = await stand.crew.controller.submit("How many?")
    bodies = [entry.body_sha for entry in emulator.requests()]
    asked_again = len(bodies) == 3
    same = not asked_again or bodies[1] == bodies[2]
    settled = (_status(end) is TurnStatus.COMPLETED) is asked_again
    recorded = [one.payload["state"] for one in await stand.records()]
    how = "one identical re-request" if asked_again else "stopped"
    return _seen(emulator, stand, same and settled and "consumed" not in recorded and _fired(emulator), how)


def _disobedient(step: dict[str, Any], starts: int) -> Run:
    async def run(emulator: Emulator, stand: Stand) -> Outcome:
        again = {key: value for key, value in step.items() if key != "id"}
        emulator.script([step, again, again, DONE])
        emulator.fault(match={"nth": 2}, status=400, raw="")
        await stand.crew.controller.submit("Do it once.")
        done = await stand.crew.controller.recover_context()
        good = (
            not isinstance(done, Answer)
            and _status(done) is TurnStatus.COMPLETED
            and stand.starts() == starts
        )
        answered = sum(one.reason == "answered_from_receipt" for one in stand.crew.session.book)
        return _seen(
            emulator, stand, good and _fired(emulator), f"explicit, {answered} answered from receipt"
        )

    return run


FINISHES: Mapping[str, Sequence[str]] = {
    "chat": ("length", "tool_calls", "stop"),
    "anthropic": ("max_tokens", "tool_use", "end_turn"),
    "responses": ("length", "stop"),
}


async def _cut_arguments(emulator: Emulator, stand: Stand) -> Outcome:
    """Arguments cut at every byte, under every finish word: nothing runs."""
    text = json.dumps({"label": "a"})
    finishes = FINISHES[stand.peer.wire]
    for cut, finish in itertools.product(range(1, len(text)), finishes):
        emulator.reset()
        call = {"name": "pay", "raw_args": text[:cut]}
        emulator.script([{"calls": [call], "finish": finish, "thinking": "I pay."}, DONE])
        await stand.crew.controller.submit("Pay.")
    good = stand.world.count("a") == 0 and stand.starts() == 0
    return _seen(emulator, stand, good, f"{len(text) - 1} cuts × {len(finishes)} finish words")


async def _healthy(emulator: Emulator, stand: Stand) -> Outcome:
    """Message digests 0…k are those of the request before; no facts block anywhere."""
    emulator.script([LOOK, LOOK, DONE, DONE])
    await stand.crew.controller.submit("How many?")
    await stand.crew.controller.submit("And now?")
    shas = [entry.message_shas for entry in emulator.requests()]
    same = all(later[: len(earlier)] == earlier for earlier, later in itertools.pairwise(shas))
    quiet = all(OPENING.encode() not in entry.body for entry in emulator.requests())
    return _seen(emulator, stand, same and quiet and await stand.records() == [], "digests equal")


async def _native_search(emulator: Emulator, stand: Stand) -> Outcome:
    """A search, told by its status, whose raw items come back unchanged through a turn with a tool."""
    good, executions, told = True, 0, list[str]()
    for count in (10, 0):
        emulator.reset()
        async with Stand(emulator, replace(stand.peer, hosted=("search",)), stand.folder / str(count)) as one:
            emulator.script([_search(count), LOOK, DONE])
            await one.crew.controller.submit("Search once.")
            end = await one.crew.controller.submit("How many?")
            (entry, *_) = await one.crew.entries(Kind.ASSISTANT)
            forms: list[dict[str, Any]] = list(entry.payload.get("searches") or [{}])
            form, executions = forms[0], one.starts()
            told.append(str(form.get("sources_status")))
            items = entry.payload["raw"].get("content") or entry.payload["raw"].get("output")
            found = [item for item in items if "search" in json.dumps(item.get("type"))]
            bodies = [json.loads(request.body) for request in emulator.requests()]
            kept = all(_holds(body, found) for body in bodies[1:]) and bool(found)
            quiet = not any("sources_status" in request.body.decode() for request in emulator.requests())
            good = good and kept and quiet and len(form.get("sources") or ()) == count
            good = good and _status(end) is TurnStatus.COMPLETED and len(bodies) == 3
            good = good and emulator.hosted == {"search": 1} and executions == 1 and len(forms) == 1
    good = good and told == ["available", "not_provided"]
    return Outcome(good, stand.statuses(), executions, ", ".join(told))


def _search(count: int) -> dict[str, Any]:
    asked = {"server_search": {"query": "q", "sources": count}}
    return {"thinking": "I search.", "text": "It is so.", **asked}


def _holds(body: dict[str, Any], items: Sequence[Any]) -> bool:
    given = list(body.get("input") or ())
    for message in body.get("messages") or ():
        given += message["content"] if isinstance(message.get("content"), list) else []
    return all({key: value for key, value in item.items() if value is not None} in given for item in items)


HOSTED_FAULTS: tuple[dict[str, Any], ...] = (
    {"flip": "once"},
    {"status": 400, "raw": ""},
    {"status": 400, "raw": '{"error":{"message":"No tool output found for function call"}}'},
    {"stage": "reply", "cut_at": 0},
    {"stage": "reply", "cut_at": 6},
    {"stage": "reply", "status": 500},
)


async def _hosted(emulator: Emulator, stand: Stand) -> Outcome:
    """Code execution switched on: one request, at most one effect, the cut ones unknown; off: on no wire."""
    step = {"thinking": "I run.", "hosted_effect": "code", "when_enabled": True, "text": "4"}
    good, states = True, list[str]()
    for number, fault in enumerate(HOSTED_FAULTS):
        for kinds in (("code",), ()):
            emulator.reset()
            place = stand.folder / f"{number} {len(kinds)}"
            async with Stand(emulator, replace(stand.peer, hosted=kinds), place, automatic=False) as one:
                emulator.script([step, DONE], by="history")
                emulator.fault(match={"nth": 1}, count=1, **fault)
                await one.crew.controller.submit("Compute.")
                ran, asked = emulator.hosted.get("code", 0), len(emulator.requests())
                named = any(b"code_" in request.body for request in emulator.requests())
                states += [one_.state.value for one_ in one.crew.session.book]
                good = good and _fired(emulator)
                good = good and ((ran <= 1 and asked == 1 and named) if kinds else (ran == 0 and not named))
    wanted = ["failed"] * 3 + ["unknown"] * 3
    return _seen(emulator, stand, good and states == wanted, f"{len(HOSTED_FAULTS)} faults, one request each")


def rows(presses: int) -> list[Row]:
    """Every row that runs here, in order."""
    one = (TIER_ONE[3],)
    return [
        Row(
            "FI-1",
            "carrier removed, named refusal",
            "6/6 recovered, 4/6 one execution",
            DEEPSEEK,
            _carrier_gone,
        ),
        Row("FI-2", "opaque 400 at a gateway", "2/2", GATEWAY_ANTHROPIC, _opaque),
        Row("FI-2", "opaque 400, every tier-1 contract", "-", TIER_ONE, _opaque),
        Row(
            "FI-3",
            "declared protocol on Responses",
            "3/3, [200, 400, 200]",
            DECLARED * 3,
            _carrier_gone_plain,
        ),
        Row("FI-4", "named refusal at a gateway", "automatic", GATEWAYS, _carrier_gone_plain),
        Row("FI-4", "result removed, every tier-1 contract", "-", TIER_ONE, _result_gone),
        Row("FI-5", "edit accepted by the service", "1 case", (TIER_ONE[0],), _accepted_edit),
        Row("FI-6", "FI-3 without the declared contract", "failed, kept", UNDECLARED, _undeclared),
        Row("FI-7", "native search, then a tool turn", "4/4", SEARCHING, _native_search),
        Row("FI-8", "reply released after cancel", "-", TIER_ONE, _late_reply),
        Row("FI-9", "recovery request stalled", "-", TIER_ONE, _stalled),
        Row("FI-10", "racing presses", "one request", one, _racing(presses)),
        Row("FI-11", "changed target", "-", one, _changed),
        Row("FI-12", "unknown field, unknown version", "-", one, _unknown_record),
        Row("FI-14", "other refusals with bait words", "-", TIER_ONE, _bait),
        Row("FI-15", "opaque vectors, hostile trace ids", "-", one, _vectors),
        Row("FI-16", "fails once, same body accepted", "-", TIER_ONE, _flip),
        Row("FI-17", "disobedient model repeats a write", "-", TIER_ONE, _disobedient(PAY, 1)),
        Row(
            "FI-17",
            "disobedient model repeats a read",
            "read repeated in 2/6",
            TIER_ONE,
            _disobedient(LOOK, 2),
        ),
        Row(
            "FI-18",
            "arguments cut at every byte",
            "-",
            (TIER_ONE[0], TIER_ONE[12], TIER_ONE[16]),
            _cut_arguments,
        ),
        Row("FI-19", "healthy sessions", "-", TIER_ONE, _healthy),
        Row("FI-21", "hosted code execution, on and off", "-", SEARCHING[:2], _hosted),
    ]


ELSEWHERE = (
    "FI-13 and FI-22: tests/unit/runtime/test_incidents.py, tests/unit/core/test_core_incident.py",
    "FI-20 page: not run",
    "Live endpoints: not run. The emulator refuses what is known of them; it proves nothing of services that change.",
)


async def play(row: Row, peer: Peer) -> Outcome:
    """One row for one peer, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            emulator = await stack.enter_async_context(Emulator())
            stand = await stack.enter_async_context(Stand(emulator, peer, Path(folder)))
            return await row.run(emulator, stand)


async def run(chosen: Sequence[Row]) -> tuple[list[str], Tally]:
    """The lines of the table, and how many of its runs passed, failed and proved nothing."""
    lines = [HEAD]
    whole = Tally()
    for row in chosen:
        lines.append(f"{row.name:6} {row.title}  (published: {row.published})")
        part = Tally()
        for peer in row.peers:
            seen = await play(row, peer)
            part.count(seen)
            lines.append(shown(peer.name, peer.model, seen))
        whole.add(part)
        lines.append(f"{'':6} {part}")
    return lines, whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the matrix; 1 when a row failed."""
    parser = argparse.ArgumentParser(prog="python -m surefoot.testing.recovery_matrix")
    parser.add_argument("--row", action="append", help="Only these rows, e.g. FI-3.")
    parser.add_argument("--presses", type=int, default=1_000, help="Presses of FI-10.")
    given = parser.parse_args(arguments)
    chosen = [row for row in rows(given.presses) if not given.row or row.name in given.row]
    lines, tally = asyncio.run(run(chosen))
    sys.stdout.writelines(f"{line}\n" for line in [*lines, *ELSEWHERE, f"All rows: {tally}"])
    return 1 if tally.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
