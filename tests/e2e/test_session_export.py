"""`surefoot session export`: one session in one file, secrets out, receipts in."""

from __future__ import annotations

import json

import jsonschema
import pexpect
from cli_world import SUREFOOT, World, wait_for

SECRET = "ghp_" + "a1B2" * 9
TOLD = {"calls": [{"name": "shell", "args": {"command": f"echo {SECRET} > note.txt && cat note.txt"}}]}
HANG = {"calls": [{"name": "shell", "args": {"command": "touch started; sleep 600; rm out.txt"}}]}
DONE = {"text": "Done."}


def session(world: World) -> None:
    world.model_says(TOLD, DONE)
    assert world.run("-p", f"my key is {world.environ['OPENAI_API_KEY']}", "--yolo").returncode == 0


def test_ux_54_an_export_holds_receipts_and_no_secret_and_is_true_to_its_schema(world: World) -> None:
    session(world)
    done = world.run("session", "export")
    assert done.returncode == 0, done.stderr
    whole = json.loads(done.stdout)
    schema = world.run("config", "schema", "--export")
    jsonschema.Draft202012Validator(json.loads(schema.stdout)).validate(whole)
    assert SECRET not in done.stdout and "sk-test" not in done.stdout
    assert whole["receipts"][0]["state"] == "succeeded" and whole["redacted"]
    assert "taken out: entries/" in done.stderr and whole["removed"]


def test_ux_54_a_killed_session_is_exported_with_its_open_call_and_nothing_is_written(world: World) -> None:
    world.model_says(HANG, DONE)
    run = world.start("-p", "hang", "--yolo")
    wait_for((world.project / "started").exists)
    run.kill()
    run.communicate()
    before = world.run("session", "show", "--json").stdout
    whole = json.loads(world.run("session", "export", "--format", "json").stdout)
    assert len(whole["open_calls"]) == 1
    text = world.run("session", "export", "--format", "md").stdout
    assert "may have happened" in text and whole["open_calls"][0] in text
    assert (
        json.loads(world.run("session", "show", "--json").stdout)["entries"] == json.loads(before)["entries"]
    )


def test_ux_54_secrets_stay_in_only_for_a_person_at_a_terminal(world: World) -> None:
    session(world)
    refused = world.run("session", "export", "--no-redact")
    assert refused.returncode == 2 and refused.stdout == "" and "person at a terminal" in refused.stderr
    child = pexpect.spawn(
        SUREFOOT[0], [*SUREFOOT[1:], "session", "export", "--no-redact", "-o", "whole.json"],
        cwd=str(world.project), env=world.environ, encoding="utf-8", timeout=90,
    )  # fmt: skip
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0 and SECRET in (world.project / "whole.json").read_text()
    assert (world.project / "whole.json").stat().st_mode & 0o077 == 0


def test_ux_54_a_file_that_is_there_is_never_written_over(world: World) -> None:
    session(world)
    (world.project / "run.md").write_text("mine")
    again = world.run("session", "export", "-o", "run.md")
    assert again.returncode == 2 and (world.project / "run.md").read_text() == "mine"
    made = world.run("session", "export", "-o", "new.md")
    assert made.returncode == 0 and made.stdout == "" and "written: new.md" in made.stderr
    assert (world.project / "new.md").read_text().startswith("# ")
