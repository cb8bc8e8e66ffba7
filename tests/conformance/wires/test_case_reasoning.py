"""Cases R01 to R18 and R32 to R35: reasoning that must return, items that belong together, thinking switched.

What returns is decided by the contract and by what was stored, never by the name of a model. Whole turns run over
loopback against the strict emulator; where a row damages the wire copy, the emulator's own rules judge it.
"""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.history import AssistantWords, Message
from surefoot.core.model import TurnStatus
from surefoot.providers.diagnosis import diagnose
from surefoot.providers.rules import check
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.replaying import Peer, Stand, contract_of, open_loop, parts, refusal

DEEPSEEK = Peer("chat", "deepseek", "deepseek/chat")
DEEPSEEK_RESPONSES = Peer("responses", "deepseek", "deepseek/responses")
DEEPSEEK_MESSAGES = Peer("anthropic", "deepseek", "deepseek/anthropic", effort="low")
MIMO = Peer("chat", "mimo", "mimo/chat")
KIMI = Peer("chat", "kimi", "kimi/chat")
OPENAI = Peer("responses", "openai", "openai/responses", effort="low")
CLAUDE = Peer("anthropic", "anthropic", "anthropic/anthropic", effort="low")
SENTENCE = "The `reasoning_content` in the thinking mode must be passed back to the API."
ODD = 'Hm… “ä” \u2028 \\ "x" </think>  \t end \n'
LOOK = {"thinking": "I look first.", "calls": [{"name": "look", "args": {"label": "a"}}]}
PAY = {"thinking": "I pay.", "calls": [{"name": "pay", "args": {"label": "a"}}]}
DONE = {"text": "Done.", "thinking": "So."}


def by_name(peer: Peer) -> str:
    return peer.name


def bodies(emulator: Emulator) -> list[Any]:
    return [entry.json() for entry in emulator.requests()]


def reasoning(body: Mapping[str, Any]) -> list[Any]:
    """The carriers of a request in order; None for a message of the assistant that has none."""
    found: list[Any] = []
    for one in parts(body):
        if one.get("type") == "reasoning":
            found.append("".join(part["text"] for part in one.get("content") or one.get("summary") or ()))
        elif one.get("role") == "assistant" and "messages" in body:
            blocks = one["content"] if isinstance(one.get("content"), list) else ()
            thought = [block["thinking"] for block in blocks if block.get("type") == "thinking"]
            found.append(thought[0] if thought else one.get("reasoning_content"))
    return found


def visible(body: Mapping[str, Any]) -> str:
    """All that a model reads as words: texts of every role, results included; no carrier, no argument."""
    found = [str(body.get("system") or body.get("instructions") or "")]
    for one in parts(body):
        content = one.get("content", one.get("output"))
        if one.get("type") == "reasoning":
            continue
        if isinstance(content, str):
            found.append(content)
        for block in content if isinstance(content, list) else ():
            if block.get("type") not in ("thinking", "redacted_thinking"):
                found.append(json.dumps(block, ensure_ascii=False))
    return "\n".join(found)


def edited(history: Sequence[Message], change: Any) -> list[Message]:
    """The history with `change` made to the stored raw message of every reply."""
    shown: list[Message] = []
    for one in history:
        if isinstance(one, AssistantWords):
            raw = copy.deepcopy(dict(one.raw))
            change(raw)
            one = dataclasses.replace(one, raw=raw)
        shown.append(one)
    return shown


# --- reasoning that must return --------------------------------------------------------------


@pytest.mark.parametrize("text", ["Let me see.", ""], ids=["r01-text-then-call", "r10-call-alone"])
@pytest.mark.parametrize("peer", [DEEPSEEK, MIMO, KIMI], ids=by_name)
async def test_case_r01_r10_reasoning_returns_beside_text_and_call_at_the_first_try(
    peer: Peer, text: str, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.set_knobs("deepseek", v4_mode="tool_turns")
        emulator.script([{**PAY, "text": text, "thinking": ODD}, DONE])
        end = await stand.crew.controller.submit("Pay.")
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, 200])
        [asked] = [one for one in bodies(emulator)[-1]["messages"] if one["role"] == "assistant"]
        assert (asked["content"] or "", asked["reasoning_content"]) == (text, ODD)
        assert [one["function"]["name"] for one in asked["tool_calls"]] == ["pay"]
        # A copy that lost it on the way is refused; the next request is made of what was stored.
        history = open_loop(await stand.history())
        lost = stand.frozen(history)
        del lost["messages"][2]["reasoning_content"]
        assert refusal(peer, lost) and refusal(peer, stand.frozen(history)) == ()


@pytest.mark.parametrize(
    ("profile", "field"),
    [("deepseek", "reasoning_content"), ("groq", "reasoning"), ("openrouter", "reasoning_details")],
)
async def test_case_r02_pr_78_a_generic_contract_keeps_the_field_of_the_host_to_the_byte(
    profile: str, field: str, tmp_path: Path
) -> None:
    peer = Peer("chat", profile, "compat/chat")
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([{**LOOK, "thinking": ODD}, {**LOOK, "thinking": "Again."}, DONE])
        end = await stand.crew.controller.submit("Look.")
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, 200, 200])
        stored = [one.raw for one in await stand.history() if isinstance(one, AssistantWords)]
        sent = [one[field] for one in bodies(emulator)[-1]["messages"] if one["role"] == "assistant"]
        assert sent == [raw[field] for raw in stored[:2]]
        texts = ["".join(part["text"] for part in one) if isinstance(one, list) else one for one in sent]
        assert texts == [ODD, "Again."]
        assert all(len(one) == 1 for one in sent if isinstance(one, list)), (
            "one block, although it came in pieces"
        )


@pytest.mark.parametrize("peer", [DEEPSEEK, Peer("chat", "kimi-k3", "kimi-k3/chat")], ids=by_name)
async def test_case_r03_reasoning_of_ten_turns_returns_in_every_later_request(
    peer: Peer, tmp_path: Path
) -> None:
    said = [f"thought {number}" for number in range(20)]
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script(
            [{**(LOOK if number % 2 == 0 else DONE), "thinking": said[number]} for number in range(20)]
        )
        for number in range(10):
            end = await stand.crew.controller.submit(f"Turn {number}.")
            assert end.status is TurnStatus.COMPLETED
        assert stand.statuses() == [200] * 20
        for number, body in enumerate(bodies(emulator)):
            assert reasoning(body) == said[:number]


async def test_case_r04_wc_3_the_contract_decides_what_returns_and_no_name_of_a_model(tmp_path: Path) -> None:
    async with Emulator() as emulator, Stand(emulator, DEEPSEEK, tmp_path) as stand:
        emulator.script([LOOK, DONE])
        await stand.crew.controller.submit("Look.")
        history = await stand.history()
        made = []
        for name in ("deepseek-reasoner", "gpt-5", "claude-opus", "my-own"):
            peer = dataclasses.replace(DEEPSEEK, model=name)
            body = stand.frozen(history, peer)
            assert body.pop("model") == name and refusal(peer, {**body, "model": name}) == ()
            made.append(json.dumps(body, ensure_ascii=False))
        assert len(set(made)) == 1 and reasoning(json.loads(made[0])) == ["I look first.", "So."]


@pytest.mark.parametrize("effort", ["low", None])
@pytest.mark.parametrize("profile", ["deepseek", "kimi"])
async def test_case_r05_ds_04_unsigned_thinking_returns_where_its_contract_wants_it(
    profile: str, effort: str | None, tmp_path: Path
) -> None:
    peer = Peer("anthropic", profile, f"{profile}/anthropic", effort=effort)
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([{**LOOK, "thinking": ODD}, {**LOOK, "thinking": "Again."}, DONE])
        end = await stand.crew.controller.submit("Look.")
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, 200, 200])
        assert reasoning(bodies(emulator)[-1]) == [ODD, "Again."]
        first = bodies(emulator)[-1]["messages"][1]["content"]
        assert [block["type"] for block in first] == ["thinking", "tool_use"]


async def test_case_r06_left_out_reasoning_is_asked_for_once_more_and_never_copied_from_another_turn(
    tmp_path: Path,
) -> None:
    async with Emulator() as emulator, Stand(emulator, DEEPSEEK, tmp_path) as stand:
        emulator.script([LOOK, DONE, PAY, PAY, DONE])
        for nth in (3, 4):
            emulator.fault(match={"nth": nth}, reasoning_mode="omit")
        for words in ("Look.", "Pay."):
            end = await stand.crew.controller.submit(words)
        emulator.assert_fired()
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200] * 5)
        shas = [entry.body_sha for entry in emulator.requests()]
        assert shas[2] == shas[3] and len(set(shas)) == 4, "one equal request, no more"
        assert reasoning(bodies(emulator)[-1]) == ["I look first.", "So.", ""]
        assert stand.world.count("a") == 1
        stored = [one.raw for one in await stand.history() if isinstance(one, AssistantWords)]
        assert "reasoning_content" not in stored[2]


@pytest.mark.parametrize("peer", [DEEPSEEK, DEEPSEEK_MESSAGES], ids=by_name)
async def test_case_r07_where_an_empty_block_is_declared_a_host_that_always_omits_stops_nothing(
    peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([PAY, PAY, DONE, DONE])
        emulator.fault(count=-1, reasoning_mode="omit")
        end = await stand.crew.controller.submit("Pay.")
        assert end.status is TurnStatus.COMPLETED and set(stand.statuses()) == {200}
        assert stand.starts() == 1 == stand.world.count("a")
        assert reasoning(bodies(emulator)[-1]) == [""]


async def test_case_r07_pr_45_where_none_is_declared_the_step_stops_and_names_other_ways(
    tmp_path: Path,
) -> None:
    async with Emulator() as emulator, Stand(emulator, DEEPSEEK_RESPONSES, tmp_path) as stand:
        emulator.script([PAY, PAY, DONE])
        emulator.fault(count=-1, reasoning_mode="omit")
        end = await stand.crew.controller.submit("Pay.")
        assert (end.status, stand.statuses()) == (TurnStatus.FAILED, [200, 200])
        assert stand.starts() == 0 and stand.world.bodies == []
        assert end.error is not None and end.error.facts["reason"] == "reasoning_missing"
        for way in ("Go on", "change model, endpoint or thinking", "contract"):
            assert way in str(end.error)
        assert end.error.next_command == "surefoot contract show deepseek/responses"
        card = await stand.crew.controller.incidents.card()
        assert card is not None and {"resume_unchanged", "change_settings"} <= set(card["ways"])


@pytest.mark.parametrize("automatic", [True, False], ids=["summary", "person"])
async def test_case_r08_an_empty_placeholder_is_sent_only_where_it_is_declared(
    automatic: bool, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, MIMO, tmp_path, automatic=automatic) as stand:
        emulator.script([PAY, DONE])
        emulator.fault(match={"nth": 1}, reasoning_mode="omit")
        end = await stand.crew.controller.submit("Pay.")
        emulator.assert_fired()
        assert all("reasoning_content" not in one for body in bodies(emulator) for one in parts(body))
        assert stand.world.count("a") == 1
        unrepaired = stand.frozen(open_loop(await stand.history()))
        assert "reasoning_content" not in json.dumps(unrepaired) and refusal(MIMO, unrepaired) == ("MI-01",)
        card = await stand.crew.controller.incidents.card()
        assert card is not None and card["rules"] == ["MI-01"] and "change_settings" in card["ways"]
        if automatic:  # the call is told of in words, and so is what became of it
            assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, 200])
            assert "did a" in visible(bodies(emulator)[-1])
        else:
            assert (end.status, stand.statuses(), card["offered"]) == (TurnStatus.FAILED, [200], True)


async def test_case_r09_ds_10_plain_reasoning_items_return_and_one_success_proves_nothing(
    tmp_path: Path,
) -> None:
    async with Emulator() as emulator, Stand(emulator, DEEPSEEK_RESPONSES, tmp_path) as stand:
        emulator.script([LOOK, {**LOOK, "thinking": "Again."}, DONE])
        gone = [{"path": ["input", 1], "remove": True}]
        emulator.fault(match={"nth": 2}, tamper_request=gone, lenient=["DS-05"])
        end = await stand.crew.controller.submit("Look.")
        emulator.assert_fired()  # a request without its reasoning was taken
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, 200, 200])
        assert reasoning(bodies(emulator)[-1]) == ["I look first.", "Again."]
        items = [one for one in parts(bodies(emulator)[-1]) if one.get("type") == "reasoning"]
        assert all(part["type"] == "reasoning_text" for one in items for part in one["content"])


@pytest.mark.parametrize(
    "code", ["20015", "bad_response_status_code", "1214", "invalid_parameter_error", "E-7"]
)
@pytest.mark.parametrize("status", [400, 422])
def test_case_r11_the_sentence_decides_under_any_code_of_a_reseller(code: str, status: int) -> None:
    body = json.dumps({"error": {"message": SENTENCE, "type": "upstream_error", "code": code}})
    for name in ("compat/chat", "deepseek/chat", "openrouter/chat"):
        contract = contract_of(Peer("chat", "compat", name))
        assert diagnose(status, body.encode(), contract).kind == "replay_reasoning"


async def test_case_r11_a_code_of_a_resellers_own_is_recovered_from_as_any_other(tmp_path: Path) -> None:
    async with Emulator() as emulator, Stand(emulator, DEEPSEEK, tmp_path) as stand:
        emulator.script([PAY, DONE])
        emulator.fault(match={"nth": 2}, status=400, message=SENTENCE, code="20015", type="reseller")
        end = await stand.crew.controller.submit("Pay.")
        emulator.assert_fired()
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, 400, 200])
        record = stand.crew.session.incidents[-1].fields
        assert (record["kind"], record["code"]) == ("replay_reasoning", "20015")
        assert stand.world.count("a") == 1


@pytest.mark.parametrize("peer", [MIMO, Peer("chat", "compat", "compat/chat")], ids=by_name)
async def test_case_r12_a_reason_in_the_field_of_the_parameter_is_read(peer: Peer, tmp_path: Path) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([PAY, DONE])
        raw = {"error": {"code": "400", "message": "Param Incorrect", "param": SENTENCE, "type": ""}}
        emulator.fault(match={"nth": 2}, status=400, raw=json.dumps(raw))
        end = await stand.crew.controller.submit("Pay.")
        emulator.assert_fired()
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, 400, 200])
        record = stand.crew.session.incidents[-1].fields
        assert record["kind"] == "replay_reasoning" and "param" not in record, "no sentence is kept"


PICTURE = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]


async def test_case_r13_missing_reasoning_and_a_picture_in_a_result_are_two_faults_with_two_names(
    tmp_path: Path,
) -> None:
    async with Emulator() as emulator, Stand(emulator, MIMO, tmp_path) as stand:
        emulator.script([LOOK, DONE])
        await stand.crew.controller.submit("Look.")
        body = stand.frozen(open_loop(await stand.history()))
        del body["messages"][2]["reasoning_content"]
        body["messages"][3]["content"] = PICTURE
        found = {one.rule: one.kind for one in check(body, contract_of(MIMO))}
        assert found == {"MI-01": "replay_reasoning", "MI-02": "schema"}


@pytest.mark.parametrize(
    ("damage", "rule", "statuses"),
    [
        ([{"path": ["messages", 2, "reasoning_content"], "remove": True}], "MI-01", [200, 400, 200]),
        ([{"path": ["messages", 3, "content"], "value": PICTURE}], "MI-02", [200, 400]),
    ],
    ids=["reasoning", "picture"],
)
async def test_case_r13_neither_fault_is_asked_again_blindly(
    damage: list[Any], rule: str, statuses: list[int], tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, MIMO, tmp_path) as stand:
        emulator.script([LOOK, DONE])
        emulator.fault(match={"nth": 2}, tamper_request=damage)
        await stand.crew.controller.submit("Look.")
        emulator.assert_fired()
        assert stand.statuses() == statuses and emulator.requests()[1].rules == [rule]
        shas = [entry.body_sha for entry in emulator.requests()]
        assert len(set(shas)) == len(shas)


# --- items that belong together --------------------------------------------------------------


def without_reasoning(raw: dict[str, Any]) -> None:
    raw["output"] = [item for item in raw["output"] if item["type"] != "reasoning"]


def without_ciphertext(raw: dict[str, Any]) -> None:
    for item in raw["output"]:
        item.pop("encrypted_content", None)


def issued_ids(history: Sequence[Message]) -> list[str]:
    items = [item for one in history if isinstance(one, AssistantWords) for item in one.raw["output"]]
    return [item["id"] for item in items if "id" in item]


async def test_case_r14_or_03_a_call_whose_reasoning_is_lost_goes_unlinked_under_its_call_id(
    tmp_path: Path,
) -> None:
    async with Emulator() as emulator, Stand(emulator, OPENAI, tmp_path) as stand:
        emulator.script([PAY, DONE])
        emulator.fault(match={"nth": 2}, tamper_request=[{"path": ["input", 1], "remove": True}])
        end = await stand.crew.controller.submit("Pay.")
        emulator.assert_fired()
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, 400, 200])
        assert emulator.requests()[1].rules == ["OR-03"] and stand.world.count("a") == 1
        history = await stand.history()
        whole = stand.frozen(history)
        assert [one["id"][:3] for one in parts(whole) if "id" in one] == ["rs_", "fc_", "rs_", "msg"]
        poorer = edited(history, without_reasoning)
        body = stand.frozen(poorer)
        assert all("id" not in one for one in parts(body)) and refusal(OPENAI, body) == ()
        calls = [one["call_id"] for one in parts(body) if one.get("type") == "function_call"]
        assert calls == [one["call_id"] for one in parts(whole) if one.get("type") == "function_call"]


async def test_case_r15_or_04_a_message_and_the_reasoning_before_it_travel_as_a_pair(tmp_path: Path) -> None:
    async with Emulator() as emulator, Stand(emulator, OPENAI, tmp_path) as stand:
        emulator.script([{**DONE, "text": f"Words {number}."} for number in range(3)])
        for number in range(3):
            await stand.crew.controller.submit(f"Turn {number}.")
        assert stand.statuses() == [200] * 3
        history = await stand.history()
        pairs = stand.frozen(history)
        kinds = [one.get("type", one.get("role")) for one in parts(pairs)]
        assert kinds == ["user", "reasoning", "message"] * 3
        lost = {**pairs, "input": [one for one in parts(pairs) if one.get("type") != "reasoning"]}
        assert refusal(OPENAI, lost) == ("OR-04",) and refusal(OPENAI, pairs) == ()
        assert stand.frozen(history) == pairs, "the next request is made of what was stored"


async def test_case_r16_or_11_after_a_change_of_model_the_whole_input_is_sent_and_no_chain(
    tmp_path: Path,
) -> None:
    async with Emulator() as emulator:
        async with Stand(emulator, OPENAI, tmp_path) as stand:
            emulator.script([PAY, DONE])
            await stand.crew.controller.submit("Pay.")
        plain = dataclasses.replace(OPENAI, model="plain", effort=None)
        async with Stand(emulator, plain, tmp_path, new=False) as stand:
            emulator.script([{"text": "Paid."}])
            end = await stand.crew.controller.submit("And now?")
            assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200] * 3)
        last = bodies(emulator)[-1]
        assert all("previous_response_id" not in body for body in bodies(emulator))
        kinds = [one.get("type", one.get("role")) for one in parts(last)]
        assert kinds == ["user", "function_call", "function_call_output", "message", "user"]
        assert refusal(plain, {**last, "previous_response_id": "resp_1"}) == ("OR-11",)


async def test_case_r17_r18_or_05_a_service_that_keeps_nothing_gets_whole_items_and_no_bare_id(
    tmp_path: Path,
) -> None:
    async with Emulator() as emulator, Stand(emulator, OPENAI, tmp_path) as stand:
        emulator.script([LOOK, PAY, DONE, DONE])
        for words in ("Pay.", "And now?"):
            end = await stand.crew.controller.submit(words)
        assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200] * 4)
        for body in bodies(emulator):
            assert body["store"] is False and body["include"] == ["reasoning.encrypted_content"]
            for one in parts(body):
                assert one.get("type") != "item_reference"
                assert one.get("type") != "reasoning" or one["encrypted_content"]
        history = await stand.history()
        unsealed = edited(history, without_ciphertext)
        body = stand.frozen(unsealed)
        assert refusal(OPENAI, body) == () and len(issued_ids(history)) == 8
        text = json.dumps(body)
        assert not any(identity in text for identity in issued_ids(history)), "an id alone names nothing"
        assert text.count('"call_id"') == 4


# --- thinking switched on, off, and away -----------------------------------------------------


async def loop_left_open(emulator: Emulator, peer: Peer, folder: Path, step: dict[str, Any]) -> None:
    """A session whose newest call has its result, and whose next request was refused for another reason."""
    emulator.script([step])
    emulator.fault(match={"profile": peer.profile, "nth": 2}, status=401)
    async with Stand(emulator, peer, folder) as stand:
        end = await stand.crew.controller.submit("Pay.")
        assert end.status is TurnStatus.FAILED and stand.world.count("a") == 1
    emulator.assert_fired()


@pytest.mark.parametrize("words", [None, "And now?"], ids=["in-the-loop", "new-words"])
async def test_case_r32_an_10_a_loop_begun_elsewhere_goes_on_under_the_same_thinking_setting(
    words: str | None, tmp_path: Path
) -> None:
    async with Emulator() as emulator:
        await loop_left_open(emulator, dataclasses.replace(DEEPSEEK, endpoint="first"), tmp_path, PAY)
        begun = len(emulator.requests())
        async with Stand(emulator, CLAUDE, tmp_path, new=False) as stand:
            emulator.script([LOOK, DONE])
            controller = stand.crew.controller
            end = await (controller.go_on() if words is None else controller.submit(words))
            assert end.status is TurnStatus.COMPLETED
            assert stand.statuses()[begun:] == [200, 200], "nothing is sent to learn that it is refused"
            told = [one["changes"] for one in stand.crew.told("recovered_request")]
            assert told == ([{"R14": 1}] if words is None else [])
        for body in bodies(emulator)[begun:]:
            assert body["thinking"] == {"type": "enabled", "budget_tokens": 2048}
            assert "did a" in visible(body), "what was done is still told"
        asked = [one for one in bodies(emulator)[-1]["messages"] if one["role"] == "assistant"][-1]
        assert [block["type"] for block in asked["content"]] == ["thinking", "tool_use"]


async def test_case_r33_an_11_thinking_switched_off_in_the_loop_leaves_it_out_and_on_again_brings_it_back(
    tmp_path: Path,
) -> None:
    async with Emulator() as emulator:
        await loop_left_open(emulator, CLAUDE, tmp_path, PAY)
        begun = len(emulator.requests())
        off = dataclasses.replace(CLAUDE, effort="none")
        async with Stand(emulator, off, tmp_path, new=False) as stand:
            history = await stand.history()
            emulator.script([{"text": "Paid."}])
            end = await stand.crew.controller.go_on()
            assert end.status is TurnStatus.COMPLETED and stand.statuses()[begun:] == [200]
            assert stand.crew.told("recovered_request") == []
        sent = bodies(emulator)[-1]
        assert sent["thinking"] == {"type": "disabled"} and reasoning(sent) == [None]
        assert "I pay." not in json.dumps(sent)
        async with Stand(emulator, CLAUDE, tmp_path, new=False) as stand:
            assert (await stand.history())[: len(history)] == history, "the stored history is untouched"
            again = stand.frozen(history)
            assert reasoning(again) == ["I pay."] and refusal(CLAUDE, again) == ()
            emulator.script([DONE])
            await stand.crew.controller.submit("And now?")
            assert stand.statuses()[begun:] == [200, 200]


@pytest.mark.parametrize(
    "peer",
    [
        CLAUDE,
        Peer("anthropic", "compat", "compat/anthropic", effort="low"),
        DEEPSEEK_MESSAGES,
        DEEPSEEK,
        MIMO,
    ],
    ids=by_name,
)
async def test_case_r34_an_12_pr_51_reasoning_never_becomes_words_that_a_model_reads(
    peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([LOOK, DONE, DONE])
        if peer.profile in ("anthropic", "compat"):
            emulator.fault(match={"nth": 1}, reasoning_mode="unsigned")
        for words in ("Look.", "And now?"):
            end = await stand.crew.controller.submit(words)
            assert end.status is TurnStatus.COMPLETED
        emulator.assert_fired()
        assert set(stand.statuses()) == {200}
        stored = [one for one in await stand.history() if isinstance(one, AssistantWords)]
        assert "I look first." in json.dumps(stored[0].raw), "it is kept for display"
        for other in (peer, CLAUDE, DEEPSEEK, OPENAI, DEEPSEEK_RESPONSES):
            body = stand.frozen(await stand.history(), dataclasses.replace(other, endpoint="elsewhere"))
            assert "I look first." not in visible(body)
        for body in bodies(emulator):
            assert "I look first." not in visible(body)


@pytest.mark.parametrize(
    "peer",
    [dataclasses.replace(one, effort="high") for one in (DEEPSEEK, DEEPSEEK_RESPONSES, DEEPSEEK_MESSAGES)],
    ids=by_name,
)
async def test_case_r35_thinking_is_never_switched_off_by_itself(peer: Peer, tmp_path: Path) -> None:
    setting = {"chat": "reasoning_effort", "responses": "reasoning", "anthropic": "thinking"}[peer.wire]
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([PAY, PAY, DONE, DONE, PAY, PAY, DONE])
        emulator.fault(count=-1, reasoning_mode="omit")
        model: Any = stand.crew.model
        before = dict(model.target())
        for words in ("Pay.", "Again."):
            await stand.crew.controller.submit(words)
        settings = [body[setting] for body in bodies(emulator)]
        assert settings == [settings[0]] * len(settings) and "none" not in str(settings[0])
        assert dict(model.target()) == before and before["effort"] == "high"
        shas = [entry.body_sha for entry in emulator.requests()]
        assert max(shas.count(one) for one in shas) == 2, "one equal request at most"
