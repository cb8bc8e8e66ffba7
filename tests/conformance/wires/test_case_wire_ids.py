"""Cases Q01 to Q12: ids on the wire fit the host, on both sides, and are the issuer's own wherever they can be.

The strict emulator judges each request; what it would say of the history unrepaired is shown beside it.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.history import AssistantWords, CallAsked, Message, ResultGiven, UserWords
from surefoot.core.lifecycle import Book
from surefoot.core.model import TurnStatus
from surefoot.providers import contracts, rules
from surefoot.providers.port import ModelRequest
from surefoot.providers.projection import Projection, project
from surefoot.providers.shaping import alias
from surefoot.testing.damages import TOOLS, Talk, calls_in, results_in
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.replaying import Peer, Stand

COMPAT = Peer("chat", "compat", "compat/chat")
OPENAI = Peer("chat", "openai", "openai/chat")
KIMI = Peer("chat", "kimi", "kimi/chat")
KIMI_K3 = Peer("chat", "kimi-k3", "kimi-k3/chat")
SELFHOSTED = Peer("chat", "kimi-selfhosted", "kimi-selfhosted/chat")
MISTRAL = Peer("chat", "mistral", "mistral/chat")
LLAMACPP = Peer("chat", "llamacpp", "llamacpp/chat")
ITEMS = Peer("responses", "compat", "compat/responses")
SEALED = Peer("responses", "openai", "openai/responses")
BLOCKS = Peer("anthropic", "compat", "compat/anthropic")
CLAUDE = Peer("anthropic", "anthropic", "anthropic/anthropic")
ASK, NOW = UserWords("t1", "How many?"), UserWords("t9", "And now?")
DONE = {"text": "Done.", "thinking": "So."}


def each(*peers: Peer) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("peer", peers, ids=lambda peer: peer.name)


def look(label: str, identity: str | None = None) -> dict[str, Any]:
    return {"name": "look", "args": {"label": label}, **({} if identity is None else {"id": identity})}


def asks(*calls: dict[str, Any]) -> dict[str, Any]:
    """A step of the model that asks for these calls."""
    return {"thinking": "I look.", "calls": list(calls)}


def asked(number: int, identity: str | None, position: int = 0) -> CallAsked:
    return CallAsked(f"cal_{number}", f"att_{number}", position, "look", '{"label": "a"}', identity)


def bare(*calls: CallAsked, at: int = 1) -> list[Message]:
    """A reply that is stored without any wire's JSON, and its results."""
    return [
        AssistantWords(at, "", calls, "", {}),
        *(ResultGiven(one, f"of {one.call_id}", False) for one in calls),
    ]


def projected(peer: Peer, messages: Sequence[Message]) -> Projection:
    contract = contracts.resolve(peer.contract)
    request = ModelRequest(peer.model, "s", (), TOOLS, effort=peer.effort, endpoint="emulated")
    return project(messages, Book(), contract, request=request)


def verdict(peer: Peer, body: Mapping[str, Any]) -> tuple[int, str]:
    """Status and body of the emulator's answer."""
    status, content = Talk(peer, [{"text": "Taken."}]).ask(body)
    return status, content.decode()


def spoken(peer: Peer, body: Mapping[str, Any]) -> str:
    """What the model of an accepted request says."""
    talk = Talk(peer, [{"text": "Taken."}])
    status, content = talk.ask(body)
    assert status == 200
    return talk.reply(content, 1).text


def accepted(peer: Peer, messages: Sequence[Message]) -> dict[str, Any]:
    """The request made of these messages, which neither the validator nor the emulator finds fault with."""
    made = projected(peer, messages)
    assert rules.refusing(list(made.findings)) == []
    assert verdict(peer, made.body)[0] == 200, verdict(peer, made.body)[1]
    return dict(made.body)


def refused(peer: Peer, body: Mapping[str, Any], words: str) -> None:
    """The emulator refuses this body, and says so in these words."""
    status, told = verdict(peer, body)
    assert status >= 400 and words in told, told


def both_sides(body: Mapping[str, Any]) -> list[str]:
    """The ids of the calls, which are those of the results too, in the same order."""
    calls = calls_in(body)
    assert calls == [one for one, _ in results_in(body)]
    return calls


def sent(emulator: Emulator) -> dict[str, Any]:
    """The newest request."""
    return dict(emulator.requests()[-1].json())


async def answered(stand: Stand, words: str = "How many?") -> Any:
    end = await stand.crew.controller.submit(words)
    assert end.status is TurnStatus.COMPLETED, end
    assert set(stand.statuses()) == {200}
    return end


async def repaired_once(stand: Stand, kind: str, *, status: int = 400) -> None:
    """One turn with one call, whose replay was refused, repaired once, and taken."""
    end = await stand.crew.controller.submit("How many?")
    stand.emulator.assert_fired()
    assert end.status is TurnStatus.COMPLETED, end
    assert stand.statuses() == [200, status, 200]
    records = [json.loads(entry.payload["record"]) for entry in await stand.records()]
    assert {one["kind"] for one in records} == {kind} and len({one["id"] for one in records}) == 1
    assert stand.starts() == 1


async def test_case_q01_oc_05_an_id_that_is_too_long_has_one_alias_that_outlives_a_restart(
    tmp_path: Path,
) -> None:
    long = "call_" + "x" * 46
    async with Emulator() as emulator:
        emulator.script([asks(look("a", long), look("b", long[:-1] + "y")), DONE, DONE, DONE])
        async with Stand(emulator, COMPAT, tmp_path) as stand:
            await answered(stand)
            assert both_sides(sent(emulator))[0] == long and len(long) == 51
        shown = []
        for _ in range(2):
            async with Stand(emulator, OPENAI, tmp_path, new=False) as stand:
                await answered(stand, "And now?")
                shown.append(both_sides(sent(emulator)))
        assert shown[0] == shown[1] and len(set(shown[0])) == 2
        assert all(len(one) <= 40 and one not in long for one in shown[0])


def issued(peer: Peer, *steps: dict[str, Any]) -> list[Message]:
    """A conversation as it would be stored, spoken with the emulator in this process."""
    talk, history = Talk(peer, steps), list[Message]([ASK])
    for number in range(len(steps)):
        status, content = talk.ask(talk.encode(history))
        assert status == 200
        words = talk.reply(content, number + 1)
        history += [words, *(ResultGiven(one, f"of {one.call_id}", False) for one in words.calls)]
    return history


@each(ITEMS, SEALED)
@pytest.mark.parametrize("blank", ["", " "])
@pytest.mark.parametrize("kind", ["message", "reasoning", "function_call"])
def test_case_q02_or_06_a_blank_item_id_is_left_out(peer: Peer, kind: str, blank: str) -> None:
    ids_are_left_out(peer, kind, blank)


FOREIGN = [("message", "rs_1"), ("message", "item_7"), ("reasoning", "msg_1"), ("function_call", "call_1")]


@each(ITEMS, SEALED)
@pytest.mark.parametrize(("kind", "identity"), FOREIGN)
def test_case_q03_or_06_an_item_id_of_another_kind_is_left_out(peer: Peer, kind: str, identity: str) -> None:
    ids_are_left_out(peer, kind, identity)


def ids_are_left_out(peer: Peer, kind: str, identity: str) -> None:
    history = issued(peer, {"thinking": "I look.", "text": "Looking.", "calls": [look("a")]})
    words = history[1]
    assert isinstance(words, AssistantWords)
    output = [{**one, "id": identity} if one["type"] == kind else one for one in words.raw["output"]]
    assert output != words.raw["output"]
    history[1] = dataclasses.replace(words, raw={**words.raw, "output": output})
    body = accepted(peer, [*history, NOW])
    shown = [item for item in body["input"] if item.get("type") == kind]
    assert all("id" not in item for item in shown) and identity not in [
        item.get("id") for item in body["input"]
    ]
    assert kind == "reasoning" or shown  # the words and the call are there
    assert len(both_sides(body)) == 1
    refused(peer, {**body, "input": [{"role": "user", "content": "x"}, *output]}, "Expected an ID that")


def thoughts(body: Mapping[str, Any]) -> list[Any]:
    return [item for item in body["input"] if item.get("type") == "reasoning"]


@each(ITEMS, SEALED)
def test_case_q04_or_08_r7_an_item_that_was_appended_twice_is_sent_once(peer: Peer) -> None:
    history = issued(peer, {"thinking": "I look.", "text": "Looking.", "calls": [look("a")]}, DONE)
    whole = accepted(peer, [*history, NOW])
    for place in (1, 3):
        words = history[place]
        assert isinstance(words, AssistantWords)
        output = words.raw["output"]
        said = [one for one in output if one["type"] == "message"]
        thought = [one for one in output if one["type"] == "reasoning"]
        for doubled in (
            [*thought, *output],
            [*output, *said],
            [*output, *thought, *said],
            [*thought, *said, *output],
        ):
            damaged = [*history, NOW]
            damaged[place] = dataclasses.replace(words, raw={**words.raw, "output": doubled})
            body = accepted(peer, damaged)
            texts = json.dumps(body)
            assert texts.count('"Looking."') == 1 and texts.count('"Done."') == 1, doubled
            ids = [item["id"] for item in body["input"] if "id" in item]
            assert len(ids) == len(set(ids)) and both_sides(body) == both_sides(whole)
            assert thoughts(body) == thoughts(whole)
    again = dataclasses.replace(history[3], entry_position=9)  # type: ignore[type-var]
    twice = [*history[:1], *history[3:], again, NOW]  # a whole reply, stored again
    assert json.dumps(accepted(peer, twice)).count('"Done."') == 1
    assert ("R7", 2) in projected(peer, twice).repairs
    refused(
        ITEMS, {**whole, "input": [*whole["input"], *whole["input"][-2:-1]]}, "Duplicate item found with id"
    )


@each(ITEMS, SEALED)
def test_case_q04_or_08_r10_of_two_items_with_one_id_the_second_goes_without(peer: Peer) -> None:
    history = issued(peer, DONE)
    words = history[1]
    assert isinstance(words, AssistantWords)
    said = next(one for one in words.raw["output"] if one["type"] == "message")
    other = {**said, "content": [{"type": "output_text", "text": "Another thing.", "annotations": []}]}
    history[1] = dataclasses.replace(words, raw={**words.raw, "output": [*words.raw["output"], other]})
    body = accepted(peer, [*history, NOW])
    shown = [item for item in body["input"] if item.get("type") == "message"]
    assert [item.get("id") for item in shown] == [said["id"], None]
    assert "Another thing." in json.dumps(shown)


async def test_case_q05_or_09_an_id_longer_than_its_issuer_accepts_is_changed_on_both_sides(
    tmp_path: Path,
) -> None:
    long = "call_" + "z" * 64
    async with Emulator() as emulator, Stand(emulator, SEALED, tmp_path) as stand:
        emulator.script([asks(look("a", long), look("b", long + "z")), asks(look("c")), DONE])
        await answered(stand)
        ids = both_sides(sent(emulator))
        assert len(long) == 69 and len(set(ids)) == 3 and all(len(one) <= 64 for one in ids)
        assert "zzz" not in emulator.requests()[-1].body.decode()
        assert await stand.records() == []


@each(BLOCKS, CLAUDE)
async def test_case_q06_an_05_of_ids_that_recur_only_the_later_ones_get_an_alias(
    peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script(
            [
                asks(look("a", "toolu_1"), look("b", "toolu_2")),
                DONE,
                asks(look("c", "toolu_1"), look("d", "toolu_3")),
                DONE,
            ]
        )
        await answered(stand)
        before = sent(emulator)["messages"]
        await answered(stand, "And now?")
        ids = both_sides(sent(emulator))
        assert ids[:2] == ["toolu_1", "toolu_2"] and ids[3] == "toolu_3"
        assert ids[2] not in ids[:2] and re.fullmatch(r"[a-zA-Z0-9_-]+", ids[2])
        assert sent(emulator)["messages"][: len(before)] == before
    same = {
        "model": "m",
        "max_tokens": 9,
        "messages": json.loads(json.dumps(sent(emulator)["messages"]).replace(ids[2], ids[0])),
    }
    refused(peer, same, "ids must be unique")


@each(BLOCKS, CLAUDE, COMPAT, ITEMS, SEALED)
def test_case_q06_an_05_r7_a_reply_that_was_stored_twice_is_sent_once(peer: Peer) -> None:
    history = issued(peer, {**asks(look("a"), look("b")), "text": "Looking."}, DONE)
    for stored_again in ([1], [1, 2, 3], [2, 1], [1, 1]):
        copied = [*history, *(history[place] for place in stored_again), NOW]
        body = accepted(peer, copied)
        assert len(both_sides(body)) == 2 and json.dumps(body).count('"Looking."') == 1
        told = projected(peer, [*history, dataclasses.replace(history[1], text="Looking."), NOW])  # type: ignore[type-var]
        assert "R7" in {rid for rid, _ in told.repairs} and "R1" not in {rid for rid, _ in told.repairs}


@each(BLOCKS, CLAUDE)
async def test_case_q07_an_06_ids_with_dots_and_colons_get_an_alias_of_the_hosts_pattern(
    peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator:
        emulator.script([asks(look("a"), look("b", "functions.read:0|x\n")), DONE, DONE])
        async with Stand(emulator, SELFHOSTED, tmp_path) as stand:
            await answered(stand)
            assert calls_in(sent(emulator))[0] == "functions.look:0"
        async with Stand(emulator, peer, tmp_path, new=False) as stand:
            await answered(stand, "And now?")
            ids = both_sides(sent(emulator))
            assert len(set(ids)) == 2 and all(re.fullmatch(r"[a-zA-Z0-9_-]+", one) for one in ids)
            receipts = [one.provider_call_id for one in stand.crew.session.book]
            assert receipts == ["functions.look:0", "functions.read:0|x\n"]  # what is stored is untouched
    messages = json.loads(json.dumps(sent(emulator)["messages"]).replace(ids[0], "functions.read:0"))
    refused(peer, {"model": "m", "max_tokens": 9, "messages": messages}, "String should match pattern")


@pytest.mark.parametrize("identity", ["toolu_1\n", "functions.read:0", "a b", "ä", "a|b"])
def test_case_q07_an_id_fits_a_pattern_to_its_last_character(identity: str) -> None:
    (shown,) = both_sides(accepted(BLOCKS, [ASK, *bare(asked(1, identity))]))
    assert re.fullmatch(r"[a-zA-Z0-9_-]+", shown)


@each(COMPAT, KIMI, OPENAI)
def test_case_q08_ki_03_a_blank_id_is_restored_by_position(peer: Peer) -> None:
    for blank in ("", " ", None):
        first, second = asked(1, blank), asked(2, blank, 1)
        history = bare(first, second)
        body = accepted(peer, [ASK, history[0], history[2], history[1], NOW])
        assert all(one.strip() for one in both_sides(body))
        assert [text for _, text in results_in(body)] == ["of cal_1", "of cal_2"]


async def test_case_q08_ki_03_a_blank_id_that_left_nevertheless_is_named_and_repaired_once(
    tmp_path: Path,
) -> None:
    async with Emulator() as emulator, Stand(emulator, KIMI, tmp_path) as stand:
        emulator.script([asks(look("a")), DONE])
        emulator.fault(
            match={"nth": 2}, tamper_request=[{"path": ["messages", 3, "tool_call_id"], "value": ""}]
        )
        await repaired_once(stand, "replay_pairing")
        assert emulator.requests()[1].rules == ["KI-03", "OC-02"]


async def test_case_q09_ms_01_any_id_becomes_nine_letters_or_digits_on_both_sides(tmp_path: Path) -> None:
    odd = ["call_1", "", "toolu_" + "9" * 40, "functions.read:0", "abcDEF12", "abcDEF123"]
    history = [ASK, *bare(*(asked(number, one, number) for number, one in enumerate(odd))), NOW]
    ids = both_sides(accepted(MISTRAL, history))
    assert all(re.fullmatch(r"[a-zA-Z0-9]{9}", one) for one in ids) and len(set(ids)) == len(odd)
    assert ids[-1] == "abcDEF123" and ids == both_sides(accepted(MISTRAL, history))
    refused(
        MISTRAL,
        {"model": "m", "messages": json.loads(json.dumps(accepted(COMPAT, history)["messages"]))},
        "length of 9",
    )
    async with Emulator() as emulator, Stand(emulator, MISTRAL, tmp_path) as stand:
        emulator.script([asks(look("a", "call_1"), look("b", "call_1")), DONE])
        await answered(stand)
        assert len(set(both_sides(sent(emulator)))) == 2


def test_case_q09_no_two_of_ten_thousand_aliases_are_the_same() -> None:
    contract = contracts.resolve("mistral/chat")
    made = {alias(asked(number, None), contract) for number in range(10_000)}
    assert len(made) == 10_000 and all(re.fullmatch(r"[a-zA-Z0-9]{9}", one) for one in made)


@each(MISTRAL, LLAMACPP)
async def test_case_q10_ms_01_a_500_about_ids_is_a_history_fault_and_is_repaired_once(
    peer: Peer, tmp_path: Path
) -> None:
    words = "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([asks(look("a")), DONE])
        emulator.fault(match={"nth": 2}, status=500, message=words, type="invalid_function_call")
        await repaired_once(stand, "replay_ids", status=500)


async def test_case_q11_ki_05_native_ids_go_back_unchanged_and_the_turn_has_words(tmp_path: Path) -> None:
    async with Emulator() as emulator, Stand(emulator, SELFHOSTED, tmp_path) as stand:
        native = [f"functions.look:{number}" for number in (7, 41, 12)]
        first, second, third = (look(f"{one}", one) for one in native)
        emulator.script([asks(first, second), asks(third), DONE])
        assert (await answered(stand)).text == "Done."
        assert both_sides(sent(emulator)) == native
        assert all("KI-05" not in entry.rules for entry in emulator.requests())
        cleaned = json.loads(json.dumps(sent(emulator)).replace("functions.look:", "functions_look_"))
    assert spoken(SELFHOSTED, cleaned) == ""  # what cleaned ids are answered with
    foreign = accepted(SELFHOSTED, [ASK, *bare(asked(1, "toolu_1"), asked(2, "functions.look:0", 1)), NOW])
    assert spoken(SELFHOSTED, foreign) == "Taken."


@each(KIMI_K3, COMPAT)
async def test_case_q12_ki_06_an_id_that_comes_back_with_other_arguments_is_another_call(
    peer: Peer, tmp_path: Path
) -> None:
    async def tells(live: Any, arguments: Any) -> str:
        return f"seen {arguments['label']}"

    async with Emulator() as emulator:
        tools = [dataclasses.replace(tool, body=tells) for tool in Stand(emulator, peer, tmp_path).tools()]
        steps = [
            step
            for turn in "abc"
            for step in (asks(look(f"{turn}0", "look:0"), look(f"{turn}1", "look:1")), DONE)
        ]
        emulator.script([*steps, DONE])
        labels = [f"{turn}{place}" for turn in "abc" for place in range(2)]
        async with Stand(emulator, peer, tmp_path, tools=tools) as stand:
            for turn in "abc":
                await answered(stand, f"Turn {turn}.")
            body = sent(emulator)
            assert both_sides(body) == ["look:0", "look:1"] * 3  # the issuer's own ids pass
            assert [text for _, text in results_in(body)] == [f"seen {label}" for label in labels]
            assert stand.starts() == 6
        async with Stand(emulator, BLOCKS, tmp_path, tools=tools, new=False) as stand:
            await answered(stand, "And there?")
            body = sent(emulator)
            assert len(set(both_sides(body))) == 6
            assert [text for _, text in results_in(body)] == [f"seen {label}" for label in labels]
