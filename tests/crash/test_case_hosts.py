"""Cases whose fault lives in a program that brings its own loop: it pauses, retries, dies and asks again.

The hosts here guard functions of their own, in processes of their own, against the counting sink.
The adapters of named frameworks and the proxy have these rows once more, with the real packages.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from surefoot.testing.kills import Site

PREAMBLE = """
import asyncio, json, os, signal, sys, threading, urllib.request
import surefoot
from surefoot import ToolError, OutcomeUnknown
SINK, HOME, LABEL = sys.argv[1:4]
SESSION = sys.argv[4] if len(sys.argv) > 4 else None
ONCE = {"effect": "NON_IDEMPOTENT", "reach": ["host:bank.example"]}
def post(label=LABEL, key=None, seconds=20):
    asked = json.dumps({"label": label, "key": key}).encode()
    with urllib.request.urlopen(urllib.request.Request(SINK + "/effect", asked), timeout=seconds) as reply:
        return json.load(reply)
def say(*words):
    print(json.dumps(words, default=str), flush=True)
def tries(call, **arguments):
    try:
        say("got", call(**arguments))
    except surefoot.SurefootError as error:
        say(type(error).__name__, str(error), error.facts.get("attempt_id"))
def die():
    os.kill(os.getpid(), signal.SIGKILL)
"""
OWN = """
with surefoot.open(ledger=HOME) as ledger, ledger.session(SESSION) as session:
    say(session.id)
"""


class Host:
    """Runs of one foreign program over one ledger."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.session = ""

    def run(self, program: str, **environ: str) -> list[list[Any]]:
        """What it said after the id of its session; each line a list of words."""
        arguments = [self.site.equipment.sink.url, str(self.site.root / "home"), self.site.label]
        ended = subprocess.run(
            [sys.executable, "-c", PREAMBLE + program, *arguments, *([self.session] if self.session else [])],
            cwd=self.site.project,
            env={**os.environ, **environ},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        dies = bool(environ.get("DIE"))
        assert ended.returncode == (-signal.SIGKILL if dies else 0), ended.stderr
        said = [json.loads(line) for line in ended.stdout.splitlines()]
        self.session = said[0][0]
        return said[1:]

    @property
    def effects(self) -> int:
        return self.site.equipment.sink.count(self.site.label)


@pytest.fixture
def host(site: Site) -> Host:
    return Host(site)


# A07 ----------------------------------------------------------------------------------------------

PAUSES = (
    """
class Pause({base}):
    "How a framework leaves a body that has to wait for somebody."
{form} pay(label: str):
    post(label)
    raise Pause("ask somebody")
"""
    + OWN
    + """
    guarded = session.guard(pay, **ONCE)
    tries(guarded, label=LABEL, identity="thread-1/message-2/0")
    if os.environ.get("DIE"):
        die()
"""
)


@pytest.mark.parametrize(
    ("base", "form"),
    [
        ("Exception", "def"),
        ("BaseException", "async def"),
        ("TimeoutError", "def"),
        ("ToolError", "async def"),
    ],
)
def test_case_a07_an_exception_that_pauses_a_host_after_the_effect_makes_no_second_body(
    host: Host, base: str, form: str
) -> None:
    program = PAUSES.format(base=base, form=form)
    first = host.run(program, DIE="1")
    assert host.run(program)[0][0] == first[0][0] in ("ToolError", "OutcomeUnknown")
    assert host.effects == 1


def test_case_a07_the_same_pass_in_one_process_meets_the_receipt_too(host: Host) -> None:
    again = "    tries(guarded, label=LABEL, identity='thread-1/message-2/0')\n"
    first, second = host.run(PAUSES.format(base="Exception", form="def") + again)
    assert first == second and first[0] == "ToolError" and host.effects == 1


def test_case_a07_a_failure_before_the_effect_is_tried_again_under_the_same_identity(host: Host) -> None:
    program = (
        """
def pay(label: str):
    if os.environ.get("BUSY"):
        raise ToolError("busy", effect_trace="none")
    return post(label)
"""
        + OWN
        + "    tries(session.guard(pay, **ONCE), label=LABEL, identity='order-17')\n"
    )
    assert host.run(program, BUSY="1")[0][0] == "ToolError" and host.effects == 0
    assert host.run(program)[0][0] == "got" and host.effects == 1


# A16, A19 -----------------------------------------------------------------------------------------

HANDLER = (
    """
def handle(event: str):
    post(event)
    return {"handled": event}
"""
    + OWN
    + """
    guarded = session.guard(handle, **ONCE)
    tries(guarded, event=LABEL, identity="checkpoint-7/node-write/0")
    if os.environ.get("DIE"):
        die()
"""
)


def test_case_a16_a_handler_resumed_twice_after_its_writes_were_committed_runs_once(host: Host) -> None:
    first = host.run(HANDLER, DIE="1")
    assert [host.run(HANDLER) for _ in range(2)] == [first, first] and first[0][0] == "got"
    assert host.effects == 1


RETRIES = (
    """
def pay(label: str):
    try:
        return post(label, seconds=1)
    except OSError:
        raise ConnectionError("no reply") from None
"""
    + OWN
    + """
    guarded = session.guard(pay, **ONCE)
    for number in range(3):
        tries(guarded, label=LABEL, **({"identity": "run-1/call-1"} if os.environ.get("KNOWN") else {}))
"""
)


@pytest.mark.parametrize("known", ["1", ""])
@pytest.mark.parametrize("reply", ["drop", "hold"])
def test_case_a19_a_run_retried_after_a_lost_reply_is_unknown_and_pays_once(
    host: Host, known: str, reply: str
) -> None:
    host.site.equipment.sink.switch(reply=reply)
    try:
        said = [*host.run(RETRIES, KNOWN=known), *host.run(RETRIES, KNOWN=known)]
    finally:
        host.site.equipment.sink.switch(reply="now")
        host.site.equipment.sink.release()
    words = [one[0] for one in said]
    assert words == (["OutcomeUnknown"] * 6 if known else ["OutcomeUnknown"] + ["WriteFenced"] * 5)
    assert host.effects == 1


def test_case_a19_a_settled_reply_that_was_not_delivered_is_given_back_to_a_retry(host: Host) -> None:
    first = host.run(HANDLER, DIE="1")
    assert host.run(HANDLER) == first == [["got", {"handled": host.site.label}, *first[0][2:]]]
    assert host.effects == 1


# A28 ----------------------------------------------------------------------------------------------

CHARGES = (
    """
def charge(label: str, token: str):
    post(label, token)
    if os.environ.get("LOSE"):
        raise ConnectionError("no reply")
    return {"token": token}
"""
    + OWN
    + """
    guarded = session.guard(charge, key_argument="token", **ONCE)
    for token in os.environ["TOKENS"].split():
        tries(guarded, label=LABEL, token=token)
    if os.environ.get("CONFIRM"):
        shown = session.recovery.snapshot()
        (call,) = [one for one in shown["calls"] if one["open"]]
        session.inspect(call["attemptId"])
        shown = session.recovery.snapshot()
        (call,) = [one for one in shown["calls"] if one["open"]]
        told = {key: shown[key] for key in ("sessionPath", "runtimeEpoch", "revision")}
        session.recovery.act({**told, "action": "confirm", "attemptId": call["attemptId"],
                              "inspectionId": call["inspectionId"]}, by="lin")
        tries(guarded, label=LABEL, token="another")
"""
)


def test_case_a28_a_key_made_up_anew_for_each_try_charges_once(host: Host) -> None:
    said = host.run(CHARGES, LOSE="1", TOKENS="one two three")
    assert [one[0] for one in said] == ["OutcomeUnknown", "WriteFenced", "WriteFenced"]
    (effect,) = host.site.equipment.sink.effects(host.site.label)
    assert effect["key"].startswith("sf1-") and effect["key"] not in ("one", "two", "three")


def test_case_a28_tr_17_after_a_confirmation_a_new_key_makes_no_new_action_of_it(host: Host) -> None:
    said = host.run(CHARGES, LOSE="1", TOKENS="one", CONFIRM="1")
    assert [one[0] for one in said] == ["OutcomeUnknown", "WriteFenced"], said
    assert "already happened" in said[1][1] and host.effects == 1


# J ------------------------------------------------------------------------------------------------

PAIR = (
    """
def pay(label: str):
    return post(label)
def undo(label: str, attempt):
    reply = post("undo-" + label, attempt.idempotency_key, seconds=60)
    if os.environ.get("DIE"):
        die()
    return reply
"""
    + OWN
    + """
    forward = session.guard(pay, effect="NON_IDEMPOTENT", reach=["host:bank.example"])
    limit = float(os.environ.get("LIMIT") or 60)
    back = session.guard(undo, effect="NON_IDEMPOTENT", reach=["host:bank.example"], time_limit_seconds=limit)
    tries(forward, label=LABEL, identity="order-17")
    to_undo = [LABEL]
    for failed_round in range(int(os.environ["ROUNDS"])):
        for done in to_undo:  # nobody clears it
            tries(back, label=done, identity="undo of order-17")
    if os.environ.get("OTHER"):
        tries(back, label=LABEL, identity="undo once more")
        tries(forward, label=LABEL, identity="order-18")
"""
)


def test_case_j08_an_undo_that_two_failing_rounds_ask_for_happens_once_under_its_own_key(host: Host) -> None:
    first = host.run(PAIR, ROUNDS="2")
    again = host.run(PAIR, ROUNDS="1")
    assert [one[0] for one in (*first, *again)] == ["got"] * 5
    assert first[1][1] == first[2][1] == again[1][1] and first[0][1] != first[1][1]
    (undone,) = host.site.equipment.sink.effects("undo-" + host.site.label)
    (done,) = host.site.equipment.sink.effects(host.site.label)
    assert undone["key"].startswith("sf1-") and undone["key"] != done["key"]


def test_case_j08_an_undo_that_meets_its_limit_is_unknown_and_fences(host: Host) -> None:
    host.site.equipment.sink.switch(reply="hold")
    try:
        said = host.run(PAIR.replace('tries(forward, label=LABEL, identity="order-17")', "pass"),
                        ROUNDS="2", LIMIT="3", OTHER="1")  # fmt: skip
    finally:
        host.site.equipment.sink.switch(reply="now")
        host.site.equipment.sink.release()
    assert [one[0] for one in said] == ["OutcomeUnknown", "OutcomeUnknown", "WriteFenced", "WriteFenced"]
    assert host.site.equipment.sink.count("undo-" + host.site.label) == 1 and host.effects == 0


def test_case_j10_a_pair_is_two_calls_and_a_death_in_the_undo_leaves_it_unknown_and_fenced(
    host: Host,
) -> None:
    (paid,) = host.run(PAIR, ROUNDS="1", DIE="1")
    assert paid[0] == "got"
    said = host.run(PAIR, ROUNDS="2", OTHER="1")
    words = ["got", "OutcomeUnknown", "OutcomeUnknown", "WriteFenced", "WriteFenced"]
    assert [one[0] for one in said] == words and said[0] == paid
    assert host.site.equipment.sink.count("undo-" + host.site.label) == 1 and host.effects == 1
    report = host.site.again().report
    begun = [(one["tool"], one["state"]) for one in report["receipts"] if one["startedAt"] is not None]
    assert begun == [("pay", "succeeded"), ("undo", "unknown")]


# C, D, G ------------------------------------------------------------------------------------------


def test_case_c08_a_launch_that_failed_is_recorded_as_failed_with_its_reason(host: Host) -> None:
    program = (
        """
import subprocess
def launch(program: str):
    return subprocess.run([program], check=True).returncode
"""
        + OWN
        + "    tries(session.guard(launch, **ONCE), program='/nowhere/agent')\n"
    )
    (said,) = host.run(program)
    assert said[0] == "ToolError" and "FileNotFoundError" in said[1] and "/nowhere/agent" in said[1]
    (receipt,) = host.site.again().report["receipts"]
    assert (receipt["state"], receipt["errorKind"]) == ("failed", "FileNotFoundError")


def test_case_d18_every_guarded_call_has_a_closed_receipt_and_the_chain_holds(host: Host) -> None:
    program = (
        """
def pay(label: str): return post(label)
def fail(label: str): raise ValueError("no")
def lose(label: str): raise ConnectionError("no reply")
def look(label: str): return label
"""
        + OWN
        + """
    for function, effect, reach in (
        (pay, "NON_IDEMPOTENT", ["host:a"]), (fail, "UNKNOWN", ["host:b"]), (look, "READ_ONLY", []),
        (lose, "NON_IDEMPOTENT", ["host:c"]),
    ):
        tries(session.guard(function, effect=effect, reach=reach), label=LABEL)
"""
    )
    assert len(host.run(program)) == 4
    report = host.site.again().report
    assert [one["state"] for one in report["receipts"]] == ["succeeded", "failed", "succeeded", "unknown"]
    ended = [one["finishedAt"] is not None for one in report["receipts"]]
    assert ended == [True, True, True, False] and report["verified"] == []


def test_case_g04_eight_threads_of_one_program_meet_no_lock_error(host: Host) -> None:
    program = (
        """
def pay(label: str, thread: int, number: int):
    post(label)
    return number
"""
        + OWN
        + """
    guarded = session.guard(pay, **ONCE)
    said = []
    def work(thread):
        for number in range(5):
            try:
                said.append(guarded(label=LABEL, thread=thread, number=number))
            except BaseException as error:
                said.append(repr(error))
    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(8)]
    [one.start() for one in threads]
    [one.join() for one in threads]
    say(said)
"""
    )
    ((said,),) = host.run(program)
    assert sorted(said) == sorted([*range(5)] * 8) and host.effects == 40
    assert [one["state"] for one in host.site.again().report["receipts"]] == ["succeeded"] * 40
