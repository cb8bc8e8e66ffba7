"""Policy packs as data: TOML in, frozen values out (EC-35).

Owns: the format of a pack and its errors. Does not own: what an entry says of one call
(`judging`), whether packs and registry agree (`checking`), which packs are in use (`app`).

A malformed pack is left out whole; a key unknown to this version is kept and reported.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surefoot.core.effects import KINDS
from surefoot.core.model import EffectClass
from surefoot.errors import SettingsError

FORMAT = 1
PACK_BYTES = 1 << 20
SHIPPED = Path(__file__).parent

_ENTRY_KEYS = frozenset(
    {
        "aliases", "certain", "check", "class", "interaction", "kind", "meaning", "published", "reach",
        "registered", "rules", "why",
    }
)  # fmt: skip
_RULE_KEYS = frozenset(
    {"any_key", "arg", "class", "equals", "fold", "in", "mcp", "or_absent", "present", "reach", "shell"}
)
_KINDS = frozenset({"tool", "defined", "word"})
_NAME = re.compile(r"^[a-z0-9][a-z0-9-]{0,63}$")


@dataclass(frozen=True, slots=True)
class Rule:
    """One condition on one argument, and what holds when it does. Exactly one condition is set."""

    argument: str
    equals: Any = None
    one_of: tuple[Any, ...] | None = None
    present: bool | None = None
    any_key: tuple[str, ...] | None = None
    fold: bool = False
    or_absent: bool = False
    shell: bool = False
    mcp: bool = False
    effect_class: EffectClass | None = None
    reach: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class PackEntry:
    """What a pack says of one tool. `kind` is `tool`, `defined` or `word` (EC-40)."""

    name: str
    effect_class: EffectClass
    kind: str = "tool"
    reach: tuple[str, ...] | None = None
    """None means `*`."""
    aliases: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    interaction: bool = False
    check: bool = False
    registered: bool = False
    published: EffectClass | None = None
    certain: bool = True
    why: str = ""
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack that was read whole."""

    name: str
    version: str
    entries: Mapping[str, PackEntry]
    reach_kinds: tuple[str, ...] = ()
    counts: Mapping[str, Any] = field(default_factory=dict)
    unknown_keys: tuple[str, ...] = ()
    """Keys of a newer version, reported and otherwise ignored."""
    source: str = "shipped"
    """`shipped`, `owner` or `project`; a project's can only tighten (EC-38)."""

    def named(self, name: str) -> list[PackEntry]:
        """The entries a tool name means: its own, and those it is an alias of; the stricter holds (EC-39)."""
        own = [self.entries[name]] if name in self.entries else []
        return own + [entry for entry in self.entries.values() if name in entry.aliases]

    def published_class(self, name: str) -> EffectClass | None:
        """What the published table alone says, for comparison (EC-56)."""
        found = self.entries.get(name)
        return None if found is None else found.published


def shipped_packs() -> list[str]:
    """Names of the packs in the package."""
    return sorted(file.stem for file in SHIPPED.glob("*.toml"))


def find_pack(name: str, folders: Sequence[Path] = ()) -> Pack:
    """The pack of this name: of the owner's own folders first, else a shipped one.

    Raises `SettingsError` when there is none, or it cannot be accepted.
    """
    for folder, source in [*((folder, "owner") for folder in folders), (SHIPPED, "shipped")]:
        file = folder / f"{name}.toml"
        if _NAME.match(name) and file.is_file():
            return read_pack_file(file, source=source)
    known = ", ".join(shipped_packs())
    raise SettingsError(f"No pack is called {name!r} (shipped: {known}). Correct `packs.use`.")


def read_pack_file(file: Path, *, source: str) -> Pack:
    """Read one pack file. Raises `SettingsError` naming the place."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise SettingsError(f"The pack {str(file)!r} cannot be read ({error.strerror}).") from error
    return read_pack(content, where=str(file), source=source)


def read_pack(content: bytes, *, where: str, source: str = "owner") -> Pack:
    """Read a pack. Raises `SettingsError` for one too large, malformed, or of a newer format."""
    if len(content) > PACK_BYTES:
        raise SettingsError(f"The pack {where} is larger than {PACK_BYTES} bytes.")
    try:
        table = tomllib.loads(content.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"The pack {where} is no TOML: {error}.") from None
    return _Reader(where, source).pack(table)


class _Reader:
    """Checks and builds; every error names the file and the key."""

    def __init__(self, where: str, source: str) -> None:
        self._where = where
        self._source = source
        self._unknown: list[str] = []

    def pack(self, table: Mapping[str, Any]) -> Pack:
        number = table.get("format")
        if number != FORMAT:
            newer = isinstance(number, int) and number > FORMAT
            raise self._fault("format", f"must be {FORMAT}" + ("; this one is newer" if newer else ""))
        head = self._table(table, "pack")
        kinds = self._words(head.get("reach_kinds", []), "pack.reach_kinds")
        known = frozenset((*KINDS, *kinds))
        self._keep(table, {"format", "pack", "tool"}, "")
        self._keep(head, {"counts", "name", "reach_kinds", "version"}, "pack.")
        tools = self._table(table, "tool")
        entries = {name: self._entry(name, tools[name], known) for name in tools}
        return Pack(
            name=self._text(head.get("name"), "pack.name"),
            version=str(head.get("version", "")),
            entries=entries,
            reach_kinds=kinds,
            counts=self._table(head, "counts") if "counts" in head else {},
            unknown_keys=tuple(self._unknown),
            source=self._source,
        )

    def _entry(self, name: str, given: Any, known: frozenset[str]) -> PackEntry:
        at = f"tool.{name}"
        if not isinstance(given, dict):
            raise self._fault(at, "must be a table")
        self._keep(given, _ENTRY_KEYS, at + ".")
        kind = given.get("kind", "tool")
        if kind not in _KINDS:
            raise self._fault(f"{at}.kind", f"must be one of {', '.join(sorted(_KINDS))}")
        published = given.get("published")
        return PackEntry(
            name=name,
            effect_class=self._class(given.get("class"), f"{at}.class"),
            kind=kind,
            reach=self._reach(given.get("reach"), f"{at}.reach", known),
            aliases=self._words(given.get("aliases", []), f"{at}.aliases"),
            rules=tuple(
                self._rule(rule, f"{at}.rules[{index}]", known)
                for index, rule in enumerate(given.get("rules", []))
            ),
            interaction=bool(given.get("interaction", False)),
            check=bool(given.get("check", False)),
            registered=bool(given.get("registered", False)),
            published=None if published is None else self._class(published, f"{at}.published"),
            certain=bool(given.get("certain", True)),
            why=str(given.get("why", "")),
            meaning=str(given.get("meaning", "")),
        )

    def _rule(self, given: Any, at: str, known: frozenset[str]) -> Rule:
        if not isinstance(given, dict):
            raise self._fault(at, "must be a table")
        self._keep(given, _RULE_KEYS, at + ".")
        conditions = [key for key in ("equals", "in", "present", "any_key", "shell", "mcp") if key in given]
        if len(conditions) != 1:
            raise self._fault(at, "needs exactly one of equals, in, present, any_key, shell, mcp")
        judged_elsewhere = bool(given.get("shell") or given.get("mcp"))
        class_given = None if judged_elsewhere else self._class(given.get("class"), f"{at}.class")
        return Rule(
            argument=self._text(given.get("arg"), f"{at}.arg"),
            equals=given.get("equals"),
            one_of=tuple(given["in"]) if "in" in given else None,
            present=given.get("present"),
            any_key=self._words(given["any_key"], f"{at}.any_key") if "any_key" in given else None,
            fold=bool(given.get("fold", False)),
            or_absent=bool(given.get("or_absent", False)),
            shell=bool(given.get("shell", False)),
            mcp=bool(given.get("mcp", False)),
            effect_class=class_given,
            reach=self._reach(given.get("reach"), f"{at}.reach", known),
        )

    def _reach(self, given: Any, at: str, known: frozenset[str]) -> tuple[str, ...] | None:
        if given is None:
            return None
        members = self._words(given, at)
        for member in members:
            if member != "*" and member.partition(":")[0] not in known:
                raise self._fault(at, f"{member!r} is of no kind this pack declares")
        return members

    def _class(self, given: Any, at: str) -> EffectClass:
        try:
            return EffectClass(given)
        except ValueError:
            raise self._fault(at, f"must be one of {', '.join(EffectClass)}") from None

    def _words(self, given: Any, at: str) -> tuple[str, ...]:
        if not isinstance(given, list) or not all(isinstance(item, str) for item in given):
            raise self._fault(at, "must be a list of texts")
        return tuple(given)

    def _text(self, given: Any, at: str) -> str:
        if not isinstance(given, str) or not given:
            raise self._fault(at, "must be a text")
        return given

    def _table(self, table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        found = table.get(key, {})
        if not isinstance(found, dict):
            raise self._fault(key, "must be a table")
        return found

    def _keep(self, table: Mapping[str, Any], known: Iterable[str], prefix: str) -> None:
        self._unknown += [prefix + key for key in table if key not in set(known)]

    def _fault(self, key: str, problem: str) -> SettingsError:
        return SettingsError(f"The pack {self._where} is left out: {key} {problem}.")
