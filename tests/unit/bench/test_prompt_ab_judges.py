"""Who succeeded: judged by the world and receipts alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench.prompt_ab.tasks import CHECKED, NOTE, SETTINGS, TASKS, Ran, lay_out
from bench.prompt_ab.trial import count

from surefoot.core.model import Receipt, State

MARKER = "5e1f"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    lay_out(tmp_path / "p", MARKER)
    return tmp_path / "p"


def receipt(tool: str, number: int = 1, **other: Any) -> Receipt:
    given = {"state": State.SUCCEEDED, "started_at": 1, "result": {"text": "", "isError": False}, **other}
    return Receipt("ses", "trn", f"cal_{number}", f"att_{number}", 0, tool=tool, **given)


def judged(task: str, project: Path, *receipts: Receipt, credentials: tuple[str, ...] = ("K",)) -> str | None:
    return TASKS[task].judge(Ran(project, MARKER, receipts, credentials))


def test_pr_85_a_marker_counts_only_when_a_real_read_gave_it_back(project: Path) -> None:
    text = (project / NOTE).read_text()
    assert judged("read", project, receipt("read", result={"text": text})) is None
    assert judged("read", project, receipt("read", state=State.FAILED, result={"text": text}))
    assert judged("read", project, receipt("shell", result={"text": text}))
    assert judged("read", project, receipt("read", result={"text": "something else"}))
    assert judged("read", project) == "nothing was read"


def test_pr_85_exactly_one_effective_edit_succeeds(project: Path) -> None:
    assert judged("edit", project, receipt("edit")) == "the file was not edited"
    file = project / SETTINGS
    file.write_text(file.read_text().replace("draft", "ready"))
    assert judged("edit", project, receipt("edit")) is None
    assert judged("edit", project, receipt("edit"), receipt("edit", 2)) == "2 effective edits instead of one"
    assert judged("edit", project, receipt("edit"), receipt("edit", 2, state=State.FAILED)) is None
    assert judged("edit", project) == "0 effective edits instead of one"
    file.write_text(file.read_text().replace("yes", "no"))
    assert judged("edit", project, receipt("edit")) == "the file holds something else than what was asked for"


def test_pr_85_a_verification_must_have_run_unchanged_and_without_credentials(project: Path) -> None:
    ran = {"settings": (project / SETTINGS).read_text(), "variables": ["PATH"]}
    assert judged("verify", project, receipt("shell")) == "the verification did not run"
    (project / CHECKED).write_text(json.dumps([ran]))
    assert judged("verify", project, receipt("shell")) is None
    assert judged("verify", project) == "no receipt says that the verification ran"
    (project / CHECKED).write_text(json.dumps([ran | {"variables": ["PATH", "K"]}]))
    assert judged("verify", project, receipt("shell")) == "the verification process was given a credential"
    (project / "verify.py").write_text("print('verified')")
    assert judged("verify", project, receipt("shell")) == "the verification itself was changed"


def test_pr_86_repeats_of_one_file_operation_and_a_corrected_first_call_are_counted() -> None:
    same = {"arguments": '{"path": "a"}'}
    wrong = receipt("read", 0, state=State.NOT_STARTED, reason="arguments_invalid", started_at=None)
    found = count(
        [
            wrong,
            receipt("read", 1, **same),
            receipt("read", 2, **same),
            receipt("shell", 3),
            receipt("shell", 4),
        ]
    )
    assert found == {
        "proposals": 5, "executionsStarted": 4, "executionsSucceeded": 4, "repeated": 1, "firstInvalid": True,
        "corrected": True,
    }  # fmt: skip
    assert count([wrong])["corrected"] is False
    assert count([receipt("read")])["corrected"] is None
