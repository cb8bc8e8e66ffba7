"""TR-186, steps F2, F8 and F20: hooks of the user around a call, and a press parked during a turn.

A hook's own effect is a call of its own; the call it belongs to keeps its receipt whatever
becomes of that. A parked press is held in memory and is lost with its owner, which is shown.
"""

from __future__ import annotations

from typing import Any

import pytest

from surefoot.testing.crash import Ended
from surefoot.testing.kills import TELLS, Site
from surefoot.testing.model import call

FULL = {"do": "full"}
FSYNC_LASTING = {"do": "disk", "operation": "sync", "lasting": True}
STOP = {"do": "stop"}
STARTED, CLOSED, RESOLVED = "append[attempt.started]", "append[attempt.closed]", "append[attempt.resolved]"


def told(ended: Ended) -> list[tuple[str, str | None]]:
    return [(one["state"], one["reason"]) for one in ended.report["receipts"]]


def by_parent(ended: Ended) -> tuple[dict[str, Any], dict[str, Any]]:
    """The receipt of the model's call, and that of the hook's own."""
    receipts = ended.report["receipts"]
    (asked,) = [one for one in receipts if one["parentAttemptId"] is None]
    (own,) = [one for one in receipts if one["parentAttemptId"] is not None]
    assert own["parentAttemptId"] == asked["attemptId"]
    return asked, own


def effects(site: Site, suffix: str = "") -> int:
    return site.equipment.sink.count(site.label + suffix)


def hooked(site: Site, when: str, **fields: Any) -> Ended:
    """One payment of the model, with a hook that pays as well."""
    site.script({"calls": [call("pay", label=site.label)]}, TELLS)
    return site.run(prompts=("go",), hook=when, **fields)


# F2 checks and hooks ------------------------------------------------------------------------------


def test_tr_186_f2_killed_inside_a_hook_its_own_call_is_unknown_and_the_call_never_started(
    site: Site,
) -> None:
    assert hooked(site, "before", kill_at=1, only=("tool[pay].after_effect",)).killed
    asked, own = by_parent(site.again(verify=False))
    assert (asked["state"], asked["reason"]) == ("not_started", "owner_died_before_start")
    assert (own["state"], own["reason"]) == ("unknown", "owner_died")
    assert effects(site) == 0 and effects(site, "-hook") == 1


def test_tr_186_f2_a_lost_line_of_a_hook_is_unknown_and_holds_the_call_back(site: Site) -> None:
    site.equipment.sink.switch(reply="drop")
    ended = hooked(site, "before")
    site.equipment.sink.switch(reply="now")
    asked, own = by_parent(ended)
    assert (asked["state"], asked["reason"]) == ("not_started", "fenced")
    assert (own["state"], own["effectTrace"]) == ("unknown", "possible")
    assert (
        effects(site) == 0 and effects(site, "-hook") == 1 and told(site.again(verify=False)) == told(ended)
    )


# F8 post-tool hooks -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seam", "nth", "state"),
    [("tool[pay].after_effect", 2, "unknown"), (f"{STARTED}.before", 2, "not_started")],
)
def test_tr_186_f8_killed_inside_a_hook_the_receipt_stands_and_the_hooks_call_goes_by_its_class(
    site: Site, seam: str, nth: int, state: str
) -> None:
    assert hooked(site, "after", kill_at=nth, only=(seam,)).fatal == seam
    asked, own = by_parent(site.again(verify=False))
    assert asked["state"] == "succeeded" and own["state"] == state
    assert effects(site) == 1 and effects(site, "-hook") == int(state == "unknown")


@pytest.mark.parametrize("strike", [FULL, FSYNC_LASTING])
def test_tr_186_f8_a_disk_that_fails_under_a_hook_leaves_the_receipt_unchanged(
    site: Site, strike: dict[str, Any]
) -> None:
    ended = hooked(site, "after", kill_at=2, only=(f"{STARTED}.before",), strike=strike)
    assert ended.report["fault"]["at"] == f"{STARTED}.before" and ended.report["fault"]["disk"] >= 1
    asked, own = by_parent(site.again(verify=False))
    assert asked["state"] == "succeeded" and own["state"] in ("not_started", "failed", "unknown")
    assert (effects(site), effects(site, "-hook")) == (1, 0)
    assert own["state"] != "unknown" or strike is FSYNC_LASTING


def test_tr_186_f8_a_stop_inside_a_hook_leaves_the_receipt_unchanged(site: Site) -> None:
    site.equipment.sink.switch(commit="now", reply="now")
    ended = hooked(site, "after", kill_at=2, only=("tool[pay].entered",), strike=STOP)
    assert ended.report["fault"]["at"] == "tool[pay].entered"
    asked, own = by_parent(ended)
    assert asked["state"] == "succeeded" and own["state"] in ("succeeded", "unknown")
    assert ended.report["turns"][0]["status"] == "cancelled" and effects(site) == 1


@pytest.mark.parametrize("how", ["limit", "lost"])
def test_tr_186_f8_a_hooks_call_that_ends_unclear_is_unknown_and_the_receipt_stands(
    site: Site, how: str
) -> None:
    sink = site.equipment.sink
    site.script({"calls": [call("look", label=site.label)]}, TELLS)
    sink.switch(**({"reply": "hold"} if how == "limit" else {"reply": "drop"}))
    ended = site.run(prompts=("go",), hook="after", limit_seconds=2.0 if how == "limit" else None)
    sink.switch(reply="now")
    sink.release()
    asked, own = by_parent(ended)
    assert asked["state"] == "succeeded" and effects(site, "-hook") == 1
    assert (own["state"], own["effectTrace"]) == ("unknown", "possible")
    assert told(site.again(verify=False)) == told(ended)


# F20 parked press ---------------------------------------------------------------------------------

CONFIRM = ({"action": "confirm", "attemptId": "open"},)


def pressed_in_mid_turn(site: Site, **fields: Any) -> Ended:
    """An unknown payment; then a turn during whose read a person presses confirm."""
    site.script({"calls": [call("pay", label=site.label)]}, TELLS)
    assert site.run(prompts=("go",), kill_at=1, only=("tool[pay].after_effect",)).killed
    at = {"verify": False, "actions": CONFIRM, "press_at": "tool[look].entered"}
    site.script(
        {"calls": [call("pay", label=site.label)]}, {"calls": [call("look", label="x")]}, TELLS, TELLS
    )
    return site.again(prompts=("look",), **at, **fields)


def test_tr_186_f20_a_press_in_mid_turn_is_parked_and_recorded_at_the_border(site: Site) -> None:
    ended = pressed_in_mid_turn(site)
    (answer,) = ended.report["answers"]
    parked = [one["parked"] for one in answer["body"]["calls"]]
    assert answer["status"] == 200 and "confirm" in str(parked)
    assert ended.report["receipts"][0]["overlays"] == ["confirmed"] and ended.report["open"] == []


@pytest.mark.parametrize("seam", ["tool[look].returned", f"{RESOLVED}.before"])
def test_tr_186_f20_a_parked_press_dies_with_its_owner_and_the_call_is_as_before(
    site: Site, seam: str
) -> None:
    assert pressed_in_mid_turn(site, kill_at=1, only=(seam,)).fatal == seam
    opened = site.again(verify=False)
    payment = opened.report["receipts"][0]
    assert payment["overlays"] == [] and opened.report["open"][0] == payment["attemptId"]
    assert not [one for one in opened.report["snapshot"]["calls"] if one.get("parked")]
    again = site.again(verify=False, actions=CONFIRM)
    assert again.report["answers"][0]["status"] == 200


@pytest.mark.parametrize("strike", [FULL, FSYNC_LASTING])
def test_tr_186_f20_a_parked_press_that_cannot_be_written_is_dropped_and_told(
    site: Site, strike: dict[str, Any]
) -> None:
    ended = pressed_in_mid_turn(site, kill_at=1, only=(f"{RESOLVED}.before",), strike=strike)
    assert ended.report["fault"]["at"] == f"{RESOLVED}.before" and ended.report["fault"]["disk"] >= 1
    assert "parked_dropped" in ended.report["notices"]
    if strike is FULL:
        assert len(site.again(verify=False).report["open"]) == 1


def test_tr_186_f20_a_stop_is_a_border_for_a_parked_press(site: Site) -> None:
    ended = pressed_in_mid_turn(site, kill_at=1, only=("tool[look].returned",), strike=STOP)
    assert ended.report["fault"]["at"] == "tool[look].returned"
    assert ended.report["turns"][0]["status"] == "cancelled"
    assert ended.report["receipts"][0]["overlays"] == ["confirmed"]
    assert site.again(verify=False).report["open"] == []


def test_tr_186_f20_a_line_lost_while_a_press_is_parked_leaves_it_parked(site: Site) -> None:
    """The line to the model breaks behind the press; the press is recorded at its border all the same."""
    site.equipment.emulator.fault(stage="reply", match={"nth": 3}, cut_at={"bytes": 40})
    ended = pressed_in_mid_turn(site)
    assert ended.report["receipts"][0]["overlays"] == ["confirmed"]
    assert ended.report["turns"][0]["status"] == "completed"
    site.equipment.emulator.assert_fired()
