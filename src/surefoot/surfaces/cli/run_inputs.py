"""What a run is given as a whole: settings for it alone, words of the system text, a file for its last answer.

Owns: reading and writing these, and what is wrong with them. Does not own: the flags (`talk`), what holds when a
flag says otherwise (`config`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surefoot.core.canonical import is_id, make_id
from surefoot.errors import SettingsError, UsageError
from surefoot.surfaces.cli.output import complain
from surefoot.surfaces.cli.tongue import language_here
from surefoot.surfaces.phrases import translated


def settings_of(given: str | None) -> dict[str, Any]:
    """Setting paths to values of `--settings FILE|JSON`, those of no setting told and left out (UX-25).

    Raises `UsageError`, `SettingsError`.
    """
    if given is None:
        return {}
    from surefoot.settings_files import leaves, read_settings
    from surefoot.settings_table import form_of

    if given.lstrip().startswith("{"):
        found = list(leaves(_parsed(given, "--settings")))
    else:
        file = _file(given, "--settings")
        if file.suffix == ".json":
            found = list(leaves(_parsed(_text(file, "--settings"), str(file))))
        else:
            found = [(one.path, one.value) for one in read_settings(file)]
    unknown = [path for path, _ in found if form_of(path) is None]
    told = [f"--settings: {path} is not a setting of surefoot." for path in unknown]
    complain(translated(one, language_here()) for one in told)
    return {path: value for path, value in found if path not in unknown}


def joined(settings: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """Flags over the settings of `--settings`; lists of rules count together."""
    result = dict(settings)
    for path, value in flags.items():
        before = result.get(path)
        if isinstance(value, list) and isinstance(before, list):
            result[path] = [*before, *value]
        elif value is not None or path not in result:
            result[path] = value
    return result


def words_of(text: str | None, file: str | None, flag: str) -> str | None:
    """The words of `FLAG TEXT` or `FLAG-file FILE`. Raises `UsageError`."""
    if text is not None and file is not None:
        raise UsageError(f"Give {flag} or {flag}-file, not both.")
    return text if file is None else _text(_file(file, f"{flag}-file"), f"{flag}-file").strip("\n")


_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def schema_text(given: str) -> dict[str, Any]:
    """The JSON object of `--json-schema FILE|JSON`. Raises `UsageError`, `SettingsError`."""
    flag = "--json-schema"
    if given.lstrip().startswith("{"):
        return _parsed(given, flag)
    return _parsed(_text(_file(given, flag), flag), given)


def session_of(reference: str) -> str:
    """A reference to a session; a UUID is the id whose bits it has, anything else stays as it is."""
    if not _UUID.fullmatch(reference):
        return reference
    number = int(reference.replace("-", ""), 16)
    return make_id("ses", number >> 80, number & ((1 << 80) - 1))


def new_session_id(given: str) -> str:
    """The full id of `--session-id`. Raises `UsageError`."""
    found = session_of(given)
    if not is_id(found, "ses"):
        raise UsageError(
            f"--session-id {given!r} must be a UUID, or ses_ and 26 letters and digits as surefoot writes ids."
        )
    return found


def folders_of(given: tuple[str, ...]) -> tuple[Path, ...]:
    """The folders of `--add-dir`, as they really lie. Raises `UsageError`."""
    for one in given:
        if not Path(one).expanduser().is_dir():
            raise UsageError(f"--add-dir {one!r} is no folder.")
    return tuple(Path(one).expanduser().resolve() for one in given)


def check_target(file: str | None) -> Path | None:
    """Where the last answer goes; refused before anything runs when it cannot go there. Raises `UsageError`."""
    if file is None:
        return None
    target = Path(file).absolute()
    if target.is_dir() or not target.parent.is_dir():
        raise UsageError(f"--output-last-message {file!r} is no place for a file.")
    return target


def write_last(target: Path, text: str) -> None:
    """Write the last answer; its line ends as that on standard output does."""
    try:
        target.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        told = f"The last answer was not written to {target}: {error.strerror}."
        complain([translated(told, language_here())])


def _file(name: str, flag: str) -> Path:
    file = Path(name)
    if not file.is_file():
        raise UsageError(f"{flag} {name!r} is no file.")
    return file


def _text(file: Path, flag: str) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{flag} {str(file)!r} cannot be read as UTF-8 text.") from error


def _parsed(text: str, where: str) -> dict[str, Any]:
    try:
        tree = json.loads(text)
    except ValueError as error:
        raise SettingsError(f"{where} is not valid JSON: {error}.") from error
    if not isinstance(tree, dict):
        raise SettingsError(f"{where} must be a JSON object.")
    return tree
