"""Real death at every step of every change of a file, and what the verifier says then.

A child forks once per step: the fork prepares the call, stores its intents as D6
does, enters the body and is killed by SIGKILL at its n-th step, for n = 1, 2, 3 …
until none fires. Then nothing is torn, the verifier's answer is the world's, and a
repetition that knows the first attempt ends in the wanted state.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.canonical import digest_bytes
from surefoot.core.lifecycle import receipt_from_json
from surefoot.core.model import Grade, Receipt, State
from surefoot.runtime.tools import LiveAttempt, Outcome, Place, Tool
from surefoot.tools.files.disk import Disk
from surefoot.tools.files.toolset import file_tools
from surefoot.verifiers.files import FilesVerifier
from surefoot.verifiers.port import Deadline

OLD = "old content\n" * 500
NEW = "the new content\n" * 700
LATER = Deadline(1 << 60)


def nothing(folder: Path) -> None:
    """An empty project."""


def one_file(folder: Path) -> None:
    (folder / "a.txt").write_text(OLD)


def two_names(folder: Path) -> None:
    one_file(folder)
    os.link(folder / "a.txt", folder / "b.txt")


def two_files(folder: Path) -> None:
    one_file(folder)
    (folder / "b.txt").write_text("covered")


def tree(folder: Path) -> None:
    (folder / "d/e").mkdir(parents=True)
    (folder / "d/e/f").write_text(OLD)


@dataclasses.dataclass(frozen=True)
class Scenario:
    tool: str
    arguments: dict[str, Any]
    setting: Callable[[Path], None]
    no_exchange: bool = False
    may_tear: bool = False
    """Written in place: a half-written file is a conflict, and the old content lies in a blob."""
    may_cross: bool = False
    """Covering a file by exchange: between the exchange and the removal both contents are still there."""


SCENARIOS = {
    "create": Scenario("write", {"path": "a.txt", "content": NEW}, nothing),
    "create below new folders": Scenario("write", {"path": "x/y/a.txt", "content": NEW}, nothing),
    "replace": Scenario("write", {"path": "a.txt", "content": NEW}, one_file),
    "replace without exchange": Scenario(
        "write", {"path": "a.txt", "content": NEW}, one_file, no_exchange=True
    ),
    "append": Scenario("write", {"path": "a.txt", "content": NEW, "mode": "append"}, one_file),
    "edit": Scenario("edit", {"path": "a.txt", "old": "old", "new": "new", "replace_all": True}, one_file),
    "in place": Scenario("write", {"path": "a.txt", "content": NEW}, two_names, may_tear=True),
    "delete": Scenario("delete", {"path": "a.txt"}, one_file),
    "delete tree": Scenario("delete", {"path": "d", "recursive": True}, tree),
    "move": Scenario("move", {"source": "a.txt", "target": "n/b.txt"}, one_file),
    "move over": Scenario(
        "move", {"source": "a.txt", "target": "b.txt", "overwrite": True}, two_files, may_cross=True
    ),
    "make folder": Scenario("make_directory", {"path": "x/y"}, nothing),
}


class Deadly(Disk):
    """Dies before the n-th step; a write counts twice, before it and in its middle."""

    def __init__(self, at: int, no_exchange: bool) -> None:
        self._at, self._step, self._no_exchange = at, 0, no_exchange

    def __getattribute__(self, name: str) -> Any:
        method = super().__getattribute__(name)
        if name.startswith("_"):
            return method

        def step(*given: Any, **named: Any) -> Any:
            self._die_here()
            if name == "write":
                half = given[1][: len(given[1]) // 2]
                self._die_here(lambda: os.pwrite(given[0], half, given[2] if len(given) > 2 else 0))
            if name == "exchange" and self._no_exchange:
                return False
            return method(*given, **named)

        return step

    def _die_here(self, last_act: Callable[[], object] = lambda: None) -> None:
        self._step += 1
        if self._step == self._at:
            last_act()
            os.kill(os.getpid(), signal.SIGKILL)


def tool_of(scenario: Scenario, disk: Disk | None = None) -> Tool:
    return next(tool for tool in file_tools(disk=disk) if tool.name == scenario.tool)


async def attempt_of(
    scenario: Scenario,
    folder: Path,
    *,
    attempt_id: str,
    disk: Disk | None = None,
    earlier: Receipt | None = None,
) -> tuple[Receipt, Outcome]:
    """One attempt as the barrier makes it; its receipt is on disk before the body is entered."""
    tool = tool_of(scenario, disk)
    place = Place(folder)

    async def put_blob(content: bytes) -> str:
        (folder.parent / "blob").write_bytes(content)
        return digest_bytes(content)

    services = {"put_blob": put_blob, "earlier": lambda _: () if earlier is None else (earlier,)}
    receipt = Receipt("ses_1", "trn_1", "cal_1", attempt_id, 0, tool=tool.name)
    assert tool.prepare is not None and tool.sync_body is not None
    prepared = await tool.prepare(scenario.arguments, place, receipt, services)
    assert prepared.refuse is None, prepared.refuse
    intents = tuple(prepared.fields.get("writeIntents", ()))
    receipt = dataclasses.replace(
        receipt, state=State.STARTED, write_intents=intents, started_at=time.time_ns() // 1_000_000
    )
    (folder.parent / f"{attempt_id}.json").write_text(json.dumps(receipt.to_json()))

    async def note(_: Any) -> None:
        return None

    live = LiveAttempt(
        session_id="ses_1",
        turn_id="trn_1",
        call_id="cal_1",
        attempt_id=attempt_id,
        idempotency_key="sf1-x",
        deadline_boot_ms=None,
        place=place,
        prepared=prepared.value,
        note=note,
        late=lambda outcome, source: None,
        progress=lambda text: None,
        services=services,
    )
    outcome = tool.sync_body(live, scenario.arguments)
    assert isinstance(outcome, Outcome)
    return receipt, outcome


def die_at_every_step(name: str, root: Path) -> None:
    """Runs in the child: fork, prepare, die at step n; print n while it fires."""
    scenario = SCENARIOS[name]
    for number in range(1, 100):
        folder = root / str(number) / "project"
        folder.mkdir(parents=True)
        scenario.setting(folder)
        time.sleep(0.03)  # the time stamps grow old enough to prove something (20 ms)
        child = os.fork()
        if child == 0:
            disk = Deadly(number, scenario.no_exchange)
            _, outcome = asyncio.run(attempt_of(scenario, folder, attempt_id="att_first", disk=disk))
            os._exit(0 if outcome.state is State.SUCCEEDED else 1)
        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status):
            print(number, flush=True)
            continue
        print("end", os.WEXITSTATUS(status), flush=True)
        return


def world(folder: Path) -> dict[str, str]:
    """Every file but the temporary ones, with its content; folders end in a slash."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if not any(part.startswith(".surefoot-") for part in path.parts):
            name = str(path.relative_to(folder))
            found[name + ("/" if path.is_dir() else "")] = "" if path.is_dir() else path.read_text()
    return found


def wanted(scenario: Scenario, tmp_path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The world before, and after an undisturbed run."""
    folder = tmp_path / "undisturbed" / "project"
    folder.mkdir(parents=True)
    scenario.setting(folder)
    before = world(folder)
    _, outcome = asyncio.run(attempt_of(scenario, folder, attempt_id="att_whole"))
    assert outcome.state is State.SUCCEEDED, outcome.text
    return before, world(folder)


def truth(
    scenario: Scenario, folder: Path, intent: Any, before: dict[str, str], after: dict[str, str]
) -> str:
    """What a person who looks would say of one path."""
    name = str(Path(intent["resolvedPath"]).relative_to(folder))
    now = world(folder)
    for key in (name, name + "/"):
        if key in now or key in after or key in before:
            if now.get(key) == after.get(key):
                return "satisfied"
            return "unchanged" if now.get(key) == before.get(key) else "conflict"
    return "satisfied"


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_tr_106_death_at_every_step_leaves_no_torn_file_and_the_verifier_tells_the_truth(
    name: str, tmp_path: Path
) -> None:
    scenario = SCENARIOS[name]
    before, after = wanted(scenario, tmp_path)
    root = tmp_path / "killed"
    ran = subprocess.run(
        [sys.executable, __file__, name, str(root)], capture_output=True, text=True, timeout=100, check=True
    )
    *fired, end = ran.stdout.splitlines()
    assert end == "end 0" and len(fired) >= 2, ran.stderr
    said: set[str] = set()
    for number in fired:
        folder = root / number / "project"
        old = receipt_from_json(json.loads((folder.parent / "att_first.json").read_text()))
        said |= judged(scenario, folder, old, before, after)
        _, outcome = asyncio.run(attempt_of(scenario, folder, attempt_id="att_again", earlier=old))
        settled(scenario, folder, outcome, after)
    assert {"satisfied", "unchanged"} <= said
    assert ("conflict" in said) is (scenario.may_tear or scenario.may_cross)


def judged(
    scenario: Scenario, folder: Path, old: Receipt, before: dict[str, str], after: dict[str, str]
) -> set[str]:
    """Hold the verifier's answers against the world."""
    verifier = FilesVerifier()
    said = set()
    for intent, found in zip(old.write_intents, verifier.answers(old), strict=True):
        real = truth(scenario, folder, intent, before, after)
        if found.answer == "unknown":  # a folder has an identity only, so its being there tells nothing
            assert found.why == "identity_only" and real == "unchanged"
        else:
            assert found.answer == real, (intent["resolvedPath"], found)
        assert found.grade is not Grade.PROOF or real == "unchanged"
        said.add(real)
    if scenario.may_cross:
        assert set(world(folder).values()) in ({OLD, "covered"}, {OLD})
    elif not scenario.may_tear:
        torn = [n for n, text in world(folder).items() if text not in (before.get(n), after.get(n))]
        assert torn == []
    elif "conflict" in said:
        blob = (folder.parent / "blob").read_bytes()
        assert blob.decode() == OLD and digest_bytes(blob) == old.write_intents[0]["before"]
    observed = verifier.inspect_effect("k", old, LATER, fenced=True)
    assert observed.state != "present"
    if observed.state == "satisfied":
        assert world(folder) == after
    if observed.state == "absent" and observed.grade is Grade.PROOF:
        assert world(folder) == before
    return said


def settled(scenario: Scenario, folder: Path, outcome: Outcome, after: dict[str, str]) -> None:
    """A repetition ends in the wanted state, or says that what it found is neither before nor after."""
    if outcome.state is State.SUCCEEDED:
        assert world(folder) == after
        return
    assert outcome.effect_trace is not None and outcome.effect_trace.value == "none"
    halves = scenario.may_tear or scenario.may_cross or scenario.tool in ("delete", "move")
    assert halves, outcome.text


if __name__ == "__main__":
    die_at_every_step(sys.argv[1], Path(sys.argv[2]))
