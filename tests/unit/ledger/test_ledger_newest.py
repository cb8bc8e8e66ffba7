"""How a session stands is read from its end, also when its newest turn is long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from surefoot.core.model import Draft, Kind
from surefoot.core.turns import latest_of
from surefoot.ledger import derived
from surefoot.ledger.newest import WINDOW, newest_of
from surefoot.ledger.opening import open_ledger


def turn(status: str, **more: Any) -> Draft:
    return Draft(Kind.TURN, {"turnId": "trn_1", "status": status, **more})


@pytest.mark.parametrize("spoke", ["never", "at first", "to the end"])
async def test_ux_138_a_turn_of_any_length_is_told_without_reading_what_does_not_tell_of_it(
    tmp_path: Path, say: Any, monkeypatch: pytest.MonkeyPatch, spoke: str
) -> None:
    message = Draft(Kind.ASSISTANT, {"turnId": "trn_1", "calls": []})
    said = [message] if spoke == "at first" else []
    long = [say.todo() for _ in range(2 * WINDOW)] + ([message] if spoke == "to the end" else [])
    ledger = await open_ledger(tmp_path / "ledger")
    claim = await ledger.claim(say.session, say.owner(), opening=say.opening())
    await ledger.append(
        say.session, [turn("queued", barrier="action"), *said, *long, turn("running")], epoch=claim.epoch
    )
    every = await ledger.read(say.session)
    parsed: list[str] = []
    parse = derived._parsed
    monkeypatch.setattr(derived, "_parsed", lambda text: (parsed.append(text), parse(text))[1])
    found = await newest_of(ledger, say.session, every[-1].position)
    await ledger.close()
    assert found == latest_of(every)
    assert (found.level, found.silent, found.whole) == ("action", spoke == "never", True)
    assert len(parsed) <= WINDOW + 5
