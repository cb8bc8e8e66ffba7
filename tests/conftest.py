"""Settings every suite shares: no network but loopback, no warning unseen, one language."""

from __future__ import annotations

import os
import re
import socket
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Time says nothing of a property. The same examples in every run, so that a red run is about the change it judges;
# `--hypothesis-profile=new`, with or without `--hypothesis-seed=N`, looks for others.
settings.register_profile("new", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("new"), derandomize=True)
settings.load_profile("same")

# What the caller's shell, keys, git hook, proxy or terminal say is no part of a test, nor of the programs it
# starts: a test that is about one of these sets it. They read English words; one of another language chooses it.
_OUTER = re.compile(
    "(LC|GIT|XDG|SUREFOOT|OPENAI|ANTHROPIC|DEEPSEEK|CLICOLOR)_.*|LANGUAGE|.*_proxy|(NO|FORCE)_COLOR|CLICOLOR|CI"
    "|PAGER|LESS|COLUMNS|LINES|EDITOR|VISUAL|BASH_ENV|ENV|CDPATH|GREP_OPTIONS|WGETRC|CURL_HOME|PG.*",
    re.IGNORECASE,
)
for _name in filter(_OUTER.fullmatch, list(os.environ)):
    del os.environ[_name]
os.environ["LANG"] = "C.UTF-8"

_LOOPBACK = {"127.0.0.1", "::1", "localhost", "0.0.0.0", ""}
_connect = socket.socket.connect


def _guarded(self: socket.socket, address: Any) -> None:
    if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in _LOOPBACK:
        raise RuntimeError(f"a test tried to reach {address[0]!r}; the network is off in tests")
    return _connect(self, address)


@pytest.fixture(autouse=True, scope="session")
def _nobody_lives_here(tmp_path_factory: pytest.TempPathFactory) -> None:
    """An empty home: the caller's holds settings of git, of network clients, of shells and of surefoot."""
    os.environ["HOME"] = str(tmp_path_factory.mktemp("nobody"))


@pytest.fixture(autouse=True, scope="session")
def _network_is_off() -> Any:
    socket.socket.connect = _guarded  # type: ignore[method-assign]
    yield
    socket.socket.connect = _connect  # type: ignore[method-assign]
