"""Pure. What a rule is applied to, and what it answers.

Owns: the answer of one part, the union of answers, and how a word becomes a member of
a reach. Does not own: rules (`commands`), overlap (`core.effects`).
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from surefoot.core.effects import EVERYTHING, wider
from surefoot.core.model import EffectClass
from surefoot.runtime.tools import Place
from surefoot.tools.classify.grammar import NotUnderstood, Word

_SINKS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/1", "/dev/fd/2"})
_SOCKETS = ("/dev/tcp/", "/dev/udp/")


@dataclass(frozen=True, slots=True)
class Said:
    """A word that may name a file, and where it stands."""

    word: Word
    bases: tuple[str, ...] | None = None
    """Every directory it may be relative to; None when that is not known."""
    folders: bool = True
    """False for a command that opens files only: a folder shows it nothing."""
    follows: bool = False
    """Links below the folders of the line are followed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one part of a line does."""

    effect_class: EffectClass = EffectClass.READ_ONLY
    reach: tuple[str, ...] = ()
    check: bool = False
    why: str = ""
    paths: tuple[str, ...] = ()
    """Lexical absolute paths that are written, in order."""
    clients: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()
    """Simple commands found inside this one, for permission rules."""
    repositories: tuple[str, ...] = ()
    """Folders in which a git of this part may run, whose settings can name programs (EC-59)."""
    projects: tuple[tuple[str, str], ...] = ()
    """A package client of this part and the folder it runs in: files of a project may make it run others (EC-59)."""
    said: tuple[Said, ...] = ()
    """Words of this part that may name files."""


READS = Answer()


def unknown(why: str) -> Answer:
    """The answer to everything that is not understood."""
    return Answer(EffectClass.UNKNOWN, (EVERYTHING,), why=why)


@dataclass(frozen=True, slots=True)
class Scene:
    """Where a simple command stands: place, possible working directories, nesting."""

    place: Place
    bases: tuple[str, ...] | None
    """Every directory the command may run in; None when that is not known (EC-28)."""
    program: Callable[[str, Scene], Answer]
    """Judges a literal program of a shell, one level deeper."""
    depth: int = 0
    nested: bool = False
    """Inside a wrapper or a literal program, where the text of the line cannot be amended."""
    listed: bool = False
    """What it reads as its input is a list of names below known folders."""


def join(answers: Iterable[Answer]) -> Answer:
    """Strictest class, union of reaches (EC-9); a check only when every write is one."""
    result, checks = READS, []
    for answer in answers:
        stricter = answer.effect_class.strictness > result.effect_class.strictness
        if answer.effect_class is not EffectClass.READ_ONLY:
            checks.append(answer.check)
        result = replace(
            result,
            effect_class=answer.effect_class if stricter else result.effect_class,
            why=answer.why if stricter or not result.why else result.why,
            reach=wider(result.reach, answer.reach),
            paths=(*result.paths, *(path for path in answer.paths if path not in result.paths)),
            clients=tuple(sorted({*result.clients, *answer.clients})),
            inner=(*result.inner, *answer.inner),
            repositories=tuple(dict.fromkeys((*result.repositories, *answer.repositories))),
            projects=tuple(dict.fromkeys((*result.projects, *answer.projects))),
            said=(*result.said, *answer.said),
        )
    return replace(result, check=bool(checks) and all(checks))


def written(words: Iterable[Word], scene: Scene) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Reach members and lexical paths for words that name what is written."""
    reach: list[str] = []
    paths: list[str] = []
    for word in words:
        if word.literal and not word.glob and word.text in _SINKS:
            continue
        if word.text.startswith(_SOCKETS):
            raise NotUnderstood("a connection the shell opens itself")
        found = spots(word, scene)
        if found is None:
            reach.append(EVERYTHING)
            continue
        paths.extend(found)
        reach.extend("path:" + resolved(path, scene.place) for path in found)
    return tuple(reach), tuple(paths)


def spots(word: Word, scene: Scene) -> tuple[str, ...] | None:
    """Lexical absolute paths a word may name; None when it can be anything (EC-13)."""
    if not word.literal or not word.text:
        return None
    text = word.text
    if word.glob:
        fixed = _fixed_part(text)
        if fixed is None:
            return None
        text = fixed
    if text.startswith("~") and word.bare:
        home = scene.place.home
        if home is None or not (text == "~" or text.startswith("~/")):
            return None
        return (lexical(str(home), text[2:]),)
    if text.startswith("/"):
        return (lexical("/", text),)
    if scene.bases is None:
        return None
    return tuple(dict.fromkeys(lexical(base, text) for base in scene.bases))


def _fixed_part(text: str) -> str | None:
    """The folder before a pattern, when the pattern stands in the last component only."""
    first = min(index for index, char in enumerate(text) if char in "*?[{\\")
    folder, _, _ = text[:first].rpartition("/")
    if "/" in text[first:]:
        return None
    return folder + "/" if text.startswith("/") and not folder else folder or "."


def lexical(base: str, text: str) -> str:
    """`text` from `base`, normalised unless a `..` could climb out of a symbolic link."""
    joined = text if text.startswith("/") else f"{base.rstrip('/')}/{text}"
    return joined if ".." in joined.split("/") else os.path.normpath(joined)


def resolved(path: str, place: Place) -> str:
    """The real path when it was looked up, else the normalised one."""
    real = place.real_paths.get(path)
    return os.path.normpath(path if real is None else real)
