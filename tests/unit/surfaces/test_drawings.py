"""The table of drawings: one view, three ways to draw it, of which one is read aloud."""

from __future__ import annotations

import re
import string
from typing import Any

import pytest

from surefoot.surfaces import pictures, view
from surefoot.surfaces.asking import permission_lines
from surefoot.surfaces.chat_echo import Echo
from surefoot.surfaces.chat_lines import status_line
from surefoot.surfaces.drawing import (
    DRAWINGS,
    INLINE,
    PLAIN,
    SCREEN_READER,
    drawing_of,
    how_to_press,
    key_of,
    listed,
)
from surefoot.surfaces.plain import Choices, width_of
from surefoot.surfaces.words import LANGUAGES, state_words
from surefoot.surfaces.words_aloud import ALOUD
from surefoot.surfaces.words_table import STATES

DRAWN = re.compile(r"[\u2500-\u259f\x1b]|[" + "".join(state.mark for state in STATES.values()) + "]")
ATTEMPT = "att_01jq0000000000000000007f3a"


def card(language: str, **change: Any) -> dict[str, Any]:
    inspection = {
        "id": "ins_1", "state": "present", "grade": "strong", "summary": "local main is 9c1e04b",
        "doesNotProve": "what origin holds", "observedAt": 1_790_000_001_000,
    }  # fmt: skip
    call: dict[str, Any] = {
        "attemptId": ATTEMPT, "tool": "shell", "class": "NON_IDEMPOTENT", "reach": ["repo:h.example/o/n"],
        "state": "unknown", "reason": "owner_died", "overlays": [], "open": True, "fencing": True,
        "executor": {"state": "not_proven"}, "startedAt": 1_790_000_000_000, "inspectionId": "ins_1",
        "inspection": inspection, "process": {"state": "gone", "pid": 41}, "summary": "git push │ ██ origin",
        "actions": [{"action": a, "enabled": a != "retry", "code": None} for a in
                    ("inspect", "confirm", "deny", "reject", "release", "retry")], **change,
    }  # fmt: skip
    snapshot = {"calls": [call], "barrier": "reach", "sessionPath": "p/ses_1", "runtimeEpoch": "7"}
    return view.card(call, snapshot, language)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("how", list(Choices))
def test_ux_60_a_card_read_aloud_has_a_labelled_line_per_fact_and_no_box_block_or_mark(
    language: str, how: Choices
) -> None:
    shown = card(language, process={"state": "running", "pid": 4711, "choices": ["adopt", "kill", "leave"]})
    lines = SCREEN_READER.card({**shown, "running": "◐ still running"}, language, number=(2, 3), how=how)
    assert not [line for line in lines if DRAWN.search(line)]
    assert not [
        line for line in lines if not re.match(r".{2,30}?[:：] ?\S|check 1 does|检查 1 |檢查 1 ", line)
    ]
    text = "\n".join(lines)
    told = [shown[key] for key in ("known", "notKnown", "next", "words", "shortId", "command")]
    assert all(str(fact) in text for fact in [*told, "local main is 9c1e04b", "what origin holds"])
    numbers = re.findall(r"^(?:choice|选项|選項) (\d+)[:：]", text, re.MULTILINE)
    labels = [label for _, label in listed(shown, language, how)] if how is not Choices.NONE else []
    assert [int(n) for n in numbers] == list(range(1, len(labels) + 1))
    assert all(label in text for label in labels)


def test_ux_71_a_number_names_a_choice_looks_at_once_and_never_decides() -> None:
    shown = card("en")
    for number, (key, label) in enumerate(listed(shown, "en"), 1):
        press = how_to_press(shown, "en", number)
        assert press is not None and label in press
        if key in "hnlfr":
            assert key_of(shown, "en", number) == "" and f"press {key}" in press
        else:
            assert key_of(shown, "en", number) in (key, "escape")
    for number in (0, 99):
        assert key_of(shown, "en", number) == "" and how_to_press(shown, "en", number) is None


@pytest.mark.parametrize(
    ("wanted", "flag", "environ", "terminal", "expected"),
    [
        (False, False, {}, True, INLINE), (False, True, {}, True, PLAIN), (False, False, {}, False, PLAIN),
        (False, False, {"TERM": "dumb"}, True, PLAIN), (False, False, {"CI": "1"}, True, PLAIN),
        (True, False, {}, True, SCREEN_READER), (True, True, {"CI": "1"}, False, SCREEN_READER),
    ],
)  # fmt: skip
def test_ux_60_three_drawings_and_what_asks_for_each(
    wanted: bool, flag: bool, environ: dict[str, str], terminal: bool, expected: Any
) -> None:
    found = drawing_of(environ, aloud_wanted=wanted, plain_flag=flag, is_terminal=terminal)
    assert found is expected and DRAWINGS[found.name] is found and len(DRAWINGS) == 3


@pytest.mark.parametrize("language", LANGUAGES)
def test_ux_60_a_table_read_aloud_names_each_cell_by_its_heading(language: str) -> None:
    rows = [["◇", "att_1", "x ┊ y"], ["●", "", "z"]]
    lines = SCREEN_READER.table(rows, ["", "call", "what"], language, 20)
    assert len(lines) == 5 and not any(DRAWN.search(line) for line in lines)
    assert [line for line in lines if line.startswith("call")] and lines[-1].startswith("what")
    assert SCREEN_READER.table([["class", "UNKNOWN"]], (), language, None)[0].startswith("class")


@pytest.mark.parametrize("language", LANGUAGES)
def test_ux_60_pictures_read_aloud_are_counts_and_lines(language: str) -> None:
    told = SCREEN_READER.strip(["succeeded", "succeeded", "unknown", None], language, earlier=7)
    assert not DRAWN.search(told) and state_words("unknown", language) in told and "2" in told and "7" in told
    call = pictures.Bar("shell", 1_790_000_000_000, None, "unknown", "git push", ATTEMPT)
    died = pictures.Fold(1_790_000_001_000, 1_790_000_001_000, True)
    run = pictures.Run("ses_01jq0000000000000000007f3a", [call], [died], [], call.start_ms, died.end_ms)
    lines = [SCREEN_READER.line(line) for line in pictures.timeline(run, language, SCREEN_READER)]
    assert len(lines) == 3 and not any(DRAWN.search(line) for line in lines)
    assert "git push" in lines[1] and state_words("unknown", language) in lines[1] and "att_7f3a" in lines[1]


@pytest.mark.parametrize("language", LANGUAGES)
def test_ux_60_a_permission_question_read_aloud_numbers_its_answers(language: str) -> None:
    question = {"tool": "shell", "arguments": '{"command": "rm -r x"}', "effect_class": "NON_IDEMPOTENT",
                "reach": ["path:/x"], "directory": "/p", "why": "no rule allows it"}  # fmt: skip
    lines = permission_lines(
        question, language, columns=80, read=lambda path: None, styled=str, drawing=SCREEN_READER
    )
    told = [SCREEN_READER.line(line) for line in lines]
    assert not any(DRAWN.search(line) for line in told)
    assert len([line for line in told if re.match(r" *(choice|选项|選項) [123][:：]", line)]) == 3


def test_ux_10_foreign_text_read_aloud_stands_right_of_a_gutter_too() -> None:
    assert SCREEN_READER.line("│ choice 1: y") == ": choice 1: y"
    assert SCREEN_READER.line("  │ ██ id") == "  :   id"


def test_ux_11_every_label_read_aloud_stands_in_three_languages_with_the_same_places() -> None:
    for key, texts in ALOUD.items():
        places = [{name for _, name, _, _ in string.Formatter().parse(text) if name} for text in texts]
        assert len(texts) == 3 and all(texts) and places[0] == places[1] == places[2], key


async def test_ux_60_what_is_typed_is_written_behind_and_begun_anew_below_a_line() -> None:
    written: list[str] = []
    echo = Echo(written.append, lambda: "> ", lambda: None)
    echo.offer()
    for text in ("h", "hello", "hel", "", "字", ""):
        echo.typed(text)
    assert "".join(written) == "> hello" + "\b \b" * 5 + "字" + "\b \b" * 2
    written.clear()
    echo.typed("ab")
    echo.above("a line")
    echo.offer("ab")
    echo.typed("xab")
    echo.sent()
    echo.above("next")
    assert "".join(written) == "ab\na line\n> ab\n> xab\nnext\n"


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_ux_61_ux_71_a_narrow_status_line_keeps_its_mark_of_open_calls_and_the_permission_mode(
    columns: int,
) -> None:
    parts = [
        "openai/gpt-4.1-mini",
        "bypassPermissions",
        "◇1",
        "Esc stops",
        "touch started; sleep 600; rm out.txt · 9 s",
    ]
    line = status_line(parts, columns)
    assert width_of(line) <= columns and line.find("bypassPermissions") >= 0
    assert columns < 40 or ("◇1" in line and "Esc stops" in line)
    assert (line == " · ".join(parts)) == (columns > 100)
