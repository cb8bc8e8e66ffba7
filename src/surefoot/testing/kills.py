"""Random kills: `python -m surefoot.testing.kills --kills 2000 [--seed 7]` (`make crash KILLS=2000`).

Owns: the cases (effect classes × kinds of tool), one trial (kill, open again, continue,
judge), the three counts, and the choice of trials from a seed. Does not own: the child
(`child`, `crash`), the sink, the emulator.

A trial is honest when three things hold after every death: no `NON_IDEMPOTENT` or
`UNKNOWN` effect happened more often than it was asked for, no receipt and no word told to
the model says what the world denies, and no call of a durable message is without a receipt
in a legal state.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from surefoot.core.model import EffectClass, State
from surefoot.errors import SessionMissing
from surefoot.testing.child import ChildSpec
from surefoot.testing.crash import Blow, Ended, Started, end_leftovers, leftovers, run_child, start_child
from surefoot.testing.emulator.process import EmulatorProcess
from surefoot.testing.nursery import Nursery
from surefoot.testing.sink import Sink
from surefoot.testing.strikes import ENGINES

OLD, NEW = "old\n", "new\n"
UNSAFE = (EffectClass.NON_IDEMPOTENT, EffectClass.UNKNOWN)
SIGNALS = (
    signal.SIGKILL,
    signal.SIGKILL,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGABRT,
    signal.SIGSEGV,
)
QUIET_SECONDS = 20.0
TELLS = {"text": "Told: ", "behaviour": "echo_results"}
"""A step that says what the model was given for its last calls."""
NEVER_WORDS = ("othing was started", "othing was executed", "never ran", "did nothing")


class Site:
    """One trial's folder: a project and a home of its own; sink, emulator and nursery are shared."""

    def __init__(self, root: Path, equipment: Equipment) -> None:
        self.root = root
        self.equipment = equipment
        self.project = root / "project"
        self.project.mkdir(parents=True)
        self.label = f"{root.parent.name}-{root.name}"
        (self.project / "a.txt").write_text(OLD)
        (self.project / "effect.sh").write_text("echo x >> effects\n")

    def spec(self, **fields: Any) -> ChildSpec:
        """A child of this site."""
        return ChildSpec(
            home=str(self.root / "home"),
            directory=str(self.project),
            url=self.equipment.emulator.base_url("compat"),
            report="",
            engine=self.equipment.engine,
            sink_url=self.equipment.sink.url,
            **fields,
        )

    def run(self, *, blow: Blow | None = None, **fields: Any) -> Ended:
        """Run a child of this site to its end."""
        return run_child(self.spec(**fields), self.root, nursery=self.equipment.nursery, blow=blow)

    @contextlib.contextmanager
    def started(self, **fields: Any) -> Iterator[Started]:
        """Start a child and leave it running; it is killed at the end."""
        with start_child(self.spec(**fields), self.root, self.equipment.nursery) as child:
            yield child

    def again(self, **fields: Any) -> Ended:
        """Open the newest session in a fresh process."""
        return self.run(session="newest", **fields)

    def script(self, *steps: Mapping[str, Any]) -> None:
        """What the model says, by the number of its messages in the history."""
        self.equipment.emulator.script([dict(step) for step in steps], by="history")

    def lines(self, name: str) -> int:
        """Number of lines of a file of the project."""
        path = self.project / name
        return len(path.read_text().splitlines()) if path.exists() else 0

    def quiet(self) -> None:
        """Wait until no command of this site runs any more. Raises `TimeoutError`."""
        until = time.monotonic() + QUIET_SECONDS
        while leftovers(self.root):
            if time.monotonic() > until:
                raise TimeoutError(f"processes {leftovers(self.root)} still run after {QUIET_SECONDS:.0f} s")
            time.sleep(0.005)


@dataclass(frozen=True, slots=True)
class Equipment:
    """What all trials share."""

    sink: Sink
    emulator: EmulatorProcess
    nursery: Nursery
    engine: str = "sqlite"
    """The engine that children of its sites run on (`strikes.ENGINES`)."""

    @classmethod
    @contextlib.contextmanager
    def at(cls, folder: Path, engine: str = "sqlite") -> Iterator[Equipment]:
        """Start everything."""
        with Sink(folder) as sink, EmulatorProcess(folder) as emulator, Nursery() as nursery:
            yield cls(sink, emulator, nursery, engine)


@dataclass(frozen=True, slots=True)
class Case:
    """One class of effect made by one kind of tool."""

    name: str
    effect_class: EffectClass
    tool: str
    arguments: Callable[[Site], dict[str, Any]]
    count: Callable[[Site], int]
    """How often the effect is in the world; for converging writes 0 or 1."""
    supervised: bool = False
    proves: Literal["never", "verifier", "intent"] = "never"
    """What can tell afterwards whether the effect happened: a look by key, or the intent of a file write."""

    def provable(self, plan: Plan) -> bool:
        """Whether the trial leaves a call that can be proven without a person (UX-145)."""
        return self.proves == "intent" or (self.proves == "verifier" and plan.verify)

    def call(self, site: Site) -> dict[str, Any]:
        """The call as a step of the model's script has it."""
        return {"name": self.tool, "args": self.arguments(site)}


def _sink_case(tool: str, effect_class: EffectClass) -> Case:
    def count(site: Site) -> int:
        found = site.equipment.sink.count(site.label)
        return min(found, 1) if effect_class.retry_safe else found

    proves: Literal["never", "verifier"] = "never" if effect_class is EffectClass.READ_ONLY else "verifier"
    return Case(f"sink-{tool}", effect_class, tool, lambda site: {"label": site.label}, count, proves=proves)


def _shell_case(name: str, effect_class: EffectClass, command: str, count: Callable[[Site], int]) -> Case:
    return Case(
        f"shell-{name}", effect_class, "shell", lambda site: {"command": command}, count, supervised=True
    )


def _nothing(site: Site) -> int:
    return 0


def _replaced(site: Site) -> int:
    return int((site.project / "a.txt").read_text() == NEW)


def _appended(site: Site) -> int:
    return site.lines("a.txt") - 1


CASES = (
    _sink_case("look", EffectClass.READ_ONLY),
    _sink_case("put", EffectClass.IDEMPOTENT_WRITE),
    _sink_case("pay", EffectClass.NON_IDEMPOTENT),
    _sink_case("send", EffectClass.UNKNOWN),
    Case("file-read", EffectClass.READ_ONLY, "read", lambda site: {"path": "a.txt"}, _nothing),
    Case(
        "file-write",
        EffectClass.IDEMPOTENT_WRITE,
        "write",
        lambda site: {"path": "a.txt", "content": NEW},
        _replaced,
        proves="intent",
    ),
    Case(
        "file-append",
        EffectClass.NON_IDEMPOTENT,
        "write",
        lambda site: {"path": "a.txt", "content": NEW, "mode": "append"},
        _appended,
        proves="intent",
    ),
    _shell_case("cat", EffectClass.READ_ONLY, "cat a.txt", _nothing),
    _shell_case("replace", EffectClass.IDEMPOTENT_WRITE, "echo new > a.txt", _replaced),
    _shell_case(
        "append", EffectClass.NON_IDEMPOTENT, "echo x >> effects", lambda site: site.lines("effects")
    ),
    _shell_case("script", EffectClass.UNKNOWN, "sh ./effect.sh", lambda site: site.lines("effects")),
)
"""A file tool of class `UNKNOWN` does not exist: every write of one names its path and content."""


@dataclass(slots=True)
class Findings:
    """What a trial found wrong, one sentence each."""

    doubles: list[str] = field(default_factory=list)
    false_words: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def all(self) -> list[str]:
        """Every sentence."""
        return [*self.doubles, *self.false_words, *self.lost]


def judge(case: Case, site: Site, report: Mapping[str, Any], found: Findings) -> None:
    """Hold what the runtime says against the world. Call it when nothing of the site runs any more."""
    receipts = report["receipts"]
    count = case.count(site)
    started = [one for one in receipts if one["startedAt"] is not None]
    calls = {one["callId"] for one in started}
    if case.effect_class in UNSAFE and count > len(calls):
        found.doubles.append(f"{count} effects of {len(calls)} started calls")
    _judge_words(case, receipts, count, found)
    known = {one["callId"] for one in receipts}
    found.lost += [f"call {one} has no receipt" for one in report["calls"] if one not in known]
    open_states = (State.DISPATCHED, State.STARTED)
    found.lost += [f"{one['attemptId']} is {one['state']}" for one in receipts if one["state"] in open_states]
    if count and not started:
        found.lost.append(f"{count} effects and no start receipt")


def _judge_words(case: Case, receipts: Sequence[Mapping[str, Any]], count: int, found: Findings) -> None:
    done = [one for one in receipts if one["state"] == State.SUCCEEDED]
    possible = [one for one in receipts if one["startedAt"] is not None and one["effectTrace"] != "none"]
    if case.effect_class is EffectClass.READ_ONLY:
        return
    least = min(len(done), 1) if case.effect_class.retry_safe else len(done)
    if count < least:
        found.false_words.append(f"{len(done)} calls succeeded and the world holds {count} effects")
    if count > len(possible):
        found.false_words.append(
            f"only {len(possible)} calls may have acted and the world holds {count} effects"
        )


def judge_told(told: str, receipt: Mapping[str, Any], found: Findings) -> None:
    """Hold the words the model was given for a call against its receipt."""
    never = receipt["state"] == State.NOT_STARTED or receipt["reason"] == "never_ran"
    unknown = receipt["state"] == State.UNKNOWN and not receipt["overlays"]
    if unknown and "its end is not known" not in told:
        found.false_words.append(f"an unknown call was told as {told!r}")
    if never and not any(words in told for words in NEVER_WORDS):
        found.false_words.append(f"a call that never ran was told as {told!r}")
    if receipt["state"] == State.SUCCEEDED and receipt["result"] and receipt["result"]["text"] not in told:
        found.false_words.append(f"a stored result was told as {told!r}")


@dataclass(frozen=True, slots=True)
class Plan:
    """How one trial kills: at a seam, or after a time, with which signal; and whether recovery is killed too."""

    kill_at: int | None = None
    after_seconds: float | None = None
    number: int = signal.SIGKILL
    recovery_kill_at: int | None = None
    verify: bool = True
    only: tuple[str, ...] = ()
    """Limits the seams that are counted (`faults.Seams`)."""
    declared: Mapping[str, str] = field(default_factory=dict)
    """Wrong classes, to see that a double effect is noticed (`ChildSpec.declared`)."""


@dataclass(slots=True)
class Trial:
    """What happened: the first death, the reports, and the findings."""

    first: Ended
    opened: Ended | None = None
    continued: Ended | None = None
    kills: int = 0
    findings: Findings = field(default_factory=Findings)
    left_to_a_person: tuple[str, ...] | None = None
    """What a look found of each call that only a person can settle after the resume; None when not judged."""


def run_trial(case: Case, site: Site, plan: Plan) -> Trial:
    """Kill a run, open it again, kill that too if planned, continue it, and judge after each."""
    site.script({"calls": [case.call(site)]}, TELLS)
    blow = None if plan.after_seconds is None else Blow(plan.after_seconds, plan.number)
    first = site.run(
        blow=blow,
        prompts=("go",),
        kill_at=plan.kill_at,
        signal=plan.number,
        verify=plan.verify,
        only=plan.only,
        declared=plan.declared,
    )
    trial = Trial(first, kills=int(first.killed or first.report.get("error") == "interrupted"))
    if trial.kills == 0 and "error" in first.report:
        trial.findings.lost.append(f"an unharmed run ended with {first.report['error']}")
        return trial
    if plan.recovery_kill_at is not None:
        _kill_recovery(site, plan, trial)
    opened = site.again(verify=plan.verify, declared=plan.declared, flags={"recovery.on_unknown": "stop"})
    trial.opened = opened
    if opened.report.get("error") == SessionMissing.code:
        if case.count(site):
            trial.findings.lost.append("an effect, and no session")
        return trial
    if case.supervised:
        site.quiet()
        opened = trial.opened = site.again(verify=plan.verify)
    if "error" in opened.report:
        trial.findings.lost.append(f"opening ended with {opened.report['error']}: {opened.report['message']}")
        return trial
    judge(case, site, opened.report, trial.findings)
    _continue(case, site, plan, trial)
    return trial


def _kill_recovery(site: Site, plan: Plan, trial: Trial) -> None:
    """K10: the plan of a recovery does not depend on how often it was killed."""
    killed = site.again(verify=plan.verify, kill_at=plan.recovery_kill_at)
    trial.kills += int(killed.killed)


def _continue(case: Case, site: Site, plan: Plan, trial: Trial) -> None:
    """Go on without words of a person, with a model that repeats an unknown or proven call whatever it was told."""
    before = trial.opened.report if trial.opened is not None else {}
    unknown = [one["attemptId"] for one in before["receipts"] if one["state"] == State.UNKNOWN]
    repeats = [case.call(site)] if unknown else []
    site.script(
        {"calls": [case.call(site)]},
        {**TELLS, "calls": repeats},
        TELLS,
    )
    continued = site.again(
        verify=plan.verify,
        declared=plan.declared,
        carry_out=True,
        go_on=bool(before["calls"]),
        prompts=() if before["calls"] else ("go",),
        flags={"recovery.on_unknown": "continue"},
    )
    trial.continued = continued
    if case.supervised:
        site.quiet()
    found = trial.findings
    if "error" in continued.report:
        found.lost.append(f"continuing ended with {continued.report['error']}: {continued.report['message']}")
        return
    judge(case, site, continued.report, found)
    turn = continued.report["turns"][-1]
    if turn["status"] != "completed":
        found.lost.append(f"continuing ended the turn as {turn['status']}: {turn['error']} {turn['reason']}")
        return
    first_call = continued.report["calls"][0]
    again = [one for one in continued.report["receipts"] if one["callId"] != first_call and one["startedAt"]]
    if repeats and case.effect_class in UNSAFE and again:
        found.doubles.append("a repetition of an unknown call was started")
    attempts = [one for one in continued.report["receipts"] if one["callId"] == first_call]
    trial.left_to_a_person = tuple(
        (one["inspection"] or {}).get("state") or "not looked at"
        for one in attempts
        if one["attemptId"] in continued.report["open"]
    )
    if len(attempts) == 1 and len(continued.report["said"]) > 1:
        judge_told(continued.report["said"][1], attempts[0], found)


# The program ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class Totals:
    """Counts of all trials so far."""

    kills: int = 0
    trials: int = 0
    doubles: int = 0
    false_words: int = 0
    lost: int = 0
    provable: int = 0
    left_to_a_person: list[str] = field(default_factory=list)

    def take(self, trial: Trial, *, provable: bool) -> None:
        """Add one trial, of a call that can be proven or not."""
        self.trials += 1
        if provable and trial.kills and trial.left_to_a_person is not None:
            self.provable += 1
            self.left_to_a_person += trial.left_to_a_person
        self.kills += trial.kills
        self.doubles += len(trial.findings.doubles)
        self.false_words += len(trial.findings.false_words)
        self.lost += len(trial.findings.lost)

    def line(self, seed: int) -> str:
        """The last line of the program."""
        return (
            f"kills {self.kills} · double effects {self.doubles} · false words {self.false_words} · "
            f"lost calls {self.lost} · seed {seed}"
        )

    def proof_line(self) -> str:
        """How many kills during calls that can be proven still need a person after the resume (UX-145)."""
        left = len(self.left_to_a_person)
        share = left / self.provable if self.provable else 0.0
        return (
            f"kills during calls with a verifier by key or a write intent {self.provable} · "
            f"left to a person {left} ({share:.1%}), {self.left_to_a_person.count('absent_fenced')} of them "
            "proven not to have happened"
        )

    @property
    def honest(self) -> bool:
        """Whether nothing was found."""
        return not (self.doubles or self.false_words or self.lost)


def choose(chance: random.Random, seams: int, seconds: float) -> Plan:
    """A random plan: three of four at a seam, the others by the clock; one of four kills recovery too."""
    at_seam = chance.random() < 0.75
    return Plan(
        kill_at=chance.randint(1, seams) if at_seam else None,
        after_seconds=None if at_seam else chance.uniform(0, seconds),
        number=chance.choice(SIGNALS),
        recovery_kill_at=chance.randint(1, 24) if chance.random() < 0.25 else None,
        verify=chance.random() < 0.5,
    )


def attempt(folder: Path, case: Case, equipment: Equipment, plan: Plan, *, keep: bool = False) -> Trial:
    """One trial in a folder of its own, which is removed when nothing was found."""
    site = Site(folder, equipment)
    try:
        trial = run_trial(case, site, plan)
    finally:
        end_leftovers(site.root)
    if not keep and not trial.findings.all():
        shutil.rmtree(site.root)
    return trial


def measure(folder: Path, equipment: Equipment) -> dict[str, tuple[int, float]]:
    """For each case, how many seams an unharmed run passes and how long it takes."""
    found = {}
    for case in CASES:
        site = Site(folder / case.name, equipment)
        site.script({"calls": [case.call(site)]}, TELLS)
        began = time.monotonic()
        ended = site.run(prompts=("go",))
        found[case.name] = (len(ended.seams), time.monotonic() - began)
        end_leftovers(site.root)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Kill until the wanted number is reached; 0 when every trial was honest."""
    parser = argparse.ArgumentParser(prog="python -m surefoot.testing.kills")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--engine", choices=sorted(ENGINES), default="sqlite")
    options = parser.parse_args(arguments)
    seed = random.SystemRandom().randint(1, 10**9) if options.seed is None else options.seed
    chance = random.Random(seed)
    totals = Totals()
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="surefoot-kills-"))
        equipment = stack.enter_context(Equipment.at(folder, options.engine))
        usual = measure(folder / "usual", equipment)
        while totals.kills < options.kills:
            case = chance.choice(CASES)
            seams, seconds = usual[case.name]
            plan = choose(chance, seams, seconds)
            trial = attempt(folder / str(totals.trials), case, equipment, plan)
            totals.take(trial, provable=case.provable(plan))
            for sentence in trial.findings.all():
                place = folder / str(totals.trials - 1)
                print(
                    f"{case.name} {plan} died at {trial.first.fatal}: {sentence} (kept: {place})", flush=True
                )
            if totals.trials % 50 == 0:
                print(f"… {totals.kills} of {options.kills} kills", flush=True)
    if totals.honest:
        shutil.rmtree(folder)
    print(totals.proof_line())
    print(totals.line(seed))
    return 0 if totals.honest else 1


if __name__ == "__main__":
    sys.exit(main())
