"""Pure. The checks an endpoint makes on a Gemini `generateContent` request, written from the wire's rules.

Owns: reading contents and parts in either spelling of their names, the walk over them, the
thought signatures of this wire, and the wording of each refusal. Does not own: which rules a
profile enforces (`profiles`), the form of a reply (`gemini_replies`).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from typing import Any

from surefoot.testing.emulator.bodies import Refusal
from surefoot.testing.emulator.issuing import BACKEND, DUMMY_SIGNATURE, Token, bent, unseal
from surefoot.testing.emulator.profiles import Profile

SIGNATURE_PREFIX = "Thsg"
"""Four characters, so that the whole signature is base64 of some bytes and survives a client that stores bytes."""
_ROLES = ("user", "model", "function")
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
_DATA = frozenset(
    {"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode"}
    | {"codeExecutionResult", "toolCall", "toolResponse"}
)
"""Of these a part holds exactly one."""
_SNAKE = re.compile(r"_([a-z])")
_CALL_AFTER = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response "
    "turn."
)
_RESPONSE_AFTER = "Please ensure that function response turn comes immediately after a function call turn."
_AS_MANY = (
    "Please ensure that the number of function response parts is equal to the number of function call parts "
    "of the function call turn."
)


def check(request: dict[str, Any], profile: Profile, off: frozenset[str] = frozenset()) -> Refusal | None:
    """The first refusal this profile has for the request, or None. `off` turns rules off."""
    rules = profile.rules - off
    found = _has_form(request, rules) or _tool_fault(request)
    if found is not None:
        return found
    for refusal in _Walk(turns(request), rules).refusals():
        return refusal
    return None


def turns(request: dict[str, Any]) -> list[dict[str, Any]]:
    """The contents of a request as `{"role", "parts"}`, names spelled the JSON way; a missing role is the user's."""
    found = []
    for content in request.get("contents") or ():
        parts = content.get("parts") if isinstance(content, dict) else None
        role = (content.get("role") if isinstance(content, dict) else None) or "user"
        found.append(
            {"role": role, "parts": [spelled(part) for part in parts or () if isinstance(part, dict)]}
        )
    return found


def spelled(value: dict[str, Any]) -> dict[str, Any]:
    """The object with its own names in camel case; the service takes both spellings."""
    return {_SNAKE.sub(lambda found: found[1].upper(), key): held for key, held in value.items()}


def issue(model: str, mode: Any = None) -> str:
    """A thought signature of this backend in the base64 the service writes, bent as a `signature_mode` says."""
    text = bent(Token("thought", model, BACKEND, ""), SIGNATURE_PREFIX, mode)
    return text.replace("-", "+").replace("_", "/")


def carries_signature(request: dict[str, Any]) -> bool:
    """Whether some part of the request brings back a signature of ours."""
    parts = [part for turn in turns(request) for part in turn["parts"]]
    return any(_token(part.get("thoughtSignature")) is not None for part in parts)


def shows_thoughts(request: dict[str, Any]) -> bool:
    """Whether the request asks to be shown summaries of the thoughts."""
    place: Any = spelled(request)
    for name in ("generationConfig", "thinkingConfig"):
        held = place.get(name)
        if not isinstance(held, dict):
            return False
        place = spelled(held)
    return place.get("includeThoughts") is True


class _Walk:
    """One pass over the contents; yields what would be refused, in request order."""

    def __init__(self, contents: list[dict[str, Any]], rules: frozenset[str]) -> None:
        self.contents = contents
        self.rules = rules
        spoken = [n for n, turn in enumerate(contents) if turn["role"] == "user" and _speaks(turn["parts"])]
        self.current = spoken[-1] if spoken else -1
        """Where the current turn begins: at the last content in which the user says something."""

    def refusals(self) -> Iterator[Refusal]:
        for index, turn in enumerate(self.contents):
            calls = _held(turn, "functionCall")
            answers = _held(turn, "functionResponse")
            if calls:
                yield from self._call_turn(index)
            if answers:
                yield from self._answer_turn(index, answers)
            if calls:
                yield from self._answered(index, calls)
            if turn["role"] == "model" and index > self.current:
                yield from self._signatures(index, turn["parts"])

    def _named(self, rule: str, message: str) -> Iterator[Refusal]:
        if rule in self.rules:
            yield _refused(rule, message)

    def _call_turn(self, index: int) -> Iterator[Refusal]:
        if index == 0 or self.contents[index - 1]["role"] == "model":
            yield from self._named("GE-03", _CALL_AFTER)

    def _answer_turn(self, index: int, answers: list[dict[str, Any]]) -> Iterator[Refusal]:
        calls = _held(self.contents[index - 1], "functionCall") if index else []
        known = {call.get("id") for call in calls}
        foreign = [one for one in answers if one.get("id") and None not in known and one["id"] not in known]
        if not calls or foreign:
            yield from self._named("GE-04", _RESPONSE_AFTER)

    def _answered(self, index: int, calls: list[dict[str, Any]]) -> Iterator[Refusal]:
        following = self.contents[index + 1] if index + 1 < len(self.contents) else {"parts": []}
        answers = _held(following, "functionResponse")
        given = [one["id"] for one in answers if one.get("id")]
        if len(answers) != len(calls) or len(set(given)) < len(given):
            yield from self._named("GE-04", _AS_MANY)

    def _signatures(self, index: int, parts: Sequence[dict[str, Any]]) -> Iterator[Refusal]:
        first = next((part for part in parts if "functionCall" in part), None)
        if first is not None and not first.get("thoughtSignature"):
            yield from self._named(
                "GE-01",
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                f"work correctly. Additional data, function call 'default_api:{first['functionCall'].get('name')}' , "
                f"position {index + 1}.",
            )
        for part in parts:
            given = part.get("thoughtSignature")
            if not given or _is_dummy(given):
                continue
            token = _token(given)
            if token is None:
                yield from self._named("GE-02", "Corrupted thought signature.")
            elif token.account != BACKEND:
                yield from self._named("GE-02", "Thought signature is not valid")


def _held(turn: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [part[name] for part in turn["parts"] if part.get(name) is not None]


def _speaks(parts: Sequence[dict[str, Any]]) -> bool:
    return any(part.get("text") is not None for part in parts)


def _token(given: Any) -> Token | None:
    """What a signature says; a client may have written its bytes in the other base64 alphabet."""
    text = given.replace("+", "-").replace("/", "_") if isinstance(given, str) else given
    return unseal(text, SIGNATURE_PREFIX)


def _is_dummy(given: str) -> bool:
    """The documented stand-in, as it is written down or as the base64 of its letters."""
    return given in (DUMMY_SIGNATURE, base64.b64encode(DUMMY_SIGNATURE.encode()).decode())


def _has_form(request: dict[str, Any], rules: frozenset[str]) -> Refusal | None:
    """What the service needs to read the contents at all, and GE-05."""
    contents = request.get("contents")
    if not isinstance(contents, list) or not contents:
        return _schema("* GenerateContentRequest.contents: contents is not specified")
    for index, content in enumerate(contents):
        where = f"GenerateContentRequest.contents[{index}]"
        if not isinstance(content, dict):
            return _schema(f"Invalid value at 'contents[{index}]' (type.googleapis.com/Content)")
        if content.get("role") is not None and content["role"] not in _ROLES:
            return _schema("Please use a valid role: user, model.")
        parts = content.get("parts")
        if parts is not None and not (
            isinstance(parts, list) and all(isinstance(one, dict) for one in parts)
        ):
            return _schema(f"Invalid value at 'contents[{index}].parts' (type.googleapis.com/Part)")
        if not parts and "GE-05" in rules:
            return _refused("GE-05", f"* {where}.parts: contents.parts must not be empty.")
        for place, part in enumerate(parts or ()):
            found = _part_fault(f"{where}.parts[{place}]", spelled(part), rules)
            if found is not None:
                return found
    return None


def _part_fault(where: str, part: dict[str, Any], rules: frozenset[str]) -> Refusal | None:
    held = _DATA & {name for name, value in part.items() if value is not None}
    if len(held) != 1 and not (not held and part.get("thoughtSignature")):
        return _schema(f"* {where}.data: required oneof field 'data' must have one initialized field")
    if not isinstance(part.get("thoughtSignature", ""), str):
        return _schema(f"Invalid value at '{where}.thought_signature' (TYPE_BYTES)")
    if not isinstance(part.get("text", ""), str):
        return _schema(f"Invalid value at '{where}.text' (TYPE_STRING)")
    for name, told in (("functionCall", "function_call"), ("functionResponse", "function_response")):
        if name not in held:
            continue
        one = part[name]
        if not isinstance(one, dict):
            return _schema(f"Invalid value at '{where}.{told}'")
        if not isinstance(one.get("name"), str) or not one["name"]:
            return _schema(f"* {where}.{told}.name: Name cannot be empty.")
        if not isinstance(one.get("id") or "", str):
            return _schema(f"Invalid value at '{where}.{told}.id' (TYPE_STRING)")
    if "functionCall" in held and not isinstance(part["functionCall"].get("args") or {}, dict):
        return _schema(
            f"Invalid value at '{where}.function_call.args' (type.googleapis.com/google.protobuf.Struct)"
        )
    return _response_fault(where, part["functionResponse"], rules) if "functionResponse" in held else None


def _response_fault(where: str, answer: dict[str, Any], rules: frozenset[str]) -> Refusal | None:
    response = answer.get("response")
    if not isinstance(response or {}, dict):
        struct = "(type.googleapis.com/google.protobuf.Struct)"
        return _schema(f"Invalid value at '{where}.function_response.response' {struct}")
    empty = [name for name, value in (response or {"response": None}).items() if value in (None, "", [], {})]
    if empty and "GE-05" in rules:
        text = f"Invalid function_response.response: field `{empty[0]}` has an empty value"
        return _refused("GE-05", text)
    return None


def _tool_fault(request: dict[str, Any]) -> Refusal | None:
    tools = request.get("tools") or []
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        return _schema("Invalid value at 'tools' (type.googleapis.com/Tool)")
    for index, tool in enumerate(tools):
        declared = spelled(tool).get("functionDeclarations") or []
        where = f"GenerateContentRequest.tools[{index}].function_declarations"
        for place, one in enumerate(declared if isinstance(declared, list) else [None]):
            name = one.get("name") if isinstance(one, dict) else None
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                text = "Invalid function name. Must start with a letter or an underscore."
                return _schema(f"* {where}[{place}].name: {text}")
    return None


def _schema(message: str) -> Refusal:
    return _refused("schema", message)


def _refused(rule: str, message: str) -> Refusal:
    return Refusal((rule,), message, type="INVALID_ARGUMENT")
