"""The receipt state machine: legal moves, the fold, what is open, what is counted."""

from __future__ import annotations

import dataclasses
import itertools
import json
from typing import Any

import pytest

from surefoot.core.lifecycle import LEGAL, Book, advance, receipt_from_json, refusal
from surefoot.core.model import EffectClass, EffectTrace, Entry, Kind, Overlay, Receipt, State

LEGAL_PAIRS = {
    ("dispatched", "not_started"),
    ("dispatched", "started"),
    ("dispatched", "unknown"),
    ("started", "succeeded"),
    ("started", "failed"),
    ("started", "unknown"),
}


def receipt(state: State, **more: Any) -> Receipt:
    return Receipt("ses_1", "trn_1", "cal_1", "att_1", 0, state=state, **more)


def entry_for(target: State) -> tuple[str, dict[str, Any]]:
    if target is State.NOT_STARTED:
        return Kind.NOT_STARTED, {"attemptId": "att_1"}
    if target is State.STARTED:
        return Kind.STARTED, {"attemptId": "att_1"}
    if target is State.DISPATCHED:
        return Kind.DISPATCHED, {"attemptId": "att_1"}
    return Kind.CLOSED, {"attemptId": "att_1", "state": target.value}


@pytest.mark.promise("receipt:exact")
@pytest.mark.parametrize(("before", "after"), list(itertools.product(State, repeat=2)))
def test_tr_37_every_pair_of_states_is_legal_exactly_as_listed(before: State, after: State) -> None:
    kind, payload = entry_for(after)
    refused = refusal(receipt(before), kind, payload)
    assert (refused is None) is ((before.value, after.value) in LEGAL_PAIRS)


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("word", ["started", "dispatched", "not_started", None])
def test_tr_37_a_close_can_only_name_an_end(state: State, word: str | None) -> None:
    payload = {"attemptId": "att_1"} if word is None else {"attemptId": "att_1", "state": word}
    assert refusal(receipt(state), Kind.CLOSED, payload) is not None


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("kind", [Kind.RESOLVED, Kind.INSPECTED, Kind.LATE])
def test_tr_37_overlays_lie_on_unknown_only(state: State, kind: str) -> None:
    payload = {"attemptId": "att_1", "resolution": {"kind": "confirmed"}, "state": "succeeded"}
    assert (refusal(receipt(state), kind, payload) is None) is (state is State.UNKNOWN)


@pytest.mark.parametrize("state", list(State))
def test_tr_37_delivered_is_said_of_ended_calls_only(state: State) -> None:
    ended = state in (State.SUCCEEDED, State.FAILED, State.UNKNOWN)
    assert (refusal(receipt(state), Kind.DELIVERED, {"attemptId": "att_1"}) is None) is ended


def test_tr_2_an_update_that_names_another_call_or_attempt_is_refused() -> None:
    started = receipt(State.STARTED)
    assert refusal(None, Kind.CLOSED, {"attemptId": "att_9", "state": "failed"}) == "attempt_unknown"
    assert refusal(started, Kind.CLOSED, {"state": "failed", "callId": "cal_2"}) == "call_mismatch"
    assert refusal(started, Kind.DISPATCHED, {}) == "attempt_exists"


def test_tr_2_no_payload_can_change_the_identity_of_a_receipt(tell: Any) -> None:
    story = tell().ask("att_1")
    story.start("att_1", sessionId="ses_x", callId="cal_x", turnId="trn_x", position=9, parentAttemptId="p")
    found = story.book.get("att_1")
    assert found is not None
    assert (found.session_id, found.call_id, found.turn_id, found.position) == (
        "ses_1",
        "cal_att_1",
        "trn_1",
        0,
    )
    assert found.parent_attempt_id is None


def test_tr_8_a_state_of_a_newer_version_reads_as_unknown_and_is_left_alone() -> None:
    newer = receipt_from_json(
        {**receipt(State.STARTED).to_json(), "state": "half_done", "moon": {"phase": 1}}
    )
    assert newer.state is State.UNKNOWN
    assert newer.extra == {"state": "half_done", "moon": {"phase": 1}}
    for kind in (Kind.RESOLVED, Kind.CLOSED, Kind.LATE, Kind.INSPECTED, Kind.PROCESS):
        assert refusal(newer, kind, {"state": "failed", "resolution": {"kind": "denied"}}) == "newer_state"


def test_tr_8_fields_unknown_to_this_version_survive_reading_and_appending(tell: Any) -> None:
    story = tell().ask("att_1")
    story.start("att_1", moon=1)
    story.close("att_1", "succeeded", tide="high")
    found = story.book.get("att_1")
    assert found is not None and (found.extra["moon"], found.extra["tide"]) == (1, "high")
    assert receipt_from_json(json.loads(json.dumps(found.to_json()))).extra == found.extra


def test_tr_8_an_entry_of_an_unknown_kind_or_attempt_changes_nothing(tell: Any) -> None:
    story = tell().unknown("att_1")
    before = list(story.book)
    story.add("attempt.levitated", attemptId="att_1", height=3)
    story.add(Kind.CLOSED, attemptId="att_other", state="failed")
    assert list(story.book) == before


def test_tr_3_every_field_of_a_receipt_is_present_in_its_json_and_reads_back() -> None:
    full = receipt(
        State.UNKNOWN,
        effect_class=EffectClass.IDEMPOTENT_WRITE,
        effect_trace=EffectTrace.POSSIBLE,
        reach=("path:/a",),
        overlays=(Overlay.LATE,),
        late=({"state": "failed"},),
        notes=("arguments_absent",),
    )
    shown = full.to_json()
    assert receipt_from_json(json.loads(json.dumps(shown))) == full
    wanted = [
        "sessionId",
        "turnId",
        "callId",
        "attemptId",
        "position",
        "providerCallId",
        "parentAttemptId",
        "originAttemptId",
        "tool",
        "askedName",
        "arguments",
        "argumentsDisplay",
        "argumentDigest",
        "class",
        "reach",
        "scope",
        "interaction",
        "check",
        "stricterNow",
        "idempotencyKey",
        "keyExpiresAt",
        "epoch",
        "owner",
        "deadlineAt",
        "deadlineBoot",
        "dispatchedAt",
        "startedAt",
        "startedBoot",
        "finishedAt",
        "state",
        "reason",
        "errorKind",
        "effectTrace",
        "result",
        "resultRef",
        "resultDigest",
        "late",
        "delivered",
        "writeIntents",
        "process",
        "executor",
        "inspection",
        "resolution",
        "supersededBy",
        "supersedes",
        "approval",
        "ladder",
    ]
    assert set(wanted) <= set(shown)


def test_tr_11_absent_arguments_are_an_empty_text(tell: Any) -> None:
    story = tell()
    call = {"callId": "c", "attemptId": "a", "position": 0, "askedName": "x", "arguments": None}
    story.add(Kind.ASSISTANT, turnId="trn_1", calls=[call])
    found = story.book.get("a")
    assert found is not None and found.arguments == ""


def test_tr_3_times_are_kept_and_an_unknown_end_has_none(tell: Any) -> None:
    story = tell().unknown("a")
    story.ask("b").start("b", startedAt=7).close("b", "succeeded", finishedAt=9)
    story.ask("c").start("c").close("c", "failed")
    story.ask("d").start("d").close("d", "unknown", reason="time_limit", finishedAt=9)
    a, b, c, d = (story.book.get(name) for name in "abcd")
    assert a is not None and b is not None and c is not None and d is not None
    assert (a.started_at, a.finished_at) == (2000, None)
    assert d.finished_at is None, "when somebody judged it is no time at which it ended"
    assert (b.started_at, b.finished_at) == (7, 9)
    assert c.finished_at == 9000


# --- what is open (TR-42) --------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["confirmed", "denied", "released"])
def test_tr_42_a_resolution_closes_and_a_rejection_does_not(tell: Any, kind: str) -> None:
    story = tell().unknown("a").unknown("b")
    assert story.open() == ["a", "b"]
    story.resolve("a", "rejected")
    assert story.open() == ["a", "b"]
    story.resolve("a", kind)
    assert story.open() == ["b"]


def test_tr_42_evidence_with_proof_closes_and_weaker_evidence_does_not(tell: Any) -> None:
    story = tell().unknown("a").inspect("a", "present", "strong")
    assert story.open() == ["a"]
    story.inspect("a", "present", "proof", proven=True)
    assert story.open() == []


SUCCESSORS = [
    ("started", False),
    ("unknown", False),
    ("succeeded", False),
    ("failed", True),
]


@pytest.mark.parametrize(("state", "reopened"), SUCCESSORS)
def test_tr_42_a_successor_stands_for_both_unless_it_ended_otherwise(
    tell: Any, state: str, reopened: bool
) -> None:
    story = tell().unknown("a").retry("b", "a")
    if state != "started":
        story.close("b", state)
    assert ("a" in story.open()) is reopened
    assert ("b" in story.open()) is (state == "unknown")


@pytest.mark.parametrize("kind", ["confirmed", "denied", "released"])
def test_tr_42_a_resolution_of_the_successor_covers_both(tell: Any, kind: str) -> None:
    story = tell().unknown("a").retry("b", "a").close("b").resolve("b", kind)
    assert story.open() == []


@pytest.mark.parametrize("state", ["failed", "unknown", "succeeded"])
def test_tr_42_a_superseded_read_or_a_fenced_absence_never_opens_again(tell: Any, state: str) -> None:
    read = tell().unknown("a", "READ_ONLY").retry("b", "a", "READ_ONLY").close("b", state)
    assert "a" not in read.open()
    absent = tell().unknown("a").inspect("a", "absent_fenced", "proof").retry("b", "a").close("b", state)
    assert "a" not in absent.open()


def test_tr_42_a_chain_of_retries_follows_its_last_link(tell: Any) -> None:
    story = tell().unknown("a").retry("b", "a").close("b").retry("c", "b")
    assert story.open() == []
    story.close("c", "failed", effectTrace="none")
    assert story.open() == ["b"], "b is as unknown as before, and stands for a"
    story.resolve("b", "released")
    assert story.open() == []


def test_tr_42_a_late_end_of_a_middle_link_opens_what_it_stood_for(tell: Any) -> None:
    story = tell().unknown("a").retry("b", "a").close("b").late("b", "failed")
    assert story.open() == ["a"]
    other = tell().unknown("a").retry("b", "a").close("b").late("b", "succeeded")
    assert other.open() == []


def test_tr_42_after_a_failed_retry_the_old_call_can_be_retried_again(tell: Any) -> None:
    story = tell().unknown("a").retry("b", "a").close("b", "failed")
    assert story.book.refusal(Kind.STARTED, {"attemptId": "b", "supersedes": "a"})  # b itself is over
    story.retry("c", "a").close("c", "succeeded")
    assert story.open() == []


def test_tr_35_tr_42_a_parent_is_open_as_long_as_a_child_and_so_are_all_its_ancestors(tell: Any) -> None:
    story = tell().ask("top").start("top").again("mid", "cal_m", "top").start("mid")
    story.again("low", "cal_l", "mid").start("low").close("low")
    story.close("mid", reason="child_open").close("top", reason="child_open")
    assert story.open() == ["top", "mid", "low"]
    story.retry("low2", "low")
    assert story.open() == []
    story.close("low2", "failed")
    assert story.open() == ["top", "mid", "low"], "the child opened again, and with it all above"
    story.resolve("low", "confirmed")
    assert story.open() == []


def test_tr_42_a_successor_nobody_knows_closes_nothing() -> None:
    orphan = receipt(State.UNKNOWN, superseded_by="att_gone", overlays=(Overlay.SUPERSEDED,))
    assert Book([orphan]).is_open("att_1")


# --- late results (TR-43) --------------------------------------------------------------------


@pytest.mark.parametrize("state", ["succeeded", "failed"])
def test_tr_43_a_late_result_of_its_own_executor_settles_with_the_truth(tell: Any, state: str) -> None:
    story = tell().unknown("a").late("a", state, result={"text": "ok", "isError": False}, effectTrace="done")
    found = story.book.get("a")
    assert found is not None and found.state.value == state
    assert found.reason is None and found.result == {"text": "ok", "isError": False}
    assert found.has(Overlay.LATE) and story.open() == []


@pytest.mark.parametrize(
    ("state", "settles"), [("succeeded", False), ("unknown", True), ("odd", True), (None, True)]
)
def test_tr_43_what_came_from_elsewhere_or_is_unknown_itself_settles_nothing(
    tell: Any, state: str | None, settles: bool
) -> None:
    story = tell().unknown("a")
    story.add(Kind.LATE, attemptId="a", state=state, settles=settles, result={"text": "x", "isError": False})
    found = story.book.get("a")
    assert found is not None and found.state is State.UNKNOWN and found.result is None
    assert len(found.late) == 1 and story.open() == ["a"]


def test_tr_43_a_second_late_result_after_the_truth_is_refused(tell: Any) -> None:
    story = tell().unknown("a").late("a", "succeeded")
    assert story.book.refusal(Kind.LATE, {"attemptId": "a", "state": "failed", "settles": True}) is not None


# --- refusals of the book --------------------------------------------------------------------


def test_tr_131_of_two_equal_decisions_the_second_makes_no_record(tell: Any) -> None:
    story = tell().unknown("a").resolve("a", "confirmed")
    for kind in ("confirmed", "denied", "rejected", "released"):
        assert story.book.refusal(Kind.RESOLVED, {"attemptId": "a", "resolution": {"kind": kind}})


def test_tr_190_a_rejected_call_can_be_resolved_otherwise_once(tell: Any) -> None:
    story = tell().unknown("a").resolve("a", "rejected")

    def refused(kind: str) -> str | None:
        return story.book.refusal(Kind.RESOLVED, {"attemptId": "a", "resolution": {"kind": kind}})

    assert refused("rejected") == "already_resolved"
    assert refused("released") is None
    assert refused("blessed") == "unknown_resolution"


def test_tr_42_what_a_successor_stands_for_cannot_be_resolved_beside_it(tell: Any) -> None:
    story = tell().unknown("a").retry("b", "a")
    payload = {"attemptId": "a", "resolution": {"kind": "denied"}, "inspection": {"state": "unknown"}}
    assert story.book.refusal(Kind.RESOLVED, payload) == "already_resolved"
    assert story.book.refusal(Kind.INSPECTED, payload) == "already_resolved"


@pytest.mark.parametrize("kind", ["confirmed", "denied", "released"])
def test_tr_137_a_retry_of_a_resolved_or_superseded_attempt_starts_nothing(tell: Any, kind: str) -> None:
    story = tell().unknown("a").resolve("a", kind).again("b", "cal_a")
    assert story.book.refusal(Kind.STARTED, {"attemptId": "b", "supersedes": "a"}) == "nothing_to_supersede"
    taken = tell().unknown("a").retry("b", "a").again("c", "cal_a")
    assert taken.book.refusal(Kind.STARTED, {"attemptId": "c", "supersedes": "a"}) == "nothing_to_supersede"
    assert taken.book.refusal(Kind.STARTED, {"attemptId": "c", "supersedes": "x"}) == "nothing_to_supersede"
    assert taken.book.refusal(Kind.STARTED, {"attemptId": "c"}) is None


def test_tr_1_an_attempt_id_is_dispatched_once(tell: Any) -> None:
    story = tell().ask("a")
    assert story.book.refusal(Kind.ASSISTANT, {"calls": [{"attemptId": "a"}]}) == "attempt_exists"
    assert story.book.refusal(Kind.DISPATCHED, {"attemptId": "a"}) == "attempt_exists"
    assert story.book.refusal(Kind.USER, {}) is None


# --- order of facts, counts ------------------------------------------------------------------


def test_tr_125_an_inspection_is_overtaken_by_a_later_fact_and_renewed_by_a_later_look(tell: Any) -> None:
    story = tell().unknown("a").inspect("a", "unknown")
    assert not story.book.inspection_overtaken("a")
    story.add(Kind.PROCESS, attemptId="a", process={"pid": 4}, executor={"state": "ended"})
    assert story.book.inspection_overtaken("a")
    story.inspect("a", "unknown")
    assert not story.book.inspection_overtaken("a")
    story.late("a", "unknown", settles=False)
    assert story.book.inspection_overtaken("a")


@pytest.mark.parametrize(
    ("told", "stale"),
    [
        ({"process": {"left": {"who": "lin"}}}, False),
        ({"process": {"left": {"who": "lin"}}, "executor": {"state": "ended"}}, True),
        ({"process": {"killed": {"who": "lin", "gone": True}}}, True),
        ({"executor": {"state": "ended"}}, True),
    ],
)
def test_tr_71_tr_125_leaving_a_process_alone_makes_no_inspection_old_and_ending_it_does(
    tell: Any, told: dict[str, Any], stale: bool
) -> None:
    story = tell().unknown("a").inspect("a", "unknown")
    story.add(Kind.PROCESS, attemptId="a", **told)
    assert story.book.inspection_overtaken("a") is stale


def test_tr_66_process_records_are_merged_key_by_key(tell: Any) -> None:
    story = tell().ask("a")
    story.start("a", process={"folder": "/r"})
    story.add(Kind.PROCESS, attemptId="a", process={"pid": 4}, executor={"state": "alive"})
    found = story.book.get("a")
    assert found is not None
    assert (found.process, found.executor) == ({"folder": "/r", "pid": 4}, {"state": "alive"})


def test_tr_158_counts_equal_a_recount_by_hand(tell: Any) -> None:
    story = tell()
    for name in "abcdefg":
        story.unknown(name)
    story.resolve("a", "confirmed").resolve("b", "denied").resolve("c", "rejected").resolve("c", "released")
    story.inspect("d", "present", "proof", proven=True).late("e", "succeeded")
    story.retry("f2", "f")
    story.ask("n").add(Kind.NOT_STARTED, attemptId="n", reason="fenced")
    assert story.book.statistics() == {
        "unknown": 1,
        "confirmed": 1,
        "denied": 1,
        "retried": 1,
        "rejected": 1,
        "released": 1,
        "proven": 1,
        "late": 1,
        "blocked": 1,
    }
    assert story.refold().statistics() == story.book.statistics()


def test_resolved_ones_are_listed_in_the_order_of_their_resolution(tell: Any) -> None:
    story = tell().unknown("a").unknown("b").unknown("c").resolve("b", "denied").resolve("a", "released")
    assert [one.attempt_id for one in story.book.resolved()] == ["b", "a"]


def test_tr_50_a_dispatched_call_whose_tail_was_lost_is_unknown_and_open(tell: Any) -> None:
    story = tell().ask("a").close("a", reason="ledger_tail_lost")
    assert story.open() == ["a"]


def test_advance_is_pure() -> None:
    before = receipt(State.DISPATCHED)
    copy = dataclasses.replace(before)
    advance(before, Entry("ses_1", 1, 1, 5, Kind.STARTED, {"attemptId": "att_1", "class": "UNKNOWN"}))
    assert before == copy and State.STARTED in LEGAL[before.state]


@pytest.mark.promise("recovery:never-guess")
@pytest.mark.parametrize("state", ["unknown", "postcondition_satisfied", "absent_fenced", "present"])
def test_tr_101_no_look_short_of_proof_changes_a_state_or_opens_a_fence(tell: Any, state: str) -> None:
    story = tell().unknown("a").inspect("a", state, "strong")
    found = story.book.get("a")
    assert found is not None and found.state is State.UNKNOWN and found.overlays == ()
    assert story.open() == ["a"]


@pytest.mark.promise("recovery:never-guess")
def test_tr_153_what_the_model_reports_or_says_changes_no_receipt(tell: Any) -> None:
    story = tell().unknown("a")
    before = list(story.book)
    story.add(Kind.REPORTED, attemptId="a", finding="it was done, I am certain", grade="weak", reads=[])
    story.add(Kind.ASSISTANT, turnId="t", text="The push succeeded.", calls=[], raw={}, wire="chat")
    story.add(Kind.USER, turnId="t", text="it happened")
    assert list(story.book) == before and story.open() == ["a"]
