"""Pure. What a command may run or be beside what it is called, for rules that deny or ask (UX-40).

Owns: names behind paths, subcommands behind options, commands behind launchers, programs of shells. Does not
own: what a part of a line is judged by (`commands`), what a rule means (`runtime.permission`).
Promises: more readings than true ones, never fewer of those known here; an allowing rule sees none of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from surefoot.tools.classify.grammar import Word
from surefoot.tools.classify.rules import tables

MOST_READINGS = 32
"""Commands behind one launcher, and texts that one shell is given."""
MOST_WORDS = 40_000
"""Words of all readings of one command."""


@dataclass(frozen=True, slots=True)
class Readings:
    """What one command may be as well."""

    commands: tuple[tuple[Word, ...], ...] = ()
    programs: tuple[str, ...] = ()
    """Texts that a shell may run."""
    untold: bool = False
    """It runs something that is not in the line: the input of a shell, the value of a variable."""


def readings(words: Sequence[Word]) -> Readings:
    """Every further reading of a command, the first word being its name; untold where there are too many."""
    found: dict[tuple[Word, ...], None] = {}
    programs: dict[str, None] = {}
    untold = False
    waiting = [tuple(words)]
    while waiting:
        named = _plainly_named(waiting.pop(0))
        name = named[0].text
        if not named[0].literal or named[0].glob:
            untold = True
            continue
        found[named] = None
        most = MOST_WORDS // len(named)
        found.update(
            ((named[0], *rest), None) for rest in islice(_behind_options(named[1:], depth=2), most + 1)
        )
        launcher, shell = name in tables().lists["launchers"], name in tables().lists["interpreters"]
        if launcher and not (name == "command" and named[1:2] and named[1].text in ("-v", "-V")):
            waiting.extend(islice(_launched(name, named[1:]), MOST_READINGS + 1))
        if name == "find":
            waiting.extend(islice(_executed(named[1:]), MOST_READINGS + 1))
        if launcher or shell or name in tables().lists["evaluators"]:
            programs.update(dict.fromkeys(islice(_programs(name, named[1:]), MOST_READINGS + 1)))
        untold = untold or (shell and _from_input(named[1:])) or _evaluates_unseen(name, named[1:])
        if len(found) > most or max(len(programs), len(waiting)) > MOST_READINGS:
            return Readings(tuple(found), (), untold=True)
    return Readings(tuple(found), tuple(programs), untold)


def _plainly_named(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """The command under the last part of its path, whatever folder that is."""
    first = words[0]
    last = first.text.rstrip("/").rpartition("/")[2]
    return (Word(last, glob=first.glob), *words[1:]) if first.literal and last else words


def _behind_options(words: Sequence[Word], *, depth: int) -> Iterator[tuple[Word, ...]]:
    """The words without the options before them; an option may take the word behind it, or not."""
    if words and depth and not words[0].text.startswith("-"):
        for rest in _behind_options(words[1:], depth=depth - 1):
            yield (words[0], *rest)
        return
    for at in range(1, len(words)):
        if words[at].text.startswith("-"):
            continue
        yield tuple(words[at:])
        if not words[at - 1].text.startswith("-"):
            return


def _launched(name: str, words: Sequence[Word]) -> Iterator[tuple[Word, ...]]:
    """What a launcher may run: behind its options, their values, assignments and operands of its own."""
    operands = tables().lists["launcher_operands"].get(name, 0)
    after_option = False
    for at, word in enumerate(words):
        if word.text.startswith("-"):
            after_option = True
        elif word.literal and "=" in word.text.partition("/")[0]:
            after_option = False
        else:
            yield tuple(words[at:])
            if not after_option:
                if not operands:
                    return
                operands -= 1
            after_option = False


def _executed(words: Sequence[Word]) -> Iterator[tuple[Word, ...]]:
    for at, word in enumerate(words[:-1]):
        if word.literal and word.text in ("-exec", "-execdir", "-ok", "-okdir"):
            yield tuple(words[at + 1 :])


def _programs(name: str, words: Sequence[Word]) -> Iterator[str]:
    """Texts among the words that a shell would take apart again."""
    for word in words:
        if word.literal and any(char in " \t\n;&|()<>$`" for char in word.text):
            yield word.text
            if name == "alias":
                yield word.text.partition("=")[2]
    if name == "eval":
        yield " ".join(word.text for word in words)


def _from_input(words: Sequence[Word]) -> bool:
    """Whether a shell is given neither a program nor a file with one: it runs what it reads."""
    if any(word.text in ("--version", "--help") for word in words):
        return False
    return all(word.literal and word.text.startswith(("-", "+")) and "c" not in word.text for word in words)


def _evaluates_unseen(name: str, words: Sequence[Word]) -> bool:
    """Whether a text that a shell runs comes out of a variable or another command."""
    evaluator = name in tables().lists["evaluators"]
    if not evaluator and name not in tables().lists["interpreters"]:
        return False
    if any(word.text.startswith(("/dev/", "/proc/")) for word in words):
        return True  # an open file of the shell, its input among them
    if evaluator:
        return not all(word.literal for word in words)
    return any(
        not word.literal and before.text.startswith("-") and "c" in before.text
        for before, word in pairwise(words)
    )
