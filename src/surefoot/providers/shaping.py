"""Pure. Neutral history → the order, ids and argument texts a Chat-like wire may show.

Owns: results beside their calls (R1), wire ids (R3, TR-32), argument text on replay
(R2, R13), neighbours of one role, and the one byte form of a body.
Does not own: the JSON of a wire (`chat`), what a result says (`core.history`),
whether the outcome is valid (`rules`).
Promises: projection:pure, projection:prefix-stable. What stands early is never
changed by what comes later, except where two neighbours of one role merge at the tail.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from surefoot.core.canonical import canonical_json
from surefoot.core.history import AssistantWords, CallAsked, Message, ResultGiven, UserWords
from surefoot.providers.port import Reply

UNNAMED_TOOL = "unnamed_tool"
"""Stands on the wire for a tool name that is empty or that no server would accept again (S-21)."""
EMPTY_RESULT = "(no output)"
FAILED_WITHOUT_TEXT = "(failed with no output)"
BRIDGE = "Continue."
"""Words of the user side where a wire needs them last and none are there (R6)."""
ANSWER_BRIDGE = "(continued)"
"""Words of the assistant side between a result and the person's next words (R6, MS-02)."""
_NATIVE_KIMI = re.compile(r"^functions\.(.+):\d+$")
_TOOL_NAME = re.compile(r"^[a-zA-Z0-9_.:-]{1,128}$")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def in_order(messages: Iterable[Message], contract: Mapping[str, Any]) -> list[Message]:
    """Each result directly after the message that asked for it, in the order of the calls (R1, OC-01).

    That place fits every `pairing.results_position`. A person can type while a batch runs, so their
    words may be stored between a call and its result. A result whose call is not there stays where it is,
    and a second one of a call is left out (R7) unless the endpoint takes it.
    A reply that was stored twice is shown once (R7): its calls are its own, by our id of them.
    """
    given = without_copies(messages)
    results: dict[str, list[ResultGiven]] = {}
    several = contract["pairing.duplicate_result"] == "accept"
    asked = {
        call.call_id for message in given if isinstance(message, AssistantWords) for call in message.calls
    }
    for message in given:
        if isinstance(message, ResultGiven):
            found = results.setdefault(message.call.call_id, [])
            found += [message] if several or not found else []
    ordered: list[Message] = []
    for message in given:
        if isinstance(message, ResultGiven):
            if message.call.call_id not in asked:
                ordered.append(message)
            continue
        ordered.append(message)
        if isinstance(message, AssistantWords):
            ordered += [one for call in message.calls for one in results.get(call.call_id, ())]
    return ordered


def without_copies(messages: Iterable[Message]) -> list[Message]:
    """The messages but for replies all of whose calls were asked for before."""
    asked: set[str] = set()
    kept: list[Message] = []
    for message in messages:
        ids = {call.call_id for call in message.calls} if isinstance(message, AssistantWords) else set()
        if not ids or not ids <= asked:
            kept.append(message)
        asked |= ids
    return kept


def wire_ids(messages: Iterable[Message], contract: Mapping[str, Any]) -> dict[str, str]:
    """Call id → the id used on the wire: the provider's own while it fits and is free, else an alias.

    The earliest holder keeps a repeated id, so nothing already sent ever changes (TR-32, S-14 to S-16). A result
    without its call has an id only where the endpoint takes such a result.
    """
    chosen: dict[str, str] = {}
    taken: set[str] = set()
    native = contract["ids.policy"] == "native_kimi"
    scope = contract["ids.unique"]
    orphans = contract["pairing.orphan_result"] == "accept"
    given = list(messages)
    asked = {call.call_id for one in given if isinstance(one, AssistantWords) for call in one.calls}
    for message in given:
        if isinstance(message, ResultGiven) and orphans and message.call.call_id not in asked:
            own = message.call.provider_call_id
            fits = own is not None and bool(own.strip()) and own not in taken and _fits(own, contract)
            chosen[message.call.call_id] = own if own is not None and fits else alias(message.call, contract)
            taken.add(chosen[message.call.call_id])
        if not isinstance(message, AssistantWords):
            continue
        if scope != "request" and not native:
            taken = set()
        for call in message.calls:
            wire_id = call.provider_call_id
            if native:
                wire_id = _native_id(call, taken, len(chosen))
            elif not _passes(wire_id, contract) or (wire_id in taken and scope != "none"):
                wire_id = alias(call, contract)
            taken.add(wire_id)
            chosen[call.call_id] = wire_id
    return chosen


def _native_id(call: CallAsked, taken: set[str], number: int) -> str:
    """The shape Kimi K2 was trained on: its own ids pass, foreign ones are made to look like them (KI-05)."""
    own = call.provider_call_id or ""
    if _NATIVE_KIMI.match(own) and own not in taken:
        return own
    name = wire_name(call.asked_name)
    while (made := f"functions.{name}:{number}") in taken:
        number += 1
    return made


def demands_carrier(contract: Mapping[str, Any], has_calls: bool, *, tools: bool, since_user: bool) -> bool:
    """Whether the contract wants a carrier on this assistant message (wires 2.3)."""
    if contract["reasoning.carrier"] == "none":
        return False
    return {
        "tool_turns": has_calls,
        "tool_turns_since_user": has_calls and since_user,
        "all_with_tools": tools,
        "all_turns": True,
        "first_call_of_step": has_calls,  # of every step: what was sent once must not change later
    }.get(contract["reasoning.required"], False)


def lacks_carrier(reply: Reply, contract: Mapping[str, Any], *, tools: bool) -> bool:
    """Whether a fresh reply left out reasoning that its contract will want back (DS-09, PR-35)."""
    if contract["reasoning.missing_at_receipt"] != "regenerate" or reply.reasoning.strip():
        return False
    return demands_carrier(contract, bool(reply.calls), tools=tools, since_user=True)


def made_elsewhere(message: AssistantWords, endpoint: str, contract: Mapping[str, Any]) -> bool:
    """Whether another issuer made this message: another endpoint, under another contract.

    An endpoint whose contract was corrected is still the same issuer, and so is a second
    endpoint (another key, another region) of the same contract. A message that does not say
    who made it counts as the target's own.
    """
    made = message.issuer
    other_contract = made.get("contract", contract["contract.id"]) != contract["contract.id"]
    return bool(other_contract and made.get("endpoint", endpoint) != endpoint)


def is_foreign(message: AssistantWords, model: str, endpoint: str, contract: Mapping[str, Any]) -> bool:
    """Whether this message's carriers were made elsewhere than where they would go (R11, AN-08, OR-07)."""
    binding, made = contract["reasoning.binding"], message.issuer
    if made_elsewhere(message, endpoint, contract):
        # The plain text of Chat may be tied to nothing; what the other wires seal, only its issuer can open.
        return bool(binding != "none" or message.wire != "chat")
    if binding == "none":
        return False
    if binding in ("account", "backend") and made.get("endpoint", endpoint) != endpoint:
        return True
    return bool(binding != "backend" and made.get("model", model) != model)


def orphan_text(result: ResultGiven) -> str:
    """A result whose call is not in the history, as plain words of the user side (R12)."""
    name = wire_name(result.call.asked_name)
    return f"[Result of an earlier call to {name}, whose request is not shown]\n{result.text}"


def alias(call: CallAsked, contract: Mapping[str, Any]) -> str:
    """A stable id from our own call id that fits the contract; hashed, never cut (OR-09, MS-01)."""
    digest = hashlib.sha256(call.call_id.encode()).digest()
    number = int.from_bytes(digest, "big")
    letters = ""
    while len(letters) < 9:
        number, rest = divmod(number, len(_DIGITS))
        letters += _DIGITS[rest]
    for form in (f"call_{digest.hex()[:24]}", letters):
        if _fits(form, contract):
            return form
    return letters


def _passes(wire_id: str | None, contract: Mapping[str, Any]) -> TypeGuard[str]:
    """Whether an issuer's own id returns as it is: always where it is echoed verbatim (KI-05, KI-06)."""
    if wire_id is None or not wire_id.strip():
        return False
    return contract["ids.policy"] == "verbatim" or _fits(wire_id, contract)


def _fits(wire_id: str, contract: Mapping[str, Any]) -> bool:
    limit, pattern = contract["ids.max_length"], contract["ids.pattern"]
    if limit and len(wire_id) > limit:
        return False
    # In a pattern `$` also stands before a last line break, which no host's pattern lets pass.
    return not pattern or (re.search(pattern, wire_id) is not None and not wire_id.endswith("\n"))


def named(value: Any) -> str | None:
    """An id as a wire has it; what is no text names nothing."""
    return value if isinstance(value, str) else None


def is_typed(part: Any) -> bool:
    """Whether this is a part of a message; one without a type a proxy made, and no server takes it back."""
    kind = part.get("type") if isinstance(part, Mapping) else None
    return isinstance(kind, str) and bool(kind.strip())


def wire_name(name: str) -> str:
    """The tool name as it may be replayed (S-21)."""
    return name if _TOOL_NAME.match(name) else UNNAMED_TOOL


def wire_arguments(text: Any, contract: Mapping[str, Any]) -> Any:
    """Arguments in the form of `arguments.type`: text, an object, or whichever of the two was stored (R2, LS-04)."""
    form = contract["arguments.type"]
    if form == "either" and isinstance(text, Mapping):
        return dict(text)
    written = replayed_arguments(text, contract)
    return (strict_object(written) or {}) if form == "object" else written


def replayed_arguments(text: Any, contract: Mapping[str, Any]) -> str:
    """Argument text for the wire: stored bytes when they will do, `{}` for blank and broken ones (S-19, R13).

    A broken text stays in storage, its call never ran, and its result says so.
    """
    if text is None or (isinstance(text, str) and not text.strip()):
        return "{}"
    if not isinstance(text, str):
        return canonical_json(text)
    if contract["arguments.history_json"] and not is_object_json(text):
        return "{}"
    return text


def is_object_json(text: str) -> bool:
    """Whether a server that parses the stored arguments again finds one object."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def strict_object(text: str) -> dict[str, Any] | None:
    """The object an argument text holds, or None when a server could not take it as one."""
    try:
        found = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def user_text(message: UserWords) -> str:
    """The person's words, with the facts of an interruption at their tail (TR-57)."""
    if not message.facts:
        return message.text
    return f"{message.text}\n\n{message.facts}" if message.text else message.facts


def bridge_after(shown: Sequence[Mapping[str, Any]], contract: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Constant words of the user side behind a reply that stands last, where the wire wants the user there (R6).

    They stay when the next reply has come: it was asked for with them, and its thinking may be bound to them (AN-09).
    """
    last = shown[-1].get("role") if shown else None
    wanted = last == "assistant" and contract["pairing.final_role"] != "any"
    return [{"role": "user", "content": BRIDGE}] if wanted else []


def merged(messages: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Join neighbours of role `user`, and of role `assistant` while the first has no calls (R2, LS-03)."""
    open_message: dict[str, Any] | None = None
    for message in messages:
        role = message["role"]
        joins = (
            open_message is not None
            and role == open_message["role"]
            and role in ("user", "assistant")
            and "tool_calls" not in open_message
        )
        if joins and open_message is not None:
            both = [open_message.get("content"), message.get("content")]
            open_message = {**open_message, **message, "content": _together([one for one in both if one])}
            continue
        if open_message is not None:
            yield open_message
        open_message = dict(message)
    if open_message is not None:
        yield open_message


def _together(contents: Sequence[Any]) -> Any:
    """Contents of one role as one: texts joined, and parts where one of them has parts."""
    if all(isinstance(one, str) for one in contents):
        return "\n\n".join(contents)
    texts = [[{"type": "text", "text": one}] if isinstance(one, str) else one for one in contents]
    return [part for parts in texts for part in parts]


_COMPOSED = ("properties", "$ref", "anyOf", "oneOf", "allOf")


def object_schema(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a tool's arguments as hosts take it: an object, with its properties, also where there are none.

    An empty one is refused with a code that says nothing of tools (X-08, MM-04).
    """
    if any(key in parameters for key in _COMPOSED):
        return dict(parameters)
    return {"type": "object", **parameters, "properties": {}}


def result_text(message: ResultGiven, contract: Mapping[str, Any]) -> str:
    """A result as it is stored; where it is blank, the words of R2 if a host takes no blank one (OC-09, AN-17)."""
    if message.text.strip():
        return message.text
    if message.is_error and contract["content.error_result_text"]:
        return FAILED_WITHOUT_TEXT
    return EMPTY_RESULT if contract["content.empty_result"] == "text" else message.text


def result_content(
    message: ResultGiven, contract: Mapping[str, Any], *, part: str = "text"
) -> str | list[dict[str, Any]] | dict[str, str]:
    """A result in the form of `content.result`; `part` is the wire's type of a text part.

    Where parts may stand, plain text may stand too, and it does: only what is more than text needs them.
    """
    text, form = result_text(message, contract), contract["content.result"]
    if form == "object":
        return {"error" if message.is_error else "output": text if text.strip() else EMPTY_RESULT}
    if form == "text_parts" and text.strip():
        return [{"type": part, "text": text}]
    return text


def parts_results(contract: Mapping[str, Any]) -> bool:
    """Whether words after results need an answer of the assistant's side between them (MS-02, GE-04)."""
    return bool(
        contract["pairing.after_results"] == "assistant_or_tool"
        or contract["pairing.results_position"] == "next_turn_only"
    )


def messages_of(body: Mapping[str, Any]) -> Any:
    """The messages of an encoded request, in the JSON of its wire."""
    return body.get("messages", body.get("input"))


def body_bytes(body: Mapping[str, Any]) -> bytes:
    """The one byte form of a request body: UTF-8, no spaces, keys in the order given."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
