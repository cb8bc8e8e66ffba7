"""Every row of the recovery matrix, on every contract it applies to."""

from __future__ import annotations

import pytest

from surefoot.testing.recovery_matrix import Row, play, rows

ALL = rows(presses=300)


@pytest.mark.parametrize("row", ALL, ids=[f"{number}-{row.name}" for number, row in enumerate(ALL)])
async def test_pr_95_every_row_holds_its_bar(row: Row) -> None:
    seen = [(peer.name, await play(row, peer)) for peer in row.peers]
    assert [(name, one) for name, one in seen if not one.good] == []


def test_fi_3_the_matrix_demands_three_requests_and_one_execution_three_times() -> None:
    declared = next(row for row in ALL if row.name == "FI-3")
    assert len(declared.peers) == 3 and all(peer.reasoning_protocol == "deepseek" for peer in declared.peers)
