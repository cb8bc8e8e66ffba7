"""No file tool costs the ledger its locks: closing any other descriptor of it would (TR-191).

This process holds a write lock of a real ledger file, every tool is pointed at the
file and its companions under three names, and another process opens the ledger to
see whether the lock still stands.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from surefoot.core.model import Receipt
from surefoot.runtime.tools import LiveAttempt, Outcome, Place, Prepared
from surefoot.tools.files.toolset import file_tools
from surefoot.tools.worker import Worker
from surefoot.verifiers.files import FilesVerifier

TAKE_LOCK = """
import apsw, sys
connection = apsw.Connection(sys.argv[1])
try:
    connection.execute("begin immediate")
    print("free")
except apsw.BusyError:
    print("held")
connection.close()
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "project" / "ledger.db"
    path.parent.mkdir()
    connection = apsw.Connection(str(path))
    for statement in (
        "pragma journal_mode=wal",
        "create table t (x)",
        "insert into t values ('precious')",
        "begin immediate",
        "insert into t values (2)",
    ):
        list(connection.execute(statement))
    yield path
    connection.close()


def lock_of(ledger: Path) -> str:
    """What another process finds when it opens the ledger, asks for the lock and closes it again."""
    ran = subprocess.run(
        [sys.executable, "-c", TAKE_LOCK, str(ledger)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return ran.stdout.strip()


def test_tr_191_every_file_tool_leaves_the_ledgers_locks_alone(ledger: Path) -> None:
    folder = ledger.parent
    files = [folder / name for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm")]
    ids = frozenset((path.stat().st_dev, path.stat().st_ino) for path in files)
    before = [path.stat().st_size for path in files]
    for path in files:
        (folder / f"hard-{path.name}").hardlink_to(path)
        (folder / f"soft-{path.name}").symlink_to(path.name)
    assert lock_of(ledger) == "held"
    asyncio.run(touch_everything(folder, ids))
    assert lock_of(ledger) == "held"
    assert [path.stat().st_size for path in files] == before and all(path.exists() for path in files)


def test_tr_191_the_proof_can_fail_because_one_careless_close_drops_the_lock(ledger: Path) -> None:
    assert lock_of(ledger) == "held"
    for name in ("ledger.db", "ledger.db-shm"):
        os.close(os.open(ledger.with_name(name), os.O_RDONLY))
    assert lock_of(ledger) == "free"


async def touch_everything(folder: Path, ids: frozenset[tuple[int, int]]) -> None:
    worker = Worker()
    verifier = FilesVerifier(lambda: ids)
    tools = {tool.name: tool for tool in file_tools(worker=worker, verifier=verifier)}
    names = [
        f"{kind}{name}"
        for kind in ("", "hard-", "soft-")
        for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm")
    ]
    calls: list[tuple[str, dict[str, Any]]] = [
        ("list", {"path": "."}),
        ("glob", {"pattern": "**"}),
        ("grep", {"pattern": "precious"}),
        ("delete", {"path": ".", "recursive": True}),
    ]
    for name in names:
        calls += [
            ("read", {"path": name}),
            ("grep", {"pattern": "precious", "path": name}),
            ("write", {"path": name, "content": "x"}),
            ("write", {"path": name, "content": "x", "mode": "append"}),
            ("edit", {"path": name, "old": "precious", "new": "x"}),
            ("multi_edit", {"path": name, "edits": [{"old": "precious", "new": "x"}]}),
            ("make_directory", {"path": name}),
            ("move", {"source": "elsewhere", "target": name, "overwrite": True}),
        ]
        if not name.startswith("soft-"):  # a link is removed and moved itself, which opens nothing
            calls += [("delete", {"path": name}), ("move", {"source": name, "target": "moved"})]
    (folder / "elsewhere").write_text("x")
    try:
        for name, arguments in calls:
            await one_call(tools[name], folder, ids, arguments)
        for name in names:
            verifier.answers(intended(folder / name))
    finally:
        worker.close()


async def one_call(
    tool: Any, folder: Path, ids: frozenset[tuple[int, int]], arguments: dict[str, Any]
) -> None:
    async def note(_: Any) -> None:
        return None

    place = Place(folder)
    services = {"ledger_files": lambda: ids}
    receipt = Receipt("ses_1", "trn_1", "cal_1", "att_1", 0)
    prepared = Prepared() if tool.prepare is None else await tool.prepare(arguments, place, receipt, services)
    if prepared.refuse is not None:
        assert prepared.refuse[0] in ("ledger_file", "permission_denied")
        return
    live = LiveAttempt(
        session_id="ses_1",
        turn_id="trn_1",
        call_id="cal_1",
        attempt_id="att_1",
        idempotency_key="sf1-x",
        deadline_boot_ms=None,
        place=place,
        prepared=prepared.value,
        note=note,
        late=lambda outcome, source: None,
        progress=lambda text: None,
        services=services,
    )
    outcome = tool.sync_body(live, arguments) if tool.sync_body else await tool.body(live, arguments)
    assert isinstance(outcome, Outcome) and "ledger.db:" not in outcome.text


def intended(path: Path) -> Receipt:
    """A receipt whose intent names a ledger file, as an older program may have left it."""
    from surefoot.verifiers.files import host_name

    intent = {
        "version": 1,
        "kind": "write",
        "path": str(path),
        "resolvedPath": os.path.realpath(path),
        "host": host_name(),
        "route": "disk",
        "before": "absent",
        "after": "sha256:0",
    }
    return Receipt("ses_1", "trn_1", "cal_1", "att_1", 0, write_intents=(intent,))
