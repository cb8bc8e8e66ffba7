"""Cases of family T: content that may not be empty, shapes a host refuses, and what a refusal says or does not say.

Whole turns over the strict emulator, on real sockets, wherever requests are counted; a request that
no turn can bring about is made of a history and judged by the same emulator in this process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.effects import Effect
from surefoot.core.history import AssistantWords, CallAsked, Message, ResultGiven, UserWords
from surefoot.core.lifecycle import Book
from surefoot.core.model import EffectClass, Kind, State, TurnStatus
from surefoot.providers import contracts
from surefoot.providers.contracts import Contract
from surefoot.providers.port import ModelRequest
from surefoot.providers.projection import STUB, project
from surefoot.providers.rules import check
from surefoot.runtime.requests import Answer
from surefoot.runtime.tools import Outcome, Tool
from surefoot.surfaces import incident_card
from surefoot.testing.damages import TOOLS, Talk
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.replaying import Peer, Stand
from surefoot.tools.files.toolset import file_tools

CHAT = Peer("chat", "openai", "openai/chat")
RESPONSES = Peer("responses", "openai", "openai/responses")
MESSAGES = Peer("anthropic", "anthropic", "anthropic/anthropic", effort="low")
GLM = Peer("chat", "glm", "glm/chat")
PEERS = pytest.mark.parametrize("peer", [CHAT, RESPONSES, MESSAGES], ids=lambda peer: peer.wire)
ASK = {"thinking": "I look.", "calls": [{"name": "quiet", "args": {}}]}
LOOK = {"thinking": "I look.", "calls": [{"name": "look", "args": {"label": "a"}}]}
PAY = {"thinking": "I pay.", "calls": [{"name": "pay", "args": {"label": "a"}}]}
DONE = {"text": "Done.", "thinking": "So."}


def tool(outcome: Outcome, **declared: Any) -> Tool:
    """A reading tool that ends like this."""

    async def body(live: Any, arguments: Any) -> Outcome:
        return outcome

    given = {"parameters": {"type": "object", "properties": {}}, **declared}
    return Tool(
        name="quiet", description="Looks.", body=body, effect=Effect(EffectClass.READ_ONLY, ()), **given
    )


def under(contract: str, **keys: Any) -> Contract:
    """A shipped contract with keys of an owner's own."""
    found = contracts.resolve(contract)
    return Contract(found.id, {**found.keys_by_name, **keys}, found.origin)


def history(*calls: CallAsked, raw: Mapping[str, Any] | None = None, wire: str = "chat") -> AssistantWords:
    return AssistantWords(1, "", calls, wire, raw or {})


def made_of(
    messages: Sequence[Message], contract: Mapping[str, Any], tools: Sequence[Any] = TOOLS
) -> dict[str, Any]:
    """The request the product makes of this history."""
    request = ModelRequest("m", "Be brief.", messages, tools, endpoint="emulated")
    return dict(project(messages, Book(), contract, request=request).body)


def result_text(body: Mapping[str, Any]) -> Any:
    """What stands on the wire for the first result."""
    for item in body.get("input", ()):
        if item.get("type") == "function_call_output":
            return item["output"]
    for message in body.get("messages", ()):
        if message.get("role") == "tool":
            return message["content"]
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block["type"] == "tool_result":
                return block.get("content")
    raise AssertionError("the request holds no result")


async def refused(stand: Stand, **fault: Any) -> Any:
    """A turn whose second request is refused like this; it carries one round of calls."""
    stand.emulator.fault(match={"nth": 2}, **fault)
    end = await stand.crew.controller.submit("Go.")
    stand.emulator.assert_fired()
    return end


async def no_recovery_offered(stand: Stand) -> bool:
    pending = await stand.crew.controller.pending_recovery()
    return pending is None and await stand.records() == []


# --- T01 to T04: content that may not be empty -----------------------------------------------


@PEERS
async def test_case_t01_an_17_a_tool_that_fails_in_silence_has_words_for_its_error(
    peer: Peer, tmp_path: Path
) -> None:
    silent = tool(Outcome("", State.FAILED, error_kind="exit_code"))
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path, tools=[silent]) as stand:
        emulator.script([ASK, DONE])
        end = await stand.crew.controller.submit("Go.")
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, 200])
        told = result_text(emulator.requests()[-1].json())
        assert "quiet failed (exit_code)" in told and told.strip()


@pytest.mark.parametrize("wire", ["chat", "responses", "anthropic"])
@pytest.mark.parametrize("blank", ["", " \n"])
def test_case_t01_an_error_without_text_gets_a_neutral_sentence_where_the_host_wants_one(
    wire: str, blank: str
) -> None:
    call = CallAsked("cal_1", "att_1", 0, "look", "{}", "call_1")
    words = [UserWords("t", "go"), history(call, wire=""), ResultGiven(call, blank, True)]
    told = result_text(made_of(words, under(f"compat/{wire}", **{"content.error_result_text": True})))
    assert told in ("(failed with no output)", "(no output)")


@PEERS
async def test_case_t02_an_16_what_printed_nothing_leaves_no_blank_text(peer: Peer, tmp_path: Path) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path, tools=[tool(Outcome(""))]) as stand:
        emulator.script([ASK, DONE, DONE])
        assert (await stand.crew.controller.submit("Go.")).status is TurnStatus.COMPLETED
        assert (await stand.crew.controller.submit("And?")).status is TurnStatus.COMPLETED
        assert stand.statuses() == [200, 200, 200]


@pytest.mark.parametrize("peer", [CHAT, RESPONSES, MESSAGES], ids=lambda peer: peer.wire)
async def test_case_t03_where_parts_may_not_be_empty_the_contract_gives_the_default_words(
    peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path, tools=[tool(Outcome(""))]) as stand:
        model: Any = stand.crew.model
        model.contract = under(peer.contract, **{"content.empty_result": "text"})
        emulator.script([ASK, DONE])
        assert (await stand.crew.controller.submit("Go.")).status is TurnStatus.COMPLETED
        assert result_text(emulator.requests()[-1].json()) == "(no output)" and stand.statuses() == [200] * 2


EMPTY_PARTS: list[tuple[Peer, dict[str, Any]]] = [
    (GLM, {"role": "assistant", "content": [{"type": "text", "text": ""}, {"type": "text", "text": " "}]}),
    (CHAT, {"role": "assistant", "content": []}),
    (CHAT, {"role": "assistant", "content": None}),
    (MESSAGES, {"role": "assistant", "content": [{"type": "text", "text": " "}]}),
    (RESPONSES, {"output": [{"type": "message", "role": "assistant", "content": []}]}),
    (RESPONSES, {"output": []}),
]


@pytest.mark.parametrize(
    ("peer", "raw"), EMPTY_PARTS, ids=[f"{p.contract}-{n}" for n, (p, _) in enumerate(EMPTY_PARTS)]
)
def test_case_t04_gl_02_an_16_a_message_of_empty_parts_never_goes_out(
    peer: Peer, raw: dict[str, Any]
) -> None:
    empty = AssistantWords(1, "", (), peer.wire, raw)
    messages = [UserWords("t", "go"), empty, UserWords("t2", "and?")]
    talk = Talk(peer, [DONE])
    body = talk.encode(messages)
    assert talk.ask(body)[0] == 200, body
    for one in body.get("messages") or body["input"]:
        content = one.get("content")
        assert content not in (None, "", []), one
        assert isinstance(content, str) or all(part.get("text", "x").strip() for part in content), one


# --- T05 to T09: fields and places -----------------------------------------------------------


async def test_case_t05_oc_04_without_calls_the_key_is_left_out(tmp_path: Path) -> None:
    async with Emulator() as emulator, Stand(emulator, CHAT, tmp_path) as stand:
        emulator.script([DONE, DONE])
        await stand.crew.controller.submit("One.")
        assert (await stand.crew.controller.submit("Two.")).status is TurnStatus.COMPLETED
        assert b"tool_calls" not in emulator.requests()[-1].body and stand.statuses() == [200, 200]
    raw = {"role": "assistant", "content": "Done.", "tool_calls": []}
    stored = replace(history(raw=raw), text="Done.")
    talk = Talk(CHAT, [DONE])
    body = talk.encode([UserWords("t", "go"), stored, UserWords("t2", "and?")])
    assert "tool_calls" not in json.dumps(body) and talk.ask(body)[0] == 200


@PEERS
async def test_case_t06_oc_07_a_picture_is_marked_text_in_a_result_and_no_part_of_it(
    peer: Peer, tmp_path: Path
) -> None:
    (tmp_path / "shot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    read = {"thinking": "I look.", "calls": [{"name": "read", "args": {"path": str(tmp_path / "shot.png")}}]}
    ledger = tmp_path / "ledger"
    async with Emulator() as emulator, Stand(emulator, peer, ledger, tools=file_tools()) as stand:
        emulator.script([read, DONE])
        end = await stand.crew.controller.submit("Look at the picture.")
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, 200])
        told = result_text(emulator.requests()[-1].json())
        assert isinstance(told, str) and "shot.png" in told and "PNG image" in told
        assert (
            b"image_url" not in emulator.requests()[-1].body and b"base64" not in emulator.requests()[-1].body
        )


@PEERS
async def test_case_t07_t09_br_05_a_summary_carries_the_real_tools(peer: Peer, tmp_path: Path) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([PAY, DONE, {"text": "It was paid."}, DONE])
        await stand.crew.controller.submit("Pay.")
        rewritten = await stand.crew.controller.rewriting.compact()
        assert rewritten["summary"] == "It was paid."
        assert (await stand.crew.controller.submit("And now?")).status is TurnStatus.COMPLETED
        assert stand.statuses() == [200] * 4
        assert all(
            one.json()["tools"] == emulator.requests()[0].json()["tools"] for one in emulator.requests()
        )


@PEERS
async def test_case_t07_t09_br_05_without_tools_a_stub_stands_that_cannot_be_called(
    peer: Peer, tmp_path: Path
) -> None:
    stub = {"thinking": "I try.", "calls": [{"name": STUB.name, "args": {}}]}
    async with Emulator() as emulator:
        async with Stand(emulator, peer, tmp_path) as stand:
            emulator.script([PAY, DONE])
            await stand.crew.controller.submit("Pay.")
        async with Stand(emulator, peer, tmp_path, tools=[], new=False) as bare:
            emulator.script([stub, DONE, {"text": "It was paid."}])
            model: Any = bare.crew.model
            model.contract = under(peer.contract, **{"tools.required_with_history": True})
            end = await bare.crew.controller.submit("And now?")
            await bare.crew.controller.rewriting.compact()
            asked = [json.dumps(one.json()["tools"]) for one in emulator.requests()[2:]]
            assert len(asked) == 3 and all(STUB.name in one and "pay" not in one for one in asked)
            assert end.status is TurnStatus.COMPLETED and bare.statuses() == [200] * 5
            called = list(bare.crew.session.book)[-1]
            assert (called.asked_name, called.state, called.reason) == (
                STUB.name, State.NOT_STARTED, "tool_missing",
            )  # fmt: skip


def test_case_t07_br_05_the_stub_stands_only_where_it_is_wanted_and_calls_are_shown() -> None:
    call = CallAsked("cal_1", "att_1", 0, "look", "{}", "call_1")
    round_ = [UserWords("t", "go"), history(call, wire=""), ResultGiven(call, "ok", False)]
    wanted = under("compat/chat", **{"tools.required_with_history": True})
    assert "tools" not in made_of(round_, contracts.resolve("compat/chat"), ())
    assert "tools" not in made_of(round_[:1], wanted, ())
    assert STUB.name in json.dumps(made_of(round_, wanted, ())["tools"])
    assert made_of(round_, wanted)["tools"] == made_of(round_, contracts.resolve("compat/chat"))["tools"]


@PEERS
@pytest.mark.parametrize(
    "schema", [{}, {"type": "object"}, {"type": "object", "additionalProperties": False}]
)
async def test_case_t08_mm_04_a_tool_without_arguments_is_declared_as_an_empty_object(
    peer: Peer, schema: dict[str, Any], tmp_path: Path
) -> None:
    plain = tool(Outcome("Fine."), parameters=schema)
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path, tools=[plain]) as stand:
        emulator.script([ASK, DONE])
        end = await stand.crew.controller.submit("Go.")
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, 200])
        (declared,) = emulator.requests()[0].json()["tools"]
        declared = declared.get("function", declared)
        shown = declared.get("parameters", declared.get("input_schema"))
        assert shown == {**schema, "type": "object", "properties": {}}


async def test_case_t08_mm_04_a_general_code_about_tools_is_no_fault_of_the_history(tmp_path: Path) -> None:
    peer = Peer("chat", "minimax", "minimax/chat")
    said = "invalid params, function parameters is empty (2013)"
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([LOOK, DONE])
        end = await refused(stand, status=400, message=said, type="bad_request_error")
        assert end.error.facts["kind"] == "schema" and stand.statuses() == [200, 400]
        assert await no_recovery_offered(stand)


# --- T10, T11: errors under 200 --------------------------------------------------------------


@PEERS
async def test_case_t10_rt_02_an_error_inside_a_stream_is_shown_and_its_calls_never_run(
    peer: Peer, tmp_path: Path
) -> None:
    calls = [{"name": "pay", "args": {"label": "a"}}]
    said = {"text": "I will now pay the bill of this month.", "thinking": "I pay.", "calls": calls}
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([said, DONE])
        emulator.fault(stream_error_at=8)
        end = await stand.crew.controller.submit("Pay.")
        emulator.assert_fired()
        assert end.status is TurnStatus.FAILED and end.error is not None and end.error.message
        assert stand.crew.told("text"), "words came before the error"
        assert not await stand.crew.entries(Kind.ASSISTANT) and not list(stand.crew.session.book)
        assert stand.world.bodies == [] and stand.statuses() == [200]


@PEERS
@pytest.mark.parametrize("words", [("", ""), ("", "Here.")])
async def test_case_t11_s_02_an_empty_reply_is_no_success_and_is_asked_for_once_more(
    peer: Peer, words: tuple[str, str], tmp_path: Path
) -> None:
    none = {"input": 0, "output": 0}
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([{"text": text, "usage": none if not text else None} for text in (*words, "Late.")])
        end = await stand.crew.controller.submit("Go.")
        if words[1]:
            assert (end.status, end.text) == (TurnStatus.COMPLETED, "Here.")
        else:
            assert (end.status, end.reason) == (TurnStatus.FAILED, "empty_reply")
        assert stand.statuses() == [200, 200] and len(stand.crew.told("empty_reply")) == 1


# --- T12 to T14: reasons in wrappers ---------------------------------------------------------


async def test_case_t12_rt_09_an_error_told_as_text_inside_another_is_unwrapped(tmp_path: Path) -> None:
    peer = Peer("chat", "compat", "compat/chat")
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path, automatic=False) as stand:
        emulator.script([LOOK, DONE])
        lost = [{"path": ["messages", 3], "remove": True}]
        end = await refused(stand, tamper_request=lost, gateway="nested_string")
        assert end.error.facts["kind"] == "replay_pairing" and stand.statuses() == [200, 400]
        assert (await stand.records())[-1].payload["state"] == "pending"


async def test_case_t13_rt_01_the_reason_in_the_metadata_of_a_router_is_read(tmp_path: Path) -> None:
    peer = Peer("chat", "openrouter", "openrouter/chat")
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path, automatic=False) as stand:
        emulator.script([LOOK, DONE])
        lost = [{"path": ["messages", 2, "reasoning_details"], "remove": True}]
        end = await refused(stand, tamper_request=lost)
        assert end.error.facts["kind"] == "replay_reasoning"
        assert stand.emulator.requests()[-1].rules == ["DS-03"]


@PEERS
async def test_case_t14_pr_6_a_refusal_whose_body_is_an_event_stream_is_read(
    peer: Peer, tmp_path: Path
) -> None:
    said = "An assistant message with 'tool_calls' must be followed by tool messages."
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path, automatic=False) as stand:
        emulator.script([LOOK, DONE])
        end = await refused(stand, status=400, body="sse_data", message=said)
        assert (end.error.facts["kind"], end.error.facts["body_kind"]) == ("replay_pairing", "sse")


# --- T15 to T18: no usable reason ------------------------------------------------------------


@PEERS
@pytest.mark.parametrize("raw", ["", '{"model":"m"}'])
async def test_case_t15_t16_x_10_a_bare_400_is_told_as_such_and_nothing_follows_by_itself(
    peer: Peer, raw: str, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([LOOK, DONE])
        model: Any = stand.crew.model
        stand.crew.controller.rewriting.window_tokens = 100_000
        end = await refused(stand, status=400, raw=raw)
        assert end.error.facts["kind"] == "upstream_reason_missing" and stand.statuses() == [200, 400]
        card = await stand.crew.controller.incidents.card()
        assert card is not None
        assert incident_card.lines(card, "en")[0] == (
            "The provider refused the request and gave no reason (status 400)."
        )
        assert not await stand.crew.entries(Kind.COMPACTED) and not stand.crew.told("compacting")
        messages = await stand.crew.controller.incidents.records.messages()
        assert model.freeze(messages).content == emulator.requests()[1].body, "the history is as it was sent"


def test_case_t17_gl_01_a_history_without_words_of_a_user_gets_some_and_the_validator_names_it() -> None:
    call = CallAsked("cal_1", "att_1", 0, "look", "{}", "call_1")
    cut = [history(call, wire=""), ResultGiven(call, "ok", False)]
    talk = Talk(GLM, [DONE])
    body = talk.encode(cut)
    assert [one["role"] for one in body["messages"]] == ["system", "user", "assistant", "tool"]
    assert check(body, talk.contract) == [] and talk.ask(body)[0] == 200
    without = {**body, "messages": [one for one in body["messages"] if one["role"] != "user"]}
    assert [one.rule for one in check(without, talk.contract)] == ["GL-01"]


async def test_case_t17_gl_01_a_compaction_in_the_middle_of_a_turn_keeps_the_words_of_the_person(
    tmp_path: Path,
) -> None:
    async with Emulator() as emulator, Stand(emulator, GLM, tmp_path) as stand:
        emulator.script([PAY, LOOK, {"text": "It was paid."}, DONE])
        emulator.fault(match={"nth": 3}, overflow_at=1)
        end = await stand.crew.controller.submit("Pay once, then look.")
        emulator.assert_fired()
        assert end.status is TurnStatus.COMPLETED and await stand.crew.entries(Kind.COMPACTED)
        last = emulator.requests()[-1].json()["messages"]
        assert any(one["role"] == "user" and "Pay once, then look." in one["content"] for one in last)


async def test_case_t18_gl_01_a_general_code_allows_one_explicit_recovery_and_then_other_ways(
    tmp_path: Path,
) -> None:
    async with Emulator() as emulator, Stand(emulator, GLM, tmp_path) as stand:
        emulator.script([LOOK, DONE])
        for nth in range(2, 9):
            emulator.fault(
                match={"nth": nth}, status=400, message="messages 参数非法。请检查文档。", code="1214"
            )
        end = await stand.crew.controller.submit("Search.")
        assert end.error is not None and end.error.facts["kind"] == "upstream_reason_unrecognised"
        assert stand.statuses() == [200, 400]
        again = await stand.crew.controller.recover_context()
        assert not isinstance(again, Answer) and again.status is TurnStatus.FAILED
        assert stand.statuses() == [200, 400, 400]
        spent = await stand.crew.controller.recover_context()
        assert isinstance(spent, Answer) and spent.body["code"] == "recovery_spent"
        assert stand.statuses() == [200, 400, 400]
        card = await stand.crew.controller.incidents.card()
        assert card is not None and not card["offered"] and len(card["ways"]) >= 2
        assert (card["state"], card["outcome"]) == ("consumed", "refused")


# --- T19 to T26: refusals that are not about history -----------------------------------------


UNUSABLE = {
    "status": 400,
    "message": "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
    "code": "tool_use_failed",
}


@pytest.mark.parametrize("stays", [False, True])
async def test_case_t19_oc_10_an_unusable_call_of_the_model_is_asked_for_once_more_with_the_same_history(
    stays: bool, tmp_path: Path
) -> None:
    peer = Peer("chat", "groq", "groq/chat")
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([PAY, DONE])
        for nth in (2, 3, 4) if stays else (2,):
            emulator.fault(match={"nth": nth}, **UNUSABLE)
        end = await stand.crew.controller.submit("Go.")
        first, second = [one.body for one in emulator.requests()[1:]]
        assert first == second and stand.statuses() == [200, 400, 400 if stays else 200]
        assert end.status is (TurnStatus.FAILED if stays else TurnStatus.COMPLETED)
        assert end.error is None or end.error.facts["kind"] == "generation"
        assert len(stand.crew.told("model_wait")) == 1 and stand.world.count("a") == 1
        assert await no_recovery_offered(stand)


@pytest.mark.parametrize("words", [None, "Upstream request failed: something else."])
async def test_case_t20_rt_06_only_a_listed_hiccup_is_asked_for_again_with_equal_bytes(
    words: str | None, tmp_path: Path
) -> None:
    peer = Peer("chat", "compat", "compat/chat")
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([LOOK, DONE])
        end = await refused(stand, flip="once", **({} if words is None else {"message": words}))
        bodies = [one.body_sha for one in emulator.requests()][1:]
        assert end.status is (TurnStatus.COMPLETED if words is None else TurnStatus.FAILED)
        assert len(bodies) == (2 if words is None else 1) and len(set(bodies)) == 1
        assert await no_recovery_offered(stand)


OVERFLOWS = [
    ("T21", {"message": "x", "type": "exceed_context_size_error"}),
    ("T21", {"message": "x", "code": "context_length_exceeded"}),
    (
        "T24",
        {"message": "Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)"},
    ),
    ("T24", {"message": "prompt is too long: 219898 tokens > 200000 maximum"}),
]


@pytest.mark.parametrize(("row", "told"), OVERFLOWS)
async def test_case_t21_t24_x_06_a_code_or_two_numbers_are_an_overflow_and_the_step_begins_anew(
    row: str, told: dict[str, Any], tmp_path: Path
) -> None:
    peer = Peer("chat", "compat", "compat/chat")
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([PAY, DONE, {"text": "It was paid."}, DONE])
        await stand.crew.controller.submit("Pay.")
        emulator.fault(match={"nth": 3}, status=400, **told)
        end = await stand.crew.controller.submit("And now?")
        emulator.assert_fired()
        assert end.status is TurnStatus.COMPLETED and stand.statuses() == [200, 200, 400, 200, 200]
        (compacted,) = await stand.crew.entries(Kind.COMPACTED)
        assert compacted.payload["who"] == "overflow" and await no_recovery_offered(stand)


def test_case_t21_codes_are_data_that_an_owner_can_add_to() -> None:
    from surefoot.providers.diagnosis import diagnose

    body = json.dumps({"error": {"message": "no", "code": "ctx_full_77"}}).encode()
    known = under("compat/chat", **{"errors.codes": {"ctx_full_77": "context_overflow"}})
    assert diagnose(400, body, known).kind == "context_overflow"
    assert diagnose(400, body, contracts.resolve("compat/chat")).kind == "rejected"


WAITS: list[tuple[str, dict[str, Any]]] = [
    ("T23", {"status": 429, "message": "The engine is currently overloaded.", "type": "engine_overloaded_error"}),
    ("T25", {"status": 413, "message": "Request too large for model: tokens per minute (TPM): Limit 6000, "
             "Requested 7422, please reduce your message size.", "type": "tokens"}),
]  # fmt: skip


@pytest.mark.parametrize(("row", "told"), WAITS, ids=[row for row, _ in WAITS])
async def test_case_t23_t25_x_04_a_limit_of_rate_is_waited_for_as_told_and_asked_for_once_more(
    row: str, told: dict[str, Any], tmp_path: Path
) -> None:
    peer = Peer("chat", "compat", "compat/chat")
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([LOOK, DONE])
        end = await refused(stand, headers={"retry-after-ms": "30"}, **told)
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, told["status"], 200])
        assert [one["waitSeconds"] for one in stand.crew.told("model_wait")] == [0.03]
        first, second = [one.body for one in emulator.requests()[1:]]
        assert first == second and not await stand.crew.entries(Kind.COMPACTED)
        assert await no_recovery_offered(stand)


@pytest.mark.parametrize(
    ("row", "fault", "kind"),
    [("T22", {"quota_as_400": True}, "quota"), ("T26", {"moderation": True}, "policy")],
    ids=["T22", "T26"],
)
@PEERS
async def test_case_t22_t26_x_02_x_07_a_spent_account_and_a_moderation_stop_and_are_called_what_they_are(
    row: str, fault: dict[str, Any], kind: str, peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([LOOK, DONE])
        end = await refused(stand, **fault)
        assert end.error.facts["kind"] == kind and stand.statuses() == [200, 400]
        assert ("quota" if kind == "quota" else "policy") in end.error.message
        assert await no_recovery_offered(stand)
