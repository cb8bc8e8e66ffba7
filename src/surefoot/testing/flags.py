"""Flags of the programs in this package, with mistakes told as `surefoot` tells its own.

Owns: code, sentence and next command of a wrong flag. Does not own: which flags there are.
"""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from surefoot.surfaces.cli.tongue import language_here
from surefoot.testing.flag_words import flag_word, mistake


class Flags(argparse.ArgumentParser):
    """A parser whose mistakes have the form of every error of surefoot, and exit code 2, in a person's language."""

    def __init__(self, *, prog: str, description: str, language: str) -> None:
        super().__init__(prog=prog, description=description, add_help=False)
        self._language = language
        self._optionals.title = flag_word("options", language)
        self.add_argument("-h", "--help", action="help", help=flag_word("help", language))

    def format_help(self) -> str:
        """The help text; its first word too is in the person's language."""
        return super().format_help().replace("usage: ", flag_word("usage", self._language), 1)

    def error(self, message: str) -> NoReturn:
        """Tell what is wrong and where the flags are listed."""
        sentence, way = mistake(message, self._language), flag_word("next", self._language)
        sys.stderr.write(f"SF-USAGE: {sentence}\n{way}{self.prog} --help\n")
        raise SystemExit(2)


__all__ = ["Flags", "language_here"]
