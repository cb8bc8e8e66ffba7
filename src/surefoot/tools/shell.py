"""The `shell` tool: one command under a supervisor of its own.

Owns: what of the environment a command gets, its time limit, waiting for its end, and
handing in the truth that comes after a cancel or a limit. Does not own: supervision
(`tools.processes`), classes (`tools.classify`), what is recorded (`runtime.barrier`).
Promises: receipt:exact; a command that may run is never told as not run.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from surefoot.core.effects import UNDECLARED, Effect
from surefoot.core.model import EffectClass, Receipt, State
from surefoot.errors import Signal, SurefootError
from surefoot.ledger.cover import COVER_MS
from surefoot.runtime.tools import Arguments, LiveAttempt, Outcome, Place, Prepared, Tool
from surefoot.tools.processes import kernel
from surefoot.tools.processes.background import log_text
from surefoot.tools.processes.client import Command, ProcessServer, Supervised
from surefoot.tools.processes.output import follow_log
from surefoot.tools.processes.preparing import KEY_VARIABLE, Refused, reading, without_ours, write_intents
from surefoot.tools.processes.runs import RunFolder
from surefoot.tools.processes.seen import ProcessState, Seen, look, outcome_of
from surefoot.tools.reaching import real_reads
from surefoot.tools.verifying import git_stood, shell_verifier

DEFAULT_SECONDS = 120
MOST_SECONDS = 600
NOTE_SECONDS = 1.0
"""A command that lives so long has its pid put on the receipt; a short one is known by its claim."""

SHELL_OPTIONS: tuple[str, ...] = ("--noprofile", "--norc")
_SHELLS = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/sh")
_PIPE_DEATHS = (
    """trap 'surefoot_end=$? surefoot_parts=("${PIPESTATUS[@]}"); if ((surefoot_end==0)); then """
    """for surefoot_part in "${surefoot_parts[@]}"; do """
    """if ((surefoot_part>128 && surefoot_part<193 && surefoot_part!=141)); then exit "$surefoot_part"; fi; """
    """done; fi' EXIT; """
)
"""A stage of the last pipe that a signal killed is not hidden by a later stage that ended with 0.
SIGPIPE is left out: it is how a pipe tells its writer that the reader has enough."""

_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "minLength": 1, "description": "The command line, for bash."},
        "description": {"type": "string", "description": "What it does, in five to ten words."},
        "background": {
            "type": "boolean",
            "description": "For servers and watchers: returns once it has lived two seconds and leaves it running.",
        },
        "timeout_seconds": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": MOST_SECONDS,
            "description": f"Stopped after so many seconds; {DEFAULT_SECONDS} if not given.",
        },
    },
    "required": ["command"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Ready:
    """What was found out and laid ready for a body that runs one command."""

    run: RunFolder
    record: Mapping[str, Any]
    effect_class: EffectClass
    clients: tuple[str, ...]
    check: bool
    epoch: int
    argv: tuple[str, ...]
    variables: tuple[tuple[str, str], ...]


def shell_tool(*, at_deadline: str = "stop", push_window_seconds: float | None = None) -> Tool:
    """The `shell` tool. At its time limit a command is stopped, or goes on with `at_deadline="keep"`.

    `push_window_seconds`: how long a remote may still take a push after its connection ended.
    """

    async def body(attempt: LiveAttempt, arguments: Arguments) -> Outcome:
        return await run_ready(attempt, arguments, at_deadline)

    return Tool(
        name="shell",
        description=(
            "Run a command with bash in the working directory. Its input is empty. Output is returned whole "
            "or as head and tail. Use `background` for what does not end by itself."
        ),
        parameters=_PARAMETERS,
        body=body,
        effect=_effect,
        looks_up=_lexical_paths,
        prepare=_prepare,
        aliases=("bash",),
        rule_name="Bash",
        subjects=_subjects,
        reads=_reads,
        time_limit_seconds=MOST_SECONDS,
        starts_processes=True,
        supervised=True,
        choose_verifier=shell_verifier(push_window_seconds=push_window_seconds),
        summary=lambda arguments: str(arguments.get("command", "")),
    )


def _classified(arguments: Arguments, place: Place) -> Any:
    from surefoot.tools.classify.shell import classify_shell  # its grammar is heavy to load

    return classify_shell(str(arguments["command"]), place)


def _lexical_paths(arguments: Arguments, place: Place) -> tuple[str, ...]:
    from surefoot.tools.classify.shell import lexical_paths  # its grammar is heavy to load

    return lexical_paths(str(arguments["command"]), place)


def _effect(arguments: Arguments, place: Place) -> Effect:
    effect: Effect = _classified(arguments, place).effect
    return effect


def _subjects(arguments: Arguments, place: Place) -> tuple[str, ...]:
    return tuple(_classified(arguments, place).simple_commands or ())


def _reads(arguments: Arguments, place: Place) -> tuple[str, ...]:
    return real_reads(_classified(arguments, place).names, place)


async def _prepare(
    arguments: Arguments, place: Place, receipt: Receipt, services: Mapping[str, Any]
) -> Prepared:
    """Make the run folder, which the start receipt will name, and look at what will be written."""
    server: ProcessServer = services["processes"]
    text = str(arguments["command"])
    found = _classified(arguments, place)
    effect: Effect = found.effect
    variables, options = without_ours(os.environ), SHELL_OPTIONS
    if effect.effect_class is EffectClass.READ_ONLY and receipt.effect_class in (None, effect.effect_class):
        readers = await reading(variables, found.repositories, found.projects)
        if readers is None:
            effect = UNDECLARED  # a reader that cannot be kept one is unknown (EC-59)
        else:
            text = found.reading_text or text
            variables, options = dict(readers.variables), readers.shell_options
    try:
        intents = await asyncio.to_thread(
            write_intents, found.write_targets, services.get("ledger_files", frozenset)()
        )
        run = server.make_run(receipt.attempt_id)
    except Refused as refusal:
        return Prepared(refuse=(refusal.code, refusal.text))
    except OSError as error:
        return Prepared(
            refuse=("receipt_not_durable", f"The run folder could not be made: {error.strerror}.")
        )
    effect_class = _strictest(receipt.effect_class, effect.effect_class)
    clients = tuple(sorted(found.clients))
    check = bool(receipt.check or effect.check)
    record = run.record(
        str(arguments["command"]), clients=clients, check=check, background=bool(arguments.get("background"))
    )
    ready = Ready(
        run,
        record,
        effect_class,
        clients,
        check,
        receipt.epoch,
        shell_argv(text, options),
        tuple(variables.items()),
    )
    stood = await asyncio.to_thread(
        git_stood, str(arguments["command"]), place.directory, variables, effect_class
    )
    fields: dict[str, Any] = {"process": {**record, **({"git": stood} if stood else {})}}
    fields |= {"writeIntents": intents} if intents else {}
    return Prepared(fields=fields, effect=effect if effect is UNDECLARED else None, value=ready)


def _strictest(first: EffectClass | None, second: EffectClass) -> EffectClass:
    return second if first is None else max(first, second, key=lambda found: found.strictness)


async def run_ready(attempt: LiveAttempt, arguments: Arguments, at_deadline: str) -> Outcome:
    """Run the command that was laid ready under a supervisor, until it ends or its time is over."""
    ready: Ready = attempt.prepared
    server: ProcessServer = attempt.services["processes"]
    background = bool(arguments.get("background"))
    command = _command(attempt, arguments, ready, at_deadline)
    try:
        job = server.launch(ready.run, command)
    except OSError as error:
        return _never(f"the run folder cannot be used: {error.strerror or error}")
    show = asyncio.create_task(
        follow_log(ready.run.log, attempt.progress, notice_bytes=server.limits.process_log_bytes)
    )
    noted = server.spawn(_note_pid(attempt, job, background), "note pid")
    try:
        if background:
            return await _background(server, job, ready)
        return await _foreground(attempt, server, job, ready, command.deadline_boot_ms)
    except asyncio.CancelledError:
        if attempt.attempt_id in attempt.services.get("left", ()):
            raise  # the agent leaves; the command goes on, listed and adoptable (TR-206)
        if not job.heard and server.take_back(ready.run, ready.epoch):
            job.stop("cancelled")
            return _never("it was cancelled before it began")
        job.stop("cancelled")
        server.spawn(_hand_in(attempt, server, job, ready), f"late end {attempt.attempt_id}")
        raise
    finally:
        show.cancel()
        if job.exited.done():
            noted.cancel()


def _never(reason: str) -> Outcome:
    return outcome_of(Seen(ProcessState.NEVER_RAN, reason), EffectClass.UNKNOWN)


def _command(attempt: LiveAttempt, arguments: Arguments, ready: Ready, at_deadline: str) -> Command:
    background = bool(arguments.get("background"))
    seconds = min(float(arguments.get("timeout_seconds") or DEFAULT_SECONDS), MOST_SECONDS)
    limit = kernel.boot_ms() + int(seconds * 1000)
    if attempt.deadline_boot_ms is not None:
        limit = min(limit, attempt.deadline_boot_ms)
    return Command(
        argv=ready.argv,
        environment={**dict(ready.variables), KEY_VARIABLE: attempt.idempotency_key},
        directory=attempt.place.directory,
        key=attempt.idempotency_key,
        sync=ready.effect_class is not EffectClass.READ_ONLY,
        check=ready.check,
        background=background,
        start_before_boot_ms=_begins_before(attempt.deadline_boot_ms),
        deadline_boot_ms=None if background else limit,
        at_deadline=at_deadline,
    )


def _begins_before(deadline_boot_ms: int | None) -> int | None:
    """Until when a supervisor may still execute: as long as the start covers its owner (TR-175)."""
    return None if deadline_boot_ms is None else min(deadline_boot_ms, kernel.boot_ms() + COVER_MS)


def shell_argv(text: str, options: tuple[str, ...]) -> tuple[str, ...]:
    """The shell and its arguments for one command line."""
    shell = next((path for path in _SHELLS if Path(path).exists()), "/bin/sh")
    if shell.endswith("bash"):
        return (shell, *options, "-c", _PIPE_DEATHS + text if "|" in text else text)
    return (shell, "-c", text)


async def _foreground(
    attempt: LiveAttempt, server: ProcessServer, job: Supervised, ready: Ready, limit_boot_ms: int | None
) -> Outcome:
    over = asyncio.create_task(job.over_limit.wait())
    try:
        while not job.exited.done() and not over.done():
            # Boot time counts suspend and the loop's clock does not, so it is read again each round.
            left = None if limit_boot_ms is None else max(0.0, (limit_boot_ms - kernel.boot_ms()) / 1000)
            if left == 0.0:
                break
            ends: set[asyncio.Future[Any]] = {job.exited, over}
            await asyncio.wait(ends, timeout=left, return_when=asyncio.FIRST_COMPLETED)
    finally:
        over.cancel()
    if job.exited.done():
        return _outcome(server, job, ready)
    server.spawn(_hand_in(attempt, server, job, ready), f"late end {attempt.attempt_id}")
    so_far = ""
    with contextlib.suppress(OSError):
        so_far = log_text(server.processes, ready.run.attempt_id)
    mark = f"[still running at its time limit; its handle is {ready.run.attempt_id}]"
    return Outcome(_ended_line(so_far) + mark, State.UNKNOWN, "time_limit", executor="alive")


def _ended_line(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


async def _background(server: ProcessServer, job: Supervised, ready: Ready) -> Outcome:
    """Succeeded once it is claimed and has lived a while; one that ends sooner is told by its end."""
    started = await asyncio.shield(job.running)
    seconds = server.limits.background_probe_seconds  # an end after it is told by `background.Ends`
    await asyncio.wait({job.exited}, timeout=seconds if started else None)
    if job.exited.done():
        return _outcome(server, job, ready)
    pid = (started or {}).get("pid")
    text = f"Runs in the background as {ready.run.attempt_id} (pid {pid}). Its output goes to {ready.run.log}"
    return Outcome(text, executor="alive")


def _outcome(server: ProcessServer, job: Supervised, ready: Ready) -> Outcome:
    seen = server.seen(job, ready.record)
    if seen.reason == "unclaimed":
        # No supervisor came to be. Our own claim makes sure that none ever will.
        seen = look(ready.record, boot_id=kernel.boot_id(), epoch=ready.epoch, claim=True)
    outcome = outcome_of(seen, ready.effect_class, clients=ready.clients)
    if outcome.reason == "owner_died":
        # We live and our supervisor does not: its word was lost on the way.
        return replace(outcome, reason="connection_lost")
    return outcome


async def _hand_in(attempt: LiveAttempt, server: ProcessServer, job: Supervised, ready: Ready) -> None:
    """Wait for the true end of a call that was closed as unknown, and for quiet after it (TR-43, TR-73)."""
    if await asyncio.shield(job.exited) is not None:
        attempt.late(_outcome(server, job, ready), "supervisor")
    if await asyncio.shield(job.quiet):
        await _noted(attempt, {"quiet": True})


async def _note_pid(attempt: LiveAttempt, job: Supervised, background: bool) -> None:
    started = await asyncio.shield(job.running)
    if not background:
        await asyncio.wait({job.exited}, timeout=NOTE_SECONDS)
    if started is None or job.exited.done():
        return
    keys = {"pid": started["pid"], "startTicks": started["startTicks"], "group": started["group"]}
    await _noted(attempt, {**keys, "pidNamespace": kernel.pid_namespace()})


async def _noted(attempt: LiveAttempt, keys: Mapping[str, Any]) -> None:
    # Best effort: the run folder holds the same, so a ledger that refuses costs nothing.
    with contextlib.suppress(SurefootError, Signal):
        await attempt.note(keys)
