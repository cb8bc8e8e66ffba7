"""Flags of the programs in this package, with mistakes told as `surefoot` tells its own.

Owns: code, sentence and next command of a wrong flag. Does not own: which flags there are.
"""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn


class Flags(argparse.ArgumentParser):
    """A parser whose mistakes have the form of every error of surefoot, and exit code 2."""

    def error(self, message: str) -> NoReturn:
        """Tell what is wrong and where the flags are listed."""
        sentence = message.removeprefix("argument ").rstrip(".")
        sys.stderr.write(f"SF-USAGE: {sentence}.\nnext: {self.prog} --help\n")
        raise SystemExit(2)
