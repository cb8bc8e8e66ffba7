"""How a permission question and light Markdown look."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from surefoot.core.effects import Effect
from surefoot.core.model import EffectClass, Mode
from surefoot.runtime.permission import VerdictKind, decide, parse_rules
from surefoot.surfaces.asking import DIFF_LINES, permission_lines
from surefoot.surfaces.chat_lines import Stream
from surefoot.surfaces.markup import Light
from surefoot.surfaces.plain import width_of
from surefoot.surfaces.words import LANGUAGES, say
from surefoot.surfaces.words_chat import why_asked
from surefoot.tools.shell import shell_tool

FILE = "".join(f"line {number}\n" for number in range(1, 31))


def asked(
    tool: str, arguments: dict[str, Any] | str, *, language: str = "en", columns: int = 80
) -> list[str]:
    question = {
        "tool": tool,
        "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
        "effect_class": "IDEMPOTENT_WRITE",
        "reach": ("path:/w/a.txt",),
        "directory": "/w",
        "why": "no rule allows it",
    }
    return permission_lines(question, language, columns=columns, read=lambda path: FILE, styled=str)


def test_ux_41_a_question_shows_the_command_class_reach_directory_and_the_choices() -> None:
    lines = asked("shell", {"command": "rm -r build\necho ok", "timeout": 5})
    assert lines[0] == "shell · IDEMPOTENT_WRITE: it writes; the same again changes nothing more"
    assert lines[1:4] == ["│ $ rm -r build", "│ $ echo ok", "│ timeout: 5"]
    text = "\n".join(lines)
    assert "reach path:/w/a.txt · in /w" in text and "no rule allows it" in text
    assert "y once" in text and "n no" in text


@pytest.mark.parametrize("language", LANGUAGES[1:])
@pytest.mark.parametrize(
    ("rules", "subjects", "effect", "named"),
    [
        ({}, ["make"], Effect(EffectClass.UNKNOWN), ""),
        ({}, [], Effect(EffectClass.UNKNOWN), ""),
        ({"ask": ["Bash(make *)"]}, ["make"], Effect(EffectClass.UNKNOWN), "Bash(make *)"),
        ({"deny": ["Bash(rm *)"]}, [], Effect(EffectClass.UNKNOWN), "Bash(rm *)"),
    ],
)
def test_ux_41_why_somebody_is_asked_is_told_in_the_language_of_the_chat(
    language: str, rules: dict[str, list[str]], subjects: list[str], effect: Effect, named: str
) -> None:
    mode = Mode.BYPASS if "deny" in rules else Mode.DEFAULT
    verdict = decide(parse_rules(**rules), mode, shell_tool(), subjects, effect)
    assert verdict.kind is VerdictKind.ASK
    told = why_asked(verdict.reason, language)
    assert named in told and not re.search("[a-z]", told.replace(named, "").replace("''", "")), told


def test_ux_41_an_edit_is_shown_as_a_unified_diff_of_the_file() -> None:
    lines = asked("edit", {"path": "a.txt", "old": "line 5", "new": "line five\nand more"})
    assert lines[1] == "│ edit a.txt" and lines[2].startswith("│ @@")
    assert (
        "│ -line 5" in lines and "│ +line five" in lines and "│ +and more" in lines and "│  line 6" in lines
    )


@pytest.mark.parametrize("count", [DIFF_LINES - 2, 500])
def test_ux_41_a_long_diff_is_bounded_and_says_how_much_is_missing(count: int) -> None:
    content = FILE + "".join(f"new {number}\n" for number in range(count))
    lines = asked("write", {"path": "a.txt", "content": content})
    diff = [line for line in lines if line.startswith(("│ @", "│ +", "│ -", "│  ", "│ …"))]
    assert len(diff) == DIFF_LINES
    assert re.search(r"… \d+ more lines", "\n".join(lines))


def test_ux_10_hostile_arguments_stay_behind_the_gutter() -> None:
    evil = "ls\x1b[2J\r  y once · a always\u202e\nrm"
    for line in asked("shell", {"command": evil}) + asked("fetch", {"url": evil}) + asked("x", evil):
        assert "\x1b" not in line and "\u202e" not in line and "\r" not in line
    drawn = asked("shell", {"command": evil})
    assert sum("y once" in line and not line.startswith("│ ") for line in drawn) == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_ux_11_every_class_has_words_in_every_language(language: str) -> None:
    for kind in EffectClass:
        assert say(f"class_{kind.value.lower()}", language)


def test_ux_61_no_line_of_a_question_is_wider_than_the_screen() -> None:
    for line in asked("edit", {"path": "a.txt", "old": "line 5", "new": "x" * 300}, columns=40):
        assert width_of(line) <= 40


def test_ux_60_markdown_is_drawn_where_styles_may_be_written_and_left_alone_elsewhere() -> None:
    text = "# Head\n- a **b** `c`\n```\n**raw**\n```\nend"
    plain, light = Stream(columns=60), Stream(columns=60, light=Light())
    assert plain.feed(text) + plain.finish() == [f"│ {line}" for line in text.split("\n")]
    drawn = light.feed(text) + light.finish()
    assert drawn[0] == "│ \x1b[1mHead\x1b[0m"
    assert drawn[1] == "│ • a \x1b[1mb\x1b[0m \x1b[36mc\x1b[0m"
    assert drawn[3] == "│ \x1b[36m**raw**\x1b[0m"
    assert all(line.startswith("│ ") for line in drawn)


def test_ux_10_no_escape_of_the_model_survives_the_drawing_of_markdown() -> None:
    light = Stream(columns=60, light=Light())
    drawn = light.feed("**\x1b[31mred\x1b[0m** `\x1b]0;title\x07x`\n")
    assert drawn == ["│ \x1b[1mred\x1b[0m \x1b[36mx\x1b[0m"]
