"""TR-186, step F4, lost connection, and cases of family H: what our own transport knows of the bytes it sent.

The `http` tool is offered by a setting of its own. Nothing is proven by an error's name: only that
no byte of the request left proves that nothing was done.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from surefoot.testing.crash import Ended
from surefoot.testing.kills import TELLS, Site
from surefoot.testing.model import call

OFFERED = {
    "tools.http.offered": True,
    "limits.ladder_retries_per_call": 1,
    "limits.ladder_retries_per_turn": 1,
}


def told(ended: Ended) -> list[tuple[str, str | None]]:
    return [(one["state"], one["reason"]) for one in ended.report["receipts"]]


def post(site: Site, url: str) -> dict[str, Any]:
    return call("http", method="POST", url=url, json={"label": site.label})


def effects(site: Site) -> int:
    return site.equipment.sink.count(site.label)


def sink_service(site: Site, **declared: Any) -> dict[str, Any]:
    """The sink as a far side that the owner has described."""
    sink = site.equipment.sink
    keys = {"host": "127.0.0.1", "lookup": f"{sink.url}/effects?key={{key}}", "commit_window_seconds": 0.01}
    keys |= {"lookup_lag_seconds": 0.01, **declared}
    return OFFERED | {f"tools.http.services.sink.{name}": value for name, value in keys.items()}


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@contextmanager
def breaking(answer: Callable[[socket.socket], None]) -> Iterator[tuple[str, list[int]]]:
    """A server whose lines end as `answer` ends them; it counts them."""
    listener, lines = socket.create_server(("127.0.0.1", 0)), list[int]()

    def serve() -> None:
        while True:
            try:
                line, _ = listener.accept()
            except OSError:
                return
            lines.append(1)
            with line:
                answer(line)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/effect", lines
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


def request(line: socket.socket) -> str:
    """A whole request; a client may send its head and its body apart, and what is not read resets the line."""
    heard = b""
    while not (more := heard.partition(b"\r\n\r\n"))[1]:
        heard += line.recv(1 << 16)
    length = int(heard.lower().partition(b"content-length:")[2].partition(b"\r")[0] or b"0")
    while len(heard) < len(more[0]) + 4 + length:
        heard += line.recv(1 << 16)
    return heard.decode()


def reset(line: socket.socket) -> None:
    line.recv(1)  # a reset before the first byte is one of those that are not sent
    reset_at_close(line)


def reset_at_close(line: socket.socket) -> None:
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def read_some(line: socket.socket) -> None:
    line.recv(1)


def read_whole(line: socket.socket) -> None:
    request(line)


def half_an_answer(line: socket.socket) -> None:
    request(line)
    line.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{")


@pytest.mark.parametrize("how", ["closed port", "no such host", "no handshake"])
def test_tr_186_f4_no_byte_sent_by_our_own_transport_is_failed_and_left_nothing(site: Site, how: str) -> None:
    url = {
        "closed port": f"http://127.0.0.1:{closed_port()}/effect",
        "no such host": "http://nowhere.invalid/effect",
        "no handshake": site.equipment.sink.url.replace("http:", "https:") + "/effect",
    }[how]
    site.script({"calls": [post(site, url)]}, {**TELLS, "calls": [post(site, url)]}, TELLS)
    ended = site.run(prompts=("go",), flags=OFFERED)
    for receipt in ended.report["receipts"]:
        assert (receipt["state"], receipt["errorKind"], receipt["effectTrace"]) == (
            "failed",
            "not_sent",
            "none",
        )
    calls = {one["callId"] for one in ended.report["receipts"]}
    assert "was not sent" in ended.report["said"][1] and len(calls) == 2, "nothing is fenced"
    assert told(site.again()) == told(ended) and effects(site) == 0


@pytest.mark.parametrize("how", [reset, read_some, read_whole, half_an_answer])
def test_tr_186_f4_no_byte_sent_is_not_claimed_of_a_line_that_broke_later(
    site: Site, how: Callable[[socket.socket], None]
) -> None:
    with breaking(how) as (url, lines):
        site.script({"calls": [post(site, url)]}, {**TELLS, "calls": [post(site, url)]}, TELLS)
        ended = site.run(prompts=("go",), flags=OFFERED)
    assert told(ended) == [("unknown", "connection_lost"), ("not_started", "fenced")] and len(lines) == 1
    assert told(site.again(verify=False)) == told(ended)


# Family H -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("looks", "found"), [(True, "present"), (False, "unknown")])
def test_case_h01_a_lost_reply_is_looked_up_by_its_key_where_the_far_side_offers_it(
    site: Site, looks: bool, found: str
) -> None:
    site.equipment.sink.switch(reply="drop", look_up=looks)
    site.script({"calls": [post(site, f"{site.equipment.sink.url}/effect")]}, TELLS)
    ended = site.run(prompts=("go",), flags=sink_service(site))
    site.equipment.sink.switch(reply="now")
    assert told(ended) == [("unknown", "connection_lost")]
    opened = site.again(flags=sink_service(site), actions=({"action": "inspect", "attemptId": "open"},))
    (receipt,) = opened.report["receipts"]
    (effect,) = site.equipment.sink.effects(site.label)
    assert receipt["inspection"]["state"] == found and effect["key"] == receipt["idempotencyKey"]
    assert opened.report["open"] == ([] if looks else [receipt["attemptId"]])


def test_case_h01_a_request_that_never_arrived_is_told_apart_from_a_lost_reply(site: Site) -> None:
    site.script({"calls": [post(site, f"http://127.0.0.1:{closed_port()}/effect")]}, TELLS)
    ended = site.run(prompts=("go",), flags=sink_service(site))
    found = {(one["state"], one["effectTrace"]) for one in ended.report["receipts"]}
    assert found == {("failed", "none")} and ended.report["open"] == []


LIVES = {"key_lifetime_seconds": 3600}


@pytest.mark.parametrize(
    ("declared", "keys", "retried"),
    [
        (LIVES, "honour", True),
        ({"key_lifetime_seconds": 0.001}, "expire", False),
        ({}, "honour", False),  # nobody said that it keeps keys: nothing rests on them
    ],
    ids=["kept", "expired", "undeclared"],
)
def test_case_h02_whether_a_lost_reply_is_asked_for_again_follows_what_is_declared_of_keys(
    site: Site, declared: dict[str, Any], keys: str, retried: bool
) -> None:
    sink = site.equipment.sink
    flags = {**sink_service(site, **declared)}
    del flags["tools.http.services.sink.lookup"]
    sink.switch(reply="drop", keys="honour")
    asked = sink.state()["requests"]
    site.script({"calls": [post(site, f"{sink.url}/effect")]}, TELLS)
    ended = site.run(prompts=("go",), flags=flags)
    sink.switch(reply="now")
    if keys == "expire":
        sink.expire_keys()
    resumed = site.again(flags=flags, carry_out=True, go_on=True)
    states = [one["state"] for one in ended.report["receipts"]]
    assert states == (["unknown", "succeeded"] if retried else ["unknown"])
    assert sink.state()["requests"] - asked == 1 + retried and effects(site) == 1
    assert (resumed.report["open"] == []) is retried


@pytest.mark.parametrize("accepts", [True, False])
def test_case_h02_after_a_failure_the_same_key_is_used_again_only_where_it_is_taken(
    site: Site, accepts: bool
) -> None:
    keys: list[str] = []

    def busy(line: socket.socket) -> None:
        asked = request(line).lower()
        keys.append(asked.partition("idempotency-key: ")[2].partition("\r")[0])
        status = "503 Busy" if len(keys) == 1 else "200 OK"
        line.sendall(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())

    with breaking(busy) as (url, lines):
        site.script({"calls": [post(site, url)]}, TELLS)
        ended = site.run(prompts=("go",), flags=sink_service(site, **LIVES, key_after_failure=accepts))
    assert len(lines) == len(keys) == 1 + accepts and len(set(keys)) == 1
    assert ended.report["receipts"][-1]["state"] == ("succeeded" if accepts else "failed")


@pytest.mark.parametrize("status", ["303 See Other", "307 Temporary Redirect"])
def test_case_h05_an_effect_and_then_a_redirect_that_leads_nowhere_is_never_told_as_not_sent(
    site: Site, status: str
) -> None:
    """The far side acts and sends the client elsewhere: to a dead port, or to a line that breaks."""
    dead, acted = closed_port(), list[int]()

    def acts(line: socket.socket) -> None:
        request(line)
        if acted:
            return reset_at_close(line)
        acted.append(1)
        where = "/again" if status.startswith("307") else f"http://127.0.0.1:{dead}/"
        head = f"HTTP/1.1 {status}\r\nlocation: {where}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        return line.sendall(head.encode())

    with breaking(acts) as (url, lines):
        site.script({"calls": [post(site, url)]}, TELLS)
        ended = site.run(prompts=("go",), flags=OFFERED)
    (receipt,) = ended.report["receipts"]
    assert acted and receipt["effectTrace"] != "none" and "not sent" not in ended.report["said"][1]
    assert receipt["state"] == ("unknown" if status.startswith("307") else "succeeded")
    assert len(lines) == (2 if status.startswith("307") else 1), "a write follows no redirect to elsewhere"
