"""Going on from a response that the provider keeps, where a contract says that it does (`pairing.chaining`)."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from surefoot.core.model import TurnStatus
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.replaying import Peer, Stand

PLAIN = Peer("responses", "openai", "openai/responses")
CHAINED = dataclasses.replace(PLAIN, declared={"pairing.chaining": "previous_response_id"})
DONE = {"text": "Done.", "thinking": "So."}
PAY = {"thinking": "I do it.", "calls": [{"name": "pay", "args": {"label": "a"}}]}


def kinds(body: dict[str, Any]) -> list[str]:
    return [str(one.get("type") or one.get("role")) for one in body["input"]]


async def test_or_11_a_chained_request_holds_only_what_came_behind_the_kept_response(tmp_path: Path) -> None:
    async with Emulator() as emulator, Stand(emulator, CHAINED, tmp_path) as stand:
        emulator.script([PAY, DONE, DONE])
        for words in ("Pay.", "And now?"):
            end = await stand.crew.controller.submit(words)
            assert (end.status, end.text) == (TurnStatus.COMPLETED, "Done."), end
        sent = [one.json() for one in emulator.requests()]
        assert stand.statuses() == [200, 200, 200] and stand.world.count() == 1
        assert [kinds(one) for one in sent] == [["user"], ["function_call_output"], ["user"]]
        assert "previous_response_id" not in sent[0] and all(one["store"] is True for one in sent)
        assert sent[1]["previous_response_id"] != sent[2]["previous_response_id"]


async def test_or_11_a_chain_that_is_gone_gives_way_to_the_whole_local_history_once_and_for_good(
    tmp_path: Path,
) -> None:
    async with Emulator() as emulator, Stand(emulator, CHAINED, tmp_path) as stand:
        emulator.script([PAY, DONE, DONE])
        gone = [{"path": ["previous_response_id"], "value": "resp_gone"}]
        emulator.fault(match={"nth": 2}, tamper_request=gone)
        end = await stand.crew.controller.submit("Pay.")
        assert (end.status, end.text) == (TurnStatus.COMPLETED, "Done."), end
        assert (await stand.crew.controller.submit("And now?")).status is TurnStatus.COMPLETED
        emulator.assert_fired()
        assert stand.statuses() == [200, 400, 200, 200] and stand.world.count() == 1
        whole = [one.json() for one in emulator.requests()][2:]
        assert not any("previous_response_id" in one for one in whole)
        assert all("function_call" in kinds(one) and "function_call_output" in kinds(one) for one in whole)


async def test_or_11_b15_a_compaction_ends_the_chain_because_the_provider_still_has_what_was_summed_up(
    tmp_path: Path,
) -> None:
    async with Emulator() as emulator, Stand(emulator, CHAINED, tmp_path) as stand:
        emulator.script([PAY, DONE, {"text": "It was paid."}, DONE])
        assert (await stand.crew.controller.submit("Pay.")).status is TurnStatus.COMPLETED
        await stand.crew.controller.rewriting.compact()
        assert (await stand.crew.controller.submit("And now?")).status is TurnStatus.COMPLETED
        assert stand.statuses() == [200] * 4
        assert "previous_response_id" not in emulator.requests()[-1].json()


async def test_or_11_without_the_key_no_request_is_chained_and_nothing_is_kept_there(tmp_path: Path) -> None:
    async with Emulator() as emulator, Stand(emulator, PLAIN, tmp_path) as stand:
        emulator.script([PAY, DONE])
        assert (await stand.crew.controller.submit("Pay.")).status is TurnStatus.COMPLETED
        sent = [one.json() for one in emulator.requests()]
        assert all("previous_response_id" not in one and one["store"] is False for one in sent)


async def test_wc_3_a_chain_is_not_gone_on_from_at_another_endpoint(tmp_path: Path) -> None:
    elsewhere = dataclasses.replace(CHAINED, endpoint="another")
    async with Emulator() as emulator:
        emulator.script([PAY, DONE, DONE])
        async with Stand(emulator, CHAINED, tmp_path) as stand:
            assert (await stand.crew.controller.submit("Pay.")).status is TurnStatus.COMPLETED
        async with Stand(emulator, elsewhere, tmp_path, new=False) as other:
            assert (await other.crew.controller.submit("And now?")).status is TurnStatus.COMPLETED
        assert "previous_response_id" not in emulator.requests()[-1].json()
