"""What a client takes for an answer of a session's owner, and that it asks once."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.model import Draft, Kind
from surefoot.surfaces import control
from surefoot.surfaces.cli.running import Desk
from surefoot.surfaces.control import ANSWER_BYTES, REFUSAL_BYTES, Control, OwnerSilent, connected
from surefoot.testing.rig import on_disk

SESSION = "ses_00000000000000000000000001"
OTHER = "ses_00000000000000000000000002"


@asynccontextmanager
async def owner(folder: Path, answer: dict[str, Any]) -> AsyncIterator[list[str]]:
    """A process that answers every request of this session alike; yields what it was asked."""
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            asked.append(json.loads(line)["do"])
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()

    # By descriptor: the folder of a test may be longer than an address of a socket can be.
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    server = await asyncio.start_unix_server(serve, f"/proc/self/fd/{place}/{SESSION}.sock", limit=1 << 24)
    try:
        yield asked
    finally:
        server.close()
        await server.wait_closed()
        os.close(place)


def snapshot(session: str, **more: Any) -> dict[str, Any]:
    return {"status": 200, "body": {"sessionPath": f"project-1/{session}", **more}}


def refusal(length: int) -> dict[str, Any]:
    return {"status": 409, "body": {"code": "running", "message": "x" * length}}


TAKEN = {
    "a snapshot of this session": snapshot(SESSION),
    "a snapshot below the bound": snapshot(SESSION, calls="x" * (ANSWER_BYTES - 200)),
    "a refusal": refusal(20),
    "a refusal below the bound": refusal(REFUSAL_BYTES - 100),
}
DROPPED = {
    "a snapshot of another session": snapshot(OTHER),
    "a snapshot above the bound": snapshot(SESSION, calls="x" * ANSWER_BYTES),
    "a refusal above the bound": refusal(REFUSAL_BYTES),
    "no answer at all": {"status": "?"},
}


@pytest.mark.parametrize("answer", TAKEN.values(), ids=TAKEN.keys())
async def test_tr_147_what_a_client_reads(tmp_path: Path, answer: dict[str, Any]) -> None:
    async with owner(tmp_path, answer) as asked, connected(tmp_path, SESSION, "client") as line:
        assert (await line.ask("snapshot")).status == answer["status"]
    assert asked == ["snapshot"]


@pytest.mark.parametrize(
    ("answer", "bound"),
    [(snapshot(SESSION, calls="x" * 900), "answer_bytes"), (refusal(900), "refusal_bytes")],
)
@pytest.mark.parametrize("most", [800, 1200])
async def test_tr_185_how_much_a_client_reads_is_the_owners_word(
    tmp_path: Path, answer: dict[str, Any], bound: str, most: int
) -> None:
    bounds = {bound: most}
    async with owner(tmp_path, answer), connected(tmp_path, SESSION, "client", **bounds) as line:
        if most > 1000:
            assert (await line.ask("snapshot")).status == answer["status"]
        else:
            with pytest.raises(OSError, match="owner"):
                await line.ask("snapshot")


@pytest.mark.parametrize("answer", DROPPED.values(), ids=DROPPED.keys())
async def test_tr_147_what_is_too_long_or_of_another_session_is_no_answer_and_nothing_is_asked_again(
    tmp_path: Path, answer: dict[str, Any]
) -> None:
    async with owner(tmp_path, answer) as asked, connected(tmp_path, SESSION, "client") as line:
        with pytest.raises(OSError, match=r"owner|session"):
            await line.ask("act", request={"action": "confirm"})
    assert asked == ["act"], "a press whose answer is lost is not sent again"


class NoTool:
    """The parents of a peer, of which none is a tool."""

    reason, ancestry = None, "full"


def open_write(number: int) -> list[Draft]:
    """An open write that was looked at, with as much evidence as is kept of a look."""
    attempt = f"att_{number:026d}"
    call = {"callId": f"cal_{number:026d}", "attemptId": attempt, "turnId": "trn_1", "position": 0}
    began = {"attemptId": attempt, "tool": "pay", "class": "NON_IDEMPOTENT", "reach": ["*"], "startedAt": 1}
    look = {"id": f"ins_{number:026d}", "state": "unknown", "evidence": {"log": "x" * 12_000}}
    return [
        Draft(Kind.DISPATCHED, {**call, "askedName": "pay", "arguments": "{}"}),
        Draft(Kind.STARTED, began),
        Draft(Kind.CLOSED, {"attemptId": attempt, "state": "unknown", "reason": "owner_died"}),
        Draft(Kind.INSPECTED, {"attemptId": attempt, "inspection": look, "proven": False}),
    ]


async def test_tr_147_tr_185_a_session_with_two_hundred_looked_at_calls_can_be_read_and_decided_from_outside(
    tmp_path: Path,
) -> None:
    folder, newest = tmp_path / "run", f"att_{199:026d}"
    async with on_disk(tmp_path / "ledger") as crew:
        await crew.session.append(*[draft for number in range(200) for draft in open_write(number)])
        control = Control(folder, crew.session.session_id, Desk(None, crew.controller), lambda pid: NoTool())
        assert await control.open()
        try:
            async with connected(folder, crew.session.session_id, "test") as line:
                body = (await line.ask("snapshot")).body
                assert body["calls"][0]["attemptId"] == f"att_{0:026d}" and body["more"] > 0
                assert len(body["calls"]) + body["more"] == 200
                assert newest not in [call["attemptId"] for call in body["calls"]]
                body = (await line.ask("snapshot", attemptId=newest)).body
                [call] = [call for call in body["calls"] if call["attemptId"] == newest]
                request = {key: body[key] for key in ("sessionPath", "runtimeEpoch", "revision")}
                press = {"attemptId": newest, "inspectionId": call["inspectionId"], "action": "confirm"}
                answer = await line.ask("act", request={**request, **press})
                assert answer.status == 200
                [done] = [call for call in answer.body["calls"] if call["attemptId"] == newest]
                assert done["resolution"]["kind"] == "confirmed"
                assert (await line.ask("wait", attemptId=newest)).status == 200
        finally:
            await control.close()


DEAF = (
    "import os, signal, socket, sys\n"
    "os.chdir(sys.argv[1])\n"
    "door = socket.socket(socket.AF_UNIX)\n"
    "door.bind(sys.argv[2])\n"
    "door.listen()\n"
    "print('listens', flush=True)\n"
    "peer = door.accept()\n"
    "os.kill(os.getpid(), signal.SIGSTOP)\n"
)


@pytest.fixture
def stopped_owner(tmp_path: Path) -> Iterator[int]:
    """A process that stops itself once somebody has connected; gives its pid."""
    owner = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", DEAF, str(tmp_path), f"{SESSION}.sock"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert owner.stdout is not None
    try:
        assert owner.stdout.readline() == "listens\n"
        yield owner.pid
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()


async def test_tr_151_a_stopped_owner_is_named_and_not_waited_for(tmp_path: Path, stopped_owner: int) -> None:
    async with connected(tmp_path, SESSION, "test") as line:
        with pytest.raises(OwnerSilent) as silent:
            await asyncio.wait_for(line.ask("act"), 90)
    assert silent.value.stopped and silent.value.pid == stopped_owner


async def test_tr_151_an_owner_that_does_not_answer_is_waited_for_aloud_and_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "_TELL_SECONDS", 0.0)
    told, waits = asyncio.Event(), []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        await told.wait()
        writer.write(json.dumps(snapshot(SESSION)).encode() + b"\n")
        await reader.read()
        writer.close()

    def wait(pid: int, stopped: bool) -> None:
        waits.append((pid, stopped))
        told.set()

    place = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    server = await asyncio.start_unix_server(serve, f"/proc/self/fd/{place}/{SESSION}.sock")
    try:
        async with connected(tmp_path, SESSION, "test") as line:
            line.on_wait = wait
            answer = await asyncio.wait_for(line.ask("snapshot", patient=True), 90)
            assert answer.status == 200 and waits == [(os.getpid(), False)]
            monkeypatch.setattr(control, "SNAPSHOT_SECONDS", 0.0)
            with pytest.raises(OwnerSilent) as silent:
                await asyncio.wait_for(line.ask("snapshot"), 90)
            assert not silent.value.stopped
    finally:
        server.close()
        await server.wait_closed()
        os.close(place)
