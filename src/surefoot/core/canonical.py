"""Pure. Canonical JSON, argument text, digests, idempotency keys, typed ids.

Owns: the one form in which surefoot hashes anything (TR-10 to TR-14, TR-1).
Does not own: whether arguments fit their schema (`runtime.tools`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

ARGUMENTS_BYTES = 1 << 20
ARGUMENTS_DEPTH = 64

CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
_ID = re.compile(r"^([a-z]{3})_([0-9a-hjkmnp-tv-z]{26})$")
_quote = json.JSONEncoder(ensure_ascii=False).encode
"""The standard library's own form of a string is the one TR-12 asks for: what must be escaped, in lower case."""
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class ArgumentsInvalid(ValueError):
    """Argument text that is not one strict JSON object; says where, never a value."""


class _Number(str):
    """A number literal exactly as it was written."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """Validated argument text: the parsed object, its canonical form and digest."""

    value: dict[str, Any]
    canonical: str
    digest: str
    absent: bool
    """True when the text was missing or blank and reads as `{}` (TR-11)."""

    def apart_from(self, name: str) -> Arguments:
        """The same arguments with the digest of all others, because the runtime fills `name` in (TR-13, TR-17)."""
        if name not in self.value:
            return self
        literal = json.loads(self.canonical, parse_int=_Number, parse_float=_Number)
        del literal[name]
        return dataclasses.replace(self, digest=digest_json(literal))


def read_arguments(
    text: str | bytes | None, *, max_bytes: int = ARGUMENTS_BYTES, max_depth: int = ARGUMENTS_DEPTH
) -> Arguments:
    """Read argument text as strict JSON, one object (TR-10 to TR-13).

    Raises:
        ArgumentsInvalid: duplicate keys, trailing data, comments, NaN or Infinity, lone
            surrogates, a byte order mark, too deep, too large, or no object.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ArgumentsInvalid(f"not UTF-8 at byte {error.start}") from None
    if text is None or not text.strip(" \t\r\n"):
        return Arguments({}, "{}", digest_text("{}"), absent=True)
    # A lone surrogate cannot be encoded; it is refused below, so its size may be counted loosely here.
    if len(text.encode("utf-8", "surrogatepass")) > max_bytes:
        raise ArgumentsInvalid(f"larger than {max_bytes} bytes")
    _check_depth(text, max_depth)
    try:
        literal = json.loads(
            text,
            object_pairs_hook=_no_duplicates,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_no_constants,
        )
        value = json.loads(text)
    except ArgumentsInvalid:
        raise
    except json.JSONDecodeError as error:
        raise ArgumentsInvalid(f"{error.msg} at character {error.pos}") from None
    except (ValueError, RecursionError) as error:
        raise ArgumentsInvalid(f"unreadable: {type(error).__name__}") from None
    if not isinstance(literal, dict):
        raise ArgumentsInvalid("not an object")
    form = canonical_json(literal)
    if _SURROGATE.search(form):
        raise ArgumentsInvalid("a lone surrogate in a string")
    return Arguments(value, form, digest_text(form), absent=False)


def _check_depth(text: str, limit: int) -> None:
    """Refuse nesting above `limit` before a recursive parser sees it."""
    if text.count("{") + text.count("[") <= limit:
        return  # nearly always; no need to tell brackets in strings from others
    depth, inside, escaped = 0, False, False
    for index, character in enumerate(text):
        if inside:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                inside = False
        elif character == '"':
            inside = True
        elif character in "{[":
            depth += 1
            if depth > limit:
                raise ArgumentsInvalid(f"deeper than {limit} levels at character {index}")
        elif character in "}]":
            depth -= 1


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ArgumentsInvalid("a duplicate key")
        found[key] = value
    return found


def _no_constants(name: str) -> Any:
    raise ArgumentsInvalid(f"{name} is no JSON number")


def canonical_json(value: Any) -> str:
    """The canonical form (TR-12): keys by code point, no white space, minimal escapes, UTF-8 text.

    Raises:
        TypeError: a value JSON has no form for.
    """
    parts: list[str] = []
    _write(value, parts)
    return "".join(parts)


def _write(value: Any, parts: list[str]) -> None:
    if type(value) is str:  # as nearly always
        parts.append(_quote(value))
    elif isinstance(value, _Number):
        parts.append(value)
    elif isinstance(value, str):
        parts.append(_quote(str(value)))
    elif value is True:
        parts.append("true")
    elif value is False:
        parts.append("false")
    elif value is None:
        parts.append("null")
    elif isinstance(value, int):
        parts.append(int.__repr__(value))
    elif isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise TypeError("NaN and infinities have no JSON form")
        parts.append(float.__repr__(value))
    elif isinstance(value, Mapping):
        separator = "{"
        for key in sorted(value):
            if not isinstance(key, str):
                raise TypeError(f"object key {key!r} is no string")
            parts.append(separator + _quote(key) + ":")
            _write(value[key], parts)
            separator = ","
        parts.append("{}" if separator == "{" else "}")
    elif isinstance(value, (list, tuple)):
        separator = "["
        for item in value:
            parts.append(separator)
            _write(item, parts)
            separator = ","
        parts.append("[]" if separator == "[" else "]")
    else:
        raise TypeError(f"{type(value).__name__} has no JSON form")


def digest_text(text: str) -> str:
    """`sha256:` and the lower-case hex SHA-256 of the text's UTF-8 bytes."""
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def digest_bytes(content: bytes) -> str:
    """`sha256:` and the lower-case hex SHA-256 of `content`."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def digest_json(value: Any) -> str:
    """Digest of the canonical form of `value`."""
    return digest_text(canonical_json(value))


def idempotency_key(
    *, argument_digest: str, call: str, scope: str, session: str, tool: str, turn: str
) -> str:
    """The key of a call, the same for all its attempts (TR-14). The attempt id is left out."""
    form = canonical_json(
        {
            "argumentDigest": argument_digest,
            "call": call,
            "scope": scope,
            "session": session,
            "tool": tool,
            "turn": turn,
        }
    )
    return "sf1-" + hashlib.sha256(form.encode("utf-8", "surrogatepass")).hexdigest()


def make_id(prefix: str, time_ms: int, entropy: int) -> str:
    """A typed id: `prefix`, then 48 bits of time and 80 of `entropy` in Crockford base32 (TR-1)."""
    number = ((time_ms & ((1 << 48) - 1)) << 80) | (entropy & ((1 << 80) - 1))
    digits = []
    for _ in range(26):
        digits.append(CROCKFORD[number & 31])
        number >>= 5
    return f"{prefix}_{''.join(reversed(digits))}"


def is_id(text: str, prefix: str | None = None) -> bool:
    """Whether `text` is a full typed id, of kind `prefix` if given."""
    match = _ID.match(text)
    return match is not None and (prefix is None or match.group(1) == prefix)


def short_id(full: str, among: Iterable[str] = ()) -> str:
    """The type and the shortest unique ending of at least four characters: `att_7f3a`."""
    prefix, _, tail = full.partition("_")
    # Of a thousand ids nearly always itself alone ends so; only such are taken apart.
    rivals = [other for other in among if other.endswith(tail[-4:])]
    others = [one.partition("_")[2] for one in rivals if one != full and one.startswith(prefix + "_")]
    for size in range(4, len(tail)):
        if not any(other.endswith(tail[-size:]) for other in others):
            return f"{prefix}_{tail[-size:]}"
    return full
