"""Bedrock's Converse wire, emulated, judged by the unmodified official client: each rule, ids, faults."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import botocore.session
import httpx2
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from surefoot.testing.emulator.__main__ import main
from surefoot.testing.emulator.profiles import CONVERSE
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.model import call

MODEL = "arn:aws:bedrock:us-east-1::foundation-model/some.model-v1:0"
TOOLS = {"tools": [{"toolSpec": {"name": "note", "inputSchema": {"json": {"type": "object"}}}}]}
Body = dict[str, Any]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[botocore.session.Session]:
    """A session that reads no file and no key of whoever runs the tests."""
    nowhere = str(tmp_path_factory.mktemp("aws") / "none")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK", "AWS_ENDPOINT_URL", "AWS_CA_BUNDLE"):
            patch.delenv(name, raising=False)
        patch.setenv("AWS_CONFIG_FILE", nowhere)
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", nowhere)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield botocore.session.Session()


@pytest.fixture
async def emulator() -> AsyncIterator[Emulator]:
    async with Emulator() as server:
        yield server


@pytest.fixture
async def sdk(emulator: Emulator, session: botocore.session.Session) -> AsyncIterator[Any]:
    made = client(emulator, session)
    yield made
    made.close()


def client(emulator: Emulator, session: botocore.session.Session, key: str = "AKIAEMULATED") -> Any:
    """The official client; it sends what it is given, so that the server is the one who refuses."""
    settings = Config(
        retries={"total_max_attempts": 1}, parameter_validation=False, proxies={}, read_timeout=90
    )
    return session.create_client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=emulator.base_url("bedrock", wire="converse"),
        aws_access_key_id=key,
        aws_secret_access_key="no-secret",
        config=settings,
    )


async def ask(sdk: Any, messages: list[Body], **more: Any) -> Body:
    body = {"modelId": MODEL, "messages": messages, "toolConfig": TOOLS, **more}
    sent = {name: value for name, value in body.items() if value is not None}
    return await asyncio.to_thread(lambda: sdk.converse(**sent))


async def refusal(sdk: Any, messages: list[Body], **more: Any) -> ClientError:
    with pytest.raises(ClientError) as caught:
        await ask(sdk, messages, **more)
    return caught.value


def user(*content: Body) -> Body:
    return {"role": "user", "content": list(content or (text("go"),))}


def model(*content: Body) -> Body:
    return {"role": "assistant", "content": list(content)}


def text(said: str = "x") -> Body:
    return {"text": said}


def use(identity: str = "a") -> Body:
    return {"toolUse": {"toolUseId": identity, "name": "note", "input": {}}}


def result(identity: str = "a", *content: Body, status: str = "success") -> Body:
    held = list(content or (text("ok"),))
    return {"toolResult": {"toolUseId": identity, "content": held, "status": status}}


GOOD = [user(), model(use("a"), use("b")), user(result("b"), result("a"))]
ONE = [user(), model(use()), user(result())]
FAILED = [user(), model(use()), user(result("a", text("broke"), status="error"))]
EXCEEDS = (
    "The number of toolResult blocks at messages.{}.content exceeds the number of toolUse blocks of "
    "previous turn."
)
TOGETHER = "Conversation blocks and tool {} blocks cannot be provided in the same turn."
EMPTY_ERROR = (
    "The content field at messages.2.content.0.toolResult cannot be empty when status value is error."
)
PAIRS: list[tuple[str, list[Body], list[Body], str]] = [
    (
        "BR-01",
        GOOD,
        [user(), model(use("a"), use("b")), user(result("a")), user(result("b"))],
        "Expected toolResult blocks at messages.2.content for the following Ids: b",
    ),
    (
        "BR-01",
        GOOD,
        [user(), model(use("a"), use("b")), user(text())],
        "Expected toolResult blocks at messages.2.content for the following Ids: a, b",
    ),
    (
        "BR-01",
        GOOD,
        [user(), model(use())],
        "Expected toolResult blocks at messages.2.content for the following Ids: a",
    ),
    ("BR-02", GOOD, [user(), model(use()), user(result(), result("zz"))], EXCEEDS.format(2)),
    ("BR-02", GOOD, [user(result())], EXCEEDS.format(0)),
    ("BR-02", GOOD, [user(), model(text()), user(result())], EXCEEDS.format(2)),
    (
        "BR-03",
        [*ONE, user(text())],
        [user(), model(use()), user(result(), text())],
        TOGETHER.format("result"),
    ),
    ("BR-03", ONE, [user(), model(text(), use()), user(result())], TOGETHER.format("use")),
    (
        "BR-04",
        GOOD,
        [user(), model(use(), use()), user(result(), result())],
        "The toolUse blocks at messages.1.content contain duplicate Ids",
    ),
    (
        "BR-06",
        [user(), model(text()), user()],
        [user(), model(text(" ")), user()],
        "The text field in the ContentBlock object at messages.1.content.0 is blank",
    ),
    (
        "BR-06",
        FAILED,
        [user(), model(use()), user(result("a", text(""), status="error"))],
        EMPTY_ERROR,
    ),
    (
        "BR-06",
        FAILED,
        [user(), model(use()), user({"toolResult": {"toolUseId": "a", "content": [], "status": "error"}})],
        EMPTY_ERROR,
    ),
    (
        "BR-06",
        ONE,
        [user(), model(), user()],
        "The content field in the Message object at messages.1 is empty.",
    ),
]
NO_TOOLS = "The toolConfig field must be defined when using toolUse and toolResult content blocks."


@pytest.mark.parametrize(
    ("rule", "accepted", "refused", "words"), PAIRS, ids=[f"{r}-{n}" for n, (r, *_) in enumerate(PAIRS)]
)
async def test_we_11_we_20_each_bedrock_rule_accepts_one_request_and_refuses_its_twin(
    emulator: Emulator, sdk: Any, rule: str, accepted: list[Body], refused: list[Body], words: str
) -> None:
    assert (await ask(sdk, accepted))["stopReason"] == "end_turn"
    told = await refusal(sdk, refused)
    assert told.response["Error"] == {"Code": "ValidationException", "Message": words}
    assert told.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    assert emulator.requests()[-1].rules == [rule]


async def test_br_05_tools_are_declared_beside_a_history_that_used_them(emulator: Emulator, sdk: Any) -> None:
    await ask(sdk, [user(), model(text()), user()], toolConfig=None)
    for history in (ONE, [user(), model(use())], [user(result())]):
        told = await refusal(sdk, history, toolConfig=None)
        assert told.response["Error"]["Message"] == NO_TOOLS
        assert emulator.requests()[-1].rules == ["BR-05"]
    await ask(sdk, ONE)


def test_we_11_every_rule_of_the_converse_wire_has_a_pair() -> None:
    assert {rule for rule, *_ in PAIRS} | {"BR-05"} == CONVERSE["bedrock"].rules


async def test_we_12_a_refusal_is_a_message_and_a_header_that_names_its_kind(emulator: Emulator) -> None:
    async with httpx2.AsyncClient(base_url=emulator.base_url("bedrock", wire="converse"), timeout=90) as http:
        body = {"messages": [user(result())], "toolConfig": TOOLS}
        answered = await http.post("/model/some.model/converse", json=body)
        assert answered.status_code == 400 and answered.json() == {"message": EXCEEDS.format(0)}
        assert answered.headers["x-amzn-errortype"] == "ValidationException"
        assert answered.headers["x-amzn-requestid"].startswith("req_")
        unknown = await http.post(f"{emulator.url}/openai/model/m/converse", json=body)
        assert unknown.status_code == 404
        assert unknown.headers["x-amzn-errortype"] == "ResourceNotFoundException"
        no_json = await http.post("/model/some.model/converse", content=b"{")
        assert no_json.status_code == 400 and set(no_json.json()) == {"message"}


async def test_we_11_a_whole_tool_conversation_goes_through_as_the_client_holds_it(
    emulator: Emulator, sdk: Any
) -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    both = [call("note", text="a"), call("note", text="ß")]
    emulator.script(
        [
            {"thinking": "hm", "text": "grüße", "calls": both},
            {"thinking": "so", "calls": [call("note", text="c")]},
            {"behaviour": "echo_results", "text": "It says: ", "usage": usage},
        ],
        by="history",
    )
    history, kinds = [user()], []
    for wanted in (2, 1):
        reply = await ask(sdk, history)
        content = reply["output"]["message"]["content"]
        uses = [block["toolUse"] for block in content if "toolUse" in block]
        assert reply["stopReason"] == "tool_use" and len(uses) == wanted
        assert all(one["toolUseId"].startswith("tooluse_") for one in uses)
        kinds.append([next(iter(block)) for block in content])
        history.append(reply["output"]["message"])
        history.append(user(*(result(one["toolUseId"]) for one in uses)))
    assert kinds == [["reasoningContent", "text", "toolUse", "toolUse"], ["reasoningContent", "toolUse"]]
    assert history[1]["content"][-1]["toolUse"]["input"] == {"text": "ß"}
    thought = history[1]["content"][0]["reasoningContent"]["reasoningText"]
    assert thought["text"] == "hm" and thought["signature"]
    last = await ask(sdk, history)
    assert last["output"]["message"]["content"] == [{"text": "It says: ok"}]
    assert last["usage"] == {"inputTokens": 7, "outputTokens": 5, "totalTokens": 12}
    assert last["metrics"]["latencyMs"] >= 0
    requests = emulator.requests()
    assert [entry.status for entry in requests] == [200] * 3
    assert requests[-1].message_shas[:3] == requests[1].message_shas
    assert requests[-1].path == f"/bedrock/model/{MODEL}/converse"


async def test_br_03_a_model_takes_back_text_that_it_said_itself_beside_a_call_and_no_other(
    emulator: Emulator, sdk: Any
) -> None:
    emulator.script([{"text": "I note.", "calls": [call("note")]}, {"calls": [call("note")]}], then="last")
    mixed = (await ask(sdk, [user()]))["output"]["message"]
    identity = mixed["content"][1]["toolUse"]["toolUseId"]
    await ask(sdk, [user(), mixed, user(result(identity))])
    plain = (await ask(sdk, [user()]))["output"]["message"]["content"][0]
    identity = plain["toolUse"]["toolUseId"]
    told = await refusal(sdk, [user(), model(text("put in"), plain), user(result(identity))])
    assert told.response["Error"]["Message"] == TOGETHER.format("use")


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "'messages'"),
        ([{"role": "system", "content": []}], "enum value set: [user, assistant]"),
        ([{"role": "user", "content": "text"}], "messages.1.member.content"),
        ([user({"text": "x", "toolUse": {}})], "exactly one known field"),
        ([user({"tool_use": {}})], "exactly one known field"),
        ([user(use())], "assistant messages only"),
        ([user(), model(use("a b"))], "regular expression pattern"),
        ([user(), model(use("a" * 65))], "regular expression pattern"),
        ([user(), model({"toolUse": {"toolUseId": "a", "name": "note", "input": "{}"}})], "toolUse.input"),
        ([user({"toolResult": {"toolUseId": "a", "content": "x"}})], "toolResult.content"),
    ],
)
async def test_we_05_what_cannot_be_read_is_refused_before_its_history(
    emulator: Emulator, messages: Any, words: str
) -> None:
    async with httpx2.AsyncClient(base_url=emulator.base_url("bedrock", wire="converse"), timeout=90) as http:
        answered = await http.post("/model/m/converse", json={"messages": messages, "toolConfig": TOOLS})
    assert answered.status_code == 400 and words in answered.json()["message"]
    assert emulator.requests()[-1].rules == ["schema"]


@pytest.mark.parametrize(
    ("action", "status", "kind"),
    [
        ({"auth": True}, 401, "UnrecognizedClientException"),
        ({"quota_as_400": True}, 400, "ValidationException"),
        ({"quota_as_429": True}, 429, "ServiceQuotaExceededException"),
        ({"rate": 7}, 429, "ThrottlingException"),
        ({"overloaded": True}, 503, "ServiceUnavailableException"),
        ({"overflow_at": 1}, 400, "ValidationException"),
        ({"status": 500}, 500, "InternalServerException"),
    ],
)
async def test_we_12_planned_refusals_have_the_form_of_the_wire(
    emulator: Emulator, sdk: Any, action: Body, status: int, kind: str
) -> None:
    emulator.fault(**action)
    told = (await refusal(sdk, [user()])).response
    assert told["ResponseMetadata"]["HTTPStatusCode"] == status and told["Error"]["Code"] == kind
    emulator.assert_fired()


async def test_we_05_a_wrong_key_and_a_full_window(
    emulator: Emulator, sdk: Any, session: botocore.session.Session
) -> None:
    wrong = client(emulator, session, key="sk-bad")
    assert (await refusal(wrong, [user()])).response["ResponseMetadata"]["HTTPStatusCode"] == 401
    wrong.close()
    assert "AKIAEMULATED" not in json.dumps(emulator.requests()[-1].to_json())
    told = await refusal(sdk, [user(text("x" * 900_000))])
    assert told.response["Error"]["Message"] == "Input is too long for requested model."
    assert emulator.requests()[-1].rules == ["X-06"]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("stop", "end_turn"),
        ("tool_calls", "tool_use"),
        ("length", "max_tokens"),
        ("content_filter", "content_filtered"),
        ("model_context_window_exceeded", "model_context_window_exceeded"),
    ],
)
async def test_we_19_finish_speaks_the_words_of_the_wire(
    emulator: Emulator, sdk: Any, given: str, shown: str
) -> None:
    emulator.fault(finish=given)
    assert (await ask(sdk, [user()]))["stopReason"] == shown
    emulator.assert_fired()


async def test_we_19_knobs_bend_calls_and_reasoning_as_named(emulator: Emulator, sdk: Any) -> None:
    emulator.script(
        [{"thinking": "hm", "calls": [call("note", text="a"), call("note", text="b")]}], then="last"
    )

    async def content(**action: Any) -> list[Body]:
        emulator.fault(**action)
        return (await ask(sdk, [user()]))["output"]["message"]["content"]  # type: ignore[no-any-return]

    twice = [block["toolUse"]["toolUseId"] for block in (await content(id_mode="duplicate_in_batch"))[1:]]
    assert twice == ["call_same", "call_same"]
    assert "toolUseId" not in (await content(id_mode="missing"))[1]["toolUse"]
    assert (await content(name_mode="unknown"))[1]["toolUse"]["name"] == "no_such_tool"
    assert (await content(args_mode="array"))[1]["toolUse"]["input"] == [1, 2]
    assert (await content(truncate_args=3))[2]["toolUse"]["input"] == {}
    assert "reasoningContent" not in (await content(reasoning_mode="omit"))[0]
    unsigned = (await content(reasoning_mode="unsigned"))[0]["reasoningContent"]["reasoningText"]
    assert unsigned == {"text": "hm"}
    redacted = (await content(reasoning_mode="redacted"))[0]["reasoningContent"]
    assert list(redacted) == ["redactedContent"]
    emulator.assert_fired()


async def test_we_19_a_stall_a_gateway_a_tampered_request_and_a_rule_turned_off(
    emulator: Emulator, sdk: Any
) -> None:
    emulator.fault(stall_at={"bytes": 10}, seconds=0.01)
    await ask(sdk, [user()])
    emulator.fault(gateway=502)
    told = await refusal(sdk, [user(result())])
    assert told.response["ResponseMetadata"]["HTTPStatusCode"] == 502
    emulator.fault(tamper_request=[{"path": ["messages", 2, "content", 0], "remove": True}])
    assert (await refusal(sdk, GOOD)).response["Error"]["Message"].endswith("following Ids: b")
    emulator.fault(lenient=["BR-03"])
    await ask(sdk, [user(), model(use()), user(result(), text())])
    emulator.assert_fired()


def test_we_03_the_program_prints_the_address_its_clients_take(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["--profile", "bedrock", "--wire", "chat"])
    assert "--profile bedrock speaks converse, not chat." in capsys.readouterr().err
    command = [sys.executable, "-m", "surefoot.testing.emulator", "--until-stdin-closes"]
    for more, ending in (
        (["--profile", "bedrock"], "/bedrock"),
        (["--profile", "gemini", "--wire", "gemini"], "/gemini"),
    ):
        with subprocess.Popen([*command, *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
            assert program.stdout is not None and program.stdin is not None
            url = program.stdout.readline().decode().strip()
            assert url.startswith("http://127.0.0.1:") and url.rpartition(":")[2].endswith(ending)
            program.stdin.close()
            assert program.wait(timeout=90) == 0
