"""The rules of the six actions, one by one and in their order."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from surefoot.core.admission import (
    NEEDS_INSPECTION,
    RESOLVING,
    UNKNOWN_ATTEMPT,
    AttemptFacts,
    Controls,
    Press,
    RetryFacts,
    admit,
    attempt_facts,
    costs_code,
    key_alive,
    offered,
    retry_refusal,
)
from surefoot.core.effects import judged_effect
from surefoot.core.model import Action, EffectClass, ExecutorState

READY = RetryFacts(enabled=True, verifier_present=True)
LOOKED = AttemptFacts(
    inspection_id="ins_1", inspection_state="absent_fenced", executor=ExecutorState.ENDED, retry=READY
)
IDLE = Controls()


def press(action: Action = Action.CONFIRM, **more: Any) -> Press:
    return Press(action, inspection_id="ins_1", **more)


def code(one: Press, controls: Controls = IDLE, attempt: AttemptFacts = LOOKED) -> str | None:
    return admit(one, controls, attempt).code


@pytest.mark.parametrize("action", list(Action))
def test_tr_124_a_looked_at_open_call_admits_every_action(action: Action) -> None:
    answer = admit(press(action), IDLE, LOOKED)
    assert (answer.code, answer.parked, answer.status) == (None, False, 200)


BROKEN: list[tuple[int, str, dict[str, Any], Controls, dict[str, Any]]] = [
    (5, "session_mismatch", {"session_matches": False}, IDLE, {}),
    (6, "finishing", {}, Controls("finishing"), {}),
    (6, "rotating", {}, Controls("rotating"), {}),
    (6, "closed", {}, Controls("closed"), {}),
    (6, "running", {"bulk": True}, Controls("running"), {}),
    (7, "not_owner", {}, Controls(ownership="not_owner"), {}),
    (7, "lease_lost", {}, Controls(ownership="lease_lost"), {}),
    (8, "epoch_stale", {"epoch_current": False}, IDLE, {}),
    (8, "revision_stale", {"revision": "missing"}, IDLE, {}),
    (8, "revision_stale", {"revision": "stale", "bulk": True}, IDLE, {}),
    (9, "attempt_unknown", {}, IDLE, {"known": False}),
    (9, "already_resolved", {}, IDLE, {"open": False}),
    (10, "person_required", {"not_a_person": "inside_tool_body"}, IDLE, {}),
    (11, "inspection_required", {"inspection_id": None}, IDLE, {}),
    (11, "inspection_required", {}, IDLE, {"inspection_id": None}),
    (11, "inspection_stale", {"inspection_id": "ins_0"}, IDLE, {}),
    (11, "inspection_stale", {}, IDLE, {"overtaken": True}),
]


@pytest.mark.parametrize(("rule", "wanted", "changed", "controls", "facts"), BROKEN)
def test_tr_125_each_rule_refuses_with_its_code(
    rule: int, wanted: str, changed: dict[str, Any], controls: Controls, facts: dict[str, Any]
) -> None:
    answer = admit(dataclasses.replace(press(), **changed), controls, dataclasses.replace(LOOKED, **facts))
    assert (answer.code, answer.rule, answer.status, answer.parked) == (wanted, rule, 409, False)


def test_tr_125_the_first_rule_that_refuses_answers() -> None:
    everything_wrong = press(
        session_matches=False, epoch_current=False, revision="missing", not_a_person="code_missing"
    )
    repaired: list[tuple[str, Press, Controls, AttemptFacts]] = []
    controls, attempt = Controls("closed", "not_owner"), UNKNOWN_ATTEMPT
    one = everything_wrong
    repaired.append(("session_mismatch", one, controls, attempt))
    one = dataclasses.replace(one, session_matches=True)
    repaired.append(("closed", one, controls, attempt))
    controls = Controls("idle", "not_owner")
    repaired.append(("not_owner", one, controls, attempt))
    controls = IDLE
    repaired.append(("epoch_stale", one, controls, attempt))
    one = dataclasses.replace(one, epoch_current=True)
    repaired.append(("revision_stale", one, controls, attempt))
    one = dataclasses.replace(one, revision="current")
    repaired.append(("attempt_unknown", one, controls, attempt))
    attempt = AttemptFacts(executor=ExecutorState.ALIVE)
    repaired.append(("person_required", one, controls, attempt))
    one = dataclasses.replace(one, not_a_person=None, action=Action.DENY)
    repaired.append(("inspection_required", one, controls, attempt))
    attempt = dataclasses.replace(attempt, inspection_id="ins_1")
    repaired.append(("executor_alive", one, controls, attempt))
    for wanted, given, at, facts in repaired:
        assert code(given, at, facts) == wanted


def test_ux_65_a_person_required_names_its_reason() -> None:
    answer = admit(press(not_a_person="descendant_of_tool"), IDLE, LOOKED)
    assert (answer.code, answer.reason) == ("person_required", "descendant_of_tool")
    assert admit(press(), IDLE, LOOKED).reason is None


@pytest.mark.parametrize("action", list(Action))
def test_tr_210_tr_127_while_a_turn_runs_resolutions_are_parked_and_a_local_look_passes(
    action: Action,
) -> None:
    answer = admit(press(action), Controls("running"), LOOKED)
    if action in RESOLVING:
        assert (answer.code, answer.parked) == (None, True)
    elif action is Action.INSPECT:
        assert (answer.code, answer.parked) == (None, False)
        far = dataclasses.replace(LOOKED, verifiers_local=False)
        assert code(press(action), Controls("running"), far) == "running"
    else:
        assert answer.code == "running"


def test_tr_210_a_press_that_would_be_refused_is_not_parked() -> None:
    alive = dataclasses.replace(LOOKED, executor=ExecutorState.ALIVE)
    assert code(press(Action.DENY), Controls("running"), alive) == "executor_alive"


@pytest.mark.parametrize("action", list(Action))
def test_tr_125_a_stale_revision_refuses_retry_and_no_other_single_press(action: Action) -> None:
    wanted = "revision_stale" if action is Action.RETRY else None
    assert code(press(action, revision="stale")) == wanted


@pytest.mark.parametrize("action", list(Action))
def test_tr_124_inspect_and_release_need_no_inspection(action: Action) -> None:
    wanted = "inspection_required" if action in NEEDS_INSPECTION else None
    never_looked = dataclasses.replace(LOOKED, inspection_id=None)
    assert code(Press(action), IDLE, never_looked) == wanted
    assert (action in (Action.INSPECT, Action.RELEASE)) is (wanted is None)


def test_tr_125_a_rejected_call_is_rejected_once_and_still_admits_the_others() -> None:
    rejected = dataclasses.replace(LOOKED, rejected=True)
    assert code(press(Action.REJECT), IDLE, rejected) == "already_resolved"
    assert code(press(Action.CONFIRM), IDLE, rejected) is None
    assert code(press(Action.RETRY), IDLE, rejected) == "retry_rejected"


@pytest.mark.parametrize("executor", list(ExecutorState))
def test_tr_208_deny_is_refused_while_the_executor_lives(executor: ExecutorState) -> None:
    attempt = dataclasses.replace(LOOKED, executor=executor)
    wanted = "executor_alive" if executor is ExecutorState.ALIVE else None
    assert code(press(Action.DENY), IDLE, attempt) == wanted


RETRIES: list[tuple[str, dict[str, Any], dict[str, Any], bool]] = [
    # code, change of retry facts, change of attempt facts, refuses a read too
    ("retry_disabled", {"enabled": False}, {}, True),
    ("retry_at_origin", {"at_origin": False}, {}, True),
    ("retry_attempts_spent", {"attempts_left": False}, {}, True),
    ("retry_rejected", {}, {"rejected": True}, True),
    ("retry_executor_alive", {}, {"executor": ExecutorState.ALIVE}, True),
    ("retry_executor_alive", {}, {"executor": ExecutorState.NOT_PROVEN}, True),
    ("retry_tool_missing", {"tool_present": False}, {}, True),
    ("retry_verifier_missing", {"verifier_present": False}, {}, False),
    ("retry_scope_changed", {"scope_unchanged": False}, {}, False),
    ("retry_key_expired", {"key_alive": False}, {}, False),
    ("retry_effect_not_absent", {"absent_now": False}, {}, False),
    ("retry_effect_not_absent", {}, {"inspection_state": "unknown"}, False),
]


@pytest.mark.parametrize(("wanted", "retry", "facts", "reads_too"), RETRIES)
def test_tr_133_tr_134_tr_135_retry_has_one_code_per_missing_condition(
    wanted: str, retry: dict[str, Any], facts: dict[str, Any], reads_too: bool
) -> None:
    write = dataclasses.replace(LOOKED, retry=dataclasses.replace(READY, **retry), **facts)
    assert retry_refusal(write) == wanted
    read = dataclasses.replace(write, effect_class=EffectClass.READ_ONLY)
    assert retry_refusal(read) == (wanted if reads_too else None)


def test_tr_135_a_look_at_this_moment_outweighs_the_stored_inspection() -> None:
    seen = dataclasses.replace(
        LOOKED, retry=dataclasses.replace(READY, absent_now=True), inspection_state="unknown"
    )
    assert retry_refusal(seen) is None


def test_tr_142_the_offered_actions_are_those_a_press_would_be_admitted_with() -> None:
    for controls in (IDLE, Controls("running"), Controls("closed"), Controls(ownership="not_owner")):
        for attempt in (LOOKED, AttemptFacts(), UNKNOWN_ATTEMPT, dataclasses.replace(LOOKED, open=False)):
            shown = offered(controls, attempt)
            assert [one["action"] for one in shown] == [action.value for action in Action]
            for one in shown:
                pressed = Press(Action(one["action"]), inspection_id=attempt.inspection_id)
                assert one["code"] == code(pressed, controls, attempt)
                assert one["enabled"] is (one["code"] is None)


def test_tr_139_the_example_of_the_specification_is_offered_so() -> None:
    attempt = AttemptFacts(executor=ExecutorState.ALIVE)
    codes = {one["action"]: one["code"] for one in offered(IDLE, attempt)}
    assert codes == {
        "inspect": None,
        "confirm": "inspection_required",
        "deny": "inspection_required",
        "reject": "inspection_required",
        "release": None,
        "retry": "inspection_required",
    }


@pytest.mark.promise("recovery:way-out")
def test_tr_87_from_every_open_state_of_an_idle_session_some_action_leads_out() -> None:
    for executor in ExecutorState:
        for rejected in (False, True):
            for state in (None, "present", "unknown", "absent_fenced", "postcondition_satisfied"):
                attempt = AttemptFacts(
                    rejected=rejected,
                    executor=executor,
                    inspection_state=state,
                    inspection_id="ins_1" if state else None,
                )
                ways = {one["action"] for one in offered(IDLE, attempt) if one["enabled"]}
                assert {"inspect", "release"} <= ways


def test_attempt_facts_follow_the_book(tell: Any) -> None:
    story = tell().unknown("a").inspect("a", "present", "strong").resolve("a", "rejected")
    story.add("attempt.process", attemptId="a", process={"pid": 1})
    facts = attempt_facts(story.book.get("a"), story.book, executor=ExecutorState.ENDED)
    assert (facts.open, facts.rejected, facts.overtaken, facts.inspection_state) == (
        True,
        True,
        True,
        "present",
    )
    assert facts.effect_class is EffectClass.NON_IDEMPOTENT and facts.inspection_id is not None


# --- codes to be typed (UX-74) ---------------------------------------------------------------

CODES = [
    # action, inspection, executor, class, code needed
    ("confirm", ("present", "proof"), "ended", "UNKNOWN", False),
    ("confirm", ("present", "strong"), "ended", "UNKNOWN", False),
    ("confirm", ("postcondition_satisfied", "strong"), "ended", "NON_IDEMPOTENT", False),
    ("confirm", ("present", "weak"), "ended", "NON_IDEMPOTENT", True),
    ("confirm", ("unknown", "none"), "ended", "UNKNOWN", True),
    ("confirm", ("absent_fenced", "proof"), "ended", "UNKNOWN", True),
    ("confirm", ("unknown", "none"), "ended", "IDEMPOTENT_WRITE", False),
    ("deny", ("absent_fenced", "proof"), "ended", "UNKNOWN", False),
    ("deny", ("unknown", "none"), "ended", "UNKNOWN", True),
    ("deny", ("present", "weak"), "ended", "IDEMPOTENT_WRITE", False),
    ("release", ("present", "proof"), "ended", "UNKNOWN", True),
    ("release", ("unknown", "none"), "ended", "IDEMPOTENT_WRITE", False),
    ("release", ("unknown", "none"), "alive", "READ_ONLY", True),
    ("release", ("unknown", "none"), "not_proven", "IDEMPOTENT_WRITE", True),
    ("reject", ("unknown", "none"), "alive", "UNKNOWN", False),
    ("inspect", ("unknown", "none"), "alive", "UNKNOWN", False),
]


@pytest.mark.parametrize(("action", "look", "executor", "effect_class", "wanted"), CODES)
def test_ux_74_deciding_against_or_beyond_the_evidence_costs_a_code(
    tell: Any, action: str, look: tuple[str, str], executor: str, effect_class: str, wanted: bool
) -> None:
    receipt = tell().unknown("a", effect_class).inspect("a", *look).book.get("a")
    effect, inspection = judged_effect(receipt).effect_class, receipt.inspection
    assert costs_code(Action(action), effect, inspection, ExecutorState(executor)) is wanted


HOUR, DAY = 3_600_000, 86_400_000
AGES = [
    # lifetime, age, clock behind, alive
    (HOUR, 0, False, True),
    (HOUR, HOUR * 9 // 10 - 1, False, True),
    (HOUR, HOUR * 9 // 10, False, False),
    (DAY, DAY - HOUR - 1, False, True),
    (DAY, DAY - HOUR, False, False),
    (DAY, None, False, False),
    (DAY, -1, False, False),
    (DAY, 0, True, False),
]


@pytest.mark.parametrize(("lifetime", "age", "behind", "alive"), AGES)
def test_tr_18_a_key_counts_as_expired_early_and_in_doubt(
    lifetime: int, age: int | None, behind: bool, alive: bool
) -> None:
    assert key_alive(lifetime_ms=lifetime, age_ms=age, clock_behind=behind) is alive


def test_tr_210_at_a_border_a_resolution_is_recorded_at_once_and_a_retry_still_waits_for_idle() -> None:
    border = Controls("running", at_border=True)
    for action in RESOLVING:
        assert admit(press(action), border, LOOKED).parked is False
        assert code(press(action), border) is None
    assert code(press(Action.RETRY), border) == "running"
    assert code(press(bulk=True), border) == "running"
