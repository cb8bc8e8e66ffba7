"""The crash child: killed by SIGKILL at a seam of its own, started again, judged by what is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from surefoot.testing.child import ChildSpec
from surefoot.testing.crash import MARK, ChildFailed, end_leftovers, leftovers, run_child
from surefoot.testing.emulator.process import EmulatorProcess
from surefoot.testing.model import ScriptedModel, call
from surefoot.testing.sink import Sink


@dataclass
class Bench:
    spec: ChildSpec
    sink: Sink
    emulator: EmulatorProcess
    folder: Path


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    project = tmp_path / "project"
    project.mkdir()
    with Sink(tmp_path) as sink, EmulatorProcess(tmp_path) as emulator:
        spec = ChildSpec(
            home=str(tmp_path / "home"),
            directory=str(project),
            url=emulator.base_url("compat"),
            report="",
            sink_url=sink.url,
            prompts=("go",),
        )
        yield Bench(spec, sink, emulator, tmp_path)
        end_leftovers(tmp_path)


def test_an_unharmed_child_makes_its_effect_and_reports_every_receipt(bench: Bench) -> None:
    bench.emulator.script(
        ScriptedModel().calls(call("pay", label="a"), call("look", label="a")).echoes().steps
    )
    ended = run_child(bench.spec, bench.folder)
    assert not ended.killed and ended.returncode == 0
    assert [receipt["state"] for receipt in ended.report["receipts"]] == ["succeeded", "succeeded"]
    assert ended.report["turns"][0]["text"] == "did a\nthe sink holds 1 effects"
    assert bench.sink.count() == 1
    assert "append[attempt.started].after" in ended.seams and "tool[pay].after_effect" in ended.seams


def test_case_a08_a_child_killed_after_its_effect_leaves_an_unknown_call_that_is_not_run_again(
    bench: Bench,
) -> None:
    bench.emulator.script(
        ScriptedModel().calls(call("pay", label="a")).repeats().says("ok").steps, by="history"
    )
    first = run_child(
        replace(bench.spec, kill_at=2, only=("tool[pay].before", "tool[pay].after")), bench.folder
    )
    assert first.point == "K4" and bench.sink.count() == 1
    blind = replace(bench.spec, session="newest", verify=False)
    for _ in range(3):
        opened = run_child(replace(blind, prompts=()), bench.folder)
        assert [receipt["state"] for receipt in opened.report["receipts"]] == ["unknown"]
        assert len(opened.report["open"]) == 1
    assert bench.sink.count() == 1
    again = run_child(blind, bench.folder)
    assert bench.sink.count() == 1, again.report["turns"]
    assert again.report["receipts"][1]["state"] == "not_started"
    press = ({"action": "inspect", "attemptId": "open"},)
    looked = run_child(replace(bench.spec, session="newest", prompts=(), actions=press), bench.folder)
    assert looked.report["answers"][0]["status"] == 200, looked.report["answers"]
    assert looked.report["receipts"][0]["inspection"]["state"] == "present" and looked.report["open"] == []


def test_what_a_child_left_running_is_found_by_its_mark_and_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(300)"]
    environ = {**os.environ, MARK: str(tmp_path)}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None and process.stdout.readline() == b"up\n"
        assert end_leftovers(tmp_path) == [process.pid]
        assert process.wait(120) == -signal.SIGKILL
    assert leftovers(tmp_path) == []


def test_a_child_that_fails_for_another_reason_fails_the_test(bench: Bench) -> None:
    with pytest.raises(ChildFailed, match="Traceback"):
        run_child(replace(bench.spec, prompts=(), actions=("no action",)), bench.folder)  # type: ignore[arg-type]
