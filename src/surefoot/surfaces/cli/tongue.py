"""The language of this command line, and help in it.

Owns: finding the language before any settings are read, the layout of help in scripts whose
letters are two cells wide. Does not own: the words (`phrases`), the settings themselves (`config`).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import click

from surefoot.surfaces.tongues import LANGUAGES, language_of

_SETTING = re.compile(r"^\s*language\s*=\s*[\"']([\w-]+)[\"']", re.MULTILINE)
_TABLE = re.compile(r"^\s*\[", re.MULTILINE)
MANAGED_FILE = Path("/etc/surefoot/managed.toml")


def language_here(environ: Mapping[str, str] | None = None) -> str:
    """The language of mistakes and help: they are told before the settings are read, or because they cannot be.

    The one line that names a language is looked for in the files, by precedence: managed, variable, user.
    """
    told = os.environ if environ is None else environ
    managed, user = _files(told)
    written = (
        next(filter(None, map(_written, managed)), "") or told.get("SUREFOOT_LANGUAGE", "") or _written(user)
    )
    return language_of(written, told)


def _files(environ: Mapping[str, str]) -> tuple[tuple[Path, ...], Path]:
    moved = environ.get("SUREFOOT_HOME")
    if moved:
        home = Path(moved).expanduser()
        return (home / "managed.toml", MANAGED_FILE), home / "config.toml"
    if sys.platform in ("darwin", "win32"):
        from surefoot.settings_files import places

        return (MANAGED_FILE,), places(environ).settings_file
    given = Path(environ.get("XDG_CONFIG_HOME", ""))
    folder = given if given.is_absolute() else Path("~/.config").expanduser()
    return (MANAGED_FILE,), folder / "surefoot/config.toml"


def _written(file: Path) -> str:
    """The language that a settings file names, outside of all its tables; empty when it names none."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return ""
    head = _TABLE.split(text, maxsplit=1)[0]
    found = _SETTING.search(head)
    return found.group(1) if found else ""


def spoken(command: click.Command, language: str) -> click.Command:
    """The command with its help, and that of all below it, in this language."""
    if language == "en":
        return command
    from surefoot.surfaces.phrases import help_words

    command.context_class = _CONTEXTS[language]
    if command.help:
        command.help = help_words(command.help, language)
    command.short_help = help_words(command.short_help, language) if command.short_help else command.help
    for option in command.params:
        if isinstance(option, click.Option) and option.help:
            option.help = help_words(option.help, language)
    if isinstance(command, click.Group):
        for below in command.commands.values():
            spoken(below, language)
    return command


class _Formatter(click.HelpFormatter):
    """Help of click, in another language than its own."""

    language = "en"

    def told(self, text: str) -> str:
        from surefoot.surfaces.phrases import help_words

        try:
            return help_words(text, self.language)
        except KeyError:
            return text  # translated before, or a name

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(prog, args, self.told(prefix or "Usage: "))

    def write_heading(self, heading: str) -> None:
        super().write_heading(self.told(heading))

    def write_text(self, text: str) -> None:
        from surefoot.surfaces.plain import wrap

        indent = " " * self.current_indent
        self.write("".join(f"{indent}{line}\n" for line in wrap(text, self.width - self.current_indent)))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        from surefoot.surfaces.plain import width_of, wrap

        listed = list(rows)
        column = min(max((width_of(first) for first, _ in listed), default=0), col_max) + col_spacing
        indent = " " * self.current_indent
        for first, second in listed:
            lines = wrap(self.told(second), max(self.width - column - 2, 10)) if second else [""]
            if width_of(first) > column - col_spacing:
                self.write(f"{indent}{first}\n")
                first = ""
            for name, line in zip([first, *[""] * len(lines)], lines, strict=False):
                self.write(f"{indent}{name}{' ' * (column - width_of(name))}{line}".rstrip() + "\n")


def _context_in(language: str) -> type[click.Context]:
    formatter = type("Formatter", (_Formatter,), {"language": language})
    return type("Context", (click.Context,), {"formatter_class": formatter})


_CONTEXTS = {language: _context_in(language) for language in LANGUAGES[1:]}
