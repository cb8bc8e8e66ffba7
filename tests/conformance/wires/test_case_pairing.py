"""Cases of family P: calls, results and roles stay together on the wire, whatever happened to the history.

The strict emulator judges each request; what it would say of the damaged one unrepaired is shown first.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.history import AssistantWords, CallAsked, Message, ResultGiven, UserWords
from surefoot.core.lifecycle import Book
from surefoot.core.model import Receipt, State, TurnStatus
from surefoot.errors import ProviderRefused
from surefoot.providers import contracts, rules
from surefoot.providers.client import Client
from surefoot.providers.diagnosis import diagnose
from surefoot.providers.endpoints import Endpoint
from surefoot.providers.missing import NOT_EXECUTED, OUTCOME_UNKNOWN
from surefoot.providers.port import ModelRequest
from surefoot.providers.projection import WIRES, project
from surefoot.runtime.turning import Parked
from surefoot.testing.crash import end_leftovers
from surefoot.testing.damages import TOOLS, Talk, calls_in, results_in
from surefoot.testing.emulator import bedrock_rules, gemini_rules
from surefoot.testing.emulator.profiles import WIRES as PROFILES
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.kills import Equipment, Site
from surefoot.testing.replaying import Peer, Stand

COMPAT = Peer("chat", "compat", "compat/chat")
OPENAI = Peer("chat", "openai", "openai/chat")
AZURE = Peer("chat", "azure", "azure/chat")
LLAMACPP = Peer("chat", "llamacpp", "llamacpp/chat")
MISTRAL = Peer("chat", "mistral", "mistral/chat")
QWEN = Peer("chat", "qwen", "qwen/chat")
GEMINI = Peer("chat", "gemini", "gemini/chat")
ITEMS = Peer("responses", "compat", "compat/responses")
SEALED = Peer("responses", "openai", "openai/responses")
MINIMAX = Peer("responses", "minimax", "minimax/responses")
BLOCKS = Peer("anthropic", "compat", "compat/anthropic")
CLAUDE = Peer("anthropic", "anthropic", "anthropic/anthropic")
THREE = (COMPAT, ITEMS, BLOCKS)
ASK, NOW = UserWords("t1", "How many?"), UserWords("t9", "And now?")


def each(*peers: Peer) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("peer", peers, ids=lambda peer: peer.name)


def asked(number: int, position: int = 0, **more: Any) -> CallAsked:
    given = {
        "asked_name": "look",
        "arguments": '{"label": "a"}',
        "provider_call_id": f"call_{number}",
        **more,
    }
    return CallAsked(f"cal_{number}", f"att_{number}", position, **given)


def reply(
    wire: str, *calls: CallAsked, at: int = 1, before: Sequence[Any] = (), text: str = ""
) -> AssistantWords:
    """One stored reply in the JSON of its wire; `before` stands ahead of its calls."""
    if wire == "chat":
        made = [{"id": one.provider_call_id, "type": "function",
                 "function": {"name": one.asked_name, "arguments": one.arguments}} for one in calls]  # fmt: skip
        raw: dict[str, Any] = {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}
    elif wire == "responses":
        items = [{"type": "function_call", "id": f"fc_{one.call_id}", "call_id": one.provider_call_id,
                  "name": one.asked_name, "arguments": one.arguments} for one in calls]  # fmt: skip
        raw = {"output": [*before, *items]}
    else:
        uses = [{"type": "tool_use", "id": one.provider_call_id, "name": one.asked_name,
                 "input": json.loads(one.arguments)} for one in calls]  # fmt: skip
        raw = {
            "role": "assistant",
            "content": [*before, *uses],
            "stop_reason": "tool_use" if uses else "end_turn",
        }
    return AssistantWords(at, text, calls, wire, raw)


def said(wire: str, text: str, at: int) -> AssistantWords:
    """A closing word of the model."""
    parts = {
        "chat": [],
        "responses": [{"type": "message", "id": f"msg_{at}", "role": "assistant",
                       "content": [{"type": "output_text", "text": text, "annotations": []}]}],
        "anthropic": [{"type": "text", "text": text}],
    }  # fmt: skip
    return reply(wire, at=at, before=parts[wire], text=text)


def given(call: CallAsked, text: str = "2 effects", *, is_error: bool = False) -> ResultGiven:
    return ResultGiven(call, text, is_error)


def batches(wire: str, count: int, width: int = 2) -> list[Message]:
    """So many turns, each with one batch of calls, their results and a closing word."""
    history: list[Message] = []
    for turn in range(count):
        calls = [asked(turn * 10 + place, place) for place in range(width)]
        history += [UserWords(f"t{turn}", f"Question {turn}?"), reply(wire, *calls, at=turn * 10 + 1)]
        history += [given(call, f"result {call.call_id}") for call in calls]
        history.append(said(wire, f"Answer {turn}.", turn * 10 + 2))
    return history


def verdict(peer: Peer, body: Mapping[str, Any]) -> tuple[int, str]:
    """Status and body of the emulator's answer."""
    status, content = Talk(peer, [{"text": "Taken."}]).ask(body)
    return status, content.decode()


def accepted(peer: Peer, messages: Sequence[Message], book: Book | None = None) -> dict[str, Any]:
    """The request made of these messages, which neither the validator nor the emulator finds fault with."""
    contract = contracts.resolve(peer.contract)
    request = ModelRequest(peer.model, "s", (), TOOLS, effort=peer.effort, endpoint="emulated")
    made = project(messages, book or Book(), contract, request=request)
    assert rules.refusing(list(made.findings)) == []
    assert verdict(peer, made.body)[0] == 200, verdict(peer, made.body)[1]
    return dict(made.body)


def refused(peer: Peer, body: Mapping[str, Any], words: str) -> None:
    """The emulator refuses this body, and says so in these words."""
    status, told = verdict(peer, body)
    assert status >= 400 and words in told, told


def pairs(body: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Each call's wire id with the text of its result, in the order of the calls; every id stands once on a side."""
    results = [(one, "" if text is None else text) for one, text in results_in(body)]
    assert sorted(calls_in(body)) == sorted(one for one, _ in results)
    return results


def gemini_refuses(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The rules for which Gemini's own wire would refuse these turns of a Chat request, written in its form."""
    contents: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    for message in body["messages"]:
        role, parts = message["role"], []
        if role in ("user", "assistant") and message["content"]:
            parts.append({"text": message["content"]})
        for call in message.get("tool_calls") or ():
            names[call["id"]] = call["function"]["name"]
            signed = (call.get("extra_content") or {}).get("google", {}).get("thought_signature")
            made = {
                "id": call["id"],
                "name": names[call["id"]],
                "args": json.loads(call["function"]["arguments"]),
            }
            parts.append({"functionCall": made, **({"thoughtSignature": signed} if signed else {})})
        if role == "tool":
            told = {"output": message["content"] or "(no output)"}
            identity = message["tool_call_id"]
            part = {
                "functionResponse": {"id": identity, "name": names.get(identity, "look"), "response": told}
            }
            if "functionResponse" in str(contents[-1]["parts"][-1:]):
                contents[-1]["parts"].append(part)  # one turn with all responses
                continue
            parts.append(part)
        if parts:
            contents.append({"role": "model" if role == "assistant" else "user", "parts": parts})
    found = gemini_rules.check({"contents": contents}, PROFILES["gemini"]["gemini"])
    return () if found is None else found.rules


def bedrock_refuses(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The rules for which Converse would refuse these turns of a Messages request, written in its form."""
    messages = []
    for message in body["messages"]:
        given = message["content"]
        blocks = given if isinstance(given, list) else [{"type": "text", "text": given}]
        messages.append({"role": message["role"], "content": [_in_converse(one) for one in blocks]})
    request = {
        "messages": messages,
        "toolConfig": {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": {}}}}]},
    }
    found = bedrock_rules.check(request, PROFILES["converse"]["bedrock"])
    return () if found is None else found.rules


def _in_converse(block: Mapping[str, Any]) -> dict[str, Any]:
    if block["type"] == "tool_use":
        return {"toolUse": {"toolUseId": block["id"], "name": block["name"], "input": block["input"]}}
    if block["type"] == "tool_result":
        told = [{"text": block["content"]}] if block.get("content") else []
        return {"toolResult": {"toolUseId": block["tool_use_id"], "content": told}}
    return {"text": block["text"]}


def receipt(call: CallAsked, state: State, text: str = "") -> Receipt:
    result = {"text": text, "isError": state is not State.SUCCEEDED}
    return Receipt("s", "t1", call.call_id, call.attempt_id, call.position, state=state, result=result)


async def answered(stand: Stand, words: str = "How many?") -> Any:
    end = await stand.crew.controller.submit(words)
    assert end.status is TurnStatus.COMPLETED, end
    return end


async def kinds(stand: Stand) -> list[Any]:
    """The kind of every incident of the session, once each."""
    records = [json.loads(entry.payload["record"]) for entry in await stand.records()]
    return list(dict.fromkeys((one["id"], one["kind"]) for one in records))


async def repaired_once(stand: Stand, kind: str = "replay_pairing", *, status: int = 400) -> None:
    """One turn with one call, whose replay was refused, repaired once, and taken."""
    await answered(stand)
    stand.emulator.assert_fired()
    assert stand.statuses() == [200, status, 200]
    assert [one for _, one in await kinds(stand)] == [kind]
    assert stand.starts() == 1


LOOK = {"calls": [{"name": "look", "args": {"label": "a"}}]}
DONE = {"text": "Done."}

# --- a call without a result --------------------------------------------------------------


@each(COMPAT, OPENAI)
def test_case_p01_oc_01_however_three_batches_are_cut_every_call_on_the_wire_has_its_result(
    peer: Peer,
) -> None:
    whole, dice = batches("chat", 3, width=3), random.Random("p01")
    cuts = [(start, end) for start in range(len(whole)) for end in range(start + 1, len(whole) + 1)]
    for start, end in cuts:
        kept = [one for one in whole[start:end] if not isinstance(one, ResultGiven) or dice.random() < 0.7]
        body = accepted(peer, [*kept, NOW])
        calls = sum(len(one.calls) for one in kept if isinstance(one, AssistantWords))
        told = pairs(body)
        assert len(told) == calls
        assert {text for _, text in told} <= {
            OUTCOME_UNKNOWN,
            *(r.text for r in kept if isinstance(r, ResultGiven)),
        }
    body = accepted(peer, whole)
    gone = next(place for place, one in enumerate(body["messages"]) if one["role"] == "tool")
    refused(
        peer,
        {**body, "messages": body["messages"][:gone] + body["messages"][gone + 1 :]},
        "did not have response",
    )


class Forgetful:
    """A wire whose serialiser loses the last result."""

    def __init__(self) -> None:
        self._whole = WIRES["chat"]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    def encode(self, request: ModelRequest, contract: Mapping[str, Any]) -> dict[str, Any]:
        body = self._whole.encode(request, contract)
        last = max(place for place, one in enumerate(body["messages"]) if one["role"] == "tool")
        return {**body, "messages": body["messages"][:last] + body["messages"][last + 1 :]}


async def test_case_p01_pr_14_the_list_is_checked_before_it_is_sent() -> None:
    async with Emulator() as emulator, Client() as client:
        url = emulator.base_url("compat")
        endpoint = Endpoint("desk", url, "chat", "compat/chat", "m", key=lambda: "sk-t")
        request = ModelRequest("m", "s", batches("chat", 3), TOOLS)
        contract = contracts.resolve("compat/chat")
        with pytest.raises(ProviderRefused) as caught:
            await client.send(endpoint, Forgetful(), contract, request)
        assert (caught.value.facts["local"], caught.value.facts["rules"]) == (True, ["OC-01"])
        assert emulator.requests() == []


@each(COMPAT, OPENAI, BLOCKS, CLAUDE)
async def test_case_p02_oc_09_a_tool_that_prints_nothing_has_answered(peer: Peer, tmp_path: Path) -> None:
    async with Emulator() as emulator:
        stand = Stand(emulator, peer, tmp_path)
        silent = [
            dataclasses.replace(tool, body=None, sync_body=lambda live, given: "") for tool in stand.tools()
        ]
        async with Stand(emulator, peer, tmp_path, tools=silent) as stand:
            emulator.script([{"calls": LOOK["calls"] * 2}, DONE])
            await answered(stand)
            assert stand.statuses() == [200, 200]
            assert len(pairs(emulator.requests()[-1].json())) == 2
            assert [one.state for one in stand.crew.session.book] == ["succeeded", "succeeded"]


@each(ITEMS, SEALED)
def test_case_p03_or_01_an_output_that_was_dropped_comes_from_the_receipt_in_the_same_input(
    peer: Peer,
) -> None:
    call, lost = asked(1), asked(2, 1)
    history: list[Message] = [ASK, reply("responses", call, lost), given(call)]
    book = Book([receipt(call, State.SUCCEEDED, "2 effects"), receipt(lost, State.SUCCEEDED, "7 effects")])
    body = accepted(peer, history, book)
    assert pairs(body) == [("call_1", "2 effects"), ("call_2", "7 effects")]
    assert pairs(accepted(peer, history))[1] == ("call_2", OUTCOME_UNKNOWN)
    never = Book([receipt(lost, State.NOT_STARTED)])
    assert pairs(accepted(peer, history, never))[1] == ("call_2", NOT_EXECUTED)
    refused(peer, {**body, "input": body["input"][:-1]}, "No tool output found for function call call_2")


FOREIGN = (
    "<400> InternalError.Algo.InvalidParameter: An assistant message with 'tool_calls' must be followed by tool "
    "messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
    "message[532].role"
)
"""A host's own wording; the position stands for no message of ours."""


@each(COMPAT, QWEN)
async def test_case_p04_qw_01_foreign_words_for_a_missing_result_are_known_and_their_position_is_not_trusted(
    peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([LOOK, DONE])
        if peer is QWEN:  # the result is gone on its way, and the host's own rule says so
            emulator.fault(match={"nth": 2}, tamper_request=[{"path": ["messages", 3], "remove": True}])
        else:
            emulator.fault(match={"nth": 2}, status=400, message=FOREIGN)
        await repaired_once(stand)


@each(BLOCKS, CLAUDE)
def test_case_p05_an_01_a_call_without_a_result_is_answered_at_any_depth(peer: Peer) -> None:
    whole = batches("anthropic", 60)
    assert len(whole) == 300
    for depth in (2, 146, 297):
        orphaned = [*whole[: depth - depth % 5 + 2], *whole[depth - depth % 5 + 3 :]]
        assert len(orphaned) == 299
        told = pairs(accepted(peer, [*orphaned, NOW]))
        assert len(told) == 120 and sum(text == OUTCOME_UNKNOWN for _, text in told) == 1


# --- a result without a call --------------------------------------------------------------


@each(COMPAT, OPENAI, BLOCKS, CLAUDE)
def test_case_p06_oc_02_a_call_that_the_wire_copy_lost_is_restored_from_the_ledger(peer: Peer) -> None:
    lost_calls_are_restored(peer)


@each(ITEMS, SEALED)
def test_case_p08_or_02_a_reseller_gets_the_call_that_its_copy_lost(peer: Peer) -> None:
    lost_calls_are_restored(peer)


def lost_calls_are_restored(peer: Peer) -> None:
    calls = [asked(1), asked(2, 1)]
    whole = reply(peer.wire, *calls)
    for kept in ([], [1]):
        raw = _without_calls(peer.wire, whole.raw, kept)
        body = accepted(peer, [ASK, dataclasses.replace(whole, raw=raw), *map(given, calls), NOW])
        assert pairs(body) == [("call_1", "2 effects"), ("call_2", "2 effects")]
    words = {
        "chat": "must be a response to a prece",
        "responses": "No tool call found",
        "anthropic": "unexpected",
    }
    refused(peer, _call_gone(peer.wire, body), words[peer.wire])


ASKED_AT: dict[str, list[Any]] = {
    "chat": ["messages", 2, "tool_calls"],
    "responses": ["input", 1],
    "anthropic": ["messages", 1, "content"],
}


@each(*THREE)
async def test_case_p06_p08_a_call_that_was_lost_on_its_way_is_named_and_repaired_once(
    peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([{**LOOK, "text": "Looking."}, DONE])
        edit: dict[str, Any] = {"path": ASKED_AT[peer.wire], "remove": True}
        if peer is ITEMS:
            edit["path"] = ["input", 2]  # the words stand before the call
        elif peer is BLOCKS:
            edit = {"path": ASKED_AT["anthropic"], "value": [text("Looking.")]}
        emulator.fault(match={"nth": 2}, tamper_request=[edit])
        await repaired_once(stand)


def _without_calls(wire: str, raw: Mapping[str, Any], kept: Sequence[int]) -> dict[str, Any]:
    key = {"chat": "tool_calls", "responses": "output", "anthropic": "content"}[wire]
    return {**raw, key: [one for place, one in enumerate(raw[key]) if place in kept]}


def _call_gone(wire: str, body: dict[str, Any]) -> dict[str, Any]:
    """The request without its first call, as a serialiser that drops it would send it."""
    if wire == "responses":
        first = next(place for place, one in enumerate(body["input"]) if one.get("type") == "function_call")
        return {**body, "input": body["input"][:first] + body["input"][first + 1 :]}
    messages = [dict(one) for one in body["messages"]]
    asks = next(one for one in messages if one["role"] == "assistant")
    key = "tool_calls" if wire == "chat" else "content"
    asks[key] = asks[key][1:]
    return {**body, "messages": messages}


@each(SEALED, ITEMS)
def test_case_p07_or_02_a_call_is_sent_though_its_reasoning_is_lost(peer: Peer) -> None:
    talk = Talk(peer, [{"thinking": "I look.", **LOOK}])
    status, content = talk.ask(talk.encode([ASK]))
    assert status == 200
    issued = talk.reply(content, 1)
    left = [item for item in issued.raw["output"] if item["type"] != "reasoning"]
    assert len(left) == len(issued.raw["output"]) - 1
    history = [ASK, dataclasses.replace(issued, raw={**issued.raw, "output": left}), given(issued.calls[0])]
    body = accepted(peer, history)
    (called,) = [item for item in body["input"] if item.get("type") == "function_call"]
    assert called["call_id"] == issued.calls[0].provider_call_id and len(pairs(body)) == 1
    assert "id" not in called or peer is ITEMS  # unlinked where the link is demanded
    linked = [{**item, **left[0]} if item is called else item for item in body["input"]]
    if peer is SEALED:
        refused(peer, {**body, "input": linked}, "without its required 'reasoning' item")


@each(BLOCKS, CLAUDE)
def test_case_p09_an_02_words_between_a_call_and_its_result_stand_behind_it(peer: Peer) -> None:
    call, between = asked(1), UserWords("t2", "By the way.")
    messages = accepted(peer, [ASK, reply("anthropic", call), between, given(call)])["messages"]
    assert [one["role"] for one in messages] == ["user", "assistant", "user", "user"]
    assert [block["type"] for block in messages[2]["content"]] == ["tool_result"]
    assert messages[3]["content"] == "By the way."
    as_stored = {"model": "m", "max_tokens": 9, "messages": [messages[place] for place in (0, 1, 3, 2)]}
    refused(peer, as_stored, "tool_use")


NOT_FOUND = "Minimax midstream error: invalid params, tool result's tool id(call_function_1) not found (2013)"


@each(COMPAT, ITEMS, BLOCKS, MINIMAX)
async def test_case_p10_mm_01_an_error_about_a_results_id_inside_the_stream_is_named_and_repaired_once(
    peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([LOOK, {"text": "Half of it"}, DONE])
        emulator.fault(match={"nth": 2}, stream_error_at=3, message=NOT_FOUND)
        await repaired_once(stand, status=200)
        assert (await answered(stand, "And now?")).text == "Nothing more to do."


@each(COMPAT, MINIMAX, BLOCKS)
@pytest.mark.parametrize("gateway", [500, 502, "nested_string"])
async def test_case_p11_rt_05_a_router_that_changes_the_code_hides_no_history_fault(
    peer: Peer, gateway: Any, tmp_path: Path
) -> None:
    words = "invalid params, tool result's tool id(call_function_1) not found (2013)"
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([LOOK, DONE])
        emulator.fault(match={"nth": 2}, status=400, message=words, code="invalid_prompt", gateway=gateway)
        await repaired_once(stand, status=400 if gateway == "nested_string" else gateway)


@each(COMPAT, MINIMAX)
async def test_case_p11_mm_01_the_text_decides_and_not_the_code(peer: Peer, tmp_path: Path) -> None:
    words = "invalid params, tool result's tool id(call_function_1) not found (2013)"
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([LOOK, DONE])
        emulator.fault(match={"nth": 2}, status=400, message=words, code="invalid_prompt")
        await repaired_once(stand)


@each(MISTRAL, COMPAT, BLOCKS, ITEMS)
async def test_case_p12_br_02_ms_03_a_tool_that_ends_the_batch_early_leaves_one_result_for_each_call(
    peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator:
        stand = Stand(emulator, peer, tmp_path)
        tools = stand.tools()
        stops: list[asyncio.Future[None]] = []

        async def ends_it(live: Any, arguments: Any) -> str:
            stops.append(asyncio.ensure_future(stand.crew.controller.stop()))
            await asyncio.sleep(0)  # the press has been heard
            return "stopped"

        tools[1] = dataclasses.replace(tools[1], body=ends_it)
        stand = Stand(emulator, peer, tmp_path, tools=tools)
        async with stand:
            calls = [{"name": name, "args": {"label": "a"}} for name in ("look", "pay", "look", "pay")]
            emulator.script([{"calls": calls}, DONE])
            await stand.crew.controller.submit("Go.")
            await asyncio.gather(*stops)
            assert len(emulator.requests()) == 1  # the turn ended with the batch
            await answered(stand, "And now?")
            assert stand.statuses() == [200, 200]
            assert len(pairs(emulator.requests()[-1].json())) == 4
            assert stand.starts() <= 2


@each(MISTRAL, BLOCKS)
def test_case_p12_more_results_than_calls_are_told_as_words(peer: Peer) -> None:
    kept, pruned = asked(1), asked(2, 1)
    body = accepted(peer, [ASK, reply(peer.wire, kept), given(kept, "kept"), given(pruned, "pruned"), NOW])
    assert [text for _, text in pairs(body)] == ["kept"] and "pruned" in json.dumps(body)
    if peer is BLOCKS:
        assert bedrock_refuses(body) == ()
        place = next(n for n, one in enumerate(body["messages"]) if "tool_result" in str(one))
        results = body["messages"][place]["content"]
        body["messages"][place]["content"] = [*results, {**results[0], "tool_use_id": "call_2"}]
        assert bedrock_refuses(body) == ("BR-02",)


# --- two results for one call -------------------------------------------------------------


@each(COMPAT, OPENAI, *THREE[1:])
@pytest.mark.parametrize("first", ["aborted", "real"])
def test_case_p13_oc_03_of_two_results_of_a_call_the_one_of_the_receipt_is_sent(
    peer: Peer, first: str
) -> None:
    call = asked(1)
    aborted, real = given(call, "The call was aborted.", is_error=True), given(call, "7 effects")
    both = [aborted, real] if first == "aborted" else [real, aborted]
    book = Book([receipt(call, State.SUCCEEDED, "7 effects")])
    body = accepted(peer, [ASK, reply(peer.wire, call), *both, NOW], book)
    assert pairs(body) == [("call_1", "7 effects")]
    assert "aborted" not in json.dumps(body)


@each(AZURE, OPENAI)
async def test_case_p14_oc_11_a_result_that_a_retry_appended_again_is_sent_once(
    peer: Peer, tmp_path: Path
) -> None:
    call = asked(1)
    body = accepted(peer, [ASK, reply("chat", call), given(call), given(call), NOW])
    assert pairs(body) == [("call_1", "2 effects")]
    place = next(n for n, one in enumerate(body["messages"]) if one["role"] == "tool")
    twice = [*body["messages"][: place + 1], *body["messages"][place:]]
    refused(peer, {**body, "messages": twice}, "Duplicate value for 'tool_call_id'")
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:  # a router's class for it
        emulator.script([LOOK, DONE])
        told = (
            "ContentPolicyViolationError: Invalid parameter: Duplicate value for 'tool_call_id' of 'call_1'"
        )
        emulator.fault(match={"nth": 2}, status=400, message=told, type="content_policy_violation")
        await repaired_once(stand)


@each(BLOCKS, CLAUDE)
def test_case_p15_an_04_the_chunks_of_one_run_are_one_result_that_stands_first(peer: Peer) -> None:
    call, beside = asked(1), asked(2, 1)
    picture = UserWords("t1", "[image of the call before]", origin="host")
    chunks = [given(call, "one\ntwo\nthree"), given(beside)]
    messages = accepted(peer, [ASK, reply("anthropic", call, beside), picture, *chunks])["messages"]
    assert [one["type"] for one in messages[2]["content"]] == ["tool_result", "tool_result"]
    assert messages[2]["content"][0]["content"] == "one\ntwo\nthree"
    assert messages[3]["content"] == "[image of the call before]"


@each(BLOCKS, COMPAT, ITEMS)
async def test_case_p15_an_04_what_a_tool_shows_piece_by_piece_is_one_result(
    peer: Peer, tmp_path: Path
) -> None:
    async def yields(live: Any, arguments: Any) -> str:
        for chunk in ("one", "two", "three", "[image]"):
            live.progress(chunk)
        return "one two three [image]"

    async with Emulator() as emulator:
        tools = Stand(emulator, peer, tmp_path).tools()
        tools[0] = dataclasses.replace(tools[0], body=yields)
        async with Stand(emulator, peer, tmp_path, tools=tools) as stand:
            emulator.script([LOOK, DONE])
            await answered(stand)
            assert stand.statuses() == [200, 200]
            assert [text for _, text in pairs(emulator.requests()[-1].json())] == ["one two three [image]"]


@each(*THREE, CLAUDE)
@pytest.mark.parametrize("mode", ["missing", "duplicate_in_batch"])
async def test_case_p16_oc_03_ids_that_are_blank_or_collide_make_no_second_result(
    peer: Peer, mode: str, tmp_path: Path
) -> None:
    calls = [{"name": "look", "args": {"label": "a"}}, {"name": "pay", "args": {"label": "b"}}]
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([{"calls": calls}, {"calls": calls}, DONE])
        for _ in range(2):  # twice in one session
            emulator.fault(id_mode=mode)
        await answered(stand)
        emulator.assert_fired()
        assert stand.statuses() == [200, 200, 200] and await stand.records() == []
        told = pairs(emulator.requests()[-1].json())
        assert len(told) == 4 and len({identity for identity, _ in told[:2]}) == 2
        assert [one.result["text"] for one in stand.crew.session.book if one.result] == [
            text for _, text in told
        ]


# --- the order of roles -------------------------------------------------------------------


@each(LLAMACPP, GEMINI)
def test_case_p17_ge_03_a_history_that_was_trimmed_still_begins_with_the_user(peer: Peer) -> None:
    whole = batches("chat", 2)
    for start in range(len(whole)):
        body = accepted(peer, [*whole[start:], NOW])
        roles = [one["role"] for one in body["messages"] if one["role"] != "system"]
        assert roles[0] == "user"
        asks = [place for place, one in enumerate(roles) if one == "assistant"]
        assert all(roles[place - 1] in ("user", "tool") for place in asks)
        assert not {"GE-03", "LS-03"} & {
            one.rule for one in rules.check(body, contracts.resolve(peer.contract))
        }
    refused(
        LLAMACPP,
        {**body, "messages": [{"role": "assistant", "content": "x"}, *body["messages"]]},
        "alternate",
    )


@each(LLAMACPP, GEMINI)
async def test_case_p17_ls_03_a_session_that_was_compacted_begins_with_the_user(
    peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([LOOK, DONE, {"text": "Summed up."}, LOOK, DONE])
        await answered(stand)
        await stand.crew.controller.rewriting.compact()
        await answered(stand, "And now?")
        body = emulator.requests()[-1].json()
        roles = [one["role"] for one in body["messages"] if one["role"] != "system"]
        assert roles[0] == "user" and roles[-2:] == ["assistant", "tool"]
        assert "Summed up." in str(body["messages"]) and set(stand.statuses()) == {200}


UNEQUAL = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of "
    "the function call turn."
)


async def test_case_p18_ge_04_a_partial_batch_has_as_many_responses_as_calls_and_a_list_is_read(
    tmp_path: Path,
) -> None:
    call, lost = asked(1), asked(2, 1)
    body = accepted(GEMINI, [ASK, reply("chat", call, lost), given(call)])
    assert [text for _, text in pairs(body)] == ["2 effects", OUTCOME_UNKNOWN] and gemini_refuses(body) == ()
    assert gemini_refuses({**body, "messages": body["messages"][:-1]}) == ("GE-04",)
    async with Emulator() as emulator, Stand(emulator, GEMINI, tmp_path) as stand:
        emulator.script([LOOK, DONE])
        emulator.fault(match={"nth": 2}, status=400, message=UNEQUAL)
        await repaired_once(stand)
    listed = json.dumps([{"error": {"code": 400, "message": UNEQUAL, "status": "INVALID_ARGUMENT"}}]).encode()
    assert diagnose(400, listed, contracts.resolve("gemini/chat")).kind == "replay_pairing"


@each(MISTRAL, GEMINI, COMPAT)
def test_case_p19_ge_04_where_a_call_is_gone_its_result_is_kept_as_text(peer: Peer) -> None:
    kept, gone = asked(1, provider_call_id="abcDEF123"), asked(2, 1)
    body = accepted(peer, [ASK, reply("chat", kept), given(gone, "of the lost call"), given(kept), NOW])
    assert pairs(body) == [("abcDEF123", "2 effects")]
    (told,) = [one for one in body["messages"] if "of the lost call" in str(one["content"])]
    assert told["role"] == "user" and "whose request is not shown" in told["content"]
    whole = accepted(
        peer, [ASK, reply("chat", kept, gone), given(gone, "of the other call"), given(kept), NOW]
    )
    assert [text for _, text in pairs(whole)] == ["2 effects", "of the other call"]
    assert peer is not GEMINI or gemini_refuses(whole) == ()


def test_case_p21_br_03_results_have_a_turn_of_their_own_where_the_contract_says_so() -> None:
    call = asked(1)
    history = [ASK, reply("anthropic", call), given(call), NOW]
    plain = contracts.resolve("compat/anthropic")
    strict = {**plain, "pairing.after_results": "own_turn", "pairing.same_role_neighbours": "merge"}
    request = ModelRequest("m", "s", (), TOOLS, endpoint="emulated")
    split = project(history, Book(), strict, request=request)
    assert rules.refusing(list(split.findings)) == [] and verdict(BLOCKS, split.body)[0] == 200
    assert bedrock_refuses(split.body) == () and "And now?" in str(split.body["messages"][-1])
    assert all(
        before["role"] != after["role"] for before, after in itertools.pairwise(split.body["messages"])
    )
    loose = project(history, Book(), {**strict, "pairing.after_results": "any"}, request=request)
    assert bedrock_refuses(loose.body) == ("BR-03",)  # one turn, where no contract speaks against it
    again = project([*history, said("anthropic", "So.", 3), NOW], Book(), strict, request=request)
    assert again.body["messages"][: len(split.body["messages"])] == split.body["messages"]


# --- resume -------------------------------------------------------------------------------


def test_case_p20_ms_02_after_a_kill_a_result_stands_before_the_words_that_came_first(tmp_path: Path) -> None:
    command = "while ! test -e go; do sleep 0.01; done; echo x >> effects; echo made"
    with Equipment.at(tmp_path) as equipment:
        try:
            site = Site(tmp_path / "site", equipment)
            site.script(
                {"calls": [{"name": "shell", "args": {"command": command}}]}, *([{"text": "Heard."}] * 9)
            )
            at = {"kill_at": 1, "only": ("append[attempt.process].after",)}
            assert site.run(prompts=("go",), **at).killed
            early = site.again(verify=False, prompts=("typed meanwhile",))  # the command still runs
            assert early.report["receipts"][0]["state"] == "unknown"
            (site.project / "go").touch()
            site.quiet()
            late = site.again(verify=False, prompts=("and now?",))
            assert late.report["receipts"][0]["state"] == "succeeded"
            requests = equipment.emulator.requests()
            assert all(one.status == 200 for one in requests)
            for entry in requests[1:]:
                roles = [one["role"] for one in entry.json()["messages"]]
                assert roles[roles.index("assistant") + 1] == "tool" and roles.count("tool") == 1
        finally:
            end_leftovers(tmp_path, below=True)


@each(MISTRAL, COMPAT, BLOCKS, ITEMS)
async def test_case_p20_words_parked_beside_a_call_come_behind_its_result_after_a_resume(
    peer: Peer, tmp_path: Path
) -> None:
    entered = asyncio.Event()

    async def hangs(live: Any, arguments: Any) -> str:
        entered.set()
        await asyncio.Event().wait()
        return ""

    async with Emulator() as emulator:
        tools = Stand(emulator, peer, tmp_path).tools()
        hanging = [dataclasses.replace(tool, body=hangs) for tool in tools]
        async with Stand(emulator, peer, tmp_path, tools=hanging) as dying:
            emulator.script([{"calls": [{"name": "pay", "args": {"label": "a"}}]}, DONE])
            turn = asyncio.ensure_future(dying.crew.controller.submit("Pay."))
            async with asyncio.timeout(90):
                await entered.wait()
            assert isinstance(await dying.crew.controller.submit("Parked."), Parked)
            await dying.crew.session.close()  # as a process that ends: nobody closes the receipt
            async with Stand(emulator, peer, tmp_path, tools=tools, new=False) as stand:
                await answered(stand, "Parked.")
                body = emulator.requests()[-1].json()
                ((_, told),) = pairs(body)
                assert stand.statuses() == [200, 200] and "its end is not known" in str(told)
                text = json.dumps(body)
                assert text.index("its end is not known") < text.index("Parked.")
            turn.cancel()
            await asyncio.gather(turn, return_exceptions=True)


# --- tools that the provider runs ---------------------------------------------------------

USE = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def kinds_of(message: Mapping[str, Any]) -> list[str]:
    content = message["content"]
    return [block["type"] for block in content] if isinstance(content, list) else ["words"]


def halves(body: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Ids of the server tools that were asked for, and of those that have a result."""
    blocks = [one for message in body["messages"] for one in message["content"] if isinstance(one, dict)]
    asked_for = [one["id"] for one in blocks if one["type"] == "server_tool_use"]
    return asked_for, [one["tool_use_id"] for one in blocks if one["type"].endswith("_search_tool_result")]


@pytest.mark.parametrize("stop", ["pause_turn", None])
@pytest.mark.parametrize("calls", [False, True], ids=["no call", "a call behind it"])
def test_case_p22_an_14_the_words_of_a_hook_are_put_behind_a_turn_and_never_inside_it(
    stop: str | None, calls: bool
) -> None:
    call = asked(1)
    first = reply("anthropic", at=1, before=[text("I search."), USE])
    first = dataclasses.replace(first, raw={**first.raw, "stop_reason": stop})
    second = reply("anthropic", *([call] if calls else []), at=2, before=[FOUND, text("Found.")])
    hook = UserWords("t1", "[hook] Mind the time.", origin="host")
    history = [ASK, first, hook, second, *([given(call)] if calls else []), NOW]
    body = accepted(CLAUDE, history)
    turn = ["text", "server_tool_use", "web_search_tool_result", "text", *(["tool_use"] if calls else [])]
    shown = [kinds_of(one) for one in body["messages"]]
    assert shown == [["words"], turn, *([["tool_result"]] if calls else []), ["words"], ["words"]]
    assert body["messages"][-2]["content"] == "[hook] Mind the time."
    split = [{"role": "assistant", "content": turn} for turn in ([USE], [FOUND, text("Found.")])]
    asks = {"role": "user", "content": "x"}
    refused(CLAUDE, {**body, "messages": [asks, split[0], asks, split[1], asks]}, "web_search")
    request = ModelRequest("m", "s", (), TOOLS, endpoint="emulated")
    told = project(history, Book(), contracts.resolve("anthropic/anthropic"), request=request)
    assert ("R1", 2) in told.repairs
    left = accepted(CLAUDE, [ASK, first, hook])  # nothing goes on with it: words that come later stay there
    assert [kinds_of(one) for one in left["messages"]] == [["words"], ["text"], ["words"]]


SEARCHED = {"server_search": {"query": "x", "sources": 2}, "text": "It is so."}


def test_case_p23_an_14_of_a_server_tool_both_halves_are_sent_or_neither() -> None:
    talk = Talk(CLAUDE, [SEARCHED])
    status, content = talk.ask(
        {**talk.encode([ASK]), "tools": [{"type": "web_search_20250305", "name": "web_search"}]}
    )
    assert status == 200
    issued = talk.reply(content, 1)
    blocks = issued.raw["content"]
    assert len(blocks) >= 3
    for start, end in itertools.combinations(range(len(blocks) + 1), 2):
        cut = dataclasses.replace(issued, raw={**issued.raw, "content": blocks[start:end]})
        asked_for, results = halves(accepted(CLAUDE, [ASK, cut, NOW]))
        whole = {one["type"] for one in blocks[start:end]} >= {"server_tool_use", "web_search_tool_result"}
        assert asked_for == results and len(results) == whole  # and none that was not stored


async def test_case_p23_switching_the_search_off_and_a_death_in_a_compaction_part_no_halves(
    tmp_path: Path,
) -> None:
    searching = dataclasses.replace(CLAUDE, hosted=("search",))
    async with Emulator() as emulator:
        emulator.script([SEARCHED, DONE, {"text": "Summed up."}, DONE, DONE])
        async with Stand(emulator, searching, tmp_path) as stand:
            await answered(stand)
        async with Stand(emulator, CLAUDE, tmp_path, new=False) as stand:
            await answered(stand, "And now?")  # switched off: both halves are there
            asked_for, results = halves(emulator.requests()[-1].json())
            assert asked_for == results and len(results) == 1
            emulator.fault(match={"nth": 3}, delay_headers=None)
            compacting = asyncio.ensure_future(stand.crew.controller.rewriting.compact())
            await emulator.wait_until_held(90)
            await stand.crew.session.close()  # as a process that ends in the middle of it
            emulator.release()
            compacting.cancel()
            await asyncio.gather(compacting, return_exceptions=True)
        async with Stand(emulator, searching, tmp_path, new=False) as stand:
            await answered(stand, "Still there?")
            asked_for, results = halves(emulator.requests()[-1].json())
            assert asked_for == results and len(results) == 1
            emulator.script([{"text": "Summed up."}, DONE])
            await stand.crew.controller.rewriting.compact()
            await answered(stand, "And after it?")
            asked_for, results = halves(emulator.requests()[-1].json())
            assert asked_for == results and "Summed up." in emulator.requests()[-1].body.decode()
            assert all(one.status == 200 for one in emulator.requests())
