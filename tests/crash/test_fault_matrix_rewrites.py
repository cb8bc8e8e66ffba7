"""TR-186, step F14: compaction, rewind and fork, struck before and after their one commit.

The view is the old one or the new one, whole; the receipts and the effects they speak of stay
as they were.
"""

from __future__ import annotations

from typing import Any

import pytest

from surefoot.testing.crash import Ended
from surefoot.testing.kills import Site
from surefoot.testing.model import call
from surefoot.testing.sink import post

FULL = {"do": "full"}
FSYNC_LASTING = {"do": "disk", "operation": "sync", "lasting": True}
COMMITS = {"compact": "append[view.compacted]", "rewind": "append[view.rewound]", "fork": "claim[opening]"}
HOWS = sorted(COMMITS)


def effects(site: Site) -> int:
    return site.equipment.sink.count(site.label)


def worked(site: Site) -> None:
    """A session with one payment and a few turns behind it."""
    site.script({"calls": [call("pay", label=site.label)]}, *([{"text": "Said."}] * 12))
    ended = site.run(prompts=("go", "more", "and more", "and on"))
    assert [one["state"] for one in ended.report["receipts"]] == ["succeeded"]


def struck(site: Site, how: str, when: str, strike: dict[str, Any] | None) -> Ended:
    worked(site)
    seam = f"{COMMITS[how]}.{when}"
    ended = site.again(rewrite=how, kill_at=1, only=(seam,), strike=strike)
    assert ended.seams[:1] == [seam]
    assert ended.fatal == seam or ended.report["fault"]["at"] == seam
    return ended


def whole(site: Site) -> Ended:
    """The evidence is whole, and the session goes on."""
    site.script(*([{"text": "Said."}] * 12))
    opened = site.again(prompts=("still there?",))
    assert opened.report["turns"][0]["status"] == "completed" and opened.report["verified"] == []
    assert effects(site) == 1
    return opened


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_tr_186_f14_a_rewrite_that_was_killed_leaves_the_old_view_or_the_new_one(
    site: Site, how: str, when: str
) -> None:
    assert struck(site, how, when, None).killed
    opened = whole(site)
    if how != "fork":
        assert opened.report["words"][:2] == ["go", "more"]
        assert [one["state"] for one in opened.report["receipts"]] == ["succeeded"]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("strike", [FULL, FSYNC_LASTING])
def test_tr_186_f14_a_rewrite_that_cannot_be_written_is_refused(
    site: Site, how: str, strike: dict[str, Any]
) -> None:
    ended = struck(site, how, "before", strike)
    assert ended.report["fault"]["disk"] >= 1 and "error" in ended.report["rewritten"]
    assert whole(site).report["words"][:1] == ["go"]


@pytest.mark.parametrize("how", HOWS)
def test_tr_186_f14_a_rewrite_nobody_waits_for_is_whole_or_absent(site: Site, how: str) -> None:
    ended = struck(site, how, "before", {"do": "give_up"})
    assert ended.report["rewritten"] is None
    whole(site)


def test_tr_186_f14_a_line_lost_during_the_summary_keeps_the_evidence_whole(site: Site) -> None:
    worked(site)
    before = len(site.equipment.emulator.requests())
    site.equipment.emulator.fault(stage="reply", count=-1, cut_at={"bytes": 40})
    ended = site.again(rewrite="compact")
    assert len(site.equipment.emulator.requests()) > before and ended.report["rewritten"] is not None
    post(f"{site.equipment.emulator.url}/_ctl/reset", {})
    assert [one["state"] for one in ended.report["receipts"]] == ["succeeded"] and effects(site) == 1
