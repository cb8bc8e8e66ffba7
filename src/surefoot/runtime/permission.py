"""Pure. May this call run without a question? Modes and rules (UX-38 to UX-40).

Owns: the form of rules, their precedence, and the verdict. Does not own: asking, the
binding of an answer to arguments (`barrier`), or anything about unknown calls: no verdict
answers for one, lifts a fence or enables `retry`.
Promises: deny beats ask beats allow, whatever the order or source.
"""

from __future__ import annotations

import functools
import posixpath
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from surefoot.core.effects import Effect
from surefoot.core.model import EffectClass, Mode, Word
from surefoot.errors import SettingsError
from surefoot.runtime.tools import Tool

SHELL = "Bash"
UNTOLD = "\0"
"""A subject that stands for a part which cannot be told: no rule allows it, a denied part beside it is denied."""
ALSO = "\0\0"
"""How a subject begins that is a further reading of another one: what a command also runs, or the spelling of
a path where upper and lower case are one. Rules that deny or ask see it, those that allow neither see nor need it."""
READ = "Read"
FILE_TOOLS = frozenset({"Read", "Write", "Edit", "Glob", "Grep"})
EDITS = frozenset({"Write", "Edit"})
SYSTEM_FOLDERS = (
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/usr/bin", "/usr/sbin", "/usr/include", "/usr/lib"),
    *("/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share", "/usr/src"),
    *("/usr/local/bin", "/usr/local/include", "/usr/local/lib", "/usr/local/share"),
)
"""Where installed programs stand: the same on every machine of its kind, and readable for everybody."""
SYSTEM_FILES = frozenset(
    [
        *("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"),
        *("/proc/cpuinfo", "/proc/meminfo", "/proc/loadavg", "/proc/uptime", "/proc/version"),
        *("/etc/os-release", "/etc/debian_version", "/etc/alpine-release", "/etc/redhat-release"),
        *("/etc/lsb-release", "/etc/timezone", "/etc/localtime", "/etc/shells", "/etc/services"),
    ]
)
"""Single files that tell of the machine what a program may ask the system as well."""
_RULE = re.compile(r"\s*([A-Za-z_*?][A-Za-z0-9_.*?-]*)\s*(?:\((.*)\))?\s*", re.DOTALL)


class VerdictKind(Word):
    """What is done with a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Rule:
    """`Tool`, `Tool(pattern)` or `mcp__server__tool`, as written in `text`."""

    text: str
    name: str
    pattern: str | None


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules of a session; where they come from makes no difference."""

    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    roots: tuple[str, ...] = ()
    """The workspace: real paths that patterns without a leading `/` start from."""
    home: str | None = None
    """What `~` means in a pattern."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer, the rule that gave it (as written, or None), and one sentence."""

    kind: VerdictKind
    rule: str | None
    reason: str


def mode_of(text: str) -> Mode:
    """Read a mode; `manual` is another word for `default`. Raises `SettingsError`."""
    if text == "manual":
        return Mode.DEFAULT
    try:
        return Mode(text)
    except ValueError:
        known = ", ".join(mode.value for mode in Mode)
        raise SettingsError(f"{text!r} is no permission mode; use one of {known}, manual") from None


def parse_rules(
    allow: Iterable[str] = (),
    ask: Iterable[str] = (),
    deny: Iterable[str] = (),
    *,
    roots: Iterable[str] = (),
    home: str | None = None,
) -> Rules:
    """Read rules as written. Raises `SettingsError` that quotes the rule which cannot be read."""
    return Rules(
        tuple(map(parse_rule, allow)),
        tuple(map(parse_rule, ask)),
        tuple(map(parse_rule, deny)),
        tuple(roots),
        home,
    )


def parse_rule(text: str) -> Rule:
    """Read one rule. Raises `SettingsError`."""
    if not isinstance(text, str):
        raise SettingsError(f"permission rule {text!r} is not text; write it as 'Tool' or 'Tool(pattern)'")
    found = _RULE.fullmatch(text)
    if found is None:
        raise SettingsError(f"permission rule {text!r} cannot be read; write it as 'Tool' or 'Tool(pattern)'")
    name, pattern = found[1], found[2]
    if pattern is not None and not pattern.strip():
        raise SettingsError(
            f"permission rule {text!r} has an empty pattern; write {name!r} for every call of it"
        )
    if pattern is not None and name.startswith("mcp__"):
        raise SettingsError(f"permission rule {text!r}: an MCP tool takes no pattern; write {name!r}")
    return Rule(text, name, None if pattern is None else pattern.strip())


def decide(
    rules: Rules,
    mode: Mode,
    tool: Tool,
    subjects: Sequence[str] | None,
    effect: Effect,
    reads: Sequence[str] = (),
) -> Verdict:
    """Decide one call. `subjects` is None for a tool without any, empty when they cannot be told.

    Subjects of file tools are real paths, those of a shell every simple command of the line (UX-40).
    `reads` are the real paths that a shell line opens, with `UNTOLD` when there may be more.
    """
    if tool.rule_name == "Grep":
        reads = subjects or ()  # a search shows what is in the files, so rules on reading speak of it
    found = _by_deny(rules, tool, subjects, reads)
    if found is not None:
        return found
    if mode is Mode.PLAN:
        return _in_plan(rules, tool, subjects, effect, reads)
    if tool.switched_on:
        return Verdict(VerdictKind.ALLOW, None, "its owner switched it on in the settings")
    if mode is Mode.BYPASS:
        return _in_bypass(rules, tool, subjects)
    verdict = _by_rules(rules, tool, subjects, reads)
    return _unasked(mode, verdict or _by_mode(rules, mode, tool, subjects, effect, reads))


def _unasked(mode: Mode, verdict: Verdict) -> Verdict:
    if mode is Mode.DONT_ASK and verdict.kind is VerdictKind.ASK:
        return Verdict(
            VerdictKind.DENY, verdict.rule, f"{verdict.reason}; mode dontAsk refuses instead of asking"
        )
    return verdict


def _by_deny(
    rules: Rules, tool: Tool, subjects: Sequence[str] | None, reads: Sequence[str]
) -> Verdict | None:
    rule = _speaking(rules.deny, rules, tool, subjects, reads)
    if rule is None:
        return None
    return Verdict(VerdictKind.DENY, rule.text, f"the rule {rule.text!r} denies it")


def _speaking(
    named: Sequence[Rule], rules: Rules, tool: Tool, subjects: Sequence[str] | None, reads: Sequence[str]
) -> Rule | None:
    """The first rule that means this call: by its tool, or by a path that its tool opens."""
    for rule in named:
        if speaks_of(rule, tool) and _any(rule, rules, tool, subjects):
            return rule
        if rule.pattern is not None and any(_on_reading(rule, rules, path, wide=True) for path in reads):
            return rule
    return None


def _on_reading(rule: Rule, rules: Rules, path: str, *, wide: bool = False) -> bool:
    """Whether a rule on reading means this path."""
    if not _compiled(rule.name, False).fullmatch(READ):
        return False
    return rule.pattern is None or (path != UNTOLD and _on_path(rule.pattern, rules, path, wide=wide))


def _by_rules(
    rules: Rules, tool: Tool, subjects: Sequence[str] | None, reads: Sequence[str]
) -> Verdict | None:
    rule = _speaking(rules.ask, rules, tool, subjects, reads)
    if rule is not None:
        return Verdict(VerdictKind.ASK, rule.text, f"the rule {rule.text!r} asks")
    if subjects is not None and (not subjects or UNTOLD in subjects):
        return Verdict(VerdictKind.ASK, None, "it cannot be told what it would do")
    named = [rule for rule in rules.allow if speaks_of(rule, tool)]
    whole = next((rule for rule in named if rule.pattern is None), None)
    if whole is not None:
        return Verdict(VerdictKind.ALLOW, whole.text, f"the rule {whole.text!r} allows it")
    if not subjects:
        return None
    deciding: list[str] = []
    for subject in _certain(subjects):
        match = next((rule for rule in named if _matches(rule, rules, tool, subject)), None)
        if match is None:
            return None
        deciding.append(match.text)
    told = ", ".join(dict.fromkeys(deciding))
    return Verdict(VerdictKind.ALLOW, deciding[0], f"allowed by {told}")


def _by_mode(
    rules: Rules,
    mode: Mode,
    tool: Tool,
    subjects: Sequence[str] | None,
    effect: Effect,
    reads: Sequence[str],
) -> Verdict:
    if effect.interaction:
        return Verdict(VerdictKind.ALLOW, None, "it is a question to a person")
    if effect.effect_class is EffectClass.READ_ONLY:
        return _reading(rules, tool, subjects, reads)
    inside = _inside(rules, tool, subjects)
    if effect.effect_class is EffectClass.IDEMPOTENT_WRITE and not effect.reach:
        return Verdict(VerdictKind.ALLOW, None, "it changes nothing but its own session")
    if mode is Mode.ACCEPT_EDITS and tool.rule_name in EDITS and subjects and inside and rules.roots:
        return Verdict(VerdictKind.ALLOW, None, "mode acceptEdits lets edits inside the workspace pass")
    return Verdict(VerdictKind.ASK, None, "no rule allows it")


def _reading(rules: Rules, tool: Tool, subjects: Sequence[str] | None, reads: Sequence[str]) -> Verdict:
    """A reader passes where it reads the workspace, the system's own programs, or what a rule lets read."""
    if tool.rule_name in FILE_TOOLS:
        if all(_may_be_seen(rules, path) for path in _certain(subjects)):
            return Verdict(VerdictKind.ALLOW, None, "it only reads")
        return Verdict(VerdictKind.ASK, None, "it reads outside the workspace")
    for path in _certain(reads):
        if _may_be_seen(rules, path) or any(_on_reading(rule, rules, path) for rule in rules.allow):
            continue
        if path == UNTOLD:
            return Verdict(VerdictKind.ASK, None, "it cannot be told what it would read")
        return Verdict(VerdictKind.ASK, None, f"it reads outside the workspace: {path}")
    return Verdict(VerdictKind.ALLOW, None, "it only reads")


def _may_be_seen(rules: Rules, path: str) -> bool:
    if not rules.roots or any(_below(path, root) for root in rules.roots) or path in SYSTEM_FILES:
        return True
    at_home = rules.home not in (None, "/") and _below(path, str(rules.home))
    return not at_home and any(_below(path, folder) for folder in SYSTEM_FOLDERS)


def _in_plan(
    rules: Rules, tool: Tool, subjects: Sequence[str] | None, effect: Effect, reads: Sequence[str]
) -> Verdict:
    """Mode plan offers only proven readers; a reader outside the workspace is still asked about."""
    if effect.interaction:
        return Verdict(VerdictKind.ALLOW, None, "it is a question to a person")
    if effect.effect_class is not EffectClass.READ_ONLY:
        return Verdict(VerdictKind.DENY, None, "mode plan lets only readers run")
    verdict = _by_rules(rules, tool, subjects, reads)
    return verdict or _by_mode(rules, Mode.PLAN, tool, subjects, effect, reads)


def _in_bypass(rules: Rules, tool: Tool, subjects: Sequence[str] | None) -> Verdict:
    """Everything that no deny rule names; what cannot be told apart from a denied call is asked."""
    patterns = [rule.text for rule in rules.deny if speaks_of(rule, tool) and rule.pattern is not None]
    if patterns and (not subjects or UNTOLD in subjects):
        told = ", ".join(patterns)
        return Verdict(VerdictKind.ASK, patterns[0], f"it cannot be told whether {told} denies it")
    return Verdict(VerdictKind.ALLOW, None, "mode bypassPermissions")


def may_be_reader(tool: Tool) -> bool:
    """Whether a call of this tool can be a proven reader, by its class or by what its arguments say (UX-38)."""
    if isinstance(tool.effect, Effect):
        return tool.effect.interaction or tool.effect.effect_class is EffectClass.READ_ONLY
    return tool.rule_name not in EDITS


def _inside(rules: Rules, tool: Tool, subjects: Sequence[str] | None) -> bool:
    """Whether every path of a file tool lies in the workspace; other tools have no paths to compare."""
    if tool.rule_name not in FILE_TOOLS or not rules.roots:
        return True
    return all(any(_below(subject, root) for root in rules.roots) for subject in _certain(subjects))


def _certain(subjects: Sequence[str] | None) -> list[str]:
    """The subjects without what they may also be."""
    return [subject for subject in subjects or () if not subject.startswith(ALSO)]


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def speaks_of(rule: Rule, tool: Tool) -> bool:
    """Whether a rule speaks of this tool: by its name, an alias, or the name rules know it by."""
    names = {tool.name, *tool.aliases, *([tool.rule_name] if tool.rule_name else [])}
    if any(_compiled(rule.name, False).fullmatch(name) for name in names):
        return True
    # `mcp__server` speaks of every tool of that server.
    server = rule.name.startswith("mcp__") and rule.name.count("__") == 1
    return server and any(name.startswith(rule.name + "__") for name in names)


def _any(rule: Rule, rules: Rules, tool: Tool, subjects: Sequence[str] | None) -> bool:
    if rule.pattern is None:
        return True
    return any(_matches(rule, rules, tool, subject, wide=True) for subject in subjects or ())


def _matches(rule: Rule, rules: Rules, tool: Tool, subject: str, *, wide: bool = False) -> bool:
    if rule.pattern is None:
        return True
    if tool.rule_name == SHELL:
        subject = subject.removeprefix(ALSO)
        return any(_compiled(pattern, False).fullmatch(subject) for pattern in _shell_patterns(rule.pattern))
    if tool.rule_name in FILE_TOOLS:
        return _on_path(rule.pattern, rules, subject, wide=wide)
    return any(_compiled(pattern, False).fullmatch(subject) for pattern in _address_patterns(rule.pattern))


def _on_path(pattern: str, rules: Rules, path: str, *, wide: bool = False) -> bool:
    """Whether a pattern means a path; `wide` takes every way to write the same letters for one."""
    patterns = _path_patterns(pattern, rules.roots, rules.home)
    if any(_compiled(one, True).fullmatch(path) for one in patterns):
        return True
    return wide and any(
        _compiled(_one_spelling(one, path), True).fullmatch(_one_spelling(path, path)) for one in patterns
    )


def _one_spelling(text: str, path: str) -> str:
    """Text with its letters composed; in small letters for a path that does not tell case."""
    composed = unicodedata.normalize("NFC", text.removeprefix(ALSO))
    return composed.casefold() if path.startswith(ALSO) else composed


def _shell_patterns(pattern: str) -> tuple[str, ...]:
    """`git push *` also means `git push` alone; `git push:*` is the same rule as other agents write it."""
    pattern = re.sub(r"\s+", " ", pattern)
    if pattern.endswith(":*"):
        return (pattern[:-2], pattern[:-2] + " *")
    if pattern.endswith(" *"):
        return (pattern[:-2], pattern)
    return (pattern,)


def _address_patterns(pattern: str) -> tuple[str, ...]:
    """`domain:host` means every address of that host."""
    if pattern.startswith("domain:"):
        host = pattern.removeprefix("domain:")
        return tuple(f"{scheme}://{host}{rest}" for scheme in ("http", "https") for rest in ("", "/**", ":*"))
    return (pattern,)


def _path_patterns(pattern: str, roots: Sequence[str], home: str | None) -> tuple[str, ...]:
    """Absolute patterns: `~` is home, a name alone means it anywhere, a relative one starts at the roots."""
    if (pattern == "~" or pattern.startswith("~/")) and home is not None:
        pattern = f"{home.rstrip('/')}/{pattern[2:]}"
    elif pattern.startswith("//"):
        pattern = pattern[1:]
    if pattern.startswith(("/", "**")):
        started = [pattern]
    elif "/" not in pattern.rstrip("/") and pattern not in (".", ".."):
        started = [f"/**/{pattern}", f"/{pattern}"]
    else:
        relative = pattern.removeprefix("./")
        started = [f"{root.rstrip('/')}/{relative}" for root in roots] or [f"/**/{relative}"]
    # Subjects are real paths: `.` and `..` in a pattern would fit none of them.
    started = [posixpath.normpath(one) + "/" * one.endswith("/") if one[0] == "/" else one for one in started]
    started = [f"{one.rstrip('/')}/**" if one.endswith("/") else one for one in started]
    # A folder's pattern also means the folder itself, which a search may be given.
    folders = [text.removesuffix("/**") for text in started if text.endswith("/**") and len(text) > 3]
    return (*started, *folders)


@functools.lru_cache(maxsize=1024)
def _compiled(pattern: str, path: bool) -> re.Pattern[str]:
    """`**` is anything, `*` anything (in a path: within one name), `?` one character."""
    pieces: list[str] = []
    index = 0
    while index < len(pattern):
        if path and pattern.startswith("**/", index):
            pieces.append("(?:.*/)?")
            index += 3
        elif pattern.startswith("**", index):
            pieces.append(".*")
            index += 2
        elif pattern[index] == "*":
            pieces.append("[^/]*" if path else ".*")
            index += 1
        elif pattern[index] == "?":
            pieces.append("[^/]" if path else ".")
            index += 1
        else:
            pieces.append(re.escape(pattern[index]))
            index += 1
    return re.compile("".join(pieces), re.DOTALL)
