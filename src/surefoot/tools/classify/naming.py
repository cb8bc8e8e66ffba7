"""Pure. Which files the words of a line name, as far as a shell tells before it runs (UX-38, UX-40).

Owns: which words may name a file, what variables of the line itself stand for, which output is a list
of names below known folders. Does not own: what stands at a path (`tools.reaching`), what it means for a
permission (`runtime.permission`), the rows of commands (`tables/names.toml`).
Promises: a word that is neither a known text nor resolved is told as untold, never left out.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from surefoot.core.model import EffectClass
from surefoot.tools.classify.grammar import (
    ELSEWHERE,
    SUBSTITUTIONS,
    UNSEEN,
    NotUnderstood,
    Word,
    source_of,
    word_of,
)
from surefoot.tools.classify.rules import load
from surefoot.tools.classify.scene import Answer, Said, Scene
from surefoot.tools.classify.tree import Node

MOST_SPELLINGS = 64
MOST_LOOKUPS = 1000
MOST_NESTED = 16
_PIPES = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty"})
_OPEN_NUMBER = re.compile(r"/(?:dev|proc/self)/fd/[0-9]+")
_PIECE = re.compile(
    r"""\\(?P<escaped>.)|'(?P<raw>[^']*)'|(?P<quote>")|\$\((?P<pwd>pwd)\)
    |\$\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*)\}|\$(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<number>\$\(\([-+*/%() 0-9]*\)\)|\$[?$!\#]|\$\{\#[A-Za-z_][A-Za-z0-9_]*\})|(?P<plain>[^\\'"$`]+)""",
    re.VERBOSE | re.DOTALL,
)
_BRACES = re.compile(r"\{([^{}]*)\}")
_STEPS = re.compile(r"(-?[0-9]+|[A-Za-z])\.\.(-?[0-9]+|[A-Za-z])")


@dataclass(frozen=True, slots=True)
class Named:
    """A path that a line may open: absolute, with its `..` and its patterns."""

    path: str
    pattern: bool = False
    folders: bool = True
    """A folder there shows something; False for a command that opens files only."""


@dataclass(frozen=True, slots=True)
class Names:
    """Everything a line may open. `untold`: there is more, or something that cannot be told."""

    named: tuple[Named, ...] = ()
    untold: bool = False
    follows: bool = False
    """Links below the named folders are followed as well."""


def said_by(name: str, arguments: Sequence[Word], scene: Scene, answer: Answer) -> tuple[Said, ...]:
    """The words of one simple command that may name files."""
    table = load("names")
    if name == "getent":
        accounts = [table["accounts"].get(word.text) for word in arguments if word.literal]
        return tuple(Said(Word(path), scene.bases) for path in accounts if path is not None)
    reading = answer.effect_class is EffectClass.READ_ONLY
    if name in _names("textual") or not (reading or name in _names("opening")):
        return ()
    folders = name not in _names("files")
    found = [
        _from_elsewhere(word, scene) if word == UNSEEN else Said(word, scene.bases, folders)
        for word in _without_pattern(name, arguments)
    ]
    if _has(arguments, table["lists"].get(name, ())) or _opens_by_program(name, arguments):
        found.append(Said(ELSEWHERE))
    if _has(arguments, table["follows"].get(name, ())):
        found.append(Said(Word("."), scene.bases, follows=True))
    if name == "sed":
        found += [Said(Word(text, bare=False), scene.bases, False) for text in _read_by_sed(arguments)]
    return tuple(found)


def _from_elsewhere(word: Word, scene: Scene) -> Said:
    """Arguments that come as the output of another command: a list of names below its folders, or untold."""
    return Said(Word("."), scene.bases, follows=True) if scene.listed else Said(word)


def said_by_wrapper(name: str, arguments: Sequence[Word]) -> tuple[Said, ...]:
    """What a wrapper itself opens: a file with the arguments of what it runs."""
    return (Said(ELSEWHERE),) if _has(arguments, load("names")["lists"].get(name, ())) else ()


@functools.cache
def _names(key: str) -> frozenset[str]:
    return frozenset(name.strip() for name in str(load("names")[key]).split(","))


def _has(arguments: Iterable[Word], options: Sequence[str]) -> bool:
    return any(word.literal and _is_option(word.text, option) for word in arguments for option in options)


def _is_option(text: str, option: str) -> bool:
    """Whether a word is this option: in a bundle, shortened, or with its value."""
    if option.startswith("--"):
        given = text.partition("=")[0]
        return len(given) > 2 and given.startswith("--") and option.startswith(given)
    if len(option) > 2:
        return text == option
    return text.startswith("-") and not text.startswith("--") and option[1] in text[1:]


def _without_pattern(name: str, arguments: Sequence[Word]) -> Sequence[Word]:
    """The words but for the pattern or program that stands first; a word that may become several stays."""
    if name not in _names("pattern_first"):
        return arguments
    options = load("names")["pattern_options"]
    given = [*(f"-{letter}" for letter in options["short"]), *options["long"]]
    if _has(arguments, given):
        return arguments
    for at, word in enumerate(arguments):
        if word.literal and word.text.startswith("-") and len(word.text) > 1:
            continue
        if word.glob or (not word.literal and word.bare):
            return arguments
        return [*arguments[:at], *arguments[at + 1 :]]
    return arguments


def _opens_by_program(name: str, arguments: Iterable[Word]) -> bool:
    pattern = load("names")["programs"].get(name)
    return pattern is not None and any(re.search(pattern, word.text) for word in arguments)


def _read_by_sed(arguments: Iterable[Word]) -> Iterator[str]:
    """What may stand behind an `r` of a script: the rest of its line is the name of a file."""
    for word in arguments:
        for line in word.text.split("\n"):
            for at, char in enumerate(line):
                if char == "r" and line[at + 1 :].strip():
                    yield line[at + 1 :].strip()


# Lists of names --------------------------------------------------------------------------------------


def lists_names(words: Sequence[Word]) -> bool:
    """Whether a command writes names below the folders it was given, and nothing else."""
    if not words or not all(word.literal for word in words):
        return False
    texts = [word.text for word in words]
    table: Mapping[str, Any] = load("names")["listing"]
    for length in (2, 1):
        row = table.get(" ".join(texts[:length]))
        if row is None or len(texts) < length:
            continue
        rest = texts[length:]
        needed = row.get("need", ())
        return (
            all(_kept(text, row) for text in rest)
            and (not needed or any(_needed(text, needed) for text in rest))
            and not _has(words[length:], row.get("deny", ()))
        )
    return False


def _kept(text: str, row: Mapping[str, Any]) -> bool:
    """Whether a word is no option, or one that keeps the output a list of names."""
    if not text.startswith("-") or text == "--":
        return True
    if text.startswith("--"):
        return "longs" not in row or text.partition("=")[0] in row["longs"]
    return "letters" not in row or all(char in row["letters"] for char in text[1:])


def _needed(text: str, options: Sequence[str]) -> bool:
    if text.startswith("--"):
        return text in options
    return text.startswith("-") and any(f"-{char}" in options for char in text[1:])


def passes_names(words: Sequence[Word]) -> bool:
    """Whether a filter hands whole lines on and opens nothing."""
    if not words or not all(word.literal and not word.glob for word in words):
        return False
    name, *rest = (word.text for word in words)
    letters = load("names")["passing"].get(name)
    if letters is None:
        return False
    options = [text for text in rest if text.startswith("-")]
    operands = [text for text in rest if not text.startswith("-") and not text.isdigit()]
    kept = all(char in letters or char.isdigit() for text in options for char in text[1:])
    return kept and len(operands) <= (1 if name.endswith("grep") else 0)


def lists_in(node: Node) -> bool:
    """Whether what a part of a line writes is a list of names below the folders it names."""
    if node.type in SUBSTITUTIONS:
        inner = [child for child in node.named_children if child.type != "comment"]
        return len(inner) == 1 and lists_in(inner[0])
    if node.type == "pipeline":
        first, *rest = node.named_children
        return lists_in(first) and all(passes_in(child) for child in rest)
    return lists_names(_words_of(node))


def passes_in(node: Node) -> bool:
    """Whether a part of a pipe hands on lines of what it is given, and nothing else."""
    return passes_names(_words_of(node))


def _words_of(node: Node) -> list[Word]:
    """The words of one plain command, whose errors may go elsewhere; none when it is anything more."""
    if node.type == "redirected_statement":
        kept = [child for child in node.named_children if child.type != "file_redirect"]
        inputs = any("<" in source_of(child) for child in node.named_children if child not in kept)
        return _words_of(kept[0]) if len(kept) == 1 and not inputs else []
    if node.type != "command":
        return []
    found = [
        child.named_children[0] if child.type == "command_name" else child for child in node.named_children
    ]
    try:
        return [word_of(child) for child in found]
    except NotUnderstood:
        return []


def marked(word: Word, node: Node) -> Word:
    """The word of a node, known as names out of a list where it is the output of a command that lists."""
    if word.literal:
        return word
    inner = node.named_children if node.type == "string" else [node]
    if len(inner) != 1 or inner[0].type not in SUBSTITUTIONS or len(source_of(inner[0])) + 2 < len(word.text):
        return word
    pipe = inner[0].type == "process_substitution"
    return replace(word, listed=pipe or lists_in(inner[0]))


# From words to paths ---------------------------------------------------------------------------------


def resolve(said: Sequence[Said], values: Mapping[str, Sequence[Word]], scene: Scene) -> Names:
    """The paths of all words of a line. `values` are what its own variables were given anywhere in it."""
    named: list[Named] = []
    known = _Known(values)
    untold = False
    for one in said:
        spelled = _spelled(one.word, known, replace(scene, bases=one.bases), frozenset())
        if spelled is None:
            untold = True
            continue
        for word in spelled:
            paths = _paths(word, one, scene)
            if paths is None:
                untold = True
            else:
                named.extend(paths)
    return Names(tuple(dict.fromkeys(named)), untold, any(one.follows for one in said))


def _paths(word: Word, said: Said, scene: Scene) -> list[Named] | None:
    """Where a literal word may lead; None when that is not known."""
    found: list[Named] = []
    if word.bare and re.match(r"~[^/]", word.text):
        return None
    for text, tilde in _candidates(word):
        if tilde and (text == "~" or text.startswith("~/")):
            if scene.place.home is None:
                return None
            text = str(scene.place.home) + text[1:]
        if text in _PIPES or _OPEN_NUMBER.fullmatch(text):
            continue
        pattern = word.glob
        spellings = _unbraced(text) if pattern else (text,)
        if spellings is None:
            return None
        for one in spellings:
            if one.startswith("/"):
                found.append(Named(one, pattern, said.folders))
            elif said.bases is None:
                return None
            else:
                found.extend(Named(f"{base.rstrip('/')}/{one}", pattern, said.folders) for base in said.bases)
    return found


def _candidates(word: Word) -> Iterator[tuple[str, bool]]:
    """What of a word may be a path, and whether a `~` at its start is a home."""
    text = word.text
    if not text or text in ("-", "--"):
        return
    if not text.startswith("-"):
        yield from _plain(text, word.bare)
    elif not text.startswith("--"):
        starts = {2, text.find("/"), text.find("..")}
        yield from ((text[at:], False) for at in starts if at > 1 and text[at:] not in ("", "/"))
    for at, char in enumerate(text):
        if char == "=" and text[at + 1 :]:
            yield from _plain(text[at + 1 :], True)


def _plain(text: str, tilde: bool) -> Iterator[tuple[str, bool]]:
    yield text, tilde
    for mark in ("@", "file://localhost", "file://"):
        if text.startswith(mark) and len(text) > len(mark):
            yield text[len(mark) :], False


def _unbraced(text: str) -> Sequence[str] | None:
    """A text with its braces written out, beside itself, since quotes may have made them plain; None for too many."""
    made, waiting = [text], [text]
    while waiting:
        one = waiting.pop()
        inner = next(filter(_chooses, _BRACES.finditer(one)), None)
        if inner is None:
            made.append(one)
            continue
        steps = _STEPS.fullmatch(inner[1])
        choices = inner[1].split(",") if steps is None else _stepped(steps[1], steps[2])
        waiting.extend(one[: inner.start()] + choice + one[inner.end() :] for choice in choices)
        if len(made) + len(waiting) > MOST_SPELLINGS:
            return None
    return list(dict.fromkeys(made))


def _chooses(braces: re.Match[str]) -> bool:
    return "," in braces[1] or _STEPS.fullmatch(braces[1]) is not None


def _stepped(first: str, last: str) -> list[str]:
    if first.lstrip("-").isdigit() and last.lstrip("-").isdigit():
        low, high = sorted((int(first), int(last)))
        return [
            str(number) for number in range(low, min(high, low + MOST_SPELLINGS) + 1)
        ]  # more are too many
    low, high = sorted((ord(first[0]), ord(last[0])))
    return [chr(number) for number in range(low, high + 1)]


@dataclass(slots=True)
class _Known:
    """What the variables of a line were given, and how often they are still looked up: each may name others."""

    values: Mapping[str, Sequence[Word]]
    left: int = MOST_LOOKUPS


def _spelled(word: Word, known: _Known, scene: Scene, within: frozenset[str]) -> list[Word] | None:
    """The literal words a word may become; empty when it is a name out of a list, None when untold."""
    if word.literal:
        return [word]
    if word.listed:
        return []
    pieces = None if word in (UNSEEN, ELSEWHERE) else _pieces(word.text)
    if pieces is None:
        return None
    choices: list[list[Word]] = []
    for at, piece in enumerate(pieces):
        if not piece.variable:
            choices.append([Word(piece.text, glob=_globs(piece.text, piece), bare=not piece.quoted)])
            continue
        found = _value(piece.text, known, scene, within)
        if found is None:
            return None
        if not found:
            return _after_listed(pieces, at)
        # It may also be empty: whether the line sets it before is not followed.
        choices.append(
            [
                Word(one.text, glob=one.glob or _globs(one.text, piece), bare=False)
                for one in (*found, Word(""))
            ]
        )
    return _composed(word, choices)


def _globs(text: str, piece: _Piece) -> bool:
    return not piece.quoted and re.search(r"[*?\[]", text) is not None


def _after_listed(pieces: Sequence[_Piece], at: int) -> list[Word] | None:
    """A name out of a list stays below its folders when nothing stands before it or climbs behind it."""
    rest = pieces[at + 1 :]
    text = "".join(piece.text for piece in rest)
    if at > 0 or ".." in text or any(piece.variable for piece in rest):
        return None
    return [Word(text)] if text.startswith("/") else []


def _composed(word: Word, choices: Sequence[Sequence[Word]]) -> list[Word] | None:
    made: list[Word] = []
    for parts in product(*choices):
        text = "".join(part.text for part in parts)
        glob = any(part.glob for part in parts)
        bare = word.bare and bool(parts) and parts[0].bare
        made.append(Word(text, glob=glob, bare=bare))
        if word.bare and len(text.split()) > 1:
            made.extend(Word(one, glob=glob, bare=bare) for one in text.split())
        if len(made) > MOST_SPELLINGS:
            return None
    return made


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a word: text, or the name of a variable."""

    text: str
    quoted: bool
    variable: bool = False


def _pieces(raw: str) -> list[_Piece] | None:
    """The parts of a word; None when it holds more than text and plain variables."""
    pieces: list[_Piece] = []
    quoted, at = False, 0
    while at < len(raw):
        found = _PIECE.match(raw, at)
        kind = None if found is None else found.lastgroup
        if quoted and raw[at] == "'":
            pieces.append(_Piece("'", quoted))
            at += 1
            continue
        if found is None or kind is None:
            return None
        at = found.end()
        if kind == "quote":
            quoted = not quoted
        elif kind in ("name", "braced", "pwd"):
            pieces.append(_Piece("PWD" if kind == "pwd" else found[kind], quoted, variable=True))
        elif kind == "number":
            pieces.append(_Piece("0", quoted))
        else:
            kept = found[0] if kind == "escaped" and quoted and found[kind] not in '$`"\\' else found[kind]
            pieces.append(_Piece(kept, quoted or kind != "plain"))
    return pieces


def _value(name: str, known: _Known, scene: Scene, within: frozenset[str]) -> list[Word] | None:
    """What a variable may hold; only the line itself, `HOME` and `PWD` tell."""
    home = scene.place.home
    if name == "HOME":
        return None if home is None else [Word(str(home))]
    if name == "PWD":
        # Where a variable was given it, the directory may have been another.
        return None if scene.bases is None or within else [Word(base) for base in scene.bases]
    given = known.values.get(name)
    known.left -= 1
    if given is None or name in within or known.left < 0 or len(within) > MOST_NESTED:
        return None
    made: list[Word] = []
    for word in given:
        spelled = _spelled(word, known, scene, within | {name})
        if spelled is None or any(one.bare and one.text.startswith("~") and home is None for one in spelled):
            return None
        if any(one.bare and re.match(r"~[^/]", one.text) for one in spelled):
            return None
        made.extend(
            Word(f"{home}{one.text[1:]}") if one.bare and one.text[:1] == "~" else one for one in spelled
        )
    # Beside a name out of a list nothing else can be told of what is composed with it.
    return None if made and any(word.listed for word in given) else made
