"""Pure. Arguments as they may be displayed: secrets out, length bounded (TR-5).

Owns: which names and shapes count as secret, and the display form. Does not own:
the stored arguments, which stay whole and leave the ledger only by `inspect` (TR-4).

Redaction errs on the hiding side: a harmless value under a secret-like name is hidden
too, and a secret in plain words under a plain name cannot be told from any other text.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from surefoot.core.canonical import canonical_json

REDACTED = "[redacted]"
DISPLAY_CHARACTERS = 2000
_DEPTH = 64

_WORD_PARTS = frozenset(
    (
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "pass",
        "secret",
        "secrets",
        "token",
        "apikey",
        "authorization",
        "auth",
        "bearer",
        "credential",
        "credentials",
        "cookie",
        "cookies",
        "signature",
        "otp",
        "pin",
    )
)
_WORD_PAIRS = frozenset(
    {
        ("api", "key"),
        ("access", "key"),
        ("private", "key"),
        ("secret", "key"),
        ("session", "key"),
        ("encryption", "key"),
        ("signing", "key"),
        ("account", "key"),
        ("shared", "key"),
        ("ssh", "key"),
        ("connection", "string"),
    }
)
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

_SECRET_WORD = (
    r"(?:passw(?:or)?d|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|"
    r"private[_-]?key|account[_-]?key|authorization|credentials?|cookie)[A-Za-z0-9_]{0,64}"
)
_VALUE = r"('[^']*'|\"[^\"]*\"|[^\s'\",;&|]+)"
_ARGUMENT = r"('[^']*'|\"[^\"]*\"|[^\s'\"]+)"


@dataclass(frozen=True, slots=True)
class _Shape:
    """One form a secret takes in text.

    Every repetition is bounded, or cannot begin again inside itself: the text comes from a
    model, and a line of a million dashes must not hold the program up.
    """

    marks: tuple[str, ...]
    """Lower-case pieces of text without one of which the pattern cannot match; most text has none."""
    pattern: re.Pattern[str]
    replacement: str = REDACTED


_SHAPES = (
    _Shape(
        ("private key",),
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,40}-----.*?(?:-----END [A-Z0-9 ]*-----|\Z)", re.S
        ),
    ),
    _Shape(
        ("bearer", "basic", "digest", "negotiate"),
        re.compile(r"(?i)\b(bearer|basic|digest|negotiate)(\s+)[A-Za-z0-9+/=_.~-]{6,}"),
        rf"\1\2{REDACTED}",
    ),
    _Shape(
        ("sk-", "sk_", "pk-", "pk_", "rk-", "rk_"),
        re.compile(r"\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_]){0,8}[A-Za-z0-9]{16,}"),
    ),
    _Shape(
        ("gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_"),
        re.compile(r"\b(?:gh[opsur]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})"),
    ),
    _Shape(("glpat", "glptt", "gldt"), re.compile(r"\b(?:glpat|glptt|gldt)-[A-Za-z0-9_-]{16,}")),
    _Shape(("xox",), re.compile(r"\bxox[a-z]-[A-Za-z0-9-]{10,}")),
    _Shape(("akia", "asia", "aroa"), re.compile(r"\b(?:AKIA|ASIA|AROA)[A-Z0-9]{16}\b")),
    _Shape(("aiza",), re.compile(r"\bAIza[A-Za-z0-9_-]{30,}")),
    _Shape(
        (
            *(
                "npm",
                "hf",
                "pypi",
                "dop_v1",
                "shpat",
                "whsec",
                "ya29",
                "lin_api",
                "rubygems",
                "sntrys",
                "figd",
            ),
            *(
                "glsa",
                "gsk",
                "r8",
                "dckr_pat",
                "xai",
                "nvapi",
                "pplx",
                "tvly",
                "pmak",
                "gocspx",
                "hvs",
                "sq0",
            ),
        ),
        re.compile(
            r"\b(?:npm|hf|pypi|dop_v1|shpat|whsec|ya29|lin_api|rubygems|sntrys|figd|glsa|gsk|r8|dckr_pat"
            r"|xai|nvapi|pplx|tvly|PMAK|GOCSPX|hvs|sq0[a-z]{3})[_.-][A-Za-z0-9_-]{16,}"
        ),
    ),
    _Shape(
        ("dapi", "eaac", "atatt3x", "age-secret-key-1"),
        re.compile(
            r"\b(?:dapi[0-9a-f]{32}|EAAC[A-Za-z0-9]{30,}|ATATT3x[A-Za-z0-9_=-]{20,}|AGE-SECRET-KEY-1[A-Z0-9]{50,})"
        ),
    ),
    _Shape(("key-",), re.compile(r"\bkey-[0-9a-f]{32}\b")),
    _Shape(("sg.",), re.compile(r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}")),
    _Shape((":aa",), re.compile(r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}")),
    _Shape(
        ("hooks.slack.com/", "/api/webhooks/"),
        re.compile(r"(hooks\.slack\.com/services/|/api/webhooks/[0-9]{1,20}/)[A-Za-z0-9/_-]{16,}"),
        rf"\1{REDACTED}",
    ),
    _Shape(
        ("eyj",),
        re.compile(r"\beyJ(?:(?!-eyJ)[A-Za-z0-9_-]){5,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*"),
    ),
    _Shape(("://",), re.compile(r"(\b[a-z][a-z0-9+.-]{0,30}://)[^\s/@'\"]+@"), rf"\1{REDACTED}@"),
    _Shape(
        ("=", ":"),
        re.compile(rf"(?i)({_SECRET_WORD}['\"]?\s*+[=:]\s*+)(?!\[redacted\]){_VALUE}"),
        rf"\1{REDACTED}",
    ),
    _Shape(
        ("--",),
        re.compile(rf"(?i)(--[A-Za-z0-9_.-]{{0,64}}?{_SECRET_WORD}\s+){_ARGUMENT}"),
        rf"\1{REDACTED}",
    ),
    _Shape(
        ("login", "machine"),  # a line of a netrc file
        re.compile(rf"(?i)\b((?:login|machine)\s+[^\s]{{1,255}}\s+(?:password|account)\s+){_ARGUMENT}"),
        rf"\1{REDACTED}",
    ),
    _Shape(
        ("mysql", "mariadb", "sshpass"),
        re.compile(
            rf"(\b(?:mysql(?:dump|admin)?|mariadb|sshpass)\b"
            rf"(?:(?!\b(?:mysql|mariadb|sshpass)\b)[^|;&\n]){{0,200}}?\s-p ?){_ARGUMENT}"
        ),
        rf"\1{REDACTED}",
    ),
    _Shape(
        ("curl",),
        re.compile(rf"(\bcurl\b(?:(?!\bcurl\b)[^|;&\n])*?\s(?:-u|--user)[ =]?){_ARGUMENT}"),
        rf"\1{REDACTED}",
    ),
)


def redact(arguments: str | Mapping[str, Any], secret_names: Iterable[str] = (), *, limit: int = 0) -> str:
    """The display form of arguments: one line of JSON with secrets replaced, at most `limit` characters.

    Takes the parsed object or its text; text that is no JSON is searched for secret shapes only.
    `secret_names` are arguments a declaration calls secret. `limit` 0 means 2,000.
    """
    value: Any = arguments
    if isinstance(arguments, str):
        try:
            value = json.loads(arguments)
        except (ValueError, RecursionError):
            return bounded(redact_text(arguments), limit or DISPLAY_CHARACTERS)
    declared = frozenset(secret_names)
    try:
        text = canonical_json(_clean(value, declared, _DEPTH))
    except (TypeError, RecursionError):
        return REDACTED  # nothing of a value that has no JSON form is shown
    return bounded(text, limit or DISPLAY_CHARACTERS)


def redact_text(text: str) -> str:
    """Free text, such as a command line or a log line, with secret shapes replaced."""
    lowered = text.lower()
    # Two plain loops: `any` over the marks takes twice as long, and every call and every result comes by here.
    for shape in _SHAPES:
        for mark in shape.marks:
            if mark in lowered:
                text = shape.pattern.sub(shape.replacement, text)
                break
    return text


def bounded(text: str, characters: int) -> str:
    """Cut at a code point and say how much is missing."""
    if len(text) <= characters:
        return text
    return f"{text[:characters]}… ({len(text) - characters} more characters)"


def secret_like(name: str) -> bool:
    """Whether a key's name says that its value is secret: `apiKey`, `DB_PASSWORD`, `x-auth-token`."""
    parts = [part.lower() for part in _PART.findall(name)]
    if _WORD_PARTS & set(parts):
        return True
    return any(pair in _WORD_PAIRS for pair in itertools.pairwise(parts))


def _clean(value: Any, declared: frozenset[str], depth: int) -> Any:
    if depth == 0:
        return REDACTED
    if isinstance(value, Mapping):
        return {
            str(key): REDACTED
            if str(key) in declared or secret_like(str(key))
            else _clean(item, declared, depth - 1)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_clean(item, declared, depth - 1) for item in value]
    return redact_text(value) if isinstance(value, str) else value
