"""Pure. The checks an endpoint makes on a Responses request, written from the wire's rules.

Owns: the walk over the input, and the wording of each refusal. Does not own: which
rules a profile enforces (`profiles`), what is stored on the server (`stored`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from surefoot.testing.emulator.bodies import Refusal
from surefoot.testing.emulator.issuing import NO_REASONING, ItemId, read_item_id, unseal
from surefoot.testing.emulator.profiles import Profile
from surefoot.testing.emulator.reading import content_has_form
from surefoot.testing.emulator.stored import Stored

CIPHER_PREFIX = "gAAAAAB"
_PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc"}
_CALLS = ("function_call", "custom_tool_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_ROLES = ("assistant", "system", "developer", "user")


def check(
    request: dict[str, Any],
    profile: Profile,
    stored: Stored,
    *,
    account: str = "",
    off: frozenset[str] = frozenset(),
) -> Refusal | None:
    """The first refusal this profile has for the request, or None."""
    found = _form(request) or (_fields(request) if profile.checks_fields else None)
    if found is not None:
        return found
    for refusal in _Walk(request, profile, profile.rules - off, stored, account).refusals():
        return refusal
    return None


def items_of(request: dict[str, Any]) -> list[dict[str, Any]]:
    """The input as items; a string is one user message."""
    given = request.get("input")
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return [item for item in given or () if isinstance(item, dict)]


def kind_of(item: dict[str, Any]) -> str:
    """The item's type; a message may leave it out."""
    return str(item.get("type") or ("message" if "role" in item else ""))


def carries_cipher(request: dict[str, Any]) -> bool:
    """Whether some item carries a ciphertext of ours."""
    return any(unseal(i.get("encrypted_content"), CIPHER_PREFIX) is not None for i in items_of(request))


def _form(request: dict[str, Any]) -> Refusal | None:
    given = request.get("input")
    if not isinstance(given, (str, list)) or not given:
        return _schema("Missing required parameter: 'input'.", "input")
    for index, item in enumerate(given if isinstance(given, list) else ()):
        if not isinstance(item, dict):
            return _schema(f"Invalid type for 'input[{index}]': expected an object.", f"input[{index}]")
        if kind_of(item) not in ("message", "item_reference") and "role" in item:
            return _schema(f"Unknown parameter: 'input[{index}].role'.", f"input[{index}].role")
    return None


def _fields(request: dict[str, Any]) -> Refusal | None:
    if not isinstance(request.get("model"), str) or not request["model"]:
        return _schema("Missing required parameter: 'model'.", "model")
    if "messages" in request:
        return _schema("Unsupported parameter: 'messages'. Use 'input'.", "messages")
    needed = {
        "function_call": ("call_id", "name", "arguments"),
        "function_call_output": ("call_id", "output"),
        "item_reference": ("id",),
        "message": ("content",),
    }
    for index, item in enumerate(items_of(request)):
        kind = kind_of(item)
        if not kind:
            return _schema(f"Missing required parameter: 'input[{index}].type'.", f"input[{index}]")
        for key in needed.get(kind, ()):
            where = f"input[{index}].{key}"
            if key not in item or item[key] is None:
                return _schema(f"Missing required parameter: '{where}'.", where)
            if key in ("call_id", "name", "arguments", "id") and not isinstance(item[key], str):
                return _schema(f"Invalid type for '{where}': expected a string.", where)
        if kind == "message" and not content_has_form(item["content"]):
            where = f"input[{index}].content"
            return _schema(f"Invalid type for '{where}': expected a string or an array of parts.", where)
    return _tool_fields(request.get("tools"))


_HOSTED_NEEDS = {"code_interpreter": "container", "mcp": "server_label", "file_search": "vector_store_ids"}
"""What a tool of the provider's own cannot be declared without."""


def _tool_fields(tools: Any) -> Refusal | None:
    for index, tool in enumerate(tools if isinstance(tools, list) else ()):
        kind = tool.get("type") if isinstance(tool, dict) else None
        if not isinstance(kind, str):
            return _schema(f"Missing required parameter: 'tools[{index}].type'.", f"tools[{index}]")
        missing = _HOSTED_NEEDS.get(kind)
        if missing is not None and not tool.get(missing):
            where = f"tools[{index}].{missing}"
            return _schema(f"Missing required parameter: '{where}'.", where)
        name = tool.get("name")
        if kind == "function" and not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", str(name or "")):
            return _schema(f"Missing required parameter: 'tools[{index}].name'.", f"tools[{index}].name")
    return None


def _schema(message: str, param: str) -> Refusal:
    return Refusal(("schema",), message, param=param)


class _Walk:
    """One pass over the input; yields what would be refused, in request order."""

    def __init__(
        self, request: dict[str, Any], profile: Profile, rules: frozenset[str], stored: Stored, account: str
    ) -> None:
        self.request = request
        self.profile = profile
        self.rules = rules
        self.stored = stored
        self.account = account
        self.own = items_of(request)
        self.items = self.own
        self.offset = 0

    def refusals(self) -> Iterator[Refusal]:
        yield from self._chain()
        yield from self._references()
        yield from self._ids()
        yield from self._pairs()
        for index, item in enumerate(self.items):
            if index < self.offset:
                continue
            yield from self._role(index - self.offset, item)
            yield from self._cipher(item)
            yield from self._bare(item)
            yield from self._needs_reasoning(index, item)
            yield from self._needs_follower(index, item)
        yield from self._plain_reasoning()

    def _named(self, rule: str, message: str, **more: Any) -> Iterator[Refusal]:
        if rule in self.rules:
            yield Refusal((rule,), message, **{"param": "input", **more})

    def _chain(self) -> Iterator[Refusal]:
        previous = self.request.get("previous_response_id")
        if "DS-05" in self.rules and (previous or self.request.get("store") is True):
            key = "previous_response_id" if previous else "store"
            yield Refusal(("DS-05",), f"{key} is not supported by this endpoint.", param=key)
        if not previous:
            return
        before = self.stored.conversation(str(previous))
        if before is None:
            if "OR-11" in self.rules:
                text = f"Previous response with id '{previous}' not found."
                param = "previous_response_id"
                yield Refusal(("OR-11",), text, param=param, code="previous_response_not_found")
            return
        self.items, self.offset = [*before, *self.own], len(before)

    def _references(self) -> Iterator[Refusal]:
        """OR-05: what is named by its id alone must be stored; what is stored takes its place."""
        resolved: list[dict[str, Any]] = []
        for item in self.items:
            if kind_of(item) == "item_reference":
                found = self.stored.item(str(item.get("id")))
                if found is None:
                    yield from self._not_found(str(item.get("id")))
                resolved.append(found or item)
            else:
                resolved.append(item)
        self.items = resolved

    def _bare(self, item: dict[str, Any]) -> Iterator[Refusal]:
        """OR-05: a reasoning item without content is nothing but an id."""
        if kind_of(item) != "reasoning" or not item.get("id"):
            return
        if not item.get("encrypted_content") and self.stored.item(str(item["id"])) is None:
            yield from self._not_found(str(item["id"]))

    def _not_found(self, identity: str) -> Iterator[Refusal]:
        text = (
            f"Item with id '{identity}' not found. Items are not persisted when `store` is set to false. "
            "Try again with `store` set to true, or remove this item from your input."
        )
        yield from self._named("OR-05", text, status=404)

    def _ids(self) -> Iterator[Refusal]:
        seen: set[str] = set()
        for index, item in enumerate(self.own):
            kind, identity = kind_of(item), item.get("id")
            call_id = item.get("call_id")
            if isinstance(call_id, str) and len(call_id) > 64:
                yield from self._named(
                    "OR-09",
                    f"Invalid 'input[{index}].call_id': string too long. Expected a string with maximum length "
                    f"64, but got a string with length {len(call_id)} instead.",
                    param=f"input[{index}].call_id",
                    code="string_above_max_length",
                )
            if identity is None or kind == "item_reference":
                continue
            where = f"input[{index}].id"
            wanted = _PREFIXES.get(kind)
            if not isinstance(identity, str) or not identity:
                text = f"Invalid '{where}': '{identity}'. Expected an ID that contains letters, numbers, "
                yield from self._named("OR-06", text + "underscores, or dashes.", param=where)
            elif wanted and not identity.startswith(wanted):
                text = f"Invalid '{where}': '{identity}'. Expected an ID that begins with '{wanted}'."
                yield from self._named("OR-06", text, param=where, code="invalid_value")
            if str(identity) in seen:
                text = f"Duplicate item found with id {identity}. Remove duplicate items from your input and "
                yield from self._named("OR-08", text + "try again.")
            seen.add(str(identity))

    def _pairs(self) -> Iterator[Refusal]:
        """OR-01, OR-02, and the words MiniMax has for them. Only that one minds the order."""
        everywhere = {str(item.get("call_id")) for item in self.items if kind_of(item) in _CALLS}
        asked: dict[str, bool] = {}
        for item in self.items:
            kind, call_id = kind_of(item), str(item.get("call_id"))
            if kind in _CALLS:
                yield from self._minimax_call(call_id, item, call_id in asked)
                asked.setdefault(call_id, False)
            elif kind in _OUTPUTS:
                if call_id not in everywhere:
                    text = f"No tool call found for function call output with call_id {call_id}."
                    yield from self._named("OR-02", text)
                    text = f"invalid params, tool result's tool id({call_id}) not found (2013)"
                    yield from self._named("MM-01", text, code="invalid_prompt")
                elif call_id not in asked:
                    text = "invalid params, tool call result does not follow tool call (2013)"
                    yield from self._named("MM-03", text, code="invalid_prompt")
                asked[call_id] = True
        missing = [call_id for call_id, answered in asked.items() if not answered]
        if missing:
            yield from self._named("OR-01", f"No tool output found for function call {missing[0]}.")
            text = "invalid params, tool call result does not follow tool call (2013)"
            yield from self._named("MM-03", text, code="invalid_prompt")

    def _minimax_call(self, call_id: str, item: dict[str, Any], twice: bool) -> Iterator[Refusal]:
        if twice:
            yield from self._named(
                "MM-03", "invalid params, duplicate tool_call id (2013)", code="invalid_prompt"
            )
        if "MM-02" in self.rules and not _is_object(item.get("arguments")):
            text = f"invalid params, invalid function arguments json string, tool_call_id: {call_id} (2013)"
            yield from self._named("MM-02", text, code="invalid_prompt")

    def _role(self, index: int, item: dict[str, Any]) -> Iterator[Refusal]:
        role = item.get("role")
        if role is None or role in _ROLES:
            return
        rule = "OR-10" if role == "tool" else "schema"
        text = (
            f"Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', and 'user'."
        )
        if rule == "schema" and self.profile.checks_fields:
            yield Refusal(("schema",), text, param=f"input[{index}].role")
        yield from self._named("OR-10", text, param=f"input[{index}].role", code="invalid_value")

    def _cipher(self, item: dict[str, Any]) -> Iterator[Refusal]:
        cipher = item.get("encrypted_content")
        if cipher is None or kind_of(item) != "reasoning" or "OR-07" not in self.rules:
            return
        token = unseal(cipher, CIPHER_PREFIX)
        fits = token is not None and token.kind == "reasoning" and token.model == self.request.get("model")
        if token is None or not fits or token.account != self.account:
            shown = str(cipher)[:4]
            yield from self._named(
                "OR-07",
                f"The encrypted content {shown}... could not be verified. Reason: Encrypted content could not be "
                "decrypted or parsed.",
                code="invalid_encrypted_content",
            )

    def _needs_reasoning(self, index: int, item: dict[str, Any]) -> Iterator[Refusal]:
        """OR-03, and OR-04 for messages: an item sent with its id stands behind its reasoning item."""
        identity = read_item_id(item.get("id"))
        kind = kind_of(item)
        if identity is None or kind == "reasoning" or identity.reasoning == NO_REASONING:
            return
        for before in reversed(self.items[:index]):
            if kind_of(before) in _OUTPUTS:
                continue  # a result between two calls of one group parts nothing
            own = _identity(before)
            if own is None or own.reply != identity.reply:
                break
            if kind_of(before) == "reasoning":
                if own.place == identity.reasoning:
                    return
                break
            if own.reasoning != identity.reasoning:
                break
        reasoning = f"rs_{identity.reply}{identity.reasoning:02x}{NO_REASONING:02x}"
        if kind == "function_call":
            yield from self._named(
                "OR-03",
                f"Item '{item['id']}' of type 'function_call' was provided without its required 'reasoning' "
                f"item: '{reasoning}'.",
            )
        else:
            yield from self._named(
                "OR-04",
                f"Item '{item['id']}' of type '{kind}' was provided without its required preceding item of type "
                "'reasoning'.",
            )

    def _needs_follower(self, index: int, item: dict[str, Any]) -> Iterator[Refusal]:
        if kind_of(item) != "reasoning" or "OR-04" not in self.rules:
            return
        identity = _identity(item)
        if identity is None:
            return
        following = self.items[index + 1] if index + 1 < len(self.items) else {}
        own = None if kind_of(following) in _OUTPUTS else _identity(following)
        fits = own is not None and own.reply == identity.reply and own.reasoning == identity.place
        if not fits and not (own is None and following.get("role") == "assistant" and "id" not in following):
            shown = item.get("id") or f"rs_{identity.reply}{identity.place:02x}{NO_REASONING:02x}"
            text = f"Item '{shown}' of type 'reasoning' was provided without its required following item."
            yield from self._named("OR-04", text)

    def _plain_reasoning(self) -> Iterator[Refusal]:
        """DS-05, MI-01: calls have plain reasoning text before them in their step."""
        mimo = self.profile.knobs.get("reasoning_protocol") == "mimo"
        if not (mimo or "DS-05" in self.rules) or _thinking_is_off(self.request):
            return
        thought = False
        for item in self.items:
            kind = kind_of(item)
            if kind == "reasoning":
                thought = thought or _has_text(item)
            elif kind in _CALLS and not thought:
                if mimo:
                    text = "The reasoning_content in the thinking mode must be passed back to the API."
                    yield Refusal(("MI-01",), text)
                else:
                    text = "The `reasoning_text` in the thinking mode must be passed back to the API."
                    yield Refusal(("DS-05",), text)
            elif kind in _OUTPUTS or item.get("role") not in (None, "assistant"):
                thought = False


def _identity(item: dict[str, Any]) -> ItemId | None:
    """Which issued item this is, by its id, its call, or its ciphertext."""
    found = read_item_id(item.get("id")) or read_item_id(item.get("call_id"))
    if found is not None or kind_of(item) != "reasoning":
        return found
    token = unseal(item.get("encrypted_content"), CIPHER_PREFIX)
    return None if token is None else read_item_id(token.facts.get("id"))


def _has_text(item: dict[str, Any]) -> bool:
    parts = item.get("content")
    return any(
        isinstance(part, dict)
        and part.get("type") == "reasoning_text"
        and str(part.get("text") or "").strip()
        for part in (parts if isinstance(parts, list) else ())
    )


def _thinking_is_off(request: dict[str, Any]) -> bool:
    reasoning = request.get("reasoning")
    return isinstance(reasoning, dict) and reasoning.get("effort") in ("none", "disabled")


def _is_object(arguments: Any) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except (TypeError, ValueError):
        return False
