"""Pure. Whether a candidate prompt may be adopted: Newcombe's interval, and three conditions (PR-87).

Owns: the interval of a difference of two shares, and the gate. Does not own: where the numbers come from.
The gate is closed unless everything it needs is known and good; latency is no part of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

Z_95 = 1.959963984540054
MOST_TOKEN_GROWTH = 0.05


@dataclass(frozen=True, slots=True)
class Side:
    """One prompt over all its trials. None is unknown and never counts as zero."""

    trials: int
    successes: int
    repeated: int | None
    tokens: int | None


@dataclass(frozen=True, slots=True)
class Gate:
    """`open`, and why not in sentences."""

    open: bool
    reasons: tuple[str, ...]
    difference: float | None = None
    interval: tuple[float, float] | None = None
    token_growth: float | None = None
    """Growth of tokens per success, 0.05 for five percent."""


def wilson(successes: int, trials: int, z: float = Z_95) -> tuple[float, float]:
    """The Wilson score interval of one share."""
    share = successes / trials
    middle = share + z * z / (2 * trials)
    spread = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def newcombe(base: tuple[int, int], candidate: tuple[int, int]) -> tuple[float, float]:
    """The interval of `candidate − base`, each `(successes, trials)`.

    Source: R. G. Newcombe, Interval estimation for the difference between independent proportions,
    Statistics in Medicine 17 (1998), method 10.
    """
    p, q = candidate[0] / candidate[1], base[0] / base[1]
    (p_low, p_high), (q_low, q_high) = wilson(*candidate), wilson(*base)
    low = p - q - math.hypot(p - p_low, q_high - q)
    high = p - q + math.hypot(p_high - p, q - q_low)
    return low, high


def gate(base: Side, candidate: Side, *, unmeasured: tuple[str, ...] = (), reason: str | None = None) -> Gate:
    """Judge a comparison. `reason` is a maintainer's recorded reason for a larger cost; it excuses nothing else."""
    if not base.trials or not candidate.trials:
        return Gate(False, ("one side has no trials",))
    against = [f"{cell} was not measured" for cell in unmeasured]
    difference = candidate.successes / candidate.trials - base.successes / base.trials
    interval = newcombe((base.successes, base.trials), (candidate.successes, candidate.trials))
    if interval[0] <= 0:
        against.append(f"the 95 % interval of the success difference, {told(interval)}, is not above 0")
    if base.repeated is None or candidate.repeated is None:
        against.append("repeated executions are not known for both prompts")
    elif candidate.repeated > base.repeated:
        against.append(f"repeated executions rose from {base.repeated} to {candidate.repeated}")
    growth = token_growth(base, candidate)
    if growth is None:
        against.append("tokens per success are not known for both prompts")
    elif growth > MOST_TOKEN_GROWTH and not (reason or "").strip():
        against.append(f"tokens per success rose by {growth:+.1%}, more than {MOST_TOKEN_GROWTH:.0%}")
    return Gate(not against, tuple(against), difference, interval, growth)


def token_growth(base: Side, candidate: Side) -> float | None:
    """Growth of tokens per success; None when it cannot be told."""
    if base.tokens is None or candidate.tokens is None or not base.successes or not candidate.successes:
        return None
    before = base.tokens / base.successes
    return None if not before else candidate.tokens / candidate.successes / before - 1


def told(interval: tuple[float, float]) -> str:
    """An interval in percentage points."""
    return f"[{interval[0] * 100:+.1f}, {interval[1] * 100:+.1f}] points"
