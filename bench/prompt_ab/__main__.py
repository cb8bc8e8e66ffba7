"""Run the experiment and write its report.

python -m bench.prompt_ab -m ENDPOINT/MODEL [--results FILE] [--report FOLDER]
python -m bench.prompt_ab --emulated         without a model: scripted replies, to try the harness

Started again with the same results file it goes on where it stopped. Nothing is run twice.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from bench.prompt_ab import prompts, scripted
from bench.prompt_ab.design import EFFORTS, PER_CELL, TASKS, Design, Trial
from bench.prompt_ab.plot import plot
from bench.prompt_ab.report import markdown, report
from bench.prompt_ab.results import OtherDesign, Results
from bench.prompt_ab.summary import Cell
from bench.prompt_ab.trial import Stand, run_trial

from surefoot.config import load_settings, read_key
from surefoot.errors import SurefootError
from surefoot.providers import contracts
from surefoot.providers.client import Client
from surefoot.providers.endpoints import Endpoint
from surefoot.providers.projection import WIRES
from surefoot.testing.emulator.server import Emulator

EMULATED = "emulated/kimi-scripted"


@asynccontextmanager
async def emulated(design: Design) -> AsyncIterator[Stand]:
    """A stand on the strict emulator, with the script of every trial laid ready."""
    async with Emulator() as emulator, Client() as client:
        for trial in design.trials():
            emulator.script(scripted.steps(trial, design.seed), session=trial.key, by="history")
        url = emulator.base_url("compat")
        endpoint = Endpoint("emulated", url, "chat", "compat/chat", "kimi-scripted", key=lambda: "sk-test")
        yield Stand(client, endpoint, WIRES["chat"], contracts.resolve("compat/chat"), ())


@asynccontextmanager
async def configured(name: str, options: argparse.Namespace) -> AsyncIterator[Stand]:
    """A stand on an endpoint of this person's settings. Its key leaves the environment before anything starts."""
    settings = load_settings({"model": name}, os.environ, Path.cwd())
    chosen = settings.chosen()
    named = {one.key_env for one in settings.endpoints.values() if one.key_env}
    named |= {variable for variable in os.environ if variable.endswith(("_API_KEY", "_TOKEN"))}
    async with AsyncExitStack() as stack:
        if chosen.endpoint.embedded:
            from surefoot.providers.local import LocalServer

            server = await stack.enter_async_context(LocalServer(chosen.model))
            endpoint = await server.start(lambda text: say(text))
        else:
            key = read_key(chosen.endpoint)
            endpoint = Endpoint(
                chosen.endpoint.name,
                chosen.endpoint.url,
                chosen.endpoint.wire,
                chosen.endpoint.contract,
                chosen.model,
                key=lambda: key,
                reasoning_protocol=chosen.endpoint.reasoning_protocol,
            )
        for variable in named:
            os.environ.pop(variable, None)  # what a command inherits holds no credential (PR-85)
        own = settings.places.settings_folder / "contracts"
        contract = contracts.resolve(endpoint.contract, [own] if own.is_dir() else [])
        client = await stack.enter_async_context(Client())
        yield Stand(
            client,
            endpoint,
            WIRES[endpoint.wire],
            contract.with_reasoning_protocol(endpoint.reasoning_protocol),
            frozenset(named),
            max_steps=options.max_steps,
            seconds=options.trial_seconds,
            max_output_tokens=options.max_output_tokens,
        )


async def run(design: Design, stand: Stand, results: Results, options: argparse.Namespace) -> bool:
    """Run what is left, a few at a time; True when the budget ended it."""
    left = [trial for trial in design.trials() if trial.key not in results.ended]
    queue, stopped, began = iter(left), False, time.perf_counter()

    async def work() -> None:
        nonlocal stopped
        for trial in queue:
            if over_budget(results, options):
                stopped = True
                return
            results.begin(trial)
            record = await run_trial(trial, stand)
            results.end(trial, record)
            say(
                progress(trial, record, len(results.ended), len(design.trials()), time.perf_counter() - began)
            )

    async with asyncio.TaskGroup() as group:
        for _ in range(options.concurrency):
            group.create_task(work())
    return stopped


def over_budget(results: Results, options: argparse.Namespace) -> bool:
    """Whether no further trial may begin; those that run are finished, so that no sample is cut."""
    requests, tokens = results.spent()
    return requests >= (options.max_requests or float("inf")) or tokens >= (
        options.max_tokens or float("inf")
    )


def progress(trial: Trial, record: dict[str, object], ended: int, planned: int, seconds: float) -> str:
    """One line about one trial."""
    word = "ok" if record["success"] else f"failed: {record['failure']}"
    return f"{ended}/{planned} {trial.key} {word} ({record['requests']} requests, {seconds:.0f} s so far)"


def say(text: str) -> None:
    print(f"prompt-ab: {text}", file=sys.stderr, flush=True)


def write_report(folder: Path, design: Design, results: Results, reason: str | None) -> dict[str, object]:
    """Write report.json, report.md and plot.svg."""
    records = [results.ended[trial.key] for trial in design.trials() if trial.key in results.ended]
    made = report(design, records, reason=reason)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(json.dumps(made, indent=1) + "\n")
    (folder / "report.md").write_text(markdown(made))
    title = f"Prompt experiment: {design.model}" + (" (scripted)" if design.scripted else "")
    (folder / "plot.svg").write_text(plot([Cell(**cell) for cell in made["cells"]], title))
    return made


def options_of(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.prompt_ab", description=__doc__.splitlines()[0])
    model = parser.add_mutually_exclusive_group(required=True)
    model.add_argument("-m", "--model", help="ENDPOINT/MODEL of your settings")
    model.add_argument("--emulated", action="store_true", help="scripted replies of the strict emulator")
    parser.add_argument("--results", type=Path, help="results file, gone on with when it exists")
    parser.add_argument("--report", type=Path, help="folder of the report")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--per-cell", type=int, default=PER_CELL)
    parser.add_argument("--efforts", default=",".join(EFFORTS))
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--max-requests", type=int, help="begin no trial once so many requests were made")
    parser.add_argument("--max-tokens", type=int, help="begin no trial once so many tokens were counted")
    parser.add_argument("--max-steps", type=int, default=12)
    parser.add_argument("--trial-seconds", type=float, default=300.0)
    parser.add_argument("--max-output-tokens", type=int)
    parser.add_argument("--reason", help="a maintainer's recorded reason for a larger cost (PR-87)")
    return parser.parse_args(arguments)


def design_of(options: argparse.Namespace) -> Design:
    return Design(
        model=EMULATED if options.emulated else options.model,
        seed=options.seed,
        base_digest=prompts.digest(prompts.prompt("base")),
        candidate_digest=prompts.digest(prompts.prompt("candidate")),
        efforts=tuple(options.efforts.split(",")),
        tasks=tuple(options.tasks.split(",")),
        per_cell=options.per_cell,
        scripted=options.emulated,
    )


async def main(arguments: list[str]) -> int:
    options = options_of(arguments)
    design = design_of(options)
    name = design.model.replace("/", "-")
    where = options.results or Path(tempfile.gettempdir()) / f"prompt-ab-{name}.jsonl"
    folder = options.report or where.with_suffix("")
    try:
        results = Results(where, design)
    except OtherDesign as error:
        say(str(error))
        return 2
    there, planned = len(results.ended), len(design.trials())
    say(f"results in {where}; {there} of {planned} trials are there already")
    if there == planned:
        say("nothing is left to run: a trial is run once. Another file (--results) begins a run of its own")
    try:
        async with emulated(design) if options.emulated else configured(options.model, options) as stand:
            stopped = await run(design, stand, results, options)
    except SurefootError as error:
        say(f"{error.code}: {error.message}")
        return 1
    finally:
        results.close()
    made = write_report(folder, design, results, options.reason)
    say(f"report in {folder}" + ("; the budget ended it before all trials ran" if stopped else ""))
    print(markdown(made))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main(sys.argv[1:])))
    except KeyboardInterrupt:
        say("interrupted; started again it goes on, and the trials that were running stay failures")
        sys.exit(130)
