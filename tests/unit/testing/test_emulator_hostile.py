"""The emulator as a server: hostile bytes, control paths, its log, and its life as a program."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.error
from pathlib import Path

import pytest

from surefoot.testing.emulator import server
from surefoot.testing.emulator.fault_plan import Fault, FaultNotFired, FaultPlan
from surefoot.testing.emulator.process import EmulatorProcess
from surefoot.testing.emulator.request_log import read_log
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.model import ScriptedModel
from surefoot.testing.sink import post

HOSTILE = [
    b"\x00\xff\xfe garbage\r\n\r\n",
    b"GET\r\n\r\n",
    b"POST /compat/v1/chat/completions HTTP/1.1\r\ncontent-length: -5\r\n\r\n",
    b"POST /compat/v1/chat/completions HTTP/1.1\r\ncontent-length: 9999999999999\r\n\r\n",
    b"POST /compat/v1/chat/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    b"POST /compat/v1/chat/completions HTTP/1.1\r\n bad: header\r\n\r\n",
    b"GET http://[::1 HTTP/1.1\r\n\r\n",
    b"A" * 70_000,
    b"POST /compat/v1/chat/completions HTTP/1.1\r\ncontent-length: 10\r\n\r\nshort",
]
BODIES = [
    b"",
    b"[]",
    b"{",
    b"[" * 100_000,
    b'{"model":"m","messages":[{"role":"tool","tool_call_id":[1],"content":[1,{"type":{}}]}]}',
    b'{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":1,"function":3}]}]}',
    b'{"model":"m","messages":["x"]}',
    b'{"model":{},"messages":{"a":1}}',
    b'{"model":"\\ud800","messages":[{"role":"user","content":"\\ud800"}],"stream":true,"stream_options":3}',
    b'{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"function":{"name":"\\u0000"}}]}',
]


async def _talk(port: int, content: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(content)
        writer.write_eof()
        async with asyncio.timeout(90):
            return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


async def test_we_01_no_bytes_bring_the_server_down() -> None:
    async with Emulator(body_bytes=1_000_000) as emulator:
        for content in HOSTILE:
            answer = await _talk(emulator.port, content)
            assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 413")), content[:60]
        for profile in ("compat", "lenient", "kimi-selfhosted", "vllm"):
            for body in BODIES:
                head = f"POST /{profile}/v1/chat/completions HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n"
                answer = await _talk(emulator.port, head.encode() + body)
                assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 200")), (profile, body[:60])
        assert (await _talk(emulator.port, b"GET /nope HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 404")
        listed = await _talk(emulator.port, b"GET /openai/v1/models HTTP/1.1\r\nconnection: close\r\n\r\n")
        assert b'"scripted"' in listed


async def test_we_05_a_body_over_the_limit_is_refused_before_it_is_read() -> None:
    async with Emulator(body_bytes=100) as emulator:
        head = b"POST /compat/v1/chat/completions HTTP/1.1\r\ncontent-length: 101\r\n\r\n"
        assert (await _talk(emulator.port, head)).startswith(b"HTTP/1.1 413")


async def test_we_19_hostile_headers_leave_as_they_are() -> None:
    async with Emulator() as emulator:
        emulator.fault(status=400, headers={"x-request-id": "a\x07" + "b" * 4096, "retry-after": "3"})
        body = b'{"model":"m","messages":[{"role":"user","content":"x"}]}'
        head = f"POST /compat/v1/chat/completions HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        answer = await _talk(emulator.port, head + body)
        assert b"a\x07" + b"b" * 4096 in answer and b"retry-after: 3" in answer
        emulator.assert_fired()


def test_we_19_a_fault_that_never_fired_fails_the_test_and_a_wrong_one_is_refused() -> None:
    plan = FaultPlan()
    plan.add(Fault({"status": 500}))
    with pytest.raises(FaultNotFired, match="500"):
        plan.assert_fired()
    for wrong in ({"no_such": 1}, {"index_mode": "sideways"}, {}):
        with pytest.raises(ValueError):
            Fault(wrong)
    with pytest.raises(ValueError, match="match keys"):
        Fault({"status": 500}, {"colour": 1})


def _ask(base: str, text: str = "go", session: str = "") -> dict[str, object]:
    return post(f"{base}/chat/completions", {"model": "m", "messages": [{"role": "user", "content": text}]})


def test_we_01_it_runs_as_a_program_with_scripts_faults_and_a_log_that_survives_it(tmp_path: Path) -> None:
    with EmulatorProcess(tmp_path) as emulator:
        base = emulator.base_url("compat")
        emulator.script([{"text": "one"}, {"text": "two"}])
        emulator.fault(status=500, match={"body_contains": "bad"})
        with pytest.raises(urllib.error.HTTPError):
            _ask(base, "bad")
        emulator.assert_fired()
        assert _ask(base)["choices"][0]["message"]["content"] == "one"  # type: ignore[index]
        emulator.wait_for_requests(2)
    entries = emulator.requests()
    assert [(e.sequence, e.status, e.done) for e in entries] == [(1, 500, True), (2, 200, True)]
    assert json.loads(entries[1].body)["messages"][0]["content"] == "go"
    assert len(entries[1].message_shas) == 1 and entries[1].bytes_sent > 0


def test_we_18_the_program_counts_hosted_tools_and_takes_knobs(tmp_path: Path) -> None:
    model = ScriptedModel().searches("found", sources=0).hosts("image", text="made")
    with EmulatorProcess(tmp_path) as emulator:
        emulator.script(model.steps)
        for _ in range(2):
            post(f"{emulator.base_url('openai', wire='responses')}/responses", {"model": "m", "input": "go"})
        assert emulator.hosted() == {"search": 1, "image": 1}
        emulator.set_knobs("openrouter", upstream="mistral")
        broken = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "x"}]
        with pytest.raises(urllib.error.HTTPError):
            post(f"{emulator.base_url('openrouter')}/chat/completions", {"model": "m", "messages": broken})
        first, *_, last = emulator.requests()
        assert first.hosted == {"search": 1} and last.rules == ["MS-04"]


def test_we_07_a_log_with_a_torn_last_line_is_read(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    with EmulatorProcess(tmp_path) as emulator:
        _ask(emulator.base_url())
    path.write_text(path.read_text() + '{"sequence": 2, "at')
    assert [entry.sequence for entry in read_log(path)] == [1]


def test_we_18_the_program_takes_a_script_file_and_ends_on_a_signal(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"text": "from a file"}]))
    command = [
        sys.executable,
        "-m",
        "surefoot.testing.emulator",
        "--profile",
        "openai",
        "--script",
        str(script),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        base = process.stdout.readline().decode().strip()
        assert base.endswith("/openai/v1")
        assert _ask(base)["choices"][0]["message"]["content"] == "from a file"  # type: ignore[index]
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_we_01_whoever_ends_surefoot_emulate_has_ended_the_server(number: signal.Signals) -> None:
    command = [sys.executable, "-c", "from surefoot.surfaces.cli import main; main()", "emulate"]
    with subprocess.Popen([*command, "--profile", "anthropic"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        base = process.stdout.readline().decode().strip()
        assert base.endswith("/anthropic")
        process.send_signal(number)
        assert process.wait(120) == (0 if number == signal.SIGTERM else -signal.SIGKILL)
    with pytest.raises(urllib.error.URLError):
        post(f"{base}/v1/messages", {})


def test_we_01_the_program_dies_with_its_parent(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "surefoot.testing.emulator", "--until-stdin-closes"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=reading) as process:
        assert process.stdout is not None and process.stdout.readline()
        os.close(reading)
        os.close(writing)
        assert process.wait(120) == 0


def test_we_02_the_emulator_shares_no_code_with_what_it_judges() -> None:
    folder = Path(server.__file__).parent
    files = sorted(folder.glob("*.py"))
    assert len(files) > 15
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert not name.startswith("surefoot") or name.startswith("surefoot.testing"), file.name
