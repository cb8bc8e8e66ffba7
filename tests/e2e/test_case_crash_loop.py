"""Case A32 from the command line: a command that kills its own host does not run for ever."""

from __future__ import annotations

import json
import signal

from cli_world import World

KILLS = (
    "echo body >> bodies; server=$(cut -d' ' -f4 /proc/$PPID/stat);"
    " kill -9 $(cut -d' ' -f4 /proc/$server/stat); sleep 600"
)
FREE = ("--barrier", "off", "--permission-mode", "bypassPermissions", "--on-unknown", "continue")


def bodies(world: World) -> int:
    path = world.project / "bodies"
    return len(path.read_text().split()) if path.exists() else 0


def test_case_a32_ux_161_a_host_that_was_killed_three_times_is_not_resumed_unattended(world: World) -> None:
    ask = [{"calls": [{"name": "shell", "args": {"command": f"{KILLS} # {number}"}}]} for number in range(12)]
    world.model_says(*ask)
    assert world.run("-p", "restart the host", *FREE).returncode == -signal.SIGKILL
    codes = [world.run("-c", "-p", "go on", *FREE).returncode for _ in range(4)]
    # A call that nobody has decided about comes before a question that nobody was there to answer (UX-35).
    assert codes == [-signal.SIGKILL, -signal.SIGKILL, 3, 3] and bodies(world) == 3
    told = world.run("-c", "-p", "go on", "--output-format", "json", *FREE)
    result = json.loads(told.stdout.splitlines()[-1])
    for one in result["unknown_outcomes"]:
        looked = ("--inspection", one["inspectionId"])
        decided = world.run("recover", "reject", one["attemptId"], *looked)
        assert decided.returncode == 0, decided.stderr
    refused = world.run("-c", "-p", "go on", "--output-format", "json", *FREE)
    assert refused.returncode == 4 and bodies(world) == 3
    told_deaths = [line for line in refused.stderr.splitlines() if "died during: echo body" in line]
    assert [f"sleep 600 # {n} (att_" in line for n, line in enumerate(told_deaths)] == [True] * 3
    assert json.loads(refused.stdout.splitlines()[-1])["subtype"] == "error_question_unanswered"


def test_case_a32_at_the_usual_level_the_first_kill_holds_every_repetition(world: World) -> None:
    ask = [{"calls": [{"name": "shell", "args": {"command": f"{KILLS} # {number}"}}]} for number in range(12)]
    world.model_says(*ask)
    usual = ("--permission-mode", "bypassPermissions")
    assert world.run("-p", "restart the host", *usual).returncode == -signal.SIGKILL
    assert [world.run("-c", "-p", "go on", *usual).returncode for _ in range(2)] == [3, 3]
    assert bodies(world) == 1
