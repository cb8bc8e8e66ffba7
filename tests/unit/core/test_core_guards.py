"""Guards against repeating an action that was confirmed or failed half way."""

from __future__ import annotations

from typing import Any

import pytest

from surefoot.core.effects import Effect
from surefoot.core.guards import Guards
from surefoot.core.model import EffectClass, Kind

WRITE = Effect(EffectClass.NON_IDEMPOTENT, ("host:h",))


def held(story: Any, tool: str = "push", digest: str = "d", effect: Effect = WRITE) -> str | None:
    guards = Guards()
    for entry in story.entries:
        guards.apply(entry)
    found = guards.against(tool, digest, effect)
    return None if found is None else found.code


def sure(story: Any, way: str) -> Any:
    return (
        story.resolve("a", "confirmed")
        if way == "confirm"
        else story.inspect("a", "present", "proof", proven=True)
    )


@pytest.mark.parametrize("way", ["confirm", "proof"])
def test_tr_91_the_same_action_is_held_after_confirm_or_proof_and_no_other_is(tell: Any, way: str) -> None:
    story = sure(tell().unknown("a", reach=["host:h"]), way)
    assert held(story) == "confirmed_effect"
    assert held(story, digest="e") is None and held(story, tool="pull") is None
    assert held(story, effect=Effect(EffectClass.READ_ONLY)) is None


@pytest.mark.parametrize("kind", ["denied", "rejected", "released"])
def test_tr_91_no_other_resolution_guards(tell: Any, kind: str) -> None:
    assert held(tell().unknown("a", reach=["host:h"]).resolve("a", kind)) is None


@pytest.mark.parametrize("way", ["confirm", "proof"])
def test_tr_91_going_on_without_words_of_a_person_does_not_end_it(tell: Any, way: str) -> None:
    story = sure(tell().unknown("a", reach=["host:h"]), way)
    story.add(Kind.USER, turnId="t", text="", facts="what a restart found")
    assert held(story) == "confirmed_effect"


def test_tr_91_the_next_message_of_a_person_ends_it(tell: Any) -> None:
    story = sure(tell().unknown("a", reach=["host:h"]), "confirm")
    story.add(Kind.USER, turnId="t", text="again, please")
    assert held(story) is None


@pytest.mark.parametrize(
    ("reach", "state", "ends"),
    [
        (["host:h"], "succeeded", True),
        (["host:h"], "failed", True),
        (["host:x"], "succeeded", False),
        (["host:h"], "unknown", False),
    ],
)
def test_tr_91_the_first_later_settled_write_over_its_reach_ends_it(
    tell: Any, reach: list[str], state: str, ends: bool
) -> None:
    story = sure(tell().unknown("a", reach=["host:h"]), "confirm")
    story.ask("b").start("b", reach=reach, argumentDigest="e", check=True).close("b", state)
    assert (held(story) is None) is ends


FAILED = [
    ("NON_IDEMPOTENT", "possible", False, "look_first"),
    ("UNKNOWN", "possible", False, "look_first"),
    ("UNKNOWN", "possible", True, None),
    ("UNKNOWN", "none", False, None),
    ("IDEMPOTENT_WRITE", "possible", False, None),
]


@pytest.mark.parametrize(("effect_class", "trace", "check", "wanted"), FAILED)
def test_tr_209_a_failed_write_that_may_have_left_something_is_looked_at_first(
    tell: Any, effect_class: str, trace: str, check: bool, wanted: str | None
) -> None:
    story = tell().ask("a").start("a", effect_class, reach=["host:h"], check=check)
    story.close("a", "failed", effectTrace=trace)
    assert held(story) == wanted
    assert held(story, effect=Effect(EffectClass.UNKNOWN, ("*",), check=True)) is None


def half_done(tell: Any) -> Any:
    return tell().ask("a").start("a", reach=["host:h"]).close("a", "failed", effectTrace="possible")


def test_tr_209_it_holds_once(tell: Any) -> None:
    story = half_done(tell).ask("b")
    story.add(Kind.NOT_STARTED, attemptId="b", reason="look_first", tool="push", argumentDigest="d")
    assert held(story) is None


def test_tr_209_a_settled_read_or_a_message_of_a_person_ends_it(tell: Any) -> None:
    read = half_done(tell).ask("r").start("r", "READ_ONLY", reach=[]).close("r", "succeeded")
    assert held(read) is None
    unread = half_done(tell).ask("r").start("r", "READ_ONLY", reach=[]).close("r")
    assert held(unread) == "look_first"
    spoken = half_done(tell)
    spoken.add(Kind.USER, turnId="t", text="try again")
    assert held(spoken) is None


def test_tr_209_a_late_truth_counts_like_an_end(tell: Any) -> None:
    story = tell().unknown("a", reach=["host:h"]).late("a", "failed", effectTrace="possible")
    assert held(story) == "look_first"


def test_tr_8_a_class_of_a_newer_version_counts_as_the_strictest(tell: Any) -> None:
    story = tell().ask("a").start("a", "SIDEWAYS").close("a", "failed", effectTrace="possible")
    assert held(story) == "look_first"
