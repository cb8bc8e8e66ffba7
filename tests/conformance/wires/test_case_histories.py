"""Cases of family B whose history is rewritten or came mixed: what goes out next is whole and accepted."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from surefoot.core.effects import Effect
from surefoot.core.history import AssistantWords, CallAsked, History, Message, ResultGiven, UserWords
from surefoot.core.lifecycle import Book
from surefoot.core.model import Draft, EffectClass, Entry, Kind, State, TurnStatus
from surefoot.core.rewriting import as_json, cut, notes_payload
from surefoot.providers.rules import check, refusing
from surefoot.runtime.tools import Outcome, Tool
from surefoot.testing.damages import DAMAGES, Talk, record
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.replaying import KEY, Peer, Stand

CHAT = Peer("chat", "openai", "openai/chat")
RESPONSES = Peer("responses", "openai", "openai/responses")
MESSAGES = Peer("anthropic", "anthropic", "anthropic/anthropic", effort="low")
PEERS = pytest.mark.parametrize("peer", [CHAT, RESPONSES, MESSAGES], ids=lambda peer: peer.wire)
DONE = {"text": "Done.", "thinking": "So."}
SUMMED = {"text": "It was paid."}


def step(*labels: str, tool: str = "pay") -> dict[str, Any]:
    calls = [{"name": tool, "args": {"label": label}} for label in labels]
    return {"thinking": "I do it.", "calls": calls}


def results(body: Any) -> list[str]:
    """The text of every result a request shows, in order."""
    shown = [one["output"] for one in body.get("input", ()) if one.get("type") == "function_call_output"]
    for message in body.get("messages", ()):
        blocks = message["content"] if isinstance(message["content"], list) else ()
        shown += [message["content"]] if message["role"] == "tool" else []
        shown += [block.get("content", "") for block in blocks if block["type"] == "tool_result"]
    return shown


async def came_with(stand: Stand, messages: Sequence[Message]) -> None:
    """Give the session a history that nobody of this program wrote."""
    await stand.crew.session.history()
    view = {"origin": {"sessionId": "elsewhere", "position": 1}, "pinned": []}
    await stand.crew.session.append(
        Draft(Kind.FORKED, {**view, "messages": [as_json(one) for one in messages]})
    )


# --- B06 -------------------------------------------------------------------------------------


@PEERS
@pytest.mark.parametrize("name", sorted(DAMAGES))
async def test_case_b06_pr_14_a_damaged_history_poisons_no_later_prompt_and_no_request_breaks_a_known_rule(
    peer: Peer, name: str, tmp_path: Path
) -> None:
    dice = random.Random(name)
    damaged = DAMAGES[name](list(record(peer, dice).messages), dice)
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([DONE, DONE])
        await came_with(stand, damaged)
        for words in ("And now?", "And then?"):
            end = await stand.crew.controller.submit(words)
            assert (end.status, end.text) == (TurnStatus.COMPLETED, "Done."), end
        model: Any = stand.crew.model
        for one in emulator.requests():
            assert refusing(check(one.json(), model.contract)) == []
        # One repair at most, and before it the one equal request of OR-07.
        assert stand.statuses()[-1] == 200 and stand.statuses().count(400) <= 2


# --- B15 -------------------------------------------------------------------------------------


@pytest.mark.parametrize("broken", [False, True], ids=["summed up", "summary broke off"])
async def test_case_b15_or_11_after_a_compaction_inside_a_tool_loop_the_next_request_is_whole_and_unchained(
    broken: bool, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, RESPONSES, tmp_path) as stand:
        emulator.script([step("a"), step("b"), SUMMED, DONE])
        if broken:
            emulator.fault(match={"nth": 3}, cut_at=2)
        stand.crew.controller.rewriting.window_tokens = 10  # every reply comes near it
        end = await stand.crew.controller.submit("Pay twice.")
        assert (end.status, end.text) == (TurnStatus.COMPLETED, "Done.")
        emulator.assert_fired()
        assert len(await stand.crew.entries(Kind.COMPACTED)) == (0 if broken else 1)
        sent = [one.json() for one in emulator.requests()]
        assert stand.statuses() == [200] * len(sent) and stand.world.count() == 2
        assert not any("previous_response_id" in one for one in sent)
        asked = [item["call_id"] for item in sent[-1]["input"] if item.get("type") == "function_call"]
        told = [item["call_id"] for item in sent[-1]["input"] if item.get("type") == "function_call_output"]
        assert asked == told and len(told) == (2 if broken else 1)
        refused = await chained(emulator, told[-1])
        assert refused == 400, "the far side keeps no chain to go on from, so a chained request would fail"


async def chained(emulator: Emulator, call_id: str) -> int:
    """What the same far side says to a request that leans on a response it does not have."""
    output = {"type": "function_call_output", "call_id": call_id, "output": "ok"}
    body = {"model": "m", "input": [output], "previous_response_id": "resp_gone"}
    async with httpx2.AsyncClient(trust_env=False) as client:
        url = emulator.base_url("openai", wire="responses") + "/responses"
        answer = await client.post(url, json=body, headers={"authorization": f"Bearer {KEY}"})
        return answer.status_code


# --- B17 -------------------------------------------------------------------------------------


async def entries_of(peer: Peer, folder: Path) -> list[Entry]:
    """A session of three turns, one of them with a batch, as its ledger has it."""
    async with Emulator() as emulator, Stand(emulator, peer, folder) as stand:
        emulator.script([step("a", "b", "c"), DONE, step("d"), step("a", tool="look"), DONE, DONE])
        for words in ("Pay three.", "Pay one and look.", "And now?"):
            assert (await stand.crew.controller.submit(words)).status is TurnStatus.COMPLETED
        return await stand.crew.entries()


def marked(entries: Sequence[Entry], place: int, *, mid_turn: bool) -> tuple[list[Message], list[str]] | None:
    """The view when a compaction is drawn behind `place` entries, and the results that are stored by the end."""
    history, book = History(), Book()
    for entry in entries[:place]:
        history.apply(entry)
        book.apply(entry)
    messages = history.messages(book)
    made = cut(messages, book, mid_turn=mid_turn)
    if made is None:
        return None
    payload = notes_payload(made, messages, book, told_before=history.requests, summary=None)
    last = entries[place - 1]
    history.apply(
        dataclasses.replace(last, kind=Kind.COMPACTED, payload={**payload, "who": "person", "at": 0})
    )
    for entry in entries[place:]:
        history.apply(entry)
        book.apply(entry)
    stored = [str((one.result or {}).get("text")) for one in book]
    return history.messages(book), stored


@PEERS
async def test_case_b17_pr_52_a_marker_drawn_at_any_place_parts_no_pair_and_makes_up_no_result(
    peer: Peer, tmp_path: Path
) -> None:
    entries = await entries_of(peer, tmp_path)
    drawn = 0
    for place in range(1, len(entries) + 1):
        for mid_turn in (False, True):
            found = marked(entries, place, mid_turn=mid_turn)
            if found is None:
                continue
            drawn += 1
            messages, stored = found
            talk = Talk(peer, [DONE])
            body = talk.encode([*messages, UserWords("t9", "Go on.")])
            status, said = talk.ask(body)
            assert status == 200, (place, mid_turn, said)
            shown = results(body)
            assert all(one in stored for one in shown), (place, shown)
            asked = [call for one in messages if isinstance(one, AssistantWords) for call in one.calls]
            assert len(shown) == len(asked), (place, mid_turn)
    assert drawn > len(entries)


# --- B18 -------------------------------------------------------------------------------------


def mixed() -> list[Message]:
    """What came from elsewhere: words of the person beside results, one of them of a call that is gone."""
    gone = CallAsked("cal_gone", "att_gone", 0, "search", "{}", "call_gone")
    kept = CallAsked("cal_kept", "att_kept", 0, "look", '{"label": "a"}', "call_kept")
    return [
        UserWords("trn_1", "Here is what I have."),
        ResultGiven(gone, "found by a search that was summed up", False),
        AssistantWords(2, "I look.", (kept,), "", {}),
        UserWords("trn_1", "By the way, in the same message."),
        ResultGiven(kept, "7 effects", False),
    ]


@PEERS
async def test_case_b18_pr_50_a_mixed_history_is_split_and_its_orphan_is_marked_text_also_after_a_compaction(
    peer: Peer, tmp_path: Path
) -> None:
    peer = dataclasses.replace(peer, profile="compat", contract=f"compat/{peer.wire}")
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([DONE, SUMMED, DONE])
        await came_with(stand, mixed())
        assert (await stand.crew.controller.submit("Go on.")).status is TurnStatus.COMPLETED
        body = emulator.requests()[0].json()
        sent = emulator.requests()[0].body.decode()
        assert results(body) == ["7 effects"], "the orphan is no result any more"
        assert "[Result of an earlier call to search, whose request is not shown]" in sent
        assert "found by a search that was summed up" in sent and "By the way" in sent
        assert "code" not in await stand.crew.controller.rewriting.compact()
        assert (await stand.crew.controller.submit("And now?")).status is TurnStatus.COMPLETED
        assert stand.statuses() == [200, 200, 200] and results(emulator.requests()[-1].json()) == []


# --- B20 -------------------------------------------------------------------------------------


@PEERS
async def test_case_b20_tr_30_a_task_of_a_batch_that_is_cancelled_takes_no_sibling_with_it(
    peer: Peer, tmp_path: Path
) -> None:
    tasks: dict[str, Any] = {}
    all_run = asyncio.Event()

    async def body(live: Any, arguments: Any) -> Outcome:
        name = arguments["label"]
        tasks[name] = asyncio.current_task()
        if len(tasks) == 3:
            all_run.set()
        await all_run.wait()
        if name == "b":
            tasks["b"].cancel()
            await asyncio.Event().wait()
        return Outcome(f"{name} is done", State.FAILED if name == "c" else State.SUCCEEDED, error_kind="no")

    schema = {"type": "object", "properties": {"label": {"type": "string"}}, "required": ["label"]}
    task = Tool(
        name="task", description="A task.", parameters=schema, body=body,
        effect=Effect(EffectClass.READ_ONLY, ()),
    )  # fmt: skip
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path, tools=[task]) as stand:
        emulator.script([step("a", "b", "c", tool="task"), DONE])
        async with asyncio.timeout(90):
            end = await stand.crew.controller.submit("Do three things.")
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, 200])
        a, b, c = list(stand.crew.session.book)
        assert (a.state, c.state) == (State.SUCCEEDED, State.FAILED)
        assert b.state in (State.UNKNOWN, State.FAILED) and b.result is None, (b.state, b.reason)
        told = results(emulator.requests()[-1].json())
        assert told[0] == "a is done" and "c is done" in told[2]
        assert "b is done" not in told[1] and told[1].strip()
