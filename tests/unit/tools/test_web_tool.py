"""The `http` tool against real sockets: what an end means is told by what was sent (TR-39, TR-40, EC-17)."""

from __future__ import annotations

import contextlib
import email.utils
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.model import EffectClass, EffectTrace, Receipt, State
from surefoot.runtime.tools import LiveAttempt, Outcome, Place, observe, scope_of
from surefoot.testing.sink import Sink
from surefoot.tools.processes.kernel import boot_ms
from surefoot.tools.web import HttpService, http_tool
from surefoot.verifiers.port import Deadline

PLACE = Place(Path("/nowhere"))


async def _nothing(keys: Any) -> None:
    return None


def run(deadline: int | None = None, *, tool: Any = None, **arguments: Any) -> Outcome:
    live = LiveAttempt(
        "ses_1", "trn_1", "cal_1", "att_1", "sf1-key", deadline, PLACE, None, _nothing,
        lambda outcome, source: None, lambda text: None, {},
    )  # fmt: skip
    body = (tool or http_tool()).sync_body
    assert body is not None
    answer = body(live, arguments)
    assert isinstance(answer, Outcome)
    return answer


class Scripted:
    """A listener that answers each connection with the next bytes of a script, and keeps what it was sent."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while self.answers:
            answer = self.answers.pop(0)
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            if not self.answers:
                self._listener.close()  # whoever comes later is refused
            with connection:
                connection.settimeout(10)
                self.requests.append(_whole(connection))
                if answer is not None:
                    connection.sendall(answer.replace(b"{port}", str(self.port).encode()))

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes an accept that waits
        self._listener.close()
        self._thread.join(10)


def _whole(connection: socket.socket) -> bytes:
    content = b""
    while b"\r\n\r\n" not in content:
        piece = connection.recv(65536)
        content += piece
        if not piece or content[:1] == b"\x16":
            return content  # the line was closed, or somebody speaks TLS to us
    head, _, body = content.partition(b"\r\n\r\n")
    length = next(
        (int(x.split(b":")[1]) for x in head.split(b"\r\n") if x.lower().startswith(b"content-length")), 0
    )
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def reply(status: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@pytest.fixture
def served() -> Iterator[Callable[..., Scripted]]:
    made: list[Scripted] = []

    def make(*answers: bytes | None) -> Scripted:
        made.append(Scripted(*answers))
        return made[-1]

    yield make
    for one in made:
        one.close()


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


# Before any byte --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_tr_40_a_refused_connection_failed_and_left_nothing(method: str) -> None:
    ended = run(method=method, url=f"http://127.0.0.1:{closed_port()}/x")
    assert (ended.state, ended.effect_trace) == (State.FAILED, EffectTrace.NONE)


@pytest.mark.parametrize("url", ["http://host.invalid./x", "http://127.0.0.1:99999/x", "http:///x"])
def test_tr_40_a_name_or_port_that_leads_nowhere_failed_and_left_nothing(url: str) -> None:
    ended = run(method="POST", url=url, json={})
    assert (ended.state, ended.effect_trace) == (State.FAILED, EffectTrace.NONE)


def test_tr_40_a_failed_handshake_left_nothing(served: Callable[..., Scripted]) -> None:
    plain = served(reply("200 OK"))
    ended = run(method="POST", url=f"https://127.0.0.1:{plain.port}/x", json={})
    assert (ended.state, ended.effect_trace) == (State.FAILED, EffectTrace.NONE)


def test_tr_175_past_the_deadline_the_first_byte_is_not_sent(tmp_path: Path) -> None:
    with Sink(tmp_path) as sink:
        ended = run(boot_ms() - 1, method="POST", url=f"{sink.url}/effect", json={"label": "x"})
        assert (ended.state, ended.reason, sink.count()) == (State.FAILED, "never_ran", 0)


# After a byte left ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer", [None, b"HTTP/1.1 2", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf"]
)
def test_tr_40_a_cut_reply_is_unknown(served: Callable[..., Scripted], answer: bytes | None) -> None:
    ended = run(method="POST", url=served(answer).url + "/x", json={})
    assert (ended.state, ended.reason) == (State.UNKNOWN, "connection_lost")


def test_tr_40_an_effect_whose_reply_was_dropped_is_unknown_and_was_made(tmp_path: Path) -> None:
    with Sink(tmp_path) as sink:
        sink.switch(reply="drop")
        ended = run(method="POST", url=f"{sink.url}/effect", json={"label": "x"})
        assert (ended.state, sink.count()) == (State.UNKNOWN, 1)
        assert sink.effects()[0]["key"] == "sf1-key", "TR-16: the far side was given our key"


def test_tr_40_a_303_to_a_closed_port_is_unknown_where_it_is_followed(
    served: Callable[..., Scripted],
) -> None:
    leading = served(reply("303 See Other", b"", f"Location: http://127.0.0.1:{closed_port()}/y"))
    ended = run(method="GET", url=leading.url + "/x")
    assert (ended.state, ended.reason) == (State.UNKNOWN, "connection_lost")


def test_tr_40_a_307_whose_second_request_is_refused_is_unknown(served: Callable[..., Scripted]) -> None:
    ended = run(method="POST", url=served(reply("307 Again", b"", "Location: /y")).url + "/x", json={})
    assert (ended.state, ended.reason) == (State.UNKNOWN, "connection_lost")


@pytest.mark.parametrize("status", ["500 Oops", "502 Bad", "503 Later", "408 Slow"])
def test_tr_39_a_status_that_says_the_reply_was_lost_is_unknown_for_a_write(
    served: Callable[..., Scripted], status: str
) -> None:
    posted = run(method="POST", url=served(reply(status)).url, json={})
    assert (posted.state, posted.reason) == (State.UNKNOWN, "connection_lost")
    deleted = run(method="DELETE", url=served(reply(status)).url)
    assert deleted.state is State.UNKNOWN
    for method in ("GET", "PUT"):
        again = run(method=method, url=served(reply(status)).url)
        assert again.state is State.FAILED
        assert again.transient or status.startswith("500"), "what passes by itself may be tried again"


def test_tr_39_an_answer_that_refuses_is_failed_with_its_trace_left_to_the_class(
    served: Callable[..., Scripted],
) -> None:
    ended = run(method="POST", url=served(reply("422 No", b"bad amount")).url, json={})
    assert (ended.state, ended.effect_trace, ended.text) == (State.FAILED, None, "422\nbad amount")


def test_tr_18_our_own_key_still_in_progress_is_unknown(served: Callable[..., Scripted]) -> None:
    tool = http_tool([HttpService("127.0.0.1", in_progress_status=[409])])
    ended = run(tool=tool, method="POST", url=served(reply("409 Busy")).url, json={})
    assert (ended.state, ended.reason) == (State.UNKNOWN, "declared")
    assert run(method="POST", url=served(reply("409 Busy")).url, json={}).state is State.FAILED


# Redirects and headers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 Other"])
def test_ec_17_no_redirect_of_a_write_is_followed_by_itself(
    served: Callable[..., Scripted], status: str
) -> None:
    there = served(reply("200 OK"))
    first = served(reply(status, b"", f"Location: {there.url}/y"))
    ended = run(method="POST", url=first.url, json={})
    assert (ended.state, ended.text, there.requests) == (State.SUCCEEDED, status[:3], [])


def test_ec_17_307_and_308_are_followed_inside_the_origin_alone(served: Callable[..., Scripted]) -> None:
    for status in ("307 Again", "308 Again"):
        inside = served(reply(status, b"", "Location: /y"), reply("200 OK", b"made"))
        assert run(method="POST", url=inside.url + "/x", json={"n": 1}).text == "200\nmade"
        first, second = inside.requests
        assert second.startswith(b"POST /y ") and first.split(b"\r\n\r\n")[1] == second.split(b"\r\n\r\n")[1]
        there = served(reply("200 OK"))
        outside = served(reply(status, b"", f"Location: {there.url}/y"))
        assert run(method="POST", url=outside.url, json={}).text == status[:3] and there.requests == []


def test_ec_17_a_read_follows_and_takes_no_credentials_to_another_origin(
    served: Callable[..., Scripted],
) -> None:
    there = served(reply("200 OK", b"here"))
    first = served(reply("302 Found", b"", f"Location: {there.url}/y"))
    ended = run(
        method="GET", url=first.url, headers={"Authorization": "Bearer s3cret", "Accept": "text/plain"}
    )
    assert ended.text == "200\nhere"
    assert b"s3cret" in first.requests[0] and b"s3cret" not in there.requests[0]
    assert b"Accept: text/plain" in there.requests[0]


def test_tr_16_a_write_carries_our_key_whatever_the_model_wrote_and_a_read_carries_none(
    served: Callable[..., Scripted],
) -> None:
    server = served(reply("200 OK"), reply("200 OK"))
    run(method="POST", url=server.url, json={}, headers={"idempotency-key": "forged", "Host": "evil"})
    run(method="GET", url=server.url)
    posted, got = server.requests
    assert b"Idempotency-Key: sf1-key" in posted and b"forged" not in posted and b"evil" not in posted
    assert b"dempotency" not in got


def test_ec_17_and_18_the_class_comes_from_the_request_and_the_owners_declaration() -> None:
    tool = http_tool([HttpService("pay.example", key_lifetime_seconds=3600)])
    effect: Any = tool.effect

    def kind(**arguments: Any) -> EffectClass:
        return effect({"url": "https://pay.example/x", **arguments}, PLACE).effect_class

    assert kind(method="GET") is EffectClass.READ_ONLY
    assert kind(method="GET", json={}) is EffectClass.UNKNOWN
    assert kind(method="PUT", json={}) is EffectClass.IDEMPOTENT_WRITE
    assert kind(method="DELETE") is EffectClass.NON_IDEMPOTENT
    assert kind(method="POST", json={}) is EffectClass.IDEMPOTENT_WRITE
    assert kind(method="POST", json={}, url="https://other.example/x") is EffectClass.UNKNOWN


def test_tr_109_a_put_is_looked_up_by_reading_its_address_and_a_post_needs_its_owners_lookup(
    tmp_path: Path,
) -> None:
    tool = http_tool()
    with Sink(tmp_path) as sink:
        sink.switch(reply="drop")
        asked = {"method": "PUT", "url": f"{sink.url}/item/ada", "json": {"name": "Ada"}}
        assert run(**asked).state is State.UNKNOWN
        call = Receipt("ses_1", "trn_1", "cal_1", "att_1", 0, tool="http", arguments=json.dumps(asked))
        scope, notes = scope_of(tool, call)
        assert notes == () and scope == f"{sink.url}/item/ada"
        verifier = tool.verifier_for(call)
        assert verifier is not None
        stored = Receipt(
            "ses_1", "trn_1", "cal_1", "att_1", 0, tool="http", arguments=json.dumps(asked), scope=scope
        )
        assert observe(verifier, stored, Deadline(1 << 60), fenced=True).state == "satisfied"
        posted = Receipt("s", "t", "c", "a", 0, arguments=json.dumps({**asked, "method": "POST"}))
        assert tool.verifier_for(posted) is None


@pytest.mark.parametrize(
    ("told", "least", "most"),
    [
        ("7", 7, 7),
        ("1.5", 1.5, 1.5),
        (email.utils.formatdate(4e9, usegmt=True), 1e6, 4e9),
        ("Thu, 01 Jan 1970 00:00:01 GMT", 0, 0),
    ],
)
def test_tr_164_a_wait_is_read_in_both_forms_of_retry_after(told: str, least: float, most: float) -> None:
    busy = b"HTTP/1.1 503 Busy\r\nRetry-After: " + told.encode() + b"\r\nContent-Length: 0\r\n\r\n"
    peer = Scripted(busy)
    with contextlib.closing(peer):
        outcome = run(method="GET", url=peer.url)
    assert outcome.transient and outcome.retry_after_seconds is not None
    assert least <= outcome.retry_after_seconds <= most
