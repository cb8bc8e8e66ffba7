"""What each emulated endpoint enforces and how it words things, as data.

Owns: the rules a profile refuses, its window, id style, reasoning field and
error form, for each of its wires, and which path is which wire. Does not own: how a
rule is checked (`chat_rules` and its siblings), how a body is built (`bodies`). A rule
without evidence for an endpoint is not enforced there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_OC_1_TO_8 = frozenset({"OC-01", "OC-02", "OC-03", "OC-04", "OC-05", "OC-06", "OC-07", "OC-08"})
_COMPAT = frozenset({"OC-01", "OC-02", "OC-03", "OC-04", "OC-06", "OC-08", "DS-11"})
_OR_COMPAT = frozenset({"OR-01", "OR-02", "OR-06", "OR-08", "OR-10"})
_OR_OPENAI = _OR_COMPAT | {"OR-03", "OR-04", "OR-05", "OR-07", "OR-09", "OR-11"}
_AN_COMPAT = frozenset({"AN-01", "AN-02", "AN-03", "AN-04", "AN-05", "AN-06", "AN-16", "AN-17"})
_AN_STRICT = _AN_COMPAT | {"AN-07", "AN-08", "AN-10", "AN-11", "AN-12", "AN-14", "AN-18", "AN-19", "AN-20"}
_MINIMAX = frozenset({"MM-01", "MM-02", "MM-03"})
_DEEPSEEK_ANTHROPIC = frozenset({"AN-01", "AN-03", "AN-04", "AN-05", "DS-04", "DS-07"})


_YES_NO = frozenset({True, False})
KNOBS: Mapping[str, frozenset[str | bool]] = {
    "v4_mode": frozenset({"all_turns", "tool_turns"}),
    "empty_ok": _YES_NO,
    "allow_prefill": _YES_NO,
    "reasoning_protocol": frozenset({"", "mimo"}),
    "octet_stream": _YES_NO,
}
"""The variants a profile may be turned to, with their values; `upstream` takes a Chat profile."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One emulated endpoint on one wire."""

    name: str
    rules: frozenset[str]
    wire: str = "chat"
    shape: str = "openai"
    """Form of its error bodies."""
    window_tokens: int = 128_000
    ids: str = "call"
    """`call`, `running` (`functions.{name}:{n}`), `position` (`{name}:{position}`), `nine`, `minimax`,
    `toolu`, `eight` (Gemini), `tooluse` (Bedrock)."""
    reasoning_field: str | None = "reasoning_content"
    """Where its replies carry reasoning; None when it shows none. On the other wires: `signed`,
    `unsigned` (Anthropic), `encrypted`, `text` (Responses), `thought_signature`, `signed` (Gemini, Bedrock)."""
    trace_header: str = "x-request-id"
    checks_fields: bool = True
    """False for `lenient`, which accepts any JSON object."""
    knobs: dict[str, str | bool] = field(default_factory=dict)
    """Named variants: `v4_mode` (`all_turns`, `tool_turns`), `empty_ok`, `allow_prefill`,
    `reasoning_protocol` (`mimo`), `octet_stream`, and of routers `upstream`: the Chat profile behind them."""


def _responses(name: str, rules: frozenset[str], *, reasoning: str = "encrypted", **more: str) -> Profile:
    return Profile(name, rules, wire="responses", reasoning_field=reasoning, **more)  # type: ignore[arg-type]


def _anthropic(name: str, rules: frozenset[str], *, reasoning: str = "signed", **more: str) -> Profile:
    shown = {"shape": "anthropic", "trace_header": "request-id", **more}
    return Profile(
        name,
        rules,
        wire="anthropic",
        window_tokens=200_000,
        ids="toolu",
        reasoning_field=reasoning,
        **shown,  # type: ignore[arg-type]
    )


_DEEPSEEK = {"shape": "deepseek", "trace_header": "x-ds-trace-id"}


def _by_name(*profiles: Profile) -> dict[str, Profile]:
    return {profile.name: profile for profile in profiles}


PROFILES: dict[str, Profile] = _by_name(
    Profile("compat", _COMPAT),
    Profile("openai", _OC_1_TO_8, reasoning_field=None),
    Profile("azure", _OC_1_TO_8, reasoning_field=None),
    Profile(
        "deepseek",
        frozenset({"OC-01", "OC-02", "DS-03", "DS-06", "DS-11"}),
        knobs={"v4_mode": "all_turns", "empty_ok": True},
        **_DEEPSEEK,  # type: ignore[arg-type]
    ),
    Profile("deepseek-v32", frozenset({"OC-01", "OC-02", "DS-02", "DS-06"}), **_DEEPSEEK),  # type: ignore[arg-type]
    Profile("deepseek-r1", frozenset({"OC-01", "OC-02", "DS-01"}), **_DEEPSEEK),  # type: ignore[arg-type]
    Profile(
        "kimi",
        frozenset({"OC-02", "KI-01", "KI-03", "KI-04"}),
        shape="kimi",
        ids="running",
        window_tokens=262_144,
        knobs={"empty_ok": True},
    ),
    Profile(
        "kimi-k3",
        frozenset({"OC-02", "KI-01", "KI-02", "KI-03", "KI-04"}),
        shape="kimi",
        ids="position",
        window_tokens=262_144,
        knobs={"empty_ok": True},
    ),
    Profile("kimi-selfhosted", frozenset({"KI-03", "KI-05"}), shape="kimi", ids="running"),
    Profile("llamacpp", frozenset({"OC-02", "LS-02", "LS-03"}), shape="llamacpp", window_tokens=8_192),
    Profile("vllm", frozenset({"OC-08", "LS-01"}), shape="vllm", window_tokens=32_768),
    Profile("ollama", frozenset({"OC-08", "LS-05"}), window_tokens=32_768),
    Profile("lenient", frozenset(), checks_fields=False, window_tokens=0),
    Profile("mistral", frozenset({"MS-01", "MS-02", "MS-03", "MS-04", "OC-02"}), shape="mistral", ids="nine"),
    Profile("gemini", frozenset({"GE-01", "GE-02"}), shape="gemini", reasoning_field="thought_signature"),
    Profile("glm", frozenset({"GL-02"}), shape="glm"),
    Profile("qwen", frozenset({"QW-01", "QW-02"})),
    Profile("minimax", _MINIMAX, shape="minimax", ids="minimax", reasoning_field="reasoning_details"),
    Profile("mimo", frozenset({"MI-01", "MI-02"}), shape="mimo", knobs={"empty_ok": False}),
    Profile("groq", frozenset({"OC-10"}), reasoning_field="reasoning"),
    Profile("openrouter", frozenset(), reasoning_field="reasoning_details", knobs={"upstream": "deepseek"}),
    Profile("litellm", frozenset(), knobs={"upstream": "deepseek"}),
)
"""The Chat wire."""

RESPONSES: dict[str, Profile] = _by_name(
    _responses("compat", _OR_COMPAT),
    _responses("openai", _OR_OPENAI),
    _responses(
        "deepseek",
        frozenset({"OR-01", "OR-02", "DS-05"}),
        reasoning="text",
        **_DEEPSEEK,
    ),
    _responses("xai", frozenset({"OR-01", "OR-02"})),
    _responses("minimax", _MINIMAX, reasoning="text", shape="minimax"),
)
"""The Responses wire."""

ANTHROPIC: dict[str, Profile] = _by_name(
    _anthropic("compat", _AN_COMPAT),
    _anthropic("anthropic", _AN_STRICT),
    _anthropic("anthropic-bound", _AN_STRICT | {"AN-09"}),
    _anthropic("deepseek", _DEEPSEEK_ANTHROPIC, reasoning="unsigned", **_DEEPSEEK),
    _anthropic("kimi", frozenset({"AN-01", "AN-02", "KI-01"}), reasoning="unsigned", shape="kimi-messages"),
)
"""The Anthropic Messages wire."""

GEMINI: dict[str, Profile] = _by_name(
    Profile(
        "gemini",
        frozenset({"GE-01", "GE-02", "GE-03", "GE-04", "GE-05"}),
        wire="gemini",
        shape="gemini-own",
        window_tokens=1_048_576,
        ids="eight",
        reasoning_field="thought_signature",
    ),
)
"""Gemini's own wire. The product does not speak it."""

CONVERSE: dict[str, Profile] = _by_name(
    Profile(
        "bedrock",
        frozenset({"BR-01", "BR-02", "BR-03", "BR-04", "BR-05", "BR-06"}),
        wire="converse",
        shape="bedrock",
        window_tokens=200_000,
        ids="tooluse",
        reasoning_field="signed",
        trace_header="x-amzn-requestid",
    ),
)
"""Bedrock's Converse wire. The product does not speak it."""

WIRES: Mapping[str, Mapping[str, Profile]] = {
    "chat": PROFILES,
    "responses": RESPONSES,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "converse": CONVERSE,
}
PATHS: Mapping[str, str] = {
    "v1/chat/completions": "chat",
    "v1/responses": "responses",
    "v1/messages": "anthropic",
}
"""Behind the profile's name, of the wires whose path says nothing more."""
_NAMING = (
    (
        "gemini",
        re.compile(r"v1(?:beta)?/models/(?P<model>[^/:]+):(?P<verb>generateContent|streamGenerateContent)"),
    ),
    ("converse", re.compile(r"model/(?P<model>.+)/(?P<verb>converse)")),
)
"""Paths that name the model, and what is asked of it."""
SERVED_AT_ROOT = frozenset({"anthropic", "gemini", "converse"})
"""Wires whose clients add the version to the path themselves."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a path behind a profile's name says."""

    wire: str
    model: str | None = None
    """None where the body names it."""
    streams: bool | None = None
    """None where the body asks for it."""


def place_of_path(path: str) -> Place | None:
    """The wire of a path behind a profile's name, or None when it is no request for a model."""
    if path in PATHS:
        return Place(PATHS[path])
    for wire, pattern in _NAMING:
        found = pattern.fullmatch(path)
        if found is not None:
            return Place(wire, found["model"], found["verb"].startswith("stream"))
    return None


def client_url(root: str, profile: str, wire: str) -> str:
    """What a client of this wire takes as its base URL."""
    return f"{root}/{profile}" + ("" if wire in SERVED_AT_ROOT else "/v1")


def check_knobs(knobs: Mapping[str, object]) -> None:
    """Raise `ValueError` for a variant or a value that does not exist."""
    unknown = set(knobs) - set(KNOBS) - {"upstream"}
    if unknown:
        raise ValueError(f"knobs are {', '.join(sorted([*KNOBS, 'upstream']))}, not {sorted(unknown)!r}")
    for knob, value in knobs.items():
        taken = frozenset(PROFILES) if knob == "upstream" else KNOBS[knob]
        if not isinstance(value, (str, bool)) or value not in taken:
            shown = ", ".join(sorted(json.dumps(one) for one in taken))
            raise ValueError(f"{knob}={value!r}: choose one of {shown}")


def known_profile(name: object) -> str:
    """The name of a profile. Raises `ValueError` for anything else."""
    if not isinstance(name, str) or name not in profile_names():
        raise ValueError(f"profile {name!r}: choose one of {', '.join(profile_names())}")
    return name


def profile_names() -> list[str]:
    """Every profile of every wire."""
    return sorted({name for profiles in WIRES.values() for name in profiles})
