"""What a person is told who errs: a wrong word in a file or a flag, or a system that refuses."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_world import SUREFOOT, World

import surefoot

TOLD = re.compile(r"SF-[A-Z-]+: [^\n]+\.\nnext: [^\n]+\n")


def settings(world: World, text: str) -> Path:
    file = world.home / "sf/config.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def shell(world: World, line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", line.replace("surefoot", shlex.join(SUREFOOT), 1)], cwd=world.project, env=world.environ,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_ux_25_a_rule_that_matches_no_tool_is_a_warning_with_the_nearest_name(world: World) -> None:
    file = settings(
        world, '[permissions]\nallow = ["Read", "Http", "mcp__x"]\ndeny = ["Bsh(rm *)", "Hosted"]\n'
    )
    checked = world.run("config", "check")
    warning = f"permissions.deny ({file}:3): the rule 'Bsh(rm *)' means no tool; did you mean Bash?"
    assert checked.stderr == warning + "\n" and checked.stdout == "settings: 1 warning\n"
    assert checked.returncode == 0
    assert warning in world.run("doctor").stdout
    world.model_says({"text": "Hello."})
    ended = world.run("-p", "hello")
    assert ended.returncode == 0 and ended.stdout == "Hello.\n" and warning in ended.stderr


def test_ux_25_a_flag_that_names_no_tool_is_a_warning_with_the_nearest_name(world: World) -> None:
    world.model_says({"text": "Hello."})
    ended = world.run("-p", "hello", "--tools", "rad,list", "--allowed-tools", "Rad")
    assert ended.returncode == 0
    assert "--tools: 'rad' means no tool; did you mean read?" in ended.stderr
    assert "--allowed-tools: the rule 'Rad' means no tool; did you mean Read?" in ended.stderr
    assert "'list'" not in ended.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "[limits]\ngate_wait_seconds = 99999\n",
            "limits.gate_wait_seconds must be a number from 0.01 to 600",
        ),
        ('[endpoints.desk]\nurl = "desk:8080"\n', "The URL of endpoint 'desk'"),
        ('[endpoints.desk]\nurl = "http://desk/v1"\ncontract = "vlm/chat"\n', "Did you mean vllm/chat?"),
        (
            '[endpoints.desk]\nurl = "http://desk/v1"\nwire = "responses"\ncontract = "openai/chat"\n',
            "another wire",
        ),
        ('model = "dsk/m"\n[endpoints.desk]\nurl = "http://desk/v1"\n', "No endpoint is named 'dsk'"),
        ('[permissions]\ndeny = ["Bash("]\n', "permission rule 'Bash('"),
        ('[packs]\nuse = ["nosuch"]\n', "nosuch"),
    ],
)
def test_ux_9_a_check_of_the_settings_refuses_what_a_run_would_refuse(
    world: World, text: str, told: str
) -> None:
    settings(world, text)
    checked = world.run("config", "check")
    assert checked.returncode == 2 and told in checked.stderr, checked.stderr
    assert "settings: ok" not in checked.stdout
    doctor = world.run("doctor")
    assert doctor.returncode == 1 and told in doctor.stdout


def test_ux_14_a_wrong_verb_of_recover_is_answered_with_the_nearest(world: World) -> None:
    world.model_says({"text": "Hello."})
    assert world.run("-p", "hello").returncode == 0
    wrong = world.run("recover", "lst")
    assert wrong.returncode == 1
    assert "Nothing here is called 'lst'. Did you mean surefoot recover list?" in wrong.stderr
    assert "Did you mean" not in world.run("recover", "att_zzzz").stderr


def test_ux_9_a_setting_that_a_flag_set_is_told_with_the_flag(world: World) -> None:
    for flag, value in (("--permission-mode", "acceptedits"), ("--barrier", "recah"), ("--on-unknown", "go")):
        ended = world.run("-p", "hello", flag, value)
        assert ended.returncode == 2
        assert ended.stderr.startswith(f"SF-USAGE: {flag} {value!r} must be one of "), ended.stderr


def test_ux_14_a_wrong_setting_or_contract_is_answered_with_the_nearest(world: World) -> None:
    assert "Did you mean model?" in world.run("config", "get", "modle").stderr
    assert "model is not set here." in world.run("config", "get", "model").stderr
    assert "Did you mean openai/chat?" in world.run("contract", "show", "openai/chatt").stderr


@pytest.mark.parametrize(
    "line",
    [
        "emulate --profile opneai",
        "emulate --port 99999",
        "emulate --script nosuch.json",
        "emulate --script broken.json",
        "demo --kill-at nowhere",
    ],
)
def test_ux_9_wrong_flags_of_the_server_and_the_demo_have_a_code_and_a_next_command(
    world: World, line: str
) -> None:
    (world.project / "broken.json").write_text("[")
    ended = world.run(*line.split())
    assert ended.returncode == 2 and TOLD.fullmatch(ended.stderr), ended.stderr


def test_ux_9_a_system_that_refuses_is_no_fault_of_surefoot(world: World) -> None:
    world.model_says({"text": "Hello."})
    full = shell(world, "surefoot -p hello >/dev/full")
    assert full.returncode == 1 and "SF-ERROR: The system did not allow it: No space left" in full.stderr
    assert "SF-FAULT" not in full.stderr and "Traceback" not in full.stderr
    bare = shell(world, "surefoot --version >/dev/full")
    assert (bare.returncode, bare.stderr) == (1, full.stderr.replace(" next: ", "\nnext: "))
    gone = shell(world, "mkdir gone; cd gone; rmdir ../gone; surefoot session list")
    assert (gone.returncode, gone.stderr) == (2, "SF-USAGE: The working directory is gone.\nnext: cd ~\n")


def test_ux_7_words_that_standard_error_does_not_take_change_no_answer_and_no_run(world: World) -> None:
    world.model_says({"calls": [{"name": "read", "args": {"path": "."}}]}, {"text": "Hello."})
    run = shell(world, "surefoot -p hello -v 2>/dev/full")
    assert (run.returncode, run.stdout) == (0, "Hello.\n")
    listed = shell(world, "surefoot recover list 2>/dev/full")
    assert (listed.returncode, listed.stdout) == (0, "Nothing is open.\n")
    assert shell(world, "surefoot recover list --frob 2>/dev/full").returncode == 2


@pytest.mark.parametrize(
    "line", ["--version", "--help", "recover --help", "config path", "recover list --json"]
)
def test_ux_34_every_command_that_lost_its_reader_ends_with_141(world: World, line: str) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as nobody:
        ended = subprocess.run(
            [*SUREFOOT, *line.split()], cwd=world.project, env=world.environ, stdin=subprocess.DEVNULL,
            stdout=nobody, stderr=subprocess.PIPE, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (141, "")


def test_ux_147_a_closed_stream_gives_no_ledger_its_number(world: World) -> None:
    world.model_says({"text": "Hello."})
    closed = shell(world, "surefoot -p hello <&- >&-")
    assert closed.returncode == 0 and closed.stderr == ""
    assert shell(world, "surefoot session list >&-").returncode == 0
    assert shell(world, "surefoot session list 2>&-").stdout.startswith("ses_")
    assert world.run("ledger", "verify").returncode == 0


def test_ux_57_a_place_where_no_ledger_can_be_made_is_no_healthy_one(world: World) -> None:
    (world.home / "file").touch()
    world.more["SUREFOOT_HOME"] = str(world.home / "file/below")
    doctor = world.run("doctor")
    assert doctor.returncode == 1 and f"nothing can be written in {world.home / 'file'}" in doctor.stdout


def charge(cents: int, currency: str = "EUR") -> str:
    return f"{cents} {currency}"


def test_ux_101_a_guarded_function_is_called_as_the_function_itself(tmp_path: Path) -> None:
    with surefoot.open(ledger=tmp_path / "home") as ledger, ledger.session() as session:
        pay = session.guard(charge, effect="NON_IDEMPOTENT", reach=["host:bank.example"])
        assert pay(500, "CHF") == pay(500, currency="CHF") == pay(cents=500, currency="CHF") == "500 CHF"
        with pytest.raises(TypeError):
            pay(500, cents=500)


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ({"effect": "NONIDEMPOTENT"}, "effect 'NONIDEMPOTENT' is none of READ_ONLY, "),
        ({"reach": "host:bank.example"}, "reach is a list of places; write ['host:bank.example']"),
        ({"verifer": None}, "'verifer' is no field of surefoot.Tool"),
    ],
)
def test_ux_101_a_declaration_that_cannot_hold_is_refused_with_what_can(
    tmp_path: Path, declared: dict[str, Any], told: str
) -> None:
    with surefoot.open(ledger=tmp_path / "home") as ledger, ledger.session() as session:
        with pytest.raises(surefoot.UsageError) as refused:
            session.guard(charge, **declared)
        assert told in str(refused.value)


def test_ux_140_a_run_without_its_extra_names_the_line_that_installs_it_and_ends_with_2(world: World) -> None:
    hidden = "import sys; sys.modules['xllamacpp'] = None; from surefoot.surfaces.cli import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", hidden, "-m", "local", "-p", "hello"], cwd=world.project, env=world.environ,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.count("\n") == 1 and "SF-EXTRA-MISSING" in ended.stderr
    assert "'surefoot[local]' && " in ended.stderr and sys.executable in ended.stderr
