"""What the emulator's chapter says of recovery, sentence by sentence, over all three wires."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.model import Kind, TurnStatus
from surefoot.ledger.opening import open_ledger
from surefoot.runtime.requests import Answer
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.replaying import SESSION, Peer, Stand

CHAT = Peer("chat", "deepseek", "deepseek/chat")
RESPONSES = Peer("responses", "deepseek", "deepseek/responses")
MESSAGES = Peer("anthropic", "deepseek", "deepseek/anthropic", effort="low")
THREE = [CHAT, RESPONSES, MESSAGES]
PEERS = pytest.mark.parametrize("peer", THREE, ids=lambda peer: peer.wire)
LOOK = {"thinking": "I look first.", "calls": [{"name": "look", "args": {"label": "a"}}]}
PAY = {"thinking": "I pay.", "calls": [{"name": "pay", "args": {"label": "a"}}]}
DONE = {"text": "Done.", "thinking": "So."}
CARRIER: dict[str, list[Any]] = {
    "chat": ["messages", 2, "reasoning_content"],
    "responses": ["input", 1],
    "anthropic": ["messages", 1, "content", 0],
}
TOOL_WORD = {"chat": "stop", "responses": "completed", "anthropic": "end_turn"}
LIMIT_WORD = {"chat": "length", "responses": "length", "anthropic": "max_tokens"}


def wordless(emulator: Emulator, *numbers: int) -> None:
    for nth in numbers or (2,):
        emulator.fault(match={"nth": nth}, status=400, raw="")


# --- the three ways of a refusal -------------------------------------------------------------


@PEERS
async def test_we_21_an_automatic_repair_is_exactly_three_requests_and_one_execution(
    peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([PAY, DONE])
        emulator.fault(match={"nth": 2}, tamper_request=[{"path": CARRIER[peer.wire], "remove": True}])
        end = await stand.crew.controller.submit("Pay once.")
        emulator.assert_fired()
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, 400, 200])
        assert stand.starts() == 1 and stand.world.count("a") == 1


@PEERS
async def test_we_22_after_an_opaque_refusal_no_body_leaves_before_the_explicit_action(
    peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([LOOK, DONE])
        wordless(emulator)
        await stand.crew.controller.submit("How many?")
        found = await stand.crew.controller.pending_recovery()
        assert found is not None and found.fields["kind"] == "upstream_reason_missing"
        for _ in range(3):  # looking sends nothing
            await stand.crew.controller.incidents.card()
            await stand.crew.controller.pending_recovery()
        assert stand.statuses() == [200, 400]
        done = await stand.crew.controller.recover_context(found.id)
        assert not isinstance(done, Answer) and stand.statuses() == [200, 400, 200]


@PEERS
async def test_we_23_while_the_recovery_request_stalls_its_account_is_on_disk_and_a_restart_sends_nothing(
    peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator:
        async with Stand(emulator, peer, tmp_path) as stand:
            emulator.script([LOOK, DONE])
            wordless(emulator)
            emulator.fault(match={"nth": 3}, delay_headers=None)
            await stand.crew.controller.submit("How many?")
            press = asyncio.ensure_future(stand.crew.controller.recover_context())
            await emulator.wait_until_held()
            other = await open_ledger(tmp_path)  # a connection of its own sees what the disk says
            rows = [one for one in await other.read(SESSION) if one.kind == Kind.INCIDENT]
            await other.close()
            account = json.loads(rows[-1].payload["record"])
            assert (account["state"], account["projected"], account["origin"]) == ("consumed", True, "manual")
            press.cancel()
            await asyncio.gather(press, return_exceptions=True)
        sent = len(emulator.requests())
        emulator.release()
        async with Stand(emulator, peer, tmp_path, new=False) as heir:
            answer = await heir.crew.controller.recover_context()
            assert isinstance(answer, Answer) and answer.body["code"] == "recovery_spent"
            assert await heir.crew.controller.pending_recovery() is None
        assert len(emulator.requests()) == sent == 3


@PEERS
async def test_we_24_two_presses_and_racing_ones_make_one_request(peer: Peer, tmp_path: Path) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([LOOK, DONE])
        wordless(emulator)
        await stand.crew.controller.submit("How many?")
        presses = [stand.crew.controller.recover_context() for _ in range(20)]
        answers = await asyncio.gather(*presses)
        again = await stand.crew.controller.recover_context()
        assert sum(not isinstance(one, Answer) for one in answers) == 1 and isinstance(again, Answer)
        assert stand.statuses() == [200, 400, 200]


@PEERS
@pytest.mark.parametrize("changed", ["model", "endpoint", "effort", "history"])
async def test_we_24_after_a_change_between_incident_and_action_nothing_is_sent(
    changed: str, peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([LOOK, DONE])
        wordless(emulator)
        await stand.crew.controller.submit("How many?")
        found = await stand.crew.controller.pending_recovery()
        assert found is not None
        model: Any = stand.crew.model
        target = dict(model.target())
        if changed == "history":
            await stand.crew.controller.submit("Something else.")
            reason = "new_input"
        else:
            key = {"model": "model", "endpoint": "url", "effort": "effort"}[changed]
            model.target = lambda: {**target, key: "another"}
            reason = "scope_changed"
        sent = len(emulator.requests())
        answer = await stand.crew.controller.recover_context(found.id)
        assert isinstance(answer, Answer)
        assert (answer.body["code"], answer.body["reason"]) == ("recovery_stale", reason)
        assert len(emulator.requests()) == sent


OTHER_KINDS: dict[str, tuple[int, str, str]] = {
    "auth": (401, "auth", "The key does not fit these tool messages with thinking."),
    "quota": (402, "quota", "Insufficient Balance for reasoning_content of tool_calls."),
    "quota as 400": (400, "quota", "Your credit balance is too low to send messages with tool_use."),
    "quota as 429": (429, "quota", "You exceeded your current quota, thinking included."),
    "rate": (429, "rate", "Too many tool messages."),
    "moderation": (400, "policy", "Content Exists Risk in reasoning_content, tool_calls and messages."),
    "schema": (400, "schema", "messages.1.thinking: Extra inputs are not permitted"),
    "overflow": (
        400,
        "context_overflow",
        "prompt is too long: 219898 tokens > 200000 maximum, tool messages.",
    ),
}


@PEERS
@pytest.mark.parametrize("name", OTHER_KINDS)
async def test_we_25_a_refusal_of_another_kind_makes_no_incident_whatever_words_it_has(
    name: str, peer: Peer, tmp_path: Path
) -> None:
    status, kind, words = OTHER_KINDS[name]
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([LOOK, DONE])
        raw = json.dumps({"error": {"message": words}})
        emulator.fault(match={"nth": 2}, status=status, raw=raw, headers={"x-should-retry": "false"})
        end = await stand.crew.controller.submit("How many?")
        emulator.assert_fired()
        assert end.status is TurnStatus.FAILED and end.error is not None
        assert end.error.facts["kind"] == kind
        assert await stand.records() == [] and await stand.crew.controller.pending_recovery() is None
        assert stand.statuses() == [200, status]


@PEERS
@pytest.mark.parametrize("listed", [True, False])
async def test_we_26_a_listed_flap_gets_one_identical_request_and_any_other_none(
    listed: bool, peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([LOOK, DONE])
        more = {} if listed else {"message": "The moon is wrong."}
        emulator.fault(match={"nth": 2}, flip="once", **more)
        end = await stand.crew.controller.submit("How many?")
        emulator.assert_fired()
        bodies = [entry.body_sha for entry in emulator.requests()]
        if listed:
            assert (end.status, len(bodies)) == (TurnStatus.COMPLETED, 3) and bodies[1] == bodies[2]
        else:
            assert (end.status, len(bodies)) == (TurnStatus.FAILED, 2)
        assert await stand.records() == []


@PEERS
async def test_we_26_pr_39_a_flap_that_stays_is_asked_for_once_more_and_not_again(
    peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([LOOK, DONE])
        emulator.fault(flip="for_ever", count=-1)
        end = await stand.crew.controller.submit("How many?")
        bodies = [entry.body_sha for entry in emulator.requests()]
        assert end.status is TurnStatus.FAILED and len(bodies) == 2 and bodies[0] == bodies[1]
        assert await stand.records() == []


@PEERS
@pytest.mark.parametrize("automatic", [True, False], ids=["automatic", "explicit"])
async def test_we_29_a_model_that_repeats_its_calls_runs_no_write_twice_and_its_readings_are_counted(
    automatic: bool, peer: Peer, tmp_path: Path
) -> None:
    again = {"behaviour": "repeat_call_after_recovery", "text": "Done.", "thinking": "So."}
    for step, starts, reasons in (
        (PAY, 1, [None, "answered_from_receipt", "answered_from_receipt"]),
        (LOOK, 2, [None, "answered_from_receipt", None]),
    ):
        emulator = Emulator()
        folder = tmp_path / str(starts)
        async with emulator, Stand(emulator, peer, folder) as stand:
            emulator.script([step, again, step, DONE])
            if automatic:
                edit = [{"path": CARRIER[peer.wire], "remove": True}]
                emulator.fault(match={"nth": 2}, tamper_request=edit)
                end: Any = await stand.crew.controller.submit("Go.")
            else:
                wordless(emulator)
                await stand.crew.controller.submit("Go.")
                end = await stand.crew.controller.recover_context()
            emulator.assert_fired()
            assert not isinstance(end, Answer) and end.status is TurnStatus.COMPLETED
            assert [one.reason for one in stand.crew.session.book] == reasons
            assert stand.starts() == starts
            assert stand.world.count("a") == (1 if step is PAY else 0)


# --- the finish word and the calls -----------------------------------------------------------


@PEERS
async def test_pr_70_the_presence_of_valid_calls_decides_and_not_the_finish_word(
    peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([{**PAY, "finish": TOOL_WORD[peer.wire]}, DONE])
        end = await stand.crew.controller.submit("Pay once.")
        assert end.status is TurnStatus.COMPLETED and end.text == "Done."
        assert stand.world.count("a") == 1 and stand.statuses() == [200, 200]
        result = next(iter(stand.crew.session.book)).result or {}
        assert result["text"] and result["text"] in emulator.requests()[-1].body.decode()  # sent back


@PEERS
async def test_pr_70_a_reply_without_calls_ends_the_turn(peer: Peer, tmp_path: Path) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([DONE, LOOK])
        end = await stand.crew.controller.submit("Talk.")
        assert end.status is TurnStatus.COMPLETED and len(emulator.requests()) == 1 and stand.starts() == 0


@PEERS
async def test_pr_71_at_the_output_limit_no_call_of_the_batch_runs_and_each_has_a_truncation_result(
    peer: Peer, tmp_path: Path
) -> None:
    calls = [{"name": "pay", "args": {"label": label}} for label in ("a", "b")]
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([{"thinking": "Both.", "calls": calls, "finish": LIMIT_WORD[peer.wire]}, DONE])
        end = await stand.crew.controller.submit("Pay twice.")
        assert end.status is TurnStatus.COMPLETED
        assert stand.starts() == 0 and stand.world.count("a") == stand.world.count("b") == 0
        receipts = list(stand.crew.session.book)
        assert [one.state for one in receipts] == ["not_started", "not_started"]
        assert stand.statuses() == [200, 200]  # pairing holds: the strict far side took the results


# --- what may be known only by inference -----------------------------------------------------


@PEERS
async def test_wc_11_where_only_inference_speaks_the_stricter_form_is_sent_and_the_emulator_stays_silent(
    peer: Peer, tmp_path: Path
) -> None:
    calls = [{"name": "look", "raw_args": ""}, {"name": "look", "args": {"label": "b"}}]
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([{"thinking": "Both.", "calls": calls}, DONE])
        await stand.crew.controller.submit("How many?")
        sent = emulator.requests()[-1].json()
        # OC-12: one parallel batch is one message; S-19: blank arguments are an empty object, also on replay.
        if peer.wire == "chat":
            asked = [one for one in sent["messages"] if one.get("tool_calls")]
            assert len(asked) == 1 and asked[0]["tool_calls"][0]["function"]["arguments"] == "{}"
        elif peer.wire == "responses":
            kinds = [one.get("type") for one in sent["input"]]
            assert kinds.count("function_call") == 2
            first = kinds.index("function_call")
            assert kinds[first + 1] == "function_call" and sent["input"][first]["arguments"] == "{}"
        else:
            uses = [
                [block for block in one["content"] if block["type"] == "tool_use"]
                for one in sent["messages"]
                if one["role"] == "assistant"
            ]
            assert [len(one) for one in uses] == [2] and uses[0][0]["input"] == {}


async def test_wc_11_the_emulator_takes_a_batch_that_was_split_over_messages() -> None:
    call = {"id": "call_a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for name in ("call_a", "call_b"):
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [{**call, "id": name}]},
            {"role": "tool", "tool_call_id": name, "content": "ok"},
        ]
    import httpx2

    async with Emulator() as emulator, httpx2.AsyncClient(trust_env=False) as client:
        emulator.script([DONE])
        url = emulator.base_url("compat") + "/chat/completions"
        answer = await client.post(
            url, json={"model": "m", "messages": messages}, headers={"authorization": "Bearer k"}
        )
        assert answer.status_code == 200 and emulator.requests()[-1].rules == []


# --- S-22 and the overflow -------------------------------------------------------------------


SPELLED = {"text": '<tool_call>{"name": "pay", "arguments": {"label": "a"}}</tool_call>', "thinking": "So."}


@PEERS
async def test_case_s22_a_call_written_as_text_is_never_run_and_the_model_is_told_once(
    peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([SPELLED, SPELLED, DONE])
        told: list[str] = []
        stand.crew.controller.subscribe(lambda notice: told.append(notice.kind))
        end = await stand.crew.controller.submit("Pay once.")
        assert (end.status, end.text) == (TurnStatus.COMPLETED, SPELLED["text"])  # shown as text
        assert stand.statuses() == [200, 200] and stand.starts() == 0 and stand.world.count("a") == 0
        assert told.count("call_spelled_out") == 2 and told.count("host") == 1
        assert "written as text" in emulator.requests()[-1].body.decode()


@PEERS
async def test_case_s22_words_about_such_markup_are_no_call(peer: Peer, tmp_path: Path) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script(
            [{"text": "Write `<tool_call>` or\n```\n<tool_call>{}</tool_call>\n```", "thinking": "So."}]
        )
        end = await stand.crew.controller.submit("How is a call written?")
        assert end.status is TurnStatus.COMPLETED and stand.statuses() == [200]


@PEERS
@pytest.mark.parametrize("told", ["status", "stream"])
async def test_pr_50_pr_64_x_06_a_named_overflow_is_compacted_once_and_the_step_begun_anew(
    peer: Peer, told: str, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        over = {"overflow_at": 1} if told == "status" else {"finish": "model_context_window_exceeded"}
        emulator.script([PAY, DONE, {"text": "The bill was paid."}, DONE] if told == "status"
                        else [PAY, DONE, DONE, {"text": "The bill was paid."}, DONE])  # fmt: skip
        assert (await stand.crew.controller.submit("Pay once.")).status is TurnStatus.COMPLETED
        emulator.fault(match={"nth": 3}, **over)
        notices: list[Any] = []
        stand.crew.controller.subscribe(notices.append)
        end = await stand.crew.controller.submit("And now?")
        emulator.assert_fired()
        assert (end.status, end.text) == (TurnStatus.COMPLETED, "Done.")
        assert len(emulator.requests()) == 5  # the refused one, the summary, the step again
        last = emulator.requests()[-1].body.decode()
        assert "The bill was paid." in last and "And now?" in last
        assert len(last) < len(emulator.requests()[2].body) + 4000
        entries = await stand.crew.session.ledger.read(SESSION)
        (compacted,) = [entry for entry in entries if entry.kind == Kind.COMPACTED]
        assert compacted.payload["who"] == "overflow" and await stand.records() == []
        reasons = [one.facts["reason"] for one in notices if one.kind == "discard"]
        assert reasons == ([] if told == "status" else ["context_limit"])
        assert stand.world.count("a") == 1


@PEERS
async def test_pr_50_x_06_an_overflow_that_stays_ends_the_turn_after_one_compaction(
    peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([PAY, DONE, {"text": "The bill was paid."}])
        await stand.crew.controller.submit("Pay once.")
        for nth in (3, 5):
            emulator.fault(match={"nth": nth}, overflow_at=1)
        end = await stand.crew.controller.submit("And now?")
        emulator.assert_fired()
        assert end.status is TurnStatus.FAILED and len(emulator.requests()) == 5
        assert end.error is not None and end.error.facts["kind"] == "context_overflow"
