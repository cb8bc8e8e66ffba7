"""Pure. The reading environment: how a command classed READ_ONLY is run (EC-59).

Owns: which variables are set and dropped, and which options are put into the line. Does
not own: running it (the shell tool applies what is answered here), the words around its rows.
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


def runs_others(client: str, name: str, text: str) -> bool:
    """Whether the file `name` of a project, holding `text`, may make `client` run something (EC-59)."""
    return re.search(load("environment")["projects"][client][name], text) is not None


def files_of_project(client: str) -> tuple[str, ...]:
    """Names of the files by which a project may make `client` run something."""
    return tuple(load("environment")["projects"][client])


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


def environment_rows() -> list[tuple[str, str]]:
    """What a reader runs in, for whoever wants to see it (UX-159): the name of a row, and what the table says.

    Made from the data that `reading_environment` and `insertions` apply, so that neither can differ from it.
    """
    table, lists = load("environment"), tables().lists
    variables = {name: value for name, value in table["set"].items() if name not in _OF_DATABASES}
    clients = [f"{name} {option}" for name, option in lists["insert_after_name"].items()]
    clients += [f"{name}={table['set'][name]}" for name in _OF_DATABASES]
    named = [
        f"{_shown(row['name'])}.{{{', '.join(f'{key}={value}' for key, value in row['set'].items())}}}"
        for row in table["git"]["by_name"]
    ]
    return [
        ("path", f"PATH={absolute_path('', table['path'])}"),
        ("dropped", ", ".join(table["dropped"])),
        ("set", ", ".join(f"{name}={value}" for name, value in variables.items())),
        ("shell", " ".join(["bash", *table["shell_options"]])),
        ("git_options", ", ".join(f"git {name} {text}" for name, text in lists["git_insert"].items())),
        ("git_settings", ", ".join(f"{name}={value}" for name, value in table["git"]["fixed"].items())),
        ("git_named", ", ".join(named)),
        ("git_refused", ", ".join(_shown(pattern) for pattern in table["git"]["refused"])),
        ("projects", ", ".join(f"{name} {file}" for name, row in table["projects"].items() for file in row)),
        ("databases", ", ".join(clients)),
    ]


_OF_DATABASES = ("PGOPTIONS",)
"""Variables that keep a database client to reading, shown with its options."""


def _shown(pattern: str) -> str:
    """A pattern of names of settings as people write it: `filter.*`, `remote.*.vcs`."""
    return pattern.partition(r"\.(?:")[0].strip("()").replace("\\.", ".").replace(".+", "*")
