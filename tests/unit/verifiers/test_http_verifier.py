"""Requests looked up afterwards at a real receiver process: the row `http` of TR-109, every column."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from surefoot.core.model import EffectClass, Grade, Receipt
from surefoot.runtime.inspection import map_observation
from surefoot.runtime.tools import observe
from surefoot.testing.sink import Sink, post
from surefoot.verifiers.clock import boot_id, boot_ms, machine_id, since_end_ms
from surefoot.verifiers.http import HttpLook, HttpVerifier, Reader, Reply
from surefoot.verifiers.port import Deadline, EffectVerifier, Observation, WriteAttempted

KEY = "sf1-abc"
LATER = Deadline(1 << 60)


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[Sink]:
    with Sink(tmp_path) as made:
        yield made


def call(**fields: Any) -> Receipt:
    known = {"tool": "pay", "idempotency_key": KEY, "scope": "shop/7", "executor": {"state": "ended"}}
    return Receipt("ses_1", "trn_1", "cal_1", "att_1", 0, **{**known, **fields})


def by_key(sink: Sink, **more: Any) -> HttpLook:
    known: dict[str, Any] = {
        "by_key": lambda key, receipt: f"{sink.url}/effects?key={quote(key)}",
        "commit_window_seconds": 5.0,
        "lookup_lag_seconds": 2.0,
    }
    return HttpLook(scope=lambda receipt: "shop/7", **{**known, **more})


def seen(
    look: HttpLook, *, ms: int | None = 60_000, fenced: bool = True, deadline: Deadline = LATER
) -> Observation:
    verifier = HttpVerifier(look, since_end=lambda receipt: ms)
    return observe(verifier, call(), deadline, fenced=fenced)


def pay(sink: Sink, key: str = KEY, label: str = "x") -> None:
    post(f"{sink.url}/effect", {"label": label, "key": key})


def put(sink: Sink, name: str, content: bytes) -> None:
    request = urllib.request.Request(f"{sink.url}/item/{name}", content, method="PUT")
    urllib.request.urlopen(request, timeout=90).close()


def test_the_http_verifier_fits_the_port_looks_far_and_only_reads() -> None:
    verifier: EffectVerifier = HttpVerifier(HttpLook(scope=lambda receipt: "s"))
    assert (verifier.name, verifier.far) == ("http", True)
    assert all(kind is EffectClass.READ_ONLY for _, kind in HttpVerifier.operations)


# Present ------------------------------------------------------------------------------------------


def test_tr_109_an_effect_listed_under_its_key_is_present_with_proof(sink: Sink) -> None:
    pay(sink)
    found = seen(by_key(sink), fenced=False)
    assert (found.state, found.grade) == ("present", Grade.PROOF)
    assert map_observation(found).proven and found.evidence["item"]["key"] == KEY


def test_tr_109_a_reply_that_was_cut_is_found_all_the_same(sink: Sink) -> None:
    sink.switch(reply="drop")
    with pytest.raises(OSError):
        pay(sink)
    assert seen(by_key(sink)).state == "present"


@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_tr_109_all_pages_are_read(sink: Sink, size: int) -> None:
    sink.switch(page=size)
    for number in range(6):
        pay(sink, key=f"other-{number}")
    everything = by_key(
        sink,
        by_key=lambda key, receipt: f"{sink.url}/effects",
        is_it=lambda item, key, receipt: item["key"] == key,
    )
    absent = seen(everything)
    assert absent.state == "absent" and absent.evidence["pages"] == {0: 1, 1: 6, 2: 3, 3: 2}[size]
    pay(sink)
    assert seen(everything).state == "present"


def test_tr_109_an_object_under_an_id_of_our_own_is_present(sink: Sink) -> None:
    look = by_key(
        sink, by_key=lambda key, receipt: f"{sink.url}/item/{key}", is_it=lambda item, key, receipt: True
    )
    put(sink, KEY, b'{"n": 1}')
    assert (seen(look).state, seen(look).grade) == ("present", Grade.PROOF)


# Absent and fenced ----------------------------------------------------------------------------------


def test_tr_109_nothing_under_the_key_past_window_and_lag_is_absent_and_fenced(sink: Sink) -> None:
    pay(sink, key="sf1-other")
    found = seen(by_key(sink))
    assert (found.state, found.grade, found.fenced) == ("absent", Grade.PROOF, True)


@pytest.mark.parametrize(
    ("ms", "fenced", "more", "reason"),
    [
        (60_000, False, {}, "not_fenced"),
        (None, True, {}, "end_unknown"),
        (4_999, True, {}, "commit_window_open"),
        (6_999, True, {}, "lookup_lag_open"),
        (60_000, True, {"commit_window_seconds": None}, "no_commit_window"),
        (60_000, True, {"lookup_lag_seconds": None}, "no_lookup_lag"),
    ],
)
def test_tr_109_without_window_lag_or_fence_nothing_found_is_no_proof(
    sink: Sink, ms: int | None, fenced: bool, more: dict[str, Any], reason: str
) -> None:
    found = seen(by_key(sink, **more), ms=ms, fenced=fenced)
    assert (found.state, found.grade, found.fenced, found.reason) == ("absent", Grade.STRONG, False, reason)
    assert map_observation(found).state == "unknown"


def test_tr_109_a_key_the_far_side_refuses_fences_without_any_window(sink: Sink) -> None:
    sink.switch(keys="refuse_after_failure", fail=1)
    with pytest.raises(urllib.error.HTTPError):
        pay(sink)
    look = by_key(
        sink, commit_window_seconds=None, refusal=lambda key, receipt: f"{sink.url}/keys?key={quote(key)}"
    )
    found = seen(look, fenced=False, ms=None)
    assert (found.state, found.grade, found.fenced) == ("absent", Grade.PROOF, True)
    with pytest.raises(urllib.error.HTTPError):
        pay(sink)
    assert sink.count() == 0, "what was called fenced indeed cannot commit"
    sink.switch(keys="honour")
    assert seen(look, fenced=False).reason == "not_fenced"


def test_tr_109_a_404_counts_only_when_a_neighbour_can_be_read(sink: Sink) -> None:
    def look(neighbour: bool = True) -> HttpLook:
        return by_key(
            sink,
            by_key=lambda key, receipt: f"{sink.url}/item/{key}",
            is_it=lambda item, key, receipt: True,
            neighbour=(lambda receipt: f"{sink.url}/item/other") if neighbour else None,
        )

    assert seen(look()).reason == "not_found_unconfirmed", "no object of the collection can be read"
    put(sink, "other", b"{}")
    assert (seen(look()).state, seen(look()).grade, seen(look()).fenced) == ("absent", Grade.PROOF, True)
    assert seen(look(neighbour=False)).reason == "not_found_unconfirmed"
    put(sink, KEY, b"{}")
    sink.switch(items="masked")
    assert seen(look()).reason == "not_found_unconfirmed", "it is there, and we are not let see it"
    sink.switch(items="shown")
    assert seen(look()).state == "present"


# Injected wrong answers and late commits --------------------------------------------------------------


def test_tr_109_a_far_side_that_overlooks_the_filter_proves_nothing(sink: Sink) -> None:
    pay(sink, key="sf1-somebody")
    everything = by_key(sink, by_key=lambda key, receipt: f"{sink.url}/effects?ignored={key}")
    found = seen(everything)
    assert (found.state, found.reason) == ("unknown", "lookup_not_by_key")


def test_tr_109_a_late_commit_is_never_called_absent_and_fenced_before_its_window_is_over(sink: Sink) -> None:
    sink.switch(commit="late")
    pay(sink)
    early = seen(by_key(sink), ms=1_000)
    assert (early.state, early.fenced) == ("absent", False)
    sink.release()
    for _ in range(200):
        if sink.count():
            break
        threading.Event().wait(0.02)
    assert seen(by_key(sink)).state == "present"


def test_tr_109_a_window_that_runs_out_while_pages_are_read_was_open_when_they_were_listed(
    sink: Sink,
) -> None:
    since_end = [4_000]

    def slowly(key: str, receipt: Receipt) -> str:
        since_end[0] = 60_000  # the far side takes its time
        return f"{sink.url}/effects?key={quote(key)}"

    verifier = HttpVerifier(by_key(sink, by_key=slowly), since_end=lambda receipt: since_end[0])
    found = observe(verifier, call(), LATER, fenced=True)
    assert (found.grade, found.fenced, found.reason) == (Grade.STRONG, False, "commit_window_open")
    assert observe(verifier, call(), LATER, fenced=True).fenced is True


def test_tr_109_an_effect_that_came_between_the_look_and_the_refusal_is_found(sink: Sink) -> None:
    """A far side refuses a key that was used up, too: what was not listed a moment before may be by then."""

    def meanwhile(key: str, receipt: Receipt) -> str:
        pay(sink)
        return f"{sink.url}/keys?key={quote(key)}"

    look = by_key(sink, commit_window_seconds=None, refusal=meanwhile, refused=lambda value: True)
    assert (seen(look).state, seen(look).grade) == ("present", Grade.PROOF)


@pytest.mark.parametrize("more", [{"has_more": True}, {"next": "/effects?page=2"}, {"nextPageToken": "abc"}])
def test_tr_109_a_page_that_speaks_of_further_ones_in_its_own_way_is_not_all_pages(
    sink: Sink, more: dict[str, Any]
) -> None:
    look = by_key(
        sink,
        by_key=lambda key, receipt: f"{sink.url}/item/list",
        is_it=lambda item, key, receipt: item.get("key") == key,
    )
    put(sink, "list", json.dumps({"items": [{"key": "other"}], **more}).encode())
    assert (seen(look).state, seen(look).reason) == ("unknown", "pages_unread")
    put(sink, "list", json.dumps({"items": [{"key": "other"}], **dict.fromkeys(more)}).encode())
    assert (seen(look).state, seen(look).grade) == ("absent", Grade.PROOF)
    put(sink, "list", json.dumps({"items": [{"key": KEY}], **more}).encode())
    assert (seen(look).state, seen(look).grade) == ("present", Grade.PROOF)


def test_tr_109_a_lookup_that_lags_is_waited_for(sink: Sink) -> None:
    pay(sink)
    sink.switch(list="behind")
    hidden = seen(by_key(sink), ms=6_000)
    assert (hidden.state, hidden.fenced, hidden.reason) == ("absent", False, "lookup_lag_open")
    sink.switch(list="whole")
    assert seen(by_key(sink)).state == "present"


@pytest.mark.parametrize(
    ("path", "reason"),
    [("/nowhere", "not_found_unconfirmed"), ("/count", "lookup_not_by_key"), ("/state", "lookup_not_by_key")],
)
def test_tr_109_a_wrong_address_is_unknown(sink: Sink, path: str, reason: str) -> None:
    look = by_key(sink, by_key=lambda key, receipt: f"{sink.url}{path}")
    assert (seen(look).state, seen(look).reason) == ("unknown", reason)


def test_tr_109_a_far_side_that_is_away_or_slow_is_unknown(sink: Sink, tmp_path: Path) -> None:
    look = by_key(sink)
    late = seen(look, deadline=Deadline(boot_ms() - 1))
    assert (late.state, late.reason) == ("unknown", "verifier_timeout")
    sink.__exit__()
    assert (seen(look).state, seen(look).reason) == ("unknown", "far_side_unreachable")


def test_tr_109_pages_that_lead_in_a_circle_are_unread(sink: Sink) -> None:
    look = by_key(sink, next_page=lambda reply: f"/effects?key={KEY}")
    assert seen(look).reason == "pages_unread"


# PUT ------------------------------------------------------------------------------------------------


def test_tr_109_a_get_that_equals_what_was_put_is_a_satisfied_postcondition(sink: Sink) -> None:
    sent = {"name": "Ada", "n": [1, 2.0]}
    look = HttpLook(scope=lambda receipt: "shop/7", put=lambda receipt: (f"{sink.url}/item/ada", sent))
    assert seen(look).reason == "lookup_failed"
    put(sink, "ada", b'{ "n": [1, 2.0], "name": "Ada" }')
    found = seen(look)
    assert (found.state, found.grade) == ("satisfied", Grade.STRONG)
    assert map_observation(found).state == "postcondition_satisfied" and not map_observation(found).proven
    put(sink, "ada", b'{"name": "Bob"}')
    assert (seen(look).state, seen(look).reason) == ("unknown", "differs")


def test_tr_109_without_a_declared_lookup_it_says_so(sink: Sink) -> None:
    assert seen(HttpLook(scope=lambda receipt: "shop/7")).reason == "no_lookup"


# The rules around every verifier ------------------------------------------------------------------------


def test_tr_99_another_account_than_at_the_start_is_unknown_and_never_absent(sink: Sink) -> None:
    look = by_key(sink)
    other = HttpVerifier(
        HttpLook(**{**fields(look), "scope": lambda receipt: "shop/8"}), since_end=lambda c: 60_000
    )
    assert observe(other, call(), LATER, fenced=True).reason == "scope_changed"
    unnamed = call(scope="session:ses_1", notes=("scope_unknown",))
    found = observe(HttpVerifier(look, since_end=lambda c: 60_000), unnamed, LATER, fenced=True)
    assert (found.state, found.grade) == ("absent", Grade.STRONG)
    pay(sink)
    found = observe(HttpVerifier(look), unnamed, LATER, fenced=True)
    assert (found.state, found.grade) == ("present", Grade.STRONG), (
        "strong at most when the account was not named"
    )


def fields(look: HttpLook) -> dict[str, Any]:
    return {name: getattr(look, name) for name in HttpLook.__dataclass_fields__}


def test_tr_103_a_reader_sends_get_and_head_alone(sink: Sink) -> None:
    reader = Reader({}, LATER)
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        with pytest.raises(WriteAttempted):
            reader.request(method, f"{sink.url}/effect")
    assert reader.wrote and sink.count() == 0 and sink.state()["requests"] == 0


def test_tr_103_a_write_attempted_through_the_reader_voids_the_verdict(sink: Sink) -> None:
    pay(sink)
    readers: list[Reader] = []

    class Careless(HttpVerifier):
        def _ask(self, reader: Reader, key: str, call: Receipt, *, fenced: bool) -> Observation:
            readers.append(reader)
            try:
                reader.request("DELETE", f"{sink.url}/effects")
            except WriteAttempted:
                pass
            return super()._ask(reader, key, call, fenced=fenced)

    found = observe(Careless(by_key(sink)), call(), LATER, fenced=True)
    assert (found.state, found.reason) == ("unknown", "verifier_wrote") and readers[0].wrote


def test_tr_103_a_lookup_is_not_led_to_another_origin(sink: Sink) -> None:
    class Led(Reader):
        def _once(self, method: str, url: str) -> Reply:
            return Reply(302, url, {"location": "http://127.0.0.1:1/elsewhere"}, b"")

    with pytest.raises(Exception, match="lookup_led_away"):
        Led({}, LATER).get(f"{sink.url}/effects")


def test_tr_109_the_time_since_the_last_byte_is_boot_time_and_counts_from_the_end_of_the_executor() -> None:
    owner = {"bootId": boot_id(), "machineId": machine_id()}
    ended = {"state": "ended", "endedBoot": 1_000}
    assert since_end_ms(call(owner=owner, executor=ended), lambda: 4_000) == 3_000
    assert since_end_ms(call(owner=owner, executor={"state": "ended"}), lambda: 4_000) is None
    assert since_end_ms(call(owner=owner, executor={**ended, "state": "alive"}), lambda: 4_000) is None
    assert since_end_ms(call(owner=None, executor=ended), lambda: 4_000) is None
    before = {"bootId": "of-an-older-boot", "machineId": machine_id()}
    expected = 4_000 if machine_id() else None
    assert since_end_ms(call(owner=before, executor=ended), lambda: 4_000) == expected
    elsewhere = {"bootId": "other", "machineId": "another-machine"}
    assert since_end_ms(call(owner=elsewhere, executor=ended), lambda: 4_000) is None
