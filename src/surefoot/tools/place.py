"""Where a session works: directory, repository and its remotes, looked up before anything is classified.

Owns: reading a repository's own settings file for its remotes (EC-6, EC-14). Runs no program,
since a repository can name programs in its settings. Does not own: what the names mean (`core.effects`).
"""

from __future__ import annotations

import configparser
import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from surefoot.runtime.tools import Place

_SCP_LIKE = re.compile(r"^(?:[^@/\s]+@)?([A-Za-z0-9.-]+):(?!//)(.+)$")
_SECTION = re.compile(r'^remote "(.+)"$')


def find_place(directory: Path, added: tuple[Path, ...] = ()) -> Place:
    """The place of a directory; its write roots are its repository, or itself outside of one, and what is added."""
    real = directory.resolve()
    work_tree = find_work_tree(real)
    remotes = {} if work_tree is None else read_remotes(work_tree)
    roots = tuple(dict.fromkeys([work_tree or real, *(folder.resolve() for folder in added)]))
    return Place(directory=real, roots=roots, work_tree=work_tree, remotes=remotes, home=_home())


def _home() -> Path | None:
    """The real path of what `~` means to a shell; None where nothing says."""
    try:
        return Path.home().resolve()
    except (RuntimeError, OSError):
        return None


def find_work_tree(directory: Path) -> Path | None:
    """The repository a directory lies in, or None."""
    for folder in (directory, *directory.parents):
        if (folder / ".git").exists():
            return folder
    return None


def read_remotes(work_tree: Path) -> dict[str, str]:
    """Remote name → `host/owner/name`; a remote on the disk or in an unknown form is left out."""
    settings = _git_folder(work_tree) / "config"
    parser = configparser.ConfigParser(strict=False, interpolation=None, allow_no_value=True)
    try:
        parser.read_string("\n".join(line.strip() for line in _text(settings).splitlines()))
    except (OSError, configparser.Error):
        return {}  # unreadable settings name no remote; a push then has the reach of its work tree
    found = {}
    for section in parser.sections():
        match = _SECTION.match(section)
        url = parser.get(section, "url", fallback=None) if match else None
        name = None if url is None else repository_name(url)
        if match and name:
            found[match.group(1)] = name
    return found


def _git_folder(work_tree: Path) -> Path:
    """The folder that holds the settings; of a linked work tree that is the main repository's."""
    marker = work_tree / ".git"
    if marker.is_dir():
        return marker
    try:
        text = _text(marker).strip()
    except OSError:
        return marker
    folder = (work_tree / text.removeprefix("gitdir:").strip()).resolve()
    try:
        shared = _text(folder / "commondir").strip()
    except OSError:
        return folder
    return (folder / shared).resolve()


def _text(file: Path) -> str:
    """A file of git, whose names are bytes of the file system and whose people wrote in any encoding."""
    return os.fsdecode(file.read_bytes())


def repository_name(url: str) -> str | None:
    """`https://h/o/n.git`, `ssh://git@h/o/n` and `git@h:o/n.git` all give `h/o/n`."""
    if "://" in url:
        parts = urlsplit(url)
        host, path = parts.hostname, parts.path
        if parts.scheme == "file":
            return None
    else:
        match = _SCP_LIKE.match(url)
        if match is None:
            return None
        host, path = match.groups()
    name = path.strip("/").removesuffix(".git")
    return f"{host}/{name}" if host and name else None
