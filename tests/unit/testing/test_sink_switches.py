"""The counting sink: every effect is durable and counted, and each switch does what it says."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import threading
import time
import urllib.error
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from surefoot.testing.sink import Sink, append_effect, post, read_effects


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[Sink]:
    with Sink(tmp_path) as running:
        yield running


def effect(sink: Sink, label: str = "x", key: str | None = None) -> dict[str, object]:
    return post(f"{sink.url}/effect", {"label": label, "key": key}, seconds=10)


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < end, "the condition did not come true within 10 s"
        time.sleep(0.005)


def test_each_request_is_one_effect_whatever_its_key(sink: Sink) -> None:
    for _ in range(2):
        effect(sink, "pay", "k")
    effect(sink, "mail")
    assert (sink.count(), sink.count("pay")) == (3, 2)
    assert sink.state()["requests"] == 3


def test_a_sink_that_honours_keys_makes_one_effect_until_they_expire(sink: Sink) -> None:
    sink.switch(keys="honour")
    effect(sink, key="k")
    assert effect(sink, key="k")["replayed"] is True
    assert sink.count() == 1
    sink.expire_keys()
    effect(sink, key="k")
    assert sink.count() == 2


def test_a_key_that_failed_is_refused_for_ever(sink: Sink) -> None:
    sink.switch(keys="refuse_after_failure", fail=1)
    for status in (500, 409, 409):
        with pytest.raises(urllib.error.HTTPError) as caught:
            effect(sink, key="k")
        assert caught.value.code == status
    effect(sink, key="other")
    assert sink.count() == 1


def test_it_commits_and_drops_the_line(sink: Sink) -> None:
    sink.switch(reply="drop")
    with pytest.raises((http.client.RemoteDisconnected, urllib.error.URLError, ConnectionError)):
        effect(sink)
    assert sink.count() == 1


def test_it_commits_late_after_a_queued_reply(sink: Sink) -> None:
    sink.switch(commit="late")
    assert effect(sink)["queued"] is True
    until(lambda: sink.state()["waiting"] == 1)
    assert sink.count() == 0
    sink.release()
    until(lambda: sink.count() == 1)


def test_it_holds_its_reply_until_told(sink: Sink) -> None:
    sink.switch(reply="hold")
    asking = threading.Thread(target=effect, args=(sink,))
    asking.start()
    until(lambda: sink.state()["waiting"] == 1)
    assert sink.count() == 1 and asking.is_alive()
    sink.release()
    asking.join(10)
    assert not asking.is_alive()


@pytest.mark.parametrize(("cancel", "effects"), [("ignore", 1), ("obey", 0)])
def test_a_client_that_left_before_the_effect_is_ignored_or_obeyed(
    sink: Sink, cancel: str, effects: int
) -> None:
    sink.switch(commit="hold", cancel=cancel)
    line = http.client.HTTPConnection(sink.url.removeprefix("http://"), timeout=90)
    line.request("POST", "/effect", '{"label": "x"}', {"content-type": "application/json"})
    until(lambda: sink.state()["waiting"] == 1)
    line.close()
    sink.release()
    until(lambda: sink.state()["waiting"] == 0)
    sink.switch(commit="now")
    effect(sink, "after")
    assert sink.count("x") == effects


def test_the_list_can_be_searched_and_taken_away(sink: Sink) -> None:
    import json
    import urllib.request

    effect(sink, key="k1")
    effect(sink, key="k2")
    with urllib.request.urlopen(f"{sink.url}/effects?key=k2", timeout=90) as reply:
        assert [e["key"] for e in json.load(reply)] == ["k2"]
    sink.switch(look_up=False)
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"{sink.url}/effects", timeout=90)
    caught.value.close()
    assert caught.value.code == 404


def test_an_unknown_switch_is_refused(sink: Sink) -> None:
    with pytest.raises(urllib.error.HTTPError):
        sink.switch(keys="sometimes")


def test_an_effect_in_process_is_counted_by_the_same_file(tmp_path: Path) -> None:
    append_effect(tmp_path / "effects.jsonl", "a", key="k")
    assert Sink(tmp_path).count("a") == 1 and read_effects(tmp_path / "none") == []


def test_the_sink_dies_with_its_parent(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    command = [
        sys.executable,
        "-m",
        "surefoot.testing.sink",
        "--file",
        str(tmp_path / "f"),
        "--until-stdin-closes",
    ]
    with subprocess.Popen(command, stdin=reading, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        os.close(reading)
        os.close(writing)
        assert process.wait(120) == 0
