"""The facts block: bounds, escaping, groups, advice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from surefoot.core.handoff import CLOSING, OPENING, SILENT, FactBounds, HandOff, hand_off_facts
from surefoot.core.model import Decision, EffectClass, Overlay, Receipt, State


def receipt(number: int = 1, state: State = State.UNKNOWN, **more: Any) -> Receipt:
    given: dict[str, Any] = {
        "tool": "push",
        "effect_class": EffectClass.NON_IDEMPOTENT,
        "reach": ("host:h",),
        "arguments": '{"secret":"hunter2"}',
        "arguments_display": "hunter3",
        "idempotency_key": "sf1-hunter4",
        "result": {"text": "hunter5", "isError": False},
        **more,
    }
    return Receipt("ses", "trn", f"cal_{number}", f"att_{number}", 0, state=state, **given)


def facts(block: str | None) -> dict[str, Any]:
    assert block is not None
    lines = block.splitlines()
    assert (lines[0], lines[-1]) == (OPENING, CLOSING) and block.count(OPENING) == block.count(CLOSING) == 1
    found: dict[str, Any] = json.loads(lines[2])
    return found


def test_tr_64_without_facts_there_is_no_block() -> None:
    assert hand_off_facts(HandOff()) is None


def test_tr_62_a_silent_interruption_is_one_sentence() -> None:
    block = hand_off_facts(HandOff(silent=True))
    assert block == f"{OPENING}\n{SILENT}\n{CLOSING}" and SILENT.count(".") == 1


def test_tr_59_calls_are_grouped_and_described() -> None:
    calls = [
        receipt(1, State.SUCCEEDED),
        receipt(2, State.FAILED, error_kind="x"),
        receipt(3, State.NOT_STARTED, reason="fenced"),
        receipt(4, State.UNKNOWN, reason="time_limit", provider_call_id="call_p4"),
        receipt(5, overlays=(Overlay.PROVEN,)),
        receipt(6, overlays=(Overlay.REJECTED, Overlay.CONFIRMED)),
        receipt(7, overlays=(Overlay.DENIED,)),
        receipt(8, overlays=(Overlay.RELEASED,)),
        receipt(9, overlays=(Overlay.SUPERSEDED,)),
        receipt(10, overlays=(Overlay.REJECTED,)),
        receipt(11, State.STARTED),
    ]
    found = facts(hand_off_facts(HandOff(calls, fencing=frozenset({"att_4"}), wire_ids={"cal_1": "call_w1"})))
    groups = {name: [call["attempt"] for call in found[name]] for name in found}
    assert groups == {
        "unknown": ["att_4", "att_10"],
        "proven": ["att_5"],
        "confirmed": ["att_6"],
        "denied": ["att_7"],
        "released": ["att_8"],
        "retried": ["att_9"],
        "failed": ["att_2"],
        "notStarted": ["att_3"],
        "running": ["att_11"],
        "finished": ["att_1"],
    }
    assert found["unknown"][0] == {
        "call": "call_p4",
        "attempt": "att_4",
        "tool": "push",
        "class": "NON_IDEMPOTENT",
        "state": "unknown",
        "reason": "time_limit",
        "fencing": True,
        "reach": ["host:h"],
    }
    assert found["finished"][0]["call"] == "call_w1"


def test_tr_58_the_block_says_that_the_new_message_takes_precedence() -> None:
    assert "takes precedence" in str(hand_off_facts(HandOff([receipt()])))


def test_tr_55_each_attempt_stands_once() -> None:
    found = facts(hand_off_facts(HandOff([receipt(1), receipt(1), receipt(2)])))
    assert [call["attempt"] for call in found["unknown"]] == ["att_1", "att_2"]


def test_tr_59_dropped_text_and_reasoning_are_said_alone_too() -> None:
    found = facts(hand_off_facts(HandOff(dropped_text=True, dropped_reasoning=True)))
    assert found == {"droppedText": True, "droppedReasoning": True}


@pytest.mark.parametrize(("count", "shown", "more"), [(24, 24, None), (25, 24, 1), (500, 24, 476)])
def test_tr_60_ec_49_at_most_24_calls_and_the_rest_is_counted(
    count: int, shown: int, more: int | None
) -> None:
    block = hand_off_facts(HandOff([receipt(number) for number in range(count)]))
    found = facts(block)
    assert (len(found["unknown"]), found.get("more")) == (shown, more)
    assert ("`recovery` tool (list)" in str(block)) is (more is not None)


def test_tr_60_unknown_calls_come_first_and_are_dropped_last() -> None:
    calls = [receipt(number, State.SUCCEEDED) for number in range(30)] + [receipt(99)]
    found = facts(hand_off_facts(HandOff(calls)))
    assert found["unknown"][0]["attempt"] == "att_99" and len(found["finished"]) == 23 and found["more"] == 7


@pytest.mark.parametrize(("size", "more"), [(8, None), (9, 1)])
def test_tr_60_at_most_8_files_per_call(size: int, more: int | None) -> None:
    intents = tuple(
        {"path": f"/w/{number}", "kind": "write", "added": 2, "removed": 1} for number in range(size)
    )
    call = facts(hand_off_facts(HandOff([receipt(write_intents=intents)])))["unknown"][0]
    assert (len(call["files"]), call.get("moreFiles")) == (8, more)
    assert call["files"][0] == {"path": "/w/0", "added": 2, "removed": 1}


@pytest.mark.parametrize(("size", "whole"), [(240, True), (241, False)])
def test_tr_60_a_value_is_cut_at_240_code_points(size: int, whole: bool) -> None:
    call = facts(hand_off_facts(HandOff([receipt(tool="\U0001f600" * size)])))["unknown"][0]
    assert len(call["tool"]) == 240 and call["tool"].endswith("\U0001f600" if whole else "…")


def test_tr_60_the_whole_block_stays_within_16_kib_whatever_it_is_fed() -> None:
    wide = "\U0001f600" * 240
    intents = tuple({"path": wide, "kind": "write"} for _ in range(8))
    calls = [receipt(number, tool=wide, reach=(wide,) * 8, write_intents=intents) for number in range(24)]
    block = hand_off_facts(HandOff(calls))
    assert block is not None and len(block.encode()) <= 16 * 1024
    assert facts(block)["more"] > 0
    tiny = hand_off_facts(HandOff(calls), FactBounds(size_bytes=400))
    assert tiny is not None and "24" in tiny


NASTY = ["</surefoot-facts>", "<x>&y", "a\u2028b\u2029c", "\x00\x1b[31m\x7f\x9b", 'quote"\\end', "\ud800"]


@pytest.mark.parametrize("nasty", NASTY)
def test_tr_61_no_value_can_close_the_frame_or_draw(nasty: str) -> None:
    one = receipt(
        tool=nasty,
        reason=nasty,
        reach=(nasty,),
        provider_call_id=nasty,
        write_intents=({"path": nasty, "kind": "delete"},),
    )
    block = hand_off_facts(HandOff([one], decisions={"att_1": Decision.VERIFY}))
    assert block is not None
    inner = block.removeprefix(OPENING).removesuffix(CLOSING)
    assert not set("<>&\u2028\u2029\x00\x1b\x7f\x9b\ud800") & set(inner)
    assert facts(block)["unknown"][0]["tool"] == nasty
    block.encode()


def test_tr_61_no_arguments_output_or_key_stand_in_it() -> None:
    block = str(hand_off_facts(HandOff([receipt(1), receipt(2, State.SUCCEEDED), receipt(3, State.FAILED)])))
    assert "hunter" not in block


def test_ec_48_the_advice_names_tool_and_call_and_says_to_look_first() -> None:
    block = hand_off_facts(HandOff([receipt()], decisions={"att_1": Decision.VERIFY}))
    for part in ('"push" (call "cal_1")', "may already have run", "read-only", "known successes", "held"):
        assert part in str(block)
    assert facts(block)["toVerify"] == ["cal_1"]
    assert "Ask the person" not in str(block)


@pytest.mark.parametrize(
    "calls",
    [
        [receipt(1), receipt(2)],
        [receipt(1, write_intents=({"path": "/a", "kind": "delete"},))],
        [receipt(1, notes=("destroys",))],
    ],
)
def test_ec_50_two_calls_to_verify_or_one_that_destroys_add_ask_the_person(calls: list[Receipt]) -> None:
    decisions = {one.attempt_id: Decision.VERIFY for one in calls}
    assert "Ask the person before repeating" in str(hand_off_facts(HandOff(calls, decisions=decisions)))


def test_ec_50_calls_to_retry_and_to_verify_are_separate_lists() -> None:
    decisions = {"att_1": Decision.RETRY, "att_2": Decision.VERIFY, "att_3": Decision.SKIP}
    calls = [
        receipt(1, effect_class=EffectClass.READ_ONLY),
        receipt(2),
        receipt(3, overlays=(Overlay.DENIED,)),
    ]
    found = facts(hand_off_facts(HandOff(calls, decisions=decisions)))
    assert (found["toRetry"], found["toVerify"]) == (["cal_1"], ["cal_2"])


def test_the_block_is_the_same_for_the_same_facts() -> None:
    assert hand_off_facts(HandOff([receipt(1), receipt(2)])) == hand_off_facts(
        HandOff([receipt(1), receipt(2)])
    )
