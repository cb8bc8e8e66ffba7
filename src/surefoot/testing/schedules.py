"""Random schedules of barrier, reconcile, lease and controller against the counting world.

Owns: what happens in one seeded run, and the laws checked after it. Does not own: time
and processes (`simulation`), effects (`world`), the runtime under test.

    python -m surefoot.testing.schedules --seeds 2000
    python -m surefoot.testing.schedules --seed 17      # replay one, with its story

One run: tools of random classes and behaviours; a model that asks at random, repeats
included; up to five owners, one after another or at once, that are killed at any step,
stopped past their lease, replaced by a person, or given a ledger that fails; a person
who presses Stop, decides, and shortens the view at random. At the end an owner with a sound ledger looks at
what is left.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from surefoot.core import recovery, turns
from surefoot.core.effects import judged_effect, overlaps
from surefoot.core.history import AssistantWords, Message, ResultGiven
from surefoot.core.lifecycle import COUNTED, Book
from surefoot.core.model import (
    BarrierLevel,
    EffectClass,
    EffectTrace,
    Entry,
    Kind,
    Overlay,
    Receipt,
    State,
    TurnStatus,
)
from surefoot.errors import SessionHeld, Signal, SurefootError
from surefoot.ledger.memory import MemoryLedger
from surefoot.ledger.port import Ledger
from surefoot.providers.port import Reply
from surefoot.runtime.rewriting import fork
from surefoot.runtime.scheduler import Scheduler
from surefoot.runtime.session import LeaseTimes
from surefoot.runtime.tools import Arguments, LiveAttempt, Outcome, Tool
from surefoot.testing.faults import DyingLedger, FailingLedger
from surefoot.testing.played import PlayedModel
from surefoot.testing.rig import SESSION, Crew, Rig, Setup
from surefoot.testing.simulation import SimProcess, Simulation, simulate
from surefoot.testing.world import Behaviour

LIVES = 4
TURN_SECONDS = 700
"""No turn is longer: the ladder's waits add up to 317 s, and bodies have their limits."""
CLASSES = tuple(EffectClass)
REACHES = (("host:a",), ("host:b",), ("path:/w/a",), ("path:/w",), ("*",))
FAILS = ("", "", "", "", "before", "after", "raises", "value", "unknown", "busy", "busy_once")
ACTIONS = ("inspect", "inspect", "confirm", "deny", "reject", "release")
KINDS = ("double effect", "false word", "lost call", "broken rule")


@dataclass(frozen=True, slots=True)
class Fault:
    """One law that did not hold. `kind` is one of `KINDS`."""

    kind: str
    text: str


@dataclass(slots=True)
class Play:
    """One run: its parts, and what was seen while it went on."""

    rig: Rig
    random: random.Random
    tools: list[Tool] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    running: dict[str, SimProcess] = field(default_factory=dict)
    """Attempts whose body has begun and not ended, by the process that runs it."""
    story: list[str] = field(default_factory=list)
    met: Counter[str] = field(default_factory=Counter)
    """What this run came across, to show that the schedules reach what they should."""

    def fault(self, kind: str, text: str) -> None:
        self.faults.append(Fault(kind, text))

    def tell(self, text: str) -> None:
        self.story.append(f"{self.rig.sim.loop.time():9.3f}  {text}")

    def rows(self) -> list[Any]:
        kept = self.rig.store.sessions.get(SESSION)
        return [] if kept is None else kept.rows


class WatchingModel(PlayedModel):
    """Looks at what it is shown: nothing that is not durable may be told as done (barrier:settle-first)."""

    def __init__(self, play: Play, steps: Sequence[dict[str, Any]]) -> None:
        super().__init__(steps, seconds=play.random.random() * 0.02)
        self._play = play

    async def complete(self, messages: Sequence[Message], on_delta: Callable[[Any], None]) -> Reply:
        """Check the results, then answer."""
        done = {
            row[6].split('"attemptId":"', 1)[-1][:30]
            for row in self._play.rows()
            if row[3] in (Kind.CLOSED, Kind.LATE) and '"state":"succeeded"' in row[6].replace(" ", "")
        }
        asked = [c.call_id for one in messages if isinstance(one, AssistantWords) for c in one.calls]
        if asked != [one.call.call_id for one in messages if isinstance(one, ResultGiven)]:
            self._play.fault("broken rule", "the model is shown a call without its result, or out of order")
        for message in messages:
            if isinstance(message, ResultGiven) and message.text.startswith("did "):
                attempts = [one for one in done if one]
                if not attempts:
                    self._play.fault("false word", f"shown as done before it was durable: {message.text}")
        return await super().complete(messages, on_delta)


# --- the parts of a run ---------------------------------------------------------------------


def make_tools(play: Play, process: SimProcess) -> list[Tool]:
    """The tools of the run as one process declares them; the effects are the world's."""
    return [dataclasses.replace(tool, body=watched(play, tool, process)) for tool in play.tools]


def watched(play: Play, tool: Tool, process: SimProcess) -> Any:
    """The body, with the laws that concern its entry (barrier:intent-first)."""
    inner = tool.body

    async def body(live: LiveAttempt, arguments: Arguments) -> Outcome | str:
        durable = any(row[3] == Kind.STARTED and live.attempt_id in row[6] for row in play.rows())
        if not durable:
            play.fault("broken rule", f"{tool.name} was entered before its start was durable")
        beside = [one for one, where in play.running.items() if where.alive and one in _older(play, live)]
        if beside:
            play.fault("broken rule", f"{tool.name} ran beside its older self {beside[0]}")
        play.running[live.attempt_id] = process
        try:
            if inner is None:
                raise RuntimeError("a tool of the world has an async body")
            return await inner(live, arguments)
        finally:
            play.running.pop(live.attempt_id, None)

    return body


def _older(play: Play, live: LiveAttempt) -> set[str]:
    """Earlier attempts at the same call, from the ledger."""
    found: set[str] = set()
    for row in play.rows():
        if row[3] == Kind.STARTED and live.call_id in row[6] and live.attempt_id not in row[6]:
            found.update(one for one in play.running if one in row[6])
    return found


def random_tools(play: Play) -> list[Tool]:
    chance, world = play.random, play.rig.world
    tools = []
    for number, effect_class in enumerate((*CLASSES, chance.choice(CLASSES))):
        converges = effect_class is EffectClass.IDEMPOTENT_WRITE
        behaviour = Behaviour(
            seconds_before=chance.choice((0.0, 0.01, 0.2, 3.0)),
            seconds_after=chance.choice((0.0, 0.01, 0.2)),
            fails=chance.choice(FAILS),
            honours_keys=converges and chance.random() < 0.5,
        )
        declared: dict[str, Any] = {}
        if chance.random() < 0.3:
            declared["time_limit_seconds"] = chance.choice((0.005, 0.1, 1.0, 40.0))
        if chance.random() < 0.4 and effect_class is not EffectClass.READ_ONLY:
            declared["verifier"] = world.verifier(can_fence=chance.random() < 0.7)
        tools.append(
            world.tool(
                f"t{number}", effect_class, reach=chance.choice(REACHES), behaviour=behaviour, **declared
            )
        )
    return tools


def random_steps(play: Play) -> list[dict[str, Any]]:
    """What the model asks for: batches of up to four calls, some of them the same again."""
    chance = play.random
    steps: list[dict[str, Any]] = []
    for _ in range(chance.randrange(1, 6)):
        if steps and chance.random() < 0.3:
            steps.append({"behaviour": "repeat_call"})
            continue
        calls = [
            {"name": f"t{chance.randrange(5)}", "args": {"label": chance.choice("ab")}}
            for _ in range(chance.randrange(1, 5))
        ]
        steps.append({"calls": calls})
    return steps


def random_ledger(play: Play) -> Callable[[Ledger, SimProcess], Ledger]:
    """A sound ledger, one at which the process dies, or one that fails for a while."""
    chance = play.random
    kind = chance.random()
    if kind < 0.3:
        kill_at = chance.randrange(1, 60)
        return lambda ledger, process: DyingLedger(ledger, kill_at, process.die)
    if kind < 0.6:
        how, at = chance.choice(("refused", "lost", "kept")), chance.randrange(2, 16)
        times, unsure = chance.randrange(1, 4), chance.randrange(0, 5)
        return lambda ledger, process: FailingLedger(ledger, at, how=how, times=times, unsure=unsure)
    return lambda ledger, process: ledger


# --- what goes on ------------------------------------------------------------------------------


async def owned(play: Play, steps: Sequence[dict[str, Any]]) -> Crew | None:
    """A new owner, after waiting for the old one or by a person's word; None when there is none."""
    chance = play.random
    patience = chance.choice((0, 1, 4))
    wrap = random_ledger(play)
    level = chance.choice((BarrierLevel.REACH, BarrierLevel.REACH, BarrierLevel.SESSION))
    for attempt in range(patience + 1):
        take_over = attempt == patience and chance.random() < 0.5
        setup = Setup(
            tools=lambda process: make_tools(play, process), model=WatchingModel(play, steps), level=level
        )
        try:
            crew = await begin(play, setup, wrap, take_over=take_over)
        except SessionHeld:
            play.met["held"] += 1
            await asyncio.sleep(chance.choice((0.05, 5.0, 35.0)))
            continue
        except (SurefootError, Signal) as error:
            play.tell(f"could not open: {error}")
            return None
        if take_over:
            play.met["taken over"] += 1
        return crew
    return None


async def begin(play: Play, setup: Setup, wrap: Any, *, take_over: bool) -> Crew | None:
    """Own the session and judge what was left; no body may be entered and no model asked by that."""
    before = len(play.rig.world.bodies)
    # An owner that lives while this one waits may enter bodies of its own and die before the end.
    others = any(process.alive for process in play.rig.sim.processes)
    crew = await play.rig.try_own(setup, wrap=wrap, take_over=take_over)
    if crew is not None:
        play.tell(f"{crew.name} owns the session")
        if not others and len(play.rig.world.bodies) != before:
            play.fault("broken rule", "opening the session ran a tool")
        if crew.model.asked:
            play.fault("broken rule", "opening the session asked the model")
    return crew


async def life(play: Play, steps: Sequence[dict[str, Any]]) -> None:
    """One owner: some turns, a person beside them, and an end."""
    chance = play.random
    crew = await owned(play, steps)
    if crew is None or crew.process is None:
        return
    fate = chance.random()
    if fate < 0.35:
        play.rig.sim.kill_after_steps(crew.process, chance.randrange(1, 400))
    elif fate < 0.45:
        play.rig.sim.loop.call_later(chance.random() * 3, crew.process.stop)
        play.rig.sim.loop.call_later(chance.choice((5.0, 60.0)), crew.process.go_on)
    person = asyncio.ensure_future(presses(play, crew))
    for _ in range(chance.randrange(1, 4)):
        going = asyncio.ensure_future(crew.turn("go on"))
        done, _ = await asyncio.wait({going}, timeout=TURN_SECONDS)
        if not done:
            play.fault("broken rule", f"a turn of {crew.name} goes on for ever") if _runs(crew) else None
            going.add_done_callback(Scheduler.heard)
            break
        try:
            end = going.result()
        except (SurefootError, Signal) as error:
            play.tell(f"{crew.name}: {type(error).__name__}: {error}")
            break
        if end is None:
            break
        play.met[f"turn {getattr(end, 'status', 'parked')}"] += 1
    await asyncio.wait({person}, timeout=300)
    if not crew.process.alive:
        play.met["killed"] += 1
    elif chance.random() < 0.5:
        play.met["ended by itself"] += 1
        crew.process.kill()


def _runs(crew: Crew) -> bool:
    return crew.process is not None and crew.process.alive and not crew.process.stopped


async def presses(play: Play, crew: Crew) -> None:
    """A person: Stop now and then, and decisions about whatever is open."""
    chance = play.random
    for _ in range(chance.randrange(0, 6)):
        await asyncio.sleep(chance.choice((0.0, 0.01, 0.1, 1.0, 6.0)))
        if crew.process is None or not crew.process.alive:
            return
        try:
            if chance.random() < 0.25:
                play.met["stop"] += 1
                play.tell(f"{crew.name}: Stop")
                await crew.do(crew.controller.stop())
                continue
            if chance.random() < 0.15:
                await rewrites(play, crew)
                continue
            opened = crew.session.book.open()
            if opened:
                action, receipt = chance.choice(ACTIONS), chance.choice(opened)
                answer = await crew.press(action, receipt.attempt_id)
                code = "died" if answer is None else answer.body.get("code", "ok")
                play.met[f"{action} {'ok' if code == 'ok' else 'refused'}"] += 1
                play.tell(f"{crew.name}: {action} {receipt.attempt_id[-4:]}: {code}")
        except (SurefootError, Signal) as error:
            play.tell(f"{crew.name}: press: {error}")


async def rewrites(play: Play, crew: Crew) -> None:
    """A person shortens the view, or goes back in it; while a turn runs both are refused."""
    rewriting, chance = crew.controller.rewriting, play.random
    if chance.random() < 0.6:
        answer = await crew.do(rewriting.compact())
    else:
        turns = [row for row in play.rows() if row[3] == Kind.USER]
        turn = json.loads(chance.choice(turns)[6])["turnId"] if turns else "trn_none"
        answer = await crew.do(rewriting.rewind(turn))
    code = "died" if answer is None else answer.get("code", "ok")
    play.met[f"view {'rewritten' if code == 'ok' else 'kept'}"] += 1
    play.tell(f"{crew.name}: rewrite: {code}")


async def run(sim: Simulation) -> Play:
    """One schedule under the seed of `sim`."""
    play = Play(Rig(sim, deaths_seen=sim.random.random() < 0.8), sim.random)
    play.tools = random_tools(play)
    steps = random_steps(play)
    lives: list[asyncio.Future[None]] = []
    for _ in range(play.random.randrange(1, LIVES + 1)):
        one = asyncio.ensure_future(life(play, steps))
        lives.append(one)
        if play.random.random() < 0.7:
            await one
        else:
            await asyncio.sleep(play.random.choice((0.0, 0.05, 0.5)))
    await asyncio.gather(*lives)
    # Old bodies may still be at work while somebody else owns the session; in the end all are gone.
    await asyncio.sleep(play.random.choice((0.0, 5.0)))
    for process in sim.processes:
        process.kill()
    if SESSION in play.rig.store.sessions:
        await Judging(play).judge()
    return play


# --- the laws -----------------------------------------------------------------------------------


class Judging:
    """An owner with a sound ledger looks at what is left, and at everything that was written."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self.world = play.rig.world

    async def judge(self) -> None:
        """Check every law of this run."""
        crew = await self._last_owner()
        entries = await crew.entries()
        book = crew.session.book
        self._effects(book)
        self._words(book)
        self._calls(book, entries)
        self._fence(entries)
        self._turns(entries)
        self._counts(book, entries)
        report = await crew.session.ledger.verify()
        if report.findings:
            self.play.fault("broken rule", f"the ledger does not verify: {report.findings[0]}")
        await self._fork(crew)
        again = await self._once_more(crew)
        await self._way_out(again)

    async def _last_owner(self) -> Crew:
        before = len(self.world.bodies)
        while True:
            setup = Setup(tools=self.play.tools)
            try:
                crew = await self.play.rig.own(setup)
                break
            except SessionHeld:
                await asyncio.sleep(30)
        if len(self.world.bodies) != before:
            self.play.fault("broken rule", "opening the session ran a tool")
        return crew

    async def _once_more(self, crew: Crew) -> Crew:
        """Reconciling twice is reconciling once (TR-52)."""
        before = await crew.entries()
        if crew.process is not None:
            crew.process.kill()
        again = await self._last_owner()
        kinds = [entry.kind for entry in (await again.entries())[len(before) :]]
        if again.actions.reconciled.judged or set(kinds) - {Kind.SESSION_OWNED}:
            self.play.fault("broken rule", f"a second reconciliation wrote {kinds}")
        return again

    async def _fork(self, crew: Crew) -> None:
        """A fork is fenced as its origin is, and writes nothing there (TR-96)."""
        before, opened = await crew.entries(), crew.session.book.open()
        process = self.play.rig.sim.process("fork")
        ledger, facts = MemoryLedger(self.play.rig.store), {"directory": "/sim"}
        made = await process.run(
            fork(ledger, process.scheduler(), process.owner, SESSION, opening=facts, times=LeaseTimes())
        )
        copies = [] if made is None else made.book.open()
        if recovery.fence_reach(copies) != recovery.fence_reach(opened):
            self.play.fault("broken rule", "a fork is not fenced as its origin is")
        if await crew.entries() != before:
            self.play.fault("broken rule", "a fork wrote into its origin")
        process.kill()

    def _effects(self, book: Book) -> None:
        per_attempt = Counter(effect.attempt_id for effect in self.world.effects)
        per_key = Counter(effect.key for effect in self.world.effects)
        for effect in self.world.effects:
            receipt = book.get(effect.attempt_id)
            if receipt is None:
                self.play.fault("lost call", f"{effect.tool} acted and the ledger does not know it")
                continue
            twice = per_attempt[effect.attempt_id] > 1 or per_key[effect.key] > 1
            if twice and not (receipt.effect_class or EffectClass.UNKNOWN).retry_safe:
                self.play.fault("double effect", f"{effect.tool} happened twice for call {effect.call_id}")

    def _words(self, book: Book) -> None:
        entered = {attempt for _, attempt in self.world.bodies}
        for receipt in book:
            here = sum(effect.attempt_id == receipt.attempt_id for effect in self.world.effects)
            writes = receipt.effect_class is not EffectClass.READ_ONLY
            never = receipt.state is State.NOT_STARTED or receipt.reason == "never_ran"
            if never and (here or receipt.attempt_id in entered):
                self.play.fault("false word", f"{_named(receipt)} was entered")
            if receipt.state is State.FAILED and receipt.effect_trace is EffectTrace.NONE and here:
                self.play.fault("false word", f"{_named(receipt)} left an effect")
            if (
                receipt.state is State.SUCCEEDED
                and writes
                and not self.world.count(key=receipt.idempotency_key)
            ):
                self.play.fault("false word", f"{_named(receipt)} left nothing")
            if receipt.has(Overlay.PROVEN) and not self.world.count(key=receipt.idempotency_key):
                self.play.fault("false word", f"{_named(receipt)} is called proven and nothing happened")

    def _calls(self, book: Book, entries: Sequence[Entry]) -> None:
        for entry in entries:
            for call in entry.payload.get("calls") or () if entry.kind == Kind.ASSISTANT else ():
                receipt = book.get(call["attemptId"])
                if receipt is None:
                    self.play.fault("lost call", f"no receipt for {call['askedName']}")
        for receipt in book.unsettled():
            self.play.fault("lost call", f"{_named(receipt)} is unsettled under an idle owner")
        for receipt in book:
            self.play.met[f"{receipt.state} {receipt.reason or ''}".strip()] += 1
            self.play.met["tried again"] += bool((receipt.ladder or {}).get("try"))

    def _fence(self, entries: Sequence[Entry]) -> None:
        """No write started while an open unknown one overlapped it, its own older attempt excepted."""
        book = Book()
        for entry in entries:
            if entry.kind == Kind.STARTED and entry.payload["class"] != EffectClass.READ_ONLY:
                for held in recovery.fencing(book.open()):
                    own = held.attempt_id == entry.payload.get("supersedes")
                    if not own and overlaps(entry.payload["reach"], judged_effect(held).reach):
                        self.play.fault(
                            "broken rule", f"{entry.payload['tool']} started beside {_named(held)}"
                        )
            book.apply(entry)

    def _turns(self, entries: Sequence[Entry]) -> None:
        status: dict[str, TurnStatus] = {}
        for entry in entries:
            if entry.kind != Kind.TURN:
                continue
            turn, after = entry.payload["turnId"], TurnStatus(entry.payload["status"])
            before = status.get(turn)
            if before is None and after is not TurnStatus.QUEUED:
                self.play.fault("broken rule", f"a turn began as {after}")
            elif before is not None and turns.move(before, after) is not None:
                self.play.fault("broken rule", f"a turn moved from {before} to {after}")
            status[turn] = after
        for turn, last in status.items():
            if last not in turns.ENDED and last is not TurnStatus.INTERRUPTED:
                self.play.fault("broken rule", f"turn {turn[-4:]} is left {last}")

    def _counts(self, book: Book, entries: Sequence[Entry]) -> None:
        fresh = Book()
        for entry in entries:
            fresh.apply(entry)
        by_hand = dict.fromkeys(("unknown", *COUNTED), 0)
        for receipt in fresh:
            by_hand["unknown"] += fresh.is_open(receipt.attempt_id)
            by_hand["blocked"] += receipt.state is State.NOT_STARTED and receipt.reason == "fenced"
            for overlay in receipt.overlays:
                name = "retried" if overlay is Overlay.SUPERSEDED else overlay.value
                by_hand[name] = by_hand.get(name, 0) + 1
        if book.statistics() != by_hand:
            self.play.fault("broken rule", f"statistics {book.statistics()} are not {by_hand}")

    async def _way_out(self, crew: Crew) -> None:
        """From every open call some action leads out, and afterwards nothing is fenced (recovery:way-out)."""
        for row in crew.actions.snapshot()["calls"]:
            if row["open"] and not any(one["enabled"] for one in row["actions"]):
                self.play.fault("broken rule", f"no action is admissible for {row['tool']}")
        reading = await crew.call("t0", label="a")
        if reading.state is State.NOT_STARTED:
            self.play.fault("broken rule", f"a read was refused: {reading.reason}")
        for receipt in crew.session.book.open():
            if crew.session.book.is_open(receipt.attempt_id):
                answer = await crew.press("release", receipt.attempt_id)
                if answer.status != 200 and crew.session.book.is_open(receipt.attempt_id):
                    self.play.fault("broken rule", f"{_named(receipt)} cannot be released: {answer.body}")
        if recovery.fencing(crew.session.book.open()):
            self.play.fault("broken rule", "something still fences after everything was released")


def _named(receipt: Receipt) -> str:
    return (
        f"{receipt.tool or receipt.asked_name} {receipt.attempt_id[-4:]} ({receipt.state}, {receipt.reason})"
    )


# --- the program ----------------------------------------------------------------------------------


def play_seed(seed: int) -> Play:
    """One run. Raises what the runtime itself raised unexpectedly, with the seed noted."""
    return simulate(seed, run, max_steps=400_000)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run many seeds and print what was found; 1 when a law was broken."""
    parser = argparse.ArgumentParser(prog="python -m surefoot.testing.schedules")
    parser.add_argument("--seeds", type=int, default=2000, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the seed to begin with")
    parser.add_argument("--seed", type=int, help="replay this one and tell its story")
    given = parser.parse_args(arguments)
    seeds = [given.seed] if given.seed is not None else range(given.first, given.first + given.seeds)
    began, found, met = time.monotonic(), Counter[str](), Counter[str]()
    for seed in seeds:
        play = play_seed(seed)
        met.update(play.met)
        found.update(fault.kind for fault in play.faults)
        for fault in play.faults:
            sys.stdout.write(f"seed {seed}: {fault.kind}: {fault.text}\n")
        if given.seed is not None:
            sys.stdout.write("\n".join(play.story) + "\n")
    for name, count in sorted(met.items()):
        sys.stdout.write(f"  {name:<42} {count}\n")
    seconds = time.monotonic() - began
    words = ", ".join(f"{found[kind]} {kind}s" for kind in KINDS)
    sys.stdout.write(f"{len(seeds)} seeds in {seconds:.1f} s: {words}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
