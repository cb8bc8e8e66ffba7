"""The client against a real server on loopback: one request, honest limits, nothing leaked."""

from __future__ import annotations

import asyncio
import email.utils
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from surefoot.core.history import AssistantWords, CallAsked, ResultGiven, UserWords
from surefoot.errors import (
    ProviderCredentials,
    ProviderError,
    ProviderNonsense,
    ProviderRefused,
    ProviderUnreachable,
    SettingsError,
)
from surefoot.providers import contracts
from surefoot.providers.asked_waits import retry_after
from surefoot.providers.chat import ChatWire
from surefoot.providers.client import Client
from surefoot.providers.endpoints import Endpoint, EndpointLimits, is_loopback
from surefoot.providers.port import ModelRequest, Reply, TextDelta, ToolSpec

COMPAT = contracts.resolve("compat/chat")
KEY = "sk-very-secret-0123456789"
AMPLE = EndpointLimits(connect_seconds=30.0, first_byte_seconds=30.0, idle_seconds=30.0, total_seconds=60.0)
"""No busy machine reaches one of these; who proves a limit makes that one short, and no other."""


def chunk(finish: str | None = None, **delta: Any) -> bytes:
    return (
        b"data: "
        + json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}).encode()
        + b"\n\n"
    )


DONE = b"data: [DONE]\n\n"
GOOD = chunk(content="hel") + chunk(content="lo") + chunk("stop") + DONE


def head(status: int = 200, *lines: str, length: int | None = None) -> bytes:
    given = [f"HTTP/1.1 {status} X", *lines]
    given.append(f"content-length: {length}" if length is not None else "connection: close")
    return ("\r\n".join(given) + "\r\n\r\n").encode()


@dataclass
class Server:
    """A raw server: hands every request to `answer` and remembers what it saw."""

    answer: Callable[[asyncio.StreamWriter, Server], Awaitable[None]]
    url: str = ""
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    reader: asyncio.StreamReader | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        try:
            first, *rest = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in rest if line)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.requests.append((first, headers, body))
            await self.answer(writer, self)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def until_closed(self) -> None:
        """Wait until the client has closed its side."""
        assert self.reader is not None
        while await self.reader.read(1024):
            pass
        self.closed.set()


@asynccontextmanager
async def serving(answer: Any) -> AsyncIterator[Server]:
    """`answer` is bytes to send, or a coroutine function of writer and server."""

    async def plain(writer: asyncio.StreamWriter, _: Server) -> None:
        writer.write(answer)

    server = Server(plain if isinstance(answer, bytes) else answer)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    async with listening:
        yield server


def endpoint(url: str, **extra: Any) -> Endpoint:
    return Endpoint("desk", url, "chat", "compat/chat", "m", **{"key": lambda: KEY, "limits": AMPLE, **extra})


def request(**extra: Any) -> ModelRequest:
    return ModelRequest("m", "s", (UserWords("t", "hi"),), **extra)


async def ask(url: str, *, on_event: Any = None, req: ModelRequest | None = None, **extra: Any) -> Reply:
    async with Client() as client:
        return await client.send(
            endpoint(url, **extra), ChatWire(), COMPAT, req or request(), on_event=on_event
        )


async def refused(kind: type[ProviderError], answer: Any, **extra: Any) -> ProviderError:
    async with serving(answer) as server:
        with pytest.raises(kind) as caught:
            await ask(server.url, **extra)
    error = caught.value
    for text in (str(error), repr(error.facts), repr(error), repr(endpoint(server.url))):
        assert KEY not in text
    assert len(server.requests) <= 1
    return error


async def test_a_stream_becomes_a_reply_and_its_pieces_are_shown() -> None:
    seen: list[TextDelta] = []
    async with serving(head() + GOOD) as server:
        reply = await ask(server.url, on_event=seen.append)
    assert reply.text == "hello"
    assert [piece.text for piece in seen] == ["hel", "lo"]
    first, headers, body = server.requests[0]
    assert first == "POST /v1/chat/completions HTTP/1.1"
    assert headers["authorization"] == f"Bearer {KEY}"
    assert json.loads(body)["stream"] is True


async def test_a_plain_reply_is_read() -> None:
    body = json.dumps({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}).encode()
    async with serving(head(length=len(body)) + body) as server:
        assert (await ask(server.url, req=request(stream=False))).text == "hi"


async def test_a_server_that_stays_open_after_done_does_not_hold_the_reply() -> None:
    async def linger(writer: asyncio.StreamWriter, server: Server) -> None:
        writer.write(head() + GOOD)
        await server.until_closed()

    async with serving(linger) as server:
        assert (await ask(server.url)).text == "hello"


async def test_a_server_without_a_key_gets_no_authorization() -> None:
    async with serving(head() + GOOD) as server:
        await ask(server.url, key=None)
    assert "authorization" not in server.requests[0][1]


@pytest.mark.parametrize("key", ["", "  ", "sk-a\nb: c", "schlüssel"])
async def test_ux_26_a_key_no_header_can_carry_is_named_without_its_value(key: str) -> None:
    error = await refused(ProviderCredentials, head() + GOOD, key=lambda: key)
    assert "'desk'" in str(error)
    assert not key.strip() or key not in str(error)


async def test_a_refused_connection_is_unreachable() -> None:
    async with serving(b"") as server:
        pass
    with pytest.raises(ProviderUnreachable, match="refused the connection") as caught:
        await ask(server.url)
    assert caught.value.facts["transport_code"] == "refused"
    assert caught.value.facts["transient"]


async def test_a_host_nobody_knows_is_unreachable() -> None:
    with pytest.raises(ProviderUnreachable, match="host name that cannot be found") as caught:
        await ask("http://no-such-host.invalid/v1")
    assert caught.value.facts["transport_code"] == "dns"


@pytest.mark.parametrize(
    "url", ["desk/v1", "ftp://x/v1", "http://[::1/v1", "http://x:99999/v1", "http:///v1"]
)
async def test_a_url_that_is_none_is_named(url: str) -> None:
    with pytest.raises(ProviderUnreachable, match="http:// or https://"):
        await ask(url)


async def test_x_01_a_wrong_key_is_a_matter_of_credentials() -> None:
    error = await refused(ProviderCredentials, head(401, length=0))
    assert error.facts["kind"] == "auth"
    assert error.facts["status"] == 401


async def test_x_04_a_rate_limit_tells_how_long_to_wait() -> None:
    error = await refused(ProviderRefused, head(429, "retry-after: 7", length=0))
    assert error.facts["kind"] == "rate"
    assert error.facts["transient"]
    assert error.facts["retry_after_seconds"] == 7.0


async def test_x_05_an_overload_is_transient_and_is_not_asked_again_here() -> None:
    error = await refused(ProviderUnreachable, head(503, "x-should-retry: false", length=0))
    assert error.facts["transient"]
    assert error.facts["should_retry"] is False


async def test_pr_5_a_redirect_is_followed_by_no_request() -> None:
    async with serving(head() + GOOD) as other:
        error = await refused(ProviderRefused, head(307, f"location: {other.url}/chat/completions", length=0))
        assert error.facts["kind"] == "rejected"
    assert other.requests == []


async def test_pr_16_no_word_of_a_body_is_kept() -> None:
    body = json.dumps({"error": {"message": "the prompt was: hunter2", "code": "some_code"}}).encode()
    error = await refused(ProviderRefused, head(400, "x-request-id: req_1", length=len(body)) + body)
    assert "hunter2" not in str(error) + repr(error.facts)
    assert error.facts["provider_code"] == "some_code"
    assert error.facts["trace_id"] == "req_1"
    assert error.facts["request_path"] == "/v1/chat/completions"
    assert len(error.facts["request_digest"]) == 64


@pytest.mark.parametrize("trace", ["a b", "x" * 4096, "<script>"])
async def test_ux_128_a_hostile_trace_id_is_dropped_whole(trace: str) -> None:
    error = await refused(ProviderRefused, head(400, f"x-request-id: {trace}", length=0))
    assert error.facts["trace_id"] is None


async def test_a_huge_error_body_is_not_read_to_its_end() -> None:
    async def endless(writer: asyncio.StreamWriter, server: Server) -> None:
        writer.write(head(400))
        while True:
            writer.write(b" " * 65536)
            await writer.drain()

    error = await refused(ProviderRefused, endless)
    assert error.facts["kind"] == "upstream_reason_unrecognised"  # cut, so never called opaque


async def test_case_s08_a_connection_cut_in_the_stream_gives_no_reply() -> None:
    error = await refused(ProviderUnreachable, head(length=10_000) + chunk(content="half"))
    assert error.facts["transport_code"] == "cut"
    assert error.facts["streamed"]


async def test_a_connection_closed_before_the_answer_is_told_apart() -> None:
    error = await refused(ProviderUnreachable, b"")
    assert error.facts["transport_code"] == "reset"
    assert not error.facts["streamed"]


async def test_case_s07_a_clean_close_without_a_terminal_event_gives_no_reply() -> None:
    error = await refused(ProviderUnreachable, head() + chunk(content="half"))
    assert error.facts["transport_code"] == "incomplete"


@pytest.mark.parametrize("answer", [b"\x00\x01\x02nonsense", head() + b"<html>", head() + b"data: {oops\n\n"])
async def test_nonsense_is_named_as_such(answer: bytes) -> None:
    error = await refused(ProviderError, answer)
    assert isinstance(error, ProviderNonsense | ProviderUnreachable)


async def hang(writer: asyncio.StreamWriter, server: Server) -> None:
    await server.until_closed()


async def test_a_server_that_never_answers_is_given_up_and_the_limit_is_named() -> None:
    error = await refused(
        ProviderUnreachable, hang, limits=replace(AMPLE, connect_seconds=1.5, first_byte_seconds=0.2)
    )
    assert error.facts["limit"] == "first_byte_seconds"
    assert "first_byte_seconds = 0.2 s" in str(error)


async def test_a_server_that_falls_silent_is_given_up_and_the_limit_is_named() -> None:
    async def stall(writer: asyncio.StreamWriter, server: Server) -> None:
        writer.write(head() + chunk(content="half"))
        await server.until_closed()

    error = await refused(ProviderUnreachable, stall, limits=replace(AMPLE, idle_seconds=0.3))
    assert error.facts["limit"] == "idle_seconds"
    assert error.facts["streamed"]


async def test_a_server_that_never_ends_is_given_up_and_the_limit_is_named() -> None:
    async def drip(writer: asyncio.StreamWriter, server: Server) -> None:
        writer.write(head())
        while not writer.is_closing():
            writer.write(b": ping\n\n")
            await writer.drain()
            await asyncio.sleep(0.01)

    error = await refused(ProviderUnreachable, drip, limits=replace(AMPLE, total_seconds=0.4))
    assert error.facts["limit"] == "total_seconds"


async def test_case_s36_keep_alives_hold_the_idle_limit_off() -> None:
    async def slow(writer: asyncio.StreamWriter, server: Server) -> None:
        writer.write(head())
        until = time.monotonic() + 1.5 * limits.idle_seconds
        while time.monotonic() < until:
            writer.write(b": ping\n\n")
            await writer.drain()
            await asyncio.sleep(0.05)
        writer.write(GOOD)

    limits = replace(AMPLE, idle_seconds=3.0)
    async with serving(slow) as server:
        assert (await ask(server.url, limits=limits)).text == "hello"


async def test_case_s37_a_cancel_closes_the_connection_at_once() -> None:
    began = asyncio.Event()

    async def stall(writer: asyncio.StreamWriter, server: Server) -> None:
        writer.write(head() + chunk(content="half"))
        await server.until_closed()

    async with serving(stall) as server, Client() as client:
        slow = endpoint(server.url, limits=EndpointLimits())
        sending = asyncio.create_task(
            client.send(slow, ChatWire(), COMPAT, request(), on_event=lambda _: began.set())
        )
        await asyncio.wait_for(began.wait(), 90)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        await asyncio.wait_for(server.closed.wait(), 90)


async def test_pr_14_a_request_that_would_fail_is_never_sent() -> None:
    call = CallAsked("cal_1", "att_1", 0, "list", "{}", "call_a")
    asked = AssistantWords(1, "", (call,), "chat", {"role": "assistant"})
    history = (UserWords("t", "x"), asked, ResultGiven(call, "1", False))
    broken = ModelRequest("m", "", history, (ToolSpec("list", "", {}),))
    strict = contracts.resolve("deepseek-v32/chat")  # takes no empty carrier, so no repair helps
    async with serving(head() + GOOD) as server, Client() as client:
        with pytest.raises(ProviderRefused, match="DS-02") as caught:
            await client.send(endpoint(server.url), ChatWire(), strict, broken)
    assert server.requests == []
    assert caught.value.facts["local"]
    assert caught.value.facts["kind"] == "replay_reasoning"


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (404, b"", "rejected"),
        (404, b"<html>not here</html>", "rejected"),
        (405, b"{}", "rejected"),
        (404, b'{"error": {"message": "the moon is wrong"}}', "replay_ids"),
    ],
)
async def test_pr_10_line_16_findings_rename_only_a_refusal_that_gave_a_reason_in_words(
    status: int, body: bytes, kind: str
) -> None:
    call = CallAsked("cal_1", "att_1", 0, "list", "{}", "an id of its own")
    asked = AssistantWords(1, "", (call,), "chat", {"role": "assistant"})
    history = (UserWords("t", "x"), asked, ResultGiven(call, "1", False))
    suspected = ModelRequest("m", "", history, (ToolSpec("list", "", {}),))
    contract = contracts.resolve("vllm/chat")  # which suspects MS-01
    async with serving(head(status, length=len(body)) + body) as server, Client() as client:
        with pytest.raises(ProviderRefused) as caught:
            await client.send(endpoint(server.url), ChatWire(), contract, suspected)
    facts = caught.value.facts
    assert facts["rules"] == ["MS-01"]
    assert (facts["kind"], facts["certainty"]) == (kind, "none" if kind == "rejected" else "probable")


async def test_case_s04_as_many_tokens_as_allowed_is_a_cut() -> None:
    item = {"index": 0, "id": "a", "function": {"name": "list", "arguments": "{}"}}
    usage = b'data: {"choices":[],"usage":{"completion_tokens":9}}\n\n'
    async with serving(head() + chunk(tool_calls=[item]) + chunk("tool_calls") + usage + DONE) as server:
        assert (await ask(server.url, req=request(max_output_tokens=9))).calls[0].cut
        assert not (await ask(server.url, req=request(max_output_tokens=10))).calls[0].cut


async def test_proxies_of_the_environment_never_see_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(head() + GOOD) as proxy, serving(head() + GOOD) as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        monkeypatch.setenv("ALL_PROXY", proxy.url.removesuffix("/v1"))
        await ask(server.url)
        assert proxy.requests == []
        await ask("http://model.invalid/v1")
        assert proxy.requests[0][0] == "POST http://model.invalid/v1/chat/completions HTTP/1.1"


async def test_a_proxy_setting_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "gopher://proxy.invalid:1")
    with pytest.raises(ProviderUnreachable, match="HTTP_PROXY"):
        await ask("http://model.invalid/v1")


@pytest.mark.parametrize("headers", [{"x-team": "a\r\nb: c"}, {"x team": "a"}, {"x-team": "größe"}])
async def test_a_header_that_cannot_be_sent_is_named_without_its_value(headers: dict[str, str]) -> None:
    async with serving(head() + GOOD) as server:
        with pytest.raises(SettingsError, match="'desk'") as caught:
            await ask(server.url, headers=headers)
    assert "b: c" not in str(caught.value)
    assert "größe" not in str(caught.value)
    assert server.requests == []


def test_ux_8_nothing_that_speaks_is_loaded_before_the_first_request() -> None:
    program = (
        "import sys, surefoot.providers.client, surefoot.providers.local, surefoot.runtime.arguments\n"
        "print([name for name in ('httpx2', 'jsonschema', 'xllamacpp') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_loopback_is_told_by_address_not_by_hope() -> None:
    assert all(map(is_loopback, ["127.0.0.1", "127.8.9.1", "::1", "localhost", "a.localhost"]))
    assert not any(map(is_loopback, ["10.0.0.1", "localhost.evil.example", "example.com", "", "::2"]))


def test_pr_5_both_forms_of_retry_after_are_read() -> None:
    now = time.time()
    date = email.utils.formatdate(now + 30, usegmt=True)
    assert retry_after({"retry-after": "3"}, now) == 3.0
    assert retry_after({"retry-after-ms": "1500", "retry-after": "9"}, now) == 1.5
    assert retry_after({"retry-after": date}, now) == pytest.approx(30, abs=1.5)
    assert retry_after({"retry-after": email.utils.formatdate(now - 30, usegmt=True)}, now) == 0.0
    bare = email.utils.formatdate(now + 30, usegmt=True).removesuffix(" GMT")
    assert retry_after({"retry-after": bare}, now) == pytest.approx(30, abs=1.5), "GMT whatever the zone here"
    assert retry_after({"retry-after": "soon"}, now) is None
    assert retry_after({"retry-after": "nan"}, now) is None
    assert retry_after({}, now) is None


def test_an_endpoint_shows_no_credentials_of_its_url() -> None:
    shown = endpoint("http://user:pw@[::1]:8080/v1?token=x").shown_url
    assert shown == "http://[::1]:8080/v1"
