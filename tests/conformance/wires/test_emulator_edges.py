"""Where two things meet in the emulator: a refusal and its form, a router and what stands behind it, two faults."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import httpx2
import openai
import pydantic
import pytest
from anthropic.types.shared import ErrorObject

from surefoot.testing.emulator.server import Emulator

ASKED = [{"role": "user", "content": "go"}]
TOOLS = [{"type": "function", "function": {"name": "note", "parameters": {"type": "object"}}}]
BODIES: dict[str, dict[str, Any]] = {
    "/openai/v1/chat/completions": {"model": "m", "messages": ASKED},
    "/openai/v1/responses": {"model": "m", "input": ASKED},
    "/anthropic/v1/messages": {"model": "m", "max_tokens": 9, "messages": ASKED},
}


@pytest.fixture
async def emulator() -> AsyncIterator[Emulator]:
    async with Emulator(body_bytes=100_000) as running:
        yield running


@pytest.fixture
async def client(emulator: Emulator) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=emulator.url, timeout=90) as speaking:
        yield speaking


async def test_we_5_a_body_far_over_the_limit_gets_the_413_of_its_endpoint_and_stands_in_the_log(
    emulator: Emulator,
) -> None:
    long = [{"role": "user", "content": "x" * 8_000_000}]
    chat = openai.AsyncOpenAI(base_url=emulator.base_url("deepseek"), api_key="k", max_retries=0)
    with pytest.raises(openai.APIStatusError) as told:
        await chat.chat.completions.create(model="m", messages=long)  # type: ignore[arg-type]
    assert (told.value.status_code, told.value.response.headers["x-ds-trace-id"]) == (413, "req_000001")
    await chat.close()
    url = emulator.base_url("anthropic", wire="anthropic")
    messages = anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0)
    with pytest.raises(anthropic.APIStatusError) as refused:
        await messages.messages.create(model="m", max_tokens=9, messages=long)  # type: ignore[arg-type]
    await messages.close()
    body: Any = refused.value.body
    assert (refused.value.status_code, body["error"]["type"]) == (413, "request_too_large")
    assert body["request_id"] == refused.value.request_id
    assert [(entry.status, entry.done) for entry in emulator.requests()] == [(413, True)] * 2


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 409, 422, 429, 500, 502, 503, 504, 529])
async def test_we_12_any_status_has_an_error_type_that_the_anthropic_sdk_knows(
    status: int, emulator: Emulator, client: httpx2.AsyncClient
) -> None:
    emulator.fault(status=status)
    answer = await client.post("/anthropic/v1/messages", json=BODIES["/anthropic/v1/messages"])
    told = answer.json()
    pydantic.TypeAdapter(ErrorObject).validate_python(told["error"])
    assert told["request_id"] == answer.headers["request-id"]


async def test_we_3_the_list_of_models_has_every_key_the_sdk_types_need(
    emulator: Emulator, client: httpx2.AsyncClient
) -> None:
    for profile, header in (("openai", "x-request-id"), ("anthropic", "request-id")):
        answer = await client.get(f"/{profile}/v1/models")
        listed = answer.json()["data"][0]
        openai.types.Model.model_validate(listed)
        anthropic.types.ModelInfo.model_validate(listed)
        assert answer.headers[header]
        bad = await client.get(f"/{profile}/v1/models", headers={"authorization": "Bearer sk-bad"})
        assert bad.status_code == 401


async def test_we_5_a_bad_key_is_refused_in_the_header_azure_has_for_it(client: httpx2.AsyncClient) -> None:
    body = BODIES["/openai/v1/chat/completions"]
    answer = await client.post("/azure/v1/chat/completions", json=body, headers={"api-key": "sk-bad"})
    assert answer.status_code == 401


@pytest.mark.parametrize("content", [5, {"a": 1}, [5], [{"text": "x"}]], ids=str)
@pytest.mark.parametrize("path", BODIES)
async def test_we_5_content_that_is_neither_text_nor_parts_is_refused_on_every_wire(
    path: str, content: Any, client: httpx2.AsyncClient
) -> None:
    body = json.loads(json.dumps(BODIES[path]))
    next(iter(body[key] for key in ("messages", "input") if key in body))[0]["content"] = content
    assert (await client.post(path, json=body)).status_code == 400


@pytest.mark.parametrize("upstream", ["mistral", "gemini", "kimi-selfhosted", "kimi", "deepseek", "minimax"])
@pytest.mark.parametrize("router", ["openrouter", "litellm"])
async def test_we_8_a_router_passes_on_ids_and_signatures_that_its_upstream_takes_back(
    router: str, upstream: str, emulator: Emulator, client: httpx2.AsyncClient
) -> None:
    emulator.set_knobs(router, upstream=upstream)
    emulator.script([{"thinking": "hm", "calls": [{"name": "note"}]}, {"text": "done"}])
    path, body = f"/{router}/v1/chat/completions", {"model": "m", "messages": ASKED, "tools": TOOLS}
    said = (await client.post(path, json=body)).json()["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "noted"}
    answer = (await client.post(path, json={**body, "messages": [*ASKED, said, result]})).json()
    assert answer["choices"][0]["message"]["content"] == "done"


async def test_we_8_a_router_refuses_what_does_not_fit_its_upstream_in_the_words_of_that(
    emulator: Emulator, client: httpx2.AsyncClient
) -> None:
    emulator.set_knobs("openrouter", upstream="llamacpp")
    body = {"model": "m", "messages": [{"role": "user", "content": "x " * 20_000}]}
    error = (await client.post("/openrouter/v1/chat/completions", json=body)).json()["error"]
    assert json.loads(error["metadata"]["raw"])["error"]["type"] == "exceed_context_size_error"


async def test_we_19_a_header_of_a_fault_takes_the_place_of_the_usual_one(
    emulator: Emulator, client: httpx2.AsyncClient
) -> None:
    emulator.fault(status=400, headers={"X-Request-Id": "mine", "Content-Type": "application/octet-stream"})
    path = "/openai/v1/chat/completions"
    headers = (await client.post(path, json=BODIES[path])).headers
    assert headers.get_list("x-request-id") == ["mine"]
    assert headers.get_list("content-type") == ["application/octet-stream"]


@pytest.mark.parametrize("path", BODIES)
async def test_we_19_an_overflow_waits_for_a_request_that_is_too_long(
    path: str, emulator: Emulator, client: httpx2.AsyncClient
) -> None:
    fault = emulator.fault(overflow_at=100)
    body = json.loads(json.dumps(BODIES[path]))
    assert (await client.post(path, json=body)).status_code == 200
    assert (fault.fired, fault.count) == (0, 1)
    next(iter(body[key] for key in ("messages", "input") if key in body))[0]["content"] = "x" * 1000
    assert (await client.post(path, json=body)).status_code == 400
    assert fault.fired == 1


@pytest.mark.parametrize("knob", ["auth", "rate", "overloaded", "moderation", "quota_as_400"])
@pytest.mark.parametrize("path", BODIES)
async def test_we_19_a_refusal_planned_behind_the_reply_refuses_after_the_script_went_on(
    path: str, knob: str, emulator: Emulator, client: httpx2.AsyncClient
) -> None:
    emulator.script([{"text": "lost"}, {"text": "kept"}])
    fault = emulator.fault(stage="reply", **{knob: True})
    assert (await client.post(path, json=BODIES[path])).status_code >= 400
    assert fault.fired == 1
    assert "kept" in (await client.post(path, json=BODIES[path])).text


@pytest.mark.parametrize("path", BODIES)
async def test_we_19_what_lies_behind_the_end_of_a_reply_does_not_count_as_fired(
    path: str, emulator: Emulator, client: httpx2.AsyncClient
) -> None:
    emulator.script([{"calls": [{"name": "note", "args": {"a": 1}}]}], then="last")
    streamed = {**BODIES[path], "stream": True}
    late = emulator.fault(stream_error_at=10_000)
    text = (await client.post(path, json=streamed)).text
    assert "event: error" not in text and '"error":{' not in text
    long = emulator.fault(truncate_args=10_000)
    await client.post(path, json=streamed)
    cut = emulator.fault(stage="refusal", cut_at={"bytes": 1_000_000})
    assert (await client.post(path, json={**BODIES[path], "model": ""})).status_code == 400
    assert (late.fired, long.fired, cut.fired) == (0, 0, 0)


async def test_we_7_the_log_names_every_fault_that_a_request_met(
    emulator: Emulator, client: httpx2.AsyncClient
) -> None:
    history = [*ASKED, {"role": "assistant", "content": "x"}, *ASKED]
    emulator.fault(tamper_request=[{"path": ["messages", 1], "value": {"role": "tool", "content": "x"}}])
    emulator.fault(gateway=502)
    path = "/openai/v1/chat/completions"
    answer = await client.post(path, json={"model": "m", "messages": history})
    assert answer.status_code == 502
    met = (await client.get("/_ctl/log")).json()[0]["faults"]
    assert [next(iter(action)) for action in met] == ["tamper_request", "gateway"]
    emulator.assert_fired()
