"""Cases of family K on the command line and in the terminal.

K05 to K07 wait for an editor.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pexpect
import pytest
from cli_world import SUREFOOT, World, wait_for

DONE = {"text": "All finished."}
HALF = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    b'data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":'
    b'[{"index":0,"delta":{"role":"assistant","content":"Half an ans'
)


@pytest.fixture
def cutting_server() -> Iterator[str]:
    """A server that begins every answer and breaks off in the middle of a word."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(1 << 20)
                connection.sendall(HALF)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(5)


@pytest.mark.parametrize("form", ["text", "json", "stream-json"])
def test_case_k08_a_stream_that_breaks_off_is_no_success(
    world: World, cutting_server: str, form: str
) -> None:
    world.more |= {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": cutting_server}
    ended = world.run("-p", "hello", "--timeout", "8s", "--output-format", form)
    assert ended.returncode != 0
    if form != "text":
        assert json.loads(ended.stdout.splitlines()[-1])["is_error"] is True


def killed_in_a_command(world: World) -> None:
    call = {"name": "shell", "args": {"command": "touch started; sleep 600; echo x >> out.txt"}}
    world.model_says({"calls": [call]}, DONE)
    run = world.start("-p", "do it", "--yolo")
    wait_for((world.project / "started").exists)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=120)


def test_case_k10_the_doctor_names_a_damaged_ledger_and_a_command(world: World) -> None:
    killed_in_a_command(world)
    (path,) = (world.home / "sf/ledgers").rglob("ledger.db")
    for log in path.parent.glob("ledger.db-*"):
        log.unlink()
    path.write_bytes(path.read_bytes()[:100])
    told = world.run("doctor")
    assert told.returncode == 1 and "  next: surefoot ledger verify" in told.stdout
    verified = world.run("ledger", "verify")
    assert verified.returncode != 0 and str(path) in verified.stdout + verified.stderr
    refused = world.run("ledger", "begin")
    assert refused.returncode != 0  # a new ledger is begun by a person at a terminal
    child = pexpect.spawn(
        SUREFOOT[0], [*SUREFOOT[1:], "ledger", "begin"], cwd=str(world.project), env=world.environ,
        encoding="utf-8", timeout=90,
    )  # fmt: skip
    child.expect(r"Type (\S+) to begin")
    child.send(f"{child.match.group(1)}\r")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert "lost or unreadable" in world.run("doctor").stdout  # its sessions stay listed, never forgotten
    assert world.run("-p", "hello").returncode == 0


def test_case_k11_the_chat_keeps_the_terminals_own_scrollback(world: World) -> None:
    lines = "\n\n".join(f"line {number}" for number in range(120))
    world.model_says({"text": lines})
    child = pexpect.spawn(
        SUREFOOT[0], SUREFOOT[1:], cwd=str(world.project), env=world.environ, encoding="utf-8", timeout=90
    )
    log = (Path(world.home) / "screen").open("w+", encoding="utf-8")
    with log:
        child.logfile_read = log
        child.expect(">")
        child.send("talk\r")
        child.expect("line 119")
        child.send("\x04")
        child.expect(pexpect.EOF)
        child.close()
        log.seek(0)
        screen = log.read()
    assert all(f"line {number}" in screen for number in range(120))
    assert "\x1b[?1049" not in screen and "\x1b[?47h" not in screen


def test_case_k13_k14_a_start_after_a_death_shows_the_card_and_asks_no_model(world: World) -> None:
    killed_in_a_command(world)
    child = pexpect.spawn(
        SUREFOOT[0], [*SUREFOOT[1:], "-c"], cwd=str(world.project), env=world.environ, encoding="utf-8",
        timeout=90, dimensions=(40, 90),
    )  # fmt: skip
    child.expect("Resumed .* 1 may have happened")
    child.expect("surefoot recover")
    assert "All finished." not in child.before
    child.sendcontrol("d")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 3
    (listed,) = json.loads(world.run("recover", "list", "--json").stdout)["calls"]
    assert listed["open"] and not (world.project / "out.txt").exists()


def test_case_k01_without_its_derived_views_a_session_is_told_whole(world: World) -> None:
    killed_in_a_command(world)
    (path,) = (world.home / "sf/ledgers").rglob("ledger.db")
    asked = (
        ("session", "list", "--json"), ("recover", "list", "--all", "--json"), ("session", "show", "--json"),
    )  # fmt: skip
    before = [world.run(*words).stdout for words in asked]
    assert "do it" in before[2] and '"open":true' in before[1], before
    with closing(sqlite3.connect(path)) as ledger:
        ledger.execute("DELETE FROM listing")
        ledger.execute("DELETE FROM receipts")
        ledger.commit()
    for words, told in zip(asked, before, strict=True):
        assert ages_gone(world.run(*words).stdout) == ages_gone(told), words
    listed = json.loads(world.run("session", "list", "--json").stdout)
    (row,) = listed["sessions"] if isinstance(listed, dict) else listed
    assert row["open_calls"] == 1


def ages_gone(text: str) -> str:
    """Without what changes by the clock or with each reading."""
    return re.sub(r'"(revision|observedAt|ageSeconds|age_seconds|at)": ?[^,}\n]+', "", text)


def test_case_k12_a_resize_redraws_only_the_rows_of_the_prompt(world: World) -> None:
    """What was said scrolls by itself and belongs to the terminal: it is written once, at any width."""
    said = [f"sentence {number} of the answer" for number in range(30)]
    world.model_says({"text": "\n\n".join(said)}, DONE)
    child = pexpect.spawn(
        SUREFOOT[0], SUREFOOT[1:], cwd=str(world.project), env=world.environ, encoding="utf-8",
        timeout=60, dimensions=(24, 80),
    )  # fmt: skip
    with (Path(world.home) / "screen").open("w+", encoding="utf-8") as log:
        child.logfile_read = log
        child.expect(">")
        child.send("talk\r")
        child.expect("sentence 29")
        child.expect(">")
        for columns in (40, 80):
            child.setwinsize(24, columns)
            child.expect(">")
        child.send("more\r")
        child.expect("All finished")
        child.send("\x04")
        child.expect(pexpect.EOF)
        child.close()
        log.seek(0)
        screen = log.read()
    assert child.exitstatus == 0
    assert [screen.count(one) for one in said] == [1] * len(said)
    assert "\x1b[2J" not in screen and "\x1b[H" not in screen and "\x1b[3J" not in screen
    highest = max(int(rows or 1) for rows in re.findall(r"\x1b\[(\d*)A", screen) or ["1"])
    assert highest <= 6, "no cursor goes up into what was said"
