"""The runtime as a program for crash tests: `python -m surefoot.testing.child SPEC.json`.

Owns: reading a spec, running its prompts on a real ledger against a real model server,
passing every seam on the way, and writing a report. Does not own: choosing the seam
or judging the outcome (`surefoot.testing.crash` and the test).

Its tools make their effects at a counting sink: `pay` (NON_IDEMPOTENT), `put`
(IDEMPOTENT_WRITE), `send` (UNKNOWN) and `look` (READ_ONLY). The files and shell tools
of surefoot are there as well.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.app import Parts, open_app
from surefoot.config import Settings, load_settings
from surefoot.core.effects import Effect
from surefoot.core.model import EffectClass, Grade, Receipt
from surefoot.errors import OutcomeUnknown, SurefootError, ToolError
from surefoot.runtime.actions import Caller
from surefoot.runtime.controller import Controller, TurnEnd
from surefoot.runtime.tools import Arguments, LiveAttempt, Outcome, Tool
from surefoot.testing.faults import KillingLedger, Seams, seamed
from surefoot.testing.sink import post
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
    carry_out: bool = False
    """Run the safe retries, as a resume does."""
    go_on: bool = False
    """Continue the turn without new words."""
    prompts: tuple[str, ...] = ()
    actions: tuple[Mapping[str, Any], ...] = ()
    """Pressed by a person after everything else; `attemptId` `open` stands for the oldest open attempt."""
    verify: bool = True
    """Whether the sink's tools have a verifier that looks into its list."""
    flags: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Further settings by their path."""
    kill_at: int | None = None
    trace: str | None = None
    only: tuple[str, ...] = ()

    def to_json(self) -> str:
        """The text of a spec file."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def read(cls, path: Path) -> ChildSpec:
        """Read a spec file."""
        value = json.loads(path.read_text(encoding="utf-8"))
        lists = {key: tuple(value[key]) for key in ("prompts", "actions", "only") if key in value}
        return cls(**{**value, **lists})


class SinkVerifier:
    """Looks for an effect in the sink's list, by key."""

    name = "sink"
    far = False

    def __init__(self, url: str) -> None:
        self._url = url

    def recovery_scope(self, call: Receipt) -> str:
        """The sink's address."""
        return self._url

    def inspect_effect(self, key: str, call: Receipt, deadline: Deadline, *, fenced: bool) -> Observation:
        """Present with proof, or absent; absence is fenced when the executor has ended."""
        query = urllib.parse.quote(key)
        with urllib.request.urlopen(f"{self._url}/effects?key={query}", timeout=5) as reply:
            found = json.load(reply)
        if found:
            return Observation(
                "present",
                Grade.PROOF,
                fenced=fenced,
                summary=f"{len(found)} effect",
                evidence={"n": len(found)},
            )
        return Observation("absent", Grade.PROOF, fenced=fenced, summary="no effect under this key")


def sink_tools(url: str, seams: Seams, *, verify: bool = True) -> list[Tool]:
    """The four tools of the sink, each with its seams K2 to K5."""
    return [
        seamed(_sink_tool(name, kind, url, seams, verify and kind is not EffectClass.READ_ONLY), seams)
        for name, kind in SINK_TOOLS.items()
    ]


def _sink_tool(name: str, kind: EffectClass, url: str, seams: Seams, verify: bool) -> Tool:
    def body(live: LiveAttempt, arguments: Arguments) -> Outcome | str:
        if kind is EffectClass.READ_ONLY:
            with urllib.request.urlopen(f"{url}/count", timeout=10) as reply:
                return f"the sink holds {json.load(reply)['count']} effects"
        seams.reach(f"tool[{name}].before_effect")
        try:
            post(f"{url}/effect", {"label": arguments["label"], "key": live.idempotency_key})
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
        verifier=SinkVerifier(url) if verify else None,
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
    seams = Seams(spec.kill_at, trace=Path(spec.trace) if spec.trace else None, only=spec.only)
    parts = Parts(
        tools=sink_tools(spec.sink_url, seams, verify=spec.verify) if spec.sink_url else (),
        ledger=lambda ledger: KillingLedger(ledger, seams),
    )
    report: dict[str, Any] = {"turns": [], "answers": []}
    async with open_app(settings_of(spec), directory=Path(spec.directory), parts=parts) as app:
        newest = spec.session == "newest"
        controller = await app.session(None if newest else spec.session, continue_newest=newest)
        report["opened"] = dict(controller.actions.snapshot())
        await _play(spec, controller, report)
        report["sessionId"] = controller.session_id
        report["receipts"] = [receipt.to_json() for receipt in controller.session.book]
        report["open"] = [receipt.attempt_id for receipt in controller.session.book.open()]
        report["snapshot"] = dict(controller.actions.snapshot())
    report["seams"] = len(seams.passed)
    return report


# --------------------------------------------------------------------------------------------------


async def _play(spec: ChildSpec, controller: Controller, report: dict[str, Any]) -> None:
    if spec.carry_out:
        report["carriedOut"] = [receipt.attempt_id for receipt in await controller.actions.carry_out()]
    if spec.go_on:
        report["turns"].append(_told(await controller.go_on()))
    for prompt in spec.prompts:
        report["turns"].append(_told(await controller.submit(prompt)))
    for action in spec.actions:
        answer = await controller.actions.act(_pressed(action, controller), Caller(who="test", channel="cli"))
        report["answers"].append({"status": answer.status, "body": dict(answer.body)})


def _told(end: Any) -> dict[str, Any]:
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
    path = Path(spec.report)
    path.with_suffix(".part").write_text(json.dumps(report, default=str), encoding="utf-8")
    path.with_suffix(".part").replace(path)
    return 1 if "error" in report else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
