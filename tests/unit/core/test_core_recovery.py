"""The recovery table, proven total by enumeration; the fence; the barrier's verdict."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from surefoot.core import recovery
from surefoot.core.effects import UNDECLARED, Effect
from surefoot.core.guards import Guard
from surefoot.core.model import (
    BarrierLevel,
    Decision,
    EffectClass,
    ExecutorState,
    InspectionState,
    State,
)
from surefoot.core.recovery import (
    EXPLICIT_ONLY,
    TABLE,
    Asked,
    Facts,
    Intents,
    Seen,
    Standing,
    decide,
    facts_of,
    fence_reach,
    fencing,
    judge_write,
)

R, CONVERGING, U = EffectClass.READ_ONLY, EffectClass.IDEMPOTENT_WRITE, EffectClass.UNKNOWN
BOTH = (False, True)

EC_46 = {
    "succeeded": ("SKIP", "SKIP", "SKIP", "SKIP"),
    "failed": ("SKIP", "SKIP", "SKIP", "SKIP"),
    "not_started": ("SKIP", "SKIP", "SKIP", "SKIP"),
    "started": ("RETRY", "RETRY", "VERIFY", "VERIFY"),
    "unknown": ("RETRY", "RETRY", "VERIFY", "VERIFY"),
}
EC_46_ASKING = {**EC_46, "started": ("RETRY",) * 4, "unknown": ("RETRY",) * 4}
CASES = [
    (state, asks, effect_class, (EC_46_ASKING if asks else EC_46)[state][index])
    for state in EC_46
    for asks in BOTH
    for index, effect_class in enumerate(EffectClass)
]


@pytest.mark.parametrize(("state", "asks", "effect_class", "wanted"), CASES)
def test_ec_46_each_of_the_forty_cases_has_its_decision(
    state: str, asks: bool, effect_class: EffectClass, wanted: str
) -> None:
    facts = Facts(
        State(state), interaction=asks, effect_class=effect_class, executor=ExecutorState.ENDED, young=True
    )
    assert decide(facts).decision == wanted


def test_ec_46_there_are_forty_cases() -> None:
    assert len(CASES) == 40


UNSETTLED = [(State.STARTED, standing) for standing in Standing] + [(State.UNKNOWN, Standing.OPEN)]
SETTLED = [pair for pair in itertools.product(State, Standing) if pair not in UNSETTLED]
LOOKS = [(None, False), *itertools.product(InspectionState, BOTH)]
COLUMNS = (
    BOTH,
    BOTH,
    EffectClass,
    ExecutorState,
    BOTH,
    BOTH,
    BOTH,
    Intents,
    BOTH,
    LOOKS,
    (None, "gone"),
    BOTH,
)


def combinations(standings: Any, step: int = 1) -> Any:
    """All facts for these pairs of state and standing, or every `step`-th of them."""
    for pair, *rest in itertools.islice(itertools.product(standings, *COLUMNS), 0, None, step):
        look = rest.pop(9)
        yield Facts(*pair, *rest[:9], *look, *rest[9:])


def by_hand(facts: Facts) -> tuple[str, str]:
    """TR-112 once more, written as one path of questions instead of a table."""
    if facts.state not in (State.STARTED, State.UNKNOWN):
        return "SKIP", "1"
    if facts.state is State.UNKNOWN and facts.standing is not Standing.OPEN:
        return "SKIP", "1"
    if facts.tool_fault:
        return "FAIL", "2"
    if facts.interaction:
        return ("SKIP", "3") if facts.answered else ("RETRY", "4")
    if facts.inspection is InspectionState.PRESENT and facts.proof:
        return "SKIP", "5"
    if facts.open_child:
        return "ASK_USER", "5a"
    if facts.effect_class is R:
        again = facts.attempts_left and facts.executor is not ExecutorState.ALIVE
        return ("RETRY", "6") if again else ("ASK_USER", "8")
    if facts.effect_class is CONVERGING:
        calm = not facts.later_write and facts.intents is not Intents.DISTURBED
        recent = facts.young or facts.intents is Intents.UNDISTURBED
        ended = facts.executor is ExecutorState.ENDED
        return ("RETRY", "7") if facts.attempts_left and ended and calm and recent else ("ASK_USER", "8")
    if facts.inspection is None:
        return "VERIFY", "9"
    absent = facts.inspection is InspectionState.ABSENT_FENCED
    if absent and facts.retry_enabled and facts.attempts_left:
        return "RETRY", "10"
    return "ASK_USER", "11"


@pytest.mark.promise("recovery:total")
def test_tr_112_every_combination_of_facts_about_an_unsettled_call_has_exactly_one_row() -> None:
    rows: dict[str, int] = {}
    for facts in combinations(UNSETTLED):
        answer = decide(facts)
        assert (answer.decision, answer.row) == by_hand(facts), facts
        rows[answer.row] = rows.get(answer.row, 0) + 1
    assert set(rows) == {row.number for row in TABLE} - {"1"}, "a row that nothing reaches decides nothing"


def test_tr_112_a_settled_or_resolved_call_is_skipped_whatever_else_is_true() -> None:
    assert all(TABLE[0].applies(Facts(*pair)) for pair in SETTLED)
    assert not any(TABLE[0].applies(Facts(*pair)) for pair in UNSETTLED)
    for facts in combinations(SETTLED, step=101):  # prime to every column: each value of each occurs
        assert (decide(facts).decision, decide(facts).row) == by_hand(facts) == ("SKIP", "1")


def test_tr_112_the_rows_say_how_a_machine_gets_there_and_stand_in_order() -> None:
    assert [row.number for row in TABLE] == ["1", "2", "3", "4", "5", "5a", "6", "7", "8", "9", "10", "11"]
    assert all(row.how.endswith(".") and len(row.how) > 30 for row in TABLE)
    assert len({row.name for row in TABLE}) == len(TABLE)
    assert {"10"} == EXPLICIT_ONLY


def test_tr_113_a_missing_tool_fails_and_leaves_the_reason() -> None:
    answer = decide(Facts(State.UNKNOWN, tool_fault="schema_unusable"))
    assert (answer.decision, answer.reason) == (Decision.FAIL, "schema_unusable")


@pytest.mark.parametrize(
    ("young", "intents", "later", "wanted"),
    [
        (True, Intents.NONE, False, True),
        (False, Intents.UNDISTURBED, False, True),
        (False, Intents.NONE, False, False),
        (True, Intents.DISTURBED, False, False),
        (True, Intents.NONE, True, False),
        (True, Intents.UNDISTURBED, True, False),
    ],
)
def test_tr_114_a_write_is_repeated_only_while_young_or_with_intents_and_never_over_later_work(
    young: bool, intents: Intents, later: bool, wanted: bool
) -> None:
    facts = Facts(
        State.UNKNOWN,
        effect_class=CONVERGING,
        executor=ExecutorState.ENDED,
        young=young,
        intents=intents,
        later_write=later,
    )
    assert recovery.may_rerun_write(facts) is wanted
    assert decide(facts).decision is (Decision.RETRY if wanted else Decision.ASK_USER)


@pytest.mark.parametrize(
    ("boot", "age_ms", "wanted"),
    [("b1", 119_999, True), ("b1", 120_000, False), ("b2", 5, False), ("b1", -1, False), (None, 5, False)],
)
def test_tr_114_age_counts_in_boot_time_of_the_same_boot(
    tell: Any, boot: str | None, age_ms: int, wanted: bool
) -> None:
    story = tell().unknown("a", "IDEMPOTENT_WRITE", startedBoot=1000, owner={"bootId": "b1"})
    facts = facts_of(story.book.get("a"), story.book, Seen(boot_id=boot, now_boot_ms=1000 + age_ms))
    assert facts.young is wanted


def test_tr_56_two_deaths_of_one_key_leave_no_attempt(tell: Any) -> None:
    story = tell().unknown("a", "READ_ONLY")
    assert facts_of(story.book.get("a"), story.book, Seen()).attempts_left
    story.retry("b", "a", "READ_ONLY").close("b")
    facts = facts_of(story.book.get("b"), story.book, Seen(executor=ExecutorState.ENDED))
    assert not facts.attempts_left and decide(facts).decision is Decision.ASK_USER


def test_tr_56_a_retry_in_another_call_counts_the_deaths_of_the_old_one(tell: Any) -> None:
    story = tell().unknown("a").again("b", "cal_new").start("b", supersedes="a").close("b")
    assert recovery.crash_count(story.book.get("b"), story.book) == 2


def test_tr_42_a_rejected_attempt_is_skipped_and_still_fences(tell: Any) -> None:
    story = tell().unknown("a").resolve("a", "rejected")
    facts = facts_of(story.book.get("a"), story.book, Seen())
    assert (facts.standing, decide(facts).row) == (Standing.REJECTED, "1")
    assert fence_reach(story.book.open()) == ("*",)


def test_tr_112_facts_follow_the_inspection_and_the_open_child(tell: Any) -> None:
    story = tell().unknown("a").inspect("a", "present", "proof")
    assert decide(facts_of(story.book.get("a"), story.book, Seen())).row == "5"
    parent = tell().ask("p").start("p").again("c", "cal_c", "p").start("c").close("c")
    parent.close("p", reason="child_open")
    assert decide(facts_of(parent.book.get("p"), parent.book, Seen())).row == "5a"
    assert decide(facts_of(parent.book.get("c"), parent.book, Seen())).row == "9"
    parent.resolve("c", "denied")
    assert decide(facts_of(parent.book.get("p"), parent.book, Seen())).row == "1"


def test_tr_112_an_inspection_word_of_a_newer_version_is_looked_at_and_not_known(tell: Any) -> None:
    story = tell().unknown("a").inspect("a", "sideways")
    facts = facts_of(story.book.get("a"), story.book, Seen())
    assert facts.inspection is InspectionState.UNKNOWN and decide(facts).row == "11"


def test_tr_114_a_later_started_write_over_the_same_reach_is_found(tell: Any) -> None:
    story = tell().unknown("a", "IDEMPOTENT_WRITE", reach=["path:/w/a"])
    mine = story.book.get("a")
    assert not recovery.later_write(mine, story.book)
    story.ask("r").start("r", "READ_ONLY", reach=[]).ask("o").start("o", reach=["path:/x"])
    assert not recovery.later_write(mine, story.book)
    story.ask("w").start("w", "IDEMPOTENT_WRITE", reach=["path:/w"]).close("w", "succeeded")
    assert recovery.later_write(mine, story.book)


# --- the fence and the verdict ---------------------------------------------------------------

WRITE = Asked("write_file", "sha256:1", Effect(CONVERGING, ("path:/w/a",)))


def test_tr_79_the_fence_is_the_reach_of_open_writes_by_their_stricter_class(tell: Any) -> None:
    story = tell()
    story.unknown("read", "READ_ONLY", reach=[]).unknown("asks", "UNKNOWN", interaction=True)
    story.unknown("w", reach=["path:/w"]).unknown("gone", reach=["host:h"]).resolve("gone", "released")
    story.unknown("now", "READ_ONLY", reach=[], stricterNow={"class": "UNKNOWN", "reach": ["host:x"]})
    assert [one.attempt_id for one in fencing(story.book.open())] == ["w", "now"]
    assert fence_reach(story.book.open()) == ("host:x", "path:/w")


LEVELS = [
    # level, reach of the open call, same action, refused
    (BarrierLevel.SESSION, ["host:h"], False, True),
    (BarrierLevel.REACH, ["host:h"], False, False),
    (BarrierLevel.REACH, ["path:/w"], False, True),
    (BarrierLevel.REACH, ["*"], False, True),
    (BarrierLevel.ACTION, ["path:/w"], False, False),
    (BarrierLevel.ACTION, ["host:h"], True, True),
    (BarrierLevel.ADVISE, ["*"], True, False),
    (BarrierLevel.OFF, ["*"], True, False),
]


@pytest.mark.parametrize(("level", "reach", "same", "refused"), LEVELS)
def test_tr_80_the_level_decides_what_the_fence_refuses(
    tell: Any, level: BarrierLevel, reach: list[str], same: bool, refused: bool
) -> None:
    action = {"tool": "write_file", "argumentDigest": "sha256:1"} if same else {}
    story = tell().unknown("a", reach=reach, **action)
    found = judge_write(WRITE, level=level, fencing=fencing(story.book.open()))
    assert (found is not None and found.code == "fenced") is refused
    if level is not BarrierLevel.SESSION:
        undeclared = Asked("other", "sha256:2", UNDECLARED)
        wanted = level is BarrierLevel.REACH
        answer = judge_write(undeclared, level=level, fencing=fencing(story.book.open()))
        assert (answer is not None) is wanted, "an undeclared reach overlaps everything at `reach`"


@pytest.mark.promise("recovery:way-out")
@pytest.mark.parametrize("level", list(BarrierLevel))
def test_tr_81_reads_and_questions_pass_at_every_level(tell: Any, level: BarrierLevel) -> None:
    fence = fencing(tell().unknown("a").book.open())
    guard = Guard("look_first", "x")
    for effect in (Effect(R), Effect(U, ("*",), interaction=True)):
        asked = Asked("t", "d", effect, undelivered="x")
        assert judge_write(asked, level=level, fencing=fence, guard=guard, batch_stopped_by="y") is None


def test_tr_84_a_fenced_refusal_names_attempt_tool_time_reach_and_count(tell: Any) -> None:
    story = tell().unknown("att_00aa11", reach=["path:/w"], startedAt=5).unknown("att_00bb11", reach=["*"])
    found = judge_write(WRITE, level=BarrierLevel.REACH, fencing=fencing(story.book.open()))
    assert found is not None
    assert found.facts == {
        "fencedBy": "att_00aa11",
        "fencedShort": "att_aa11",
        "fencedTool": "push",
        "fencedSince": 5,
        "fencedReach": ["path:/w"],
        "fencedOthers": 1,
        "fencedLevel": "reach",
    }


def test_tr_117_an_attempt_is_not_fenced_by_the_one_it_takes_over_from(tell: Any) -> None:
    story = tell().unknown("a", reach=["path:/w"])
    again = Asked("write_file", "sha256:1", Effect(CONVERGING, ("path:/w/a",)), supersedes="a", recovery=True)
    assert judge_write(again, level=BarrierLevel.SESSION, fencing=fencing(story.book.open())) is None
    story.unknown("b", reach=["path:/w"])
    found = judge_write(again, level=BarrierLevel.REACH, fencing=fencing(story.book.open()))
    assert found is not None and found.facts["fencedBy"] == "b"


def test_tr_136_a_retry_is_not_held_back_by_calls_proven_absent(tell: Any) -> None:
    story = tell().unknown("a", reach=["path:/w"]).unknown("b", reach=["path:/w"])
    story.inspect("b", "absent_fenced", "proof")
    retry = Asked("t", "d", Effect(CONVERGING, ("path:/w",)), supersedes="a", recovery=True)
    assert judge_write(retry, level=BarrierLevel.REACH, fencing=fencing(story.book.open())) is None
    plain = Asked("t", "d", Effect(CONVERGING, ("path:/w",)))
    assert judge_write(plain, level=BarrierLevel.REACH, fencing=fencing(story.book.open())) is not None


def test_tr_92_an_identical_write_whose_state_is_there_is_answered_and_any_other_is_fenced(tell: Any) -> None:
    story = tell().unknown("a", reach=["path:/w"], tool="write_file", argumentDigest="sha256:1")
    fence = fencing(story.book.open())
    there = Asked("write_file", "sha256:1", Effect(CONVERGING, ("path:/w/a",)), satisfied=frozenset({"a"}))
    other = Asked("write_file", "sha256:2", Effect(CONVERGING, ("path:/w/a",)), satisfied=frozenset({"a"}))
    answers = [judge_write(asked, level=BarrierLevel.REACH, fencing=fence) for asked in (there, other, WRITE)]
    assert [answer.code for answer in answers if answer] == ["postcondition_satisfied", "fenced", "fenced"]


GUARDS = [
    (BarrierLevel.SESSION, True),
    (BarrierLevel.REACH, True),
    (BarrierLevel.ACTION, True),
    (BarrierLevel.ADVISE, False),
    (BarrierLevel.OFF, False),
]


@pytest.mark.parametrize(("level", "holds"), GUARDS)
@pytest.mark.parametrize("code", ["confirmed_effect", "look_first"])
def test_tr_91_tr_209_guards_hold_except_at_advise_and_off(
    code: str, level: BarrierLevel, holds: bool
) -> None:
    found = judge_write(WRITE, level=level, fencing=[], guard=Guard(code, "att_1"))
    assert (found is not None) is holds
    if found is not None:
        assert (found.code, found.facts) == (code, {"guardedBy": "att_1"})


@pytest.mark.parametrize("level", list(BarrierLevel))
def test_tr_89_the_batch_rule_holds_at_every_level_but_off(level: BarrierLevel) -> None:
    found = judge_write(WRITE, level=level, fencing=[], batch_stopped_by="att_1")
    assert (found is None) is (level is BarrierLevel.OFF)
    if found is not None:
        assert (found.code, found.facts) == ("batch_dependency", {"stoppedBy": "att_1"})


def test_the_refusals_have_one_order(tell: Any) -> None:
    fence = fencing(tell().unknown("a").book.open())
    guard = Guard("look_first", "g")
    everything: dict[str, Any] = {"guard": guard, "batch_stopped_by": "s"}
    undelivered = Asked("t", "d", UNDECLARED, undelivered="u")
    plain = Asked("t", "d", UNDECLARED)
    level = BarrierLevel.REACH
    codes = [
        judge_write(undelivered, level=level, fencing=fence, **everything),
        judge_write(plain, level=level, fencing=fence, **everything),
        judge_write(plain, level=level, fencing=[], **everything),
        judge_write(plain, level=level, fencing=[], batch_stopped_by="s"),
        judge_write(plain, level=level, fencing=[]),
    ]
    found = [None if one is None else one.code for one in codes]
    assert found == ["answered_from_receipt", "fenced", "look_first", "batch_dependency", None]


def test_a_refusals_facts_never_bear_the_name_of_a_receipts_field(tell: Any) -> None:
    names = set(tell().unknown("a").book.get("a").to_json())
    fence = fencing(tell().unknown("a").book.open())
    asked = Asked("t", "d", UNDECLARED, undelivered="u")
    for found in (
        judge_write(asked, level=BarrierLevel.REACH, fencing=fence),
        judge_write(Asked("t", "d", UNDECLARED), level=BarrierLevel.REACH, fencing=fence),
        judge_write(WRITE, level=BarrierLevel.REACH, fencing=[], guard=Guard("look_first", "g")),
        judge_write(WRITE, level=BarrierLevel.REACH, fencing=[], batch_stopped_by="s"),
    ):
        assert found is not None and not names & set(found.facts)


def test_tr_80_advise_tells_which_calls_would_have_held_it_back(tell: Any) -> None:
    fence = fencing(tell().unknown("a", reach=["path:/w"]).unknown("b", reach=["host:h"]).book.open())
    assert [one.attempt_id for one in recovery.advised(WRITE, fence)] == ["a"]
    assert recovery.advised(Asked("t", "d", Effect(R)), fence) == []


def test_the_verdict_looks_at_open_calls_only(tell: Any) -> None:
    story = tell()
    for number in range(200):
        story.unknown(f"s{number}").resolve(f"s{number}", "released")
    story.unknown("last", reach=["host:h"])
    assert len(story.book.open()) == 1
    assert judge_write(WRITE, level=BarrierLevel.REACH, fencing=fencing(story.book.open())) is None
