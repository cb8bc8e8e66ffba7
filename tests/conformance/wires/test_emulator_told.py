"""What the emulator answers to whoever plans a test with it: every mistake is told, none breaks a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from surefoot.testing.emulator.__main__ import main
from surefoot.testing.emulator.server import Emulator

ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
READ = {"name": "read", "args": {"path": "{n}.txt"}}


@pytest.mark.parametrize(
    ("command", "given", "told"),
    [
        ("fault", {"action": {"nope": 1}}, "the knobs are args_mode"),
        ("fault", {"action": {"status": 400, "body": "zzz"}}, "choose one of empty"),
        ("fault", {"action": {"body": "empty"}}, "details of a fault that has a status"),
        ("fault", {"action": {"seconds": 1}}, "details of a fault that has a stall_at"),
        ("fault", {"action": {"status": "400"}}, "an HTTP status"),
        ("fault", {"action": {"truncate_args": "x"}}, "a number"),
        ("fault", {"action": {"cut_at": "x"}}, "a number of events"),
        ("fault", {"action": {"headers": "x"}}, "an object of names and values"),
        ("fault", {"action": {"tamper_request": "x"}}, "a list of"),
        ("fault", {"action": {"lenient": "OC-01"}}, "a list of rule ids"),
        ("fault", {"action": {"auth": True}, "count": "x"}, "-1 for always"),
        ("fault", {"action": {"index_mode": []}}, "choose one of all_zero"),
        ("fault", {"action": {"auth": True}, "count": 0}, "a number from 1"),
        ("fault", {"action": {"auth": "yes"}}, "true, or leave it out"),
        ("fault", {"action": {"finish": 5}}, "a text or null"),
        ("fault", {"action": {"truncate_args": -1}}, "a number from 0"),
        ("fault", {"action": {"cut_at": {"byte": 5}}}, "a number of events"),
        ("fault", {"action": {"stall_at": {"inside": "word"}}}, "a number of events"),
        ("fault", {"action": {"auth": True}, "match": {"nth": "2"}}, "a number from 1"),
        ("fault", {"action": {"auth": True}, "match": {"profile": "zz"}}, "profile 'zz': choose one of"),
        ("fault", {"action": {"finish": "stop"}, "stage": "after_validate"}, "finish: nothing a fault"),
        ("fault", {"action": {"status": 400}, "stage": "refusal"}, "status: nothing a fault"),
        ("fault", {"action": {"gateway": 502}, "stage": "reply"}, "gateway: nothing a fault"),
        ("fault", {"action": {"status": 500, "finish": "length"}}, "finish: nothing a fault"),
        ("fault", {"action": {"lenient": ["OC-01"], "id_mode": "long"}}, "id_mode: nothing a fault"),
        ("fault", {"actions": {}}, "its keys are action, count, match, stage"),
        ("script", {"steps": ["x"]}, "a step is an object"),
        ("script", {"steps": {"text": "x"}}, "a list of steps"),
        ("script", {"steps": [{"calls": ["read"]}]}, "call keys are"),
        ("script", {"steps": [{"many_calls": "3"}]}, "a number, or an object"),
        ("script", [1], "a step is an object"),
        ("script", 5, "give a list of steps"),
        ("script", {"text": "x"}, "an object with 'steps'"),
        ("script", [{"steps": []}, {"text": "x"}], "an object with 'steps'"),
        ("script", {"steps": [], "fro": 1}, "its keys are by, profile, session, steps, then"),
        ("script", {"steps": [{"calls": 5}]}, "a list of calls"),
        ("script", {"steps": [{"text": 5}]}, "a text"),
        ("script", {"steps": [{"calls": [{"name": 5}]}]}, "name and id are texts"),
        ("script", {"steps": [{"calls": [{"name": "x", "args": "{}"}]}]}, "raw_args takes any text"),
        ("script", {"steps": [{"usage": {"prompt_tokens": "5"}}]}, "an object of numbers"),
        ("script", {"steps": [], "profile": "zz"}, "profile 'zz': choose one of"),
        ("script", {"steps": [], "session": 5}, "session=5: a text"),
        ("script", {"steps": [{"usage": 5}]}, "an object of numbers"),
        ("script", {"steps": [{"many_calls": {"n": "x"}}]}, "n is a number"),
        ("script", {"steps": [{"search_with_sources": "2"}]}, "a number of sources"),
        ("fault", {"action": {"delay_headers": "x"}}, "seconds, or null"),
        ("fault", {"action": {"stall_at": 1, "seconds": "x"}}, "seconds, or null"),
        ("knobs", {"profile": "zz", "knobs": {}}, "profile 'zz': choose one of"),
        ("knobs", {"profile": "bedrock", "knobs": {}}, "profile 'bedrock' is not known on the wire 'chat'"),
        ("knobs", {"profile": "openai", "knobs": [1]}, "an object of names and values"),
        ("knobs", {"profile": "deepseek", "knobs": {"v4_mode": "zz"}}, 'choose one of "all_turns"'),
        ("knobs", {"profile": "deepseek", "knobs": {"empty_ok": "no"}}, "choose one of false, true"),
        ("knobs", {"profile": "openai", "knobs": {"zz": 1}}, "knobs are allow_prefill"),
        ("knobs", {"profile": "litellm", "knobs": {"upstream": "zz"}}, "upstream='zz': choose one of"),
        ("nope", {}, "no control path 'nope'"),
    ],
)
async def test_we_19_we_18_a_plan_that_cannot_be_carried_out_is_refused_when_it_is_made(
    command: str, given: Any, told: str
) -> None:
    async with Emulator() as emulator, httpx2.AsyncClient(base_url=emulator.url) as client:
        answer = await client.post(f"/_ctl/{command}", json=given)
        assert answer.status_code == 400 and told in answer.json()["error"]["message"]
        assert (await client.post("/openai/v1/chat/completions", json=ASKED)).status_code == 200


async def test_we_3_a_path_takes_its_own_method_and_names_it() -> None:
    async with Emulator() as emulator, httpx2.AsyncClient(base_url=emulator.url) as client:
        emulator.script([{"text": "kept"}])
        for path, wanted in (
            ("/_ctl/reset", "POST"), ("/_ctl/script", "POST"), ("/openai/v1/chat/completions", "POST"),
            ("/_ctl/log", "GET"), ("/_ctl/hosted", "GET"), ("/openai/v1/models", "GET"),
        ):  # fmt: skip
            wrong = "GET" if wanted == "POST" else "POST"
            answer = await client.request(wrong, path, json={} if wrong == "POST" else None)
            assert (answer.status_code, answer.headers["allow"]) == (405, wanted), path
        assert emulator.requests() == []  # what was refused so asked no model
        said = await client.post("/openai/v1/chat/completions", json=ASKED)
        assert said.json()["choices"][0]["message"]["content"] == "kept"


@pytest.mark.parametrize(
    "step",
    [
        {"behaviour": "many_calls", "many_calls": {"n": 3, **READ}},
        {"behaviour": "many_calls", "many_calls": 3, "calls": [READ]},
        {"many_calls": 3, "calls": [READ]},
    ],
)
async def test_we_18_many_calls_takes_a_number_or_the_whole_call(step: dict[str, Any]) -> None:
    async with Emulator() as emulator, httpx2.AsyncClient(base_url=emulator.url) as client:
        emulator.script([step])
        said = await client.post("/openai/v1/chat/completions", json=ASKED)
        calls = said.json()["choices"][0]["message"]["tool_calls"]
        assert [json.loads(call["function"]["arguments"]) for call in calls] == [
            {"path": "1.txt"}, {"path": "2.txt"}, {"path": "3.txt"},
        ]  # fmt: skip


async def test_we_18_search_with_sources_needs_no_second_word() -> None:
    async with Emulator() as emulator, httpx2.AsyncClient(base_url=emulator.url) as client:
        emulator.script([{"text": "Found.", "search_with_sources": 10}])
        said = await client.post("/openai/v1/responses", json={"model": "m", "input": "hi"})
        text = next(item for item in said.json()["output"] if item["type"] == "message")
        assert len(text["content"][0]["annotations"]) == 10
        assert emulator.hosted == {"search": 1}


async def test_we_19_the_time_of_a_stall_may_stand_beside_it() -> None:
    async with Emulator() as emulator, httpx2.AsyncClient(base_url=emulator.url) as client:
        fault = emulator.fault(stall_at=1, seconds=0.01, keep_alive=True)
        got = await client.post("/openai/v1/chat/completions", json={**ASKED, "stream": True})
        assert ": keep-alive" in got.text and got.text.endswith("data: [DONE]\n\n") and fault.fired == 1


async def test_we_7_no_header_that_carries_a_key_is_logged() -> None:
    keys = {
        "authorization": "Bearer secret-1", "x-api-key": "secret-2", "api-key": "secret-3",
        "x-goog-api-key": "secret-4", "proxy-authorization": "secret-5", "cookie": "secret-6",
        "x-amz-security-token": "secret-7",
    }  # fmt: skip
    async with Emulator() as emulator, httpx2.AsyncClient(base_url=emulator.url) as client:
        sent = {**keys, "anthropic-beta": "some-beta", "anthropic-version": "2023-06-01"}
        await client.post("/openai/v1/chat/completions", json=ASKED, headers=sent)
        log = (await client.get("/_ctl/log")).text
        assert "secret-" not in log and "some-beta" in log and "2023-06-01" in log


@pytest.mark.parametrize(
    "given", [[{"text": "played"}], {"steps": [{"text": "played"}]}], ids=["steps", "script"]
)
async def test_we_18_a_script_file_can_be_posted_as_it_is(given: Any) -> None:
    async with Emulator() as emulator, httpx2.AsyncClient(base_url=emulator.url) as client:
        assert (await client.post("/_ctl/script", json=given)).json() == {"ok": True}
        answer = (await client.post("/openai/v1/chat/completions", json=ASKED)).json()
        assert answer["choices"][0]["message"]["content"] == "played"


@pytest.mark.parametrize("given", [5, "x", {"text": "x"}, {"steps": [], "fro": 1}, [{"calls": 5}]], ids=str)
def test_we_18_a_script_file_that_is_none_is_told_in_one_sentence(
    given: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "script.json").write_text(json.dumps(given))
    with pytest.raises(SystemExit) as ended:
        main(["--script", str(tmp_path / "script.json")])
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert said.err.startswith("SF-USAGE: ") and "Traceback" not in said.err


async def test_we_19_a_long_id_is_asked_for_as_the_table_writes_it() -> None:
    async with Emulator() as emulator, httpx2.AsyncClient(base_url=emulator.url) as client:
        emulator.script([{"calls": [{"name": "read"}]}], then="last")
        for written in ("long 86", "long"):
            fault = {"action": {"id_mode": written}}
            assert (await client.post("/_ctl/fault", json=fault)).status_code == 200
            answer = (await client.post("/openai/v1/chat/completions", json=ASKED)).json()
            assert len(answer["choices"][0]["message"]["tool_calls"][0]["id"]) == 86
        emulator.assert_fired()


async def test_we_19_a_finish_word_without_a_form_on_a_wire_does_not_count_as_fired() -> None:
    async with Emulator() as emulator, httpx2.AsyncClient(base_url=emulator.url) as client:
        for word in ("pause_turn", None):
            fault = emulator.fault(finish=word)
            answer = await client.post("/openai/v1/responses", json={"model": "m", "input": "hi"})
            assert (answer.json()["status"], fault.fired) == ("completed", 0)
            await client.post("/openai/v1/chat/completions", json=ASKED)
            assert fault.fired == 1


def test_we_3_no_url_is_printed_that_no_profile_answers(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--profile", "anthropic", "--wire", "chat"])
    told = capsys.readouterr()
    assert ended.value.code == 2 and told.out == ""
    assert "--profile anthropic speaks anthropic, not chat." in told.err
