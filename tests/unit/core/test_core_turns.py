"""Turn status: all 100 pairs, the verdict, resuming."""

from __future__ import annotations

import itertools

import pytest

from surefoot.core.model import TurnStatus
from surefoot.core.turns import MOVES, move, resume_refusal, verdict

TABLE = """
queued: running cancelled failed interrupted
running: waiting_user paused cancelling completed failed interrupted
waiting_user: running paused cancelling failed interrupted
paused: running cancelling failed
cancelling: cancelled failed
interrupted: recovering cancelled
recovering: running waiting_user cancelling failed interrupted
failed: recovering cancelled
completed:
cancelled:
"""
LEGAL = {
    (line.split(":")[0], after) for line in TABLE.strip().splitlines() for after in line.split(":")[1].split()
}


@pytest.mark.parametrize(("before", "after"), list(itertools.product(TurnStatus, repeat=2)))
def test_tr_179_every_one_of_the_hundred_pairs_is_as_listed(before: TurnStatus, after: TurnStatus) -> None:
    refused = move(before, after)
    assert (refused is None) is ((before.value, after.value) in LEGAL)
    assert refused in (None, f"illegal_{before.value}_{after.value}")


def test_tr_179_there_are_a_hundred_pairs_and_no_status_is_forgotten() -> None:
    assert len(TurnStatus) ** 2 == 100 and set(MOVES) == set(TurnStatus)


@pytest.mark.parametrize("flags", list(itertools.product((False, True), repeat=3)))
def test_tr_181_the_verdict_is_cancel_then_pause_then_failed_then_completed(flags: tuple[bool, ...]) -> None:
    cancelled, paused, failed = flags
    names = [name for name, holds in zip(("cancelled", "paused", "failed"), flags, strict=True) if holds]
    assert verdict(cancelled=cancelled, paused=paused, failed=failed) == (names or ["completed"])[0]


@pytest.mark.parametrize("status", list(TurnStatus))
def test_tr_183_only_failed_and_interrupted_turns_resume_and_only_so_often(status: TurnStatus) -> None:
    resumable = status in (TurnStatus.FAILED, TurnStatus.INTERRUPTED)
    assert (resume_refusal(status, resumes=2, limit=3) is None) is resumable
    assert resume_refusal(status, resumes=3, limit=3) is not None
