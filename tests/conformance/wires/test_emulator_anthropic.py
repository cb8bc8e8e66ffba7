"""The emulated Anthropic wire judged by the unmodified official SDK: each rule, signatures, streams, faults."""

from __future__ import annotations

import copy
import json
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any

import anthropic
import pytest

from surefoot.providers import contracts, rules
from surefoot.testing.emulator.profiles import ANTHROPIC
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.model import call

TOOLS = [
    {
        "name": "note",
        "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}},
    }
]
THINK = {"type": "enabled", "budget_tokens": 1024}
SIGNING = ("anthropic", "anthropic-bound")
CERTIFICATES = ssl.create_default_context()
"""Read once; reading them for every client of the SDK takes longer than a request."""
Body = dict[str, Any]


@pytest.fixture
async def emulator() -> AsyncIterator[Emulator]:
    async with Emulator() as server:
        yield server


def client(emulator: Emulator, profile: str, **more: Any) -> anthropic.AsyncAnthropic:
    http = anthropic.DefaultAsyncHttpxClient(verify=CERTIFICATES)
    settings = {"api_key": "sk-ant-test", "max_retries": 0, "timeout": 10, "http_client": http, **more}
    return anthropic.AsyncAnthropic(base_url=emulator.base_url(profile, wire="anthropic"), **settings)


async def ask(emulator: Emulator, profile: str, body: Body, *, stream: bool = False, **more: Any) -> Any:
    """The final message, whole or put together by the SDK from its stream."""
    async with client(emulator, profile, **more) as sdk:
        if not stream:
            return await sdk.messages.create(**body)
        async with sdk.messages.stream(**body) as events:
            return await events.get_final_message()


def user(*content: Any) -> Body:
    return {"role": "user", "content": list(content) if content else "go"}


def use(identity: str = "toolu_a", **arguments: Any) -> Body:
    return {"type": "tool_use", "id": identity, "name": "note", "input": arguments}


def result(identity: str = "toolu_a", content: Any = "ok", **more: Any) -> Body:
    return {"type": "tool_result", "tool_use_id": identity, "content": content, **more}


def model(*content: Any) -> Body:
    return {"role": "assistant", "content": list(content)}


def text(said: str = "x", **more: Any) -> Body:
    return {"type": "text", "text": said, **more}


def thought(said: str = "hm", **more: Any) -> Body:
    return {"type": "thinking", "thinking": said, **more}


def body(*messages: Any, **more: Any) -> Body:
    return {"model": "scripted", "max_tokens": 2048, "tools": TOOLS, "messages": list(messages), **more}


GOOD = body(
    user(), model(use("toolu_a"), use("toolu_b")), user(result("toolu_b"), result("toolu_a"), text("on"))
)
SERVER = {"type": "server_tool_use", "id": "srvtoolu_a", "name": "web_search", "input": {"query": "q"}}
SERVED = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_a", "content": []}
MARK = {"cache_control": {"type": "ephemeral"}}

PAIRS: list[tuple[str, str, Body, Body]] = [
    ("AN-01", "compat", GOOD, body(user(), model(use(), use("toolu_b")), user(result()))),
    ("AN-01", "compat", GOOD, body(user(), model(use()), user(), user(result()))),
    ("AN-02", "compat", GOOD, body(user(), model(use()), user(result(), result("toolu_zz")))),
    ("AN-02", "compat", GOOD, body(user(result()))),
    ("AN-03", "compat", GOOD, body(user(), model(use()), user(text(), result()))),
    ("AN-04", "compat", GOOD, body(user(), model(use()), user(result(), result()))),
    ("AN-05", "compat", GOOD, body(user(), model(use()), user(result()), model(use()), user(result()))),
    ("AN-06", "compat", GOOD, body(user(), model(use("a:b")), user(result("a:b")))),
    ("AN-16", "compat", GOOD, body(user(), model(text(" ")), user())),
    ("AN-16", "compat", GOOD, body({"role": "user", "content": ""})),
    (
        "AN-17",
        "compat",
        body(user(), model(use()), user(result(content="broke", is_error=True))),
        body(user(), model(use()), user(result(content="", is_error=True))),
    ),
    (
        "AN-12",
        "anthropic",
        GOOD,
        body(user(), model(thought(), use()), user(result()), thinking=THINK),
    ),
    (
        "AN-14",
        "anthropic",
        body(user(), model(SERVER, SERVED, text()), user()),
        body(user(), model(SERVED), user()),
    ),
    ("AN-14", "anthropic", body(user(), model(SERVER)), body(user(), model(SERVER, text()), user())),
    (
        "AN-18",
        "anthropic",
        body(user(*[text(**MARK)] * 4)),
        body(user(*[text(**MARK)] * 5)),
    ),
    ("AN-19", "anthropic", GOOD, body(user(), model(text()))),
    ("AN-20", "anthropic", GOOD, body(user(text(extra_field=1)))),
    (
        "DS-04",
        "deepseek",
        body(user(), model(thought(""), use()), user(result())),
        body(user(), model(use()), user(result())),
    ),
    (
        "DS-04",
        "deepseek",
        body(user(), model(use()), user(result()), thinking={"type": "disabled"}),
        body(user(), model({"type": "thinking"}, use()), user(result())),
    ),
    (
        "DS-07",
        "deepseek",
        body(user(), model(thought(), use()), user(result(), text())),
        body(user(), model(thought(), use()), user(text(), result())),
    ),
]
OFF = {"thinking": {"type": "disabled"}}
TIER_1 = ("compat", *SIGNING, "deepseek")


def _missing() -> list[tuple[str, str, Body, Body]]:
    """For each rule a profile enforces and no pair shows, the pair of another profile."""
    shown = {(rule, profile) for rule, profile, *_ in PAIRS}
    found = []
    for name in TIER_1:
        off = OFF if name == "deepseek" else {}
        for rule in sorted(ANTHROPIC[name].rules):
            twins = [pair for pair in PAIRS if pair[0] == rule and (rule, name) not in shown]
            found += [(rule, name, {**a, **off}, {**b, **off}) for _, _, a, b in twins[:1]]
    return found


PAIRS += _missing()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("rule", "profile", "accepted", "refused"),
    PAIRS,
    ids=[f"{r}-{p}-{n}" for n, (r, p, *_) in enumerate(PAIRS)],
)
async def test_we_10_each_enforced_rule_accepts_one_request_and_refuses_its_twin(
    emulator: Emulator, rule: str, profile: str, accepted: Body, refused: Body, stream: bool
) -> None:
    assert (await ask(emulator, profile, accepted, stream=stream)).stop_reason == "end_turn"
    with pytest.raises(anthropic.BadRequestError) as caught:
        await ask(emulator, profile, refused, stream=stream)
    assert rule in emulator.requests()[-1].rules
    shown: Any = caught.value.body
    if profile == "deepseek":
        assert shown["error"]["code"] == "invalid_request_error"
    else:
        assert shown["type"] == "error" and shown["error"]["type"] == "invalid_request_error"


async def loop(emulator: Emulator, profile: str, *, stream: bool, **fault: Any) -> Body:
    """A tool loop in which the emulator itself issued thinking, signature and id; ready to be sent again."""
    emulator.script(
        [{"thinking": "let me grüße", "text": "I note", "calls": [call("note", text="a")]}], then="last"
    )
    planned = emulator.fault(**fault) if fault else None
    asked = body(user(), system="be brief", thinking=THINK)
    reply = await ask(emulator, profile, asked, stream=stream)
    assert planned is None or planned.fired == 1
    sent = json.loads(reply.model_dump_json(exclude_none=True))["content"]
    answered = user(result(reply.content[-1].id))
    return {**asked, "messages": [*asked["messages"], model(*sent), answered]}


def edited(whole: Body, change: Callable[[Body], Any]) -> Body:
    copied = copy.deepcopy(whole)
    change(copied)
    return copied


def last_model(whole: Body) -> list[Body]:
    return [m for m in whole["messages"] if m["role"] == "assistant"][-1]["content"]  # type: ignore[no-any-return]


DAMAGES: list[tuple[str, Callable[[Body], Any]]] = [
    ("AN-07", lambda b: last_model(b)[0].update(thinking="let me")),
    ("AN-07", lambda b: last_model(b).append(last_model(b).pop(0))),
    ("AN-08", lambda b: last_model(b)[0].update(signature="")),
    ("AN-08", lambda b: last_model(b)[0].update(signature=last_model(b)[0]["signature"][:-1])),
    ("AN-08", lambda b: b.update(model="another")),
    ("AN-10", lambda b: last_model(b).pop(0)),
    ("AN-11", lambda b: b.pop("thinking")),
    ("AN-12", lambda b: last_model(b)[0].pop("signature")),
]
ONLY_THE_ISSUER_KNOWS = ("AN-07", "AN-08")
UNBOUND: list[tuple[str, Callable[[Body], Any]]] = [
    ("system", lambda b: b.update(system="be long")),
    ("tools", lambda b: b["tools"].append({"name": "more", "input_schema": {"type": "object"}})),
    ("messages", lambda b: b["messages"][0].update(content="go on")),
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("profile", SIGNING)
async def test_we_10_what_was_issued_is_accepted_unchanged_and_refused_when_changed(
    emulator: Emulator, profile: str, stream: bool
) -> None:
    whole = await loop(emulator, profile, stream=stream)
    await ask(emulator, profile, whole, stream=stream)
    for rule, damage in DAMAGES:
        broken = edited(whole, damage)
        with pytest.raises(anthropic.BadRequestError):
            await ask(emulator, profile, broken, stream=stream)
        assert emulator.requests()[-1].rules == [rule]
        if f"{profile}/anthropic" in contracts.contract_ids():
            contract = contracts.resolve(f"{profile}/anthropic")
            assert rules.refusing(rules.check(whole, contract)) == []
            found = {finding.rule for finding in rules.refusing(rules.check(broken, contract))}
            assert rule in found or rule in ONLY_THE_ISSUER_KNOWS


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_an_09_a_bound_block_is_refused_outside_its_conversation_or_dropped_when_asked(
    emulator: Emulator, stream: bool
) -> None:
    whole = await loop(emulator, "anthropic-bound", stream=stream)
    for named, change in UNBOUND:
        moved = edited(whole, change)
        with pytest.raises(anthropic.BadRequestError, match=named):
            await ask(emulator, "anthropic-bound", moved, stream=stream)
        assert emulator.requests()[-1].rules == ["AN-09"]
        await ask(emulator, "anthropic", moved, stream=stream)  # an older model does not bind
    drop = {**THINK, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    moved["thinking"] = drop
    reply = await ask(
        emulator, "anthropic-bound", moved, stream=stream, default_headers={"anthropic-beta": "binding-x"}
    )
    assert reply.input_transformations[0]["path"] == "messages.1.content.0"


async def test_an_09_an_earlier_block_that_is_missing_unbinds_the_later_one(emulator: Emulator) -> None:
    first = await loop(emulator, "anthropic-bound", stream=False)
    reply = await ask(emulator, "anthropic-bound", first)
    sent = json.loads(reply.model_dump_json(exclude_none=True))["content"]
    second = {**first, "messages": [*first["messages"], model(*sent), user(result(reply.content[-1].id))]}
    await ask(emulator, "anthropic-bound", second)
    with pytest.raises(anthropic.BadRequestError, match="missing from this request"):
        await ask(emulator, "anthropic-bound", edited(second, lambda b: b["messages"][1]["content"].pop(0)))


async def test_an_13_an_empty_thinking_text_with_its_signature_is_valid(emulator: Emulator) -> None:
    whole = await loop(emulator, "anthropic-bound", stream=False, reasoning_mode="signature_only")
    assert last_model(whole)[0]["thinking"] == ""
    await ask(emulator, "anthropic-bound", whole)


@pytest.mark.parametrize("knob", ["allow_prefill"])
async def test_an_19_prefill_is_accepted_where_the_profile_says_so(emulator: Emulator, knob: str) -> None:
    old = emulator.wires["anthropic"]["anthropic"]
    emulator.set_knobs("anthropic", wire="anthropic", **{knob: True})
    try:
        await ask(emulator, "anthropic", body(user(), model(text())))
    finally:
        emulator.wires["anthropic"]["anthropic"] = old


def test_we_03_every_rule_of_an_anthropic_profile_is_shown_somewhere() -> None:
    shown = {(rule, name) for rule, name, *_ in PAIRS} | {("AN-09", "anthropic-bound")}
    shown |= {(rule, name) for rule, _ in DAMAGES for name in SIGNING}
    assert {(rule, name) for name in TIER_1 for rule in ANTHROPIC[name].rules} == shown


@pytest.mark.parametrize("profile", sorted(ANTHROPIC))
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_we_15_every_profile_answers_thinking_text_and_calls(
    emulator: Emulator, profile: str, stream: bool
) -> None:
    step = {"thinking": "hm", "text": "grüße 你好", "calls": [call("note", text="a"), call("note", text="ß")]}
    emulator.script([step], then="last")
    reply = await ask(emulator, profile, body(user(), thinking=THINK), stream=stream)
    kinds = [block.type for block in reply.content]
    assert kinds == ["thinking", "text", "tool_use", "tool_use"]
    assert reply.content[1].text == "grüße 你好" and reply.content[3].input == {"text": "ß"}
    assert reply.stop_reason == "tool_use" and reply.usage.output_tokens > 1 and reply.usage.input_tokens > 1
    assert reply.id.startswith("msg_") and reply.content[2].id.startswith("toolu_")
    assert bool(getattr(reply.content[0], "signature", None)) == (profile in ("compat", *SIGNING))


async def test_we_15_a_stream_has_its_events_in_order(emulator: Emulator) -> None:
    emulator.script([{"thinking": "hm", "calls": [call("note", text="a")]}], then="last")
    async with client(emulator, "anthropic") as sdk:
        stream = await sdk.messages.create(**body(user(), thinking=THINK), stream=True)
        events = [event async for event in stream]
    kinds = [event.type for event in events]
    assert kinds[0] == "message_start" and kinds[-2:] == ["message_delta", "message_stop"]
    fragments = [
        e.delta.partial_json
        for e in events
        if getattr(getattr(e, "delta", None), "type", "") == "input_json_delta"
    ]  # type: ignore[union-attr]
    assert fragments[0] == "" and json.loads("".join(fragments)) == {"text": "a"}


async def test_we_04_an_unknown_path_a_wrong_key_and_the_trace_header(emulator: Emulator) -> None:
    with pytest.raises(anthropic.AuthenticationError) as caught:
        await ask(emulator, "anthropic", body(user()), api_key="sk-bad")
    assert caught.value.response.headers["request-id"].startswith("req_")
    with pytest.raises(anthropic.NotFoundError):
        await ask(emulator, "openai", body(user()))
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        await ask(emulator, "anthropic", body({"role": "user", "content": "x" * 900_000}))


@pytest.mark.parametrize(
    ("action", "error", "kind"),
    [
        ({"auth": True}, anthropic.AuthenticationError, "authentication_error"),
        ({"quota_as_400": True}, anthropic.BadRequestError, "invalid_request_error"),
        ({"quota_as_429": True}, anthropic.RateLimitError, "rate_limit_error"),
        ({"rate": 7}, anthropic.RateLimitError, "rate_limit_error"),
        ({"overloaded": True}, anthropic.APIStatusError, "overloaded_error"),
        ({"overflow_at": 1}, anthropic.BadRequestError, "invalid_request_error"),
    ],
)
async def test_we_12_planned_refusals_have_the_anthropic_form(
    emulator: Emulator, action: Body, error: type[anthropic.APIStatusError], kind: str
) -> None:
    emulator.fault(**action)
    with pytest.raises(error) as caught:
        await ask(emulator, "anthropic", body(user()))
    assert caught.value.body["error"]["type"] == kind  # type: ignore[index]
    if "quota_as_429" in action:
        assert caught.value.body["error"]["details"]["error_code"] == "enforced_spend_limit_reached"  # type: ignore[index]
    emulator.assert_fired()


async def first_block(emulator: Emulator, *, stream: bool = True, **action: Any) -> Any:
    fault = emulator.fault(**action)
    reply = await ask(emulator, "anthropic", body(user(), thinking=THINK), stream=stream)
    assert fault.fired == 1
    return reply.content[0]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_we_19_the_knobs_of_reasoning_bend_the_thinking_block(emulator: Emulator, stream: bool) -> None:
    emulator.script([{"thinking": "hm hm", "text": "x", "calls": [call("note")]}], then="last")
    assert (await first_block(emulator, stream=stream, reasoning_mode="omit")).type == "text"
    blank = await first_block(emulator, stream=stream, reasoning_mode="blank")
    assert (blank.thinking, blank.signature) == ("", "")
    unsigned = await first_block(emulator, stream=stream, reasoning_mode="unsigned")
    assert unsigned.thinking == "hm hm" and not getattr(unsigned, "signature", "")
    redacted = await first_block(emulator, stream=stream, reasoning_mode="redacted")
    assert redacted.type == "redacted_thinking" and redacted.data
    if stream:
        lost = await first_block(emulator, reasoning_mode="lost_signature_delta")
        assert (lost.thinking, lost.signature) == ("hm hm", "")


async def test_we_19_redacted_thinking_returns_as_it_came_or_is_refused(emulator: Emulator) -> None:
    whole = await loop(emulator, "anthropic-bound", stream=True, reasoning_mode="redacted")
    await ask(emulator, "anthropic-bound", whole)
    with pytest.raises(anthropic.BadRequestError):
        await ask(emulator, "anthropic-bound", edited(whole, lambda b: last_model(b)[0].update(data="x")))


@pytest.mark.parametrize("mode", ["foreign_model", "corrupt_one_byte"])
async def test_we_19_a_bent_signature_is_refused_at_replay(emulator: Emulator, mode: str) -> None:
    whole = await loop(emulator, "anthropic", stream=True, signature_mode=mode)
    with pytest.raises(anthropic.BadRequestError, match="Invalid `signature`"):
        await ask(emulator, "anthropic", whole)


async def test_we_19_an_incident_refuses_valid_signatures_count_times_and_nothing_else(
    emulator: Emulator,
) -> None:
    whole = await loop(emulator, "anthropic", stream=False)
    emulator.fault(signature_mode="expired_incident", count=2)
    await ask(emulator, "anthropic", body(user()))
    for _ in range(2):
        with pytest.raises(anthropic.BadRequestError, match="Invalid `signature`"):
            await ask(emulator, "anthropic", whole)
    await ask(emulator, "anthropic", whole)
    emulator.assert_fired()


async def test_we_19_missing_terminal_events_and_errors_inside_the_stream(emulator: Emulator) -> None:
    emulator.script([{"text": "abc"}], then="last")
    emulator.fault(no_message_delta=True)
    assert (await ask(emulator, "anthropic", body(user()), stream=True)).stop_reason is None
    emulator.fault(no_message_stop=True)
    async with client(emulator, "anthropic") as sdk:
        stream = await sdk.messages.create(**body(user()), stream=True)
        assert [event.type async for event in stream][-1] == "message_delta"
    emulator.fault(duplicate_final=True)
    await ask(emulator, "anthropic", body(user()), stream=True)
    emulator.fault(stream_error_at=3)
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        await ask(emulator, "anthropic", body(user()), stream=True)
    emulator.assert_fired()


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("stop", "end_turn"),
        ("length", "max_tokens"),
        ("tool_calls", "tool_use"),
        ("content_filter", "refusal"),
        ("error", "error"),
        ("pause_turn", "pause_turn"),
        ("refusal", "refusal"),
        ("model_context_window_exceeded", "model_context_window_exceeded"),
        (None, None),
    ],
)
async def test_we_19_finish_speaks_the_words_of_the_wire(
    emulator: Emulator, given: str | None, shown: str | None
) -> None:
    emulator.fault(finish=given)
    assert (await ask(emulator, "anthropic", body(user()))).stop_reason == shown
    emulator.assert_fired()


async def tool_deltas(emulator: Emulator, **action: Any) -> list[Body]:
    fault = emulator.fault(**action)
    async with client(emulator, "anthropic") as sdk:
        stream = await sdk.messages.create(**body(user()), stream=True)
        events = [event.model_dump(exclude_unset=True, warnings=False) async for event in stream]
    assert fault.fired == 1
    return events


async def test_we_19_the_knobs_of_calls_bend_blocks_as_named(emulator: Emulator) -> None:
    emulator.script([{"calls": [call("note", text="first"), call("note", text="second")]}], then="last")

    def starts(events: list[Body]) -> list[Body]:
        return [e for e in events if e["type"] == "content_block_start"]

    assert [e["index"] for e in starts(await tool_deltas(emulator, index_mode="gap"))] == [0, 2]
    assert [e["index"] for e in starts(await tool_deltas(emulator, index_mode="all_zero"))] == [0, 0]
    assert all("index" not in e for e in starts(await tool_deltas(emulator, index_mode="missing")))
    assert [e["index"] for e in starts(await tool_deltas(emulator, index_mode="reverse"))] == [1, 0]
    assert all("id" not in e["content_block"] for e in starts(await tool_deltas(emulator, id_mode="missing")))
    twice = starts(await tool_deltas(emulator, id_mode="duplicate_in_batch"))
    assert {e["content_block"]["id"] for e in twice} == {"call_same"}
    named = starts(await tool_deltas(emulator, name_mode="unknown"))
    assert {e["content_block"]["name"] for e in named} == {"no_such_tool"}

    def said(events: list[Body]) -> str:
        deltas = [e["delta"] for e in events if e["type"] == "content_block_delta" and e["index"] == 1]
        return "".join(delta["partial_json"] for delta in deltas)

    assert said(await tool_deltas(emulator, truncate_args=5)) == '{"tex'
    assert said(await tool_deltas(emulator, args_mode="double_encoded")) == '"{\\"text\\": \\"second\\"}"'
    assert said(await tool_deltas(emulator, args_mode="empty")) == ""
    assert said(await tool_deltas(emulator, args_mode="cumulative")).endswith('{"text": "second"}')


async def test_we_19_a_gateway_turns_the_refusal_of_a_rule_into_something_else(emulator: Emulator) -> None:
    broken = body(user(), model(use()), user())
    for gateway in (500, 502):
        emulator.fault(gateway=gateway)
        with pytest.raises(anthropic.InternalServerError, match="tool_use"):
            await ask(emulator, "anthropic", broken)
        assert emulator.requests()[-1].status == gateway and emulator.requests()[-1].rules == ["AN-01"]
    emulator.fault(gateway="nested_string")
    with pytest.raises(anthropic.BadRequestError) as caught:
        await ask(emulator, "anthropic", broken)
    inner = json.loads(caught.value.body["error"]["message"])  # type: ignore[index]
    assert inner["type"] == "error"
    emulator.assert_fired()


async def test_we_19_a_tampered_request_meets_the_real_rule(emulator: Emulator) -> None:
    whole = await loop(emulator, "anthropic", stream=False)
    emulator.fault(tamper_request=[{"path": ["messages", 1, "content", 0], "remove": True}])
    with pytest.raises(anthropic.BadRequestError, match="must start with a thinking block"):
        await ask(emulator, "anthropic", whole)
    await ask(emulator, "anthropic", whole)
    emulator.assert_fired()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_we_18_hosted_tools_run_are_shown_and_counted(emulator: Emulator, stream: bool) -> None:
    emulator.script(
        [
            {"behaviour": "search_with_sources", "search_with_sources": 2, "text": "found"},
            {"behaviour": "search_without_sources", "text": "found"},
            {"hosted_effect": "code", "text": "ran"},
            {"hosted_effect": "mcp", "text": "ran"},
        ]
    )
    search = await ask(emulator, "anthropic", body(user()), stream=stream)
    assert [b.type for b in search.content] == ["server_tool_use", "web_search_tool_result", "text"]
    assert len(search.content[1].content) == 2 and len(search.content[2].citations) == 2
    await ask(emulator, "anthropic", body(user(), search_again(search), user()), stream=stream)
    for _ in range(2):
        await ask(emulator, "anthropic", body(user()), stream=stream)
    assert emulator.hosted == {"search": 2, "code": 1, "mcp": 1}
    assert [entry.hosted for entry in emulator.requests()] == [
        {"search": 1},
        {"search": 1},
        {"code": 1},
        {"mcp": 1},
    ]


def search_again(reply: Any) -> Body:
    return model(*json.loads(reply.model_dump_json(exclude_none=True))["content"])


async def test_we_18_a_model_may_insist_disobey_and_leave_reasoning_out(emulator: Emulator) -> None:
    insist = {"behaviour": "require_call_once", "calls": [call("note", text="a")], "text": "done"}
    emulator.script([insist], then="last")
    reply = await ask(emulator, "compat", body(user()))
    assert reply.stop_reason == "tool_use"
    again = body(user(), model(use("toolu_x", text="a")), user(result("toolu_x")))
    assert (await ask(emulator, "compat", again)).content[0].text == "done"

    emulator.script([{"behaviour": "repeat_call_after_recovery", "text": "fine"}], then="last")
    assert (await ask(emulator, "compat", again)).content[0].text == "fine"
    emulator.fault(status=400)
    with pytest.raises(anthropic.BadRequestError):
        await ask(emulator, "compat", again)
    repeated = await ask(emulator, "compat", again)
    assert repeated.content[0].input == {"text": "a"} and repeated.content[0].id != "toolu_x"

    emulator.script([{"behaviour": "omit_reasoning", "thinking": "hm", "calls": [call("note")]}])
    assert (await ask(emulator, "deepseek", body(user()))).content[0].type == "tool_use"


SAME = {"DS-04": {"AN-13"}}
"""A thinking block without its text key is DS-04's to the endpoint and AN-13's to the validator."""
BUILT = [pair for pair in PAIRS if f"{pair[1]}/anthropic" in contracts.contract_ids()]


@pytest.mark.parametrize(
    ("rule", "profile", "accepted", "refused"),
    BUILT,
    ids=[f"{r}-{p}-{n}" for n, (r, p, *_) in enumerate(BUILT)],
)
def test_we_20_the_validator_agrees_on_every_anthropic_pair(
    rule: str, profile: str, accepted: Body, refused: Body
) -> None:
    contract = contracts.resolve(f"{profile}/anthropic")
    assert rules.refusing(rules.check(accepted, contract)) == []
    named = {finding.rule for finding in rules.refusing(rules.check(refused, contract))}
    assert rule in named or named & SAME.get(rule, set())
