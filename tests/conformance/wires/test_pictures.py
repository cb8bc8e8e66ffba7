"""Pictures of a result: marked text in it on every wire, and the picture itself where the contract lets it stand."""

from __future__ import annotations

import base64
import dataclasses
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.model import TurnStatus
from surefoot.providers.rules import check
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.replaying import Peer, Stand
from surefoot.tools.files.pictures import MOST_BYTES, Sight, sight_of
from surefoot.tools.files.toolset import file_tools

CHAT = Peer("chat", "openai", "openai/chat")
RESPONSES = Peer("responses", "openai", "openai/responses")
MESSAGES = Peer("anthropic", "anthropic", "anthropic/anthropic", effort="low")
DONE = {"text": "Done.", "thinking": "So."}


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(width: int = 2, height: int = 3, *, pixels: bytes | None = None) -> bytes:
    rows = zlib.compress(b"".join(b"\0" + b"\x10\x20\x30" * width for _ in range(height)))
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    body = chunk(b"IDAT", rows if pixels is None else pixels)
    return b"\x89PNG\r\n\x1a\n" + head + body + chunk(b"IEND", b"")


JPEG = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x08\x08\0\x03\0\x02\x01\xff\xda\0\x03ab\xff\xd9"
PICTURE = png()
DATA = base64.b64encode(PICTURE).decode()


def under(peer: Peer, media: str) -> Peer:
    return dataclasses.replace(peer, declared={"content.result_media": media, "content.result": "parts"})


def shown(peer: Peer, body: dict[str, Any]) -> list[str]:
    """Where pictures stand in a request: what holds each of them, in order."""
    found = []
    for one in body.get("messages") or body["input"]:
        role = one.get("type") if one.get("type") == "function_call_output" else one.get("role", "")
        content = one.get("output", one.get("content"))
        for part in content if isinstance(content, list) else ():
            inner = part.get("content") if isinstance(part.get("content"), list) else ()
            found += [f"{role}:{part['type']}" for piece in inner if DATA in str(piece)]
            found += [str(role)] if not inner and DATA in str(part) else []
    return found


TABLE = [
    (Peer("chat", "compat", "compat/chat"), []),
    (Peer("responses", "compat", "compat/responses"), []),
    (CHAT, ["user"] * 2),
    (RESPONSES, ["function_call_output"] * 2),
    (under(CHAT, "none"), []),
    (under(RESPONSES, "none"), []),
    (under(MESSAGES, "none"), []),
    (MESSAGES, ["user:tool_result"] * 2),
    (under(RESPONSES, "user_after"), ["user"] * 2),
    (under(MESSAGES, "user_after"), ["user"] * 2),
]


@pytest.mark.parametrize(
    ("peer", "places"),
    TABLE,
    ids=[f"{one.contract} {one.declared.get('content.result_media', 'as shipped')}" for one, _ in TABLE],
)
async def test_case_t06_oc_07_s_34_a_picture_is_told_in_words_and_shown_where_the_contract_says(
    peer: Peer, places: list[str], tmp_path: Path
) -> None:
    (tmp_path / "shot.png").write_bytes(PICTURE)
    args = {"path": str(tmp_path / "shot.png")}
    read = {"thinking": "I look.", "calls": [{"name": "read", "args": args}, {"name": "read", "args": args}]}
    ledger = tmp_path / "ledger"
    async with Emulator() as emulator:
        async with Stand(emulator, peer, ledger, tools=file_tools()) as stand:
            emulator.script([read, DONE, DONE])
            end = await stand.crew.controller.submit("Look at the picture.")
            assert (end.status, stand.statuses()) == (TurnStatus.COMPLETED, [200, 200]), end
            model: Any = stand.crew.model
            body = emulator.requests()[1].json()
            assert shown(peer, body) == places and str(body).count("is a PNG image") == 2
            assert [one for one in check(body, model.contract) if one.level == "enforce"] == []
        async with Stand(emulator, peer, ledger, tools=file_tools(), new=False) as again:
            assert (await again.crew.controller.submit("And now?")).status is TurnStatus.COMPLETED
            later = emulator.requests()[2].json()
        key = "input" if peer.wire == "responses" else "messages"
        assert later[key][: len(body[key])] == body[key], "what was sent once never changes"


def test_s_34_only_a_whole_picture_counts_as_one_so_that_no_torn_file_stands_in_every_later_request() -> None:
    assert sight_of(PICTURE) == Sight("image/png", 2, 3)
    assert sight_of(JPEG) == Sight("image/jpeg", 2, 3)
    flipped = bytearray(PICTURE)
    flipped[45] ^= 1
    for torn in (
        *(PICTURE[:size] for size in (0, 8, 20, 40, len(PICTURE) - 1)),
        bytes(flipped),
        PICTURE + b"more",
        png(pixels=b"no pixels"),
        png(9000, 1),
        PICTURE + b"\0" * MOST_BYTES,
        JPEG[:-2],
        JPEG.replace(b"\xff\xc0", b"\xff\xfe"),
        b"GIF89a",
    ):
        assert sight_of(torn) is None
