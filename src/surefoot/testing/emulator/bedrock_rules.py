"""Pure. The checks Bedrock makes on a Converse request, written from the wire's rules.

Owns: the walk over messages and content blocks, and the wording of each refusal. Does not
own: which rules a profile enforces (`profiles`), the form of a reply (`bedrock_replies`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from surefoot.testing.emulator.bodies import Refusal
from surefoot.testing.emulator.issuing import came_with_text
from surefoot.testing.emulator.profiles import Profile

_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
_BLOCKS = frozenset(
    {"text", "image", "document", "video", "audio", "toolUse", "toolResult", "guardContent", "cachePoint"}
    | {"reasoningContent", "citationsContent", "searchResult"}
)
"""A content block is exactly one of these."""
_FAILED = "1 validation error detected: Value at '{}' failed to satisfy constraint: {}"
_TOGETHER = "Conversation blocks and tool {} blocks cannot be provided in the same turn."


def check(request: dict[str, Any], profile: Profile, off: frozenset[str] = frozenset()) -> Refusal | None:
    """The first refusal this profile has for the request, or None. `off` turns rules off."""
    found = _has_form(request)
    if found is not None:
        return found
    for refusal in _Walk(request, profile.rules - off).refusals():
        return refusal
    return None


class _Walk:
    """One pass over the messages; yields what would be refused, in request order."""

    def __init__(self, request: dict[str, Any], rules: frozenset[str]) -> None:
        self.request = request
        self.messages: list[dict[str, Any]] = request["messages"]
        self.rules = rules

    def refusals(self) -> Iterator[Refusal]:
        yield from self._tools_declared()
        for index, message in enumerate(self.messages):
            yield from self._content(index, message["content"])
            uses, results = _held(message, "toolUse"), _held(message, "toolResult")
            yield from self._text_beside(message, uses, results)
            ids = [use["toolUseId"] for use in uses]
            if len(set(ids)) < len(ids):
                text = f"The toolUse blocks at messages.{index}.content contain duplicate Ids"
                yield from self._named("BR-04", text)
            before = _held(self.messages[index - 1], "toolUse") if index else []
            if len(results) > len(before):
                yield from self._named(
                    "BR-02",
                    f"The number of toolResult blocks at messages.{index}.content exceeds the number of toolUse "
                    "blocks of previous turn.",
                )
            yield from self._answered(index, ids)

    def _named(self, rule: str, message: str) -> Iterator[Refusal]:
        if rule in self.rules:
            yield _refused(rule, message)

    def _tools_declared(self) -> Iterator[Refusal]:
        used = any(_held(message, "toolUse") or _held(message, "toolResult") for message in self.messages)
        if used and not self.request.get("toolConfig"):
            yield from self._named(
                "BR-05",
                "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
            )

    def _content(self, index: int, content: list[dict[str, Any]]) -> Iterator[Refusal]:
        if not content:
            yield from self._named(
                "BR-06", f"The content field in the Message object at messages.{index} is empty."
            )
        for place, block in enumerate(content):
            where = f"messages.{index}.content.{place}"
            if "text" in block and not block["text"].strip():
                text = f"The text field in the ContentBlock object at {where} is blank"
                yield from self._named("BR-06", text)
            result = block.get("toolResult")
            if result is not None and result.get("status") == "error" and _is_blank(result["content"]):
                text = f"The content field at {where}.toolResult cannot be empty when status value is error."
                yield from self._named("BR-06", text)

    def _text_beside(
        self, message: dict[str, Any], uses: list[dict[str, Any]], results: list[dict[str, Any]]
    ) -> Iterator[Refusal]:
        """BR-03. A model takes back what it said itself: text beside calls that were issued so."""
        if not any("text" in block for block in message["content"]):
            return
        if results:
            yield from self._named("BR-03", _TOGETHER.format("result"))
        if uses and not all(came_with_text(use["toolUseId"]) for use in uses):
            yield from self._named("BR-03", _TOGETHER.format("use"))

    def _answered(self, index: int, ids: list[str]) -> Iterator[Refusal]:
        following = self.messages[index + 1] if index + 1 < len(self.messages) else {"content": []}
        given = {result["toolUseId"] for result in _held(following, "toolResult")}
        missing = [identity for identity in ids if identity not in given]
        if missing:
            where = f"messages.{index + 1}.content"
            text = f"Expected toolResult blocks at {where} for the following Ids: {', '.join(missing)}"
            yield from self._named("BR-01", text)


def _held(message: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [block[name] for block in message["content"] if name in block]


def _is_blank(content: list[dict[str, Any]]) -> bool:
    return not any("text" not in one or str(one["text"] or "").strip() for one in content)


def _has_form(request: dict[str, Any]) -> Refusal | None:
    """What the service needs to read the request at all."""
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        return _schema(_FAILED.format("messages", "Member must have length greater than or equal to 1"))
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
            told = "Member must satisfy enum value set: [user, assistant]"
            return _schema(_FAILED.format(f"messages.{index + 1}.member.role", told))
        content = message.get("content")
        if not isinstance(content, list):
            return _schema(_FAILED.format(f"messages.{index + 1}.member.content", "Member must not be null"))
        for place, block in enumerate(content):
            where = f"messages.{index + 1}.member.content.{place + 1}.member"
            fault = _block_fault(block, message["role"])
            if fault is not None:
                return _schema(_FAILED.format(where + fault[0], fault[1]))
    return _tool_fault(request)


def _block_fault(block: Any, role: str) -> tuple[str, str] | None:
    kinds = [name for name in block if block[name] is not None] if isinstance(block, dict) else []
    if len(kinds) != 1 or len(block) != 1 or kinds[0] not in _BLOCKS:
        return "", "Member must have exactly one known field set"
    kind, held = kinds[0], block[kinds[0]]
    if kind == "text" and not isinstance(held, str):
        return ".text", "Member must be a string"
    if kind == "toolUse":
        return _use_fault(held, role)
    return _result_fault(held, role) if kind == "toolResult" else None


def _use_fault(held: Any, role: str) -> tuple[str, str] | None:
    if role != "assistant":
        return ".toolUse", "Member is taken in assistant messages only"
    if not isinstance(held, dict) or not isinstance(held.get("name"), str) or not held["name"]:
        return ".toolUse.name", "Member must not be null"
    if not isinstance(held.get("input"), dict):
        return ".toolUse.input", "Member must be an object"
    return _id_fault(held, "toolUse")


def _result_fault(held: Any, role: str) -> tuple[str, str] | None:
    if role != "user":
        return ".toolResult", "Member is taken in user messages only"
    content = held.get("content") if isinstance(held, dict) else None
    if not isinstance(content, list) or not all(isinstance(one, dict) for one in content):
        return ".toolResult.content", "Member must not be null"
    if held.get("status") not in (None, "success", "error"):
        return ".toolResult.status", "Member must satisfy enum value set: [success, error]"
    return _id_fault(held, "toolResult")


def _id_fault(held: dict[str, Any], kind: str) -> tuple[str, str] | None:
    identity = held.get("toolUseId")
    if isinstance(identity, str) and _ID.fullmatch(identity):
        return None
    return f".{kind}.toolUseId", "Member must satisfy regular expression pattern: [a-zA-Z0-9_.:-]+"


def _tool_fault(request: dict[str, Any]) -> Refusal | None:
    settings = request.get("toolConfig")
    if settings is None:
        return None
    tools = settings.get("tools") if isinstance(settings, dict) else None
    if not isinstance(tools, list) or not tools:
        told = "Member must have length greater than or equal to 1"
        return _schema(_FAILED.format("toolConfig.tools", told))
    for index, tool in enumerate(tools):
        spec = tool.get("toolSpec") if isinstance(tool, dict) else None
        if isinstance(tool, dict) and "toolSpec" not in tool and tool:
            continue  # a cache point or a tool of the system's
        name = spec.get("name") if isinstance(spec, dict) else None
        if not isinstance(name, str) or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
            told = "Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+"
            return _schema(_FAILED.format(f"toolConfig.tools.{index + 1}.member.toolSpec.name", told))
    return None


def _schema(message: str) -> Refusal:
    return _refused("schema", message)


def _refused(rule: str, message: str) -> Refusal:
    return Refusal((rule,), message, type="ValidationException")
