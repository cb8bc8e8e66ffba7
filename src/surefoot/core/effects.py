"""Pure. Effect classes, reach and overlap (EC-1 to EC-14).

Owns: strictness, the union of parts, whether two reaches overlap, and by which effect
an old call is judged. Does not own: how a command or a request gets its class
(`tools`), what follows (`recovery`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from surefoot.core.model import EffectClass, Receipt

EVERYTHING = "*"
KINDS = ("path", "repo", "host", "db", "mcp")
"""The kinds of reach this project knows (EC-11); packs may name further ones."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What one call may do: its class, the resources it can touch, and its marks."""

    effect_class: EffectClass
    reach: tuple[str, ...] = ()
    """Sorted members such as `path:/a/b`; empty for `READ_ONLY`, `("*",)` when undeclared."""
    check: bool = False
    """Test, build or linter: a failed or stopped one holds nothing back (TR-88, TR-75)."""
    interaction: bool = False
    """A question to a person (EC-45)."""
    notes: tuple[str, ...] = field(default=())


UNDECLARED = Effect(EffectClass.UNKNOWN, (EVERYTHING,))


def stricter_class(first: EffectClass, second: EffectClass) -> EffectClass:
    """The stricter of two classes (EC-2)."""
    return first if first.strictness >= second.strictness else second


def wider(*reaches: Iterable[str]) -> tuple[str, ...]:
    """The union of reaches, sorted; `*` swallows the rest because it covers it."""
    members = {member for reach in reaches for member in reach}
    return (EVERYTHING,) if EVERYTHING in members else tuple(sorted(members))


def union(parts: Iterable[Effect]) -> Effect:
    """The effect of a call made of parts (EC-9). No parts at all cannot be judged: `UNDECLARED`.

    The whole is a `check` only when every part that can change something is one, so a
    push behind a test run is never released like a test.
    """
    listed = list(parts)
    if not listed:
        return UNDECLARED
    writes = [part for part in listed if part.effect_class is not EffectClass.READ_ONLY]
    marked = writes or listed
    return Effect(
        functools.reduce(stricter_class, (part.effect_class for part in listed)),
        wider(*(part.reach for part in listed)),
        check=all(part.check for part in marked),
        interaction=all(part.interaction for part in listed),
        notes=tuple(dict.fromkeys(note for part in listed for note in part.notes)),
    )


def stricter(stored: Effect, current: Effect) -> Effect:
    """By which effect a call with two of them is judged: never laxer than either (EC-7).

    `check` and `interaction` loosen, so they hold only when both sides say so (EC-45).
    """
    return Effect(
        stricter_class(stored.effect_class, current.effect_class),
        wider(stored.reach, current.reach),
        check=stored.check and current.check,
        interaction=stored.interaction and current.interaction,
        notes=tuple(dict.fromkeys(stored.notes + current.notes)),
    )


def judged_effect(receipt: Receipt) -> Effect:
    """The stricter of what was stored at the start and what is declared today (`stricter_now`).

    A call without stored class never came to its classification, or was lost with the
    ledger's tail: nothing is known of it, so it counts as undeclared.
    """
    if receipt.effect_class is None:
        return UNDECLARED
    stored = Effect(receipt.effect_class, receipt.reach, check=receipt.check, interaction=receipt.interaction)
    now = receipt.stricter_now
    if now is None:
        return stored
    return stricter(stored, _declared(now, stored))


def _declared(now: Mapping[str, Any], stored: Effect) -> Effect:
    try:
        effect_class = EffectClass(now.get("class", stored.effect_class))
    except ValueError:
        return UNDECLARED  # written by a newer version: the most careful reading
    return Effect(
        effect_class,
        tuple(now.get("reach") or ()),
        check=bool(now.get("check", stored.check)),
        interaction=bool(now.get("interaction", stored.interaction)),
    )


def retry_safe(effect: Effect | EffectClass) -> bool:
    """Whether running it again is harmless; computed from the class and nothing else (EC-52)."""
    return (effect if isinstance(effect, EffectClass) else effect.effect_class).retry_safe


# --- reach -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Member:
    """One parsed member of a reach. `segments` compare by containment, `host` by subdomain."""

    kind: str
    text: str
    segments: tuple[str, ...] = ()
    host: str = ""
    port: str = ""


_ANY = _Member(EVERYTHING, "")


def overlaps(
    first: Iterable[str],
    second: Iterable[str],
    *,
    kinds: Iterable[str] = (),
) -> bool:
    """Whether two reaches overlap (EC-12). Symmetric, and reflexive for every non-empty reach.

    `kinds` names further kinds that packs added; any other kind counts as `*`. Where a file system does not
    tell upper from lower case, a reach holds the spelling that is compared (`runtime.spelling`).
    """
    known = frozenset(KINDS).union(kinds)
    left = [_parse(member, known) for member in first]
    right = [_parse(member, known) for member in second]
    return any(_members_overlap(one, other) for one in left for other in right)


def _members_overlap(one: _Member, other: _Member) -> bool:
    if one is _ANY or other is _ANY:
        return True
    if one.kind > other.kind:  # the table below holds each pair once, in alphabetical order
        one, other = other, one
    rule = _PAIRS.get((one.kind, other.kind))
    if rule is not None:
        return rule(one, other)
    return one.kind == other.kind and one.text == other.text


@functools.lru_cache(maxsize=4096)
def _parse(member: str, known: frozenset[str]) -> _Member:
    """What cannot be read as a member of a known kind is `*` (EC-11, EC-13)."""
    kind, separator, rest = member.partition(":")
    if not separator or not rest or kind not in known:
        return _ANY
    reader = _READERS.get(kind)
    return reader(rest) if reader else _Member(kind, rest)


def _read_path(rest: str) -> _Member:
    segments = _path_segments(rest)
    return _ANY if segments is None else _Member("path", rest, segments)


def _path_segments(path: str) -> tuple[str, ...] | None:
    """Segments of an absolute resolved path; None when it is neither, since then it names nothing certain."""
    if not path.startswith("/"):
        return None
    segments = tuple(part for part in path.split("/") if part not in ("", "."))
    return None if ".." in segments else segments


def _read_repo(rest: str) -> _Member:
    """A work tree, or `host/owner/name`; forges do not tell case in names, so neither do we."""
    if rest.startswith("/"):
        segments = _path_segments(rest)
        return _ANY if segments is None else _Member("repo", rest, segments)
    place, _, name = rest.lower().partition("/")
    if not name:
        return _ANY
    host, port = _host_port(place)
    return _Member("repo", name.strip("/").removesuffix(".git"), host=host, port=port)


def _read_host(rest: str) -> _Member:
    host, port = _host_port(rest)
    return _Member("host", rest, host=host, port=port) if host else _ANY


def _host_port(text: str) -> tuple[str, str]:
    """`h.example:80` → host and port; `[::1]:80` and a bare IPv6 address are understood."""
    text = text.lower()
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        return host, port.removeprefix(":")
    if text.count(":") == 1:
        host, _, port = text.partition(":")
        return host.rstrip("."), port
    return text.rstrip("."), ""


def _read_db(rest: str) -> _Member:
    """`server/database/schema/table`, or `file` and an absolute path (`file:/a.db`, `file/a.db`)."""
    if rest.startswith(("file:/", "file/")):
        segments = _path_segments("/" + rest[5:].lstrip("/"))
        return _ANY if segments is None else _Member("db", "file", segments)
    server, _, below = rest.partition("/")
    host, port = _host_port(server)
    if not host:
        return _ANY
    return _Member("db", "", tuple(part for part in below.split("/") if part), host, port)


_READERS: dict[str, Callable[[str], _Member]] = {
    "path": _read_path,
    "repo": _read_repo,
    "host": _read_host,
    "db": _read_db,
}


def _contains(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether one is equal to or above the other, either way round."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _ports_meet(one: _Member, other: _Member) -> bool:
    return not one.port or not other.port or one.port == other.port


def _hosts_meet(one: _Member, other: _Member) -> bool:
    if not one.host or not other.host or not _ports_meet(one, other):
        return False
    longer, shorter = sorted((one.host, other.host), key=len, reverse=True)
    return longer == shorter or longer.endswith("." + shorter)


def _path_path(one: _Member, other: _Member) -> bool:
    return _contains(one.segments, other.segments)


def _path_repo(path: _Member, repo: _Member) -> bool:
    return not repo.host and _contains(path.segments, repo.segments)


def _repo_repo(one: _Member, other: _Member) -> bool:
    if one.host or other.host:
        return one.host == other.host and one.text == other.text and _ports_meet(one, other)
    return _contains(one.segments, other.segments)


def _db_db(one: _Member, other: _Member) -> bool:
    if one.text == "file" or other.text == "file":
        return one.text == other.text and _contains(one.segments, other.segments)
    return one.host == other.host and _ports_meet(one, other) and _contains(one.segments, other.segments)


def _db_path(db: _Member, path: _Member) -> bool:
    return db.text == "file" and _contains(db.segments, path.segments)


def _by_host(one: _Member, other: _Member) -> bool:
    return _hosts_meet(one, other)


_PAIRS: dict[tuple[str, str], Callable[[_Member, _Member], bool]] = {
    ("path", "path"): _path_path,
    ("path", "repo"): _path_repo,
    ("repo", "repo"): _repo_repo,
    ("host", "host"): _by_host,
    ("host", "repo"): _by_host,
    ("db", "db"): _db_db,
    ("db", "host"): _by_host,
    ("db", "path"): _db_path,
}
"""EC-12 as data: a pair that is not listed overlaps only when both are the very same member."""
