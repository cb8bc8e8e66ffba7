"""Pictures of a run: pure, told apart without colour, and true about what has no end."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from surefoot.core.lifecycle import receipt_from_json
from surefoot.core.model import Entry, Kind, Receipt
from surefoot.surfaces import pictures, pictures_svg, plain, words

SESSION = "ses_01jq0000000000000000001d4e"
BASE = 1_790_000_000_000
SVG = "{http://www.w3.org/2000/svg}"


def clock(ms: int) -> str:
    return f"T{(ms - BASE) // 1000}"


def entry(position: int, seconds: float, kind: Kind, epoch: int = 1, **payload: Any) -> Entry:
    return Entry(SESSION, position, epoch, BASE + int(seconds * 1000), str(kind), payload)


def receipt(number: int, state: str, began: float, ended: float | None, **more: Any) -> Receipt:
    value = {
        "sessionId": SESSION, "turnId": "trn_1", "callId": f"cal_{number}",
        "attemptId": f"att_01jq00000000000000000{number:05d}", "position": 0, "tool": "shell",
        "class": "NON_IDEMPOTENT", "state": state, "startedAt": BASE + int(began * 1000),
        "finishedAt": None if ended is None else BASE + int(ended * 1000),
        "argumentsDisplay": f'{{"command": "push {number}"}}', **more,
    }  # fmt: skip
    return receipt_from_json(value)


def killed() -> pictures.Run:
    """Two calls, a kill in the second, two hours of nothing, and a run that goes on."""
    entries = [
        entry(1, 0, Kind.USER, text="go"),
        entry(2, 2, Kind.ASSISTANT, text="", calls=[]),
        entry(3, 3, Kind.CLOSED, attemptId="att_1", state="succeeded"),
        entry(4, 4, Kind.STARTED, attemptId="att_2"),
        entry(5, 7204, Kind.CLOSED, 2, attemptId="att_2", state="unknown", reason="owner_died"),
        entry(6, 7206, Kind.ASSISTANT, 2, text="", calls=[]),
        entry(7, 7210, Kind.CLOSED, 2, attemptId="att_3", state="succeeded"),
    ]
    receipts = [
        receipt(1, "succeeded", 2, 3),
        receipt(2, "unknown", 4, 7204, reason="owner_died"),
        receipt(3, "failed", 7207, 7210),
    ]
    return pictures.run_of(SESSION, entries, receipts)


def test_ux_132_one_view_gives_the_same_bytes_and_a_text_twin() -> None:
    run = killed()
    for language in words.LANGUAGES:
        for theme in pictures_svg.THEMES:
            first = pictures_svg.timeline_svg(run, language, theme=theme, clock=clock)
            assert first == pictures_svg.timeline_svg(killed(), language, theme=theme, clock=clock)
        assert pictures.timeline_text(run, language, clock=clock) == pictures.timeline_text(
            killed(), language, clock=clock
        )


@pytest.mark.parametrize("language", words.LANGUAGES)
@pytest.mark.parametrize("columns", [40, 80, 200])
def test_ux_132_the_timeline_holds_its_width_and_names_what_is_open(language: str, columns: int) -> None:
    lines = pictures.timeline_text(killed(), language, columns=columns, clock=clock)
    shell = next(line for line in lines if line.startswith("shell"))
    assert plain.width_of(shell) <= columns
    assert "◇" in shell and "┊" in shell and shell.index("◇") < shell.index("┊")
    assert any(words.state_words("unknown", language) in line and "att_0002" in line for line in lines)


def test_ux_132_dead_time_is_folded_with_its_length_and_the_axis_goes_on() -> None:
    run = killed()
    assert [(fold.death, fold.end_ms - fold.start_ms) for fold in run.folds] == [(True, 7_200_000)]
    assert run.shown_ms(run.end_ms) == 10_000
    text = "\n".join(pictures.timeline_text(run, "en", clock=clock))
    assert "died at T4" in text and "after 2 h" in text


def test_ux_132_an_open_bar_has_no_right_end_and_a_late_record_gives_it_none() -> None:
    opened = next(bar for bar in killed().bars if bar.key == "unknown")
    assert opened.end_ms is None
    svg = pictures_svg.timeline_svg(killed(), "en", clock=clock)
    paths = [node for node in ET.fromstring(svg).iter(f"{SVG}path") if node.get("stroke-width") == "1"]
    hatched = [node for node in paths if "url(#" in node.get("fill", "")]
    assert len(hatched) == 1 and not hatched[0].get("d", "").endswith("Z")
    assert all(node.get("d", "").endswith("Z") for node in paths if node not in hatched)


def test_ux_133_several_pictures_on_one_page_have_ids_of_their_own_and_a_title() -> None:
    run = killed()
    drawn = [
        pictures_svg.timeline_svg(run, "en", theme="light", clock=clock),
        pictures_svg.timeline_svg(run, "en", theme="dark", clock=clock),
        pictures_svg.strip_svg(run, "en", clock=clock),
    ]
    roots = [ET.fromstring(one) for one in drawn]
    ids = [node.get("id") for root in roots for node in root.iter() if node.get("id")]
    assert len(ids) == len(set(ids))
    for root in roots:
        title, about = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
        assert title is not None and title.text and about is not None and about.text
        assert root.get("aria-labelledby") == f"{title.get('id')} {about.get('id')}"


def test_ux_133_marks_and_labels_tell_states_apart_in_one_colour() -> None:
    svg = ET.fromstring(pictures_svg.timeline_svg(killed(), "en", width=1600, clock=clock))
    titles = [node.text or "" for node in svg.iter(f"{SVG}title")]
    texts = "".join(node.text or "" for node in svg.iter(f"{SVG}text"))
    assert any("push 2: may have happened" in title for title in titles)
    assert all(sign in texts for sign in "●◇✗")


def test_ux_133_foreign_text_is_escaped_and_cleaned() -> None:
    hostile = '{"command": "</svg><script>x</script> \\u001b[31m \\u202e"}'
    run = pictures.run_of(
        SESSION, [entry(1, 0, Kind.USER)], [receipt(1, "succeeded", 0, 9, argumentsDisplay=hostile)]
    )
    svg = pictures_svg.timeline_svg(run, "en", clock=clock)
    assert "<script" not in svg and "\x1b" not in svg and "\u202e" not in svg
    assert ET.fromstring(svg) is not None
    assert "\x1b" not in "".join(pictures.timeline_text(run, "en", clock=clock))


def test_ux_133_the_run_strip_folds_what_is_older_than_sixty_cells() -> None:
    assert pictures.strip_text(killed()) == "█◇┊✗"
    assert pictures.strip_text(killed(), ascii_only=True) == "#?|!"
    many = [receipt(number, "succeeded", number, number + 1) for number in range(100)]
    long = pictures.strip_text(pictures.run_of(SESSION, [entry(1, 0, Kind.USER)], many))
    assert len(long) <= 60 and long.startswith("+46 ")
    last = dataclasses.replace(pictures.run_of(SESSION, [entry(1, 0, Kind.USER)], many[-60:]), earlier=40)
    assert pictures.strip_text(last) == long


def test_ux_132_a_death_that_nobody_came_after_is_drawn_too() -> None:
    entries = [entry(1, 0, Kind.USER), entry(2, 1, Kind.STARTED, attemptId="att_1")]
    run = pictures.run_of(SESSION, entries, [receipt(1, "unknown", 1, None)], died=True)
    assert pictures.strip_text(run) == "◇┊"
    assert "died at T1" in "\n".join(pictures.timeline_text(run, "en", clock=clock))


def test_ux_132_a_session_in_which_nothing_ran_says_so() -> None:
    run = pictures.run_of(SESSION, [], [])
    assert pictures.timeline_text(run, "en") == [words.say("nothing_ran", "en")]
    assert words.say("nothing_ran", "en") in pictures_svg.timeline_svg(run, "en", clock=clock)


@pytest.mark.parametrize("language", words.LANGUAGES)
@pytest.mark.parametrize(
    "display",
    [
        '{"command":"login --password [redacted]"}',
        '{"path":"a.txt","token":"[redacted]"}',
        "login [redacted]",
        None,
    ],
)
def test_ux_133_no_picture_shows_an_argument_that_a_card_would_hide(
    language: str, display: str | None
) -> None:
    """In any form a picture takes: what stands in the arguments themselves is never read."""
    secret = "hunter2-hunter2"
    arguments = f'{{"command": "login --password {secret}", "path": "a.txt", "token": "{secret}"}}'
    hidden = [
        receipt(1, "unknown", 4, 9, arguments=arguments, argumentsDisplay=display, reason="owner_died"),
        receipt(2, "succeeded", 5, 6, arguments=arguments, argumentsDisplay=display),
    ]
    run = pictures.run_of(SESSION, [entry(1, 0, Kind.USER, text="go"), entry(2, 9, Kind.HOST)], hidden)
    forms = [
        *pictures.timeline_text(run, language, columns=200), pictures.strip_text(run), str(pictures.facts(run)),
        *(pictures_svg.timeline_svg(run, language, width=4000, theme=one) for one in pictures_svg.THEMES),
        pictures_svg.strip_svg(run, language),
    ]  # fmt: skip
    assert not [form for form in forms if secret in form]
