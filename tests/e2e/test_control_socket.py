"""A decision pressed in another terminal reaches a session that runs (UX-118, UX-119, UX-160, TR-151, TR-210)."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_world import World, wait_for

LIMITS = "[tools.shell]\ntime_limit_seconds = 1\n"
DONE = {"text": "All finished."}


def ledger_calls(world: World) -> list[dict[str, Any]]:
    return list(json.loads(world.run("recover", "list", "--all", "--json").stdout)["calls"])


def open_calls(world: World) -> list[dict[str, Any]]:
    return [call for call in ledger_calls(world) if call["open"]]


def shell(command: str) -> dict[str, Any]:
    return {"calls": [{"name": "shell", "args": {"command": command}}]}


def killed(world: World, command: str = "touch started; sleep 600; echo x >> out.txt") -> None:
    world.model_says(shell(command), DONE)
    run = world.start("-p", "do it", "--yolo")
    wait_for((world.project / "started").exists)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=120)


class Live:
    """A resumed run that goes on beside an open call, inside a tool that waits for a file."""

    def __init__(self, world: World) -> None:
        killed(world)
        (self.call,) = open_calls(world)
        self.world = world
        world.model_says(shell("touch busy; while [ ! -e go ]; do sleep 0.05; done"), DONE)
        self.run = world.start("-c", "-p", "go on", "--yolo", "--barrier", "off", "--on-unknown", "continue")
        wait_for((world.project / "busy").exists)

    def go(self) -> None:
        (self.world.project / "go").touch()

    def end(self) -> tuple[str, str]:
        self.go()
        return self.run.communicate(timeout=120)

    @property
    def socket(self) -> Path:
        (found,) = (self.world.home / "sf/run").glob("*.sock")
        return found


@pytest.fixture
def live(world: World) -> Iterator[Live]:
    made = Live(world)
    yield made
    if made.run.poll() is None:
        made.end()


def ask(path: Path, message: Any) -> dict[str, Any]:
    """One line to the socket and one back, as any program of the account could send it."""
    place = os.open(path.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(30)
            line.connect(f"/proc/self/fd/{place}/{path.name}")
            line.sendall(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
            heard = b""
            while not heard.endswith(b"\n") and (chunk := line.recv(65536)):
                heard += chunk
    finally:
        os.close(place)
    return dict(json.loads(heard))


def inspected(world: World, attempt: str) -> str:
    looked = json.loads(world.run("recover", "inspect", attempt, "--json").stdout)
    (call,) = [one for one in looked["calls"] if one["attemptId"] == attempt]
    return str(call["inspectionId"])


def test_tr_151_a_decision_is_handed_to_the_live_owner_and_waits_for_its_border(live: Live) -> None:
    world, attempt = live.world, live.call["attemptId"]
    inspection = inspected(world, attempt)
    pressing = world.start("recover", "confirm", attempt, "--inspection", inspection)
    wait_for(
        lambda: any(
            one["parked"] == "confirm" for one in ask(live.socket, {"do": "snapshot"})["body"]["calls"]
        )
    )
    assert ledger_calls(world)[0]["resolution"] is None and pressing.poll() is None
    live.go()
    out, err = pressing.communicate(timeout=120)
    assert pressing.returncode == 0, err
    assert "not yet recorded" in err and "recorded" not in err.replace("not yet recorded", "")
    assert "you said it happened" in out
    live.end()
    (call,) = [one for one in ledger_calls(world) if one["attemptId"] == attempt]
    said = call["resolution"]
    assert (said["kind"], said["channel"], said["method"], said["letInBy"]) == (
        "confirmed",
        "cli",
        "command",
        "os_user",
    )
    assert (said["ancestry"], said["assurance"]) == ("full", "same-user")
    assert said["client"].startswith("surefoot ") and said["inspectionId"] == inspection and said["who"]


def test_ux_160_a_press_whose_owner_dies_before_the_border_is_not_recorded(live: Live) -> None:
    world, attempt = live.world, live.call["attemptId"]
    inspection = inspected(world, attempt)
    pressing = world.start("recover", "confirm", attempt, "--inspection", inspection)
    wait_for(lambda: any(one["parked"] for one in ask(live.socket, {"do": "snapshot"})["body"]["calls"]))
    live.run.kill()
    live.run.communicate(timeout=120)
    _, err = pressing.communicate(timeout=120)
    assert pressing.returncode == 3 and "not yet recorded" in err
    assert {one["attemptId"]: one["resolution"] for one in ledger_calls(world)}[attempt] is None


def test_tr_210_a_second_press_takes_the_place_of_the_parked_one(live: Live) -> None:
    world, attempt = live.world, live.call["attemptId"]
    inspection = inspected(world, attempt)
    first = world.start("recover", "confirm", attempt, "--inspection", inspection)
    wait_for(
        lambda: any(
            one["parked"] == "confirm" for one in ask(live.socket, {"do": "snapshot"})["body"]["calls"]
        )
    )
    second = world.start("recover", "reject", attempt, "--inspection", inspection)
    wait_for(
        lambda: any(
            one["parked"] == "reject" for one in ask(live.socket, {"do": "snapshot"})["body"]["calls"]
        )
    )
    live.go()
    _, told = second.communicate(timeout=120)
    first.communicate(timeout=120)
    assert second.returncode == 0 and "takes the place of" in told
    live.end()
    (call,) = [one for one in ledger_calls(world) if one["attemptId"] == attempt]
    assert call["resolution"]["kind"] == "rejected" and call["open"]


def test_ux_119_the_socket_is_for_this_account_alone_and_goes_with_its_session(live: Live) -> None:
    facts = live.socket.lstat()
    assert stat.S_ISSOCK(facts.st_mode) and stat.S_IMODE(facts.st_mode) == 0o600
    assert stat.S_IMODE(live.socket.parent.stat().st_mode) == 0o700
    live.end()
    assert not list((live.world.home / "sf/run").glob("*.sock"))


@pytest.mark.parametrize(
    ("message", "status", "code"),
    [
        (b"not json\n", 400, "bad_request"),
        (b"[]\n", 400, "bad_request"),
        ({"do": "obey"}, 400, "bad_request"),
        ({"do": "act"}, 400, "bad_request"),
        (b'{"do": "act", "request": "' + b"x" * 20_000 + b'"}\n', 400, "body_too_large"),
        ({"do": "act", "request": {"action": "confirm", "arguments": {}}}, 400, "unknown_field"),
        ({"do": "act", "request": {"action": "obey", "attemptId": "att_x"}}, 400, "unknown_action"),
        ({"do": "act", "request": {"action": "deny", "attemptId": "att_x", "note": "n" * 501}}, 400, "bad_request"),
        ({"do": "act", "request": {"action": "confirm", "attemptId": "att_x"}}, 409, "session_mismatch"),
        ({"do": "process", "request": {"choice": "obey", "attemptId": "att_x"}}, 400, "bad_request"),
        ({"do": "process", "request": {"choice": "kill", "attemptId": "att_x"}}, 409, "session_mismatch"),
    ],
)  # fmt: skip
def test_tr_125_what_is_no_request_is_refused_with_its_code(
    one_live: Live, message: Any, status: int, code: str
) -> None:
    answer = ask(one_live.socket, message)
    assert (answer["status"], answer["body"]["code"]) == (status, code)


@pytest.fixture(scope="module")
def one_live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("live")
    home, project = folder / "home", folder / "project"
    home.mkdir()
    project.mkdir()
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    world = World(home, project)
    made = Live(world)
    yield made
    made.end()
    world.close()


def test_tr_151_without_a_socket_the_refusal_names_host_and_process(live: Live) -> None:
    live.socket.unlink()
    attempt = live.call["attemptId"]
    refused = live.world.run("recover", "confirm", attempt, "--inspection", "ins_" + "0" * 26)
    assert refused.returncode == 4 and "not_owner" in refused.stderr
    assert str(live.run.pid) in refused.stderr and socket.gethostname() in refused.stderr


def test_tr_133_a_retry_beside_a_turn_is_refused(live: Live) -> None:
    attempt = live.call["attemptId"]
    inspection = inspected(live.world, attempt)
    refused = live.world.run("recover", "retry", attempt, "--inspection", inspection, "--json")
    assert refused.returncode == 4 and json.loads(refused.stdout)["code"] == "running"


def test_ux_66_the_second_of_two_equal_presses_shows_the_first_record_and_is_no_failure(world: World) -> None:
    killed(world)
    (call,) = open_calls(world)
    inspection = inspected(world, call["attemptId"])
    assert world.run("recover", "confirm", call["attemptId"], "--inspection", inspection).returncode == 0
    again = world.run("recover", "confirm", call["attemptId"], "--inspection", inspection)
    assert again.returncode == 0 and "already_resolved" in again.stderr and "confirmed" in again.stderr
    other = world.run("recover", "deny", call["attemptId"], "--inspection", inspection)
    assert other.returncode == 4 and "already_resolved" in other.stderr
