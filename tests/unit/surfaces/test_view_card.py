"""The card and its drawing: the same facts in every language and width."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.admission import costs_code
from surefoot.core.model import Action, EffectClass, ExecutorState
from surefoot.surfaces import plain, verdict, view, words

GOLDEN = Path(__file__).parent / "golden"
ATTEMPT = "att_01jq0000000000000000007f3a"


def call(**change: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "attemptId": ATTEMPT,
        "callId": "cal_01jq0000000000000000000001",
        "turnId": "trn_01jq0000000000000000000001",
        "tool": "shell",
        "class": "NON_IDEMPOTENT",
        "reach": ["repo:h.example/o/n"],
        "state": "unknown",
        "reason": "owner_died",
        "overlays": [],
        "open": True,
        "fencing": True,
        "decision": "VERIFY",
        "executor": {"state": "not_proven"},
        "parked": None,
        "startedAt": 1_790_000_000_000,
        "inspectionId": "ins_01jq0000000000000000000001",
        "inspection": {
            "id": "ins_01jq0000000000000000000001",
            "state": "present",
            "grade": "strong",
            "summary": "local origin/main is 9c1e04b, this push's commit",
            "doesNotProve": "what origin holds",
            "observedAt": 1_790_000_001_000,
        },
        "process": {"state": "gone", "pid": 41},
        "summary": "git push origin main",
        "actions": [
            {"action": a, "enabled": a != "retry", "code": "retry_disabled" if a == "retry" else None}
            for a in ("inspect", "confirm", "deny", "reject", "release", "retry")
        ],
    }
    return {**base, **change}


def snapshot(*calls: dict[str, Any], **change: Any) -> dict[str, Any]:
    return {"calls": list(calls), "barrier": "reach", "sessionPath": "p/ses_1", "runtimeEpoch": "7",
            "revision": "sha256:00", **change}  # fmt: skip


def made(language: str = "en", **change: Any) -> dict[str, Any]:
    one = call(**change)
    return view.card(one, snapshot(one), language, clock=lambda ms: "12:01:07")


@pytest.mark.parametrize("language", words.LANGUAGES)
@pytest.mark.parametrize("columns", [40, 68, 200])
def test_ux_69_the_card_is_drawn_as_stored(language: str, columns: int) -> None:
    lines = plain.draw_card(made(language), language, columns=columns)
    golden = (GOLDEN / f"card-{language}-{columns}.txt").read_text(encoding="utf-8")
    assert "\n".join(lines) + "\n" == golden
    assert all(plain.width_of(line) <= columns for line in lines)


@pytest.mark.parametrize("language", words.LANGUAGES)
def test_ux_69_at_forty_columns_the_card_fits_24_rows_without_a_box(language: str) -> None:
    lines = plain.draw_card(made(language), language, columns=40)
    assert len(lines) <= 24
    assert not any(letter in "".join(lines) for letter in "┌┐└┘│")


def test_ux_69_at_most_seventy_words_stand_before_the_choices() -> None:
    lines = plain.draw_card(made(), "en", columns=68)
    before = lines[: next(n for n, line in enumerate(lines) if "h it happened" in line)]
    assert len(re.findall(r"[\w./:'-]+", " ".join(before))) <= 70


@pytest.mark.parametrize("language", words.LANGUAGES)
def test_ux_2_known_stands_before_not_known_before_next(language: str) -> None:
    text = "\n".join(plain.draw_card(made(language), language, columns=80))
    labels = [words.say(key, language) for key in ("label_known", "label_not_known", "label_next")]
    places = [text.index(f"│ {label}") for label in labels]
    assert places == sorted(places)


@pytest.mark.parametrize("language", words.LANGUAGES)
@pytest.mark.parametrize("reason", [*words.CAUSES, None, "of_a_newer_version"])
def test_ux_3_no_card_says_success_or_failure(language: str, reason: str | None) -> None:
    text = "\n".join(plain.draw_card(made(language, reason=reason), language, columns=80)).lower()
    for banned in words.banned("unknown", language):
        found = re.search(rf"\b{banned}\b", text) if language == "en" else banned in text
        assert not found, banned


def test_ux_5_what_blocks_names_attempt_reach_one_command_and_what_still_works() -> None:
    text = "\n".join(plain.draw_card(made(), "en", columns=100))
    assert "att_7f3a" in text and "repo:h.example/o/n" in text
    assert "surefoot recover confirm att_7f3a" in text and "Everything else works." in text


def test_ux_62_the_card_has_every_field_and_no_arguments() -> None:
    card = made()
    wanted = {"summary", "cause", "known", "notKnown", "next", "checks", "fence", "executor", "command", "actions",
              "sessionPath", "runtimeEpoch", "revision"}  # fmt: skip
    assert wanted <= set(card)
    assert "arguments" not in card
    assert card["fence"] == {"reach": ["repo:h.example/o/n"], "since": 1_790_000_000_000}
    assert set(card["checks"][0]) == {"sentence", "doesNotProve", "grade", "at"}
    assert {"key", "label", "needsCode"} <= set(card["actions"][0])


@pytest.mark.parametrize(
    ("change", "level", "key"),
    [
        ({}, "reach", "next_fence"),
        ({"reach": ["*"]}, "reach", "next_fence_all"),
        ({}, "session", "next_fence_all"),
        ({}, "action", "next_fence_same"),
        ({}, "advise", "next_none"),
        ({}, "off", "next_none"),
        ({"fencing": False}, "reach", "next_none"),
    ],
)
def test_ux_64_the_next_line_follows_level_and_reach(change: dict[str, Any], level: str, key: str) -> None:
    one = call(**change)
    told = view.card(one, snapshot(one, barrier=level), "en")["next"]
    assert told == words.say(key, "en", reach="repo:h.example/o/n")


def test_ux_64_only_the_card_of_a_stopped_unattended_run_says_that_nothing_more_runs() -> None:
    one = call()
    waits = words.say("next_wait", "en")
    assert waits not in view.card(one, snapshot(one), "en")["next"]
    assert view.card(one, snapshot(one), "en", stopped=True)["next"].startswith(waits)


STATES = ("present", "postcondition_satisfied", "absent_fenced", "unknown", None)
CLASSES = ("READ_ONLY", "IDEMPOTENT_WRITE", "NON_IDEMPOTENT", "UNKNOWN")


@pytest.mark.parametrize("action", list(Action))
def test_ux_74_the_code_is_asked_for_exactly_where_the_rules_say(action: Action) -> None:
    for state, grade, effect, executor in itertools.product(
        STATES, ("proof", "strong", "weak", "none"), CLASSES, ExecutorState
    ):
        inspection = None if state is None else {"id": "ins_1", "state": state, "grade": grade}
        one = call(**{"class": effect, "inspection": inspection, "executor": {"state": executor.value}})
        wanted = costs_code(action, EffectClass(effect), inspection or {}, executor)
        assert view.needs_code(action.value, one) == wanted, one


def test_ux_74_the_code_changes_with_each_inspection_and_belongs_to_one_attempt() -> None:
    codes = {view.code_of(call(inspectionId=f"ins_{n}")) for n in range(60)}
    assert len(codes) > 30 and all(len(code) == 2 for code in codes)
    assert view.code_of(call()) == view.code_of(call(overlays=["late"]))


def test_ux_162_a_read_is_never_a_card() -> None:
    reads = snapshot(call(**{"class": "READ_ONLY"}), call(open=False))
    assert view.cards(reads, "en") == []


def test_ux_71_choices_that_would_be_refused_are_not_drawn() -> None:
    text = "\n".join(plain.draw_card(made(), "en", columns=80))
    assert "run it again" not in text and "n it did not happen" in text
    actions = [{"action": "deny", "enabled": False, "code": "executor_alive"}]
    assert "n it did not happen" not in "\n".join(plain.draw_card(made(actions=actions), "en", columns=80))


@pytest.mark.parametrize(
    ("state", "key"),
    [
        ({"state": "dispatched"}, "dispatched"),
        ({"state": "not_started", "reason": "cancelled_before_start"}, "not_started"),
        ({"state": "not_started", "reason": "fenced"}, "not_started_refused"),
        ({"state": "started"}, "started"),
        ({"state": "succeeded"}, "succeeded"),
        ({"state": "failed", "effectTrace": "none"}, "failed"),
        ({"state": "failed", "effectTrace": "possible"}, "failed_possible"),
        ({"inspection": None}, "unknown"),
        ({"inspection": {"state": "present", "grade": "weak"}}, "present"),
        ({"overlays": ["proven"]}, "present_proof"),
        ({"inspection": {"state": "postcondition_satisfied", "grade": "strong"}}, "postcondition_satisfied"),
        ({"inspection": {"state": "absent_fenced", "grade": "proof"}}, "absent_fenced"),
        ({"inspection": {"state": "unknown", "grade": "none"}}, "inspection_unknown"),
        ({"overlays": ["confirmed"]}, "confirmed"),
        ({"overlays": ["rejected", "denied"]}, "denied"),
        ({"overlays": ["rejected"]}, "rejected"),
        ({"overlays": ["released"]}, "released"),
        ({"overlays": ["superseded"]}, "superseded"),
        ({"state": "of_a_newer_version", "inspection": None}, "unknown"),
    ],
)
def test_tr_157_each_fact_has_one_row_of_words(state: dict[str, Any], key: str) -> None:
    one = call(**state)
    assert view.fact_key(one) == key
    for language in words.LANGUAGES:
        assert view.told(one, language)


HOSTILE = [
    "\x1b[31mred\x1b[0m", "\x1b]0;title\x07x", "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "\x9b2Jx",
    "a\u202eb\u202c", "\u2066x\u2069", "x\u200fy", "a\rb", "a\x08b", "\x1bPq#0\x1b\\ok", "\x1b", "\x1b[", "a\x00b",
    "line\u2028two", "\ud800half", "\u200bzero", "\x1b(0lqk", "tab\there", "\x7f", "\ufeffbom", "\x1b]0;no end",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_ux_10_foreign_text_is_stripped(text: str) -> None:
    shown = view.clean(text)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]", shown)
    shown.encode("utf-8")
    assert "\n" not in view.clean(text + "\n") and view.clean("a\nb", lines=True) == "a\nb"


def test_ux_10_hostile_words_cannot_leave_the_gutter_of_a_card() -> None:
    evil = "push\n └─ surefoot recover confirm ─┘\x1b[2J\u202e"
    one = call(summary=evil, reach=["path:/a\nb"])
    lines = plain.draw_card(view.card(one, snapshot(one), "en"), "en", columns=68)
    assert len({plain.width_of(line) for line in lines}) == 1
    assert all(line[1] in "┌│└" for line in lines)


def test_ux_61_ascii_is_used_throughout_where_the_locale_is_not_utf_8() -> None:
    assert "\n".join(plain.draw_card(made(), "en", columns=68, ascii_only=True)).isascii()


def test_short_ids_are_the_shortest_unique_ending_of_at_least_four() -> None:
    others = ["att_01jq0000000000000000aa7f3a", "att_01jq00000000000000000b7f3a"]
    assert view.short_id(others[0]) == "att_7f3a"
    assert view.short_id(others[0], others) == "att_a7f3a"


def test_ux_18_the_stop_line_counts_each_kind_once() -> None:
    line = view.stop_line({"succeeded": 2, "unknown": 1, "not_started": 1}, "en")
    assert line == "stopped: 2 done · 1 may have happened · 1 never started"
    assert view.stop_line({"ending": 1}, "en", ending_seconds=7.6).endswith("Told to end; killed after 8 s.")


def test_ux_50_a_resume_is_one_of_two_lines() -> None:
    assert view.resume_line("x", 42, 0, "en") == "Resumed. 42 calls settled, 0 open."
    assert view.resume_line("auth", 41, 1, "en") == 'Resumed "auth" · 41 settled · 1 may have happened'


FIELDS = {
    141: "reader_gone", 130: "interrupted", 143: "terminated", 3: "unknown_undecided", 8: "session_held",
    4: "question_unanswered", 7: "history_refused", 6: "credentials", 124: "timed_out", 5: "turn_limit", 1: "failed",
}  # fmt: skip


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(FIELDS, 2)))
def test_ux_35_of_two_reasons_the_first_of_the_order_gives_the_code(first: int, second: int) -> None:
    order = (141, 130, 143, 3, 8, 4, 7, 6, 124, 5, 1)
    both = verdict.Ending(**{FIELDS[first]: True, FIELDS[second]: True})
    assert verdict.exit_code(both) == min((first, second), key=order.index)


@pytest.mark.parametrize("code", list(FIELDS))
def test_ux_31_only_success_is_no_error_and_each_code_has_its_subtype(code: int) -> None:
    ending = verdict.Ending(**{FIELDS[code]: True})
    document = verdict.result_document(ending, verdict.Tally(session_id="ses_1", on_disk=True))
    assert document["exit_code"] == code and document["is_error"]
    assert document["subtype"] == verdict.SUBTYPES[code]
    assert document["total_cost_usd"] is None


def test_ux_31_success_is_told_and_the_money_limit_has_its_own_subtype() -> None:
    assert verdict.result_document(verdict.Ending(), verdict.Tally())["is_error"] is False
    assert verdict.subtype(verdict.Ending(money_limit=True)) == "error_max_budget_usd"


def test_ux_33_no_resume_command_without_a_session_on_disk() -> None:
    given = verdict.Tally(session_id="ses_1", on_disk=False)
    assert verdict.result_document(verdict.Ending(failed=True), given)["resume_command"] is None


@pytest.mark.promise("surface:same-story")
@pytest.mark.parametrize("language", words.LANGUAGES)
@pytest.mark.parametrize("state", STATES)
def test_tr_157_the_drawn_card_and_the_card_as_data_tell_the_same_words(
    language: str, state: str | None
) -> None:
    inspection = (
        None if state is None else {"id": "ins_1", "state": state, "grade": "weak", "summary": "seen so"}
    )
    one = call(inspection=inspection)
    (as_data,) = view.with_cards(snapshot(one), language)["calls"]
    shown = "".join(plain.draw_card(view.card(one, snapshot(one), language), language, columns=100))
    flat = re.sub(r"[\s│]", "", shown)
    card = as_data["card"]
    told = [card["known"], card["notKnown"], card["next"], card["command"], card["executor"]["sentence"]]
    told += [check["sentence"] for check in card["checks"]]
    assert all(re.sub(r"\s", "", sentence) in flat for sentence in told)
    assert card["words"] == view.told(one, language)


DECIDED = [
    ({"state": "succeeded", "overlays": ["late"]}, "Started {time}. Since then: done.", False),
    ({"state": "failed", "effectTrace": "possible"},
     "Started {time}. Since then: failed; part of it may have happened.", False),
    ({"state": "not_started", "startedAt": None}, "Since then: never started.", False),
    ({"overlays": ["proven"]}, "{unknown} Since then: proved: it happened.", False),
    ({"overlays": ["confirmed"]}, "{unknown} Since then: a person said it happened.", True),
    ({"overlays": ["denied"]}, "{unknown} Since then: a person said it did not happen.", True),
    ({"overlays": ["released"]}, "{unknown} Since then: left open, fence lifted.", True),
    ({"overlays": ["rejected"]}, "{unknown} Since then: left open, still fenced.", True),
    ({"overlays": []}, "{unknown}", True),
]  # fmt: skip


@pytest.mark.parametrize("language", words.LANGUAGES)
@pytest.mark.parametrize(("change", "known", "open_question"), DECIDED)
def test_tr_149_what_is_shown_of_a_call_says_how_it_was_settled_and_no_longer_that_it_is_not_known(
    change: dict[str, Any], known: str, open_question: bool, language: str
) -> None:
    reason = {"reason": None} if change.get("state", "unknown") != "unknown" else {}
    one = call(**{**reason, **change})
    shown = view.card(one, snapshot(one), language, clock=lambda _: "12:00:00")
    assert bool(shown["notKnown"]) is open_question
    assert view.told(one, language) in shown["known"] or not change.get("overlays", True)
    if language == "en":
        unknown = "Started 12:00:00. No result was written. The process that ran it died."
        assert shown["known"] == known.format(time="12:00:00", unknown=unknown)
    drawn = "\n".join(plain.draw_card(shown, language, columns=100))
    assert (f"│ {words.say('label_not_known', language)} " in drawn) is open_question


ORIGIN = {
    "attemptId": "att_01jq0000000000000000009b2c",
    "sessionId": "ses_01jq0000000000000000001d4e",
    "state": "unknown",
    "resolution": None,
    "inspection": None,
}


def copied(language: str = "en", **seen: Any) -> dict[str, Any]:
    inspection = {**call()["inspection"], "evidence": {"origin": {**ORIGIN, **seen}}}
    origin = {"attemptId": ORIGIN["attemptId"], "sessionId": ORIGIN["sessionId"]}
    return made(language, origin=origin, inspection=inspection)


@pytest.mark.parametrize("language", words.LANGUAGES)
def test_ux_52_the_card_of_a_copy_names_the_origin_and_how_it_was_decided_there(language: str) -> None:
    for resolution, key in (("confirmed", "confirmed"), ("denied", "denied"), ("released", "released")):
        known = copied(language, resolution={"kind": resolution})["known"]
        assert "att_9b2c" in known and "ses_1d4e" in known
        assert words.state_words(key, language) in known
    assert words.say("there_open", language) in copied(language)["known"]
    assert words.state_words("succeeded", language) in copied(language, state="succeeded")["known"]


def test_ux_52_a_call_that_is_no_copy_names_no_origin() -> None:
    assert "Copied" not in made()["known"]
    named = view.with_summaries(snapshot(call()), {ATTEMPT: {"tool": "shell"}})
    assert "origin" not in named["calls"][0]
    receipt = {
        "tool": "shell",
        "originAttemptId": ORIGIN["attemptId"],
        "originSessionId": ORIGIN["sessionId"],
    }
    copy = view.with_summaries(snapshot(call()), {ATTEMPT: receipt})["calls"][0]
    assert copy["origin"] == {key: ORIGIN[key] for key in ("attemptId", "sessionId")}


@pytest.mark.parametrize("effect_class", ["READ_ONLY", "IDEMPOTENT_WRITE", "NON_IDEMPOTENT", "UNKNOWN"])
def test_ux_144_no_read_no_refusal_and_no_bad_argument_is_a_card_or_counted_as_open(
    effect_class: str,
) -> None:
    settled = [("not_started", reason) for reason in (*words.NOT_RUN, None)]
    settled += [("failed", None), ("succeeded", None), ("dispatched", None)]
    calls = [
        call(state=state, reason=reason, open=False, **{"class": effect_class}) for state, reason in settled
    ]
    opened = call(**{"class": effect_class})
    shown = view.cards(snapshot(*calls, opened), "en")
    assert len(shown) == (0 if effect_class == "READ_ONLY" else 1)


def test_ux_150_the_card_reads_at_grade_eight_at_most_and_both_chinese_texts_are_complete() -> None:
    parts = [made()[key] for key in ("known", "notKnown", "next")]
    told = re.sub(r"\S+:\S+", "it", " ".join(parts))
    sentences = [one for one in re.split(r"[.!?]\s*", told) if one.strip()]
    letters = re.findall(r"[A-Za-z]+", told)
    syllables = sum(max(1, len(re.findall(r"[aeiouy]+", word.lower().removesuffix("e")))) for word in letters)
    grade = 0.39 * len(letters) / len(sentences) + 11.8 * syllables / len(letters) - 15.59
    assert grade <= 8, grade
    for language in ("zh-Hans", "zh-Hant"):
        card = made(language)
        assert all(re.search("[\u4e00-\u9fff]", card[key]) for key in ("known", "notKnown", "next"))
