"""Pure. The error bodies of each emulated endpoint, and the named refusals of section X.

Owns: the JSON forms in which endpoints refuse, and the deliberately broken forms
a fault may ask for. Does not own: when they are sent (`server`, `fault_plan`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

FLAP = "Upstream request failed: [invalid_request_error] Invalid upload request."


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused, before it has an endpoint's form."""

    rules: tuple[str, ...]
    message: str
    status: int = 400
    type: str = "invalid_request_error"
    param: str | None = None
    code: str | int | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


def error_object(refusal: Refusal, shape: str, request_id: str = "") -> Any:
    """The JSON body in which an endpoint of this shape tells the refusal; some repeat the request's id."""
    error: dict[str, Any] = {"message": refusal.message, "type": refusal.type}
    if shape == "anthropic":
        error = {"type": _ANTHROPIC_TYPES.get(refusal.rules[0], refusal.type), "message": refusal.message}
        return {"type": "error", "error": {**error, **refusal.extra}, "request_id": request_id}
    if shape == "openai":
        error |= {"param": refusal.param, "code": refusal.code}
    elif shape == "deepseek":
        error |= {"param": None, "code": refusal.code or refusal.type}
    elif shape == "kimi" and refusal.code is not None:
        error["code"] = refusal.code
    elif shape == "vllm":
        kind = "BadRequestError" if refusal.type == "invalid_request_error" else refusal.type
        error = {"message": refusal.message, "type": kind, "param": None, "code": refusal.status}
    elif shape == "llamacpp":
        kind = "server_error" if refusal.status >= 500 else refusal.type
        error = {"code": refusal.status, "message": refusal.message, "type": kind}
    elif shape == "minimax":
        return {**_minimax(refusal), "request_id": request_id}
    elif shape in _COPIES:
        return _COPIES[shape](refusal)
    return {"error": {**error, **refusal.extra}}


def _mimo(refusal: Refusal) -> Any:
    error = {"code": str(refusal.status), "message": "Param Incorrect", "param": refusal.message, "type": ""}
    return {"error": error}


def _glm(refusal: Refusal) -> Any:
    code = refusal.code or _GLM_CODES.get(refusal.rules[0], "1214")
    return {"error": {"code": str(code), "message": refusal.message}}


def _minimax(refusal: Refusal) -> Any:
    kind = "bad_request_error" if refusal.status == 400 else refusal.type
    error = {"type": kind, "message": refusal.message, "http_code": str(refusal.status)}
    return {"type": "error", "error": error}


def _mistral(refusal: Refusal) -> Any:
    code = str(refusal.code or refusal.status)
    return {"object": "error", "message": refusal.message, "type": refusal.type, "param": None, "code": code}


def _gemini(refusal: Refusal) -> Any:
    return [_gemini_own(refusal)]


def _gemini_own(refusal: Refusal) -> Any:
    status = _GEMINI_WORDS.get(refusal.status, "INTERNAL")
    return {"error": {"code": refusal.status, "message": refusal.message, "status": status}}


def _bedrock(refusal: Refusal) -> Any:
    return {"message": refusal.message}


def error_headers(refusal: Refusal, shape: str) -> dict[str, str]:
    """The headers that tell a refusal where a shape has no room for it in the body."""
    if shape != "bedrock":
        return dict(refusal.headers)
    kind = _BEDROCK_RULES.get(refusal.rules[0]) or _BEDROCK_KINDS.get(
        refusal.status, "InternalServerException"
    )
    return {**refusal.headers, "x-amzn-errortype": kind}


def _kimi_messages(refusal: Refusal) -> Any:
    return {"error": {"message": refusal.message, "type": refusal.type}, "type": "error"}


def wrapped(inner: Any, status: int, *, router: str, upstream: str) -> tuple[Any, int]:
    """An upstream's refusal as a router passes it on: its body and status (RT-01, RT-05)."""
    raw = dumped(inner).decode()
    if router == "openrouter":
        beside = {"raw": raw, "provider_name": upstream}
        error = {"message": "Provider returned error", "code": status, "metadata": beside}
        return {"error": error, "user_id": "user_emulated"}, status
    error = {"message": f"{upstream} {status}: {raw}", "type": None, "param": None, "code": "502"}
    return {"error": error}, 502


_GEMINI_WORDS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}
_GEMINI_WORDS |= {
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_BEDROCK_KINDS = {
    400: "ValidationException",
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    413: "ValidationException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
}
_BEDROCK_RULES = {"X-03": "ServiceQuotaExceededException"}
_GLM_CODES = {"X-01": "1000", "X-02": "1113", "X-03": "1113", "X-04": "1302", "X-05": "1305"}
_GLM_CODES |= {"X-06": "1261", "X-07": "1301"}
_COPIES: dict[str, Callable[[Refusal], Any]] = {
    "mimo": _mimo,
    "glm": _glm,
    "mistral": _mistral,
    "gemini": _gemini,
    "gemini-own": _gemini_own,
    "bedrock": _bedrock,
    "kimi-messages": _kimi_messages,
}


_ANTHROPIC_TYPES = {
    "X-01": "authentication_error",
    "X-03": "rate_limit_error",
    "X-04": "rate_limit_error",
    "X-05": "overloaded_error",
}
_ANTHROPIC_STATUSES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def usual_type(status: int, shape: str) -> str:
    """The type of an error that is told by its status alone."""
    if shape == "anthropic":
        return _ANTHROPIC_STATUSES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return "server_error" if status >= 500 else "invalid_request_error"


def dumped(value: Any) -> bytes:
    """JSON as it leaves: UTF-8 characters unescaped, so that a cut can fall inside one."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


BODY_FORMS = (
    "empty",
    "model_only",
    "empty_object",
    "error_empty",
    "plain",
    "html",
    "truncated_json",
    "sse_data",
    "list",
    "nested_string",
    "shape",
)
"""The names `broken_body` takes; a fault may give `raw` bytes instead."""


def broken_body(form: str, whole: Any, model: str) -> tuple[bytes, str]:
    """Bytes and content type of an error body in one of the forms a fault may name."""
    text = dumped(whole)
    error = whole.get("error", whole) if isinstance(whole, dict) else {}
    forms: dict[str, tuple[bytes, str]] = {
        "empty": (b"", "application/json"),
        "model_only": (dumped({"model": model}), "application/json"),
        "empty_object": (b"{}", "application/json"),
        "error_empty": (b'{"error":{}}', "application/json"),
        "plain": (str(error.get("message", "")).encode(), "text/plain; charset=utf-8"),
        "html": (b"<html><head><title>502 Bad Gateway</title></head></html>", "text/html"),
        "truncated_json": (text[: max(1, len(text) // 2)], "application/json"),
        "sse_data": (b"data:" + text + b"\n\n", "text/event-stream"),
        "list": (dumped([whole]), "application/json"),
        "nested_string": (
            dumped({"error": {"message": text.decode(), "type": "upstream_error", "code": 400}}),
            "application/json",
        ),
        "shape": (text, "application/json"),
    }
    return forms[form]


def overflow(shape: str, tokens: int, window: int) -> Refusal:
    """The refusal of a request that does not fit the window (X-06)."""
    if shape == "llamacpp":
        return Refusal(
            ("X-06",),
            f"the request exceeds the available context size ({tokens} tokens > {window})",
            type="exceed_context_size_error",
            extra={"n_prompt_tokens": tokens, "n_ctx": window},
        )
    if shape == "kimi":
        text = f"Invalid request: Your request exceeded model token limit: {window} (requested: {tokens})"
        return Refusal(("X-06",), text)
    if shape == "gemini-own":
        text = f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window})."
        return Refusal(("X-06",), text)
    if shape == "bedrock":
        return Refusal(("X-06",), "Input is too long for requested model.")
    if shape == "anthropic":
        return Refusal(("X-06",), f"prompt is too long: {tokens} tokens > {window} maximum")
    text = (
        f"This model's maximum context length is {window} tokens. "
        f"However, your messages resulted in {tokens} tokens."
    )
    return Refusal(("X-06",), text, param="messages", code="context_length_exceeded")


def bad_key(shown: str = "sk-bad") -> Refusal:
    """The refusal of a wrong key (X-01)."""
    return Refusal(("X-01",), f"Incorrect API key provided: {shown}.", status=401, code="invalid_api_key")


def named(knob: str, value: Any, shape: str) -> Refusal:
    """The refusal a fault names by its knob: `auth`, `quota_as_429`, `rate`, `overloaded`, …"""
    if knob == "overflow_at":
        return overflow(shape, int(value) + 1, int(value))
    refusal = _NAMED[knob]
    if knob == "rate" and not isinstance(value, bool):
        return replace(refusal, headers={"retry-after": str(value)})
    if knob == "quota_as_429" and shape == "kimi":
        return replace(refusal, type="exceeded_current_quota_error", status=403)
    if shape == "anthropic":
        return _as_anthropic(refusal, knob)
    return refusal


def _as_anthropic(refusal: Refusal, knob: str) -> Refusal:
    if knob == "auth":
        return replace(refusal, message="invalid x-api-key")
    if knob == "quota_as_429":
        details = {"details": {"error_code": "enforced_spend_limit_reached"}}
        return replace(refusal, message="You have reached your spend limit.", extra=details)
    if knob == "overloaded":
        return replace(refusal, status=529, message="Overloaded")
    return refusal


def expired_incident(wire: str) -> Refusal:
    """The refusal of valid signatures during an incident of the service."""
    if wire == "anthropic":
        return Refusal(("AN-08",), "messages.1.content.0: Invalid `signature` in `thinking` block")
    if wire == "responses":
        text = "The encrypted content gAAA... could not be verified."
        return Refusal(("OR-07",), text, param="input", code="invalid_encrypted_content")
    return Refusal(("GE-02",), "Thought signature is not valid", type="INVALID_ARGUMENT")


_NAMED = {
    "auth": bad_key(),
    "quota_as_400": Refusal(
        ("X-02",), "Your credit balance is too low to access the API. Please go to Plans & Billing."
    ),
    "quota_as_429": Refusal(
        ("X-03",),
        "You exceeded your current quota, please check your plan and billing details.",
        status=429,
        type="insufficient_quota",
        code="insufficient_quota",
    ),
    "rate": Refusal(
        ("X-04",),
        "Rate limit reached for requests.",
        status=429,
        type="requests",
        code="rate_limit_exceeded",
        headers={"retry-after": "1"},
    ),
    "overloaded": Refusal(
        ("X-05",),
        "The engine is currently overloaded, please try again later",
        status=503,
        type="engine_overloaded_error",
        code="overloaded",
    ),
    "moderation": Refusal(("X-07",), "Content Exists Risk", code="content_filter"),
}
NAMED_KNOBS = (*_NAMED, "overflow_at")
