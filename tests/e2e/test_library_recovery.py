"""Decisions of a program about its own calls: the same JSON, codes and rules as everywhere."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path
from typing import Any

import pytest

import surefoot

REACH = ["host:bank.example"]
SINGLE = ("sessionPath", "runtimeEpoch", "revision")


def lose(label: str) -> None:
    raise surefoot.OutcomeUnknown("the reply was lost")


def unknown(session: Any, label: str = "a") -> str:
    guarded = session.guard(lose, effect="NON_IDEMPOTENT", reach=REACH, name=f"lose_{label}")
    with pytest.raises(surefoot.OutcomeUnknown) as raised:
        guarded(label=label)
    return str(raised.value.facts["attempt_id"])


def request(session: Any, attempt: str, action: str, **changed: Any) -> dict[str, Any]:
    shown = session.recovery.snapshot()
    row = next(call for call in shown["calls"] if call["attemptId"] == attempt)
    looked = {} if action in ("inspect", "release") else {"inspectionId": row["inspectionId"]}
    return {
        **{key: shown[key] for key in SINGLE},
        "attemptId": attempt,
        "action": action,
        **looked,
        **changed,
    }


@pytest.fixture
def session(tmp_path: Path) -> Any:
    with surefoot.open(tmp_path, ledger=tmp_path / "home") as ledger, ledger.session() as owned:
        yield owned


@pytest.mark.parametrize("action", ["confirm", "deny", "reject", "release"])
def test_tr_154_ux_106_a_program_decides_with_the_json_of_every_surface(session: Any, action: str) -> None:
    attempt = unknown(session)
    looked = session.recovery.act(request(session, attempt, "inspect"), by="maria")
    assert looked["calls"][0]["arguments"] == '{"label":"a"}' and looked["calls"][0]["inspectionId"]
    done = session.recovery.act(request(session, attempt, action, note="seen"), by="maria")
    assert done == session.recovery.snapshot(), "the answer is the new snapshot"
    record = done["calls"][0]["resolution"]
    assert (record["who"], record["channel"], record["method"]) == ("maria", "python", "call")
    assert (record["letInBy"], record["note"]) == ("os_user", "seen")
    assert [call["open"] for call in done["calls"]] == [action == "reject"]
    with pytest.raises(surefoot.RecoveryRefused) as again:
        session.recovery.act(request(session, attempt, action), by="maria")
    assert again.value.facts["code"] == "already_resolved"
    assert again.value.facts["record"] == record
    assert again.value.facts["revision"] == done["revision"] and again.value.facts["runtimeEpoch"]


@pytest.mark.parametrize(
    ("changed", "status_code"),
    [
        ({"arguments": "{}"}, "unknown_field"),
        ({"note": "x" * 501}, "bad_request"),
        ({"note": object()}, "bad_request"),
        ({"note": "x" * 20_000}, "body_too_large"),
        ({"action": "undo"}, "unknown_action"),
        ({"action": ["confirm"]}, "unknown_action"),
        ({"attemptId": None}, "bad_request"),
        ({"sessionPath": "led_x/ses_x"}, "session_mismatch"),
        ({"runtimeEpoch": "0"}, "epoch_stale"),
        ({"revision": None}, "revision_stale"),
        ({"attemptId": "att_00000000000000000000000000"}, "attempt_unknown"),
        ({"inspectionId": None}, "inspection_required"),
        ({"inspectionId": "ins_x"}, "inspection_stale"),
        ({"action": "retry"}, "retry_disabled"),
        ({"items": []}, "bad_request"),
    ],
)
def test_tr_154_tr_125_a_refusal_raises_with_its_code_and_sentence_and_changes_nothing(
    session: Any, changed: dict[str, Any], status_code: str
) -> None:
    attempt = unknown(session)
    session.recovery.act(request(session, attempt, "inspect"), by="maria")
    before = session.recovery.snapshot()
    with pytest.raises(surefoot.RecoveryRefused) as refused:
        session.recovery.act(request(session, attempt, "confirm"), by="maria", **changed)
    assert refused.value.facts["code"] == status_code
    assert str(refused.value) and str(refused.value) != status_code
    assert session.recovery.snapshot() == before


def test_tr_154_tr_132_several_calls_are_decided_in_one_request(session: Any) -> None:
    attempts = [unknown(session, label) for label in ("a",)]
    shown = session.recovery.snapshot()
    asked = {key: shown[key] for key in SINGLE} | {"action": "release"}
    items = [{"attemptId": one} for one in attempts]
    done = session.recovery.act(asked, items=items, by="maria")
    assert done["statistics"]["released"] == 1 and done["statistics"]["unknown"] == 0


@pytest.mark.parametrize("by", ["", "  ", None])
def test_ux_106_a_decision_without_a_name_is_refused(session: Any, by: Any) -> None:
    attempt = unknown(session)
    with pytest.raises(surefoot.UsageError, match="by"):
        session.recovery.act(request(session, attempt, "release"), by=by)
    with pytest.raises(TypeError):
        session.recovery.act(request(session, attempt, "release"))
    assert session.recovery.snapshot()["calls"][0]["open"]


@pytest.mark.parametrize("threaded", [False, True])
def test_ux_106_tr_130_code_inside_a_guarded_function_decides_nothing(session: Any, threaded: bool) -> None:
    attempt = unknown(session)
    codes: list[str] = []

    def press() -> None:
        try:
            session.recovery.act(request(session, attempt, "release"), by="maria")
        except surefoot.RecoveryRefused as refused:
            codes.append(f"{refused.facts['code']}/{refused.facts['reason']}")

    def meddle() -> None:
        if not threaded:
            return press()
        thread = threading.Thread(target=press)
        thread.start()
        thread.join()

    session.guard(meddle, effect="READ_ONLY")()
    assert codes == ["person_required/inside_tool_body"]
    assert session.recovery.snapshot()["calls"][0]["open"]


def test_tr_154_tr_146_a_choice_about_a_process_is_answered_in_the_same_form(session: Any) -> None:
    attempt = unknown(session)
    asked = request(session, attempt, "release")
    del asked["action"]
    with pytest.raises(surefoot.RecoveryRefused) as refused:
        session.recovery.process(asked, choice="kill", by="maria")
    assert refused.value.facts["code"] == "process_missing"
    with pytest.raises(surefoot.RecoveryRefused) as malformed:
        session.recovery.process(asked, choice="burn", by="maria")
    assert malformed.value.facts["code"] == "bad_request"


async def test_tr_154_an_async_program_awaits_its_decisions(tmp_path: Path) -> None:
    async def losing() -> None:
        raise surefoot.OutcomeUnknown("the reply was lost")

    async with surefoot.open(tmp_path, ledger=tmp_path / "home") as ledger, ledger.session() as session:
        with pytest.raises(surefoot.OutcomeUnknown) as raised:
            await session.guard(losing, effect="NON_IDEMPOTENT", reach=REACH)()
        attempt = raised.value.facts["attempt_id"]
        with pytest.raises(surefoot.RecoveryRefused):
            await session.recovery.act(request(session, attempt, "confirm"), by="maria")
        await session.recovery.act(request(session, attempt, "inspect"), by="maria")
        done = await session.recovery.act(**request(session, attempt, "deny"), by="maria")
        assert done["calls"][0]["resolution"]["kind"] == "denied"


def test_tr_154_tr_138_a_retry_begins_on_proof_and_settles_before_the_session_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUREFOOT_TOOL_RECOVERY_RETRY", "1")

    class Absent:
        name, far = "absent", False

        def recovery_scope(self, call: Any) -> str:
            return "here"

        def inspect_effect(self, key: str, call: Any, deadline: Any, *, fenced: bool) -> Any:
            return surefoot.Observation("absent", surefoot.Grade.PROOF, fenced=fenced)

    tries: list[str] = []

    def pay(attempt: Any = None) -> str:
        tries.append(attempt.idempotency_key)
        if len(tries) == 1:
            raise surefoot.OutcomeUnknown("the reply was lost")
        return "paid"

    with surefoot.open(tmp_path, ledger=tmp_path / "home") as ledger:
        with ledger.session() as session:
            guarded = session.guard(pay, effect="NON_IDEMPOTENT", reach=REACH, verifier=Absent())
            with pytest.raises(surefoot.OutcomeUnknown) as raised:
                guarded()
            attempt = raised.value.facts["attempt_id"]
            session.recovery.act(request(session, attempt, "inspect"), by="maria")
            session.recovery.act(request(session, attempt, "retry"), by="maria")
        with ledger.session(session.id) as again:
            shown = again.recovery.snapshot()
            assert shown["statistics"]["retried"] == 1 and not again.open_calls()
    assert len(tries) == 2 and len(set(tries)) == 1, "the new attempt carries the old key"


def pays(session: Any, ran: list[str], *, verifier: Any = None) -> Any:
    def pay(label: str) -> str:
        ran.append(label)
        raise surefoot.OutcomeUnknown("the reply was lost")

    return session.guard(pay, effect="NON_IDEMPOTENT", reach=REACH, verifier=verifier)


@pytest.mark.parametrize("action", ["confirm", "deny", "reject", "release"])
def test_tr_31_tr_45_a_call_asked_for_again_under_its_identity_tells_what_was_decided(
    tmp_path: Path, action: str
) -> None:
    ran: list[str] = []
    with surefoot.open(tmp_path, ledger=tmp_path / "home") as ledger:
        with ledger.session() as session:
            with pytest.raises(surefoot.OutcomeUnknown) as raised:
                pays(session, ran)(label="a", identity="order 17")
            attempt = str(raised.value.attempt_id)
            session.recovery.act(request(session, attempt, "inspect"), by="maria")
            session.recovery.act(request(session, attempt, action), by="maria")
            session_id = session.id
        with ledger.session(session_id) as session:  # also for a process that comes later
            again = pays(session, ran)
            if action == "confirm":
                told = again(label="a", identity="order 17")
                assert isinstance(told, surefoot.Happened) and "A person said that it happened" in told
                assert told.receipt["attemptId"] == attempt
                assert told.receipt["resolution"]["who"] == "maria" and told.receipt["result"] is None
                copy = pickle.loads(pickle.dumps(told))
                assert (copy, copy.receipt) == (told, told.receipt)
            else:
                with pytest.raises(surefoot.OutcomeUnknown):
                    again(label="a", identity="order 17")
            assert ran == ["a"] * (2 if action == "deny" else 1), "only what did not happen runs again"


def test_tr_31_tr_101_a_call_that_a_look_proved_is_told_as_proved_and_runs_no_second_time(
    tmp_path: Path,
) -> None:
    class Sees:
        name, far = "sees", False

        def recovery_scope(self, call: Any) -> str:
            return "bank"

        def inspect_effect(self, key: str, call: Any, deadline: Any, *, fenced: bool) -> Any:
            return surefoot.Observation(
                "present", grade=surefoot.Grade.PROOF, summary="the payment is listed"
            )

    ran: list[str] = []
    with surefoot.open(tmp_path, ledger=tmp_path / "home") as ledger, ledger.session() as session:
        pay = pays(session, ran, verifier=Sees())
        with pytest.raises(surefoot.OutcomeUnknown) as raised:
            pay(label="a", identity="order 17")
        assert raised.value.inspect()["grade"] == "proof"
        told = pay(label="a", identity="order 17")
        assert isinstance(told, surefoot.Happened) and "the payment is listed" in told and ran == ["a"]
