"""Pure. How long a server asks to be left alone.

Owns: the forms of `retry-after`. Does not own: whether and when anything is asked again (`diagnosis`, `core.ladder`).
"""

from __future__ import annotations

import email.utils
from collections.abc import Mapping
from datetime import UTC


def retry_after(headers: Mapping[str, str], now_seconds: float) -> float | None:
    """Seconds from `retry-after-ms` or `retry-after` (a number, or an HTTP date against the wall clock), or None."""
    told_ms = _number(headers.get("retry-after-ms"))
    if told_ms is not None:
        return told_ms / 1000
    told = headers.get("retry-after")
    seconds = _number(told)
    if seconds is not None or told is None:
        return seconds
    try:
        then = email.utils.parsedate_to_datetime(told)
    except (TypeError, ValueError):
        return None
    then = then if then.tzinfo else then.replace(tzinfo=UTC)  # such a date is always in GMT
    return max(0.0, then.timestamp() - now_seconds)


def _number(text: str | None) -> float | None:
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < 1e9 else None
