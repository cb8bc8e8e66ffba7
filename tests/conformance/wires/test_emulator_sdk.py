"""The emulator judged by the unmodified official SDK: what it accepts, refuses and streams."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest

from surefoot.providers import contracts, rules
from surefoot.testing.emulator.profiles import PROFILES
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.model import ScriptedModel, call, raw_call

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "note",
            "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
        },
    }
]
CERTIFICATES = ssl.create_default_context()
"""Read once; reading them for every client of the SDK takes longer than a request."""
TIER_1 = (
    *("openai", "azure", "deepseek", "deepseek-v32", "deepseek-r1", "kimi", "kimi-k3", "kimi-selfhosted"),
    *("llamacpp", "vllm", "ollama", "compat"),
)
NATIVE = "functions.note:0"


@pytest.fixture
async def emulator() -> AsyncIterator[Emulator]:
    async with Emulator() as server:
        yield server


def client(emulator: Emulator, profile: str, key: str = "sk-test", session: str = "s") -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=emulator.base_url(profile),
        api_key=key,
        max_retries=0,
        timeout=90,
        http_client=openai.DefaultAsyncHttpxClient(verify=CERTIFICATES),
        default_headers={"x-test-session": session},
    )


async def ask(emulator: Emulator, profile: str, messages: list[Any], **more: Any) -> Any:
    async with client(emulator, profile) as sdk:
        return await sdk.chat.completions.create(model="scripted", messages=messages, **more)


def user(text: str = "go") -> dict[str, Any]:
    return {"role": "user", "content": text}


def asked(*ids: str, arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    calls = [{"id": i, "type": "function", "function": {"name": "note", "arguments": arguments}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def result(call_id: str, content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


GOOD = [user(), asked("a", "b"), result("b"), result("a"), user("on")]
THOUGHT = {"reasoning_content": "hm"}
IMAGE = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]
NAMELESS = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "a", "type": "function", "function": {}}],
}
NAMELESS["tool_calls"][0]["function"] = {"arguments": "{}"}  # type: ignore[index]

PAIRS: list[tuple[str, str, list[Any], list[Any]]] = [
    ("OC-01", "openai", GOOD, [user(), asked("a", "b"), result("a"), user()]),
    ("OC-01", "azure", GOOD, [user(), asked("a")]),
    ("OC-02", "openai", GOOD, [user(), result("a")]),
    ("OC-02", "compat", GOOD, [user(), asked("a"), result("a"), result("zz")]),
    ("OC-03", "openai", GOOD, [user(), asked("a"), result("a"), result("a")]),
    ("OC-04", "openai", GOOD, [user(), {"role": "assistant", "content": "x", "tool_calls": []}]),
    (
        "OC-05",
        "openai",
        [user(), asked("i" * 40), result("i" * 40)],
        [user(), asked("i" * 41), result("i" * 41)],
    ),
    ("OC-06", "openai", GOOD, [user(), {"role": "assistant", "content": None}, user()]),
    (
        "OC-07",
        "openai",
        [user(), asked("a"), result("a"), {"role": "user", "content": IMAGE}],
        [user(), asked("a"), result("a", IMAGE)],
    ),
    ("OC-08", "openai", GOOD, [user(), asked("a", arguments={"x": 1}), result("a")]),
    ("DS-11", "compat", GOOD, [user(), NAMELESS, result("a")]),
    (
        "DS-06",
        "deepseek",
        [user(), asked("a", **THOUGHT), result("a")],
        [user(), asked("a", **THOUGHT), user()],
    ),
    (
        "DS-03",
        "deepseek",
        [user(), asked("a", reasoning_content=""), result("a")],
        [user(), asked("a"), result("a")],
    ),
    (
        "DS-02",
        "deepseek-v32",
        [user(), asked("a", **THOUGHT), result("a")],
        [user(), asked("a"), result("a")],
    ),
    ("DS-01", "deepseek-r1", GOOD, [user(), asked("a", **THOUGHT), result("a")]),
    (
        "KI-01",
        "kimi",
        [user(), asked(NATIVE, **THOUGHT), result(NATIVE)],
        [user(), asked(NATIVE), result(NATIVE)],
    ),
    (
        "KI-02",
        "kimi-k3",
        [user(), {"role": "assistant", "content": "x", **THOUGHT}, user()],
        [user(), {"role": "assistant", "content": "x"}, user()],
    ),
    (
        "KI-01",
        "kimi-k3",
        [user(), asked("a", **THOUGHT), result("a")],
        [user(), asked("a"), result("a")],
    ),
    ("KI-03", "kimi", [user(), asked("a", **THOUGHT), result("a")], [user(), result("")]),
    ("KI-04", "kimi", [user(), asked("a", **THOUGHT), result("a")], [user(), asked("a", **THOUGHT)]),
    ("LS-01", "vllm", GOOD, [user(), asked("a", arguments='{"content": "cut'), result("a")]),
    ("LS-02", "llamacpp", GOOD, [user(), asked("a", arguments='{"cut'), result("a")]),
    ("LS-03", "llamacpp", GOOD, [user(), user()]),
    ("LS-05", "ollama", GOOD, [user(), asked("a"), result("a", [{"type": "text", "text": "x"}])]),
    ("OC-08", "ollama", GOOD, [user(), asked("a", arguments={}), result("a")]),
]
_DEEPSEEK = [user(), asked("a", **THOUGHT), result("a")]
PAIRS += [
    ("OC-01", "deepseek", _DEEPSEEK, [user(), asked("a", **THOUGHT), user()]),
    ("OC-02", "deepseek", _DEEPSEEK, [user(), result("a")]),
    ("DS-11", "deepseek", _DEEPSEEK, [user(), {**NAMELESS, **THOUGHT}, result("a")]),
    ("DS-06", "deepseek-v32", _DEEPSEEK, [user(), asked("a", **THOUGHT)]),
    ("OC-01", "deepseek-v32", _DEEPSEEK, [user(), asked("a", **THOUGHT)]),
    ("KI-04", "kimi-k3", _DEEPSEEK, [user(), asked("a", **THOUGHT)]),
    ("KI-03", "kimi-k3", _DEEPSEEK, [user(), result("a")]),
    ("OC-02", "kimi-k3", _DEEPSEEK, [user(), result("a")]),
    ("OC-02", "kimi", _DEEPSEEK, [user(), result("a")]),
    ("KI-03", "kimi-selfhosted", [user(), asked(NATIVE, **THOUGHT), result(NATIVE)], [user(), result("a")]),
    ("OC-02", "llamacpp", [user(), asked("a"), result("a")], [user(), result("a")]),
]


def _missing() -> list[tuple[str, str, list[Any], list[Any]]]:
    """For each rule a profile enforces and no pair shows, the pair of another profile."""
    shown = {(rule, profile) for rule, profile, *_ in PAIRS}
    found = []
    for name in TIER_1:
        for rule in sorted(PROFILES[name].rules - {"KI-05"}):
            twins = [pair for pair in PAIRS if pair[0] == rule]
            if (rule, name) not in shown and twins:
                found.append((rule, name, twins[0][2], twins[0][3]))
    return found


PAIRS += _missing()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("rule", "profile", "accepted", "refused"), PAIRS, ids=[f"{r}-{p}" for r, p, *_ in PAIRS]
)
async def test_we_08_each_enforced_rule_accepts_one_request_and_refuses_its_twin(
    emulator: Emulator, rule: str, profile: str, accepted: list[Any], refused: list[Any], stream: bool
) -> None:
    reply = await ask(emulator, profile, accepted, tools=TOOLS, stream=stream)
    if stream:
        await reply.close()
    with pytest.raises(openai.APIStatusError) as caught:
        await ask(emulator, profile, refused, tools=TOOLS, stream=stream)
    assert rule in emulator.requests()[-1].rules
    assert caught.value.status_code == (500 if rule == "LS-02" else 400)
    assert caught.value.body
    if profile == "vllm":
        assert caught.value.body["code"] == 400  # type: ignore[index]


def test_we_03_every_rule_of_a_profile_has_a_pair_somewhere() -> None:
    shown = {(rule, profile) for rule, profile, *_ in PAIRS} | {("KI-05", "kimi-selfhosted")}
    assert {(rule, name) for name in TIER_1 for rule in PROFILES[name].rules} == shown


@pytest.mark.parametrize("profile", [*TIER_1, "lenient"])
async def test_we_13_every_profile_answers_text_and_calls_whole_and_streamed(
    emulator: Emulator, profile: str
) -> None:
    model = ScriptedModel().calls(
        call("note", text="grüße 你好"), call("note", text="b"), thinking="let me see"
    )
    emulator.script(model.steps, then="last")
    whole = await ask(emulator, profile, [user()], tools=TOOLS)
    async with (
        client(emulator, profile) as sdk,
        sdk.chat.completions.stream(model="m", messages=[user()], tools=TOOLS) as events,
    ):
        streamed = await events.get_final_completion()
    for reply in (whole, streamed):
        message = reply.choices[0].message
        assert reply.choices[0].finish_reason == "tool_calls"
        assert [json.loads(c.function.arguments)["text"] for c in message.tool_calls] == ["grüße 你好", "b"]
        thinking = getattr(message, "reasoning_content", None)
        assert thinking == ("let me see" if PROFILES[profile].reasoning_field else None)
    assert whole.usage.total_tokens > 0
    expected = {"kimi": "functions.note:0", "kimi-selfhosted": "functions.note:0", "kimi-k3": "note:0"}
    first_id = whole.choices[0].message.tool_calls[0].id
    assert first_id == expected.get(profile, first_id) and (
        profile in expected or first_id.startswith("call_")
    )


async def test_we_13_usage_comes_last_with_empty_choices_when_asked(emulator: Emulator) -> None:
    chunks = await _chunks(emulator, stream_options={"include_usage": True})
    assert chunks[-1].choices == [] and chunks[-1].usage.total_tokens > 0
    assert len({chunk.id for chunk in chunks}) == 1


async def test_ki_05_a_foreign_id_is_answered_with_an_empty_turn(emulator: Emulator) -> None:
    emulator.script([{"text": "hello"}], then="last")
    native = await ask(emulator, "kimi-selfhosted", [user(), asked(NATIVE), result(NATIVE)])
    foreign = await ask(emulator, "kimi-selfhosted", [user(), asked("call_x"), result("call_x")])
    assert native.choices[0].message.content == "hello"
    assert foreign.choices[0].message.content == "" and foreign.choices[0].finish_reason == "stop"


async def test_we_05_wrong_key_unreadable_json_and_overflow_are_refused_in_order(emulator: Emulator) -> None:
    async with client(emulator, "openai", key="sk-bad") as sdk:
        with pytest.raises(openai.AuthenticationError):
            await sdk.chat.completions.create(model="m", messages=[user()])
    with pytest.raises(openai.BadRequestError) as caught:
        await ask(emulator, "llamacpp", [user("x" * 60_000)])
    assert caught.value.body["n_ctx"] == 8192  # type: ignore[index]
    assert emulator.requests()[0].rules == ["X-01"] and emulator.requests()[1].rules == ["X-06"]


@pytest.mark.parametrize(
    ("action", "error", "status"),
    [
        ({"auth": True}, openai.AuthenticationError, 401),
        ({"quota_as_400": True}, openai.BadRequestError, 400),
        ({"quota_as_429": True}, openai.RateLimitError, 429),
        ({"rate": 7}, openai.RateLimitError, 429),
        ({"overloaded": True}, openai.InternalServerError, 503),
        ({"moderation": True}, openai.BadRequestError, 400),
        ({"overflow_at": 1}, openai.BadRequestError, 400),
        ({"status": 400, "body": "empty"}, openai.BadRequestError, 400),
        ({"status": 502, "body": "html"}, openai.InternalServerError, 502),
        ({"status": 400, "body": "truncated_json"}, openai.BadRequestError, 400),
        ({"status": 400, "body": "sse_data"}, openai.BadRequestError, 400),
        ({"status": 500, "body": "nested_string", "message": "inner"}, openai.InternalServerError, 500),
        ({"status": 418, "raw": "teapot"}, openai.APIStatusError, 418),
    ],
)
async def test_we_19_a_planned_refusal_reaches_the_sdk_once(
    emulator: Emulator, action: dict[str, Any], error: type[openai.APIStatusError], status: int
) -> None:
    fault = emulator.fault(**action)
    with pytest.raises(error) as caught:
        await ask(emulator, "openai", [user()])
    assert caught.value.status_code == status and fault.fired == 1
    if "rate" in action:
        assert caught.value.response.headers["retry-after"] == "7"
    assert (await ask(emulator, "openai", [user()])).choices[0].message.content
    emulator.assert_fired()


async def test_we_19_ok_error_answers_200_without_choices(emulator: Emulator) -> None:
    emulator.fault(ok_error=True, message="upstream died")
    reply = await ask(emulator, "openai", [user()])
    assert reply.choices is None and reply.error["message"] == "upstream died"


async def test_we_19_flip_refuses_a_body_once_and_then_accepts_the_same_bytes(emulator: Emulator) -> None:
    once = emulator.fault(flip="once")
    with pytest.raises(openai.BadRequestError, match="Invalid upload request"):
        await ask(emulator, "openai", [user()])
    await ask(emulator, "openai", [user()])
    first, second = emulator.requests()
    assert first.body_sha == second.body_sha and once.fired == 1

    emulator.fault(flip="for_ever", status=400)
    for _ in range(2):
        with pytest.raises(openai.BadRequestError):
            await ask(emulator, "openai", [user("bad")])
    await ask(emulator, "openai", [user("other")])


async def _chunks(emulator: Emulator, **more: Any) -> list[Any]:
    async with client(emulator, "openai") as sdk:
        asked_for = {"model": "m", "messages": [user()], "stream": True, "tools": TOOLS, **more}
        stream = await sdk.chat.completions.create(**asked_for)
        return [chunk async for chunk in stream]


async def test_we_19_a_cut_stream_is_a_connection_error_and_the_fault_fired(emulator: Emulator) -> None:
    emulator.script([{"text": "grüße 你好, a long enough answer"}], then="last")
    for where in (3, {"bytes": 10}, {"inside": "character"}, {"inside": "line", "events": 2}):
        fault = emulator.fault(cut_at=where)
        with pytest.raises(openai.APIConnectionError):
            await _chunks(emulator)
        assert fault.fired == 1, where
        assert emulator.requests()[-1].bytes_sent > 0


async def test_we_19_missing_terminal_events_close_cleanly(emulator: Emulator) -> None:
    emulator.script([{"text": "abc"}], then="last")
    emulator.fault(no_done=True, no_finish=True)
    assert all(c.choices[0].finish_reason is None for c in await _chunks(emulator))
    emulator.fault(duplicate_final=True)
    assert sum(c.choices[0].finish_reason == "stop" for c in await _chunks(emulator)) == 2
    emulator.fault(finish="length")
    assert (await _chunks(emulator))[-1].choices[0].finish_reason == "length"
    emulator.fault(stream_error_at=2)
    with pytest.raises(openai.APIError, match="Provider returned error"):
        await _chunks(emulator)
    emulator.assert_fired()


async def test_we_19_a_delayed_and_a_stalled_stream_go_on_when_released(emulator: Emulator) -> None:
    for action in ({"delay_headers": None}, {"stall_at": {"events": 2, "seconds": None}}):
        fault = emulator.fault(**action)
        asking = asyncio.ensure_future(_chunks(emulator))
        await emulator.wait_until_held()
        assert not asking.done()
        emulator.release()
        assert len(await asking) > 2 and fault.fired == 1


async def _call_deltas(emulator: Emulator, **action: Any) -> list[dict[str, Any]]:
    fault = emulator.fault(**action)
    chunks = await _chunks(emulator)
    assert fault.fired == 1
    deltas = [d for c in chunks if c.choices for d in c.choices[0].delta.tool_calls or ()]
    return [d.model_dump(exclude_unset=True, warnings=False) for d in deltas]


async def test_we_19_the_knobs_of_calls_bend_deltas_as_named(emulator: Emulator) -> None:
    two = ScriptedModel().calls(call("note", text="first"), call("note", text="second"))
    emulator.script(two.steps, then="last")
    assert {d["index"] for d in await _call_deltas(emulator, index_mode="gap")} == {0, 2}
    assert {d["index"] for d in await _call_deltas(emulator, index_mode="all_zero")} == {0}
    assert all("index" not in d for d in await _call_deltas(emulator, index_mode="missing"))
    assert (await _call_deltas(emulator, index_mode="reverse"))[0]["index"] == 1
    paired = await _call_deltas(emulator, index_mode="two_in_one_chunk")
    assert [d["index"] for d in paired[:2]] == [0, 1]
    assert all(not d.get("id") for d in await _call_deltas(emulator, id_mode="missing"))
    assert {d["id"] for d in await _call_deltas(emulator, id_mode="empty_later")} >= {""}
    assert {d["id"] for d in await _call_deltas(emulator, id_mode="duplicate_in_batch") if d.get("id")} == {
        "call_same"
    }
    assert max(len(d.get("id") or "") for d in await _call_deltas(emulator, id_mode="long")) == 86
    repeated = await _call_deltas(emulator, name_mode="repeat_each_delta")
    assert all(d["function"]["name"] == "note" for d in repeated)
    cumulative = await _call_deltas(emulator, args_mode="cumulative")
    assert cumulative[-1]["function"]["arguments"] == '{"text": "second"}'
    objects = await _call_deltas(emulator, args_mode="object")
    assert {"text": "first"} in [d["function"].get("arguments") for d in objects]
    cut = await _call_deltas(emulator, truncate_args=5)
    joined = "".join(d["function"]["arguments"] for d in cut if d["index"] == 1)
    assert joined == '{"tex'


async def test_we_18_behaviours_echo_repeat_and_ask_many(emulator: Emulator) -> None:
    emulator.script(ScriptedModel().repeats().echoes().calls_many(3, "note", text="n{n}").steps)
    history = [user(), asked("a", arguments='{"text":"x"}'), result("a", "written 3 bytes")]
    again = (await ask(emulator, "openai", history)).choices[0].message.tool_calls
    assert again[0].function.arguments == '{"text":"x"}' and again[0].id != "a"
    assert (await ask(emulator, "openai", history)).choices[0].message.content == "written 3 bytes"
    many = (await ask(emulator, "openai", [user()])).choices[0].message.tool_calls
    assert [json.loads(c.function.arguments)["text"] for c in many] == ["n1", "n2", "n3"]


async def test_we_18_a_script_by_history_answers_a_repeated_request_the_same(emulator: Emulator) -> None:
    emulator.script([{"calls": [raw_call("note", "{}")]}, {"text": "two"}], by="history")
    for _ in range(2):
        assert (await ask(emulator, "openai", [user()])).choices[0].finish_reason == "tool_calls"
    reply = await ask(emulator, "openai", [user(), asked("a"), result("a")])
    assert reply.choices[0].message.content == "two"


async def test_we_19_a_fault_may_edit_the_incoming_request_so_that_the_real_rule_fires(
    emulator: Emulator,
) -> None:
    emulator.fault(tamper_request=[{"path": ["messages", 2], "remove": True}])
    with pytest.raises(openai.BadRequestError, match="did not have response messages"):
        await ask(emulator, "openai", [user(), asked("a"), result("a"), user()])
    emulator.fault(lenient=["OC-01"])
    await ask(emulator, "openai", [user(), asked("a")])
    emulator.assert_fired()


BUILT = [pair for pair in PAIRS if f"{pair[1]}/chat" in contracts.contract_ids()]


@pytest.mark.parametrize(
    ("rule", "profile", "accepted", "refused"), BUILT, ids=[f"{r}-{p}" for r, p, *_ in BUILT]
)
def test_we_20_the_validator_agrees_with_the_emulator_on_every_pair(
    rule: str, profile: str, accepted: list[Any], refused: list[Any]
) -> None:
    contract = contracts.resolve(f"{profile}/chat")
    request = {"model": "m", "tools": TOOLS, "messages": accepted}
    assert rules.refusing(rules.check(request, contract)) == []
    found = rules.refusing(rules.check({**request, "messages": refused}, contract))
    assert rule in {finding.rule for finding in found}
