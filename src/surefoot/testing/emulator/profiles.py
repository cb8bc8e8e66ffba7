"""What each emulated endpoint enforces and how it words things, as data.

Owns: the rules a profile refuses, its window, id style, reasoning field and
error form. Does not own: how a rule is checked (`chat_rules`), how a body is
built (`bodies`). A rule without evidence for an endpoint is not enforced there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_OC_1_TO_8 = frozenset({"OC-01", "OC-02", "OC-03", "OC-04", "OC-05", "OC-06", "OC-07", "OC-08"})
_COMPAT = frozenset({"OC-01", "OC-02", "OC-03", "OC-04", "OC-06", "OC-08", "DS-11"})


@dataclass(frozen=True, slots=True)
class Profile:
    """One emulated endpoint."""

    name: str
    rules: frozenset[str]
    shape: str = "openai"
    """Form of its error bodies."""
    window_tokens: int = 128_000
    ids: str = "call"
    """`call`, `running` (`functions.{name}:{n}`) or `position` (`{name}:{position}`)."""
    reasoning_field: str | None = "reasoning_content"
    """Where its replies carry reasoning; None when it shows none."""
    trace_header: str = "x-request-id"
    checks_fields: bool = True
    """False for `lenient`, which accepts any JSON object."""
    knobs: dict[str, str | bool] = field(default_factory=dict)
    """Named variants: `v4_mode` (`all_turns`, `tool_turns`), `empty_ok`."""


PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("compat", _COMPAT),
        Profile("openai", _OC_1_TO_8, reasoning_field=None),
        Profile("azure", _OC_1_TO_8, reasoning_field=None),
        Profile(
            "deepseek",
            frozenset({"OC-01", "OC-02", "DS-03", "DS-06", "DS-11"}),
            shape="deepseek",
            trace_header="x-ds-trace-id",
            knobs={"v4_mode": "all_turns", "empty_ok": True},
        ),
        Profile(
            "deepseek-v32",
            frozenset({"OC-01", "OC-02", "DS-02", "DS-06"}),
            shape="deepseek",
            trace_header="x-ds-trace-id",
        ),
        Profile(
            "deepseek-r1",
            frozenset({"OC-01", "OC-02", "DS-01"}),
            shape="deepseek",
            trace_header="x-ds-trace-id",
        ),
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
            frozenset({"OC-02", "KI-02", "KI-03", "KI-04"}),
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
    )
}
