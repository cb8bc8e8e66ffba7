"""Hooks of the settings in a work tree: what their tests write and wait for."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from surefoot.config import Settings, load_settings


def settings(work: Path, hooks: str, **flags: Any) -> Settings:
    home = work.parent / "home"
    (home / "config.toml").write_text(hooks)
    given = {"model": "demo/played", "permissions.mode": "bypassPermissions", **flags}
    return load_settings(given, {"SUREFOOT_HOME": str(home), "PATH": os.environ["PATH"]}, work)


def script(work: Path, name: str, text: str) -> None:
    file = work / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def until(found: Callable[[], Any], seconds: float = 90) -> Any:
    """Wait until something is found, bounded; what was found."""
    end = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return value
