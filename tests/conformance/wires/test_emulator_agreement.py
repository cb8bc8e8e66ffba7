"""Two judges, written apart from one document: what the emulator refuses, the validator has found before.

The other direction does not hold: a client may be stricter than any endpoint is known to be.
"""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from surefoot.providers import contracts, rules
from surefoot.testing.emulator import anthropic_rules, chat_rules, responses_rules
from surefoot.testing.emulator.bodies import Refusal
from surefoot.testing.emulator.profiles import WIRES, Profile
from surefoot.testing.emulator.stored import Stored

Body = dict[str, Any]
ONLY_THE_ISSUER_KNOWS = {"AN-07", "AN-08", "AN-09", "OR-07", "OR-11", "GE-02"}
"""Whether a signature, ciphertext or stored response is its own, no client can check."""
ROUTERS = ("openrouter", "litellm")
BOTH = [
    (wire, name)
    for wire, profiles in WIRES.items()
    for name in profiles
    if f"{name}/{wire}" in contracts.contract_ids() and name not in ROUTERS
]


def test_we_20_every_emulated_endpoint_has_a_contract() -> None:
    emulated = {f"{name}/{wire}" for wire, profiles in WIRES.items() for name in profiles}
    tier_three = {"gemini/gemini", "bedrock/converse"}
    assert emulated - {"lenient/chat"} - tier_three <= set(contracts.contract_ids())


def damaged(items: list[Body], chance: random.Random) -> list[Body]:
    """Up to two items removed, doubled or exchanged; never none at all."""
    for _ in range(chance.choice([0, 1, 1, 2])):
        place, other = chance.randrange(len(items)), chance.randrange(len(items))
        what = chance.random()
        if what < 0.4 and len(items) > 1:
            items.pop(place)
        elif what < 0.6:
            items.insert(other, copy.deepcopy(items[place]))
        else:
            items[place], items[other] = items[other], items[place]
    return items


def chat(chance: random.Random) -> Body:
    ids = ["abcDEF123", "abcDEF124", "functions.note:0", "call_x", "i" * 45, "a:b"]
    messages: list[Body] = []
    for _ in range(chance.randint(1, 4)):
        said = [{"type": "text", "text": chance.choice(["x", ""])}]
        messages.append({"role": "user", "content": chance.choice(["go", said])})
        if chance.random() < 0.7:
            batch = [chance.choice(ids) for _ in range(chance.randint(1, 3))]
            messages.append(_chat_calls(batch, chance))
            results = ["ok", "", [{"type": "text", "text": "x"}]]
            messages += [
                {"role": "tool", "tool_call_id": i, "content": chance.choice(results)} for i in batch
            ]
        if chance.random() < 0.5:
            thought = {"reasoning_content": "hm"} if chance.random() < 0.5 else {}
            messages.append({"role": "assistant", "content": chance.choice(["x", "x", None]), **thought})
    body: Body = {"model": "m", "messages": damaged(messages, chance)}
    if chance.random() < 0.7:
        body["tools"] = [{"type": "function", "function": {"name": "note", "parameters": {}}}]
    if chance.random() < 0.2:
        body["thinking"] = {"type": "disabled"}
    return body


def _chat_calls(batch: list[str], chance: random.Random) -> Body:
    calls: list[Body] = []
    for identity in batch:
        arguments = chance.choice(["{}", "{}", "{}", '{"cut', "[]"])
        function = {"name": "note", "arguments": arguments}
        calls.append({"id": identity, "type": "function", "function": function})
    message: Body = {"role": "assistant", "content": chance.choice([None, "", "x"]), "tool_calls": calls}
    if chance.random() < 0.5:
        message["reasoning_content"] = chance.choice(["hm", ""])
    if chance.random() < 0.3:
        signed = {"thought_signature": "skip_thought_signature_validator"}
        calls[0]["extra_content"] = {"google": signed}
    return message


def anthropic(chance: random.Random) -> Body:
    messages: list[Body] = []
    for turn in range(chance.randint(1, 3)):
        messages.append({"role": "user", "content": chance.choice(["go"] * 8 + ["", " "])})
        if chance.random() < 0.8:
            ids = [
                chance.choice([f"t{turn}{n}", f"t{turn}{n}", "t", "a:b"]) for n in range(chance.randint(1, 2))
            ]
            messages += _anthropic_loop(ids, chance)
        if chance.random() < 0.5:
            messages.append({"role": "assistant", "content": [{"type": "text", "text": "x"}]})
    body: Body = {"model": "m", "max_tokens": 9, "messages": damaged(messages, chance)}
    if chance.random() < 0.6:
        on = {"type": "enabled", "budget_tokens": 1024}
        body["thinking"] = chance.choice([on, {"type": "disabled"}])
    return body


def _anthropic_loop(ids: list[str], chance: random.Random) -> list[Body]:
    thoughts = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
    ]
    said: list[Body] = [chance.choice(thoughts)] if chance.random() < 0.5 else []
    if chance.random() < 0.4:
        said.append({"type": "text", "text": chance.choice(["x", " ", "x"])})
    said += [{"type": "tool_use", "id": i, "name": "note", "input": {}} for i in ids]
    back: list[Body] = [
        {
            "type": "tool_result",
            "tool_use_id": i,
            "content": chance.choice(["ok", ""]),
            "is_error": chance.random() < 0.3,
        }
        for i in ids
    ]
    if chance.random() < 0.3:
        back.append({"type": "text", "text": "y"})
    if chance.random() < 0.3:
        chance.shuffle(back)
    if chance.random() < 0.3:
        damaged(back, chance)
    return [{"role": "assistant", "content": said}, {"role": "user", "content": back}]


def responses(chance: random.Random) -> Body:
    items: list[Body] = []
    for turn in range(chance.randint(1, 3)):
        items.append({"role": "user", "content": "go"})
        if chance.random() < 0.6:
            text = {"type": "reasoning_text", "text": chance.choice(["hm", ""])}
            sealed = {"type": "reasoning", "id": f"rs_{turn}", "summary": [], "encrypted_content": "x"}
            items.append(chance.choice([sealed, {"type": "reasoning", "summary": [], "content": [text]}]))
        if chance.random() < 0.8:
            ids = [
                chance.choice([f"c{turn}{n}", f"c{turn}{n}", "c", "c" * 70])
                for n in range(chance.randint(1, 2))
            ]
            for number, identity in enumerate(ids):
                call: Body = {"type": "function_call", "call_id": identity, "name": "note"}
                call["arguments"] = chance.choice(["{}", "{}", "{cut"])
                if chance.random() < 0.3:
                    call["id"] = chance.choice([f"fc_{turn}{number}", "", "x", "fc_1"])
                items.append(call)
            items += [{"type": "function_call_output", "call_id": i, "output": "ok"} for i in ids]
        if chance.random() < 0.3:
            items.append({"role": "assistant", "content": "x"})
        if chance.random() < 0.1:
            items.append(
                chance.choice([{"role": "tool", "content": "x"}, {"type": "item_reference", "id": "rs_9"}])
            )
    return {"model": "m", "store": False, "input": damaged(items, chance)}


def judged(body: Body, profile: Profile) -> Refusal | None:
    if profile.wire == "chat":
        return chat_rules.check(body, profile)
    if profile.wire == "anthropic":
        return anthropic_rules.check(body, profile)
    return responses_rules.check(body, profile, Stored())


MADE = {"chat": chat, "anthropic": anthropic, "responses": responses}


@pytest.mark.parametrize(("wire", "name"), BOTH, ids=[f"{name}-{wire}" for wire, name in BOTH])
def test_we_20_what_the_emulator_refuses_the_validator_has_found_before(wire: str, name: str) -> None:
    chance = random.Random(f"{name}/{wire}")
    contract = contracts.resolve(f"{name}/{wire}")
    refused = 0
    for _ in range(150):
        body = MADE[wire](chance)
        refusal = judged(body, WIRES[wire][name])
        if refusal is None or ONLY_THE_ISSUER_KNOWS & set(refusal.rules):
            continue
        refused += 1
        assert rules.check(body, contract), (refusal.rules, refusal.message, body)
    assert refused or name == "lenient"
