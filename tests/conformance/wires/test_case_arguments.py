"""Cases Q13 to Q22: arguments that are no JSON, calls that a limit cut, streams of an odd shape.

A call that was cut or is no JSON is answered and never run. What its history is replayed as is judged by the
emulator's own rules, which share no code with ours.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.effects import Effect
from surefoot.core.history import AssistantWords, CallAsked, ResultGiven, UserWords
from surefoot.core.lifecycle import Book
from surefoot.core.model import EffectClass, TurnStatus
from surefoot.providers.port import ModelRequest, ToolSpec
from surefoot.providers.projection import project
from surefoot.runtime.tools import Arguments, LiveAttempt, Tool
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.replaying import Peer, Stand, contract_of, refusal

WHOLE = '{"label": "ä"}'
LONG = '{"label": "ä \\u00e4 \\"x\\"", "idempotency_key": {"b": [1, -2.5e3, null]}}'
CHAT = Peer("chat", "compat", "compat/chat")
RESPONSES = Peer("responses", "compat", "compat/responses")
MESSAGES = Peer("anthropic", "compat", "compat/anthropic", effort="low")
THREE = pytest.mark.parametrize("peer", [CHAT, RESPONSES, MESSAGES], ids=lambda peer: peer.wire)
PARSING = [
    Peer("chat", "vllm", "vllm/chat"),
    Peer("chat", "llamacpp", "llamacpp/chat"),
    Peer("chat", "qwen", "qwen/chat"),
    Peer("chat", "minimax", "minimax/chat"),
    Peer("responses", "minimax", "minimax/responses"),
]
"""Hosts that parse the arguments of the history again."""
LLAMA = PARSING[1]
LIMIT_WORD = {"chat": "length", "responses": "length", "anthropic": "max_tokens"}
CALL_WORD = {"chat": "tool_calls", "responses": "completed", "anthropic": "tool_use"}
DONE = {"text": "Done.", "thinking": "So."}


def pays(raw: str, **more: Any) -> dict[str, Any]:
    return {"thinking": "I pay.", "calls": [{"name": "pay", "raw_args": raw}], **more}


def nothing_ran(stand: Stand) -> bool:
    return stand.world.bodies == [] and stand.starts() == 0 and stand.world.effects == []


def states(stand: Stand) -> set[str]:
    return {str(one.state) for one in stand.crew.session.book}


def sent_arguments(body: dict[str, Any]) -> list[Any]:
    """What stands on the wire as arguments of each call, in order."""
    found = [item["arguments"] for item in body.get("input", ()) if item.get("type") == "function_call"]
    for message in body.get("messages", ()):
        found += [one["function"]["arguments"] for one in message.get("tool_calls") or ()]
        blocks = message["content"] if isinstance(message.get("content"), list) else ()
        found += [block["input"] for block in blocks if block.get("type") == "tool_use"]
    return found


def cuts(text: str, *, least: int = 1) -> list[str]:
    """The text cut at each of its bytes; a character that was cut in two is lost."""
    data = text.encode()
    return [data[:end].decode("utf-8", "ignore") for end in range(least, len(data))]


# --- arguments that are no JSON ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ('{"label": "a', "broke off inside this call, so nothing was started"),
        ("{'label': 'a'}", "do not fit its schema"),
        ("[1, 2]", "do not fit its schema"),
    ],
    ids=["cut", "wrong", "list"],
)
@pytest.mark.parametrize("peer", PARSING, ids=lambda peer: peer.name)
async def test_case_q13_broken_historic_arguments_are_an_empty_object_on_the_wire_and_never_run(
    peer: Peer, raw: str, said: str, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([pays(raw), DONE])
        end = await stand.crew.controller.submit("Pay.")
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, 200])
        assert nothing_ran(stand) and states(stand) == {"not_started"}
        assert sent_arguments(emulator.requests()[-1].json()) == ["{}"]
        assert said in emulator.requests()[-1].body.decode()
        assert next(iter(stand.crew.session.book)).arguments == raw, "storage keeps what was written"


async def test_case_q14_q15_a_500_about_historic_arguments_is_repaired_once_and_never_asked_again(
    tmp_path: Path,
) -> None:
    broken = ["messages", 2, "tool_calls", 0, "function", "arguments"]
    async with Emulator() as emulator, Stand(emulator, LLAMA, tmp_path) as stand:
        emulator.script([{"calls": [{"name": "pay", "args": {"label": "a"}}]}, DONE])
        emulator.fault(match={"nth": 2}, tamper_request=[{"path": broken, "value": '{"label": "a'}])
        end = await stand.crew.controller.submit("Pay.")
        emulator.assert_fired()
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, 500, 200])
        [first, _] = [one.payload["record"] for one in await stand.records()]
        assert '"kind": "replay_arguments"' in first and stand.world.count("a") == 1


@pytest.mark.parametrize("automatic", [True, False], ids=["automatic", "explicit"])
async def test_case_q15_a_500_about_historic_arguments_for_ever_ends_after_two_requests(
    automatic: bool, tmp_path: Path
) -> None:
    words = "Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] unexpected end"
    async with Emulator() as emulator, Stand(emulator, LLAMA, tmp_path, automatic=automatic) as stand:
        emulator.script([{"calls": [{"name": "pay", "args": {"label": "a"}}]}, DONE])
        for nth in range(2, 12):
            emulator.fault(match={"nth": nth}, status=500, message=words)
        end = await stand.crew.controller.submit("Pay.")
        refused = stand.statuses()[1:]
        assert end.status is TurnStatus.FAILED and refused == [500] * (2 if automatic else 1)
        assert stand.crew.told("model_wait") == [], "a refusal of the history is no passing fault"
        await stand.crew.controller.go_on()  # a person may insist; each press is one more request, not a loop
        assert len(stand.statuses()) <= len(refused) + 2 and stand.world.count("a") == 1


@pytest.mark.parametrize("peer", [*PARSING, RESPONSES, MESSAGES], ids=lambda peer: peer.name)
def test_case_q16_arguments_cut_at_any_byte_make_no_request_that_a_host_refuses(peer: Peer) -> None:
    contract, book = contract_of(peer), Book()
    for text in cuts(LONG):
        call = CallAsked("cal_1", "att_1", 0, "pay", text, "call_a")
        raws: dict[str, dict[str, Any]] = {
            "chat": {"tool_calls": [{"id": "call_a", "function": {"name": "pay", "arguments": text}}]},
            "responses": {
                "output": [{"type": "function_call", "call_id": "call_a", "name": "pay", "arguments": text}]
            },
            "anthropic": {"content": [{"type": "tool_use", "id": "call_a", "name": "pay", "input": text}]},
        }
        for wire, raw in [*raws.items(), ("", {})]:
            words = AssistantWords(1, "", (call,), wire, raw)
            history = [UserWords("t", "Pay."), words, ResultGiven(call, "It was cut.", True)]
            request = ModelRequest("m", "", history, (ToolSpec("pay", "Pay.", {"type": "object"}),))
            made = project(history, book, contract, request=request)
            assert refusal(peer, made.body) == (), (text, wire)
            assert sent_arguments(dict(made.body)) == [{} if peer.wire == "anthropic" else "{}"]


# --- calls that the limit cut ----------------------------------------------------------------


async def none_runs(peer: Peer, folder: Path, steps: Sequence[dict[str, Any]], **fault: Any) -> Stand:
    """One turn in which the model says each step; every far side took every request, and no body was entered."""
    async with Emulator() as emulator, Stand(emulator, peer, folder) as stand:
        emulator.script([*steps, DONE])
        if fault:
            emulator.fault(count=len(steps), **fault)
        end = await stand.crew.controller.submit("Pay.")
        assert end.status is TurnStatus.COMPLETED and end.text == "Done."
        assert stand.statuses() == [200] * (len(steps) + 1)
        assert nothing_ran(stand) and states(stand) == {"not_started"}
        return stand


@THREE
async def test_case_q17_a_call_that_the_limit_cut_at_any_byte_is_never_run(
    peer: Peer, tmp_path: Path
) -> None:
    steps = [pays(text, finish=LIMIT_WORD[peer.wire]) for text in ["", *cuts(WHOLE), WHOLE]]
    await none_runs(peer, tmp_path, steps)


@THREE
async def test_case_q18_cut_arguments_are_not_run_although_finish_speaks_of_calls(
    peer: Peer, tmp_path: Path
) -> None:
    word = CALL_WORD[peer.wire]
    await none_runs(peer, tmp_path, [pays(text, finish=word) for text in cuts(WHOLE)])


@THREE
async def test_case_q19_a_cut_that_looks_like_an_empty_object_is_not_run_where_a_field_is_missing(
    peer: Peer, tmp_path: Path
) -> None:
    steps = [pays(text, finish=CALL_WORD[peer.wire]) for text in ("{}", "", " ", '{"idempotency_key": "b"}')]
    stand = await none_runs(peer, tmp_path, steps)
    assert {one.reason for one in stand.crew.session.book} == {"arguments_invalid"}


@THREE
async def test_case_q19_at_the_limit_even_arguments_that_fit_are_not_run(peer: Peer, tmp_path: Path) -> None:
    entered = []

    async def body(live: LiveAttempt, arguments: Arguments) -> str:
        entered.append(live.attempt_id)
        return "swept"

    swept = Effect(EffectClass.NON_IDEMPOTENT, ("*",))
    sweep = Tool(name="sweep", description="Sweeps.", parameters={"type": "object"}, body=body, effect=swept)
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path, tools=[sweep]) as stand:
        calls = [[{"name": "sweep", "raw_args": text}] for text in ("{}", "")]
        cut = [{"calls": one, "finish": LIMIT_WORD[peer.wire]} for one in calls]
        emulator.script([*cut, {"calls": calls[0]}, DONE])
        end = await stand.crew.controller.submit("Sweep.")
        assert end.status is TurnStatus.COMPLETED
        assert [str(one.state) for one in stand.crew.session.book] == ["not_started"] * 2 + ["succeeded"]
        assert len(entered) == 1


@pytest.mark.parametrize("router", ["openrouter", "litellm"])
async def test_case_q20_a_router_that_rewrites_the_finish_starts_no_cut_call(
    router: str, tmp_path: Path
) -> None:
    peer = Peer("chat", router, f"{router}/chat")
    steps = [pays(text, finish="length") for text in cuts(WHOLE)]
    await none_runs(peer, tmp_path, steps, finish="tool_calls")


# --- streams of an odd shape -----------------------------------------------------------------


@pytest.mark.parametrize("finish", ["stop", "tool_calls"])
async def test_case_q21_calls_under_one_index_with_objects_for_arguments_all_run(
    finish: str, tmp_path: Path
) -> None:
    labels = ["a", "b", "c"]
    calls = [{"name": "pay", "args": {"label": label}} for label in labels]
    async with Emulator() as emulator, Stand(emulator, CHAT, tmp_path) as stand:
        emulator.script([{"calls": calls}, DONE])
        emulator.fault(index_mode="all_zero", args_mode="object", finish=finish)
        end = await stand.crew.controller.submit("Pay three times.")
        emulator.assert_fired()
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, 200])
        assert [stand.world.count(label) for label in labels] == [1, 1, 1] and stand.starts() == 3
        sent = sent_arguments(emulator.requests()[-1].json())
        assert sent == ['{"label":"a"}', '{"label":"b"}', '{"label":"c"}'], "each object is text, once"


@pytest.mark.parametrize("optional", [False, True], ids=["demanded", "optional"])
@pytest.mark.parametrize(
    ("peer", "fault"),
    [(CHAT, {"no_finish": True}), (MESSAGES, {"no_message_stop": True})],
    ids=["chat", "anthropic"],
)
async def test_case_q22_s_07_without_a_terminal_mark_a_whole_call_runs_only_where_the_contract_allows_it(
    peer: Peer, fault: dict[str, Any], optional: bool, tmp_path: Path
) -> None:
    peer = dataclasses.replace(peer, declared={"stream.terminal_optional": optional})
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([{"calls": [{"name": "pay", "args": {"label": "a"}}]}] * 2 + [DONE])
        for nth in [1] if optional else [1, 2]:
            emulator.fault(match={"nth": nth}, **fault)
        end = await stand.crew.controller.submit("Pay.")
        emulator.assert_fired()
        if optional:
            assert end.status is TurnStatus.COMPLETED and stand.world.count("a") == 2 == stand.starts()
        else:
            assert end.status is TurnStatus.FAILED and nothing_ran(stand) and states(stand) == set()
            assert stand.statuses() == [200, 200], "one more request, as for a line that broke, and no third"


async def test_case_q22_a_cut_call_without_a_terminal_mark_is_run_under_no_contract(tmp_path: Path) -> None:
    peer = dataclasses.replace(CHAT, declared={"stream.terminal_optional": True})
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([pays(WHOLE[:6]), pays(WHOLE[:6]), DONE])
        emulator.fault(count=2, no_finish=True)
        end = await stand.crew.controller.submit("Pay.")
        emulator.assert_fired()
        assert end.status is TurnStatus.FAILED and nothing_ran(stand)
