"""The recovery matrix counts only what a fault proved, and tells who recovered."""

from __future__ import annotations

from surefoot.testing.recovery_table import HEAD, Outcome, Tally, shown

REFUSED = (200, 400, 200)


def test_fi_5_pr_95_an_edit_that_was_accepted_is_told_and_never_counted_as_passed() -> None:
    tally = Tally()
    tally.count(Outcome(True, (200, 200), 1, "not_exercised"))
    tally.count(Outcome(True, REFUSED, 1, "automatic"))
    assert (tally.passed, tally.failed, tally.not_exercised) == (1, 0, 1)
    assert str(tally) == "1/1 passed, 1 automatic, 1 not_exercised"
    line = shown("compat/chat", "m", Outcome(True, (200, 200), 1, "not_exercised"))
    assert " ok " not in line and line.endswith("not_exercised")


def test_pr_95_automatic_and_explicit_recovery_stand_in_columns_of_their_own() -> None:
    assert {"automatic", "explicit"} <= set(HEAD.split())
    places = [HEAD.index(word) for word in ("automatic", "explicit")]
    for how, marks in (("automatic", "y-"), ("explicit", "-y"), ("digests equal", "--")):
        line = shown("compat/chat", "m", Outcome(True, REFUSED, 1, how))
        assert "".join(line[at] for at in places) == marks
    whole, part = Tally(), Tally()
    part.count(Outcome(False, REFUSED, 1, "automatic"))
    part.count(Outcome(True, REFUSED, 1, "explicit, 2 answered from receipt"))
    whole.add(part)
    assert str(whole) == "1/2 passed, 1 explicit, 1 failed"
