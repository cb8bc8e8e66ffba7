"""Random cuts and damages of recorded histories become requests the emulator accepts, on every tier-1 contract."""

from __future__ import annotations

import random

import pytest

from surefoot.testing.damages import DAMAGES, healthy_bytes_differ, invented, judge, main, record, run
from surefoot.testing.replaying import TIER_ONE, Peer


@pytest.mark.promise("projection:valid")
def test_pr_47_pr_50_damaged_histories_are_accepted_at_once_or_after_one_repair() -> None:
    counts, faults = run(400, seed=1)
    assert faults == []
    assert counts["repaired"] > 0 and counts["accepted"] + counts["repaired"] == 400


@pytest.mark.promise("projection:no-invented-success")
@pytest.mark.parametrize("peer", TIER_ONE, ids=lambda peer: peer.name)
def test_case_b06_we_31_no_damage_on_any_contract_makes_a_request_that_is_refused_or_tells_an_invented_success(
    peer: Peer,
) -> None:
    for number in range(12):
        dice = random.Random(f"{peer.name} {number}")
        made = record(peer, dice)
        messages = list(made.messages)
        for name in dice.sample(sorted(DAMAGES), 3):
            messages = DAMAGES[name](messages, dice) or messages
        verdict = judge(made.talk, messages)
        assert verdict.good, (number, verdict)


def test_we_31_a_result_nobody_gave_is_seen() -> None:
    made = record(TIER_ONE[0], random.Random(1))
    body = made.talk.encode(made.messages)
    assert invented(body, made.messages) == ""
    told = next(one for one in body["messages"] if one["role"] == "tool")
    told["content"] = "All done."
    assert invented(body, made.messages) == "All done."


@pytest.mark.promise("projection:prefix-stable")
@pytest.mark.parametrize("peer", TIER_ONE, ids=lambda peer: peer.name)
def test_pr_48_a_healthy_history_is_byte_identical_in_every_later_request(peer: Peer) -> None:
    made = record(peer, random.Random(peer.name))
    assert made.sent and not healthy_bytes_differ(made)
    assert judge(made.talk, made.messages).how == "accepted"


@pytest.mark.promise("projection:pure")
@pytest.mark.parametrize("name", sorted(DAMAGES))
def test_pr_47_a_damage_is_seen_by_the_emulator_or_repaired_the_same_way_every_time(name: str) -> None:
    peer = TIER_ONE[17]
    first, again = (
        DAMAGES[name](list(record(peer, random.Random(3)).messages), random.Random(5)) for _ in range(2)
    )
    talk = record(peer, random.Random(3)).talk
    assert talk.encode(first) == talk.encode(again)


def test_pr_47_the_command_prints_what_became_of_the_histories(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "20", "--seed", "2"]) == 0
    assert capsys.readouterr().out.startswith("20 damaged histories over 20 contracts: accepted")
