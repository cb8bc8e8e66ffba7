"""Every setting of surefoot as data: name, form, allowed values, unit, default. Pure.

Owns: the list of settings, what a value may look like, and which of them a
project file may never set (UX-24). Does not own: the bounds themselves and their ends
(`core.limits`), where values come from (`settings_files`), who wins (`config`).

A setting is named by its path in the file, `recovery.on_unknown`. Tables whose
names a person chooses are written with a star: `endpoints.*.url`.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from surefoot.core.limits import OLDER, Limits
from surefoot.core.model import Assurance, BarrierLevel, Mode
from surefoot.settings_hooks import CLASSES, EVENTS, hook_tables, hooks_problem

WIRES = ("chat", "responses", "anthropic")
BARRIERS = tuple(word.value for word in BarrierLevel)
ASSURANCES = tuple(word.value for word in Assurance)
MODES = tuple(word.value for word in Mode)
VENDOR_KEYS = {
    "openai": "OPENAI_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
}
"""Endpoints that need nothing but their vendor's usual variable (UX-26)."""
MODE_ALIASES = {"manual": "default"}


@dataclass(frozen=True, slots=True)
class Form:
    """What a value must look like. `kind` is one of text, switch, number, numbers, seconds, words, map, hooks."""

    kind: str
    allowed: tuple[str, ...] = ()
    default: Any = None
    unit: str = ""
    ends: tuple[float, float] | None = None
    """The least and the greatest value, both allowed; None where there are none."""

    def problem(self, value: Any) -> str | None:
        """What is expected instead of `value`, as a phrase, or None when it fits."""
        if self.allowed:
            fits = isinstance(value, str) and (value in self.allowed or value in MODE_ALIASES)
            return None if fits else "one of " + ", ".join(self.allowed)
        wrong = _PROBLEMS[self.kind](value)
        if self.ends is None or (wrong is None and self.ends[0] <= value <= self.ends[1]):
            return wrong
        least, most = (f"{end:,}".replace(",", " ") for end in self.ends)
        kind = "a whole number" if self.kind == "number" else "a number"
        return f"{kind} from {least} to {most}; this bound can be moved and not lifted"


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) else "text in quotation marks"


def _switch(value: Any) -> str | None:
    return None if isinstance(value, bool) else "true or false"


def _number(value: Any) -> str | None:
    fits = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return None if fits else "a whole number above 0"


def _seconds(value: Any) -> str | None:
    fits = (
        isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value > 0
    )
    return None if fits else "a number above 0"


def _numbers(value: Any) -> str | None:
    fits = isinstance(value, list) and all(_number(item) is None for item in value)
    return None if fits else "a list of whole numbers above 0"


def _words(value: Any) -> str | None:
    fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return None if fits else "a list of texts"


def _map(value: Any) -> str | None:
    fits = isinstance(value, Mapping) and all(isinstance(item, str) for item in value.values())
    return None if fits else "a table of texts"


_PROBLEMS: Mapping[str, Callable[[Any], str | None]] = {
    "text": _text,
    "switch": _switch,
    "number": _number,
    "seconds": _seconds,
    "words": _words,
    "map": _map,
    "numbers": _numbers,
    "hooks": hooks_problem,
}


def _bound_form(bound: dataclasses.Field[Any]) -> Form:
    """The form of a bound: it can be moved between its two ends and never lifted (UX-166)."""
    last = bound.name.rpartition("_")[2]
    return Form(
        "number" if bound.type == "int" else "seconds",
        default=bound.default,
        unit=_UNITS.get(bound.name) or _UNITS.get(last, last),
        ends=(bound.metadata["lowest"], bound.metadata["highest"]),
    )


_UNITS = {
    "seconds": "s",
    "hours": "h",
    "depth": "levels",
    "hand_off_files": "files per call",
    "snapshot_resolved": "calls",
    "ladder_retries_per_call": "retries",
    "ladder_retries_per_turn": "retries",
    "reports_per_call": "reports",
    "crash_attempts": "tries",
}
"""Units of bounds whose names do not end with their unit in full."""
_BOUNDS = {bound.name: _bound_form(bound) for bound in dataclasses.fields(Limits)}

LIMITS: Mapping[str, Form] = {name: form for name, form in _BOUNDS.items() if name not in OLDER}
"""Every bound of tool-recovery section 23 by its name."""

SETTINGS: Mapping[str, Form] = {
    "model": Form("text"),
    "language": Form("text", ("auto", "en", "zh-Hans", "zh-Hant"), "auto"),
    "screen_reader": Form("switch", default=False),
    "final": Form("words"),
    "window_tokens": Form("number", unit="tokens"),
    "endpoints.*.url": Form("text"),
    "endpoints.*.wire": Form("text", WIRES, "chat"),
    "endpoints.*.contract": Form("text"),
    "endpoints.*.model": Form("text"),
    "endpoints.*.key_env": Form("text"),
    "endpoints.*.key_command": Form("words"),
    "endpoints.*.hosted_tools": Form("words"),
    "endpoints.*.tools": Form("words"),
    "endpoints.*.headers": Form("map"),
    "endpoints.*.effort": Form("text"),
    "endpoints.*.reasoning_protocol": Form("text", ("deepseek", "mimo", "kimi", "none")),
    "recovery.barrier": Form("text", BARRIERS, "reach"),
    "recovery.on_unknown": Form("text", ("stop", "continue"), "stop"),
    "recovery.automatic": Form("text", ("on", "off"), "on"),
    "recovery.inspect_on_resume": Form("switch", default=True),
    "recovery.inspect_seconds": _BOUNDS["inspect_seconds"],
    "recovery.resume_retry": Form("text", ("safe", "none"), "safe"),
    "recovery.crash_attempts": _BOUNDS["crash_attempts"],
    "recovery.release_stopped_checks": Form("switch", default=True),
    "recovery.max_requests_per_step": Form("number", default=6, unit="requests", ends=(1, 100)),
    "recovery.accept_elicitation": Form("switch", default=True),
    "recovery.assurance_for_irreversible": Form("text", ASSURANCES, "same-user"),
    "recovery.policy.*": Form("text", ("release", "reject", "retry")),
    **{f"limits.{name}": form for name, form in LIMITS.items()},
    "packs.use": Form("words", default=[]),
    "permissions.mode": Form("text", MODES, "default"),
    "permissions.allow": Form("words", default=[]),
    "permissions.ask": Form("words", default=[]),
    "permissions.deny": Form("words", default=[]),
    "mcp.servers.*.command": Form("text"),
    "mcp.servers.*.args": Form("words"),
    "mcp.servers.*.env": Form("map"),
    "mcp.servers.*.cwd": Form("text"),
    "mcp.servers.*.type": Form("text", ("stdio", "http", "streamable-http", "sse")),
    "mcp.servers.*.url": Form("text"),
    "mcp.servers.*.headers": Form("map"),
    "mcp.servers.*.timeout_seconds": Form("seconds", unit="s"),
    "mcp.servers.*.tools.*.class": Form("text", CLASSES),
    "mcp.servers.*.tools.*.reach": Form("words"),
    "mcp.servers.*.tools.*.key_argument": Form("text"),
    "mcp.servers.*.tools.*.verifier": Form("text"),
    "mcp.servers.*.tools.*.lookup": Form("text"),
    "tools.*.class": Form("text", CLASSES),
    "tools.*.reach": Form("words"),
    "tools.*.reason": Form("text"),
    "tools.shell.at_deadline": Form("text", ("stop", "keep"), "stop"),
    "tools.shell.push_window_seconds": Form("seconds", unit="s"),
    "tools.http.offered": Form("switch", default=False),
    "tools.http.services.*.host": Form("text"),
    "tools.http.services.*.key_lifetime_seconds": Form("seconds", unit="s"),
    "tools.http.services.*.key_after_failure": Form("switch"),
    "tools.http.services.*.in_progress_status": Form("numbers"),
    "tools.http.services.*.queries": Form("words"),
    "tools.http.services.*.lookup": Form("text"),
    "tools.http.services.*.neighbour": Form("text"),
    "tools.http.services.*.refusal": Form("text"),
    "tools.http.services.*.commit_window_seconds": Form("seconds", unit="s"),
    "tools.http.services.*.lookup_lag_seconds": Form("seconds", unit="s"),
    **{f"hooks.{event}": Form("hooks") for event in EVENTS},
}
UNIONS = ("permissions.allow", "permissions.ask", "permissions.deny", *(f"hooks.{event}" for event in EVENTS))
"""Lists that every source may add to: deny beats ask beats allow, whatever the source (UX-39)."""

_FORBIDDEN_TABLES = (
    "endpoints",
    "contracts",
    "limits",
    "recovery",
    "telemetry",
    "notify",
    "server",
    "sandbox",
    "keys",
)
_FORBIDDEN = ("model", "window_tokens", "language", "screen_reader", "final", "packs.use", "permissions.mode")
_PROJECT_MAY_ALLOW = frozenset({"Read", "Glob", "Grep", "List", "Edit", "MultiEdit"})
"""Rule names of tools that are never `NON_IDEMPOTENT` or `UNKNOWN`; only these a project may allow."""
_LOOSENING_TOOL_KEYS = ("key_argument", "verifier", "lookup")


def form_of(path: str) -> Form | None:
    """The form of a setting, or None when surefoot knows no such setting."""
    found = SETTINGS.get(path)
    if found is not None:
        return found
    parts = path.split(".")
    for pattern, form in SETTINGS.items():
        wanted = pattern.split(".")
        if len(wanted) == len(parts) and all(w in ("*", p) for w, p in zip(wanted, parts, strict=True)):
            return form
    return None


def inner_table(path: str) -> bool:
    """Whether `path` names a table that holds settings, so that a plain value there is wrong."""
    parts = path.split(".")
    return any(
        len(wanted) > len(parts) and all(w in ("*", p) for w, p in zip(wanted, parts, strict=False))
        for wanted in (pattern.split(".") for pattern in SETTINGS)
    )


def nearest(path: str) -> str | None:
    """The known setting whose name is most like `path`."""
    found = difflib.get_close_matches(path, SETTINGS, n=1, cutoff=0.6)
    return found[0] if found else None


def forbidden_in_project(path: str, value: Any) -> str | None:
    """Why a project file may not set this, as a phrase, or None when it may (UX-24)."""
    parts = path.split(".")
    if parts[0] in _FORBIDDEN_TABLES or path in _FORBIDDEN:
        return "only your own settings may set this"
    if path == "permissions.allow":
        refused = [rule for rule in value if rule.split("(")[0] not in _PROJECT_MAY_ALLOW]
        if refused:
            return f"a project may not allow {', '.join(refused)}"
    if parts[0] == "hooks" and any({"class", "reach"} & set(one) for one in hook_tables(value)):
        return "only your own settings may say what a hook does"
    if parts[0] == "tools" and (len(parts) != 3 or parts[2] not in ("class", "reach")):
        return "only your own settings may set this"
    if parts[0] == "tools" or (parts[:2] == ["mcp", "servers"] and len(parts) == 6 and parts[3] == "tools"):
        return _loosens(parts[-1], value)
    return None


def _loosens(key: str, value: Any) -> str | None:
    """Why a project may not say this of a tool; to tighten is always allowed (EC-8)."""
    if key in _LOOSENING_TOOL_KEYS:
        return "only your own settings may set this"
    if key == "class" and value in ("READ_ONLY", "IDEMPOTENT_WRITE"):
        return "a project may tighten the class of a tool, never loosen it"
    if key == "reach" and "*" not in value:
        return "a project may widen the reach of a tool to *, never narrow it"
    return None


EXAMPLE = """\
model = "deepseek/deepseek-chat"      # endpoint/model
language = "auto"                     # auto | en | zh-Hans | zh-Hant

[endpoints.deepseek]
url = "https://api.deepseek.com"
wire = "chat"                         # chat | responses | anthropic
contract = "deepseek/chat"            # declared, never guessed from a name
model = "deepseek-chat"               # used when -m names only the endpoint
key_env = "DEEPSEEK_API_KEY"          # or: key_command = ["pass", "show", "deepseek"]
hosted_tools = ["search"]             # run by the provider; others only if named here (PR-98)

[endpoints.desk]                      # a server of your own, no key
url = "http://127.0.0.1:8080/v1"
wire = "chat"
contract = "llamacpp/chat"
model = "local"

[recovery]
barrier = "reach"                     # session | reach | action | advise | off
on_unknown = "stop"                   # unattended runs: stop | continue (outside the reach)
automatic = "on"                      # automatic repair of named replay faults: on | off
inspect_on_resume = true              # local looks at once, far ones on i or Continue (UX-50)
inspect_seconds = 10                  # per verifier
resume_retry = "safe"                 # what a resume runs again: safe | none (TR-118)
crash_attempts = 2                    # tries at one call before a person is asked
release_stopped_checks = true         # a stopped test run fences nothing (UX-156)
# policy.send_report = "release"      # an unknown call of this tool: release | reject | retry, without asking (TR-122)
max_requests_per_step = 6             # HTTP requests for one model step (PR-5)
accept_elicitation = true             # may an editor or MCP host carry a decision?
assurance_for_irreversible = "same-user"   # NON_IDEMPOTENT, UNKNOWN: same-user | sandboxed | separate-user | passkey
# The switch for `retry` is no setting: SUREFOOT_TOOL_RECOVERY_RETRY=1 on the owning host (TR-133).

[limits]                              # every bound of UX-166 by its name, for example:
pending_questions = 16
stop_kill_seconds = 10

[packs]
use = ["android-guru"]                # packs in force (EC-35), shipped ones or your own, by name

[permissions]
mode = "default"                      # default | acceptEdits | plan | dontAsk | bypassPermissions
allow = ["Read", "Bash(git status)", "Bash(pytest *)"]
ask = ["Bash(git push *)", "mcp__github__*"]
deny = ["Read(**/.env)", "Bash(sudo *)"]

[mcp.servers.github]                  # as in .mcp.json (whose timeout is timeout_seconds here)
command = "github-mcp-server"
args = ["stdio"]
env = { GITHUB_TOKEN = "${GITHUB_TOKEN}" }
timeout_seconds = 30

[mcp.servers.github.tools.create_issue]   # the owner's word about this tool (EC-42)
class = "NON_IDEMPOTENT"
reach = ["repo:github.com/{owner}/{repo}"]   # filled from the arguments
key_argument = "client_token"         # where the runtime puts its idempotency key
verifier = "mcp"                      # with the look-up paired with it (TR-109):
lookup = "search_issues"
"""
"""The example of `config show --example`; valid as it stands (UX-28)."""
