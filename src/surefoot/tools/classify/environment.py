"""Pure. The reading environment: how a command classed READ_ONLY is run (EC-59).

Owns: which variables are set and dropped, and which options are put into the line. Does
not own: running it; the shell tool applies what is answered here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from surefoot.tools.classify.rules import load, tables


@dataclass(frozen=True, slots=True)
class ReadingEnvironment:
    """The variables of a reader, complete: nothing else is inherited."""

    variables: Mapping[str, str]
    shell_options: tuple[str, ...]
    """Options of the shell that runs the line: no profile, no startup file."""


def reading_environment(
    variables: Mapping[str, str], git_settings: Iterable[str] = ()
) -> ReadingEnvironment | None:
    """The environment in which a reader runs, from the one a command would have.

    `git_settings` are the names `git config --list --name-only` tells for the working directory, looked up
    before. None when a setting names a program that nothing here can keep out: the command is then UNKNOWN.
    """
    table = load("environment")
    kept = {
        name: value
        for name, value in variables.items()
        if not any(fnmatchcase(name, pattern) for pattern in table["dropped"])
    }
    kept["PATH"] = absolute_path(variables.get("PATH", ""), table["path"])
    kept.update(table["set"])
    settings = _git_overrides(git_settings, table["git"])
    if settings is None:
        return None
    kept["GIT_CONFIG_COUNT"] = str(len(settings))
    for index, (key, value) in enumerate(settings):
        kept[f"GIT_CONFIG_KEY_{index}"] = key
        kept[f"GIT_CONFIG_VALUE_{index}"] = value
    return ReadingEnvironment(kept, tuple(table["shell_options"]))


def absolute_path(path: str, otherwise: str) -> str:
    """`PATH` without relative and empty parts, which mean the working directory."""
    return ":".join(part for part in path.split(":") if part.startswith("/")) or otherwise


def _git_overrides(names: Iterable[str], table: Mapping[str, object]) -> list[tuple[str, str]] | None:
    fixed = table["fixed"]
    found: dict[str, str] = dict(fixed) if isinstance(fixed, Mapping) else {}
    patterns = table["by_name"]
    refused = table["refused"]
    for name in names:
        section, _, key = name.rpartition(".")
        lowered = f"{section}.{key.lower()}"
        if isinstance(refused, list) and any(
            re.fullmatch(pattern, lowered, re.IGNORECASE) for pattern in refused
        ):
            return None
        if not isinstance(patterns, list):
            continue
        for row in patterns:
            match = re.fullmatch(row["name"], lowered, re.IGNORECASE)
            if match is not None:
                for suffix, value in row["set"].items():
                    found[f"{match[1]}.{suffix}"] = value
    return list(found.items())


def insertions(words: Sequence[str], ends: Sequence[int]) -> list[tuple[int, str]]:
    """Where in the line, in bytes, further options belong: after a client's name, or a subcommand of git."""
    if words[0] != "git":
        after = tables().lists["insert_after_name"].get(words[0])
        return [] if after is None else [(ends[0], after)]
    family = tables().families["git"].before
    index = 1
    while index < len(words) and words[index].startswith("-"):
        index += 2 if words[index] in family.valued else 1
    text = tables().lists["git_insert"].get(words[index]) if index < len(words) else None
    return [] if text is None else [(ends[index], text)]
