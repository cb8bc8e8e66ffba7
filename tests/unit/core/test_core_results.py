"""What the model is told about a call, in every state, overlay and refusal."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from surefoot.core import results
from surefoot.core.effects import UNDECLARED
from surefoot.core.model import BarrierLevel, EffectClass, EffectTrace, Overlay, Receipt, State
from surefoot.core.recovery import Asked, fencing, judge_write
from surefoot.core.results import NOT_STARTED, WHY_UNKNOWN, Told, refusal_text, result_of

BANNED = re.compile(
    r"\b(done|failed|error|interrupted|aborted|cancell?ed|timed out|rejected|succeeded|not run|did not run)\b",
    re.I,
)


def receipt(state: State, **more: Any) -> Receipt:
    given: dict[str, Any] = {
        "tool": "git_push",
        "started_at": 1_772_366_467_000,
        "effect_class": EffectClass.NON_IDEMPOTENT,
        "reach": ("repo:h.example/o/n",),
        **more,
    }
    return Receipt("ses_1", "trn_1", "cal_1", "att_1", 0, state=state, **given)


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize(
    "overlays",
    list(itertools.chain.from_iterable(itertools.combinations(Overlay, size) for size in range(4))),
)
def test_tr_44_a_result_exists_for_every_state_and_set_of_overlays(state: State, overlays: Any) -> None:
    bare = Receipt("s", "t", "c", "a", 0, state=state, overlays=tuple(overlays))
    full = receipt(state, overlays=tuple(overlays), inspection={"state": "present", "summary": "seen"})
    for one in (bare, full):
        told = result_of(one)
        assert isinstance(told, Told) and told.text
        assert told == result_of(one), "the same receipt gives the same bytes"


@pytest.mark.promise("receipt:exact")
@pytest.mark.parametrize("reason", [*WHY_UNKNOWN, None, "a_new_reason"])
@pytest.mark.parametrize(
    "overlay", [None, Overlay.REJECTED, Overlay.LATE, Overlay.SUPERSEDED, Overlay.RELEASED]
)
@pytest.mark.parametrize("effect_class", list(EffectClass))
def test_tr_44_ux_63_an_unknown_call_is_told_without_a_word_of_success_or_failure(
    reason: str | None, overlay: Overlay | None, effect_class: EffectClass
) -> None:
    overlays = () if overlay is None else (overlay,)
    told = result_of(receipt(State.UNKNOWN, reason=reason, overlays=overlays, effect_class=effect_class))
    assert not BANNED.search(told.text), told.text


@pytest.mark.parametrize("reason", list(WHY_UNKNOWN))
def test_tr_44_the_text_says_started_why_not_known_may_have_happened_and_what_to_do(reason: str) -> None:
    text = result_of(receipt(State.UNKNOWN, reason=reason)).text
    assert "git_push started at 2026-03-01 12:01:07 UTC (attempt att_1)" in text
    assert WHY_UNKNOWN[reason] in text
    assert "may have happened" in text
    assert "repo:h.example/o/n" in text and "reading goes on" in text
    assert "read-only" in text and "`recovery`" in text and "surefoot recover att_1" in text


def test_tr_41_every_reason_of_the_closed_list_has_its_words() -> None:
    assert set(WHY_UNKNOWN) == {
        "cancelled", "time_limit", "connection_lost", "process_signal", "undecided_exception", "owner_died",
        "child_open", "ledger_tail_lost", "declared", "no_evidence",
    }  # fmt: skip
    assert set(NOT_STARTED) == {
        "arguments_invalid", "tool_missing", "schema_unusable", "permission_denied", "approval_expired", "fenced",
        "confirmed_effect", "look_first", "answered_from_receipt", "postcondition_satisfied", "batch_dependency",
        "hook_refused", "receipt_not_durable", "lease_lost", "truncated_call", "duplicate_call", "hook_unstable",
        "ledger_file", "deadline_too_short", "cancelled_before_start", "owner_died_before_start",
        "retry_target_changed",
    }  # fmt: skip


def test_tr_50_a_call_that_may_never_have_started_is_not_said_to_have() -> None:
    text = result_of(receipt(State.UNKNOWN, reason="ledger_tail_lost", started_at=None)).text
    assert "may have started" in text


def test_tr_47_a_stored_result_is_given_back_unchanged() -> None:
    for text in ("", "ok\n", "error: looks bad but is not"):
        assert result_of(receipt(State.SUCCEEDED, result={"text": text, "isError": False})) == Told(
            text, False
        )
    failed = receipt(
        State.FAILED, result={"text": "no such file", "isError": True}, effect_trace=EffectTrace.NONE
    )
    assert result_of(failed) == Told("no such file", True)


def test_tr_6_a_result_in_a_blob_is_given_from_the_blob_and_its_absence_is_said() -> None:
    big = receipt(State.SUCCEEDED, result_ref="sha256:ab")
    assert result_of(big, stored={"sha256:ab": "long text"}).text == "long text"
    assert "sha256:ab" in result_of(big).text and not result_of(big).is_error


@pytest.mark.parametrize(
    ("effect_class", "trace", "check", "warned"),
    [
        ("NON_IDEMPOTENT", "possible", False, True),
        ("UNKNOWN", "possible", False, True),
        ("UNKNOWN", "possible", True, False),
        ("UNKNOWN", "none", False, False),
        ("IDEMPOTENT_WRITE", "possible", False, False),
        ("READ_ONLY", "none", False, False),
    ],
)
def test_tr_209_a_failed_write_that_may_have_left_something_says_so(
    effect_class: str, trace: str, check: bool, warned: bool
) -> None:
    one = receipt(
        State.FAILED,
        effect_class=EffectClass(effect_class),
        effect_trace=EffectTrace(trace),
        check=check,
        result={"text": "exit 1", "isError": True},
    )
    told = result_of(one)
    assert told.is_error and (results.PART_MAY_HAVE_HAPPENED in told.text) is warned
    assert results.failed_text(told.text, one) == told.text, "adding it twice changes nothing"


@pytest.mark.parametrize("reason", ["never_ran", "changed_underneath", None])
def test_tr_39_a_failure_without_text_says_what_is_known(reason: str | None) -> None:
    told = result_of(
        receipt(State.FAILED, reason=reason, error_kind="exit_code", effect_trace=EffectTrace.NONE)
    )
    assert told.is_error and told.text


@pytest.mark.parametrize(
    ("overlay", "says"),
    [
        (Overlay.CONFIRMED, "A person said that it happened"),
        (Overlay.DENIED, "A person said that it did not happen"),
        (Overlay.PROVEN, "it was proved that it happened"),
        (Overlay.RELEASED, "A person lifted the fence"),
        (Overlay.REJECTED, "left it open"),
    ],
)
def test_tr_45_a_persons_word_and_evidence_are_told_as_such_and_make_no_output(
    overlay: Overlay, says: str
) -> None:
    one = receipt(
        State.UNKNOWN, overlays=(overlay,), inspection={"summary": "refs equal", "state": "present"}
    )
    text = result_of(one).text
    assert says in text
    if overlay in (Overlay.CONFIRMED, Overlay.PROVEN):
        assert results.NO_OUTPUT in text
    if overlay is Overlay.PROVEN:
        assert "refs equal" in text


# --- several attempts (TR-44) ----------------------------------------------------------------

UNKNOWN = receipt(State.UNKNOWN, reason="owner_died")
DID_NOTHING = receipt(
    State.FAILED, effect_trace=EffectTrace.NONE, result={"text": "refused", "isError": True}
)
LEFT_PART = receipt(State.FAILED, effect_trace=EffectTrace.POSSIBLE, result={"text": "half", "isError": True})
WELL = receipt(State.SUCCEEDED, result={"text": "ok", "isError": False})


@pytest.mark.parametrize(
    ("attempts", "speaks"),
    [
        ([UNKNOWN, DID_NOTHING], UNKNOWN),
        ([LEFT_PART, DID_NOTHING], LEFT_PART),
        ([UNKNOWN, LEFT_PART], UNKNOWN),
        ([UNKNOWN, WELL], WELL),
        ([WELL, DID_NOTHING], WELL),
        ([DID_NOTHING, LEFT_PART, DID_NOTHING], LEFT_PART),
        ([receipt(State.UNKNOWN, overlays=(Overlay.DENIED,)), LEFT_PART], LEFT_PART),
        ([receipt(State.UNKNOWN, overlays=(Overlay.SUPERSEDED,)), DID_NOTHING], None),
    ],
)
def test_tr_44_a_call_is_told_by_the_strictest_of_its_attempts(attempts: list[Receipt], speaks: Any) -> None:
    assert result_of(attempts[-1], attempts) == result_of(speaks or attempts[0])


def test_tr_44_a_superseded_read_is_told_by_its_successor() -> None:
    read = receipt(State.UNKNOWN, effect_class=EffectClass.READ_ONLY, overlays=(Overlay.SUPERSEDED,))
    assert results.speaking([read, DID_NOTHING]) is DID_NOTHING
    absent = receipt(State.UNKNOWN, inspection={"state": "absent_fenced"}, overlays=(Overlay.SUPERSEDED,))
    assert results.speaking([absent, DID_NOTHING]) is DID_NOTHING


# --- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [*NOT_STARTED, "a_new_code"])
def test_tr_41_every_refusal_has_a_text_without_facts(code: str) -> None:
    text = refusal_text(code, {})
    assert text.strip() and "None" not in text


def test_tr_84_ux_5_the_fence_names_attempt_reach_a_way_out_and_what_still_works(tell: Any) -> None:
    story = tell().unknown("att_00000000007f3a", reach=["repo:h.example/o/n"], startedAt=1_772_366_467_000)
    found = judge_write(
        Asked("t", "d", UNDECLARED), level=BarrierLevel.REACH, fencing=fencing(story.book.open())
    )
    assert found is not None
    text = refusal_text(found.code, found.facts)
    for part in (
        "att_00000000007f3a", "push", "2026-03-01 12:01:07 UTC", "repo:h.example/o/n", "Reading goes on",
        "writing elsewhere", "`recovery`", "`surefoot recover att_7f3a`", "ask the person", "lift the fence",
    ):  # fmt: skip
        assert part in text
    assert not BANNED.search(text)
    assert "fenced" in results.NOT_A_TOOL_ERROR


@pytest.mark.parametrize(
    ("level", "reach", "works"),
    [("session", ["path:/a"], "asking the person"), ("reach", ["*"], "asking the person"),
     ("action", ["*"], "every other action"), ("reach", ["path:/a"], "writing elsewhere")],
)  # fmt: skip
def test_ux_5_what_still_works_is_never_overstated(level: str, reach: list[str], works: str) -> None:
    facts = {
        "fencedBy": "att_1",
        "fencedTool": "t",
        "fencedReach": reach,
        "fencedLevel": level,
        "fencedOthers": 2,
    }
    text = refusal_text("fenced", facts)
    assert works in text and "2 more open calls" in text


def test_tr_33_a_duplicate_points_to_the_first() -> None:
    assert "cal_7" in refusal_text("duplicate_call", {"original": "cal_7"})


def test_tr_23_a_refusal_keeps_the_text_it_was_given() -> None:
    one = receipt(
        State.NOT_STARTED, reason="arguments_invalid", result={"text": "line 1: bad", "isError": True}
    )
    assert result_of(one) == Told("line 1: bad", True)
    bare = receipt(State.NOT_STARTED, reason="fenced")
    assert not result_of(bare).is_error


def test_tr_23_a_refusal_that_could_not_be_written_reads_as_not_started() -> None:
    one = results.unwritten(receipt(State.DISPATCHED), "receipt_not_durable", "disk full")
    assert (one.state, one.reason) == (State.NOT_STARTED, "receipt_not_durable")
    assert result_of(one) == Told("disk full", True)


@pytest.mark.parametrize(
    "at_ms", [0, 951_782_400_000, 1_772_366_467_000, 4_102_444_799_999, 1_709_164_800_000]
)
def test_times_are_told_in_utc_like_a_calendar_does(at_ms: int) -> None:
    assert results.clock_text(at_ms) == datetime.fromtimestamp(at_ms / 1000, UTC).strftime(
        "%Y-%m-%d %H:%M:%S UTC"
    )
