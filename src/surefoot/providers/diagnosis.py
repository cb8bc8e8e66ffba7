"""Pure. What a refusal means: one kind, in a fixed order, never guessed.

Owns: normalising a body, its reason texts and codes, the kind (PR-6 to PR-11), the
certainty (PR-12), the error a caller gets, and how long to wait before asking again.
Does not own: where a shape of body has its code (`shapes`), HTTP (`client`), who asks again
(`runtime.models`), what follows from a refusal (`runtime.incidents`).

No sentence of a provider's body leaves this module (PR-16): only kinds and clean identifiers.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from surefoot.core.redact import redact
from surefoot.errors import ProviderCredentials, ProviderError, ProviderRefused, ProviderUnreachable
from surefoot.providers import shapes

BODY_BYTES = 64 << 10
TEXT_BYTES = 4 << 10
SHORT_BYTES = 1 << 10
"""A body of plain text that is longer is a page for people and gives no reason."""
UNWRAP_DEPTH = 3
MAX_WAIT_SECONDS = 60.0
MAX_REQUESTS = 6
_TRACE = re.compile(r"^[A-Za-z0-9_.:-]{1,128}$")
_IDENTIFIER = re.compile(r"^[A-Za-z0-9_.:\-\[\]]+$")
_SECRET = re.compile(
    r"(?i)((?<![a-z])sk-|bearer[:._-]|api[_-]?key[-_.:](?=[a-z]*\d)[a-z0-9]{8}|token[_-][a-z0-9]{8})"
)
"""Keys in forms that `redact` does not take for one; the name of a key, as in `invalid_api_key`, is none."""
_NUMBERS = re.compile(r"\d[\d,]{2,}\D{1,40}>\s*\d[\d,]{2,}")
_WINDOW = re.compile(
    r"(input|prompt|request|context|tokens?)\b.{0,80}\b(exceeds?|exceeded|longer than|too long)\b"
)
_TRANSIENT = frozenset({408, 409, 425})
_STATUS_PHRASES = frozenset(
    {one.phrase.casefold() for one in HTTPStatus}
    | {"", "error", "content too large", "unprocessable content", "unprocessable entity"}
    | {"payload too large", "request entity too large", "gateway time-out", "service temporarily unavailable"}
)
_GENERATION = ("tool_use_failed", "failed_generation", "failed to call a function")

_NOT_STORED = "items are not persisted when store"
_LINKED = ("without its required", _NOT_STORED)
_UNCHECKABLE = frozenset({"replay_signature"})
"""Signature, ciphertext and prefix binding: no client can check them."""

FAMILIES: Mapping[str, Sequence[tuple[str, ...]]] = {
    "replay_pairing": (
        ("tool_calls", "must be followed by"),
        ("tool_calls", "did not have response messages"),
        ("must be a response to a prece",),
        ("insufficient tool messages",),
        ("duplicate value for tool_call_id",),
        ("without tool_result",),
        ("unexpected tool_use_id",),
        ("was found without a corresponding",),
        ("tool_result block", "at the beginning"),
        ("each tool_use must have a single result",),
        ("no tool output found for function call",),
        ("no tool call found for function call output",),
        ("invalid previous_response_id",),
        ("previous response with id", "not found"),
        ("tool_call_id", "not found"),
        ("tool id(", "not found"),
        ("does not follow tool call",),
        ("after role tool",),
        ("after role user",),
        ("expected last role",),
        ("not the same number of function calls",),
        ("roles must alternate",),
        ("must end with a user message",),
        ("function response parts",),
        ("function call turn",),
        ("toolresult blocks",),
        ("cannot be provided in the same turn",),
    ),
    "replay_reasoning": (
        *(
            (field, duty)
            for field in ("reasoning_content", "reasoning_text", "content[].thinking")
            for duty in ("must be passed back", "missing", "must include")
        ),
        ("without its required", "reasoning"),
        ("without its required", "following item"),
        ("missing field thinking",),
        ("expected thinking or redacted_thinking",),
        ("cannot contain thinking",),
        (_NOT_STORED,),
    ),
    "replay_signature": (
        ("invalid signature in thinking",),
        ("bound to a different conversation",),
        ("thinking", "cannot be modified"),
        ("signature", "field required"),
        *(
            (word, fault)
            for word in ("thought_signature", "thought signature")
            for fault in ("missing", "invalid", "corrupted", "not valid")
        ),
        ("encrypted content", "could not be verified"),
    ),
    "replay_ids": (
        ("tool_use ids must be unique",),
        ("duplicate tool_call id",),
        ("duplicate item found with id",),
        ("duplicate ids",),
        ("should match pattern", ".id"),
        ("length of 9",),
        ("expected an id that",),
    ),
    "replay_arguments": (
        ("parse tool call arguments",),
        ("must be in json format",),
        ("invalid function arguments json",),
    ),
}
"""Family → fragments that must stand together in one reason text (PR-11)."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What is kept of a refusal; every field is safe to show and to store (PR-15)."""

    kind: str
    status: int | None
    body_kind: str
    code: str | None = None
    param: str | None = None
    linked: bool = False
    """The reason speaks of items that belong together (OR-03 to OR-05)."""
    flap: bool = False
    """A fault of the client's by its status, a passing one by words its contract lists (RT-06)."""
    reasoned: bool = False
    """It gave a reason in words, whether they were understood or not (PR-10, line 16)."""


@dataclass(frozen=True, slots=True)
class Certainty:
    """A kind after the local validator was heard (PR-10, lines 10 and 16; PR-12)."""

    kind: str
    word: str
    """`confirmed`, `reported`, `probable` or `none`."""
    rules: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reasons:
    """Reason texts (folded) and codes of a body; never shown to anybody (PR-7)."""

    body_kind: str
    texts: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    code: str | None = None
    param: str | None = None
    unwrapped: bool = False


def diagnose(
    status: int | None, body: bytes, contract: Mapping[str, Any], *, complete: bool = True
) -> Refusal:
    """Name a refusal from its status and body (PR-10, lines 4 to 17 without the local validator).

    `complete` is False when the body was longer than `BODY_BYTES` or broke off.
    """
    reasons = read_reasons(body, contract)
    kind = _kind(status, body, reasons, contract, complete)
    linked = any(word in text for text in reasons.texts for word in _LINKED)
    flap = kind == "transient" and _has(reasons.texts, contract["errors.flap_text"])
    reasoned = bool(_wordy(reasons, contract))
    return Refusal(kind, status, reasons.body_kind, reasons.code, reasons.param, linked, flap, reasoned)


def certainty(
    kind: str, status: int | None, findings: Sequence[tuple[str, str]], *, reasoned: bool = True
) -> Certainty:
    """How sure a refusal is, given the `(rule id, class)` findings over the bytes that were sent.

    Findings never rename a refusal without a reason, `reasoned` being False; they are stored beside it (PR-12).
    """
    rules = tuple(dict.fromkeys(rule for rule, _ in findings))[:16]
    classes = {found for _, found in findings}
    if kind in FAMILIES:
        if kind in classes or kind in _UNCHECKABLE:
            return Certainty(kind, "confirmed", rules)
        return Certainty(kind, "reported", rules, ("validator_missed",))
    if kind == "rejected" and reasoned and status is not None and 400 <= status < 500:
        # A reason that nothing matches, and a history that breaks a rule: it may be that (line 16).
        family = next((found for _, found in findings if found in FAMILIES), None)
        if family is not None:
            return Certainty(family, "probable", rules)
    return Certainty(kind, "none", rules)


def is_opaque(status: int | None, body: bytes, *, complete: bool) -> bool:
    """PR-9: a 400 whose complete body is blank, or one object with the single key `model`."""
    if status != 400 or not complete:
        return False
    try:
        text = body.decode("utf-8").removeprefix("\ufeff").strip()
        return not text or (isinstance(value := json.loads(text), dict) and set(value) == {"model"})
    except (ValueError, RecursionError):
        return False


def _kind(
    status: int | None, body: bytes, reasons: Reasons, contract: Mapping[str, Any], complete: bool
) -> str:
    found = (
        _by_code(reasons, contract) or _by_status(status, reasons) or _by_wording(status, reasons, contract)
    )
    if found is not None:
        return found
    family = _family(status, reasons, contract)
    if family is not None:
        return family
    # In a stream a code has to do: without a status what nothing names would pass for a passing fault.
    if _has((*reasons.texts, *(reasons.codes if status is None else ())), contract["errors.schema_text"]):
        return "schema"
    if _has((*reasons.texts, *reasons.codes), _GENERATION):
        return "generation"
    if status is None or status in _TRANSIENT or status >= 500:
        return "transient"
    if is_opaque(status, body, complete=complete):
        return "upstream_reason_missing"
    wordless = [_fold(word) for word in contract["errors.wordless"]]
    by_code = any(code in wordless for code in reasons.codes)
    if status in (400, 422) and (by_code or not _wordy(reasons, contract)):
        return "upstream_reason_unrecognised"
    return "rejected"


def _wordy(reasons: Reasons, contract: Mapping[str, Any]) -> list[str]:
    """The reason texts without those that the contract lists as saying nothing."""
    wordless = [_fold(word) for word in contract["errors.wordless"]]
    return [text for text in reasons.texts if text not in wordless]


def _by_code(reasons: Reasons, contract: Mapping[str, Any]) -> str | None:
    table = {_fold(code): str(kind) for code, kind in contract["errors.codes"].items()}
    return next((table[code] for code in reasons.codes if code in table), None)


def _by_status(status: int | None, reasons: Reasons) -> str | None:
    if status == 401:
        return "auth"
    if status == 402:
        return "quota"
    if status == 403:
        return "quota" if any("quota" in code for code in reasons.codes) else "auth"
    return None


def _by_wording(status: int | None, reasons: Reasons, contract: Mapping[str, Any]) -> str | None:
    told = (*reasons.texts, *reasons.codes)
    if _has(told, contract["errors.quota_text"]):
        return "quota"
    if status == 429 or (status == 413 and _has(told, ("tokens per minute", "tpm"))):
        return "rate"
    if status in (400, 413, 422, None) and _overflows(reasons, contract):
        return "context_overflow"
    if status == 413:
        return "payload"
    if _has(told, contract["errors.policy_text"]):
        return "policy"
    return "transient" if _has(reasons.texts, contract["errors.flap_text"]) else None


def _overflows(reasons: Reasons, contract: Mapping[str, Any]) -> bool:
    """A code, a pair of numbers, or a sentence that the input exceeds the window; advice is none (X-09)."""
    if _has((*reasons.texts, *reasons.codes), contract["errors.overflow_text"]):
        return True
    return any(
        ("token" in text or "context" in text)
        and (_NUMBERS.search(text) or ("window" in text and _WINDOW.search(text)))
        for text in reasons.texts
    )


def _family(status: int | None, reasons: Reasons, contract: Mapping[str, Any]) -> str | None:
    allowed = {400, 404, 422, *contract["errors.history_fault_status"]}
    if status == 404 and not reasons.unwrapped and not _has(reasons.texts, (_NOT_STORED,)):
        return (
            None  # what is not found is an address or a model, but for items that were never stored (OR-05)
        )
    # An error told inside a stream has no status of its own; its words decide (PR-10, line 13; OR-07).
    if status is not None and status not in allowed and not reasons.unwrapped:
        return None
    if "invalid_encrypted_content" in reasons.codes:
        return "replay_signature"
    if "string_above_max_length" in reasons.codes and (reasons.param or "").endswith("id"):
        return "replay_ids"
    for family, built_in in FAMILIES.items():
        added = [tuple(_fold(part) for part in pair) for pair in contract["errors.families"].get(family, ())]
        for fragments in (*built_in, *added):
            if any(all(part in text for part in fragments) for text in reasons.texts):
                return family
    return None


def _has(texts: Sequence[str], words: Sequence[str]) -> bool:
    return any(_fold(word) in text for text in texts for word in words)


def _fold(text: str) -> str:
    """Case-folded, without back-ticks and quotes (PR-8)."""
    return re.sub(r"[`'\"“”‘’]", "", text).casefold()


def read_reasons(body: bytes, contract: Mapping[str, Any]) -> Reasons:
    """Normalise a body and collect its reason texts and codes (PR-6, PR-7)."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return Reasons("binary")
    text = text.removeprefix("\ufeff").strip()
    if not text:
        return Reasons("empty")
    if text.startswith(("data:", "event:")):
        return _of_json(_parsed(_first_event(text)), "sse", contract)
    value = _parsed(text)
    if value is _NOT_JSON:
        if text.startswith("<"):
            return Reasons("html")
        inner_object = _inside(text[:TEXT_BYTES]) if contract["errors.unwrap"] else None
        if inner_object is not None:
            return dataclasses.replace(_of_json(inner_object, "text", contract), unwrapped=True)
        told = len(text.encode()) <= SHORT_BYTES and not _is_status_phrase(text)
        return Reasons("text", texts=(_fold(text),) if told else ())
    return _of_json(value, "object" if isinstance(value, Mapping) else "json", contract)


def _first_event(text: str) -> str:
    """The data of the first event of a stream, its lines joined."""
    found: list[str] = []
    for line in text.splitlines():
        if line.startswith("data:"):
            found.append(line[5:].strip())
        elif found and not line.strip():
            break
    return "\n".join(found)


def _is_status_phrase(text: str) -> bool:
    """Whether a text only says its status in words, with or without the number: that is no reason."""
    words = re.sub(r"^(http/[\d.]+|error)?[\s:]*\d{0,3}[\s:,-]*|[\s.!]+$", "", _fold(text))
    return words in _STATUS_PHRASES


_NOT_JSON = object()


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NOT_JSON


def _of_json(value: Any, body_kind: str, contract: Mapping[str, Any]) -> Reasons:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
        body_kind = "object" if isinstance(value, Mapping) and body_kind == "json" else body_kind
    texts: list[str] = []
    codes: list[str] = []
    unwrapped = _collect(value, texts, codes, UNWRAP_DEPTH if contract["errors.unwrap"] else 0)
    code, param = shapes.code_and_param(value, contract["errors.shape"])
    codes += [] if code is None or code in codes else [code]
    return Reasons(
        body_kind,
        tuple(map(_fold, texts)),
        tuple(map(_fold, codes)),
        code=_identifier(code, 64),
        param=_identifier(param, 128),
        unwrapped=unwrapped,
    )


def _collect(value: Any, texts: list[str], codes: list[str], depth: int) -> bool:
    """Gather texts and codes of one object and, `depth` levels deep, of objects hidden in its texts."""
    if not isinstance(value, Mapping):
        return False
    own = list(_texts_of(value))
    for part in (value, value.get("error")):
        codes += _codes_of(part) if isinstance(part, Mapping) else []
    unwrapped = False
    for text in own:
        inner = _inside(text) if depth > 0 else None
        if inner is not None:
            unwrapped = True
            _collect(inner, texts, codes, depth - 1)
        texts.append(text[:TEXT_BYTES])
    return unwrapped


def _texts_of(value: Mapping[str, Any]) -> Iterator[str]:
    error = value.get("error")
    inner = error if isinstance(error, Mapping) else {}
    metadata = inner.get("metadata")
    param = inner.get("param")
    found = [
        inner.get("message"),
        param if isinstance(param, str) and " " in param else None,
        value.get("message"),
        value.get("detail"),
        value.get("msg"),
        error,
        metadata.get("raw") if isinstance(metadata, Mapping) else None,
    ]
    for text in found:
        if isinstance(text, str) and text.strip():
            yield text


def _codes_of(part: Mapping[str, Any]) -> list[str]:
    details, metadata = part.get("details"), part.get("metadata")
    # The stable code of a refusal says more than its type and is used first (AN-22, X-03).
    found = [details.get("error_code") if isinstance(details, Mapping) else None]
    found += [part.get(key) for key in ("code", "type", "status", "http_code")]
    found.append(metadata.get("error_type") if isinstance(metadata, Mapping) else None)
    return [str(code) for code in found if isinstance(code, (str, int)) and not isinstance(code, bool)]


def _inside(text: str) -> Mapping[str, Any] | None:
    start = text.find("{")
    if start < 0:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _identifier(value: Any, limit: int) -> str | None:
    """A code or parameter name, only if it can hold no sentence and no secret (PR-16)."""
    text = str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
    clean = 0 < len(text) <= limit and _IDENTIFIER.match(text) is not None and "\n" not in text
    return text if clean and not _SECRET.search(text) and redact(text, ()) == text else None


def clean_trace(value: str | None) -> str | None:
    """A trace id as sent, or None: it is kept whole or not at all (UX-128)."""
    return value if value is not None and _TRACE.match(value) and "\n" not in value else None


def refused_in_reply(error: Any, contract: Mapping[str, Any], *, kind: str | None = None) -> ProviderError:
    """The error for an `error` object, or a refusing finish word, under status 200 (S-09, S-30, S-39)."""
    body = json.dumps({"error": error}).encode()
    seen = diagnose(None, body, contract)
    return error_of(Refusal(kind or seen.kind, 200, seen.body_kind, seen.code, seen.param, seen.linked))


def error_of(refusal: Refusal, **facts: Any) -> ProviderError:
    """The exception a caller gets for a diagnosed refusal."""
    said = f" (status {refusal.status})" if refusal.status is not None else ""
    known: dict[str, Any] = {
        "kind": refusal.kind,
        "status": refusal.status,
        "body_kind": refusal.body_kind,
        "provider_code": refusal.code,
        "param": refusal.param,
        "linked": refusal.linked,
        "flap": refusal.flap,
        "reasoned": refusal.reasoned,
        "transient": refusal.kind in ("transient", "rate"),
        **facts,
    }
    if refusal.kind in ("auth", "quota"):
        words = "refused the key" if refusal.kind == "auth" else "says the quota is spent"
        return ProviderCredentials(
            f"The model's server {words}{said}. Check the endpoint's key and account.",
            next_command="surefoot doctor",
            **known,
        )
    if refusal.kind == "transient":
        return ProviderUnreachable(
            f"The model's server failed for the moment{said}; nothing of it ran.", **known
        )
    return ProviderRefused(f"The model's server refused the request{said}: {_WORDS[refusal.kind]}.", **known)


_WORDS: Mapping[str, str] = {
    "rate": "too many requests; wait and ask again",
    "context_overflow": "the conversation is larger than the model's window; compact it, or start a new session",
    "payload": "the request is too large; leave media or long outputs out",
    "policy": "its content policy",
    "schema": "a field or tool schema is not of its form; check the endpoint's contract",
    "generation": "its own reply could not be read",
    "upstream_reason_missing": "it gave no reason",
    "upstream_reason_unrecognised": "it gave no reason that says what is wrong",
    "rejected": "for a reason that is not about history; check URL, model name and contract",
    **{family: f"the replayed history ({family})" for family in FAMILIES},
}


def next_wait(attempt: int, facts: Mapping[str, Any], *, max_requests: int = MAX_REQUESTS) -> float | None:
    """Seconds to wait before request `attempt + 1` of a step, or None when it must not be sent.

    `attempt` counts the requests already made. A transport fault, a listed flap (R0, PR-39) and a reply that
    its own server could not read (OC-10) are asked for again once; an overload or a rate limit with growing
    waits, or as the server told. `x-should-retry: false` is obeyed (PR-5).
    """
    unreadable = facts.get("kind") == "generation" and not facts.get("hosted")
    if not (facts.get("transient") or unreadable):
        return None
    if facts.get("should_retry") is False or attempt >= max_requests:
        return None
    if (unreadable or facts.get("kind") == "transport" or facts.get("flap")) and attempt >= 2:
        return None
    told = facts.get("retry_after_seconds")
    if told is not None:
        return float(told) if told <= MAX_WAIT_SECONDS else None
    return float(min(0.5 * 2.0 ** (attempt - 1), 8.0))
