"""Pure. Core tools whose operands carry a meaning of their own.

Owns: `find`, and the checks that a table row cannot say. Does not own: sed and awk
programs (`scripts`), clients of far sides (`clients`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.core.effects import wider
from surefoot.core.model import EffectClass
from surefoot.tools.classify.grammar import ELSEWHERE, UNSEEN, Word
from surefoot.tools.classify.rules import Shape, tables
from surefoot.tools.classify.scene import READS, Answer, Scene, written
from surefoot.tools.classify.scripts import awk_reads, sed_reads

_VARIABLE = re.compile(r"[a-z][a-z0-9]{0,15}")
_UNARY = frozenset(
    [
        "-a",
        "-b",
        "-c",
        "-d",
        "-e",
        "-f",
        "-g",
        "-h",
        "-k",
        "-n",
        "-o",
        "-p",
        "-r",
        "-s",
        "-t",
        "-u",
        "-w",
        "-x",
        "-z",
        "-G",
        "-L",
        "-N",
        "-O",
        "-S",
    ]
)
_BINARY = frozenset(
    ["=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"]
)


def variable(name: str) -> bool:
    """Whether a name is a plain variable that no program and no shell gives a meaning to."""
    return _VARIABLE.fullmatch(name) is not None and name not in ("path", "cdpath", "fpath", "home", "prompt")


@dataclass(frozen=True, slots=True)
class Find:
    """A read expression of `find`."""

    starts: list[Word]
    commands: list[list[Word]]
    files: list[Word]
    deletes: bool


def read_find(words: Sequence[Word]) -> Find | None:
    """Read the arguments of `find` by its table; None when one is not in it."""
    table: dict[str, Any] = dict(tables().lists["find"])
    starts: list[Word] = []
    found = Find(starts, [], [], deletes=any(word.literal and word.text == "-delete" for word in words))
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if not word.certain:
            return None
        text = word.text
        if text in table["runs"]:
            end = next((i for i in range(index, len(words)) if words[i].text in (";", "+")), None)
            if end is None or end == index or words[index].text.startswith("-"):
                return None
            found.commands.append(
                [hidden(item, ["{}"]) if "{}" in item.text else item for item in words[index:end]]
            )
            index = end + 1
        elif text in table["writes"]:
            found.files.extend(words[index : index + 1])
            index += table["writes"][text]
        elif text in table["values"]:
            if index >= len(words) or not words[index].literal:
                return None
            index += 1
        elif text in table["tests"]:
            continue
        elif not text.startswith("-") and text not in ("!", "(", ")", ","):
            starts.append(word)
        else:
            return None
    return found


def hidden(word: Word, marks: Sequence[str]) -> Word:
    """What stands for an argument that holds a mark; text before the mark or a `..` leads it elsewhere."""
    return UNSEEN if ".." not in word.text and word.text.startswith(tuple(marks)) else ELSEWHERE


def _sed(shape: Shape, _: Sequence[Word], __: Scene) -> Answer | None:
    return READS if all(sed_reads(text) for text in _sed_scripts(shape)[0]) else None


def _sed_scripts(shape: Shape) -> tuple[list[str], list[Word]]:
    given = shape.values(["-e", "--expression"])
    operands = list(shape.operands)
    if not given:
        given, operands = operands[:1], operands[1:]
    return [word.text for word in given] or ["\0"], operands


def _sed_in_place(shape: Shape, _: Sequence[Word], scene: Scene) -> Answer | None:
    scripts, files = _sed_scripts(shape)
    if not files or not all(sed_reads(text) for text in scripts):
        return None
    suffixes = [value.text for value in shape.values(["-i", "--in-place"])]
    reach, paths = written(files, scene)
    if suffixes:
        beside, _more = written([Word(_folder(word), glob=False) for word in files], scene)
        reach = (*reach, *beside)
    return Answer(EffectClass.NON_IDEMPOTENT, wider(reach), paths=paths)


def _folder(word: Word) -> str:
    folder, slash, _ = word.text.rpartition("/")
    return folder or (slash or ".")


def _awk(shape: Shape, _: Sequence[Word], __: Scene) -> Answer | None:
    return READS if awk_reads(shape.operands[0].text) else None


def _printf(shape: Shape, words: Sequence[Word], _: Scene) -> Answer | None:
    """`printf -v` sets a variable; a first word that is not known could be that option."""
    first = words[0] if words else None
    return READS if first is not None and first.certain and not first.text.startswith("-") else None


def _test(_: Shape, words: Sequence[Word], __: Scene) -> Answer | None:
    return READS if harmless_test(list(words)) else None


def harmless_test(words: list[Word]) -> bool:
    """Whether a condition only looks: no `-v`, and nothing unknown where an operator may stand."""
    if any(word.literal and word.text in ("-v", "-R") for word in words):
        return False
    if all(word.certain for word in words):
        return True
    return all(_plain_condition(part) for part in _split(words))


def _split(words: list[Word]) -> list[list[Word]]:
    parts: list[list[Word]] = [[]]
    for word in words:
        if word.literal and word.text in ("-a", "-o", "&&", "||") and parts[-1]:
            parts.append([])
        elif not (word.literal and word.text in ("!", "(", ")")):
            parts[-1].append(word)
    return parts


def _plain_condition(words: list[Word]) -> bool:
    if any(not word.literal and word.bare for word in words):
        return False
    if len(words) == 2:
        return words[0].literal and words[0].text in _UNARY
    if len(words) == 3:
        return words[1].literal and words[1].text in _BINARY
    return all(word.certain for word in words)


def _read(shape: Shape, _: Sequence[Word], __: Scene) -> Answer | None:
    return READS if all(variable(word.text) for word in shape.operands) else None


def _ln(shape: Shape, _: Sequence[Word], __: Scene) -> Answer | None:
    """`ln -sf` into a folder that is already a link follows it; only with `-n` it converges."""
    idempotent = shape.has("-n", "--no-dereference", "-T")
    return Answer(EffectClass.IDEMPOTENT_WRITE) if idempotent else None


def _dd(_: Shape, words: Sequence[Word], scene: Scene) -> Answer | None:
    targets = [Word(word.text[3:], literal=word.literal) for word in words if word.text.startswith("of=")]
    if not all(word.literal for word in words):
        targets.append(UNSEEN)
    reach, paths = written(targets, scene)
    if not targets:
        return READS
    return Answer(EffectClass.NON_IDEMPOTENT, wider(reach), paths=paths)


def _beside(shape: Shape, _: Sequence[Word], scene: Scene) -> Answer | None:
    """A packer replaces a file by another beside it."""
    reach, paths = written([Word(_folder(word)) for word in shape.operands], scene)
    return Answer(EffectClass.NON_IDEMPOTENT, wider(reach), paths=paths)


def _git_config(shape: Shape, _: Sequence[Word], __: Scene) -> Answer | None:
    listed = tables().lists["git_config"]["keys"]
    return Answer(EffectClass.IDEMPOTENT_WRITE) if shape.operands[0].text.lower() in listed else None


def _systemctl(shape: Shape, _: Sequence[Word], __: Scene) -> Answer | None:
    readers = tables().lists["systemctl"]["readers"]
    return READS if not shape.operands or shape.operands[0].text in readers else None


def _apt_cache(shape: Shape, _: Sequence[Word], __: Scene) -> Answer | None:
    readers = tables().lists["apt_cache"]["readers"]
    return READS if shape.operands and shape.operands[0].text in readers else None


def _ip(shape: Shape, _: Sequence[Word], __: Scene) -> Answer | None:
    table = tables().lists["ip"]
    words = [word.text for word in shape.operands]
    looks = words[:1] and words[0] in table["objects"] and (len(words) == 1 or words[1] in table["verbs"])
    return READS if looks else None


def check_words(name: str, words: Sequence[Word]) -> bool:
    """Whether a build tool is asked to test, lint or build (EC-27)."""
    marks = tables().lists["checks"].get(name, ())
    plain = [word.text for word in words if word.literal]
    return " ".join(plain[:2]) in marks or " ".join(plain[:1]) in marks


JUDGES: dict[str, Callable[[Shape, Sequence[Word], Scene], Answer | None]] = {
    "sed": _sed,
    "sed_in_place": _sed_in_place,
    "awk": _awk,
    "printf": _printf,
    "test": _test,
    "read": _read,
    "ln": _ln,
    "dd": _dd,
    "beside": _beside,
    "git_config": _git_config,
    "systemctl": _systemctl,
    "apt_cache": _apt_cache,
    "ip": _ip,
}
