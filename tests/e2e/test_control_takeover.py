"""What a person at a terminal types before something large happens (UX-51, UX-163), and settings by command."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pexpect
import pytest
from cli_world import SUREFOOT, World, wait_for

from surefoot.config import EXAMPLE
from surefoot.surfaces.cli.configs import schema_of_settings, with_value

DONE = {"text": "All finished."}
HANG = {"calls": [{"name": "shell", "args": {"command": "touch started; sleep 300; rm out.txt"}}]}


def at_a_terminal(world: World, *arguments: str) -> Any:
    return pexpect.spawn(
        SUREFOOT[0], [*SUREFOOT[1:], *arguments], cwd=str(world.project), env=world.environ, encoding="utf-8",
        dimensions=(40, 120), timeout=90,
    )  # fmt: skip


def ended(child: Any) -> int:
    child.expect(pexpect.EOF)
    child.close()
    return int(child.exitstatus)


def test_ux_51_a_take_over_names_the_holder_and_needs_the_short_id_typed(world: World) -> None:
    world.model_says(HANG, DONE)
    run = world.start("-p", "hang", "--yolo")
    wait_for((world.project / "started").exists)
    session = json.loads(world.run("session", "list", "--json").stdout)[0]["session_id"]
    refused = world.run("-p", "me", "-r", session, "--take-over")
    assert refused.returncode == 2 and "person at a terminal" in refused.stderr
    wrong = at_a_terminal(world, "-p", "me", "-r", session, "--take-over")
    wrong.expect(str(run.pid))
    wrong.expect("to take it over")
    wrong.send("yes\r")
    assert ended(wrong) == 8
    right = at_a_terminal(world, "-p", "me", "-r", session, "--take-over")
    right.expect("to take it over")
    right.send(f"ses_{session[-4:]}\r")
    assert ended(right) == 3, "the call of the old owner is unknown, and nothing ran"
    (call,) = json.loads(world.run("recover", "list", "--json").stdout)["calls"]
    assert call["state"] == "unknown" and call["executor"]["state"] == "alive"
    run.kill()
    run.communicate(timeout=120)


def test_ux_163_a_damaged_ledger_is_set_aside_whole_by_a_typed_name_alone(world: World) -> None:
    world.model_says(DONE)
    assert world.run("-p", "hello").returncode == 0
    sound = world.run("ledger", "begin")
    assert sound.returncode == 2 and "nothing to set aside" in sound.stderr
    (folder,) = (world.home / "sf/ledgers").iterdir()
    damage = b"not a database" * 500
    (folder / "ledger.db").write_bytes(damage)
    assert world.run("-p", "again").returncode == 1
    without = world.run("ledger", "begin")
    assert without.returncode == 2 and "person at a terminal" in without.stderr
    wrong = at_a_terminal(world, "ledger", "begin")
    wrong.expect("to begin a new ledger")
    wrong.send("yes\r")
    assert ended(wrong) == 2 and (folder / "ledger.db").read_bytes() == damage
    right = at_a_terminal(world, "ledger", "begin")
    right.expect("to begin a new ledger")
    right.send(f"{folder.name}\r")
    assert ended(right) == 0
    (aside,) = folder.glob("damaged-*")
    assert (aside / "ledger.db").read_bytes() == damage
    world.model_says(DONE)
    assert world.run("-p", "anew").returncode == 0


def test_ux_25_a_setting_is_read_and_written_by_command(world: World) -> None:
    file = world.home / "sf/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('# mine\n[recovery]\nbarrier = "session"  # strict\n\n[limits]\nsnapshot_calls = 50\n')
    assert world.run("config", "set", "recovery.on_unknown", "continue").returncode == 0
    assert world.run("config", "set", "limits.snapshot_calls", "100").returncode == 0
    assert world.run("config", "set", "language", "zh-Hans").returncode == 0
    text = file.read_text()
    assert "# mine" in text and 'barrier = "session"  # strict' in text
    assert tomllib.loads(text) == {
        "language": "zh-Hans",
        "recovery": {"barrier": "session", "on_unknown": "continue"},
        "limits": {"snapshot_calls": 100},
    }
    assert world.run("config", "get", "recovery.on_unknown").stdout == "continue\n"
    assert world.run("config", "get", "limits.snapshot_calls", "--json").stdout == "100\n"
    before = file.read_bytes()
    wrong = world.run("config", "set", "recovery.on_unknown", "maybe")
    assert wrong.returncode == 2 and "stop, continue" in wrong.stderr
    near = world.run("config", "set", "recovery.on_unknwon", "stop")
    assert near.returncode == 2 and "recovery.on_unknown" in near.stderr
    assert world.run("config", "get", "nothing.here").returncode == 2
    assert file.read_bytes() == before


def test_ux_25_the_schema_of_the_settings_file_accepts_the_example() -> None:
    schema = schema_of_settings()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(tomllib.loads(EXAMPLE), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"recovery": {"on_unknown": "maybe"}}, schema)


@pytest.mark.parametrize(
    ("before", "name", "value", "after"),
    [
        ("", "language", "en", 'language = "en"\n'),
        ("", "a.b", 1, "[a]\nb = 1\n"),
        ("[a]\nb = 2\n", "a.b", 1, "[a]\nb = 1\n"),
        ("[a]\nc = 2\n[z]\nb = 3\n", "a.b", [1], "[a]\nb = [1]\nc = 2\n[z]\nb = 3\n"),
        ("[z]\nx = 3\n", "x", True, "x = true\n[z]\nx = 3\n"),
        ("[a]\nb = 2  # why\n", "a.b", 1, "[a]\nb = 1  # why\n"),
        ('[a]\nb = "#2" # why\n', "a.b", "#", '[a]\nb = "#" # why\n'),
        ('[a]\nb = [\n "x", # x\n ["y"],\n]\nc = 2\n', "a.b", ["z"], '[a]\nb = ["z"]\nc = 2\n'),
        ('[a]\nt = """\nb = 2\n[a]"""\nb = 3\n', "a.b", 1, '[a]\nt = """\nb = 2\n[a]"""\nb = 1\n'),
        ("a.b = 2\n", "a.b", 1, "a.b = 1\n"),
        ("a.c = 2\nx = 1\n", "a.b", 1, "a.c = 2\na.b = 1\nx = 1\n"),
        ("[a]\nb.d = 2\n", "a.b.c", 1, "[a]\nb.d = 2\nb.c = 1\n"),
        ('[ "a" ]\n"b" = 2\n', "a.b", 1, '[ "a" ]\n"b" = 1\n'),
        ("", "e.a/b.url", "u", '[e."a/b"]\nurl = "u"\n'),
    ],
)
def test_ux_25_setting_one_value_leaves_every_other_line(
    before: str, name: str, value: Any, after: str
) -> None:
    assert with_value(before, name, value) == after


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (b'recovery = { barrier = "reach" }\n',
         "SF-USAGE: {file} writes recovery in a form that config set cannot change; write recovery.on_unknown by"),
        (b'model = "\xff"\n', "SF-SETTINGS: {file} is not UTF-8 text. Save it as UTF-8."),
        (b"x = \n", "SF-SETTINGS: {file}:1 is not valid TOML"),
        (None, "SF-SETTINGS: {file} cannot be read: Is a directory."),
    ],
)  # fmt: skip
def test_ux_9_a_settings_file_that_cannot_be_changed_is_named_and_stays(
    world: World, written: bytes | None, told: str
) -> None:
    file = Path(world.run("config", "path").stdout.strip())
    file.parent.mkdir(exist_ok=True)
    if written is None:
        file.mkdir()
    else:
        file.write_bytes(written)
    ended = world.run("config", "set", "recovery.on_unknown", "continue")
    assert ended.returncode == 2 and ended.stderr.startswith(told.format(file=file)), ended.stderr
    assert written is None or file.read_bytes() == written


def test_ux_21_a_settings_file_that_is_a_link_goes_on_being_one(world: World, tmp_path: Path) -> None:
    file, kept = Path(world.run("config", "path").stdout.strip()), tmp_path / "kept.toml"
    file.parent.mkdir(exist_ok=True)
    kept.write_text("# mine\n")
    file.symlink_to(kept)
    assert world.run("config", "set", "recovery.on_unknown", "continue").returncode == 0
    assert file.is_symlink() and kept.read_text() == '# mine\n\n[recovery]\non_unknown = "continue"\n'


def test_ux_118_a_chat_that_waits_takes_the_decision_of_another_terminal_at_once(world: World) -> None:
    world.model_says(HANG, DONE)
    run = world.start("-p", "hang", "--yolo")
    wait_for((world.project / "started").exists)
    run.kill()
    run.communicate(timeout=120)
    (call,) = json.loads(world.run("recover", "list", "--json").stdout)["calls"]
    world.model_says(DONE)
    chat = at_a_terminal(world, "-c")
    chat.expect("known")
    wait_for(lambda: bool(list((world.home / "sf/run").glob("*.sock"))))
    looked = json.loads(world.run("recover", "inspect", call["attemptId"], "--json").stdout)["calls"][0]
    done = world.run("recover", "confirm", call["attemptId"], "--inspection", looked["inspectionId"])
    assert done.returncode == 0 and "it happened" in done.stdout and "not yet" not in done.stderr
    (now,) = json.loads(world.run("recover", "list", "--all", "--json").stdout)["calls"]
    assert (now["resolution"]["channel"], now["resolution"]["ancestry"]) == ("cli", "full")
    chat.send("\x04")
    assert ended(chat) == 0
    assert not list((world.home / "sf/run").glob("ses_*.sock"))
