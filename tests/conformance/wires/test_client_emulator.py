"""Our client and Chat wire against the strict emulator: every fault it can play, through real bytes."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest

from surefoot.core.history import AssistantWords, CallAsked, Message, ResultGiven, UserWords
from surefoot.errors import ProviderCredentials, ProviderError, ProviderRefused, ProviderUnreachable
from surefoot.providers import contracts
from surefoot.providers.chat import ChatWire
from surefoot.providers.client import Client
from surefoot.providers.diagnosis import next_wait
from surefoot.providers.endpoints import Endpoint, EndpointLimits
from surefoot.providers.port import ModelRequest, Reply, ToolSpec
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.model import ScriptedModel, call

TOOLS = (ToolSpec("note", "Note a text.", {"type": "object", "properties": {"text": {"type": "string"}}}),)
PROFILES = ["compat", "openai", "azure", "deepseek", "kimi", "llamacpp", "vllm", "ollama"]
ASK = UserWords("trn_1", "go")


@pytest.fixture
async def emulator() -> AsyncIterator[Emulator]:
    async with Emulator() as server:
        yield server


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with Client() as one:
        yield one


async def ask(
    emulator: Emulator,
    client: Client,
    *messages: Message,
    profile: str = "compat",
    key: str = "sk-t",
    **extra: Any,
) -> Reply:
    endpoint = Endpoint(
        "desk",
        emulator.base_url(profile),
        "chat",
        f"{profile}/chat",
        "m",
        key=lambda: key,
        limits=EndpointLimits(60, 60, 60, 90),
    )
    request = ModelRequest("m", "be brief", messages or (ASK,), TOOLS, **extra)
    return await client.send(endpoint, ChatWire(), contracts.resolve(endpoint.contract), request)


def stored(reply: Reply, n: int) -> tuple[Message, ...]:
    """A reply and made-up results, as the history would hold them."""
    asked = tuple(
        CallAsked(f"cal_{n}_{p}", f"att_{n}_{p}", p, one.name, one.arguments or "", one.provider_call_id)
        for p, one in enumerate(reply.calls)
    )
    return (
        AssistantWords(n, reply.text, asked, "chat", reply.raw),
        *(ResultGiven(one, "ok", False) for one in asked),
    )


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("profile", PROFILES)
async def test_we_27_a_long_healthy_session_is_accepted_and_its_prefix_never_changes(
    emulator: Emulator, client: Client, profile: str, stream: bool
) -> None:
    script = ScriptedModel()
    for n in range(3):
        script.calls(call("note", text=f"a{n}"), call("note", text=f"b{n}"), thinking=f"hm {n}")
        script.says("done", thinking="so")
    emulator.script(script.steps)
    history: tuple[Message, ...] = ()
    for n in range(3):
        history += (UserWords(f"trn_{n}", f"go {n}"),)
        for step in range(2):
            reply = await ask(emulator, client, *history, profile=profile, stream=stream)
            history += stored(reply, n * 2 + step)
        assert reply.text == "done"
    entries = emulator.requests()
    assert [entry.status for entry in entries] == [200] * 6
    for before, after in itertools.pairwise(entries):
        assert after.message_shas[: len(before.message_shas)] == before.message_shas


KNOBS: list[tuple[dict[str, Any], list[str]]] = [
    ({"index_mode": "gap"}, ["first", "second"]),
    ({"index_mode": "missing"}, ["first", "second"]),
    ({"index_mode": "all_zero"}, ["first", "second"]),
    ({"index_mode": "two_in_one_chunk"}, ["first", "second"]),
    ({"index_mode": "reverse"}, ["second", "first"]),
    ({"id_mode": "missing"}, ["first", "second"]),
    ({"id_mode": "empty_later"}, ["first", "second"]),
    ({"id_mode": "null_later"}, ["first", "second"]),
    ({"id_mode": "duplicate_in_batch"}, ["first", "second"]),
    ({"id_mode": "long"}, ["first", "second"]),
    ({"id_mode": "bad_chars"}, ["first", "second"]),
    ({"name_mode": "repeat_each_delta"}, ["first", "second"]),
    ({"args_mode": "object"}, ["first", "second"]),
    ({"duplicate_final": True}, ["first", "second"]),
    ({"finish": "stop"}, ["first", "second"]),
    ({"no_done": True}, ["first", "second"]),
]


@pytest.mark.parametrize(("knob", "texts"), KNOBS, ids=[str(knob) for knob, _ in KNOBS])
async def test_pr_72_bent_calls_are_read_whole_and_can_be_replayed(
    emulator: Emulator, client: Client, knob: dict[str, Any], texts: list[str]
) -> None:
    emulator.script(
        ScriptedModel().calls(call("note", text="first"), call("note", text="second")).says("end").steps
    )
    emulator.fault(**knob)
    reply = await ask(emulator, client, profile="openai")
    assert [f'{{"text":"{text}"}}' for text in texts] == [
        (one.arguments or "").replace(" ", "") for one in reply.calls
    ]
    assert [one.name for one in reply.calls] == ["note", "note"]
    assert not any(one.cut for one in reply.calls)
    again = await ask(emulator, client, ASK, *stored(reply, 1), profile="openai")
    assert again.text == "end"
    emulator.assert_fired()


@pytest.mark.parametrize("finish", ["length", "tool_calls", "stop"])
async def test_we_28_truncated_arguments_are_cut_whatever_finish_says(
    emulator: Emulator, client: Client, finish: str
) -> None:
    emulator.script(ScriptedModel().calls(call("note", text="first")).says("end").steps)
    emulator.fault(truncate_args=5, finish=finish)
    reply = await ask(emulator, client, profile="llamacpp")
    assert [one.cut for one in reply.calls] == [True]
    assert (await ask(emulator, client, ASK, *stored(reply, 1), profile="llamacpp")).text == "end"
    emulator.assert_fired()


@pytest.mark.parametrize(
    "knob",
    [
        {"cut_at": 3},
        {"cut_at": {"inside": "character"}},
        {"cut_at": {"inside": "line", "events": 2}},
        {"no_finish": True},
        {"no_finish": True, "no_done": True},
        {"stream_error_at": 2},
        {"finish": "error"},
    ],
    ids=str,
)
async def test_pr_72_a_broken_stream_is_no_reply_and_one_request(
    emulator: Emulator, client: Client, knob: dict[str, Any]
) -> None:
    emulator.script([{"text": "grüße 你好, a long enough answer"}], then="last")
    emulator.fault(**knob)
    with pytest.raises(ProviderUnreachable) as caught:
        await ask(emulator, client)
    assert caught.value.facts["transient"]
    assert len(emulator.requests()) == 1
    emulator.assert_fired()


@pytest.mark.parametrize(
    ("knob", "error", "kind", "waits"),
    [
        ({"auth": True}, ProviderCredentials, "auth", False),
        ({"quota_as_400": True}, ProviderCredentials, "quota", False),
        ({"quota_as_429": True}, ProviderCredentials, "quota", False),
        ({"rate": 7}, ProviderRefused, "rate", True),
        ({"overloaded": True}, ProviderUnreachable, "transient", True),
        ({"moderation": True}, ProviderRefused, "policy", False),
        ({"overflow_at": 1}, ProviderRefused, "context_overflow", False),
        ({"status": 400, "body": "empty"}, ProviderRefused, "upstream_reason_missing", False),
        ({"status": 400, "body": "model_only"}, ProviderRefused, "upstream_reason_missing", False),
        ({"status": 400, "body": "empty_object"}, ProviderRefused, "upstream_reason_unrecognised", False),
        ({"status": 502, "body": "html"}, ProviderUnreachable, "transient", True),
        ({"finish": "content_filter"}, ProviderRefused, "policy", False),
    ],
    ids=str,
)
async def test_pr_10_each_refusal_gets_its_kind_and_no_second_request(
    emulator: Emulator,
    client: Client,
    knob: dict[str, Any],
    error: type[ProviderError],
    kind: str,
    waits: bool,
) -> None:
    emulator.fault(**knob)
    with pytest.raises(error) as caught:
        await ask(emulator, client)
    assert caught.value.facts["kind"] == kind
    assert (next_wait(1, caught.value.facts) is not None) is waits
    assert len(emulator.requests()) == 1
    emulator.assert_fired()


async def test_we_30_hostile_trace_ids_never_appear(emulator: Emulator, client: Client) -> None:
    emulator.fault(status=400, body="empty", headers={"x-request-id": "a b <script>" + "x" * 4000})
    with pytest.raises(ProviderRefused) as caught:
        await ask(emulator, client)
    assert caught.value.facts["trace_id"] is None


async def test_we_32_a_redirect_is_followed_by_no_request(emulator: Emulator, client: Client) -> None:
    emulator.fault(
        status=307, body="empty", headers={"location": emulator.base_url("openai") + "/chat/completions"}
    )
    with pytest.raises(ProviderRefused):
        await ask(emulator, client)
    assert len(emulator.requests()) == 1
