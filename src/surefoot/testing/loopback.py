"""Questions to servers of this machine.

Owns: that no proxy of the environment sees them; one that is far away knows no loopback. Does not own: what
the servers are asked.
"""

from __future__ import annotations

import json
import urllib.request
from typing import Any

NO_PROXY = urllib.request.ProxyHandler({})
_open = urllib.request.build_opener(NO_PROXY).open


def ask(url: str, *, seconds: float = 60.0) -> Any:
    """The JSON document a URL answers with. Raises `urllib.error.HTTPError` at an error status."""
    with _open(url, timeout=seconds) as reply:
        return json.load(reply)
