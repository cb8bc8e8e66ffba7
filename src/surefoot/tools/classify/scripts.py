"""Pure. Whether a sed or awk program only reads.

Owns: enough of both languages to prove that nothing is written or run. Does not own:
the options of the commands. Promises: every doubt answers False.
"""

from __future__ import annotations

import re

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


def _awk_acts(program: str) -> bool:
    prints, operand, at = False, False, 0
    while at < len(program):
        if program[at] == "/" and not operand:
            at = _regex_end(program, at)
            operand = True
            continue
        found = _TOKEN.match(program, at)
        if found is None:
            raise _Doubt
        at = found.end()
        kind, text = found.lastgroup, found.group()
        if kind in ("blank", "comment"):
            continue
        if text in _DANGEROUS or text in ("@", "|", ">>", "\\"):
            return True
        if text in ("print", "printf"):
            prints = True
        elif text in ("{", "}", ";"):
            prints = False
        elif text == ">" and prints:
            return True
        operand = (
            kind in ("number", "string")
            or (kind == "name" and text not in _KEYWORDS)
            or text in (")", "]", "$")
        )
    return False


def _regex_end(program: str, at: int) -> int:
    """Where a pattern ends; brackets and line ends in it are a doubt when they could move that place."""
    index = at + 1
    while index < len(program):
        char = program[index]
        if char == "\\":
            index += 2
            continue
        if char == "\n":
            break
        if char == "[":
            closing = program.find("]", index + 2)
            if closing < 0 or "/" in program[index:closing] or "[" in program[index + 1 : closing]:
                raise _Doubt
            index = closing + 1
            continue
        if char == "/":
            return index + 1
        index += 1
    raise _Doubt
