"""Pure. The data tables of commands, read once, and how options are told from operands.

Owns: the form of `tables/*.toml` and reading options by a rule. Does not own: which
commands there are (the tables), what a matched rule means (`commands`).
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from surefoot.core.model import EffectClass
from surefoot.tools.classify.grammar import Word

_FILES = ("core", "readers", "wrappers", "git", "forge", "network", "services", "packages", "databases")


@dataclass(frozen=True, slots=True)
class Rule:
    """One shape of a command: which options and operands it accepts, and what it then does."""

    effect_class: EffectClass
    open: bool
    """Any option and any unknown argument is accepted: no option changes what the rule says."""
    flags: frozenset[str]
    valued: frozenset[str]
    optional: frozenset[str]
    need: frozenset[str]
    """At least one of these must be there."""
    deny: tuple[str, ...]
    """With `open`: long options that must not be there, nor any abbreviation of them."""
    least: int
    most: int | None
    operand: re.Pattern[str] | None
    """Every operand must match."""
    value: re.Pattern[str] | None
    """Every value of an option must match."""
    reach: tuple[str, ...]
    judge: str | None
    check: bool
    skip: int
    """Wrappers: operands before the wrapped command."""
    unseen: bool
    """Wrappers: further arguments are only known when it runs."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The arguments of one command, read by one rule."""

    options: tuple[tuple[str, Word | None], ...] = ()
    operands: tuple[Word, ...] = ()

    def values(self, names: Sequence[str]) -> list[Word]:
        """Values given to any of `names`, in order."""
        return [value for name, value in self.options if name in names and value is not None]

    def has(self, *names: str) -> bool:
        """Whether one of the options is there."""
        return any(name in names for name, _ in self.options)


@dataclass(frozen=True, slots=True)
class Family:
    """A command with subcommands: the options that may stand before one."""

    before: Rule
    depth: int


@dataclass(frozen=True, slots=True)
class Tables:
    """All tables, by command name; a subcommand's key is `git stash list`."""

    rules: Mapping[str, tuple[Rule, ...]]
    families: Mapping[str, Family]
    wrappers: Mapping[str, tuple[Rule, ...]]
    lists: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@functools.cache
def tables() -> Tables:
    """The tables of the package."""
    rules: dict[str, list[Rule]] = {}
    wrappers: dict[str, list[Rule]] = {}
    families: dict[str, Family] = {}
    lists: dict[str, Any] = {}
    for name in _FILES:
        raw = load(name)
        for row in raw.pop("rule", []):
            made = _rule(row)
            for key in _names(row["for"]):
                rules.setdefault(key, []).append(made)
        for row in raw.pop("wrapper", []):
            for key in _names(row["for"]):
                wrappers.setdefault(key, []).append(_rule(row))
        for row in raw.pop("family", []):
            for key in _names(row["for"]):
                families[key] = Family(_rule(row), int(row.get("depth", 1)))
        lists.update(raw)
    return Tables(
        {key: tuple(value) for key, value in rules.items()},
        families,
        {key: tuple(value) for key, value in wrappers.items()},
        lists,
    )


@functools.cache
def load(name: str) -> Any:
    """One table file as it stands."""
    text = resources.files("surefoot.tools.classify").joinpath("tables", f"{name}.toml").read_text("utf-8")
    return tomllib.loads(text)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _rule(row: Mapping[str, Any]) -> Rule:
    allowed = str(row.get("allow", "")).split()
    return Rule(
        effect_class=EffectClass(row.get("class", "READ_ONLY")),
        open=bool(row.get("open", False)),
        flags=frozenset(name for name in allowed if name[-1] not in ":?" or name == "-?"),
        valued=frozenset(name[:-1] for name in allowed if name[-1] == ":"),
        optional=frozenset(name[:-1] for name in allowed if name[-1] == "?" and name != "-?"),
        need=frozenset(str(row.get("need", "")).split()),
        deny=tuple(str(row.get("deny", "")).split()),
        least=int(row.get("min", 0)),
        most=row.get("max"),
        operand=re.compile(row["operand"]) if "operand" in row else None,
        value=re.compile(row["value"]) if "value" in row else None,
        reach=tuple(str(row.get("reach", "")).split()),
        judge=row.get("judge"),
        check=bool(row.get("check", False)),
        skip=int(row.get("skip", 0)),
        unseen=bool(row.get("unseen", False)),
    )


def read(words: Sequence[Word], rule: Rule) -> Shape | None:
    """Tell options from operands; None when the rule does not accept these arguments."""
    shape, rest = read_until(words, rule, stop=False)
    if shape is None or rest or not _fits(shape, rule):
        return None
    return shape


def read_until(words: Sequence[Word], rule: Rule, *, stop: bool) -> tuple[Shape | None, Sequence[Word]]:
    """As `read`, without the counts; with `stop` end before the first operand and give the rest."""
    options: list[tuple[str, Word | None]] = []
    operands: list[Word] = []
    index = 0
    while index < len(words):
        word = words[index]
        if not word.certain:
            if not rule.open or rule.deny:
                return None, ()
            operands.append(word)
            index += 1
            continue
        if word.text == "--":
            index += 1
            if stop:
                return Shape(tuple(options)), words[index:]
            operands.extend(words[index:])
            if not rule.open and not all(item.certain for item in words[index:]):
                return None, ()
            break
        if len(word.text) < 2 or word.text[0] != "-":
            if stop:
                return Shape(tuple(options)), words[index:]
            operands.append(word)
            index += 1
            continue
        taken = _option(words, index, rule, options)
        if not taken:
            return None, ()
        index += taken
    return Shape(tuple(options), tuple(operands)), ()


def _option(words: Sequence[Word], index: int, rule: Rule, options: list[tuple[str, Word | None]]) -> int:
    """Read the option at `index`; how many words it took, 0 when it is not accepted."""
    text = words[index].text
    name, equals, value = text.partition("=")
    if text.startswith("--") or name in rule.flags | rule.valued | rule.optional:
        return (
            _named(words, index, rule, options)
            if not (equals and not text.startswith("--"))
            else (_assigned(name, value, rule, options))
        )
    if text[1:].isdigit() and "-#" in rule.flags:
        options.append((text, None))
        return 1
    return _cluster(words, index, rule, options)


def _assigned(name: str, value: str, rule: Rule, options: list[tuple[str, Word | None]]) -> int:
    """`-name=value`, as some clients write long options."""
    if name in rule.valued or name in rule.optional:
        options.append((name, Word(value)))
        return 1
    return 0


def _named(words: Sequence[Word], index: int, rule: Rule, options: list[tuple[str, Word | None]]) -> int:
    name, equals, value = words[index].text.partition("=")
    if name in rule.valued:
        if equals:
            options.append((name, Word(value)))
            return 1
        if index + 1 >= len(words) or not (words[index + 1].certain or rule.open):
            return 0
        options.append((name, words[index + 1]))
        return 2
    if name in rule.optional:
        options.append((name, Word(value) if equals else None))
        return 1
    if name in rule.flags and not equals:
        options.append((name, None))
        return 1
    if not rule.open or any(long.startswith(name) or name.startswith(long) for long in rule.deny):
        return 0
    options.append((name, Word(value) if equals else None))
    return 1


def _cluster(words: Sequence[Word], index: int, rule: Rule, options: list[tuple[str, Word | None]]) -> int:
    text = words[index].text
    for at in range(1, len(text)):
        name, rest = "-" + text[at], text[at + 1 :]
        if name in rule.valued:
            if rest:
                options.append((name, Word(rest)))
                return 1
            if index + 1 >= len(words) or not (words[index + 1].certain or rule.open):
                return 0
            options.append((name, words[index + 1]))
            return 2
        if name in rule.optional:
            options.append((name, Word(rest) if rest else None))
            return 1
        if name not in rule.flags and (not rule.open or name in rule.deny):
            return 0
        options.append((name, None))
    return 1


def _fits(shape: Shape, rule: Rule) -> bool:
    if rule.need and not shape.has(*rule.need):
        return False
    count = len(shape.operands)
    if count < rule.least or (rule.most is not None and count > rule.most):
        return False
    if rule.most is not None and any(word.glob for word in shape.operands):
        return False
    if rule.operand and not all(rule.operand.fullmatch(word.text) for word in shape.operands):
        return False
    if rule.value:
        values = [value for _, value in shape.options if value is not None]
        return all(rule.value.fullmatch(word.text) for word in values)
    return True
