"""Classes, unions, and the overlap of reaches."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from surefoot.core.effects import (
    UNDECLARED,
    Effect,
    judged_effect,
    overlaps,
    retry_safe,
    stricter,
    stricter_class,
    union,
)
from surefoot.core.model import EffectClass, Receipt

R, I, N, U = (  # noqa: E741
    EffectClass.READ_ONLY,
    EffectClass.IDEMPOTENT_WRITE,
    EffectClass.NON_IDEMPOTENT,
    EffectClass.UNKNOWN,
)
RECEIPT = Receipt("ses", "trn", "cal", "att", 0, effect_class=I, reach=("path:/a",))


def test_ec_1_ec_2_there_are_four_classes_in_one_order_of_strictness() -> None:
    assert [word.value for word in EffectClass] == [
        "READ_ONLY",
        "IDEMPOTENT_WRITE",
        "NON_IDEMPOTENT",
        "UNKNOWN",
    ]
    for first, second in itertools.product(EffectClass, repeat=2):
        order = list(EffectClass)
        assert stricter_class(first, second) is order[max(order.index(first), order.index(second))]


def test_ec_3_undeclared_is_unknown_and_reaches_everything() -> None:
    assert (UNDECLARED.effect_class, UNDECLARED.reach) == (U, ("*",))


@pytest.mark.parametrize(("effect_class", "safe"), [(R, True), (I, True), (N, False), (U, False)])
def test_ec_52_retry_safe_is_computed_from_the_class_alone(effect_class: EffectClass, safe: bool) -> None:
    assert retry_safe(effect_class) is safe
    assert retry_safe(Effect(effect_class, ("*",), check=True, interaction=True)) is safe


def test_ec_9_parts_give_the_strictest_class_and_the_union_of_reaches() -> None:
    whole = union([Effect(R), Effect(I, ("path:/b",)), Effect(N, ("host:h", "path:/a"))])
    assert (whole.effect_class, whole.reach) == (N, ("host:h", "path:/a", "path:/b"))
    assert union([Effect(I, ("path:/b",)), UNDECLARED]).reach == ("*",)
    assert union([]) == UNDECLARED


def test_ec_9_a_push_behind_a_test_run_is_no_check() -> None:
    test, push, look = Effect(U, ("*",), check=True), Effect(N, ("repo:/w",)), Effect(R)
    assert union([look, test, test]).check
    assert not union([test, push]).check
    assert not union([look, push]).check


def test_ec_7_an_old_call_is_judged_by_the_stricter_of_stored_and_current() -> None:
    judged = stricter(Effect(I, ("path:/a",), check=True), Effect(N, ("path:/b",)))
    assert judged == Effect(N, ("path:/a", "path:/b"))
    assert stricter(Effect(N, ("*",)), Effect(R)) == Effect(N, ("*",))
    assert judged_effect(RECEIPT) == Effect(I, ("path:/a",))
    now = dataclasses.replace(RECEIPT, stricter_now={"class": "UNKNOWN", "reach": ["*"]})
    assert judged_effect(now) == Effect(U, ("*",))
    laxer = dataclasses.replace(RECEIPT, stricter_now={"class": "READ_ONLY", "reach": []})
    assert judged_effect(laxer) == Effect(I, ("path:/a",))


def test_ec_7_a_class_nobody_knows_counts_as_undeclared() -> None:
    assert judged_effect(dataclasses.replace(RECEIPT, effect_class=None)) == UNDECLARED
    newer = dataclasses.replace(RECEIPT, stricter_now={"class": "SOMETHING_NEW", "reach": []})
    assert judged_effect(newer).effect_class is U and judged_effect(newer).reach == ("*",)


def test_ec_45_the_question_mark_holds_only_when_both_say_so() -> None:
    asks = Effect(R, interaction=True)
    assert stricter(asks, asks).interaction
    assert not stricter(asks, Effect(U, ("*",))).interaction


OVERLAP = [
    ("*", "path:/a", True),
    ("*", "mcp:files", True),
    ("*", "*", True),
    ("path:/a", "path:/a", True),
    ("path:/a", "path:/a/", True),
    ("path:/a", "path:/a/b/c", True),
    ("path:/a", "path:/ab", False),
    ("path:/a/b", "path:/a/c", False),
    ("path:/", "path:/a", True),
    ("path:/A", "path:/a", False),
    ("path:a/b", "path:/z", True),
    ("path:/a/../b", "path:/z", True),
    ("host:h.example", "host:h.example", True),
    ("host:H.Example", "host:h.example", True),
    ("host:h.example", "host:api.h.example", True),
    ("host:h.example", "host:xh.example", False),
    ("host:h.example:80", "host:h.example:81", False),
    ("host:h.example:80", "host:h.example", True),
    ("host:[::1]:80", "host:[::1]:81", False),
    ("host:[::1]:80", "host:::1", True),
    ("repo:/w", "path:/w/src/a", True),
    ("repo:/w", "path:/", True),
    ("repo:/w", "path:/x", False),
    ("repo:/w", "repo:/w", True),
    ("repo:/w", "repo:/w/sub", True),
    ("repo:/w", "repo:/x", False),
    ("repo:/w", "host:h.example", False),
    ("repo:h.example/o/n", "host:h.example", True),
    ("repo:h.example/o/n", "host:api.h.example", True),
    ("repo:h.example/o/n", "host:other.example", False),
    ("repo:h.example/o/n", "repo:h.example/O/n.git", True),
    ("repo:h.example/o/n", "repo:h.example/o/m", False),
    ("repo:h.example/o/n", "repo:/w", False),
    ("repo:h.example/o/n", "path:/w", False),
    ("db:s/d", "db:s/d/public/t", True),
    ("db:s/d/public/t", "db:s/d/public/u", False),
    ("db:s/d", "db:s/e", False),
    ("db:s:5432/d", "db:s:5433/d", False),
    ("db:s:5432/d", "db:s/d", True),
    ("db:s/d", "db:other/d", False),
    ("db:s.example/d", "host:s.example", True),
    ("db:s.example/d", "host:example", True),
    ("db:s.example/d", "host:t.example", False),
    ("db:file:/x/app.db", "path:/x/app.db", True),
    ("db:file/x/app.db", "path:/x", True),
    ("db:file:/x/app.db", "db:file/x/app.db", True),
    ("db:file:/x/app.db", "path:/y", False),
    ("db:file:/x/app.db", "host:file", False),
    ("db:s/d", "path:/s/d", False),
    ("mcp:a", "mcp:a", True),
    ("mcp:a", "mcp:b", False),
    ("mcp:a", "path:/a", False),
    ("app:x", "path:/a", True),
    ("nonsense", "path:/a", True),
    ("path:", "mcp:a", True),
]


@pytest.mark.parametrize(("one", "other", "wanted"), OVERLAP)
def test_ec_12_members_overlap_as_listed_either_way_round(one: str, other: str, wanted: bool) -> None:
    assert overlaps([one], [other]) is wanted
    assert overlaps([other], [one]) is wanted


def test_ec_12_one_pair_of_members_is_enough_and_an_empty_reach_meets_nothing() -> None:
    assert overlaps(["path:/a", "host:h"], ["mcp:x", "host:h"])
    assert not overlaps([], ["*"])
    assert not overlaps([], [])


def test_ec_11_a_kind_a_pack_added_overlaps_only_with_itself() -> None:
    assert overlaps(["app:x"], ["app:x"], kinds=["app"])
    assert not overlaps(["app:x"], ["app:y"], kinds=["app"])
    assert not overlaps(["app:x"], ["path:/x"], kinds=["app"])
