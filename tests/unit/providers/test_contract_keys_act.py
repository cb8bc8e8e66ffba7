"""No key of a contract is dead: for each, a value that changes what is sent, what is judged, or how a reply is read.

`ROWS` is the table: the key, the contract it is laid over, its values, and the observation in which each of them shows.
A key, or a value of a closed list, that stands in no row fails here.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from surefoot.core.history import AssistantWords, CallAsked, Message, Picture, ResultGiven, UserWords
from surefoot.core.lifecycle import Book
from surefoot.errors import ProviderError, SettingsError
from surefoot.providers import contracts, hosted
from surefoot.providers.client import Client
from surefoot.providers.contract_keys import SCHEMA, value_fault
from surefoot.providers.contracts import Contract
from surefoot.providers.diagnosis import diagnose
from surefoot.providers.endpoints import Endpoint, freeze, refuse_locally
from surefoot.providers.port import ModelRequest, Reply, ReplyCall, ToolSpec
from surefoot.providers.projection import WIRES, project
from surefoot.providers.rules import check
from surefoot.providers.shaping import lacks_carrier
from surefoot.runtime.batches import as_calls
from surefoot.runtime.models import EndpointModel

CHAT, RESPONSES, MESSAGES = "compat/chat", "compat/responses", "compat/anthropic"
TOOL = ToolSpec("note", "Notes.", {})
Seen = Callable[[Contract], Any]
Keys = Mapping[str, Any]


def over(name: str, keys: Keys) -> Contract:
    found = contracts.resolve(name)
    return dataclasses.replace(found, keys_by_name={**found.keys_by_name, **keys})


# --- histories ------------------------------------------------------------------------------------


def call(number: int = 0, own: str | None = "call_1", arguments: str = "{}") -> CallAsked:
    return CallAsked(f"c{number}", f"a{number}", number, "note", arguments, own)


def reply(*calls: CallAsked, text: str = "", wire: str = "", model: str = "m", **raw: Any) -> AssistantWords:
    made = {"endpoint": "home", "model": model, "contract": f"compat/{wire}"}
    return AssistantWords(1, text, calls, wire, raw, made if wire else {})


def said(text: str = "go") -> UserWords:
    return UserWords("t", text)


def given(asked: CallAsked, text: str = "ok", *, error: bool = False, picture: bool = False) -> ResultGiven:
    return ResultGiven(asked, text, error, (Picture("image/png", "AA=="),) if picture else ())


ASKED = (said(), reply(call()), given(call()))
USES = {"type": "tool_use", "id": "call_1", "name": "note", "input": {}}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}


def thinking(**more: Any) -> list[Message]:
    blocks = [{"type": "thinking", "thinking": "hm", "signature": "s", **more}, USES]
    return [said(), reply(call(), wire="anthropic", content=blocks), given(call())]


def carried(**raw: Any) -> list[Message]:
    return [said(), reply(call(), text="x", wire="chat", content="x", **raw), given(call())]


# --- observations ---------------------------------------------------------------------------------


def sent(*history: Message, **asked: Any) -> Seen:
    """The bytes of a request and what the validator finds in it."""

    def seen(contract: Contract) -> Any:
        request = ModelRequest(
            **{"model": "m", "system": "s", "messages": (), "tools": (TOOL,), "endpoint": "home", **asked}
        )
        made = project(history, Book(), contract, request=request)
        return json.dumps(made.body), made.findings, made.repairs

    return seen


def judged(*messages: Any, **more: Any) -> Seen:
    """What the validator says of a request somebody else encoded."""

    def seen(contract: Contract) -> Any:
        key = "input" if contract.wire == "responses" else "messages"
        return check({"model": "m", key: list(messages), "tools": [{}], **more}, contract)

    return seen


def read(*lines: Any, whole: bool = False) -> Seen:
    """A reply that is read: its fields, or the error that it is."""
    body = "".join(f"data: {one if isinstance(one, str) else json.dumps(one)}\n\n" for one in lines)
    content = json.dumps(lines[0]) if whole else body

    def seen(contract: Contract) -> Any:
        decoder = WIRES[contract.wire]().decoder(contract, stream=not whole)
        try:
            told = decoder.feed(content.encode())
            return decoder.finished, told, decoder.end()
        except ProviderError as error:
            return (
                error.facts.get("kind"),
                error.facts.get("transport_code"),
                error.facts.get("provider_code"),
            )

    return seen


def refused(status: int, body: Any) -> Seen:
    content = (body if isinstance(body, str) else json.dumps(body)).encode()
    return lambda contract: diagnose(status, content, contract)


def error(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


def model(contract: Contract, **more: Any) -> EndpointModel:
    headers = {"anthropic-beta": "x"}
    endpoint = Endpoint("home", "http://127.0.0.1:9/v1", contract.wire, contract.id, "m", headers=headers)
    wire = WIRES[contract.wire]()
    return EndpointModel(Client(), endpoint, wire, contract, system="s", tools=(), **more)


def run_calls(contract: Contract) -> Any:
    """What of a reply whose two calls share an id, beside a third, would run."""
    calls = tuple(ReplyCall("note", "{}", one) for one in ("x", "x", "y"))
    ids = [{"callId": f"c{n}", "attemptId": f"a{n}"} for n in range(3)]
    repeated = str(contract["ids.repeated_in_reply"])
    return as_calls(Reply("", calls, "stop", {}), ids, "t", batch_split=False, repeated_ids=repeated)


def too_large(contract: Contract) -> Any:
    endpoint = Endpoint("home", "http://127.0.0.1:9/v1", contract.wire, contract.id, "m")
    request = ModelRequest("m", "s", [said("x" * 100)])
    try:
        return refuse_locally(freeze(endpoint, WIRES[contract.wire](), contract, request), endpoint)
    except ProviderError as told:
        return told.facts["kind"], told.facts["local"], str(told)


def effort(contract: Contract) -> Any:
    try:
        return contract.effort("low", "home")
    except SettingsError:
        return "not known"


def traced(contract: Contract) -> Any:
    """The trace id a caller is told of a refusal by a server on this machine."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 400 No\r\nx-mine: abc\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def ask() -> Any:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server, Client() as client:
            port = server.sockets[0].getsockname()[1]
            endpoint = Endpoint("home", f"http://127.0.0.1:{port}/v1", "chat", contract.id, "m")
            try:
                await client.send(endpoint, WIRES["chat"](), contract, ModelRequest("m", "s", [said()]))
            except ProviderError as told:
                return told.facts["trace_id"]

    return asyncio.run(ask())


def both(*ways: Seen) -> Seen:
    return lambda contract: [way(contract) for way in ways]


# --- replies and bodies that the rows use -------------------------------------------------------------


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def fragment(arguments: str, index: int = 0, own: str = "c") -> dict[str, Any]:
    function = {"name": "note", "arguments": arguments}
    return {"index": index, "id": f"{own}{index}", "function": function}


def tool(own: str = "call_1", content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": own, "content": content}


def asking(*ids: str, arguments: Any = "{}") -> dict[str, Any]:
    calls = [
        {"id": one, "type": "function", "function": {"name": "note", "arguments": arguments}} for one in ids
    ]
    return {"role": "assistant", "content": "", "tool_calls": calls}


USER = {"role": "user", "content": "go"}
ITEM = {"type": "function_call", "call_id": "c", "name": "note", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "ok"}
SPOKEN = {"role": "assistant", "content": "x"}
RESULT = {"type": "tool_result", "tool_use_id": "call_1", "content": "ok"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:,"}}
MARKED = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
KEPT = reply(
    call(), wire="responses", id="resp_1", status="completed", output=[{**ITEM, "call_id": "call_1"}]
)
FORM = {"type": "web_search", "name": "web_search", "cache_control": {"type": "ephemeral"}}
HOSTED_FORM = {"tools.hosted_forms": {"search": FORM}}
HEADED = {"reasoning.carrier": "reasoning_content", "reasoning.required": "tool_turns"}
EMPTY_OK = {**HEADED, "reasoning.empty_ok": True}
NUMBERED = error("odd (2013)", type="kind", code=7, status="WORD", metadata={"error_type": "m"})
NUMBERED["error"]["details"] = {"error_code": "d"}
NUMBERED |= {"code": "top", "__type": "Aws"}
WORDS = error("some words that nothing knows", code="E1")
CARRIED = carried(reasoning_content="hm", reasoning_details=[{"type": "reasoning.text", "text": "hm"}])
SEALED = {"type": "reasoning", "id": "rs_1", "encrypted_content": "s", "summary": []}
SEALED_REPLY = reply(
    call(),
    wire="responses",
    output=[SEALED, {**ITEM, "id": "fc_1", "call_id": "call_1"}],
)
SIGNED_CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "note", "arguments": "{}"},
    "extra_content": {"google": {"thought_signature": "sig"}},
}
FOREIGN_CALL = reply(call(), wire="chat", model="other", content="", tool_calls=[SIGNED_CALL])
AWAY_CALL = dataclasses.replace(FOREIGN_CALL, issuer={**FOREIGN_CALL.issuer, "endpoint": "away"})
STOPPED = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}
BEGUN = {"type": "message_start", "message": {"content": []}}


@dataclasses.dataclass(frozen=True)
class Row:
    key: str
    over: str
    values: Sequence[Any]
    seen: Seen
    beside: Keys = dataclasses.field(default_factory=dict)
    """Other keys of the same contract: a key that only says how another acts needs that other."""


ROWS: list[Row] = [
    Row(
        "pairing.results_position",
        RESPONSES,
        ["contiguous", "next_message_first", "next_turn", "next_turn_only"],
        both(
            judged(USER, ITEM, USER, OUTPUT),
            judged(USER, ITEM, USER, SPOKEN, OUTPUT),
            judged(USER, ITEM, OUTPUT, USER),
            sent(said(), reply(call()), given(call()), said("and?")),
        ),
    ),
    Row(
        "pairing.results_position",
        MESSAGES,
        ["same_input"],
        judged(USER, {"role": "assistant", "content": [USES]}, {"role": "user", "content": [MARKED, RESULT]}),
    ),
    Row(
        "pairing.orphan_result",
        CHAT,
        ["accept", "unknown"],
        both(sent(said(), given(call())), judged(USER, tool())),
    ),
    Row(
        "pairing.duplicate_result",
        CHAT,
        ["accept", "unknown"],
        both(sent(*ASKED, given(call(), "again")), judged(USER, asking("call_1"), tool(), tool())),
    ),
    Row(
        "pairing.after_results",
        MESSAGES,
        ["assistant_or_tool", "own_turn"],
        sent(*ASKED, said()),
        {"pairing.same_role_neighbours": "merge"},
    ),
    Row("pairing.first_role", CHAT, ["user"], sent(reply(text="hello"), said())),
    Row("pairing.final_role", CHAT, ["user", "user_or_tool"], sent(said(), reply(text="hello"))),
    Row("pairing.same_role_neighbours", CHAT, ["merge"], sent(said(), said("and"))),
    Row(
        "pairing.server_tool_pairs",
        MESSAGES,
        [False],
        both(
            sent(
                said(),
                reply(text="x", wire="anthropic", content=[SEARCH, {"type": "text", "text": "x"}]),
                said(),
            ),
            judged(USER, {"role": "assistant", "content": [SEARCH]}, USER),
        ),
    ),
    Row("pairing.chaining", RESPONSES, ["previous_response_id"], sent(said(), KEPT, given(call()))),
    Row(
        "pairing.batch_split",
        CHAT,
        [True],
        read(chunk(tool_calls=[fragment("{}"), fragment('{"a', 1)]), chunk("length")),
    ),
    Row("ids.pattern", CHAT, ["^[a-z]+$"], sent(*ASKED)),
    Row("ids.max_length", CHAT, [3], sent(*ASKED)),
    Row(
        "ids.unique",
        CHAT,
        ["request", "none"],
        sent(
            said(),
            reply(call(0), call(1)),
            given(call(0)),
            given(call(1)),
            said(),
            reply(call(2)),
            given(call(2)),
        ),
    ),
    Row("ids.repeated_in_reply", CHAT, ["distinct", "refuse"], run_calls),
    Row("ids.policy", CHAT, ["verbatim", "native_kimi"], sent(*ASKED), {"ids.max_length": 3}),
    Row(
        "ids.item_prefixes",
        RESPONSES,
        [False],
        both(
            judged(USER, {"type": "message", "id": "other", "role": "assistant", "content": "x"}),
        ),
    ),
    Row(
        "arguments.type",
        CHAT,
        ["object", "either"],
        both(sent(*ASKED), judged(USER, asking("call_1", arguments={}), tool())),
    ),
    Row("arguments.history_json", CHAT, [False], sent(said(), reply(call(arguments='{"a')), given(call()))),
    Row(
        "arguments.double_encoded",
        CHAT,
        [True],
        read(chunk(tool_calls=[fragment(json.dumps('{"a": 1}'))]), chunk("stop")),
    ),
    Row(
        "content.assistant_null",
        CHAT,
        ["with_calls", "ok"],
        both(sent(*ASKED), judged(USER, {"role": "assistant", "content": None})),
    ),
    Row(
        "content.result",
        CHAT,
        ["text_parts", "parts", "object"],
        both(sent(*ASKED), judged(USER, asking("call_1"), tool(content=[{"type": "text", "text": "x"}]))),
    ),
    Row(
        "content.empty_text",
        CHAT,
        ["omit"],
        sent(
            said(),
            reply(
                text="x", wire="chat", content=[{"type": "text", "text": ""}, {"type": "text", "text": "x"}]
            ),
        ),
    ),
    Row("content.empty_result", CHAT, ["text"], sent(said(), reply(call()), given(call(), ""))),
    Row(
        "content.error_result_text", CHAT, [True], sent(said(), reply(call()), given(call(), "", error=True))
    ),
    Row(
        "content.result_media",
        CHAT,
        ["user_after", "inline"],
        both(
            sent(said(), reply(call()), given(call(), picture=True), said()),
            judged(USER, asking("call_1"), tool(content=[IMAGE])),
        ),
        {"content.result": "parts"},
    ),
    Row("content.unknown_keys", CHAT, ["ok"], sent(*carried(annotations=[]))),
    Row(
        "reasoning.carrier",
        CHAT,
        ["reasoning_content", "reasoning_details"],
        sent(*ASKED),
        EMPTY_OK | {"reasoning.carrier": "none"},
    ),
    Row(
        "reasoning.carrier",
        CHAT,
        ["thought_signature"],
        sent(said(), FOREIGN_CALL, given(call())),
        {"reasoning.binding": "model"},
    ),
    Row("reasoning.carrier", MESSAGES, ["thinking_signed"], sent(*thinking(signature=""))),
    Row(
        "reasoning.carrier",
        RESPONSES,
        ["item_encrypted", "item_text"],
        sent(said(), SEALED_REPLY, given(call())),
    ),
    Row("reasoning.efforts", CHAT, [["high"]], effort),
    Row(
        "reasoning.required",
        CHAT,
        ["tool_turns", "all_with_tools", "all_turns"],
        sent(*ASKED, said(), reply(text="x"), said()),
        EMPTY_OK | {"reasoning.required": "as_received"},
    ),
    Row("reasoning.required", CHAT, ["never", "forbidden"], sent(*CARRIED)),
    Row(
        "reasoning.required",
        CHAT,
        ["first_call_of_step"],
        sent(said(), FOREIGN_CALL, given(call())),
        {
            "reasoning.carrier": "thought_signature",
            "reasoning.empty_ok": True,
            "reasoning.binding": "model",
            "reasoning.placeholder": "skip",
        },
    ),
    Row(
        "reasoning.required",
        CHAT,
        ["tool_turns_since_user"],
        sent(*ASKED),
        EMPTY_OK | {"reasoning.required": "as_received"},
    ),
    Row(
        "reasoning.carrier",
        MESSAGES,
        ["thinking_unsigned"],
        sent(*thinking(signature="")),
        {"reasoning.carrier": "thinking_signed"},
    ),
    Row(
        "reasoning.binding",
        CHAT,
        ["backend"],
        sent(said(), AWAY_CALL, given(call())),
        {"reasoning.carrier": "thought_signature"},
    ),
    Row("reasoning.when", CHAT, ["always"], sent(*ASKED, effort="none"), EMPTY_OK),
    Row("reasoning.empty_ok", CHAT, [True], sent(*ASKED), HEADED),
    Row("reasoning.placeholder", CHAT, ["..."], sent(*ASKED), EMPTY_OK),
    Row(
        "reasoning.binding",
        CHAT,
        ["model", "account", "prefix"],
        sent(said(), FOREIGN_CALL, given(call())),
        {"reasoning.carrier": "thought_signature"},
    ),
    Row("reasoning.drop_block", MESSAGES, [True], lambda one: model(one, effort="low").may_drop_blocks),
    Row("reasoning.off_forbids", MESSAGES, [True], sent(*thinking())),
    Row(
        "reasoning.missing_at_receipt",
        CHAT,
        ["regenerate"],
        lambda one: lacks_carrier(Reply("", (ReplyCall("note", "{}", "x"),), "stop", {}), one, tools=True),
        HEADED,
    ),
    Row("tools.required_with_history", CHAT, [True], sent(*ASKED, tools=())),
    Row(
        "tools.hosted",
        MESSAGES,
        [{"fetch": ["web_search"]}],
        read({"content": [SEARCH], "stop_reason": "end_turn"}, whole=True),
    ),
    Row("tools.hosted_forms", MESSAGES, [{"search": {"type": "other"}}], sent(said(), hosted=("search",))),
    Row("tools.mode", CHAT, ["json_schema"], sent(*ASKED)),
    Row(
        "cache.markers_max",
        MESSAGES,
        [0],
        both(sent(said(), hosted=("search",)), judged({"role": "user", "content": [MARKED]})),
        HOSTED_FORM,
    ),
    Row(
        "cache.forbidden_on",
        MESSAGES,
        [["text", "web_search"]],
        both(sent(said(), hosted=("search",)), judged({"role": "user", "content": [MARKED]})),
        HOSTED_FORM,
    ),
    Row(
        "stream.terminal",
        CHAT,
        [["[DONE]"], ["finish_reason"], ["[END]"]],
        both(read(chunk(content="x"), "[DONE]"), read(chunk("stop", content="x"), "[DONE]")),
    ),
    Row("stream.terminal", MESSAGES, [["message_delta"]], read(BEGUN, STOPPED)),
    Row(
        "stream.terminal",
        RESPONSES,
        [["response.done"]],
        read({"type": "response.done", "response": {"output": []}}),
    ),
    Row("stream.terminal_optional", CHAT, [True], read(chunk(tool_calls=[fragment("{}")]), "[DONE]")),
    Row("stream.snapshots", CHAT, [True], read(chunk(content="a"), chunk("stop", content="ab"))),
    Row(
        "stream.usage",
        CHAT,
        [[], ["usage", "x_groq.usage"]],
        both(sent(said()), read({**chunk("stop", content="x"), "x_groq": {"usage": {"prompt_tokens": 7}}})),
    ),
    Row(
        "errors.shape",
        CHAT,
        ["kimi", "minimax", "gemini", "openrouter", "anthropic", "bedrock", "mistral"],
        refused(400, NUMBERED),
    ),
    Row("errors.shape", CHAT, ["vllm", "llamacpp"], refused(400, NUMBERED)),
    Row("errors.shape", CHAT, ["mimo"], refused(400, error("Param Incorrect", param="messages"))),
    Row("errors.trace_headers", CHAT, [["x-mine"]], traced),
    Row("errors.codes", CHAT, [{"E1": "quota"}], refused(400, WORDS)),
    Row("errors.wordless", CHAT, [["E1"]], refused(400, WORDS)),
    *(
        Row(f"errors.{kind}_text", CHAT, [["that nothing knows"]], refused(400, WORDS))
        for kind in ("quota", "overflow", "policy", "schema", "flap")
    ),
    Row("errors.history_fault_status", CHAT, [[500]], refused(500, error("parse tool call arguments"))),
    Row("errors.families", CHAT, [{"replay_ids": [["nothing", "knows"]]}], refused(400, WORDS)),
    Row(
        "errors.unwrap",
        CHAT,
        [False],
        refused(502, error('no: {"error": {"message": "duplicate tool_call id"}}')),
    ),
    Row("limits.window_tokens", CHAT, [1000], lambda one: model(one).window_tokens),
    Row("limits.body_bytes", CHAT, [64], too_large),
    Row("limits.output_key", CHAT, ["max_completion_tokens"], sent(said(), max_output_tokens=9)),
]
ALIKE: Mapping[str, tuple[Any, ...]] = {
    # As `as_received`: all that was stored is sent, and no wire of theirs can be given a carrier it never had.
    "reasoning.required": ("open_tool_loop", "with_items"),
    # As `none`: sent back as it was stored. One is part of the text itself, the other belongs to the wire of Bedrock.
    "reasoning.carrier": ("think_text", "bedrock_reasoning"),
    # Their code stands where that of `openai` does.
    "errors.shape": ("deepseek", "glm"),
}
"""Values of a closed list that the wires document tells apart and that lead to the same requests and readings."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.key}-{row.over}")
def test_wc_1_every_value_of_a_key_changes_what_is_sent_judged_or_read(row: Row) -> None:
    before = over(row.over, row.beside)
    plain = row.seen(before)
    assert row.seen(over(row.over, row.beside)) == plain, "the observation itself is not stable"
    for value in row.values:
        assert value_fault(row.key, value) is None and before[row.key] != value
        assert row.seen(over(row.over, {**row.beside, row.key: value})) != plain, (row.key, value)


def test_wc_1_no_key_and_no_value_of_a_closed_list_stands_outside_of_the_table() -> None:
    assert {row.key for row in ROWS} == set(SCHEMA)
    for key, allowed in SCHEMA.items():
        if not isinstance(allowed, tuple):
            continue
        rows = [row for row in ROWS if row.key == key]
        shown = [value for row in rows for value in (*row.values, over(row.over, row.beside)[key])]
        missing = [value for value in allowed if value not in (*shown, *ALIKE.get(key, ()))]
        assert missing == [], (key, missing)


def test_wc_5_the_level_of_every_rule_decides_whether_it_is_told() -> None:
    broken = judged(USER, asking("call_1"))
    levels = [broken(over(CHAT, {"rules.OC-01": level})) for level in ("enforce", "suspect", "off")]
    assert [[one.level for one in found if one.rule == "OC-01"] for found in levels] == [
        ["enforce"],
        ["suspect"],
        [],
    ]


def test_wc_1_a_stream_without_a_last_marker_is_no_contract() -> None:
    assert "no reply ever ends" in str(value_fault("stream.terminal", []))


def test_r4_a_cache_marker_that_may_not_stand_is_told_as_a_repair() -> None:
    contract = over(MESSAGES, {**HOSTED_FORM, "cache.markers_max": 0})
    assert "cache_control" not in hosted.forms(["search"], contract)[0]
    assert ("R4", -1) in sent(said(), hosted=("search",))(contract)[2]
