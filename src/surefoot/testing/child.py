"""The runtime as a program for crash tests: `python -m surefoot.testing.child SPEC.json`.

Owns: reading a spec, running its prompts on a real ledger against a real model server,
passing every seam on the way, and writing a report. Does not own: choosing the seam
or judging the outcome (`surefoot.testing.crash` and the test).

Its tools make their effects at a counting sink: `pay` (NON_IDEMPOTENT), `put`
(IDEMPOTENT_WRITE), `send` (UNKNOWN) and `look` (READ_ONLY). The files and shell tools
of surefoot are there as well, each with a seam before its body is entered and after it returned.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import sys
import threading
import urllib.error
import urllib.parse
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.app import App, Parts, open_app
from surefoot.config import Settings, load_settings
from surefoot.core.effects import Effect
from surefoot.core.model import EffectClass, Grade, Kind, Receipt
from surefoot.errors import LedgerError, OutcomeUnknown, SurefootError, ToolError
from surefoot.runtime.controller import Controller, TurnEnd
from surefoot.runtime.live import Changed, Looked, Refused
from surefoot.runtime.people import Answer, PermissionAnswer, PermissionQuestion, Question
from surefoot.runtime.requests import Caller
from surefoot.runtime.scheduler import Scheduler
from surefoot.runtime.tools import Arguments, LiveAttempt, Outcome, Tool
from surefoot.testing.faults import (
    KillingLedger,
    Seams,
    fail_syncs_of_supervisors,
    pretend_name_space,
    seamed,
)
from surefoot.testing.loopback import ask
from surefoot.testing.sink import post
from surefoot.testing.strikes import Faults
from surefoot.verifiers.port import Deadline, Observation

SINK_TOOLS = {
    "pay": EffectClass.NON_IDEMPOTENT,
    "put": EffectClass.IDEMPOTENT_WRITE,
    "send": EffectClass.UNKNOWN,
    "look": EffectClass.READ_ONLY,
}
PARAMETERS = {
    "type": "object",
    "properties": {"label": {"type": "string"}},
    "required": ["label"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """What one run of the child does; every path is absolute."""

    home: str
    """Becomes SUREFOOT_HOME."""
    directory: str
    """The project folder."""
    url: str
    """Base URL of the model server."""
    report: str
    """File the report is written to at the end; a killed child writes none."""
    contract: str = "compat/chat"
    sink_url: str = ""
    session: str | None = None
    """None begins a session, `newest` continues, anything else names one."""
    take_over: bool = False
    """A person's word that a living owner is to lose the session."""
    carry_out: bool = False
    """Run the safe retries, as a resume does."""
    go_on: bool = False
    """Continue the turn without new words."""
    prompts: tuple[str, ...] = ()
    actions: tuple[Mapping[str, Any], ...] = ()
    """Pressed by a person after everything else; `attemptId` `open` stands for the oldest open attempt."""
    verify: bool = True
    """Whether the sink's tools have a verifier that looks into its list."""
    declared: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Classes other than the true ones, by tool: what a careless host would write."""
    flags: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Further settings by their path."""
    kill_at: int | None = None
    trace: str | None = None
    only: tuple[str, ...] = ()
    signal: int = signal.SIGKILL
    """What it sends itself at that seam."""
    strike: Mapping[str, Any] | None = None
    """What happens at that seam instead of death: `{"do": "stop"}`, `{"do": "full", "times": 3}`,
    `{"do": "recover"}` (judge again what a dead owner left, in the middle of a turn),
    `{"do": "crowded"}` (hardly any room is left, nothing fails yet), `{"do": "give_up"}` (whoever waits for
    the turn, the press or the opening waits no longer, as at the time limit of a run),
    `{"do": "clock", "wall_ms": 0, "boot_ms": 0}` (the clocks of this process jump), or
    `{"do": "disk", "operation": "sync", "how": "error", "nth": 1, "lasting": false}`."""
    answers: tuple[str, ...] | None = None
    """None is an unattended run. Else a person is there who gives these answers, then waits for ever."""
    limit_seconds: float | None = None
    """Time limit of the sink's tools; it is counted from the moment a request of theirs has been written."""
    press_first: bool = False
    """Press the actions before anything else."""
    rewrite: str = ""
    """`compact`, `rewind` or `fork` at the end, as a person asks for it."""
    press_at: str = ""
    """Press the actions when this seam of a tool's body is first passed, and not afterwards."""
    hook: str = ""
    """`before` or `after`: a hook of the user pays once for every call of the model, then or then."""
    engine: str = "sqlite"
    """One of `strikes.ENGINES`."""
    name_space: str = ""
    """The process name space it pretends to live in (`containers`)."""
    unsynced: str = ""
    """A file: while it holds the number N, syncs of supervisors fail from the N-th on (`fail_syncs_of_supervisors`)."""
    release: bool = False
    """At the end let the sink's held requests go on, and wait until nothing is open any more."""

    def to_json(self) -> str:
        """The text of a spec file."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def read(cls, path: Path) -> ChildSpec:
        """Read a spec file."""
        value = json.loads(path.read_text(encoding="utf-8"))
        names = ("prompts", "actions", "only", "answers")
        lists = {key: tuple(value[key]) for key in names if value.get(key) is not None}
        return cls(**{**value, **lists})


class SinkVerifier:
    """Looks for an effect in the sink's list, by key."""

    name = "sink"
    far = False

    def __init__(self, url: str, seams: Seams) -> None:
        self._url = url
        self._seams = seams

    def recovery_scope(self, call: Receipt) -> str:
        """The sink's address."""
        return self._url

    def inspect_effect(self, key: str, call: Receipt, deadline: Deadline, *, fenced: bool) -> Observation:
        """Present with proof, or absent; absence is fenced when the executor has ended."""
        self._seams.reach("verifier[sink].look")
        query = urllib.parse.quote(key)
        found = ask(f"{self._url}/effects?key={query}")
        if found:
            return Observation(
                "present",
                Grade.PROOF,
                fenced=fenced,
                summary=f"{len(found)} effect",
                evidence={"n": len(found)},
            )
        return Observation("absent", Grade.PROOF, fenced=fenced, summary="no effect under this key")


class LimitsFromSending(Scheduler):
    """Counts the time limit of a sink's tool from its first written request: a slow machine proves nothing."""

    def __init__(self, limit_seconds: float | None) -> None:
        super().__init__()
        self._limit_seconds = limit_seconds
        self.sent = threading.Event()

    def call_later(self, seconds: float, work: Callable[[], object]) -> asyncio.TimerHandle:
        if seconds != self._limit_seconds:
            return super().call_later(seconds, work)

        def look() -> None:
            if self.sent.is_set():
                super(LimitsFromSending, self).call_later(seconds, work)
            else:
                super(LimitsFromSending, self).call_later(0.01, look)

        return super().call_later(0, look)


def sink_tools(spec: ChildSpec, seams: Seams, limits: LimitsFromSending) -> list[Tool]:
    """The four tools of the sink, each with the seams K3 and K4 around its effect."""
    kinds = {**SINK_TOOLS, **{name: EffectClass(word) for name, word in spec.declared.items()}}
    return [_sink_tool(name, kind, spec, seams, limits) for name, kind in kinds.items()]


def _sink_tool(
    name: str, kind: EffectClass, spec: ChildSpec, seams: Seams, limits: LimitsFromSending
) -> Tool:
    url = spec.sink_url
    looks = spec.verify and kind is not EffectClass.READ_ONLY

    def body(live: LiveAttempt, arguments: Arguments) -> Outcome | str:
        if kind is EffectClass.READ_ONLY:
            return f"the sink holds {ask(f'{url}/count')['count']} effects"
        seams.reach(f"tool[{name}].before_effect")
        try:
            effect = {"label": arguments["label"], "key": live.idempotency_key}
            post(f"{url}/effect", effect, sent=limits.sent.set)
        except urllib.error.HTTPError as error:
            raise ToolError(f"the sink answered {error.code}", effect_trace="none", kind="refused") from None
        except OSError as error:
            raise OutcomeUnknown(f"the line to the sink broke: {type(error).__name__}") from None
        seams.reach(f"tool[{name}].after_effect")
        return f"did {arguments['label']}"

    return Tool(
        name=name,
        description=f"Makes one {kind} effect at the sink.",
        parameters=PARAMETERS,
        sync_body=body,
        effect=Effect(kind, () if kind is EffectClass.READ_ONLY else (f"tool:{name}",)),
        verifier=SinkVerifier(url, seams) if looks else None,
        time_limit_seconds=spec.limit_seconds,
    )


# Assembling: the only part that depends on how `app` is wired. ------------------------------------


def settings_of(spec: ChildSpec) -> Settings:
    """The settings of a child: one endpoint, nothing asked, everything under its own home."""
    flags = {
        "model": "test/scripted",
        "endpoints.test.url": spec.url,
        "endpoints.test.wire": "chat",
        "endpoints.test.contract": spec.contract,
        "permissions.mode": "bypassPermissions",
        **spec.flags,
    }
    environ = {**os.environ, "SUREFOOT_HOME": spec.home}
    return load_settings(flags, environ, Path(spec.directory), trust=True)


async def run(spec: ChildSpec) -> dict[str, Any]:
    """Do what the spec says; the answer is the report."""
    faults = Faults(spec)
    seams = faults.seams
    limits = LimitsFromSending(spec.limit_seconds)
    parts = Parts(
        engine=faults.engine,
        scheduler=limits,
        tools=sink_tools(spec, seams, limits) if spec.sink_url else (),
        ledger=lambda ledger: KillingLedger(ledger, seams),
        each_tool=lambda tool: seamed(tool, seams),
        hooks=[PayingHook(spec, faults)] if spec.hook else (),
    )
    if spec.name_space:
        pretend_name_space(spec.name_space)
    if spec.unsynced:
        fail_syncs_of_supervisors(spec.unsynced)
    report: dict[str, Any] = {"turns": [], "answers": [], "notices": []}
    async with open_app(
        settings_of(spec),
        directory=Path(spec.directory),
        asker=None if spec.answers is None else Person(spec.answers, seams),
        on_notice=lambda notice: report["notices"].append(notice.kind),
        parts=parts,
    ) as app:
        newest = spec.session == "newest"
        ref = None if newest else spec.session
        opening = app.session(ref, continue_newest=newest, take_over=spec.take_over)
        controller = await faults.waits(opening)
        if controller is None:
            return {**report, "error": "given up", "fault": faults.told()}
        faults.controller = controller
        faults.press = lambda: _press(spec, controller, report)
        _take_stock(controller, report, "opened")
        await _play(spec, controller, report, faults)
        if spec.rewrite:
            report["rewritten"] = await _rewrite(spec.rewrite, controller, app, faults)
        report["sessionId"] = controller.session_id
        report["sessions"] = len(await app.sessions())
        found = await controller.session.ledger.verify()
        report["verified"] = [finding.code for finding in found.findings]
        await _read_history(controller, report)
        _take_stock(controller, report, "snapshot")
        report["background"] = list(controller.actions.snapshot()["background"])
    report["seams"] = len(seams.passed)
    report["fault"] = faults.told()
    return report


# --------------------------------------------------------------------------------------------------


class Person:
    """A person who answers what stands in the spec and then thinks for ever. Passes `asked` each time."""

    def __init__(self, answers: tuple[str, ...], seams: Seams) -> None:
        self._answers = list(answers)
        self._seams = seams

    async def question(self, question: Question) -> Answer:
        """The next answer."""
        return Answer("answered", await self._next(), by="test")

    async def permission(self, question: PermissionQuestion) -> PermissionAnswer:
        """The next answer, a verdict."""
        return PermissionAnswer(await self._next(), by="test")

    async def _next(self) -> str:
        self._seams.reach("asked")
        if not self._answers:
            await asyncio.Event().wait()
        return self._answers.pop(0)


class PayingHook:
    """A hook of a user whose own effect is a payment at the sink."""

    def __init__(self, spec: ChildSpec, faults: Faults) -> None:
        self._when = spec.hook
        self._faults = faults

    async def before(self, looked: Looked) -> Refused | Changed | None:
        """Pay before the call."""
        if self._when == "before":
            await self._pay(looked.call.attempt_id)
        return None

    async def after(self, receipt: Receipt) -> None:
        """Pay after the call."""
        if self._when == "after":
            await self._pay(receipt.attempt_id)

    async def _pay(self, attempt_id: str) -> None:
        controller = self._faults.controller
        parent = None if controller is None else controller.session.book.get(attempt_id)
        if controller is None or parent is None or parent.parent_attempt_id is not None:
            return
        label = json.loads(parent.arguments or "{}").get("label", "")
        await controller.barrier.nested(attempt_id, "pay", json.dumps({"label": f"{label}-hook"}))


def _take_stock(controller: Controller, report: dict[str, Any], name: str) -> None:
    book = controller.session.book
    report[name] = dict(controller.actions.snapshot())
    report["receipts"] = [receipt.to_json() for receipt in book]
    report["open"] = [receipt.attempt_id for receipt in book.open()]
    report["plan"] = [
        [planned.receipt.call_id, planned.decided.decision.value, planned.decided.row]
        for planned in controller.actions.standing.plan()
    ]


async def _read_history(controller: Controller, report: dict[str, Any]) -> None:
    """`calls` are the ids of the calls that durable messages of the model asked for, `said` the model's texts.

    `words` are those of a person, `statuses` those of the turns, `questions` what was put to a
    person, each oldest first.
    """
    entries = await controller.session.ledger.read(controller.session_id)
    payloads = [entry.payload for entry in entries if entry.kind == Kind.ASSISTANT]
    report["calls"] = [call["callId"] for payload in payloads for call in payload["calls"]]
    report["said"] = [payload["text"] for payload in payloads]
    report["questions"] = [dict(entry.payload) for entry in entries if entry.kind == Kind.QUESTION]
    words = [entry.payload["text"] for entry in entries if entry.kind == Kind.USER]
    report["words"] = [text for text in words if text]
    report["statuses"] = [entry.payload["status"] for entry in entries if entry.kind == Kind.TURN]


async def _play(spec: ChildSpec, controller: Controller, report: dict[str, Any], faults: Faults) -> None:
    if spec.press_first:
        await faults.waits(_press(spec, controller, report))
    if spec.carry_out:
        carried = await faults.waits(controller.actions.carry_out())
        report["carriedOut"] = [receipt.attempt_id for receipt in carried or ()]
    if spec.go_on:
        report["turns"].append(_told(await faults.waits(controller.go_on())))
    for prompt in spec.prompts:
        report["turns"].append(_told(await faults.waits(controller.submit(prompt))))
    if not spec.press_first and not spec.press_at:
        await faults.waits(_press(spec, controller, report))
    if spec.release:
        report["beforeRelease"] = [receipt.to_json() for receipt in controller.session.book]
        await asyncio.to_thread(post, f"{spec.sink_url}/release", {})
        await _until_nothing_is_open(controller)


async def _rewrite(how: str, controller: Controller, app: App, faults: Faults) -> Any:
    """What a rewrite answered: its payload, its code, the id of a fork, or the error's code."""
    works: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
        "compact": controller.rewriting.compact,
        "rewind": controller.rewriting.rewind,
        "fork": lambda: app.fork(controller.session_id),
    }
    try:
        answer = await faults.waits(works[how]())
    except LedgerError as error:
        return {"error": error.code}
    return dict(answer) if isinstance(answer, Mapping) else answer


async def _until_nothing_is_open(controller: Controller) -> None:
    changed = asyncio.Event()
    controller.session.watch(lambda _: changed.set())
    async with asyncio.timeout(90):
        while controller.session.book.open():
            changed.clear()
            await changed.wait()


async def _press(spec: ChildSpec, controller: Controller, report: dict[str, Any]) -> None:
    for action in spec.actions:
        answer = await controller.actions.act(_pressed(action, controller), Caller(who="test", channel="cli"))
        report["answers"].append({"status": answer.status, "body": dict(answer.body)})
        for attempt_id in list(controller.actions.retrying.running):
            await controller.actions.retrying.settled(attempt_id)


def _told(end: Any) -> dict[str, Any]:
    if end is None:
        return {"status": "given up"}
    if not isinstance(end, TurnEnd):
        return {"parked": end.text}
    error = None if end.error is None else end.error.code
    return {"status": end.status.value, "reason": end.reason, "text": end.text, "error": error}


def _pressed(action: Mapping[str, Any], controller: Controller) -> dict[str, Any]:
    """Fill in what a person reads off the card: session, revision, attempt and inspection."""
    now = controller.actions.snapshot()
    request = {key: now.get(key) for key in ("sessionPath", "runtimeEpoch", "revision")} | dict(action)
    opened = controller.session.book.open()
    if request.get("attemptId") == "open" and opened:
        request["attemptId"] = opened[0].attempt_id
        request.setdefault("inspectionId", (opened[0].inspection or {}).get("id"))
    return request


def main(arguments: list[str]) -> int:
    """Run one spec; 0 when the report was written, 1 when surefoot refused."""
    if len(arguments) != 1:
        print("usage: python -m surefoot.testing.child SPEC.json", file=sys.stderr)
        return 2
    spec = ChildSpec.read(Path(arguments[0]))
    try:
        report = asyncio.run(run(spec))
    except SurefootError as error:
        report = {"error": error.code, "message": error.message, "facts": error.facts}
    except KeyboardInterrupt:
        report = {"error": "interrupted"}
    path = Path(spec.report)
    path.with_suffix(".part").write_text(json.dumps(report, default=str), encoding="utf-8")
    path.with_suffix(".part").replace(path)
    return 1 if "error" in report else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
