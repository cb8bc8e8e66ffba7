"""The diagnostic log of a run: what happened when, with no key and no words in it."""

from __future__ import annotations

import re
import stat

import pytest
from cli_world import World

from surefoot.core.model import Notice
from surefoot.surfaces.cli.diagnosing import TOPICS, Log
from surefoot.surfaces.cli.entry import first_word, normalised

KEY = "sk-ant-REDACTED"
ASKED = {"text": "Looking.", "calls": [{"name": "shell", "args": {"command": f"echo {KEY}"}}]}


def test_ux_15_ux_26_debug_writes_to_standard_error_and_has_neither_keys_nor_words(world: World) -> None:
    world.model_says(ASKED, {"text": "All finished."}, {"text": "Again."})
    ended = world.run("-p", "--yolo", "--debug", f"a question about {KEY}")
    assert (ended.returncode, ended.stdout) == (0, "All finished.\n")
    topics = re.findall(r"^ *\d+\.\d{3} (\w+) \S+ \{", ended.stderr, re.MULTILINE)
    assert {"settings", "session", "model", "tools"} <= set(topics) <= set(TOPICS)
    assert "permissions.mode" in ended.stderr and '"state":"succeeded"' in ended.stderr
    assert not re.search("secretsecret|a question|Looking|All finished", ended.stderr)
    log = world.home / "run.log"
    for _ in range(2):
        again = world.run("-p", "hello", "--debug=model,tools", f"--debug-file={log}")
        assert (again.returncode, again.stderr) == (0, "")
    lines = log.read_text().splitlines()
    assert {line.split()[1] for line in lines} == {"model"} and sum(
        " assistant " in line for line in lines
    ) == 2
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_ux_15_a_topic_that_there_is_not_and_a_file_that_cannot_be_written_are_named(world: World) -> None:
    for flags, told in (
        (["--debug=modle"], "no topic 'modle'"),
        ([f"--debug-file={world.home}"], "cannot be written"),
        ([f"--debug-file={world.home}/no/log"], "cannot be written"),
    ):
        ended = world.run("-p", "hello", *flags)
        assert ended.returncode == 2 and told in ended.stderr and ended.stdout == ""


def test_ux_15_a_prompt_behind_debug_is_a_prompt() -> None:
    assert normalised(["--debug", "run"]) == ["--debug=all", "run"]
    assert normalised(["--debug=tools", "--", "--debug"]) == ["--debug=tools", "--", "--debug"]
    assert first_word(["--debug", "recover"]) == "recover"


def test_ux_15_a_log_tells_words_by_their_length_and_hides_secrets(
    capsys: pytest.CaptureFixture[str],
) -> None:
    heard: list[Notice] = []
    log = Log("model,hooks", None)
    tell = log.hearing(heard.append)
    given = {
        "text": "four",
        "url": f"https://x/?api_key={KEY}",
        "odd": "a\x1b[31mb",
        "parts": [{"prompt": "abc"}],
    }
    for kind in ("assistant", "hook_fenced", "receipt"):
        tell(Notice(kind, given))
    told = capsys.readouterr().err
    assert [line.split()[1:3] for line in told.splitlines()] == [
        ["model", "assistant"],
        ["hooks", "hook_fenced"],
    ]
    assert (
        "(4 characters)" in told and "(3 characters)" in told and "secret" not in told and "\x1b" not in told
    )
    assert [one.kind for one in heard] == ["assistant", "hook_fenced", "receipt"]
