"""The emulated Responses wire judged by the unmodified official SDK: each rule, ciphertexts, streams, faults."""

from __future__ import annotations

import copy
import json
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any

import openai
import pytest

from surefoot.providers import contracts, rules
from surefoot.testing.emulator.profiles import RESPONSES
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.model import call

TOOLS = [{"type": "function", "name": "note", "parameters": {"type": "object"}, "strict": False}]
CERTIFICATES = ssl.create_default_context()
"""Read once; reading them for every client of the SDK takes longer than a request."""
Body = dict[str, Any]


@pytest.fixture
async def emulator() -> AsyncIterator[Emulator]:
    async with Emulator() as server:
        yield server


def client(emulator: Emulator, profile: str, **more: Any) -> openai.AsyncOpenAI:
    http = openai.DefaultAsyncHttpxClient(verify=CERTIFICATES)
    settings = {"api_key": "sk-test", "max_retries": 0, "timeout": 10, "http_client": http, **more}
    return openai.AsyncOpenAI(base_url=emulator.base_url(profile), **settings)


async def ask(emulator: Emulator, profile: str, body: Body, *, stream: bool = False, **more: Any) -> Any:
    """The final response, whole or put together by the SDK from its stream."""
    async with client(emulator, profile, **more) as sdk:
        if not stream:
            return await sdk.responses.create(**body)
        async with sdk.responses.stream(**body) as events:
            return await events.get_final_response()


def user(said: str = "go") -> Body:
    return {"role": "user", "content": said}


def asked(call_id: str = "call_a", **more: Any) -> Body:
    return {"type": "function_call", "call_id": call_id, "name": "note", "arguments": "{}", **more}


def output(call_id: str = "call_a") -> Body:
    return {"type": "function_call_output", "call_id": call_id, "output": "ok"}


def plain(said: str = "hm") -> Body:
    return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": said}]}


def body(*items: Any, **more: Any) -> Body:
    return {"model": "scripted", "tools": TOOLS, "input": list(items), "store": False, **more}


GOOD = body(user(), asked("call_a"), asked("call_b"), output("call_b"), output("call_a"))
PAIRS: list[tuple[str, str, Body, Body]] = [
    ("OR-01", "openai", GOOD, body(user(), asked(), asked("call_b"), output(), user())),
    ("OR-01", "compat", GOOD, body(user(), asked())),
    ("OR-01", "xai", GOOD, body(user(), asked())),
    ("OR-02", "openai", GOOD, body(user(), output())),
    ("OR-02", "compat", GOOD, body(user(), asked(), output(), output("call_zz"))),
    ("OR-02", "xai", GOOD, body(user(), output())),
    ("OR-06", "openai", GOOD, body(user(), asked(id=""), output())),
    ("OR-06", "compat", body(user(), asked(id="fc_1"), output()), body(user(), asked(id="call_1"), output())),
    (
        "OR-08",
        "compat",
        body(user(), asked(id="fc_1"), asked("call_b", id="fc_2"), output(), output("call_b")),
        body(user(), asked(id="fc_1"), asked("call_b", id="fc_1"), output(), output("call_b")),
    ),
    (
        "OR-09",
        "openai",
        body(user(), asked("c" * 64), output("c" * 64)),
        body(user(), asked("c" * 65), output("c" * 65)),
    ),
    ("OR-10", "compat", GOOD, body(user(), {"role": "tool", "content": "ok"})),
    ("OR-10", "openai", GOOD, body(user(), {"role": "tool", "content": "ok"})),
    (
        "DS-05",
        "deepseek",
        body(user(), plain(), asked(), output()),
        body(user(), asked(), output()),
    ),
    (
        "DS-05",
        "deepseek",
        body(
            user(),
            plain(),
            asked(),
            asked("call_b"),
            output(),
            output("call_b"),
            plain("more"),
            asked("call_c"),
            output("call_c"),
        ),
        body(user(), plain(), asked(), output(), plain(""), asked("call_b"), output("call_b")),
    ),
]
_THOUGHT = body(user(), plain(), asked(), output())
PAIRS += [
    ("OR-01", "deepseek", _THOUGHT, body(user(), plain(), asked())),
    ("OR-02", "deepseek", _THOUGHT, body(user(), output())),
    ("OR-08", "openai", GOOD, body(*[{**user(), "type": "message", "id": "msg_1"}] * 2)),
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("rule", "profile", "accepted", "refused"),
    PAIRS,
    ids=[f"{r}-{p}-{n}" for n, (r, p, *_) in enumerate(PAIRS)],
)
async def test_we_09_each_enforced_rule_accepts_one_request_and_refuses_its_twin(
    emulator: Emulator, rule: str, profile: str, accepted: Body, refused: Body, stream: bool
) -> None:
    assert (await ask(emulator, profile, accepted, stream=stream)).status == "completed"
    with pytest.raises(openai.BadRequestError) as caught:
        await ask(emulator, profile, refused, stream=stream)
    assert emulator.requests()[-1].rules == [rule]
    assert caught.value.body["type"] == "invalid_request_error"  # type: ignore[index]


async def loop(
    emulator: Emulator, profile: str = "openai", *, stream: bool = False, store: bool = False, **fault: Any
) -> Body:
    """A tool loop whose reasoning, ciphertext and ids the emulator issued; ready to be sent again."""
    emulator.script(
        [
            {"thinking": "let me grüße", "calls": [call("note", text="a"), call("note", text="b")]},
            {"text": "done"},
        ]
    )
    planned = emulator.fault(**fault) if fault else None
    request = body(user(), store=store, include=["reasoning.encrypted_content"])
    reply = await ask(emulator, profile, request, stream=stream)
    assert planned is None or planned.fired == 1
    sent = json.loads(reply.model_dump_json(exclude_none=True))["output"]
    for item in sent:
        item.pop("status", None)
        item.pop("parsed_arguments", None)
    answers = [output(item["call_id"]) for item in sent if item["type"] == "function_call"]
    return {**request, "input": [*request["input"], *sent, *answers]}


def edited(whole: Body, change: Callable[[Body], Any]) -> Body:
    copied = copy.deepcopy(whole)
    change(copied)
    return copied


# Places of the loop: 0 user, 1 reasoning, 2 and 3 calls, 4 and 5 outputs.
DAMAGES: list[tuple[str, int, Callable[[Body], Any]]] = [
    ("OR-03", 400, lambda b: b["input"].pop(1)),
    ("OR-03", 400, lambda b: b["input"].insert(3, user("in between"))),
    ("OR-04", 400, lambda b: [b["input"].pop(2) for _ in range(4)]),
    ("OR-04", 400, lambda b: b["input"].insert(2, user("in between"))),
    (
        "OR-05",
        404,
        lambda b: b["input"].__setitem__(1, {"type": "item_reference", "id": b["input"][1]["id"]}),
    ),
    ("OR-05", 404, lambda b: b["input"][1].pop("encrypted_content")),
    ("OR-07", 400, lambda b: b["input"][1].update(encrypted_content=b["input"][1]["encrypted_content"][:-4])),
    ("OR-07", 400, lambda b: b.update(model="another")),
    ("OR-11", 400, lambda b: b.update(previous_response_id="resp_gone")),
]
ONLY_THE_ISSUER_KNOWS = ("OR-07", "OR-11")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_we_09_what_was_issued_is_accepted_unchanged_and_refused_when_changed(
    emulator: Emulator, stream: bool
) -> None:
    whole = await loop(emulator, stream=stream)
    assert (await ask(emulator, "openai", whole, stream=stream)).output_text == "done"
    for rule, status, damage in DAMAGES:
        with pytest.raises(openai.APIStatusError) as caught:
            await ask(emulator, "openai", edited(whole, damage), stream=stream)
        assert emulator.requests()[-1].rules == [rule] and caught.value.status_code == status
        if "openai/responses" in contracts.contract_ids():
            contract = contracts.resolve("openai/responses")
            assert rules.refusing(rules.check(whole, contract)) == []
            found = {finding.rule for finding in rules.check(edited(whole, damage), contract)}
            assert rule in found or rule in ONLY_THE_ISSUER_KNOWS
    with pytest.raises(openai.BadRequestError) as caught:
        await ask(emulator, "openai", whole, stream=stream, api_key="sk-another-account")
    assert caught.value.code == "invalid_encrypted_content"
    await ask(emulator, "compat", edited(whole, lambda b: b["input"].pop(1)), stream=stream)
    await ask(emulator, "xai", edited(whole, lambda b: b["input"].pop(1)), stream=stream)


async def test_or_03_ids_may_be_left_out_together_and_call_ids_stay(emulator: Emulator) -> None:
    whole = await loop(emulator)
    for item in whole["input"]:
        item.pop("id", None)
    await ask(emulator, "openai", whole)
    bare = edited(whole, lambda b: b["input"].pop(1))
    await ask(emulator, "openai", bare)


async def test_or_04_a_message_issued_with_reasoning_follows_it(emulator: Emulator) -> None:
    emulator.script([{"thinking": "hm", "text": "hello"}], then="last")
    request = body(user(), include=["reasoning.encrypted_content"])
    reply = await ask(emulator, "openai", request)
    sent = json.loads(reply.model_dump_json(exclude_none=True))["output"]
    again = {**request, "input": [user(), *sent, user()]}
    await ask(emulator, "openai", again)
    with pytest.raises(openai.BadRequestError, match="required preceding item"):
        await ask(emulator, "openai", edited(again, lambda b: b["input"].pop(1)))
    assert emulator.requests()[-1].rules == ["OR-04"]


async def test_or_05_and_or_11_what_is_stored_may_be_named_by_its_id(emulator: Emulator) -> None:
    whole = await loop(emulator, store=True)
    named = edited(
        whole, lambda b: b["input"].__setitem__(1, {"type": "item_reference", "id": b["input"][1]["id"]})
    )
    assert (await ask(emulator, "openai", named)).output_text == "done"
    first = whole["input"][1]["id"].removeprefix("rs_")[:20]
    chained = {**whole, "input": whole["input"][4:], "previous_response_id": f"resp_{first}"}
    await ask(emulator, "openai", chained)
    with pytest.raises(openai.BadRequestError, match="No tool output"):
        await ask(emulator, "openai", {**chained, "input": [user()]})


@pytest.mark.parametrize("wrong", [{"store": True}, {"previous_response_id": "resp_1"}])
async def test_ds_05_the_stateless_endpoint_refuses_state(emulator: Emulator, wrong: Body) -> None:
    await ask(emulator, "deepseek", body(user()))
    with pytest.raises(openai.BadRequestError):
        await ask(emulator, "deepseek", body(user(), **wrong))
    assert emulator.requests()[-1].rules == ["DS-05"]


async def test_mi_01_the_replay_rule_of_another_family_may_be_adopted(emulator: Emulator) -> None:
    emulator.set_knobs("compat", wire="responses", reasoning_protocol="mimo")
    await ask(emulator, "compat", body(user(), plain(), asked(), output()))
    with pytest.raises(openai.BadRequestError, match="reasoning_content in the thinking mode"):
        await ask(emulator, "compat", body(user(), asked(), output()))
    assert emulator.requests()[-1].rules == ["MI-01"]


def test_we_03_every_rule_of_a_responses_profile_is_shown_somewhere() -> None:
    shown = {(rule, name) for rule, name, *_ in PAIRS} | {(rule, "openai") for rule, *_ in DAMAGES}
    tier_1 = ("compat", "openai", "deepseek", "xai")
    assert {(rule, name) for name in tier_1 for rule in RESPONSES[name].rules} == shown


@pytest.mark.parametrize("profile", sorted(RESPONSES))
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_we_14_every_profile_answers_reasoning_text_and_calls(
    emulator: Emulator, profile: str, stream: bool
) -> None:
    emulator.script(
        [{"thinking": "hm", "text": "grüße 你好", "calls": [call("note", text="ß")]}], then="last"
    )
    request = body(user(), include=["reasoning.encrypted_content"], parallel_tool_calls=False)
    reply = await ask(emulator, profile, request, stream=stream)
    reasoning, message, function = reply.output
    assert (reasoning.type, message.type, function.type) == ("reasoning", "message", "function_call")
    assert message.content[0].text == reply.output_text == "grüße 你好"
    assert json.loads(function.arguments) == {"text": "ß"}
    for item, prefix in ((reply, "resp_"), (reasoning, "rs_"), (message, "msg_"), (function, "fc_")):
        assert item.id.startswith(prefix)
    assert function.call_id.startswith("call_")
    assert reply.usage.total_tokens == reply.usage.input_tokens + reply.usage.output_tokens
    assert reply.parallel_tool_calls is False and reply.tools[0].name == "note"
    encrypted = RESPONSES[profile].reasoning_field == "encrypted"
    assert bool(reasoning.encrypted_content) == encrypted and bool(reasoning.content) == (not encrypted)


async def events_of(emulator: Emulator, profile: str = "openai", **action: Any) -> list[Body]:
    fault = emulator.fault(**action) if action else None
    request = body(user(), include=["reasoning.encrypted_content"], stream=True)
    async with client(emulator, profile) as sdk:
        stream = await sdk.responses.create(**request)
        events = [event.model_dump(warnings=False) async for event in stream]
    assert fault is None or fault.fired == 1
    return events


async def test_we_14_a_stream_is_numbered_and_in_order(emulator: Emulator) -> None:
    emulator.script([{"thinking": "hm", "text": "hello", "calls": [call("note", text="a")]}], then="last")
    events = await events_of(emulator)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    kinds = [event["type"] for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"] and kinds[-1] == "response.completed"
    assert kinds.count("response.output_item.added") == kinds.count("response.output_item.done") == 3
    for one in (
        "response.content_part.done",
        "response.output_text.done",
        "response.function_call_arguments.done",
    ):
        assert one in kinds
    ciphers = {
        e["type"]: e["item"].get("encrypted_content")
        for e in events
        if e.get("output_index") == 0 and "item" in e
    }
    early, late = ciphers["response.output_item.added"], ciphers["response.output_item.done"]
    assert late.startswith(early) and early != late


@pytest.mark.parametrize(
    ("given", "terminal", "reason"),
    [
        ("stop", "response.completed", None),
        ("tool_calls", "response.completed", None),
        ("length", "response.incomplete", "max_output_tokens"),
        ("content_filter", "response.incomplete", "content_filter"),
        ("error", "response.failed", None),
    ],
)
async def test_we_19_finish_chooses_the_terminal_event(
    emulator: Emulator, given: str, terminal: str, reason: str | None
) -> None:
    last = (await events_of(emulator, finish=given))[-1]
    assert last["type"] == terminal
    details = last["response"]["incomplete_details"]
    assert (details or {}).get("reason") == reason
    assert (last["response"]["error"] is not None) == (given == "error")


async def test_we_19_missing_doubled_and_failing_ends(emulator: Emulator) -> None:
    assert (await events_of(emulator, no_done=True))[-1]["type"] == "response.output_item.done"
    doubled = await events_of(emulator, duplicate_final=True)
    assert [event["type"] for event in doubled[-2:]] == ["response.completed"] * 2
    failed = await events_of(emulator, stream_error_at=3)
    assert failed[-1]["type"] == "error" and len(failed) == 4


async def test_we_19_the_knobs_of_reasoning_bend_the_reasoning_item(emulator: Emulator) -> None:
    emulator.script([{"thinking": "hm hm", "text": "x"}], then="last")

    async def last(**action: Any) -> Body:
        return (await events_of(emulator, **action))[-1]["response"]["output"][0]  # type: ignore[no-any-return]

    assert (await last(reasoning_mode="omit"))["type"] == "message"
    blank = await last(reasoning_mode="blank")
    assert blank["summary"] == [] and not blank["encrypted_content"]
    unsigned = await last(reasoning_mode="unsigned")
    assert unsigned["summary"] and not unsigned["encrypted_content"]
    only = await last(reasoning_mode="signature_only")
    assert only["summary"] == [] and only["encrypted_content"]
    lost = await events_of(emulator, reasoning_mode="lost_signature_delta")
    items = [event["item"] for event in lost if event.get("item", {}).get("type") == "reasoning"]
    assert items[0]["encrypted_content"] and not items[1]["encrypted_content"]


@pytest.mark.parametrize("mode", ["foreign_model", "foreign_account", "corrupt_one_byte"])
async def test_we_19_a_bent_ciphertext_is_refused_at_replay(emulator: Emulator, mode: str) -> None:
    whole = await loop(emulator, stream=True, signature_mode=mode)
    with pytest.raises(openai.BadRequestError, match="could not be verified"):
        await ask(emulator, "openai", whole)
    assert emulator.requests()[-1].rules == ["OR-07"]


async def test_we_19_an_incident_refuses_valid_ciphertexts_and_nothing_else(emulator: Emulator) -> None:
    whole = await loop(emulator)
    fault = emulator.fault(signature_mode="expired_incident")
    await ask(emulator, "openai", body(user()))
    with pytest.raises(openai.BadRequestError, match="could not be verified"):
        await ask(emulator, "openai", whole)
    await ask(emulator, "openai", whole)
    assert fault.fired == 1


async def test_we_19_the_knobs_of_calls_bend_items_as_named(emulator: Emulator) -> None:
    emulator.script([{"calls": [call("note", text="first"), call("note", text="second")]}], then="last")

    def done(events: list[Body]) -> list[Body]:
        return [event for event in events if event["type"] == "response.output_item.done"]

    assert [e["output_index"] for e in done(await events_of(emulator, index_mode="gap"))] == [0, 2]
    assert [e["output_index"] for e in done(await events_of(emulator, index_mode="all_zero"))] == [0, 0]
    assert [e["output_index"] for e in done(await events_of(emulator, index_mode="reverse"))] == [1, 0]
    missing = done(await events_of(emulator, index_mode="missing"))
    assert all(e.get("output_index") is None for e in missing)
    long = done(await events_of(emulator, id_mode="long"))
    assert {len(e["item"]["call_id"]) for e in long} == {86}
    unnamed = done(await events_of(emulator, name_mode="empty"))
    assert {e["item"]["name"] for e in unnamed} == {""}
    cut = done(await events_of(emulator, truncate_args=5))
    assert cut[-1]["item"]["arguments"] == '{"tex'
    as_object = done(await events_of(emulator, args_mode="object"))
    assert as_object[0]["item"]["arguments"] == {"text": "first"}
    twice = done(await events_of(emulator, args_mode="double_encoded"))
    assert json.loads(json.loads(twice[0]["item"]["arguments"])) == {"text": "first"}


async def test_we_19_gateways_tampering_and_leniency_work_on_this_wire(emulator: Emulator) -> None:
    whole = await loop(emulator)
    emulator.fault(tamper_request=[{"path": ["input", 1], "remove": True}], gateway=502)
    with pytest.raises(openai.InternalServerError, match="required 'reasoning' item"):
        await ask(emulator, "openai", whole)
    assert emulator.requests()[-1].status == 502 and emulator.requests()[-1].rules == ["OR-03"]
    emulator.fault(lenient=["OR-03"])
    await ask(emulator, "openai", edited(whole, lambda b: b["input"].pop(1)))
    emulator.assert_fired()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_we_18_hosted_tools_run_are_shown_and_counted(emulator: Emulator, stream: bool) -> None:
    emulator.script(
        [
            {"server_search": {"query": "q", "sources": 3}, "text": "found"},
            {"behaviour": "search_without_sources", "text": "found"},
            {"hosted_effect": "code", "text": "ran"},
            {"hosted_effect": "image", "text": "ran"},
        ]
    )
    replies = [await ask(emulator, "openai", body(user()), stream=stream) for _ in range(4)]
    kinds = [reply.output[0].type for reply in replies]
    assert kinds == ["web_search_call", "web_search_call", "code_interpreter_call", "image_generation_call"]
    assert len(replies[0].output[1].content[0].annotations) == 3
    assert replies[1].output[1].content[0].annotations == []
    assert emulator.hosted == {"search": 2, "code": 1, "image": 1}


async def test_we_18_a_lost_reply_still_had_its_hosted_effect(emulator: Emulator) -> None:
    emulator.script([{"hosted_effect": "code", "text": "ran"}], then="last")
    emulator.fault(stage="before_validate", status=500)
    with pytest.raises(openai.InternalServerError):
        await ask(emulator, "openai", body(user()))
    assert emulator.hosted == {}
    emulator.fault(stage="reply", status=500)
    with pytest.raises(openai.InternalServerError):
        await ask(emulator, "openai", body(user()))
    assert emulator.hosted == {"code": 1} and emulator.requests()[-1].hosted == {"code": 1}
    emulator.assert_fired()


async def test_we_18_scripts_by_history_read_items(emulator: Emulator) -> None:
    emulator.script([{"calls": [call("note")]}, {"behaviour": "echo_results"}], by="history")
    for _ in range(2):
        assert (await ask(emulator, "compat", body(user()))).output[0].type == "function_call"
    assert (await ask(emulator, "compat", GOOD)).output_text == "ok\nok"


BUILT = [pair for pair in PAIRS if f"{pair[1]}/responses" in contracts.contract_ids()]


@pytest.mark.parametrize(
    ("rule", "profile", "accepted", "refused"),
    BUILT,
    ids=[f"{r}-{p}-{n}" for n, (r, p, *_) in enumerate(BUILT)],
)
def test_we_20_the_validator_agrees_on_every_responses_pair(
    rule: str, profile: str, accepted: Body, refused: Body
) -> None:
    contract = contracts.resolve(f"{profile}/responses")
    assert rules.refusing(rules.check(accepted, contract)) == []
    assert rule in {finding.rule for finding in rules.check(refused, contract)}
