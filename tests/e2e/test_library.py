"""surefoot inside somebody's own program: real ledger, real threads, real deaths."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import surefoot

PROGRAM = """
import os, sys, signal, surefoot
def charge(amount: int, attempt=None):
    with open("effects", "a") as effects:
        effects.write(attempt.idempotency_key + "\\n")
    if os.environ.get("DIE"):
        os.kill(os.getpid(), signal.SIGKILL)
    return {"charged": amount}
with surefoot.open(ledger=sys.argv[1]) as ledger:
    with ledger.session(sys.argv[2] if len(sys.argv) > 2 else None) as session:
        print(session.id, flush=True)
        pay = session.guard(charge, effect="NON_IDEMPOTENT", reach=["host:bank.example"])
        try:
            print(pay(amount=5, identity="order-17"))
        except surefoot.OutcomeUnknown as unknown:
            print("UNKNOWN", unknown.facts["attempt_id"], unknown.facts["cause"])
"""


def _run(folder: Path, *arguments: str, die: bool = False) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, **({"DIE": "1"} if die else {})}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder / "home"), *arguments],
        cwd=folder, env=environ, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_a_guarded_function_runs_once_and_gives_its_stored_result_on_a_second_pass(tmp_path: Path) -> None:
    first = _run(tmp_path)
    assert first.returncode == 0, first.stderr
    session_id, result = first.stdout.split("\n")[:2]
    second = _run(tmp_path, session_id)
    assert second.stdout.split("\n")[1] == result == "{'charged': 5}"
    assert len((tmp_path / "effects").read_text().splitlines()) == 1


def test_tr_31_ux_101_a_guarded_function_killed_after_its_effect_is_unknown_and_not_run_again(
    tmp_path: Path,
) -> None:
    killed = _run(tmp_path, die=True)
    assert killed.returncode == -signal.SIGKILL
    again = _run(tmp_path, killed.stdout.strip())
    assert again.returncode == 0, again.stderr
    assert again.stdout.split("\n")[1].split()[0::2] == ["UNKNOWN", "owner_died"]
    assert len((tmp_path / "effects").read_text().splitlines()) == 1


async def test_an_async_program_meets_fence_failure_and_success_as_values_and_exceptions(
    tmp_path: Path,
) -> None:
    async def lose(label: str) -> str:
        raise surefoot.OutcomeUnknown("the reply was lost")

    async def note(label: str) -> str:
        return label

    async with surefoot.open(tmp_path, ledger=tmp_path / "home") as ledger, ledger.session() as session:
        reach = ["host:bank.example"]
        losing = session.guard(lose, effect="NON_IDEMPOTENT", reach=reach)
        writing = session.guard(note, effect="IDEMPOTENT_WRITE", reach=reach)
        elsewhere = session.guard(
            note, effect="IDEMPOTENT_WRITE", reach=["host:other.example"], name="elsewhere"
        )
        reading = session.guard(note, effect="READ_ONLY", name="reading")
        with pytest.raises(surefoot.OutcomeUnknown) as unknown:
            await losing(label="a")
        assert not unknown.value.retryable
        assert any("surefoot recover" in line for line in unknown.value.__notes__)
        with pytest.raises(surefoot.WriteFenced):
            await writing(label="b")
        assert await elsewhere(label="c") == "c"
        assert await reading(label="d") == "d"
        assert [call["tool"] for call in session.open_calls()] == ["lose"]
        with pytest.raises(surefoot.ToolError, match="label"):
            await elsewhere(wrong=1)


def test_ux_102_an_unknown_outcome_is_no_error_that_retry_settings_list() -> None:
    others = (TimeoutError, ConnectionError, OSError, RuntimeError)
    assert not issubclass(surefoot.OutcomeUnknown, others)


async def test_ux_102_the_original_error_is_the_cause(tmp_path: Path) -> None:
    async def torn(label: str) -> str:
        raise ConnectionResetError("reset by the bank")

    async def wrong(label: str) -> str:
        raise surefoot.ToolError("no such account", effect_trace="none")

    async with surefoot.open(tmp_path, ledger=tmp_path / "home") as ledger, ledger.session() as session:
        with pytest.raises(surefoot.OutcomeUnknown) as unknown:
            await session.guard(torn, effect="NON_IDEMPOTENT", reach=["host:bank"])(label="a")
        assert isinstance(unknown.value.__cause__, ConnectionResetError)
        with pytest.raises(surefoot.ToolError) as failed:
            await session.guard(wrong, effect="READ_ONLY")(label="a")
        assert str(failed.value.__cause__).startswith("no such account")


def test_ux_102_the_original_error_of_a_blocking_function_is_the_cause(tmp_path: Path) -> None:
    def torn(label: str) -> str:
        raise ConnectionResetError("reset by the bank")

    with surefoot.open(tmp_path, ledger=tmp_path / "home") as ledger, ledger.session() as session:
        with pytest.raises(surefoot.OutcomeUnknown) as unknown:
            session.guard(torn, effect="NON_IDEMPOTENT", reach=["host:bank"])(label="a")
        assert isinstance(unknown.value.__cause__, ConnectionResetError)


def test_the_facade_is_small_and_every_name_of_it_exists() -> None:
    assert len(surefoot.__all__) <= 45
    for name in surefoot.__all__:
        assert getattr(surefoot, name) is not None


async def test_tr_6_a_large_result_comes_back_from_its_blob_whole_also_on_a_second_pass(
    tmp_path: Path,
) -> None:
    ran = []

    async def large(size: int) -> str:
        ran.append(size)
        return "x" * size

    async with surefoot.open(tmp_path, ledger=tmp_path / "home") as ledger, ledger.session() as session:
        guarded = session.guard(large, effect="READ_ONLY")
        for _ in range(2):
            assert await guarded(size=1_500_000, identity="one") == "x" * 1_500_000
    assert ran == [1_500_000]


async def test_two_functions_under_one_name_are_refused_and_no_built_in_tool_is_met(tmp_path: Path) -> None:
    async def write(path: str) -> str:
        return path

    async with surefoot.open(tmp_path, ledger=tmp_path / "home") as ledger, ledger.session() as session:
        assert await session.guard(write, effect="READ_ONLY")(path="a") == "a"
        with pytest.raises(surefoot.UsageError, match="write"):
            session.guard(write, effect="READ_ONLY")


SAID_BY_IT = (
    "attempt_id",
    "session_id",
    "tool",
    "effect_class",
    "reach",
    "started_at",
    "cause",
    "idempotency_key",
)


def holds_the_facts(unknown: surefoot.OutcomeUnknown) -> None:
    receipt, card = unknown.receipt, unknown.as_dict()
    told = {name: getattr(unknown, name) for name in SAID_BY_IT}
    assert told == {
        "attempt_id": receipt["attemptId"],
        "session_id": receipt["sessionId"],
        "tool": "lose",
        "effect_class": "NON_IDEMPOTENT",
        "reach": ["host:a"],
        "started_at": receipt["startedAt"],
        "cause": "declared",
        "idempotency_key": receipt["idempotencyKey"],
    }
    assert (card["attemptId"], card["state"], card["known"] != "") == (receipt["attemptId"], "unknown", True)
    assert unknown.checks == card["checks"] == []


def lose(label: str) -> str:
    raise surefoot.OutcomeUnknown("the reply was lost")


def test_tr_154_ux_101_an_unknown_outcome_carries_receipt_and_card_and_looks_but_decides_nothing(
    tmp_path: Path,
) -> None:
    with surefoot.open(tmp_path, ledger=tmp_path / "home") as ledger, ledger.session() as session:
        losing = session.guard(lose, effect="NON_IDEMPOTENT", reach=["host:a"])
        with pytest.raises(surefoot.OutcomeUnknown) as caught:
            losing(label="a")
        holds_the_facts(caught.value)
        seen = caught.value.inspect()
        assert (seen["state"], seen["reason"]) == ("unknown", "no_verifier")
        assert session.open_calls()[0]["inspectionId"] == seen["id"]
        again = pickle.loads(pickle.dumps(caught.value))
        holds_the_facts(again)
        with pytest.raises(surefoot.UsageError, match="surefoot recover inspect"):
            again.inspect()
    words = {"confirm", "deny", "reject", "release", "retry", "act"}
    assert not words & set(dir(caught.value))


async def test_tr_154_ux_101_in_an_async_program_the_look_is_awaited(tmp_path: Path) -> None:
    async with surefoot.open(tmp_path, ledger=tmp_path / "home") as ledger, ledger.session() as session:
        losing = session.guard(lose, effect="NON_IDEMPOTENT", reach=["host:a"])
        with pytest.raises(surefoot.OutcomeUnknown) as caught:
            await losing(label="a")
        holds_the_facts(caught.value)
        with pytest.raises(surefoot.UsageError, match="ainspect"):
            caught.value.inspect()
        assert (await caught.value.ainspect())["reason"] == "no_verifier"


def test_ux_101_one_that_a_tool_raises_has_no_facts_yet() -> None:
    raised = surefoot.OutcomeUnknown("the reply was lost")
    assert (raised.receipt, raised.attempt_id, raised.as_dict(), raised.checks) == (None, None, {}, [])


def _lost(label: str) -> str:
    raise surefoot.OutcomeUnknown("the reply was lost")


def test_tr_9_tr_35_a_guarded_call_inside_another_is_a_part_of_it_and_keeps_it_from_being_finished(
    tmp_path: Path,
) -> None:
    with surefoot.open(tmp_path, ledger=tmp_path / "home") as ledger, ledger.session() as session:
        plus = session.guard(lambda n: n + 1, effect="READ_ONLY", name="plus")
        lost = session.guard(_lost, effect="NON_IDEMPOTENT", reach=["host:bank"])

        def both(n: int) -> int:
            found = []
            beside = threading.Thread(target=lambda: found.append(plus(n=n)))
            beside.start()
            beside.join()
            return int(found[0] + plus(n=n))

        def hiding(label: str) -> str:
            with contextlib.suppress(surefoot.OutcomeUnknown):
                lost(label=label)
            return "all is well"

        assert session.guard(both)(n=1) == 4  # both reach everything, and neither waits for the other
        with pytest.raises(surefoot.OutcomeUnknown) as unknown:
            session.guard(hiding, effect="NON_IDEMPOTENT", reach=["host:shop"])(label="a")
        assert unknown.value.facts["cause"] == "child_open"
        shown = session.recovery.snapshot()
        child = next(call for call in shown["calls"] if call["tool"] == "_lost")
        named = {key: shown[key] for key in ("sessionPath", "runtimeEpoch", "revision")}
        session.recovery.act(by="Lin", attemptId=child["attemptId"], action="release", **named)
        assert session.open_calls() == [], "the parent is open only as long as its child is"


async def test_tr_9_an_async_call_inside_another_names_its_parent(tmp_path: Path) -> None:
    async with surefoot.open(tmp_path, ledger=tmp_path / "home") as ledger, ledger.session() as session:

        async def refuse(label: str) -> str:
            raise surefoot.ToolError("no such account", effect_trace="none")

        async def outer(attempt: surefoot.LiveAttempt) -> list[str]:
            with pytest.raises(surefoot.ToolError) as failed:
                await session.guard(refuse, effect="READ_ONLY")(label="a")
            return [attempt.attempt_id, failed.value.facts["receipt"]["parentAttemptId"]]

        own, parent = await session.guard(outer, effect="READ_ONLY")()
        assert own == parent


FORKING = """
import os, sys, surefoot
with surefoot.open(ledger=sys.argv[1]) as ledger:
    with ledger.session() as session:
        look = session.guard(lambda n: n, effect="READ_ONLY", name="look")
        look(n=1)
        child = os.fork()
        if child == 0:
            for use in (lambda: look(n=2), session.recovery.snapshot):
                try:
                    use()
                except surefoot.LedgerError as error:
                    print(error.code, flush=True)
        else:
            os.waitpid(child, 0)
            print("parent", look(n=3), flush=True)
"""


def test_tr_198_ux_103_a_fork_of_a_blocking_program_is_refused_at_once_and_leaves_the_session_to_its_parent(
    tmp_path: Path,
) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING, str(tmp_path / "home")],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == ["SF-RECEIPT-NOT-WRITTEN", "SF-LEDGER-FORKED", "parent 3"]


def _lost(label: str) -> str:
    raise surefoot.OutcomeUnknown(f"the line broke at {label}")


def test_ux_103_a_fenced_write_names_the_attempt_that_holds_it_and_what_both_touch(tmp_path: Path) -> None:
    with surefoot.open(ledger=tmp_path / "home") as ledger, ledger.session() as session:
        declared = {"effect": "NON_IDEMPOTENT", "name": "pay"}
        pay = session.guard(_lost, reach=["host:bank.example", "host:mail.example"], **declared)
        tell = session.guard(_lost, effect="NON_IDEMPOTENT", reach=["host:mail.example"], name="tell")
        with pytest.raises(surefoot.OutcomeUnknown) as unknown:
            pay(label="a")
        with pytest.raises(surefoot.WriteFenced) as fenced:
            tell(label="b")
        assert fenced.value.fenced_by == unknown.value.attempt_id
        assert fenced.value.overlap == ["host:mail.example"]
        with (
            pytest.raises(surefoot.SessionHeld) as held,
            surefoot.open(ledger=tmp_path / "home") as second,
            second.session(session.id),
        ):
            pass
        assert (held.value.session_id, held.value.pid) == (session.id, os.getpid())
        assert held.value.host and held.value.since


async def test_ux_103_in_an_awaited_fork_the_body_is_said_not_to_have_run(tmp_path: Path) -> None:
    ran: list[str] = []

    async def note(label: str) -> None:
        ran.append(label)

    async with surefoot.open(ledger=tmp_path / "home") as ledger, ledger.session() as session:
        guarded = session.guard(note, effect="NON_IDEMPOTENT", reach=["host:x"])
        session._entered().session.ledger._pid = -1  # as a fork sees the handle of its parent
        with pytest.raises(surefoot.ReceiptNotWritten) as raised:
            await guarded(label="a")
        session._entered().session.ledger._pid = os.getpid()
        assert isinstance(raised.value.__cause__, surefoot.LedgerError)
        assert ran == []
