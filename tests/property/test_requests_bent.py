"""Law of the two judges: wherever a healthy request is bent, the validator misses no rule of its server."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest

from surefoot.providers.rules import check
from surefoot.testing.damages import record
from surefoot.testing.replaying import TIER_ONE, Peer, contract_of, parts, refusal

JUNK: list[Any] = [
    *(None, True, 0, 1.5, "", " ", "x", [], {}, [None], [""], {"a": 1}, [[]], "{cut", "a:b", "c" * 70),
    *([{"type": "text", "text": ""}], [{"type": "text"}], [{"type": "image_url", "image_url": {"url": "u"}}]),
]
BEYOND = {"schema", "AN-07", "AN-08", "AN-09", "OR-07", "OR-11", "OR-03", "OR-04"}
"""What no rule of the validator is about: the form of fields, and what only the issuer of an item knows."""


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [at] if at else []
    for key, one in inner:
        found += places(one, (*at, key))
    return found


def bend(said: list[Any], dice: random.Random) -> None:
    """Remove, replace, double or move one to three values."""
    for _ in range(dice.choice([1, 1, 2, 3])):
        known = places(said)
        if not known:
            return
        *path, key = dice.choice(known)
        holder: Any = said
        for step in path:
            holder = holder[step]
        what = dice.randrange(4)
        if what == 0:
            del holder[key]
        elif what == 1 or isinstance(holder, dict):
            holder[key] = copy.deepcopy(dice.choice(JUNK))
        elif what == 2:
            holder.insert(dice.randrange(len(holder) + 1), copy.deepcopy(holder[key]))
        else:
            other = dice.randrange(len(holder))
            holder[key], holder[other] = holder[other], holder[key]


@pytest.mark.parametrize("peer", TIER_ONE, ids=lambda peer: peer.name)
def test_wc_8_we_20_a_bent_request_is_read_and_what_its_server_refuses_is_found(peer: Peer) -> None:
    dice = random.Random(f"bent {peer.name}")
    made = record(peer, dice)
    healthy = json.dumps(made.talk.encode(made.messages))
    contract = contract_of(peer)
    for _ in range(60):
        body = json.loads(healthy)
        bend(parts(body), dice)
        refused = refusal(peer, body)
        found = check(body, contract)
        assert found or not refused or BEYOND & set(refused), (refused, json.dumps(parts(body)))
