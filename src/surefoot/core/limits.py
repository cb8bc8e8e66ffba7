"""Pure. Every bound of the runtime, its default, and how far a person may move it.

Owns: the rows of TR-185 with their units in the names, and their validation.
Does not own: where a value comes from (`config`), what happens above a bound (its user).

A bound can be moved and never lifted: each has a highest value, and 0, negative
numbers, infinities and "none" are refused.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

KIB = 1024
MIB = 1024 * KIB


class LimitInvalid(ValueError):
    """A bound that cannot be used; the message names it, the range, and the default."""


def _bound(default: float, highest: float, lowest: float = 1) -> Any:
    """A field with its default and its range, both ends allowed."""
    return dataclasses.field(default=default, metadata={"lowest": lowest, "highest": highest})


@dataclass(frozen=True, slots=True)
class Limits:
    """All bounds; sizes in bytes, times in the unit of the name. Settings `limits.<name>`."""

    arguments_bytes: int = _bound(MIB, 64 * MIB)
    arguments_depth: int = _bound(64, 512)
    classifier_bytes: int = _bound(64 * KIB, MIB)
    classifier_nodes: int = _bound(20_000, 1_000_000)
    inline_result_bytes: int = _bound(MIB, 16 * MIB)
    blob_bytes: int = _bound(256 * MIB, 4096 * MIB)
    hand_off_calls: int = _bound(24, 1000)
    hand_off_files: int = _bound(8, 1000)
    hand_off_value_characters: int = _bound(240, 10_000)
    hand_off_bytes: int = _bound(16 * KIB, MIB, lowest=KIB)
    action_body_bytes: int = _bound(16 * KIB, MIB)
    error_text_bytes: int = _bound(4 * KIB, MIB)
    snapshot_bytes: int = _bound(2 * MIB, 64 * MIB)
    snapshot_calls: int = _bound(200, 10_000)
    snapshot_resolved: int = _bound(50, 10_000)
    inspect_action_seconds: float = _bound(30, 600, lowest=0.1)
    inspect_resume_seconds: float = _bound(15, 600, lowest=0.1)
    evidence_bytes: int = _bound(8 * KIB, MIB)
    summary_characters: int = _bound(500, 10_000)
    note_characters: int = _bound(500, 10_000)
    report_bytes: int = _bound(2 * KIB, MIB)
    reports_per_call: int = _bound(20, 1000)
    stop_term_seconds: float = _bound(1, 60, lowest=0.01)
    stop_kill_seconds: float = _bound(10, 600, lowest=0.01)
    stop_kill_check_seconds: float = _bound(1, 600, lowest=0.01)
    session_free_seconds: float = _bound(2, 60, lowest=0.1)
    abort_wait_ms: int = _bound(250, 10_000)
    lease_seconds: float = _bound(30, 3600, lowest=1)
    lease_renewal_seconds: float = _bound(10, 1200, lowest=0.1)
    lease_extension_seconds: float = _bound(600, 3600, lowest=1)
    ladder_retries_per_call: int = _bound(7, 100)
    ladder_retries_per_turn: int = _bound(7, 1000)
    owner_deaths: int = _bound(3, 100)
    owner_deaths_seconds: float = _bound(600, 86_400)
    resume_retry_age_seconds: float = _bound(120, 86_400)
    process_log_bytes: int = _bound(64 * MIB, 4096 * MIB)
    background_probe_seconds: float = _bound(2, 600, lowest=0.1)
    pending_questions: int = _bound(16, 1000)
    bulk_items: int = _bound(100, 1000)
    digest_file_bytes: int = _bound(64 * MIB, 4096 * MIB)
    gate_wait_seconds: float = _bound(5, 600, lowest=0.01)
    turn_resumes: int = _bound(3, 100)
    log_wait_ms: int = _bound(200, 10_000)
    free_bytes: int = _bound(8 * MIB, 65_536 * MIB)
    ballast_bytes: int = _bound(2 * MIB, 1024 * MIB)
    blob_age_hours: float = _bound(24, 8760)
    inspect_seconds: float = _bound(10, 600, lowest=0.1)
    """Setting `recovery.inspect_seconds`, for each verifier."""
    crash_attempts: int = _bound(2, 100)
    """Setting `recovery.crash_attempts`."""


OLDER = {"inspect_seconds": "recovery.inspect_seconds", "crash_attempts": "recovery.crash_attempts"}
"""Two rows that go by an older setting's name."""


def read_limits(given: Mapping[str, Any]) -> Limits:
    """Bounds from settings: names without `limits.`, anything not given keeps its default.

    Raises:
        LimitInvalid: an unknown name, no number, outside its range, or two bounds at odds.
    """
    known = {field.name: field for field in dataclasses.fields(Limits)}
    values: dict[str, Any] = {}
    for name, value in given.items():
        field = known.get(name)
        if field is None:
            raise LimitInvalid(f"limits.{name} is no bound; see `surefoot config show` for their names")
        values[name] = _checked(field, value)
    limits = Limits(**values)
    if limits.lease_renewal_seconds * 2 > limits.lease_seconds:
        raise LimitInvalid(
            f"limits.lease_renewal_seconds ({limits.lease_renewal_seconds:g}) must be at most half of "
            f"limits.lease_seconds ({limits.lease_seconds:g}), so that one lost renewal costs no session"
        )
    if limits.snapshot_resolved > limits.snapshot_calls:
        raise LimitInvalid("limits.snapshot_resolved must not be above limits.snapshot_calls; lower it")
    return limits


def _checked(field: dataclasses.Field[Any], value: Any) -> float:
    name = OLDER.get(field.name, f"limits.{field.name}")
    lowest, highest = field.metadata["lowest"], field.metadata["highest"]
    whole = field.type == "int"
    wanted = "a whole number" if whole else "a number"
    usual = f"use {wanted} from {lowest:g} to {highest:g} (default {field.default:g})"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise LimitInvalid(f"{name} is {value!r}: {usual}; a bound cannot be switched off")
    if not math.isfinite(value) or (whole and value != int(value)):
        raise LimitInvalid(f"{name} is {value!r}: {usual}")
    if not lowest <= value <= highest:
        raise LimitInvalid(f"{name} is {value:g}, which is outside its range: {usual}")
    return int(value) if whole else value
