"""One trial: its own directory, marker, ledger and session; one turn; its record (PR-85, PR-86).

Owns: running a task with a prompt, and counting what happened from receipts. Does not own: which trials
there are (`design`), keeping the records (`results`).
"""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.prompt_ab.design import Trial
from bench.prompt_ab.prompts import prompt
from bench.prompt_ab.tasks import ALLOWED, FILE_TOOLS, OFFERED, TASKS, Ran, lay_out

from surefoot.app import App, Parts, open_app
from surefoot.briefing import SYSTEM
from surefoot.config import load_settings
from surefoot.core.model import Receipt, State
from surefoot.errors import SurefootError
from surefoot.providers.client import Client
from surefoot.providers.contracts import Contract
from surefoot.providers.endpoints import Endpoint
from surefoot.providers.port import Reply, ToolSpec, Wire
from surefoot.runtime.controller import Parked, TurnEnd
from surefoot.runtime.models import EndpointModel

NEVER_RAN = ("arguments_invalid", "tool_missing", "arguments_unparseable", "arguments_truncated")


@dataclass(frozen=True, slots=True)
class Stand:
    """What all trials of a run share."""

    client: Client
    endpoint: Endpoint
    wire: Callable[[], Wire]
    contract: Contract
    credentials: Collection[str]
    """Names of variables with a credential; none of them is in this process's environment any more."""
    max_steps: int = 12
    seconds: float = 300.0
    max_output_tokens: int | None = None

    def endpoint_for(self, trial: Trial) -> Endpoint:
        """The endpoint; its requests carry the trial's name where a scripted server reads it."""
        named = {**self.endpoint.headers, "x-test-session": trial.key}
        return dataclasses.replace(self.endpoint, headers=named) if self.is_scripted else self.endpoint

    @property
    def is_scripted(self) -> bool:
        """Whether the server is the emulator of this run."""
        return self.endpoint.name == "emulated"


class CountedModel(EndpointModel):
    """Counts requests and tokens; tokens a server did not tell make the sum unknown."""

    requests = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0

    async def send(self, frozen: Any, on_delta: Callable[[Any], None]) -> Reply:
        self.requests += 1
        try:
            reply = await super().send(frozen, on_delta)
        except BaseException:
            self.input_tokens = self.output_tokens = None  # nobody told what this request cost
            raise
        self.input_tokens = _sum(self.input_tokens, reply.usage.input_tokens)
        self.output_tokens = _sum(self.output_tokens, reply.usage.output_tokens)
        return reply


def _sum(so_far: int | None, more: int | None) -> int | None:
    return None if so_far is None or more is None else so_far + more


async def run_trial(trial: Trial, stand: Stand) -> dict[str, Any]:
    """Run one trial to its end and give its record. A failure is a record like any other."""
    marker = secrets.token_hex(8)
    with tempfile.TemporaryDirectory(prefix="prompt-ab-", ignore_cleanup_errors=True) as name:
        project = Path(name) / "project"
        lay_out(project, marker)
        began = time.perf_counter()
        model, receipts, finish = await _turn(trial, stand, project)
        wall = time.perf_counter() - began
        why = TASKS[trial.task].judge(Ran(project, marker, receipts, stand.credentials))
    return {
        **dataclasses.asdict(trial),
        **count(receipts),
        "requests": model.requests if model else 0,
        "inputTokens": model and model.input_tokens,
        "outputTokens": model and model.output_tokens,
        "wallSeconds": round(wall, 3),
        "finish": finish,
        "success": why is None,
        "failure": why,
    }


async def _turn(trial: Trial, stand: Stand, project: Path) -> tuple[CountedModel | None, list[Receipt], str]:
    home = project.parent / "home"
    home.mkdir()
    flags = {"permissions.mode": "dontAsk", "permissions.allow": list(ALLOWED)}
    environ = {"HOME": str(home), "SUREFOOT_HOME": str(home)}
    settings = dataclasses.replace(load_settings(flags, environ, project), offered_tools=OFFERED)
    model: CountedModel | None = None
    async with open_app(settings, directory=project, parts=Parts()) as app:
        model = app.model = _model(trial, stand, app)
        controller = await app.session()
        controller.max_steps = stand.max_steps
        try:
            async with asyncio.timeout(stand.seconds):
                finish = _finish(await controller.submit(TASKS[trial.task].words))
        except TimeoutError:
            finish = "out_of_time"
        except SurefootError as error:
            finish = error.code
        return model, list(controller.session.book), finish


def _model(trial: Trial, stand: Stand, app: App) -> CountedModel:
    return CountedModel(
        stand.client,
        stand.endpoint_for(trial),
        stand.wire(),
        stand.contract,
        system=app.briefing().text.replace(SYSTEM, prompt(trial.arm), 1),
        tools=[ToolSpec(tool.name, tool.description, tool.parameters) for tool in app.registry()],
        max_output_tokens=stand.max_output_tokens,
        effort=trial.effort,
    )


def _finish(end: TurnEnd | Parked) -> str:
    if isinstance(end, Parked):
        return "parked"
    code = end.error.code if end.error is not None else end.reason
    return f"{end.status.value}" + (f": {code}" if code else "")


def count(receipts: Sequence[Receipt]) -> Mapping[str, Any]:
    """What the receipts say: proposals, executions, repeats of one file operation, a first call that was wrong."""
    started = [one for one in receipts if one.started_at is not None]
    operations = Counter((one.tool, one.arguments) for one in started if one.tool in FILE_TOOLS)
    first = receipts[0] if receipts else None
    wrong = first is not None and first.reason in NEVER_RAN
    corrected = wrong and any(first is not one and one.state is State.SUCCEEDED for one in started)
    return {
        "proposals": len(receipts),
        "executionsStarted": len(started),
        "executionsSucceeded": sum(one.state is State.SUCCEEDED for one in started),
        "repeated": sum(times - 1 for times in operations.values()),
        "firstInvalid": wrong,
        "corrected": corrected if wrong else None,
    }
