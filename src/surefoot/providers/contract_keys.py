"""Pure. The keys a contract may hold, and the values each may have.

Owns: the closed list of keys (`SCHEMA`), kinds, families and rule ids. Does not
own: files and bases (`contracts`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from surefoot.core.incident import REPLAY_KINDS

ROOTS = ("compat/chat", "compat/responses", "compat/anthropic")
IDENTITY_KEYS: Mapping[str, Any] = {
    "contract.schema": 1,
    "contract.id": "",
    "contract.base": None,
    "contract.revision": 1,
    "contract.tier": 1,
}
LEVELS = ("enforce", "suspect", "off")
CODE_KINDS = (
    "auth",
    "quota",
    "rate",
    "policy",
    "transient",
    "context_overflow",
    "schema",
    "payload",
    "generation",
)
CARRIERS = (
    "none",
    "reasoning_content",
    "reasoning_details",
    "think_text",
    "thinking_signed",
    "thinking_unsigned",
    "item_encrypted",
    "item_text",
    "thought_signature",
    "bedrock_reasoning",
)
REQUIRED = (
    "as_received",
    "never",
    "forbidden",
    "tool_turns",
    "tool_turns_since_user",
    "all_with_tools",
    "all_turns",
    "open_tool_loop",
    "with_items",
    "first_call_of_step",
)
ERROR_SHAPES = (
    "openai",
    "deepseek",
    "kimi",
    "mimo",
    "glm",
    "minimax",
    "mistral",
    "vllm",
    "llamacpp",
    "gemini",
    "openrouter",
    "anthropic",
    "bedrock",
)
HOSTED_KINDS = ("search", "fetch", "code", "computer", "mcp", "image")

_COUNTS = {"OC": 12, "OR": 14, "AN": 22, "DS": 11, "KI": 7, "LS": 7, "X": 12, "MI": 3}
_COUNTS |= {"GL": 4, "QW": 4, "MM": 5, "GE": 6, "MS": 4, "RT": 9, "BR": 7}
RULE_IDS = frozenset(f"{prefix}-{n:02d}" for prefix, count in _COUNTS.items() for n in range(1, count + 1))

FLAG = (False, True)
UNCERTAIN = ("reject", "accept", "unknown")
TEXTS = "a list of texts, none of them blank"
COUNT = "a number, 0 or more"
STATUSES = "a list of HTTP statuses"
WORDS = "a text"
PATTERN = "a regular expression"
CODES = "a table of code = kind"
PAIRS = "a table of family = list of fragment lists, none of them empty or blank"
HOSTED = "a table of kind = list of types"
FORMS = "a table of kind = the tool as a request holds it"

SCHEMA: Mapping[str, Any] = {
    "pairing.results_position": (
        "contiguous",
        "same_input",
        "next_message_first",
        "next_turn",
        "next_turn_only",
    ),
    "pairing.orphan_result": UNCERTAIN,
    "pairing.duplicate_result": UNCERTAIN,
    "pairing.after_results": ("any", "assistant_or_tool", "own_turn"),
    "pairing.first_role": ("any", "user"),
    "pairing.final_role": ("any", "user", "user_or_tool"),
    "pairing.same_role_neighbours": ("ok", "merge"),
    "pairing.server_tool_pairs": FLAG,
    "pairing.chaining": ("none", "previous_response_id"),
    "pairing.batch_split": FLAG,
    "ids.pattern": PATTERN,
    "ids.max_length": COUNT,
    "ids.unique": ("batch", "request", "none"),
    "ids.repeated_in_reply": ("accept", "distinct", "refuse"),
    "ids.policy": ("alias", "verbatim", "native_kimi"),
    "ids.item_prefixes": FLAG,
    "arguments.type": ("string", "object", "either"),
    "arguments.history_json": FLAG,
    "arguments.double_encoded": FLAG,
    "content.assistant_null": ("never", "with_calls", "ok"),
    "content.result": ("string", "text_parts", "parts", "object"),
    "content.empty_text": ("ok", "omit"),
    "content.empty_result": ("ok", "text"),
    "content.error_result_text": FLAG,
    "content.result_media": ("none", "user_after", "inline"),
    "content.unknown_keys": ("drop", "ok"),
    "reasoning.carrier": CARRIERS,
    "reasoning.efforts": TEXTS,
    "reasoning.required": REQUIRED,
    "reasoning.when": ("thinking_on", "always"),
    "reasoning.empty_ok": FLAG,
    "reasoning.placeholder": WORDS,
    "reasoning.binding": ("none", "model", "account", "backend", "prefix"),
    "reasoning.drop_block": FLAG,
    "reasoning.off_forbids": FLAG,
    "reasoning.missing_at_receipt": ("accept", "regenerate"),
    "tools.required_with_history": FLAG,
    "tools.hosted": HOSTED,
    "tools.hosted_forms": FORMS,
    "tools.mode": ("native", "json_schema"),
    "cache.markers_max": COUNT,
    "cache.forbidden_on": TEXTS,
    "stream.terminal": TEXTS,
    "stream.terminal_optional": FLAG,
    "stream.snapshots": FLAG,
    "stream.usage": TEXTS,
    "errors.shape": ERROR_SHAPES,
    "errors.trace_headers": TEXTS,
    "errors.codes": CODES,
    "errors.wordless": TEXTS,
    "errors.quota_text": TEXTS,
    "errors.overflow_text": TEXTS,
    "errors.policy_text": TEXTS,
    "errors.schema_text": TEXTS,
    "errors.flap_text": TEXTS,
    "errors.history_fault_status": STATUSES,
    "errors.families": PAIRS,
    "errors.unwrap": FLAG,
    "limits.window_tokens": COUNT,
    "limits.body_bytes": COUNT,
    "limits.output_key": ("max_tokens", "max_completion_tokens"),
}
"""Dotted key → its allowed values. Four are keys of ours: `tools.mode`, how tools are offered where native
calls are not constrained; `tools.hosted_forms`, by which a request switches a hosted tool on;
`limits.output_key`, the request's name for the output limit; and `reasoning.efforts`, the words in which the
endpoint may be told how much to reason."""

_SECTIONS = frozenset(key.partition(".")[0] for key in (*SCHEMA, *IDENTITY_KEYS)) | {"rules"}
_TABLES = frozenset(key for key, allowed in SCHEMA.items() if allowed in (CODES, PAIRS, HOSTED, FORMS))


def flatten(parsed: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested TOML tables → dotted keys, stopping at keys whose value is a table."""
    flat: dict[str, Any] = {}
    for key, value in parsed.items():
        name = f"{prefix}{key}"
        known_empty = bool(value) or name in _SECTIONS  # another empty table is a value of the wrong kind
        if isinstance(value, Mapping) and name not in _TABLES and known_empty:
            flat.update(flatten(value, name + "."))
        else:
            flat[name] = value
    return flat


def value_fault(key: str, value: Any) -> str | None:
    """Why this key or value cannot be in a contract, or None."""
    if key in IDENTITY_KEYS:
        wanted = str if key in ("contract.id", "contract.base") else int
        return None if isinstance(value, wanted) else f"{key} must be {_name(wanted)}."
    if key.startswith("rules."):
        return _rule_fault(key[len("rules.") :], value)
    if key not in SCHEMA:
        return f"unknown key {key!r}{_nearest(key)}."
    if key == "stream.terminal" and value == []:
        return "stream.terminal must name a marker: without one no reply ever ends."
    allowed = SCHEMA[key]
    if isinstance(allowed, tuple):
        good = any(value is one if isinstance(one, bool) else value == one for one in allowed)
        given = _shown(value) if isinstance(value, bool) else repr(value)
        return (
            None if good else f"{key} = {given} is not known; use one of {', '.join(map(_shown, allowed))}."
        )
    return None if _fits(allowed, value) else f"{key} must be {allowed}{_detail(allowed)}."


def _name(wanted: type) -> str:
    return "a text" if wanted is str else "a whole number"


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _rule_fault(rule: str, level: Any) -> str | None:
    if rule not in RULE_IDS:
        return f"unknown rule id {rule!r} in [rules]."
    return None if level in LEVELS else f'rules."{rule}" = {level!r} is no level; use {", ".join(LEVELS)}.'


def _nearest(key: str) -> str:
    tail = key.rpartition(".")[2]
    near = [known for known in SCHEMA if known.rpartition(".")[2] == tail or known.startswith(key)]
    return f"; did you mean {near[0]!r}" if near else ""


def _detail(allowed: str) -> str:
    return {CODES: f" ({', '.join(CODE_KINDS)})", PAIRS: f" ({', '.join(REPLAY_KINDS)})"}.get(allowed, "")


def _fits(allowed: str, value: Any) -> bool:
    if allowed == COUNT:
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if allowed == WORDS:
        return isinstance(value, str)
    if allowed == PATTERN:
        return isinstance(value, str) and _compiles(value)
    if allowed == TEXTS:
        return _texts(value)
    if allowed == STATUSES:
        return isinstance(value, list) and all(isinstance(one, int) and 100 <= one <= 599 for one in value)
    if not isinstance(value, Mapping):
        return False
    if allowed == CODES:
        return all(code.strip() and kind in CODE_KINDS for code, kind in value.items())
    if allowed == HOSTED:
        return all(kind in HOSTED_KINDS and _texts(types) for kind, types in value.items())
    if allowed == FORMS:
        return all(kind in HOSTED_KINDS and isinstance(form, Mapping) for kind, form in value.items())
    return all(family in REPLAY_KINDS and _pairs(pairs) for family, pairs in value.items())


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def _texts(value: Any) -> bool:
    """Whether these are texts to look for; a blank one would be found in everything."""
    return isinstance(value, list) and all(isinstance(one, str) and one.strip() for one in value)


def _pairs(value: Any) -> bool:
    return isinstance(value, list) and all(pair and _texts(pair) for pair in value)
