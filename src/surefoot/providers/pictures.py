"""Pure. Where the pictures of a result go (`content.result_media`, OC-07, S-34).

Owns: whether they stand in the result, in a message of the user's side behind all results of the batch, or
nowhere, and the part that shows one on each wire. Does not own: the text of a result, which names every picture
it came with and so is true in all three cases (`core.history`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from surefoot.core.history import Message, Picture, ResultGiven

Part = dict[str, Any]


def _chat(picture: Picture) -> Part:
    return {"type": "image_url", "image_url": {"url": _url(picture)}}


def _responses(picture: Picture) -> Part:
    return {"type": "input_image", "image_url": _url(picture)}


def _anthropic(picture: Picture) -> Part:
    source = {"type": "base64", "media_type": picture.media_type, "data": picture.content}
    return {"type": "image", "source": source}


_PARTS: Mapping[str, Callable[[Picture], Part]] = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
}
_TEXT: Mapping[str, str] = {"chat": "text", "responses": "input_text", "anthropic": "text"}


def in_result(message: ResultGiven, text: Any, contract: Mapping[str, Any], wire: str) -> Any:
    """The content of a result with its pictures, where they may stand there; else the content as it is."""
    inline = contract["content.result_media"] == "inline" and contract["content.result"] == "parts"
    if not inline or not message.pictures or not isinstance(text, str):
        return text
    return [*_said(text, wire), *map(_PARTS[wire], message.pictures)]


def behind(
    ordered: Sequence[Message], place: int, contract: Mapping[str, Any], wire: str
) -> list[dict[str, Any]]:
    """The message that shows the pictures of a batch behind the last of its results; empty anywhere else."""
    if contract["content.result_media"] != "user_after" or not isinstance(ordered[place], ResultGiven):
        return []
    if place + 1 < len(ordered) and isinstance(ordered[place + 1], ResultGiven):
        return []
    parts: list[Part] = []
    while place >= 0 and isinstance(one := ordered[place], ResultGiven):
        words = f"[Picture of the result of {one.call.asked_name}]"
        shown = [part for picture in one.pictures for part in (*_said(words, wire), _PARTS[wire](picture))]
        parts = [*shown, *parts]
        place -= 1
    return [{"role": "user", "content": parts}] if parts else []


def _said(text: str, wire: str) -> list[Part]:
    return [{"type": _TEXT[wire], "text": text}] if text.strip() else []


def _url(picture: Picture) -> str:
    return f"data:{picture.media_type};base64,{picture.content}"
