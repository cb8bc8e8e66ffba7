"""Bounds: defaults of the table, and no way to lift one."""

from __future__ import annotations

import dataclasses

import pytest

from surefoot.core.limits import OLDER, LimitInvalid, Limits, read_limits

MIB, KIB = 1 << 20, 1 << 10
DEFAULTS = {
    "arguments_bytes": MIB, "arguments_depth": 64, "classifier_bytes": 64 * KIB, "classifier_nodes": 20_000,
    "inline_result_bytes": MIB, "blob_bytes": 256 * MIB, "hand_off_calls": 24, "hand_off_files": 8,
    "hand_off_value_characters": 240, "hand_off_bytes": 16 * KIB, "action_body_bytes": 16 * KIB,
    "error_text_bytes": 4 * KIB, "snapshot_bytes": 2 * MIB, "snapshot_calls": 200, "snapshot_resolved": 50,
    "inspect_action_seconds": 30, "inspect_resume_seconds": 15, "evidence_bytes": 8 * KIB,
    "summary_characters": 500, "note_characters": 500, "report_bytes": 2 * KIB, "reports_per_call": 20,
    "stop_term_seconds": 1, "stop_kill_seconds": 10, "stop_kill_check_seconds": 1, "session_free_seconds": 2,
    "abort_wait_ms": 250, "lease_seconds": 30, "lease_renewal_seconds": 10, "lease_extension_seconds": 600,
    "ladder_retries_per_call": 7, "ladder_retries_per_turn": 7, "owner_deaths": 3, "owner_deaths_seconds": 600,
    "resume_retry_age_seconds": 120, "process_log_bytes": 64 * MIB, "background_probe_seconds": 2,
    "pending_questions": 16, "bulk_items": 100, "digest_file_bytes": 64 * MIB, "gate_wait_seconds": 5,
    "turn_resumes": 3, "log_wait_ms": 200, "free_bytes": 8 * MIB, "ballast_bytes": 2 * MIB, "blob_age_hours": 24,
    "inspect_seconds": 10, "crash_attempts": 2,
}  # fmt: skip
FIELDS = {field.name: field for field in dataclasses.fields(Limits)}


def test_tr_185_every_row_of_the_table_exists_with_its_default() -> None:
    assert dataclasses.asdict(Limits()) == DEFAULTS == dataclasses.asdict(read_limits({}))


@pytest.mark.parametrize("name", sorted(DEFAULTS))
def test_tr_185_each_bound_takes_its_ends_and_refuses_what_lies_beyond(name: str) -> None:
    lowest, highest = FIELDS[name].metadata["lowest"], FIELDS[name].metadata["highest"]
    partners = {
        "lease_renewal_seconds": {"lease_seconds": 3600},
        "snapshot_resolved": {"snapshot_calls": 10_000},
    }
    partners["lease_seconds"] = {"lease_renewal_seconds": 0.5}
    partners["snapshot_calls"] = {"snapshot_resolved": 1}
    for fits in (lowest, highest):
        assert getattr(read_limits({**partners.get(name, {}), name: fits}), name) == fits
    for beyond in (highest + 1, 0, -1, None, "none", True, float("inf"), float("nan"), [], lowest / 2):
        with pytest.raises(LimitInvalid, match=OLDER.get(name, f"limits.{name}")):
            read_limits({**partners.get(name, {}), name: beyond})


def test_an_unknown_bound_and_bounds_at_odds_are_named() -> None:
    with pytest.raises(LimitInvalid, match=r"limits\.patience"):
        read_limits({"patience": 3})
    with pytest.raises(LimitInvalid, match="half of"):
        read_limits({"lease_seconds": 5})
    with pytest.raises(LimitInvalid, match="snapshot_resolved"):
        read_limits({"snapshot_calls": 10})
    with pytest.raises(LimitInvalid, match="whole"):
        read_limits({"bulk_items": 1.5})


def test_an_error_says_the_range_and_the_default() -> None:
    with pytest.raises(LimitInvalid, match=r"from 1 to 1000 \(default 16\)"):
        read_limits({"pending_questions": 0})
