"""Which key is a decision: quiet time, bursts, pastes, stable evidence, the code."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.surfaces.keys import BURST_MS, DECISIONS, QUIET_MS, Keys, carried
from surefoot.surfaces.view import code_of


def strong(**change: Any) -> dict[str, Any]:
    return {
        "attemptId": "att_1",
        "class": "NON_IDEMPOTENT",
        "inspectionId": "ins_1",
        "inspection": {"id": "ins_1", "state": "present", "grade": "strong"},
        "executor": {"state": "ended"},
        "actions": [
            {"action": a, "enabled": a != "retry", "code": "retry_disabled" if a == "retry" else None}
            for a in ("inspect", "confirm", "deny", "reject", "release", "retry")
        ],
        **change,
    }


def shown(call: dict[str, Any] | None = None) -> Keys:
    keys = Keys()
    keys.show(call or strong(), 0)
    return keys


def test_ux_71_a_key_that_stood_alone_decides_what_the_evidence_carries() -> None:
    keys = shown()
    assert keys.press("h", 1_000).kind == "armed"
    assert keys.settle(1_000 + QUIET_MS - 1) is None
    settled = keys.settle(1_000 + QUIET_MS)
    assert settled is not None and (settled.kind, settled.name) == ("decide", "confirm")
    assert keys.settle(9_999) is None


@pytest.mark.parametrize("key", ["enter", " ", "y", "1", "9", "x", "H", "\r"])
def test_ux_71_enter_space_y_digits_and_letters_never_decide(key: str) -> None:
    keys = shown()
    assert keys.press(key, 1_000).kind == "text"
    assert keys.settle(99_999) is None


def test_ux_71_looks_and_moves_are_named() -> None:
    wanted = {"i": "inspect", "a": "ask_model", "d": "details", "o": "timeline", "?": "help"}
    for number, (key, name) in enumerate(wanted.items()):
        assert shown().press(key, 1_000 + number).name == name
    assert shown().press("j", 1_000).name == "forth"
    assert shown().press("escape", 1_000).name == "away"


def test_ux_71_a_choice_that_is_off_answers_with_its_code() -> None:
    press = shown().press("r", 1_000)
    assert (press.kind, press.name) == ("refused", "retry_disabled")


def test_case_e19_ux_72_a_key_within_350_ms_is_swallowed_and_starts_the_time_again() -> None:
    keys = shown()
    keys.press("x", 1_000)
    assert keys.press("l", 1_000 + QUIET_MS - 1).kind == "swallowed"
    assert keys.press("l", 1_000 + 2 * QUIET_MS - 2).kind == "swallowed"
    assert keys.press("l", 1_000 + 3 * QUIET_MS).kind == "armed"


def test_ux_72_keys_go_to_the_line_when_it_is_not_empty() -> None:
    keys = shown()
    assert keys.press("h", 1_000, line_empty=False).kind == "text"
    assert keys.settle(9_999) is None


def test_ux_72_new_evidence_makes_decision_keys_dead_for_350_ms() -> None:
    keys = shown()
    keys.show(strong(inspectionId="ins_2"), 5_000)
    assert keys.press("h", 5_000 + QUIET_MS - 1).kind == "swallowed"
    assert keys.press("h", 5_000 + 3 * QUIET_MS).kind == "armed"
    keys.show(strong(inspectionId="ins_3"), 5_000 + 3 * QUIET_MS + 1)
    assert keys.settle(99_999) is None


def test_case_e18_ux_73_a_burst_is_text_and_keeps_its_first_letter() -> None:
    keys = shown()
    keys.press("h", 1_000)
    press = keys.press("e", 1_000 + BURST_MS)
    assert (press.kind, press.name) == ("text", "h")
    assert keys.settle(99_999) is None


def test_ux_74_a_decision_beyond_the_evidence_needs_the_two_characters() -> None:
    call = strong()
    keys = shown(call)
    assert keys.press("n", 1_000).kind == "code"
    first, second = code_of(call)
    assert keys.press(first, 1_100).kind == "swallowed"
    press = keys.press(second, 1_200)
    assert (press.kind, press.name) == ("decide", "deny")


def test_ux_74_a_wrong_code_decides_nothing_and_loses_no_letter() -> None:
    call = strong()
    keys = shown(call)
    keys.press("f", 1_000)
    wrong = "a" if code_of(call)[0] != "a" else "b"
    press = keys.press(wrong, 1_100)
    assert (press.kind, press.name) == ("text", "f")
    assert keys.settle(99_999) is None


def test_ux_74_escape_leaves_the_code() -> None:
    call = strong()
    keys = shown(call)
    keys.press("f", 1_000)
    keys.press("escape", 1_500)
    for at, letter in enumerate(code_of(call)):
        assert keys.press(letter, 2_000 + 400 * at).kind != "decide"


GAPS = st.floats(min_value=0, max_value=QUIET_MS - 1)


@settings(max_examples=400, deadline=None)
@given(st.text(st.sampled_from("hnlfriadokj yes0123"), min_size=2, max_size=40), st.data())
def test_ux_73_typed_and_pasted_traces_never_decide(text: str, data: st.DataObject) -> None:
    """A person who types words, or pastes them, has no pause of 350 ms inside a word."""
    call = strong()
    wanted = code_of(call)
    keys = shown(call)
    now, line = 1_000.0, ""
    pasted = data.draw(st.booleans())
    for letter in text:
        if not pasted and line == "" and wanted in text:
            return  # a text that holds the printed code is no accident
        press = keys.press(letter, now, line_empty=line == "", pasted=pasted)
        assert press.kind != "decide", text
        if press.kind == "text":
            line += press.name + letter
        assert keys.settle(now + BURST_MS) is None
        now += data.draw(GAPS)
    if len(text) > 1 and keys._held is not None:
        assert line == "" and text[-1] in DECISIONS


LISTED = (("att_a", "ins_1"), ("att_b", "ins_2"))


def several(offered: tuple[tuple[str, str], ...] = LISTED) -> Keys:
    keys = shown()
    keys.offer(offered, several=True)
    return keys


def test_ux_75_h_lists_first_and_a_second_one_confirms_what_was_listed() -> None:
    keys = several()
    assert keys.press("H", 1_000).kind == "list" and keys.listed == LISTED
    assert keys.settle(9_999) is None
    armed = keys.press("H", 2_000)
    assert (armed.kind, armed.name) == ("armed", "confirm_all")
    settled = keys.settle(2_000 + QUIET_MS)
    assert settled is not None and (settled.kind, settled.name) == ("decide", "confirm_all")


def test_ux_75_a_list_that_changed_or_was_left_is_listed_again() -> None:
    keys = several()
    keys.press("H", 1_000)
    keys.offer(LISTED[:1], several=True)
    assert keys.press("H", 2_000).kind == "list" and keys.listed == LISTED[:1]
    keys.press("j", 3_000)
    assert keys.press("H", 4_000).kind == "list"


def test_ux_75_two_presses_in_a_burst_or_within_350_ms_confirm_nothing() -> None:
    keys = several()
    keys.press("H", 1_000)
    assert keys.press("H", 1_100).kind == "swallowed"
    assert keys.press("H", 1_100 + QUIET_MS - 1).kind == "swallowed"
    keys.press("H", 3_000)
    assert keys.press("e", 3_005).kind == "text" and keys.settle(9_999) is None


def test_ux_75_only_what_proof_or_strong_signs_say_happened_is_offered() -> None:
    weak = {"id": "ins_1", "state": "present", "grade": "weak"}
    absent = {"id": "ins_1", "state": "absent_fenced", "grade": "proof"}
    off = [{"action": "confirm", "enabled": False, "code": "running"}]
    calls = [
        strong(attemptId="att_a"), strong(attemptId="att_b", inspection=weak),
        strong(attemptId="att_c", inspection=absent), strong(attemptId="att_d", actions=off),
    ]  # fmt: skip
    assert [attempt for attempt, _ in carried(calls)] == ["att_a"]


def test_ux_78_the_keys_of_a_living_process_wait_like_any_decision_and_are_letters_elsewhere() -> None:
    living = strong(
        process={"state": "running", "pid": 7, "log": None, "choices": ["adopt", "kill", "leave"]}
    )
    for key, choice in (("t", "adopt"), ("s", "kill"), ("v", "leave")):
        keys = shown(living)
        assert keys.press(key, 1_000).kind == "armed"
        settled = keys.settle(1_000 + QUIET_MS)
        assert settled is not None and (settled.kind, settled.name) == ("choose", choice)
        assert shown().press(key, 1_000).kind == "text"
    burst = shown(living)
    burst.press("s", 1_000)
    assert burst.press("o", 1_004).kind == "text" and burst.settle(9_999) is None
