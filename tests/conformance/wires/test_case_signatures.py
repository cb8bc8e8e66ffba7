"""Cases R19 to R29: signatures and ciphertexts, which only their issuer can read.

They return byte for byte to the place they came from, or they are left out and that is told; the stored history
keeps them either way. R30 and R31, where the process dies in between, stand in `crash/test_case_signatures_killed.py`.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.history import AssistantWords, CallAsked, Message, ResultGiven, UserWords
from surefoot.core.lifecycle import Book
from surefoot.core.model import TurnStatus
from surefoot.providers.diagnosis import diagnose
from surefoot.providers.port import ModelRequest
from surefoot.providers.projection import WIRES, project
from surefoot.providers.shaping import body_bytes
from surefoot.testing.emulator.bindings import Issue, prefix_of
from surefoot.testing.emulator.issuing import account_of
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.replaying import Peer, Stand, contract_of, open_loop, parts, refusal

OPENAI = Peer("responses", "openai", "openai/responses", effort="low")
CLAUDE = Peer("anthropic", "anthropic", "anthropic/anthropic", effort="low")
BOUND = Peer("anthropic", "anthropic-bound", "anthropic-bound/anthropic", effort="low")
GEMINI = Peer("chat", "gemini", "gemini/chat")
STAND_IN = "skip_thought_signature_validator"
ODD = 'Hm… “ä” \u2028 é \\ "x" </think>  \t end \n'
LOOK = {"thinking": "I look first.", "calls": [{"name": "look", "args": {"label": "a"}}]}
PAY = {"thinking": "I pay.", "calls": [{"name": "pay", "args": {"label": "a"}}]}
DONE = {"text": "Done.", "thinking": "So."}


def carriers(body: Mapping[str, Any]) -> list[Any]:
    """The signatures and ciphertexts of a request or of a stored reply, in order."""
    found = [
        one["encrypted_content"]
        for one in body.get("input", body.get("output", ()))
        if one.get("type") == "reasoning"
    ]
    whole = () if {"input", "output"} & set(body) else [body]  # a stored reply is one message
    for one in body.get("messages", whole):
        if one.get("role", "assistant") != "assistant":
            continue
        found += [
            (call.get("extra_content") or {}).get("google", {}).get("thought_signature")
            for call in one.get("tool_calls") or ()
        ]
        blocks = one["content"] if isinstance(one.get("content"), list) else ()
        found += [block["signature"] for block in blocks if block.get("type") == "thinking"]
    return found


def stored(history: Sequence[Message]) -> list[Any]:
    """Every carrier that the ledger holds, in order."""
    return [
        one for message in history if isinstance(message, AssistantWords) for one in carriers(message.raw)
    ]


def told(stand: Stand) -> list[Any]:
    return [dict(one["changes"]) for one in stand.crew.told("recovered_request")]


# --- ciphertexts of the Responses wire -------------------------------------------------------


async def test_case_r19_or_07_a_refused_ciphertext_gets_one_equal_request_and_is_then_left_out(
    tmp_path: Path,
) -> None:
    async with Emulator() as emulator, Stand(emulator, OPENAI, tmp_path) as stand:
        emulator.script([PAY, DONE, LOOK, DONE])
        emulator.fault(count=2, signature_mode="expired_incident")
        end = await stand.crew.controller.submit("Pay.")
        emulator.assert_fired()
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, 400, 400, 200])
        _, first, second, sent = emulator.requests()
        assert first.body_sha == second.body_sha and len(carriers(first.json())) == 1
        assert carriers(sent.json()) == [] and stand.world.count("a") == 1
        assert told(stand) == [{"R11": 1}] and len(await stand.records()) == 2
        await stand.crew.controller.submit("Look.")
        assert stand.statuses()[4:] == [200, 200]
        kept = stored(await stand.history())
        assert len(kept) == 4 and kept[0] == carriers(first.json())[0], "it stays in the ledger"
        assert carriers(emulator.requests()[-1].json()) == kept[1:3], "later ones return"


async def test_case_r19_an_equal_request_that_is_taken_leaves_nothing_out(tmp_path: Path) -> None:
    async with Emulator() as emulator, Stand(emulator, OPENAI, tmp_path) as stand:
        emulator.script([PAY, DONE])
        emulator.fault(count=1, signature_mode="expired_incident")
        end = await stand.crew.controller.submit("Pay.")
        emulator.assert_fired()
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, 400, 200])
        assert len(carriers(emulator.requests()[-1].json())) == 1
        assert told(stand) == [] and await stand.records() == []


async def test_case_r20_or_07_a_ciphertext_of_another_account_of_the_pool_is_left_out_and_told(
    tmp_path: Path,
) -> None:
    async with Emulator() as emulator, Stand(emulator, OPENAI, tmp_path) as stand:
        emulator.script([PAY, DONE])
        emulator.fault(match={"nth": 1}, signature_mode="foreign_account")
        end = await stand.crew.controller.submit("Pay.")
        emulator.assert_fired()
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, 400, 400, 200])
        assert told(stand) == [{"R11": 1}] and stand.world.count("a") == 1
        record = stand.crew.session.incidents[-1].fields
        assert (record["kind"], record["endpoint"]) == ("replay_signature", "emulated") and record["scope"]


async def test_case_r20_a_second_account_is_a_second_endpoint_and_gets_no_ciphertext_of_the_first(
    tmp_path: Path,
) -> None:
    async with Emulator() as emulator:
        async with Stand(emulator, OPENAI, tmp_path) as stand:
            emulator.script([PAY, DONE])
            await stand.crew.controller.submit("Pay.")
        other = dataclasses.replace(OPENAI, endpoint="second", key="sk-second")
        async with Stand(emulator, other, tmp_path, new=False) as stand:
            emulator.script([LOOK, DONE])
            end = await stand.crew.controller.submit("Look.")
            assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200] * 4)
            kept = stored(await stand.history())
            assert [carriers(entry.json()) for entry in emulator.requests()[2:]] == [[], kept[2:3]]
            assert refusal(OPENAI, emulator.requests()[-1].json()) == ("OR-07",), "nor the other way round"
            made = project(await stand.history(), Book(), contract_of(other), request=_request(other, ()))
            assert [rid for rid, _ in made.repairs].count("R11") == 2, "what is left out is told"


def _request(peer: Peer, history: Sequence[Message]) -> ModelRequest:
    return ModelRequest(peer.model, "", history, effort=peer.effort, endpoint=peer.endpoint)


# --- thinking of the Anthropic wire ----------------------------------------------------------


@pytest.mark.parametrize("peer", [CLAUDE, BOUND], ids=lambda peer: peer.name)
async def test_case_r21_an_07_thinking_of_the_latest_message_returns_byte_for_byte(
    peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([{**LOOK, "thinking": ODD}, {**PAY, "thinking": ODD * 2, "text": "Hm."}, DONE, DONE])
        for words in ("Pay.", "And now?"):
            end = await stand.crew.controller.submit(words)
            assert end.status is TurnStatus.COMPLETED
        assert stand.statuses() == [200] * 4
        exact = json.dumps(ODD, ensure_ascii=False).encode()
        assert all(exact in entry.body for entry in emulator.requests()[1:])
        history = await stand.history()
        assert carriers(emulator.requests()[-1].json()) == stored(history)[:3]
        changed = stand.frozen(open_loop(history[:-2]))
        block = parts(changed)[3]["content"][0]
        block["thinking"] = block["thinking"].rstrip()
        assert refusal(peer, changed) == ("AN-07",)


def test_case_r21_an_07_every_block_of_a_message_stays_in_its_place() -> None:
    call = CallAsked("cal_1", "att_1", 0, "look", '{"label": "a"}', "toolu_1")
    asked = project([UserWords("t", "Go.")], Book(), contract_of(CLAUDE), request=_request(CLAUDE, ()))
    issue = Issue(CLAUDE.model, account_of({"x-api-key": CLAUDE.key}), prefix_of(dict(asked.body)).facts())
    texts = ["First.", "Then."]
    content: list[Any] = [
        {"type": "thinking", "thinking": text, "signature": issue.sign(text, place=n, of=2, gap=n)}
        for n, text in enumerate(texts)
    ]
    content.insert(1, {"type": "text", "text": "Hm."})
    content.append({"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"label": "a"}})
    words = AssistantWords(1, "Hm.", (call,), "anthropic", {"content": content})
    history = [UserWords("t", "Go."), words, ResultGiven(call, "ok", False)]
    body = dict(project(history, Book(), contract_of(CLAUDE), request=_request(CLAUDE, ())).body)
    assert body["messages"][1]["content"] == content and refusal(CLAUDE, body) == ()
    for place in (0, 2):
        poorer = copy.deepcopy(body)
        del poorer["messages"][1]["content"][place]
        assert refusal(CLAUDE, poorer) == ("AN-07",)


async def test_case_r22_an_08_a_signature_changed_by_one_byte_is_refused_and_restored_from_the_store(
    tmp_path: Path,
) -> None:
    async with Emulator() as emulator, Stand(emulator, CLAUDE, tmp_path) as stand:
        emulator.script([PAY, DONE])
        await stand.crew.controller.submit("Pay.")
        history = await stand.history()
        body = stand.frozen(open_loop(history))
        block = parts(body)[1]["content"][0]
        right = block["signature"]
        for place in (3, len(right) // 2, len(right) - 1):
            block["signature"] = right[:place] + ("A" if right[place] != "A" else "B") + right[place + 1 :]
            assert refusal(CLAUDE, body) == ("AN-08",)
        again = stand.frozen(open_loop(history))
        assert carriers(again) == [right] and refusal(CLAUDE, again) == ()
        elsewhere = dataclasses.replace(CLAUDE, model="another")
        assert carriers(stand.frozen(history, elsewhere)) == [], "only its own model reads it"
        assert carriers(stand.frozen(history)) == stored(history)


async def test_case_r22_a_refused_signature_ends_no_turn_and_repeats_no_effect(tmp_path: Path) -> None:
    wrong = [{"path": ["messages", 1, "content", 0, "signature"], "value": "EmuAAAA"}]
    async with Emulator() as emulator, Stand(emulator, CLAUDE, tmp_path) as stand:
        emulator.script([PAY, DONE])
        emulator.fault(match={"nth": 2}, tamper_request=wrong)
        end = await stand.crew.controller.submit("Pay.")
        emulator.assert_fired()
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, 400, 200])
        assert stand.world.count("a") == 1 and len(told(stand)) == 1
        kept = stored(await stand.history())
        assert kept[0] == carriers(emulator.requests()[1].json())[0], "the store has what was issued"


async def test_case_r23_an_08_on_another_cloud_the_blocks_are_left_out_as_a_set(tmp_path: Path) -> None:
    async with Emulator() as emulator:
        async with Stand(emulator, CLAUDE, tmp_path) as stand:
            emulator.script([LOOK, PAY, DONE])
            await stand.crew.controller.submit("Pay.")
            mine = await stand.history()
        cloud = dataclasses.replace(
            CLAUDE, contract="compat/anthropic", endpoint="cloud", model="cloud.claude"
        )
        async with Stand(emulator, cloud, tmp_path, new=False) as stand:
            emulator.script([LOOK, DONE])
            end = await stand.crew.controller.submit("Look.")
            assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200] * 5)
            first, second = (entry.json() for entry in emulator.requests()[3:])
            history = await stand.history()
            assert carriers(first) == [] and carriers(second) == stored(history)[3:4]
            assert history[: len(mine)] == mine, "each block stays stored with its signature"
            assert len(stored(mine)) == 3 and carriers(stand.frozen(mine, CLAUDE)) == stored(mine)


async def test_case_r24_an_09_the_prefix_a_block_is_bound_to_never_changes_by_itself(tmp_path: Path) -> None:
    async with Emulator() as emulator, Stand(emulator, BOUND, tmp_path) as stand:
        emulator.script([LOOK, PAY, DONE, DONE, LOOK, DONE])
        await stand.crew.controller.submit("Pay.")
        await stand.crew.controller.go_on()  # a reply to no new words, and then words again
        end = await stand.crew.controller.submit("Look.")
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200] * 6)
        assert told(stand) == [] and len(carriers(emulator.requests()[-1].json())) == 5
        sent = [entry.json() for entry in emulator.requests()]
        assert len({json.dumps([body["system"], body["tools"]]) for body in sent}) == 1
        for before, after in itertools.pairwise(sent):
            assert after["messages"][: len(before["messages"])] == before["messages"]


async def test_case_r24_an_09_after_another_system_text_the_blocks_are_left_out_once_and_that_is_told(
    tmp_path: Path,
) -> None:
    async with Emulator() as emulator:
        async with Stand(emulator, BOUND, tmp_path) as stand:
            emulator.script([PAY, DONE])
            await stand.crew.controller.submit("Pay.")
            assert stand.world.count("a") == 1
        changed = dataclasses.replace(BOUND, system="You work with other tools.")
        async with Stand(emulator, changed, tmp_path, new=False) as stand:
            emulator.script([LOOK, DONE, DONE])
            for words in ("Look.", "And now?"):
                end = await stand.crew.controller.submit(words)
                assert end.status is TurnStatus.COMPLETED
            assert stand.statuses()[2:] == [400, 200, 200, 200] and emulator.requests()[2].rules == ["AN-09"]
            assert told(stand) == [{"R11": 2}]
            kept = stored(await stand.history())
        assert len(kept) == 5, "they stay in the ledger"
        assert [carriers(entry.json()) for entry in emulator.requests()[3:]] == [[], kept[2:3], kept[2:4]]


async def test_case_r24_an_09_the_prefix_stays_also_after_a_repair(tmp_path: Path) -> None:
    wrong = [{"path": ["messages", 1, "content", 0, "signature"], "value": "EmuAAAA"}]
    async with Emulator() as emulator, Stand(emulator, BOUND, tmp_path) as stand:
        emulator.script([{**PAY, "text": "I pay now."}, DONE, DONE, DONE])
        emulator.fault(match={"nth": 2}, tamper_request=wrong)
        for words in ("Pay.", "And now?", "And then?"):
            await stand.crew.controller.submit(words)
        emulator.assert_fired()
        assert stand.statuses() == [200, 400, 200, 200, 200] and len(told(stand)) == 1
        sent = [entry.json()["messages"] for entry in emulator.requests()[2:]]
        for before, after in itertools.pairwise(sent):
            assert after[: len(before)] == before


@pytest.mark.parametrize("paused", [False, True], ids=["ended", "paused"])
@pytest.mark.parametrize(
    "name", ["anthropic/anthropic", "compat/anthropic", "deepseek/anthropic", "mistral/chat"]
)
def test_case_r24_projection_prefix_stable_a_reply_to_no_new_words_keeps_what_it_was_asked_with(
    name: str, paused: bool
) -> None:
    wire = name.partition("/")[2]
    peer, contract = Peer(wire, "compat", name), contract_of(Peer(wire, "compat", name))
    stop = "pause_turn" if paused else "end_turn"
    said = [
        AssistantWords(n, text, (), wire, {"content": [{"type": "text", "text": text}], "stop_reason": stop})
        for n, text in enumerate(("One.", "Two.", "Three."))
    ]
    history = [UserWords("t1", "Go."), said[0], said[1], UserWords("t2", "And now?"), said[2]]
    before: list[Any] = []
    for length in (1, 2, 4, 5):  # what stood there when each reply was asked for
        request = _request(peer, history[:length])
        now = parts(project(history[:length], Book(), contract, request=request).body)
        assert now[: len(before)] == before and now[-1]["role"] == "user"
        before = now


async def test_case_r25_an_09_all_thinking_of_a_turn_stays_in_the_request(tmp_path: Path) -> None:
    async with Emulator() as emulator, Stand(emulator, BOUND, tmp_path) as stand:
        emulator.script([LOOK, {**LOOK, "thinking": "Again."}, PAY, DONE])
        end = await stand.crew.controller.submit("Pay.")
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200] * 4)
        history = open_loop(await stand.history())
        body = stand.frozen(history)
        assert carriers(body) == stored(history) and len(carriers(body)) == 3
        del parts(body)[1]["content"][0]
        assert refusal(BOUND, body) == ("AN-09",)
        assert refusal(BOUND, stand.frozen(history)) == ()


# --- thought signatures beside a call --------------------------------------------------------


async def test_case_r26_ge_01_the_field_beside_a_call_returns_and_a_refusal_in_a_list_is_read(
    tmp_path: Path,
) -> None:
    async with Emulator() as emulator, Stand(emulator, GEMINI, tmp_path) as stand:
        emulator.script([LOOK, PAY, DONE, LOOK, DONE])
        end = await stand.crew.controller.submit("Pay.")
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, 200, 200])
        kept = stored(await stand.history())
        assert carriers(emulator.requests()[-1].json()) == kept and len(kept) == 2 and all(kept)
        gone = [{"path": ["messages", 8, "tool_calls", 0, "extra_content"], "remove": True}]
        emulator.fault(match={"nth": 5}, tamper_request=gone)
        end = await stand.crew.controller.submit("Look.")
        emulator.assert_fired()
        assert (end.status, stand.statuses()[3:]) == (TurnStatus.COMPLETED, [200, 400, 200])
        assert stand.crew.session.incidents[-1].fields["kind"] == "replay_signature"
        assert emulator.requests()[4].rules == ["GE-01"] and stand.world.count("a") == 1


@pytest.mark.parametrize("words", ["Function call is missing a thought_signature in functionCall parts.",
                                   "Thought signature is not valid", "Corrupted thought signature."])  # fmt: skip
def test_case_r26_a_body_that_is_a_list_is_read_as_the_object_in_it(words: str) -> None:
    body = json.dumps([{"error": {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}}])
    for name in ("gemini/chat", "compat/chat", "litellm/chat"):
        assert (
            diagnose(400, body.encode(), contract_of(Peer("chat", "compat", name))).kind == "replay_signature"
        )


async def test_case_r27_ge_01_a_signature_survives_a_router_the_ledger_and_a_restart(tmp_path: Path) -> None:
    async with Emulator() as emulator:
        router = emulator.wires["chat"]["litellm"]
        emulator.wires["chat"]["litellm"] = dataclasses.replace(
            router, reasoning_field="thought_signature", knobs={**router.knobs, "upstream": "gemini"}
        )
        through = dataclasses.replace(GEMINI, profile="litellm")
        emulator.script([LOOK, PAY])
        emulator.fault(match={"nth": 3}, status=401)
        async with Stand(emulator, through, tmp_path) as stand:
            end = await stand.crew.controller.submit("Pay.")
            assert (end.status, stand.world.count("a")) == (TurnStatus.FAILED, 1)
        async with Stand(emulator, through, tmp_path, new=False) as stand:
            emulator.script([DONE])
            end = await stand.crew.controller.go_on()
            assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, 200, 401, 200])
            sent = emulator.requests()[-1].json()
            assert carriers(sent) == stored(await stand.history()) and len(carriers(sent)) == 2
            assert STAND_IN not in carriers(sent) and told(stand) == []
            for message in parts(sent):
                for call in message.get("tool_calls", ()):
                    del call["extra_content"]
            assert refusal(GEMINI, sent) == ("GE-01",), "the endpoint behind the router had looked"


SEAL = "ab-_9/+.~%2B%3D\\u003d=é=="
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
SIGNED: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": (
        "gemini/chat",
        {
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "tool_calls",
                    "message": {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [{**CALL, "extra_content": {"google": {"thought_signature": SEAL}}}],
                    },
                }
            ]
        },
    ),
    "anthropic": (
        "anthropic/anthropic",
        {
            "type": "message",
            "role": "assistant",
            "stop_reason": "tool_use",
            "content": [
                {"type": "thinking", "thinking": ODD, "signature": SEAL},
                {"type": "redacted_thinking", "data": SEAL},
                {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}},
            ],
        },
    ),
    "responses": (
        "openai/responses",
        {
            "object": "response",
            "status": "completed",
            "output": [
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": SEAL},
                {
                    "type": "function_call",
                    "id": "fc_1",
                    "call_id": "call_1",
                    "name": "look",
                    "arguments": "{}",
                },
            ],
        },
    ),
}


@pytest.mark.parametrize("wire", list(SIGNED))
def test_case_r28_ge_02_a_signature_is_never_decoded_or_encoded_again(wire: str) -> None:
    name, reply = SIGNED[wire]
    contract = contract_of(Peer(wire, "compat", name))
    decoder = WIRES[wire]().decoder(contract, stream=False)
    decoder.feed(json.dumps(reply).encode())
    got = decoder.end()
    call = CallAsked("cal_1", "att_1", 0, "look", got.calls[0].arguments or "", got.calls[0].provider_call_id)
    words = AssistantWords(1, got.text, (call,), wire, json.loads(json.dumps(got.raw)))
    history = [UserWords("t", "Go."), words, ResultGiven(call, "ok", False)]
    peer = Peer(wire, "compat", name, effort=None if wire == "chat" else "low")
    sent = body_bytes(project(history, Book(), contract, request=_request(peer, history)).body)
    exact = json.dumps(SEAL, ensure_ascii=False).encode()
    assert sent.count(exact) == (2 if wire == "anthropic" else 1)


def pieces_of(*entries: dict[str, Any]) -> bytes:
    """A stream that sends these reasoning entries one by one, and then a call."""
    deltas: list[dict[str, Any]] = [{"reasoning_details": [one]} for one in entries]
    deltas.append({"tool_calls": [{"index": 0, **CALL}]})
    chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    return b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in chunks) + b"data: [DONE]\n\n"


TEXT = {"type": "reasoning.text", "format": "anthropic-claude-v1"}
SEALED = {"type": "reasoning.encrypted", "format": "google-gemini-v1", "index": 0}
DETAILS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "signed-at-the-end": (
        [
            {**TEXT, "index": 0, "text": "Let", "signature": None},
            {**TEXT, "index": 0, "text": " me."},
            {**TEXT, "index": 0, "signature": SEAL},
        ],
        [{**TEXT, "index": 0, "text": "Let me.", "signature": SEAL}],
    ),
    "two-blocks": (
        [
            {**TEXT, "index": 0, "text": "One"},
            {**TEXT, "index": 0, "text": ".", "signature": SEAL},
            {**TEXT, "index": 1, "text": "Tw"},
            {**TEXT, "index": 1, "text": "o.", "signature": SEAL[::-1]},
        ],
        [
            {**TEXT, "index": 0, "text": "One.", "signature": SEAL},
            {**TEXT, "index": 1, "text": "Two.", "signature": SEAL[::-1]},
        ],
    ),
    "no-index": (
        [
            {**TEXT, "text": "One"},
            {**TEXT, "text": ".", "signature": SEAL},
            {**TEXT, "text": "Two.", "signature": SEAL[::-1]},
        ],
        [{**TEXT, "text": "One.", "signature": SEAL}, {**TEXT, "text": "Two.", "signature": SEAL[::-1]}],
    ),
    "summary-then-sealed": (
        [
            {"type": "reasoning.summary", "index": 0, "summary": "I "},
            {"type": "reasoning.summary", "index": 0, "summary": "look."},
            {**SEALED, "id": "call_1", "data": SEAL},
            {**SEALED, "id": "call_2", "data": SEAL[::-1]},
        ],
        [
            {"type": "reasoning.summary", "index": 0, "summary": "I look."},
            {**SEALED, "id": "call_1", "data": SEAL},
            {**SEALED, "id": "call_2", "data": SEAL[::-1]},
        ],
    ),
    "kinds-unknown-to-us": (
        [{"type": "x", "index": 0, "text": "a"}, {"type": "x", "index": 0, "text": "b"}],
        [{"type": "x", "index": 0, "text": "a"}, {"type": "x", "index": 0, "text": "b"}],
    ),
}


@pytest.mark.parametrize("name", list(DETAILS))
def test_case_r23_rt_03_a_signed_block_that_came_in_pieces_returns_as_the_one_block_it_was(name: str) -> None:
    streamed, whole = DETAILS[name]
    peer = Peer("chat", "openrouter", "openrouter/chat")
    contract = contract_of(peer)
    decoder = WIRES["chat"]().decoder(contract, stream=True)
    decoder.feed(pieces_of(*streamed))
    got = decoder.end()
    assert got.raw["reasoning_details"] == whole
    call = CallAsked("cal_1", "att_1", 0, "look", "{}", "call_1")
    words = AssistantWords(1, "", (call,), "chat", json.loads(json.dumps(got.raw)))
    history = [UserWords("t", "Go."), words, ResultGiven(call, "ok", False)]
    body = project(history, Book(), contract, request=_request(peer, history)).body
    assert parts(body)[-2]["reasoning_details"] == whole


def test_case_r23_s_33_a_block_told_anew_in_each_piece_counts_once_where_the_contract_says_so() -> None:
    grows = [{**TEXT, "index": 0, "text": text} for text in ("I", "I look", "I look first.")]
    for snapshots, text in ((True, "I look first."), (False, "II lookI look first.")):
        declared = {"stream.snapshots": snapshots}
        contract = contract_of(Peer("chat", "minimax", "minimax/chat", declared=declared))
        decoder = WIRES["chat"]().decoder(contract, stream=True)
        decoder.feed(pieces_of(*grows))
        assert decoder.end().raw["reasoning_details"] == [{**TEXT, "index": 0, "text": text}]


@pytest.mark.parametrize(
    ("peer", "mode", "statuses"),
    [
        (GEMINI, "foreign_account", [200, 400, 200]),
        (OPENAI, "foreign_account", [200, 400, 400, 200]),
        (CLAUDE, "foreign_model", [200, 400, 200]),
    ],
    ids=lambda value: value.name if isinstance(value, Peer) else "",
)
async def test_case_r29_rt_04_a_backend_that_changed_inside_the_loop_is_told_and_the_loop_goes_on(
    peer: Peer, mode: str, statuses: list[int], tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([PAY, LOOK, DONE])
        emulator.fault(match={"nth": 1}, signature_mode=mode)
        end = await stand.crew.controller.submit("Pay.")
        emulator.assert_fired()
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [*statuses, 200])
        assert stand.world.count("a") == 1 and len(told(stand)) == 1
        [record, _] = [json.loads(one.payload["record"]) for one in await stand.records()]
        assert record["kind"] == "replay_signature" and record["state"] == "consumed"
        history = await stand.history()
        assert carriers(emulator.requests()[-1].json())[-1] == stored(history)[1], "what is its own returns"


async def test_case_r29_ge_02_a_backend_is_its_endpoint_and_gets_the_stand_in_for_what_it_did_not_sign(
    tmp_path: Path,
) -> None:
    async with Emulator() as emulator:
        emulator.script([PAY])
        emulator.fault(match={"nth": 2}, status=401)
        async with Stand(emulator, GEMINI, tmp_path) as stand:
            await stand.crew.controller.submit("Pay.")
        vertex = dataclasses.replace(GEMINI, endpoint="vertex")
        async with Stand(emulator, vertex, tmp_path, new=False) as stand:
            emulator.script([LOOK, DONE])
            end = await stand.crew.controller.go_on()
            assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, 401, 200, 200])
            kept = stored(await stand.history())
            assert carriers(emulator.requests()[2].json()) == [STAND_IN]
            assert carriers(emulator.requests()[3].json()) == [STAND_IN, kept[1]]
