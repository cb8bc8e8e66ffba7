"""Mode plan offers a model only tools whose calls can be proven readers (UX-38)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from surefoot.app import open_app
from surefoot.config import load_settings
from surefoot.core.history import UserWords
from surefoot.core.model import Mode
from surefoot.runtime.models import EndpointModel

READERS = {"read", "list", "glob", "grep", "shell", "background", "ask_user", "recovery"}


async def test_ux_38_plan_offers_only_what_can_be_a_proven_reader_from_the_next_request_on(
    tmp_path: Path,
) -> None:
    environ = {**os.environ, "SUREFOOT_HOME": str(tmp_path / "home")}
    flags: dict[str, Any] = {
        "model": "x/y",
        "endpoints.x.url": "http://127.0.0.1:9",
        "permissions.mode": "plan",
    }
    async with open_app(load_settings(flags, environ, tmp_path), directory=tmp_path) as app:
        controller = await app.session(None)
        model = await app.ready()
        assert isinstance(model, EndpointModel)

        def offered() -> set[str]:
            frozen = model.freeze([UserWords("trn_1", "go")])
            return {tool["function"]["name"] for tool in frozen.body["tools"]}

        assert offered() == READERS
        controller.people.mode = Mode.DEFAULT
        assert offered() - READERS == {
            *("write", "edit", "multi_edit", "delete", "move", "make_directory", "todo"),
        }
        controller.people.mode = Mode.PLAN
        assert offered() == READERS
