"""`surefoot recover context` and `/recover-context` on real processes, a real ledger and the strict emulator."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pexpect
import pytest
from chat_pty import chat, quiet
from cli_world import SUREFOOT, World, wait_for

from surefoot.testing.emulator.process import EmulatorProcess

READ = {"text": "Let me look.", "calls": [{"name": "read", "args": {"path": "a.txt"}}]}
DONE = {"text": "All finished."}


@pytest.fixture
def emulator(world: World, tmp_path: Path) -> Iterator[EmulatorProcess]:
    """A model server that refuses the second request without a reason."""
    (world.project / "a.txt").write_text("hello")
    with EmulatorProcess(tmp_path) as process:
        process.script([READ, DONE])
        process.fault(match={"nth": 2}, status=400, raw="")
        world.more |= {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": process.base_url("openai")}
        yield process


def statuses(emulator: EmulatorProcess) -> list[int]:
    return [entry.status for entry in emulator.requests()]


def records(world: World) -> list[dict[str, Any]]:
    """What another program reads from the ledger's file."""
    (path,) = world.home.glob("sf/**/ledger.db")
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        rows = connection.execute(
            "SELECT payload FROM entries WHERE kind = 'incident' ORDER BY key"
        ).fetchall()
    finally:
        connection.close()
    return [json.loads(json.loads(row[0])["record"]) for row in rows]


def test_pr_80_pr_83_a_wordless_refusal_ends_with_7_and_the_command_finishes_the_turn(
    world: World, emulator: EmulatorProcess
) -> None:
    refused = world.run("-p", "look at a.txt")
    assert refused.returncode == 7 and statuses(emulator) == [200, 400]
    shown = world.run("session", "show")
    assert (
        "upstream_reason_missing: refused; one recovery is left — surefoot recover context inc_"
        in shown.stdout
    )  # PR-83
    done = world.run("recover", "context", "only the count")
    assert (done.returncode, done.stdout) == (0, "All finished.\n")
    assert statuses(emulator) == [200, 400, 200]
    assert "User guidance: only the count" in emulator.requests()[-1].body.decode()
    entries = json.loads(world.run("session", "show", "--json").stdout)["entries"]
    (row,) = [one for one in entries if one.get("type") == "incident"]
    assert (row["incident_kind"], row["state"], row["actionable"]) == (
        "upstream_reason_missing",
        "consumed",
        False,
    )
    again = world.run("recover-context", "--json")
    told = json.loads(again.stdout)
    assert (again.returncode, told["code"], told["exitCode"]) == (1, "recovery_spent", 1)
    assert set(told["incident"]) == {
        "incident_id", "kind", "status", "trace_id", "state", "scope", "offered", "reason_not_offered",
        "changes", "done_calls", "open_calls", "ways",
    }  # fmt: skip
    assert statuses(emulator) == [200, 400, 200]


def test_pr_31_pr_81_a_wrong_id_and_new_words_are_refused_with_code_and_card(
    world: World, emulator: EmulatorProcess
) -> None:
    world.run("-p", "look at a.txt")
    offered = records(world)[-1]["id"]
    wrong = world.run("recover-context", "inc_00000000000000000000000000")
    assert wrong.returncode == 1 and wrong.stderr.startswith("recovery_unavailable:")
    assert "Recover from valid history" in wrong.stderr and "What else can be done" in wrong.stderr
    assert world.run("-c", "-p", "something else").returncode == 0
    stale = world.run("recover-context", offered, "--json")
    told = json.loads(stale.stdout)
    assert (stale.returncode, told["code"], told["reason"]) == (1, "recovery_stale", "new_input")


def test_pr_80_without_anything_to_recover_nothing_is_sent(world: World, emulator: EmulatorProcess) -> None:
    world.model_says(DONE)
    world.run("-p", "hello")
    missing = world.run("recover-context")
    assert missing.returncode == 1 and missing.stderr.startswith("recovery_unavailable:")


def test_pr_80_refused_once_more_ends_with_7(world: World, emulator: EmulatorProcess) -> None:
    emulator.fault(match={"nth": 3}, status=400, raw="")
    world.run("-p", "look at a.txt")
    done = world.run("recover-context")
    assert done.returncode == 7 and "refused again" in done.stderr
    assert statuses(emulator) == [200, 400, 400]


def test_ux_129_the_card_stands_in_the_result_document_in_a_line_of_its_own_and_on_standard_error(
    world: World, emulator: EmulatorProcess
) -> None:
    done = world.run("-p", "look at a.txt", "--output-format", "stream-json")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    (card,) = [one for one in told if one.get("subtype") == "provider_refused"]
    assert (card["kind"], card["status"], card["offered"], card["done_calls"]) == (
        "upstream_reason_missing", 400, True, 1,
    )  # fmt: skip
    assert card["changes"] == {"R14": 1} and len(card["ways"]) >= 2
    result = told[-1]
    assert (result["type"], result["exit_code"], result["incident"]["incident_id"]) == (
        "result",
        7,
        card["incident_id"],
    )
    assert "The provider refused the request and gave no reason (status 400)." in done.stderr


def test_pr_64_pieces_of_a_reply_that_was_replaced_are_taken_back_by_their_step(
    world: World, tmp_path: Path
) -> None:
    (world.project / "a.txt").write_text("hello")
    with EmulatorProcess(tmp_path) as server:
        server.script(
            [
                {**READ, "text": "A first try.", "behaviour": "omit_reasoning"},
                {**READ, "thinking": "hm"},
                DONE,
            ]
        )
        world.more |= {"DEEPSEEK_API_KEY": "sk-test", "DEEPSEEK_BASE_URL": server.base_url("deepseek")}
        asked = ("-p", "look", "--effort", "high", "--output-format", "stream-json")
        told = [
            json.loads(line) for line in world.run(*asked, "--include-partial-messages").stdout.splitlines()
        ]
    pieces = [one["event"] for one in told if one["type"] == "stream_event"]
    taken_back = next(one for one in pieces if one["type"] == "discard")
    assert (taken_back["reason"], taken_back["incident_id"][:4]) == ("reasoning_missing", "inc_")
    before = [one for one in pieces[: pieces.index(taken_back)] if one["type"] == "text"]
    assert "".join(one["text"] for one in before) == "A first try."
    assert {one["step_id"] for one in before} == {taken_back["step_id"]}


def test_pr_80_in_a_chat_the_slash_command_recovers_and_its_words_are_no_command(
    world: World, emulator: EmulatorProcess
) -> None:
    child = pexpect.spawn(
        SUREFOOT[0], [*SUREFOOT[1:], "--plain"], cwd=str(world.project), env=world.environ, encoding="utf-8",
        timeout=90, dimensions=(40, 100),
    )  # fmt: skip
    try:
        child.expect("[>❯]")
        child.send("look at a.txt\r")
        child.expect("gave no reason")
        child.expect("/recover-context")
        child.send("/recover-context /new please\r")
        child.expect("All finished")
    finally:
        child.close(force=True)
    assert statuses(emulator) == [200, 400, 200]
    assert "User guidance: /new please" in emulator.requests()[-1].body.decode()


def test_ux_124_ux_126_a_chat_that_is_gone_on_with_shows_the_card_and_its_key_sends_once(
    world: World, emulator: EmulatorProcess
) -> None:
    assert world.run("-p", "look at a.txt").returncode == 7
    identity = records(world)[-1]["id"]
    child = chat(world, "-c", "--plain", columns=140)
    try:
        child.expect("gave no reason")
        child.expect("p send again from valid history")
        child.expect(f"surefoot recover context {identity}")
        child.expect("What else can be done")
        assert statuses(emulator) == [200, 400]
        quiet(child)
        child.send("p")
        child.expect("All finished")
        quiet(child)
        child.send("p")  # now it is a letter, as any other
        child.send("\x15")
    finally:
        child.close(force=True)
    assert statuses(emulator) == [200, 400, 200]
    assert records(world)[-1]["outcome"] == "recovered"


@pytest.mark.promise("protocol:account-first")
def test_fi_9_pr_38_pr_80_a_stalled_recovery_request_is_already_accounted_for_and_a_kill_sends_nothing_more(
    world: World, emulator: EmulatorProcess
) -> None:
    world.run("-p", "look at a.txt")
    emulator.fault(match={"nth": 3}, delay_headers=None)
    running = world.start("recover-context")
    wait_for(lambda: len(emulator.requests()) == 3)
    consumed = records(world)[-1]
    assert (consumed["state"], consumed["projected"]) == ("consumed", True)
    assert world.run("recover", "context", "--json").returncode == 8
    running.send_signal(signal.SIGKILL)
    running.communicate(timeout=120)
    again = world.run("recover-context")
    assert again.returncode == 1 and again.stderr.startswith("recovery_spent:")
    assert again.stderr.splitlines()[0].endswith("next: surefoot -c"), "to go on is an ordinary request"
    assert len(emulator.requests()) == 3
    assert world.run("session", "show").returncode == 0
    assert len(emulator.requests()) == 3
    emulator.release()
    recovered = emulator.requests()[-1].json()["messages"][:-1]  # without the host's words
    done = world.run("-c", "-p", "go on")
    assert done.returncode == 0
    assert emulator.requests()[3].json()["messages"][: len(recovered)] == recovered


@pytest.mark.parametrize(
    ("flags", "key", "value"),
    [(["--effort", "high"], "reasoning_effort", "high"), (["-m", "openai/another"], "model", "another")],
)
def test_pr_1_pr_29_the_command_keeps_model_and_effort_that_the_refused_run_was_given(
    world: World, emulator: EmulatorProcess, flags: list[str], key: str, value: str
) -> None:
    assert world.run("-p", "look at a.txt", *flags).returncode == 7
    assert "one recovery is left" in world.run("session", "show").stdout
    done = world.run("recover", "context")
    assert (done.returncode, statuses(emulator)) == (0, [200, 400, 200])
    assert [entry.json().get(key) for entry in emulator.requests()] == [value] * 3


def test_pr_25_pr_29_a_listed_incident_is_actionable_exactly_when_the_command_would_act(
    world: World, emulator: EmulatorProcess
) -> None:
    def shown() -> tuple[str, bool]:
        entries = json.loads(world.run("session", "show", "--json").stdout)["entries"]
        (row,) = [one for one in entries if one.get("type") == "incident"]
        return row["state"], row["actionable"]

    world.run("-p", "look at a.txt")
    assert shown() == ("pending", True)
    here = world.more["OPENAI_BASE_URL"]
    world.more["OPENAI_BASE_URL"] = emulator.base_url("compat")
    assert shown() == ("pending", False)
    assert "the session or its settings have changed since" in world.run("session", "show").stdout
    world.more["OPENAI_BASE_URL"] = here
    assert shown() == ("pending", True)
    assert world.run("-c", "-p", "").returncode == 0  # a resume that brings a reply (PR-25)
    assert shown() == ("pending", False)
    told = json.loads(world.run("recover-context", "--json").stdout)
    assert (told["code"], told["reason"]) == ("recovery_stale", "history_moved")
    assert shown() == ("expired", False)


def test_pr_31_pr_82_a_refusal_says_in_words_what_is_wrong_and_keeps_the_offer(
    world: World, emulator: EmulatorProcess
) -> None:
    world.run("-p", "look at a.txt")
    long = world.run("recover", "context", "--guidance", "x" * 17_000)
    assert (long.returncode, long.stderr.splitlines()[0]) == (
        1, "bad_request: The guidance is longer than 16 KiB. next: surefoot session show",
    )  # fmt: skip
    assert "surefoot recover context" in long.stderr, "its card stands below, with the offer that was kept"
    told = json.loads(world.run("recover", "context", "inc_nope", "--json").stdout)
    assert told["code"] == "recovery_unavailable" and told["message"].endswith(".")
    assert told["incident"]["offered"] is True
    assert world.run("recover", "context").returncode == 0


def test_ux_131_the_next_line_says_what_was_sent_differently_and_the_card_what_is_only_advice(
    world: World, emulator: EmulatorProcess
) -> None:
    offered = world.run("-p", "look at a.txt").stderr
    assert "(tool rounds told as facts: 1)" in offered and "is advice to the model" in offered
    done = world.run("recover", "context")
    short = records(world)[-1]["id"][-4:]
    assert done.stderr == (
        "The history is sent once more with changes on the copy (tool rounds told as facts: 1). "
        f"The one recovery of inc_{short} is spent.\n"
    )
    assert "is advice to the model" in world.run("recover", "context").stderr


def test_case_s02_pr_69_a_turn_that_stops_says_its_reason_in_words(world: World) -> None:
    world.model_says({"text": ""}, {"text": ""})
    assert "the model answered twice without a word." in world.run("-p", "go").stderr
    wrong = {"calls": [{"name": "read", "args": {}}]}
    world.model_says(wrong, wrong, wrong, DONE)
    ended = world.run("-p", "go")
    assert ended.returncode == 1 and "three times for the same invalid call." in ended.stderr
