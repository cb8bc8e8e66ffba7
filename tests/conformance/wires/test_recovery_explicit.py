"""Refusals without a reason: offered, admitted once, accounted for, sent once; against the strict emulator."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.model import Kind, TurnStatus
from surefoot.core.restated import CLOSING, OPENING, PROMPT
from surefoot.runtime.requests import Answer
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.replaying import Peer, Stand

CHAT = Peer("chat", "deepseek", "deepseek/chat")
RESPONSES = Peer("responses", "deepseek", "deepseek/responses")
GATEWAY = Peer("anthropic", "deepseek", "deepseek/anthropic", effort="low")
PEERS = pytest.mark.parametrize("peer", [CHAT, RESPONSES, GATEWAY], ids=lambda peer: peer.name)
LOOK = {"thinking": "I look first.", "calls": [{"name": "look", "args": {"label": "a"}}]}
PAY = {"thinking": "I pay.", "calls": [{"name": "pay", "args": {"label": "a"}}]}
DONE = {"text": "Done.", "thinking": "So."}


def refuse_wordless(emulator: Emulator, nth: int = 2, **more: Any) -> None:
    """A 400 with nothing in it."""
    emulator.fault(match={"nth": nth}, status=400, raw="", **more)


async def refused_turn(stand: Stand, *steps: dict[str, Any]) -> Any:
    stand.emulator.script([*(steps or (LOOK,)), DONE])
    refuse_wordless(stand.emulator)
    return await stand.crew.controller.submit("How many effects?")


@PEERS
async def test_pr_13_pr_32_fi_2_a_wordless_refusal_stops_and_the_explicit_recovery_finishes_it(
    peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        end = await refused_turn(stand)
        assert (end.status, stand.statuses()) == (TurnStatus.FAILED, [200, 400])
        found = await stand.crew.controller.pending_recovery()
        assert found is not None and found.fields["kind"] == "upstream_reason_missing"
        done = await stand.crew.controller.recover_context(found.id, "only the count\nplease ")
        assert not isinstance(done, Answer), done
        assert (done.status, stand.statuses(), stand.starts()) == (TurnStatus.COMPLETED, [200, 400, 200], 1)
        sent = emulator.requests()[-1].body.decode()
        assert PROMPT in json.dumps(json.loads(sent), ensure_ascii=False)
        assert "User guidance: only the count" in sent and OPENING in sent and CLOSING in sent
        hosts = await stand.crew.entries(Kind.HOST)
        assert len(hosts) == 1 and hosts[0].payload["text"].endswith("User guidance: only the count\nplease ")


async def test_pr_19_pr_24_the_offer_is_durable_before_the_turn_ends_and_bound_to_its_prefix(
    tmp_path: Path,
) -> None:
    async with Emulator() as emulator, Stand(emulator, CHAT, tmp_path) as stand:
        await refused_turn(stand)
        entries = await stand.crew.entries()
        kinds = [entry.kind for entry in entries]
        last_turn = max(entry.position for entry in entries if entry.kind == Kind.TURN)
        record = next(entry for entry in entries if entry.kind == Kind.INCIDENT)
        assert kinds.count(Kind.INCIDENT) == 1 and record.position < last_turn
        fields = json.loads(record.payload["record"])
        assert (fields["state"], fields["prefix"], fields["count"], fields["projected"]) == (
            "pending",
            3,
            3,
            False,
        )
        assert fields["version"] == 1 and fields["id"].startswith("inc_") and len(fields["id"]) == 30


async def test_pr_19_a_record_counts_the_request_among_all_of_the_session_also_those_without_a_call(
    tmp_path: Path,
) -> None:
    plain = {"text": "Done."}
    async with (
        Emulator() as emulator,
        Stand(emulator, Peer("chat", "openai", "openai/chat"), tmp_path) as stand,
    ):
        emulator.script([plain, plain, {**LOOK, "thinking": None}, plain])
        refuse_wordless(emulator, nth=4)
        for words in ("Hello.", "Again.", "How many?"):
            await stand.crew.controller.submit(words)
        (record,) = await stand.crew.entries(Kind.INCIDENT)
        assert stand.statuses() == [200, 200, 200, 400]
        assert json.loads(record.payload["record"])["run"] == 4


async def test_pr_30_pr_82_a_second_press_is_answered_spent_and_shows_the_first_result(
    tmp_path: Path,
) -> None:
    async with Emulator() as emulator, Stand(emulator, CHAT, tmp_path) as stand:
        await refused_turn(stand)
        first = await stand.crew.controller.recover_context()
        assert not isinstance(first, Answer)
        again = await stand.crew.controller.recover_context()
        assert isinstance(again, Answer) and again.status == 409
        assert again.body["code"] == "recovery_spent"
        assert again.body["incident"]["outcome"] == "recovered"
        assert stand.statuses() == [200, 400, 200]


async def test_pr_24_new_words_expire_the_offer_in_their_own_commit(tmp_path: Path) -> None:
    async with Emulator() as emulator, Stand(emulator, CHAT, tmp_path) as stand:
        await refused_turn(stand)
        offered = await stand.crew.controller.pending_recovery()
        assert offered is not None
        await stand.crew.controller.submit("something else")
        records = await stand.records()
        assert json.loads(records[-1].payload["record"])["expired_by"] == "new_input"
        answer = await stand.crew.controller.recover_context(offered.id)
        assert isinstance(answer, Answer) and answer.body["code"] == "recovery_stale"
        assert answer.body["reason"] == "new_input"
        assert stand.statuses() == [200, 400, 200]


async def test_pr_40_pr_41_a_consumed_budget_is_not_renewed_by_pressing_or_going_on(tmp_path: Path) -> None:
    async with Emulator() as emulator, Stand(emulator, CHAT, tmp_path) as stand:
        emulator.script([LOOK, DONE])
        for nth in (2, 3, 4):
            refuse_wordless(emulator, nth)
        await stand.crew.controller.submit("How many?")
        end = await stand.crew.controller.recover_context()
        assert not isinstance(end, Answer) and end.status is TurnStatus.FAILED
        assert await stand.crew.controller.pending_recovery() is None
        await stand.crew.controller.go_on()
        assert await stand.crew.controller.pending_recovery() is None
        card = await stand.crew.controller.incidents.card()
        assert card is not None and card["reason_not_offered"] == "spent" and len(card["ways"]) >= 2
        assert stand.statuses() == [200, 400, 400, 400]


async def test_pr_43_pr_44_the_repaired_prefix_survives_restart_and_a_restart_sends_nothing(
    tmp_path: Path,
) -> None:
    async with Emulator() as emulator:
        async with Stand(emulator, CHAT, tmp_path) as stand:
            await refused_turn(stand)
            await stand.crew.controller.recover_context()
        recovered = emulator.requests()[-1].json()["messages"]
        async with Stand(emulator, CHAT, tmp_path, new=False) as stand:
            assert len(emulator.requests()) == 3
            emulator.script([DONE])
            await stand.crew.controller.submit("and now?")
        later = emulator.requests()[-1].json()["messages"]
        assert later[: len(recovered)] == recovered


async def test_pr_59_fi_17_a_repeated_call_is_answered_from_its_receipt(tmp_path: Path) -> None:
    async with Emulator() as emulator, Stand(emulator, CHAT, tmp_path) as stand:
        again = {"calls": [{"name": "look", "args": {"label": "a"}}], "thinking": "Again."}
        emulator.script([LOOK, again, again, DONE])
        refuse_wordless(emulator)
        await stand.crew.controller.submit("How many?")
        done = await stand.crew.controller.recover_context()
        assert not isinstance(done, Answer) and done.status is TurnStatus.COMPLETED
        receipts = list(stand.crew.session.book)
        assert [one.reason for one in receipts] == [None, "answered_from_receipt", None]
        assert stand.starts() == 2  # the second identical reading is wanted anew


async def test_pr_59_fi_17_a_write_is_never_run_twice_in_the_window(tmp_path: Path) -> None:
    async with Emulator() as emulator, Stand(emulator, CHAT, tmp_path) as stand:
        emulator.script([PAY, PAY, PAY, DONE])
        refuse_wordless(emulator)
        await stand.crew.controller.submit("Pay once.")
        done = await stand.crew.controller.recover_context()
        assert not isinstance(done, Answer) and done.status is TurnStatus.COMPLETED
        assert stand.world.count("a") == 1
        reasons = [one.reason for one in stand.crew.session.book]
        assert reasons == [None, "answered_from_receipt", "answered_from_receipt"]


async def test_pr_58_fi_19_a_healthy_session_holds_no_facts_and_keeps_every_message(tmp_path: Path) -> None:
    async with Emulator() as emulator, Stand(emulator, CHAT, tmp_path) as stand:
        emulator.script([LOOK, LOOK, DONE])
        await stand.crew.controller.submit("How many?")
        shas = [entry.message_shas for entry in emulator.requests()]
        assert all(later[: len(earlier)] == earlier for earlier, later in itertools.pairwise(shas))
        assert all(OPENING.encode() not in entry.body for entry in emulator.requests())


@pytest.mark.parametrize(
    "body",
    [
        {"status": 401, "raw": '{"error":{"message":"messages tool thinking reasoning","type":"x"}}'},
        {"status": 402, "raw": '{"error":{"message":"Insufficient Balance for tool messages"}}'},
        {"status": 400, "raw": '{"error":{"message":"You exceeded your current quota for reasoning"}}'},
        {"status": 400, "raw": '{"error":{"message":"Unknown parameter: tools"}}'},
    ],
    ids=["auth", "quota", "quota-400", "schema"],
)
async def test_pr_28_fi_14_refusals_of_another_kind_make_no_incident(
    body: dict[str, Any], tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, CHAT, tmp_path) as stand:
        emulator.script([LOOK, DONE])
        emulator.fault(match={"nth": 2}, **body)
        end = await stand.crew.controller.submit("How many?")
        emulator.assert_fired()
        assert end.status is TurnStatus.FAILED
        assert await stand.records() == [] and await stand.crew.controller.pending_recovery() is None


@PEERS
async def test_pr_35_reasoning_left_out_is_asked_for_once_more_before_any_call_runs(
    peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([LOOK, LOOK, DONE])
        emulator.fault(match={"nth": 1}, reasoning_mode="omit")
        end = await stand.crew.controller.submit("How many?")
        emulator.assert_fired()
        assert end.status is TurnStatus.COMPLETED and stand.starts() == 1
        bodies = [entry.body_sha for entry in emulator.requests()]
        assert bodies[0] == bodies[1] and len(bodies) == 3
        fields = json.loads((await stand.records())[0].payload["record"])
        assert (fields["origin"], fields["projected"], fields["state"]) == ("regeneration", False, "consumed")
