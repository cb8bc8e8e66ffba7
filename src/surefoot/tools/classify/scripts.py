"""Pure. Whether a sed or awk program only reads.

Owns: enough of both languages to prove that nothing is written or run. Does not own:
the options of the commands. Promises: every doubt answers False.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_FLAGS = re.compile(r"[gpiIM0-9]*")
_SEPARATORS = " \t;\n"
_PLAIN = frozenset("pPdDhHgGxnN=lFz")


class _Doubt(Exception):
    pass


def sed_reads(script: str) -> bool:
    """Whether every command of a sed script is one that neither writes a file nor runs a program."""
    try:
        _Sed(script).run()
    except (_Doubt, IndexError):
        return False
    return True


class _Sed:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def run(self) -> None:
        while True:
            self.skip(_SEPARATORS + "}")
            if self.at >= len(self.text):
                return
            self.address()
            self.skip(" \t!")
            self.command()

    def skip(self, chars: str) -> None:
        while self.at < len(self.text) and self.text[self.at] in chars:
            self.at += 1

    def take(self) -> str:
        char = self.text[self.at]
        self.at += 1
        return char

    def address(self) -> None:
        while self.at < len(self.text):
            char = self.text[self.at]
            if char.isdigit() or char in "$,+~ \t":
                self.at += 1
            elif char == "/":
                self.at += 1
                self.until("/")
                self.skip("IM")
            elif char == "\\":
                self.at += 1
                self.until(self.take())
                self.skip("IM")
            else:
                return

    def until(self, end: str) -> None:
        """Pass a pattern. Dialects differ inside brackets, so a bracket that holds `end` is a doubt."""
        if end in "\\\n[":
            raise _Doubt
        start = self.at
        while (char := self.take()) != end:
            if char == "\\":
                self.at += 1
        pattern = re.sub(r"\\.", "", self.text[start : self.at - 1], flags=re.DOTALL)
        if pattern.count("[") != len(re.findall(r"\[\^?\]?[^\]]*\]", pattern)):
            raise _Doubt

    def command(self) -> None:
        char = self.take()
        if char in _PLAIN:
            self.end()
        elif char == "{":
            return
        elif char in "qQ":
            self.skip(" \t0123456789")
            self.end()
        elif char == "s":
            end = self.take()
            self.until(end)
            self.until(end)
            found = _FLAGS.match(self.text, self.at)
            self.at = found.end() if found else self.at
            self.end()
        elif char == "y":
            end = self.take()
            self.until(end)
            self.until(end)
            self.end()
        elif char in "btT:":
            label = re.compile(r"[ \t]*[A-Za-z0-9_]*").match(self.text, self.at)
            self.at = label.end() if label else self.at
            self.end()
        elif char in "aicr#":
            self.line()
        else:
            raise _Doubt

    def line(self) -> None:
        """Text or a file name up to the end of the line."""
        newline = self.text.find("\n", self.at)
        rest = self.text[self.at : newline if newline >= 0 else len(self.text)]
        if "\\" in rest or "}" in rest:
            # Text may go on in the next line; whether a brace ends a name differs.
            raise _Doubt
        self.at = len(self.text) if newline < 0 else newline + 1

    def end(self) -> None:
        self.skip(" \t")
        if self.at < len(self.text) and self.text[self.at] not in ";\n}":
            raise _Doubt


_KEYWORDS = frozenset(
    ["print", "printf", "return", "in", "else", "do", "case", "delete", "getline", "if", "while", "for"]
)
_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r]+|\\\n)|(?P<comment>\#[^\n]*)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<number>[0-9.]+(?:[eE][+-]?[0-9]+)?)|(?P<string>"(?:[^"\\\n]|\\.)*")|(?P<two>\|\||&&|>=|>>|<=|==|!=|\+\+|--|!~)
    |(?P<one>[^"])""",
    re.VERBOSE | re.DOTALL,
)
_DANGEROUS = frozenset({"system", "getline", "close", "extension", "fflush"})


def awk_reads(program: str) -> bool:
    """Whether an awk program prints to its output only: no `>`, `|`, `system`, `getline` or include."""
    try:
        return not _awk_acts(program)
    except _Doubt:
        return False


@dataclass(frozen=True, slots=True)
class _Spot:
    """A place in an awk program and what stands before it."""

    at: int = 0
    prints: bool = False
    """A `print` of this statement came before, so `>` names a file."""
    operand: bool = False
    """A value ended here: a slash divides, unless a condition in parentheses ended with it."""
    step: bool = False
    """`++` or `--` ended here: a slash may divide or begin a pattern."""


def _awk_acts(program: str) -> bool:
    """Follow every reading of a slash that a dialect might choose; one that acts is enough."""
    waiting, seen = [_Spot()], set[_Spot]()
    while waiting:
        spot = waiting.pop()
        if spot in seen or spot.at >= len(program):
            continue
        seen.add(spot)
        if program[spot.at] == "/" and not spot.operand:
            end = _regex_end(program, spot.at)
            if end is not None:
                waiting.append(_Spot(end, spot.prints, operand=True))
            elif not spot.step:
                raise _Doubt
            if not spot.step:
                continue
        elif program[spot.at] == "/" and spot.operand and (end := _regex_end(program, spot.at)) is not None:
            waiting.append(_Spot(end, spot.prints, operand=True))
        following = _after_token(program, spot)
        if following is None:
            return True
        waiting.append(following)
    return False


def _after_token(program: str, spot: _Spot) -> _Spot | None:
    """The place behind the next token; None when that token writes or runs something."""
    found = _TOKEN.match(program, spot.at)
    if found is None:
        raise _Doubt
    kind, text = found.lastgroup, found.group()
    if kind in ("blank", "comment"):
        return replace(spot, at=found.end())
    if text in _DANGEROUS or text in ("@", "|", ">>", "\\") or (text == ">" and spot.prints):
        return None
    prints = (spot.prints or text in ("print", "printf")) and text not in ("{", "}", ";")
    operand = (
        kind in ("number", "string") or (kind == "name" and text not in _KEYWORDS) or text in (")", "]", "$")
    )
    return _Spot(found.end(), prints, operand, step=text in ("++", "--"))


def _regex_end(program: str, at: int) -> int | None:
    """Where a pattern that begins at `at` ends, None when it does not on its line.

    Dialects differ inside brackets, so brackets in which one might see another end are a doubt.
    """
    index = at + 1
    while index < len(program):
        char = program[index]
        if char == "\\":
            index += 2
            continue
        if char == "\n":
            break
        if char == "[":
            first = index + 2 if program[index + 1 : index + 2] == "^" else index + 1
            closing = program.find("]", first)
            if closing <= first or program[closing - 1] == "\\":
                raise _Doubt
            if "/" in program[index:closing] or "[" in program[index + 1 : closing]:
                raise _Doubt
            index = closing + 1
            continue
        if char == "/":
            return index + 1
        index += 1
    return None
