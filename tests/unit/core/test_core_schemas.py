"""The published schemas: equal to the code, never broken without a new version, and true of a snapshot."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from surefoot.core.admission import Controls, attempt_facts
from surefoot.core.model import ExecutorState, Overlay, State
from surefoot.core.schemas import VERSION, schema_of
from surefoot.core.snapshot import Asked, CallFacts, SessionFacts, select, snapshot
from surefoot.surfaces.export import SCHEMA_VERSION as EXPORT_VERSION
from surefoot.surfaces.verdict import SCHEMA_VERSION

TESTS = Path(__file__).parents[2]


def _tool() -> Any:
    spec = importlib.util.spec_from_file_location("published_schemas", TESTS / "published_schemas.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = _tool()
REQUEST = {"sessionPath": "p/ses_1", "runtimeEpoch": "7", "revision": "sha256:" + "0" * 64}


def valid(name: str, value: Any) -> bool:
    return bool(jsonschema.Draft202012Validator(schema_of(name)).is_valid(value))


@pytest.mark.parametrize("name", TOOL.ALL)
def test_tr_148_ux_32_what_ships_is_what_the_code_makes(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(TOOL.made(name))
    assert TOOL.shipped(name).read_text(encoding="utf-8") == TOOL.text_of(name), "run: make schemas"


@pytest.mark.parametrize("name", TOOL.ALL)
def test_tr_148_ux_32_no_published_version_is_broken_without_a_new_one(name: str) -> None:
    version = {"output": SCHEMA_VERSION, "export": EXPORT_VERSION}.get(name, VERSION)
    published = json.loads((TOOL.PUBLISHED / str(version) / TOOL.file_of(name)).read_text(encoding="utf-8"))
    broken = list(TOOL.breaks(published, TOOL.made(name), sent=name in TOOL.SENT_TO_US))
    assert not broken, f"raise VERSION and publish a new folder: {broken}"
    assert f"/{version}/" in published["$id"]


BREAKS_A_READER = {
    "a field goes": lambda one: one["properties"].pop("more"),
    "a field may be missing": lambda one: one["required"].remove("calls"),
    "another type": lambda one: one["properties"].update(more={"type": "string"}),
    "a deep field goes": lambda one: one["$defs"]["call"]["properties"].pop("decision"),
    "a word goes": lambda one: one["$defs"]["call"]["properties"]["state"]["enum"].remove("unknown"),
    "an item changes": lambda one: one["$defs"]["call"]["properties"]["reach"].update(
        items={"type": "integer"}
    ),
    "never null again": lambda one: one["$defs"]["call"]["properties"]["reason"]["anyOf"].pop(),
}


@pytest.mark.parametrize("change", BREAKS_A_READER.values(), ids=BREAKS_A_READER.keys())
def test_tr_148_the_comparison_finds_what_would_break_a_reader(change: Any) -> None:
    changed = json.loads(json.dumps(schema_of("snapshot")))
    change(changed)
    assert list(TOOL.breaks(schema_of("snapshot"), changed, sent=False))


def test_tr_148_a_new_field_breaks_no_reader_and_a_new_demand_breaks_a_sender() -> None:
    grown = json.loads(json.dumps(schema_of("snapshot")))
    grown["properties"]["new"] = {"type": "string"}
    grown["required"].append("new")
    assert not list(TOOL.breaks(schema_of("snapshot"), grown, sent=False))
    demanding = json.loads(json.dumps(schema_of("action")))
    demanding["required"].append("note")
    assert list(TOOL.breaks(schema_of("action"), demanding, sent=True))


def test_tr_148_a_snapshot_of_every_state_and_overlay_is_true_to_the_schema(tell: Any) -> None:
    digest = "sha256:" + "0" * 64
    story = tell().unknown("a", idempotencyKey="sf1-" + "0" * 64, startedAt=1, argumentDigest=digest)
    for number, kind in enumerate(("confirmed", "denied", "rejected", "released")):
        story.unknown(f"r{number}", argumentDigest=digest).resolve(f"r{number}", kind)
    receipts, more = select(story.book)
    assert {one.state for one in receipts} == {State.UNKNOWN}
    assert Overlay.REJECTED in {overlay for one in receipts for overlay in one.overlays}
    calls = [
        CallFacts(
            one, attempt_facts(one, story.book, executor=ExecutorState.ALIVE), "VERIFY", parked="confirm"
        )
        for one in receipts
    ]
    made = snapshot(
        SessionFacts("led_x/ses_1", "7", "reach", "stop", False),
        Controls(),
        calls,
        statistics=story.book.statistics(),
        more=more,
        asked=Asked(receipts[0].attempt_id),
    )
    errors = [
        error.message
        for error in jsonschema.Draft202012Validator(schema_of("snapshot")).iter_errors(made)
        # The stories of these tests have short ids.
        if "does not match '^att_" not in error.message
    ]
    assert errors == []


def test_tr_148_a_press_is_described_as_it_is_admitted() -> None:
    single = {**REQUEST, "attemptId": "att_1", "action": "confirm"}
    assert valid("action", single) and valid("action", {**single, "inspectionId": None, "note": "seen"})
    assert valid(
        "action", {**REQUEST, "action": "reject", "items": [{"attemptId": "a", "inspectionId": "i"}]}
    )
    for wrong in (
        {**single, "arguments": {}},
        {**single, "action": "redo"},
        {key: value for key, value in single.items() if key != "revision"},
        {**REQUEST, "action": "confirm"},
        {**REQUEST, "action": "inspect", "items": [{"attemptId": "a"}]},
        {**REQUEST, "action": "confirm", "items": []},
        {**REQUEST, "action": "confirm", "items": [{"attemptId": "a", "note": "x"}]},
    ):
        assert not valid("action", wrong), wrong


def test_tr_148_a_choice_about_a_process_is_described_as_it_is_admitted() -> None:
    choice = {**REQUEST, "attemptId": "att_1", "choice": "kill"}
    assert valid("process", choice)
    assert not valid("process", {**choice, "choice": "stop"})
    assert not valid("process", {**choice, "signal": 9})


def test_tr_148_a_refusal_has_a_code_and_a_message() -> None:
    assert valid("error", {"code": "inspection_required", "message": "Look first.", "reason": "x"})
    assert not valid("error", {"code": "Inspection Required", "message": ""})
    assert not valid("error", {"code": "inspection_required"})
