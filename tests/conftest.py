"""Settings every suite shares: no network but loopback, no warning unseen."""

from __future__ import annotations

import socket
from typing import Any

import pytest

_LOOPBACK = {"127.0.0.1", "::1", "localhost", "0.0.0.0", ""}
_connect = socket.socket.connect


def _guarded(self: socket.socket, address: Any) -> None:
    if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in _LOOPBACK:
        raise RuntimeError(f"a test tried to reach {address[0]!r}; the network is off in tests")
    return _connect(self, address)


@pytest.fixture(autouse=True, scope="session")
def _network_is_off() -> Any:
    socket.socket.connect = _guarded  # type: ignore[method-assign]
    yield
    socket.socket.connect = _connect  # type: ignore[method-assign]
