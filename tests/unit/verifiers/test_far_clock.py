"""TR-18: the age of a key by the far side's own clock, seen in the `Date` headers of its answers."""

from __future__ import annotations

import dataclasses
import http.server
import threading
from collections.abc import Iterator, Mapping
from email.utils import formatdate
from typing import Any

import pytest

from surefoot.core.model import Receipt
from surefoot.runtime.tools import observe
from surefoot.verifiers.clock import boot_id, boot_ms
from surefoot.verifiers.http import HttpLook, HttpVerifier, far_clock
from surefoot.verifiers.port import Deadline

LATER = Deadline(1 << 60)
AT = 1_700_000_000_000


class Dated:
    """A far side without effects, whose clock is set by hand."""

    def __init__(self) -> None:
        self.headers: Mapping[str, str] = {}
        self.status = 200
        far = self

        class Asked(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response_only(far.status)
                for name, value in far.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"[]")

            def log_message(self, format: str, *args: Any) -> None:
                del format, args

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Asked)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def date(self, ms: int, **more: str) -> None:
        self.headers = {"Date": formatdate(ms / 1000, usegmt=True), **more}

    def look(self, call: Receipt) -> Mapping[str, Any]:
        url = f"http://127.0.0.1:{self.server.server_port}/effects"
        verifier = HttpVerifier(HttpLook(scope=lambda receipt: "s", by_key=lambda key, receipt: url))
        return observe(verifier, call, LATER, fenced=True).evidence


@pytest.fixture
def far() -> Iterator[Dated]:
    made = Dated()
    yield made
    made.server.shutdown()
    made.server.server_close()
    made.thread.join(5)


def call(**fields: Any) -> Receipt:
    return Receipt("ses_1", "trn_1", "cal_1", "att_1", 0, tool="t", idempotency_key="k", scope="s", **fields)


def inspected(receipt: Receipt, evidence: Mapping[str, Any]) -> Receipt:
    return dataclasses.replace(receipt, inspection={"evidence": dict(evidence)})


def test_tr_18_an_answer_of_the_same_boot_ties_the_far_clock_to_our_own(far: Dated) -> None:
    far.date(AT)
    started = call(started_boot=boot_ms() - 5000, owner={"bootId": boot_id()})
    clock = far.look(started)["farClock"]
    assert clock["dateMs"] == AT and clock["bootId"] == boot_id()
    assert 5000 <= clock["keyAgeMs"] < 35_000


def test_tr_18_after_a_restart_the_age_is_the_difference_of_two_dates(far: Dated) -> None:
    before = {"farClock": {"dateMs": AT, "keyAgeMs": 5000, "bootId": "an older boot", "bootMs": 1}}
    old = inspected(call(started_boot=1, owner={"bootId": "an older boot"}), before)
    far.date(AT + 60_000)
    clock = far.look(old)["farClock"]
    assert clock["keyAgeMs"] == 5000 + 60_000 + 1000  # a header tells whole seconds
    assert clock["bootId"] == boot_id()


@pytest.mark.parametrize("what", ["first seen after the restart", "a clock that went back", "no date"])
def test_tr_18_without_two_dates_nothing_is_told(far: Dated, what: str) -> None:
    before = {"farClock": {"dateMs": AT, "keyAgeMs": 5000, "bootId": "an older boot", "bootMs": 1}}
    old = call(started_boot=1, owner={"bootId": "an older boot"})
    if what != "first seen after the restart":
        old = inspected(old, before)
    if what != "no date":
        far.date(AT - 5000)
    told = far.look(old).get("farClock")
    assert told == (before["farClock"] if what == "no date" else None)


def test_tr_18_the_copy_of_a_cache_is_no_clock(far: Dated) -> None:
    far.date(AT, Age="30")
    assert "farClock" not in far.look(call(started_boot=boot_ms(), owner={"bootId": boot_id()}))
    assert far_clock(call(), None) is None
