"""Gemini's own wire, emulated, judged by the unmodified official SDK: each rule, signatures, streams, faults."""

from __future__ import annotations

import base64
import itertools
import json
import ssl
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from google import genai
from google.genai import errors, types

from surefoot.providers import contracts
from surefoot.providers.projection import WIRES as SPOKEN
from surefoot.testing.emulator import gemini_rules
from surefoot.testing.emulator.issuing import DUMMY_SIGNATURE
from surefoot.testing.emulator.profiles import GEMINI
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.model import call

MODEL = "gemini-3-scripted"
CERTIFICATES = ssl.create_default_context()
"""Read once; reading them for every client of the SDK takes longer than a request."""
NOTE = types.FunctionDeclaration(name="note", parameters_json_schema={"type": "object"})
SETTINGS: dict[str, Any] = {
    "tools": [types.Tool(function_declarations=[NOTE])],
    "automatic_function_calling": types.AutomaticFunctionCallingConfig(disable=True),
}
BOTH = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
Contents = list[types.Content]


@pytest.fixture
async def emulator() -> AsyncIterator[Emulator]:
    async with Emulator() as server:
        yield server


@pytest.fixture
async def sdk(emulator: Emulator) -> AsyncIterator[genai.Client]:
    with httpx2.Client(verify=CERTIFICATES) as plain:
        async with httpx2.AsyncClient(verify=CERTIFICATES, timeout=90) as http:
            yield client(emulator, plain, http)


def client(emulator: Emulator, plain: Any, http: Any, key: str = "a-key") -> genai.Client:
    options = types.HttpOptions(
        base_url=emulator.base_url("gemini", wire="gemini"),
        api_version="v1beta",
        httpx_client=plain,
        httpx_async_client=http,
        retry_options=types.HttpRetryOptions(attempts=1),
    )
    return genai.Client(api_key=key, http_options=options)


async def ask(sdk: genai.Client, contents: Contents, *, stream: bool = False, **more: Any) -> list[Any]:
    """The reply in one piece, or its chunks."""
    settings = types.GenerateContentConfig(**SETTINGS, **more)
    asked: Any = {"model": MODEL, "contents": contents, "config": settings}
    if not stream:
        return [await sdk.aio.models.generate_content(**asked)]
    return [chunk async for chunk in await sdk.aio.models.generate_content_stream(**asked)]


def parts_of(replies: list[Any]) -> list[types.Part]:
    return [part for reply in replies for part in reply.candidates[0].content.parts]


def user(*parts: types.Part | str) -> types.Content:
    said = [types.Part(text=part) if isinstance(part, str) else part for part in parts or ("go",)]
    return types.Content(role="user", parts=said)


def model(*parts: types.Part) -> types.Content:
    return types.Content(role="model", parts=list(parts))


def text(said: str = "x") -> types.Part:
    return types.Part(text=said)


def asked(identity: str | None = None, signature: str | bytes | None = DUMMY_SIGNATURE) -> types.Part:
    raw = signature.encode() if isinstance(signature, str) else signature
    return types.Part(
        function_call=types.FunctionCall(id=identity, name="note", args={}), thought_signature=raw
    )


def answer(identity: str | None = None, **response: Any) -> types.Part:
    given = response or {"output": "ok"}
    return types.Part(function_response=types.FunctionResponse(id=identity, name="note", response=given))


LATER = asked("b", None)
"""Only the first call of a step is signed."""
GOOD = [user(), model(asked("a"), LATER), user(answer("a"), answer("b"))]
CALL_AFTER = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response "
    "turn."
)
RESPONSE_AFTER = "Please ensure that function response turn comes immediately after a function call turn."
AS_MANY = (
    "Please ensure that the number of function response parts is equal to the number of function call parts "
    "of the function call turn."
)
MISSING = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
    "correctly. Additional data, function call 'default_api:note' , position 2."
)
EMPTY_FIELD = "Invalid function_response.response: field `output` has an empty value"
STEP_TWO = [*GOOD, model(asked("c")), user(answer("c"))]
PAIRS: list[tuple[str, Contents, Contents, str]] = [
    ("GE-01", GOOD, [user(), model(asked(signature=None)), user(answer())], MISSING),
    (
        "GE-01",
        STEP_TWO,
        [*GOOD, model(asked("c", None)), user(answer("c"))],
        MISSING.replace("position 2", "position 4"),
    ),
    (
        "GE-01",
        [user(), model(asked(signature=None)), user(answer()), model(text()), user("a new turn")],
        [user("an old turn"), model(text()), user(), model(asked(signature=None)), user(answer())],
        MISSING.replace("position 2", "position 4"),
    ),
    (
        "GE-02",
        GOOD,
        [user(), model(asked(signature="of another service")), user(answer())],
        "Corrupted thought signature.",
    ),
    ("GE-03", GOOD, [model(asked()), user(answer())], CALL_AFTER),
    ("GE-03", [user(), model(text()), *GOOD], [user(), model(text()), *GOOD[1:]], CALL_AFTER),
    ("GE-04", GOOD, [user(answer())], RESPONSE_AFTER),
    ("GE-04", STEP_TWO, [*GOOD, user(answer("a"))], RESPONSE_AFTER),
    ("GE-04", GOOD, [user(), model(asked("a")), user(answer("zz"))], RESPONSE_AFTER),
    ("GE-04", GOOD, [user(), model(asked("a"), LATER), user(answer("a"))], AS_MANY),
    ("GE-04", GOOD, [user(), model(asked("a"), LATER), user(answer("a")), user(answer("b"))], AS_MANY),
    ("GE-04", GOOD, [user(), model(asked("a"), LATER), user(answer("a"), answer("a"))], AS_MANY),
    ("GE-04", GOOD, [user(), model(asked("a")), user("never mind")], AS_MANY),
    ("GE-04", GOOD, [user(), model(asked("a"))], AS_MANY),
    (
        "GE-05",
        [user(), model(asked()), user(answer(output="(no output)"))],
        [user(), model(asked()), user(answer(output=""))],
        EMPTY_FIELD,
    ),
    (
        "GE-05",
        GOOD,
        [user(), types.Content(role="model", parts=[]), user()],
        "* GenerateContentRequest.contents[1].parts: contents.parts must not be empty.",
    ),
]


@BOTH
@pytest.mark.parametrize(
    ("rule", "accepted", "refused", "words"), PAIRS, ids=[f"{r}-{n}" for n, (r, *_) in enumerate(PAIRS)]
)
async def test_we_11_we_20_each_gemini_rule_accepts_one_request_and_refuses_its_twin(
    emulator: Emulator,
    sdk: genai.Client,
    rule: str,
    accepted: Contents,
    refused: Contents,
    words: str,
    stream: bool,
) -> None:
    await ask(sdk, accepted, stream=stream)
    with pytest.raises(errors.ClientError) as caught:
        await ask(sdk, refused, stream=stream)
    assert emulator.requests()[-1].rules == [rule]
    assert (caught.value.code, caught.value.status) == (400, "INVALID_ARGUMENT")
    assert caught.value.message == words
    assert caught.value.details == {"error": {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}}


def test_we_11_every_rule_of_the_gemini_wire_has_a_pair() -> None:
    assert {rule for rule, *_ in PAIRS} == GEMINI["gemini"].rules


def test_wc_10_only_the_emulator_knows_the_wires_of_tier_three() -> None:
    assert not {"gemini/gemini", "bedrock/converse"} & set(contracts.contract_ids())
    assert not {"gemini", "converse"} & set(SPOKEN)


@BOTH
async def test_we_11_a_whole_tool_conversation_goes_through_as_the_sdk_holds_it(
    emulator: Emulator, sdk: genai.Client, stream: bool
) -> None:
    emulator.script(
        [
            {"thinking": "hm", "text": "grüße", "calls": [call("note", text="a"), call("note", text="ß")]},
            {"calls": [call("note", text="c")]},
            {"behaviour": "echo_results", "thinking": "so", "text": "It says: "},
            {"text": "Fine."},
        ],
        by="history",
    )
    history = [user()]
    for wanted in (2, 1):
        said = parts_of(await ask(sdk, history, stream=stream))
        calls = [part for part in said if part.function_call]
        assert len(calls) == wanted and calls[0].thought_signature
        assert all(part.thought_signature is None for part in calls[1:])
        history.append(model(*said))
        history.append(user(*(answer(part.function_call.id) for part in calls)))  # type: ignore[union-attr]
    assert history[1].parts[-1].function_call.args == {"text": "ß"}  # type: ignore[union-attr,index]
    last = parts_of(await ask(sdk, history, stream=stream))
    assert "".join(part.text or "" for part in last) == "It says: ok" and last[-1].thought_signature
    await ask(sdk, [*history, model(*last), user("thanks")], stream=stream)
    requests = emulator.requests()
    assert [entry.status for entry in requests] == [200] * 4
    assert [len(entry.message_shas) for entry in requests] == [1, 3, 5, 7]
    for before, after in itertools.pairwise(requests):
        assert after.message_shas[: len(before.message_shas)] == before.message_shas


async def issued(sdk: genai.Client, emulator: Emulator, **fault: Any) -> Contents:
    """A tool loop whose signature the emulator made, ready to be sent again."""
    emulator.script([{"calls": [call("note")]}], then="last")
    planned = emulator.fault(**fault) if fault else None
    said = parts_of(await ask(sdk, [user()]))
    assert planned is None or planned.fired == 1
    return [user(), model(*said), user(answer(said[0].function_call.id))]  # type: ignore[union-attr]


async def refusal(sdk: genai.Client, contents: Contents) -> str:
    with pytest.raises(errors.ClientError) as caught:
        await ask(sdk, contents)
    return str(caught.value.message)


async def test_ge_02_an_issued_signature_returns_unchanged_or_is_refused(
    emulator: Emulator, sdk: genai.Client
) -> None:
    whole = await issued(sdk, emulator)
    await ask(sdk, whole)
    part = whole[1].parts[0]  # type: ignore[index]
    signature = part.thought_signature or b""
    for changed in (signature[:-3], signature[:10] + b"x" + signature[11:], b"x" + signature):
        part.thought_signature = changed
        assert await refusal(sdk, whole) == "Corrupted thought signature."
        assert emulator.requests()[-1].rules == ["GE-02"]
    part.thought_signature = DUMMY_SIGNATURE.encode()
    await ask(sdk, whole)


async def test_ge_02_a_signature_returns_in_the_alphabet_it_came_in_or_in_the_other(
    emulator: Emulator,
) -> None:
    signature = next(s for s in (gemini_rules.issue(f"m{n}") for n in range(1000)) if {"+", "/"} <= set(s))
    call_part = {"functionCall": {"name": "note"}, "thoughtSignature": signature}
    back = {"functionResponse": {"name": "note", "response": {"output": "ok"}}}
    said = {
        "contents": [{"parts": [{"text": "go"}]}, {"role": "model", "parts": [call_part]}, {"parts": [back]}]
    }
    async with httpx2.AsyncClient(base_url=emulator.base_url("gemini", wire="gemini"), timeout=90) as http:
        for spelled in (signature, signature.replace("+", "-").replace("/", "_")):
            call_part["thoughtSignature"] = spelled
            assert (await http.post("/v1beta/models/m:generateContent", json=said)).status_code == 200
        base64.b64decode(signature, validate=True)


async def test_ge_02_a_signature_of_another_backend_is_not_valid(
    emulator: Emulator, sdk: genai.Client
) -> None:
    whole = await issued(sdk, emulator, signature_mode="foreign_account")
    assert await refusal(sdk, whole) == "Thought signature is not valid"
    whole = await issued(sdk, emulator, signature_mode="corrupt_one_byte")
    assert await refusal(sdk, whole) == "Corrupted thought signature."


async def test_we_19_an_incident_refuses_valid_signatures_count_times_and_nothing_else(
    emulator: Emulator, sdk: genai.Client
) -> None:
    whole = await issued(sdk, emulator)
    emulator.fault(signature_mode="expired_incident", count=2)
    await ask(sdk, [user()])
    assert [await refusal(sdk, whole) for _ in range(2)] == ["Thought signature is not valid"] * 2
    await ask(sdk, whole)
    emulator.assert_fired()


async def test_we_19_lost_signatures_and_tampered_requests_meet_the_real_rule(
    emulator: Emulator, sdk: genai.Client
) -> None:
    for mode in ("omit", "unsigned", "blank"):
        whole = await issued(sdk, emulator, reasoning_mode=mode)
        assert await refusal(sdk, whole) == MISSING
    whole = await issued(sdk, emulator)
    lose = [{"path": ["contents", 2, "parts", 0], "remove": True}]
    emulator.fault(tamper_request=lose)
    assert "must not be empty" in await refusal(sdk, whole)
    emulator.fault(lenient=["GE-01"])
    whole[1].parts[0].thought_signature = None  # type: ignore[index]
    await ask(sdk, whole)
    emulator.assert_fired()


async def test_we_16_a_stream_shows_each_call_whole_and_signs_a_text_in_a_last_empty_part(
    emulator: Emulator, sdk: genai.Client
) -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    step = {
        "thinking": "hm hm",
        "text": "grüße 你好",
        "calls": [call("note", text="a"), call("note", text="b")],
    }
    emulator.script([step, {"thinking": "hm", "text": "done", "usage": usage}, {"text": "plain"}])
    chunks = await ask(sdk, [user()], stream=True)
    each = [reply.candidates[0].content.parts for reply in chunks]
    assert all(len(parts) == 1 for parts in each)
    assert "".join(parts[0].text or "" for parts in each) == "grüße 你好"
    calls = [parts[0].function_call for parts in each if parts[0].function_call]
    assert [one.args for one in calls] == [{"text": "a"}, {"text": "b"}]
    assert len({one.id for one in calls}) == 2 and all(len(one.id) == 8 for one in calls)
    reasons = [reply.candidates[0].finish_reason for reply in chunks]
    assert reasons == [None] * (len(chunks) - 1) + [types.FinishReason.STOP]
    assert {reply.model_version for reply in chunks} == {MODEL} and len({r.response_id for r in chunks}) == 1

    chunks = await ask(sdk, [user()], stream=True)
    last = chunks[-1].candidates[0].content.parts
    assert len(last) == 1 and last[0].text == "" and last[0].thought_signature
    told = chunks[-1].usage_metadata
    assert (told.prompt_token_count, told.candidates_token_count, told.total_token_count) == (7, 5, 12)
    assert not any(part.thought_signature for part in parts_of(await ask(sdk, [user()], stream=True)))


@BOTH
async def test_we_16_thoughts_are_shown_to_whoever_asked_for_them(
    emulator: Emulator, sdk: genai.Client, stream: bool
) -> None:
    emulator.script([{"thinking": "hm hm hm", "text": "x"}], then="last")
    shown = types.ThinkingConfig(include_thoughts=True)
    said = parts_of(await ask(sdk, [user()], stream=stream, thinking_config=shown))
    assert "".join(part.text or "" for part in said if part.thought) == "hm hm hm"
    assert not any(part.thought for part in parts_of(await ask(sdk, [user()], stream=stream)))


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("stop", "STOP"),
        ("tool_calls", "STOP"),
        ("length", "MAX_TOKENS"),
        ("content_filter", "SAFETY"),
        ("refusal", "PROHIBITED_CONTENT"),
        ("MALFORMED_FUNCTION_CALL", "MALFORMED_FUNCTION_CALL"),
        (None, None),
    ],
)
async def test_we_19_finish_speaks_the_words_of_the_wire(
    emulator: Emulator, sdk: genai.Client, given: str | None, shown: str | None
) -> None:
    for stream in (False, True):
        emulator.fault(finish=given)
        told = (await ask(sdk, [user()], stream=stream))[-1].candidates[0].finish_reason
        assert (told and told.value) == shown
    emulator.script([{"text": "x", "finish": "length"}])
    assert (await ask(sdk, [user()]))[0].candidates[0].finish_reason == types.FinishReason.MAX_TOKENS
    emulator.assert_fired()


@pytest.mark.parametrize(
    ("action", "code", "status", "words"),
    [
        ({"auth": True}, 401, "UNAUTHENTICATED", "Incorrect API key"),
        ({"quota_as_429": True}, 429, "RESOURCE_EXHAUSTED", "quota"),
        ({"rate": 7}, 429, "RESOURCE_EXHAUSTED", "Rate limit"),
        ({"overloaded": True}, 503, "UNAVAILABLE", "overloaded"),
        ({"overflow_at": 1}, 400, "INVALID_ARGUMENT", "exceeds the maximum number of tokens allowed (1)"),
        ({"status": 500}, 500, "INTERNAL", "Something went wrong."),
    ],
)
async def test_we_12_planned_refusals_have_the_form_of_the_wire(
    emulator: Emulator, sdk: genai.Client, action: dict[str, Any], code: int, status: str, words: str
) -> None:
    emulator.fault(**action)
    with pytest.raises(errors.APIError) as caught:
        await ask(sdk, [user()], stream=True)
    assert (caught.value.code, caught.value.status) == (code, status)
    assert words in str(caught.value.message)
    emulator.assert_fired()


async def test_we_05_a_wrong_key_an_unknown_profile_and_a_full_window(emulator: Emulator) -> None:
    said = {"contents": [{"parts": [{"text": "x"}]}]}
    async with httpx2.AsyncClient(base_url=emulator.url, timeout=90) as http:
        path = "/gemini/v1beta/models/m:generateContent"
        for wrong in ({"headers": {"x-goog-api-key": "sk-bad"}}, {"params": {"key": "sk-bad"}}):
            answered = await http.post(path, json=said, **wrong)  # type: ignore[arg-type]
            assert answered.status_code == 401 and answered.json()["error"]["status"] == "UNAUTHENTICATED"
        right = await http.post(
            path, json=said, params={"key": "a-secret"}, headers={"x-goog-api-key": "a-secret"}
        )
        assert right.status_code == 200 and "a-secret" not in json.dumps(emulator.requests()[-1].to_json())
        unknown = await http.post("/openai/v1beta/models/m:generateContent", json=said)
        assert unknown.status_code == 404 and unknown.json()["error"]["status"] == "NOT_FOUND"
        wrong_method = await http.get(path)
        assert (wrong_method.status_code, wrong_method.headers["allow"]) == (405, "POST")
        long = {"contents": [{"parts": [{"text": "x" * 4_200_000}]}]}
        answered = await http.post(path, json=long)
        assert answered.status_code == 400 and "exceeds the maximum" in answered.json()["error"]["message"]
        assert emulator.requests()[-1].rules == ["X-06"]


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        ([], "contents is not specified"),
        (None, "contents is not specified"),
        ([1], "contents[0]"),
        ([{"role": "assistant", "parts": [{"text": "x"}]}], "valid role: user, model"),
        ([{"parts": [{}]}], "required oneof field 'data'"),
        ([{"parts": [{"text": "x", "functionCall": {"name": "a"}}]}], "required oneof field 'data'"),
        ([{"parts": [{"functionCall": {}}]}], "Name cannot be empty"),
        (
            [{"parts": [{"functionResponse": {"name": "a", "response": "text"}}]}],
            "function_response.response",
        ),
        ([{"parts": [{"functionCall": {"name": "a", "args": "{}"}}]}], "function_call.args"),
    ],
)
async def test_we_05_what_cannot_be_read_is_refused_before_its_history(
    emulator: Emulator, contents: Any, words: str
) -> None:
    async with httpx2.AsyncClient(base_url=emulator.base_url("gemini", wire="gemini"), timeout=90) as http:
        answered = await http.post("/v1beta/models/m:generateContent", json={"contents": contents})
    assert answered.status_code == 400 and words in answered.json()["error"]["message"]
    assert emulator.requests()[-1].rules == ["schema"]


async def test_we_03_both_spellings_both_versions_and_a_stream_that_is_a_list(emulator: Emulator) -> None:
    given = base64.b64encode(DUMMY_SIGNATURE.encode()).decode()
    history = [
        {"parts": [{"text": "go"}]},
        {"role": "model", "parts": [{"function_call": {"name": "note"}, "thought_signature": given}]},
        {
            "role": "function",
            "parts": [{"function_response": {"name": "note", "response": {"output": "ok"}}}],
        },
    ]
    said = {"contents": history, "tools": [{"function_declarations": [{"name": "note"}]}]}
    emulator.script([{"behaviour": "echo_results"}], then="last")
    async with httpx2.AsyncClient(base_url=emulator.base_url("gemini", wire="gemini"), timeout=90) as http:
        for version in ("v1", "v1beta"):
            whole = await http.post(f"/{version}/models/m:generateContent", json=said)
            assert whole.json()["candidates"][0]["content"]["parts"] == [{"text": "ok"}]
        listed = await http.post("/v1beta/models/m:streamGenerateContent", json=said)
        assert [one["candidates"][0]["content"]["parts"][0]["text"] for one in listed.json()] == [
            "o",
            "k",
            "",
        ]
        events = await http.post("/v1beta/models/m:streamGenerateContent?alt=sse", json=said)
        assert events.headers["content-type"] == "text/event-stream"
        del history[1]["parts"][0]["thought_signature"]  # type: ignore[attr-defined]
        refused = await http.post("/v1beta/models/m:streamGenerateContent?alt=sse", json=said)
    lines = [line.removeprefix("data: ") for line in events.text.splitlines() if line]
    assert [json.loads(line)["usageMetadata"]["totalTokenCount"] > 0 for line in lines] == [True] * 3
    assert refused.status_code == 400 and refused.json()["error"]["message"].endswith("position 2.")
    assert refused.headers["content-type"] == "application/json"


async def test_we_19_streams_break_off_and_lose_or_repeat_their_end(
    emulator: Emulator, sdk: genai.Client
) -> None:
    emulator.script([{"text": "abc", "calls": [call("note"), call("note")]}], then="last")
    emulator.fault(no_finish=True)
    assert (await ask(sdk, [user()], stream=True))[-1].candidates[0].finish_reason is None
    emulator.fault(duplicate_final=True)
    twice = await ask(sdk, [user()], stream=True)
    assert twice[-1].candidates == twice[-2].candidates
    emulator.fault(index_mode="two_in_one_chunk")
    together = (await ask(sdk, [user()], stream=True))[-1].candidates[0].content.parts
    assert [bool(part.thought_signature) for part in together] == [True, False]
    emulator.fault(stream_error_at=2)
    with pytest.raises(errors.ServerError) as caught:
        await ask(sdk, [user()], stream=True)
    assert (caught.value.code, caught.value.status) == (503, "UNAVAILABLE")
    emulator.fault(cut_at=2)
    with pytest.raises(httpx2.RemoteProtocolError):
        await ask(sdk, [user()], stream=True)
    emulator.assert_fired()


async def test_we_18_a_model_may_insist_disobey_and_search(emulator: Emulator, sdk: genai.Client) -> None:
    insist = {"behaviour": "require_call_once", "calls": [call("note")], "text": "done"}
    emulator.script([insist], then="last")
    assert parts_of(await ask(sdk, [user()]))[0].function_call
    assert parts_of(await ask(sdk, GOOD))[0].text == "done"
    emulator.script([{"behaviour": "repeat_call_after_recovery", "text": "fine"}], then="last")
    assert parts_of(await ask(sdk, GOOD))[0].text == "fine"
    emulator.fault(status=400)
    await refusal(sdk, GOOD)
    again = [part.function_call for part in parts_of(await ask(sdk, GOOD))]
    assert [one.name for one in again if one] == ["note", "note"] and again[0].id != "a"  # type: ignore[union-attr]
    emulator.script([{"search_with_sources": 2, "text": "found", "when_enabled": True}], then="last")
    assert (await ask(sdk, [user()]))[0].candidates[0].grounding_metadata is None
    search = types.GenerateContentConfig(tools=[types.Tool(google_search=types.GoogleSearch())])
    found = await sdk.aio.models.generate_content(model=MODEL, contents=[user()], config=search)
    assert len(found.candidates[0].grounding_metadata.grounding_chunks) == 2  # type: ignore[index,union-attr,arg-type]
    assert emulator.hosted == {"search": 1}


async def test_we_05_a_null_is_a_part_that_is_not_there(emulator: Emulator) -> None:
    contents = [
        {"role": "user", "parts": [{"text": "go", "functionCall": None}]},
        {"role": "model", "parts": [{"functionCall": None, "thoughtSignature": "c2ln"}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "a", "response": {"output": "x"}}}]},
    ]
    async with httpx2.AsyncClient(base_url=emulator.base_url("gemini", wire="gemini"), timeout=90) as http:
        answered = await http.post("/v1beta/models/m:generateContent", json={"contents": contents})
    assert answered.status_code == 400 and emulator.requests()[-1].rules == ["GE-02"], "no signature of ours"
