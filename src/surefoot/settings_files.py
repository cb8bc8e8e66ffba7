"""Where files of surefoot lie, and how one of them is read with its lines.

Owns: places (UX-21), the name of a project (UX-164), reading a TOML file into
settings that know their line, trust in a project (UX-23), instruction files
(UX-45). Does not own: which value wins (`config`).
Promises: reading makes no folder and no file (UX-4).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.errors import SettingsError
from surefoot.ledger.places import project_folder, project_root

SHARED_FILES = (".surefoot/config.toml", "surefoot.toml")
OWN_FILE = ".surefoot/config.local.toml"
MANAGED_FILE = Path("/etc/surefoot/managed.toml")
INSTRUCTION_NAMES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md")
INSTRUCTION_BYTES = 64 * 1024
DIGEST_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Places:
    """Every folder and file surefoot uses for one person. Naming them makes none of them."""

    settings_file: Path
    state_folder: Path
    cache: Path
    runtime: Path
    ledgers: Path
    managed_files: tuple[Path, ...]
    """Lowest first; the last one wins."""
    moved_from: Path | None = None
    """The ledger's folder of a project that was moved, while one of its sessions is gone on with (UX-164)."""

    @property
    def trust_file(self) -> Path:
        return self.state_folder / "trust.json"

    @property
    def settings_folder(self) -> Path:
        """Holds `contracts/*.toml` and `packs/*.toml` beside the settings."""
        return self.settings_file.parent

    def ledger_folder(self, directory: Path) -> Path:
        """The folder of the ledger of the project that `directory` lies in."""
        return self.moved_from or project_folder(self.ledgers, directory)


def places(environ: Mapping[str, str]) -> Places:
    """Where things lie under these variables; `SUREFOOT_HOME` moves all of them at once."""
    moved = environ.get("SUREFOOT_HOME")
    if moved:
        home = Path(moved).expanduser().absolute()
        return Places(
            settings_file=home / "config.toml",
            state_folder=home,
            cache=home / "cache",
            runtime=home / "run",
            ledgers=home / "ledgers",
            managed_files=(home / "managed.toml", MANAGED_FILE),
        )
    state = _folder(environ, "XDG_STATE_HOME", ".local/state", "user_state_dir")
    runtime = environ.get("XDG_RUNTIME_DIR")
    return Places(
        settings_file=_folder(environ, "XDG_CONFIG_HOME", ".config", "user_config_dir") / "config.toml",
        state_folder=state,
        cache=_folder(environ, "XDG_CACHE_HOME", ".cache", "user_cache_dir"),
        runtime=Path(runtime) / "surefoot" if runtime else state / "run",
        ledgers=state / "ledgers",
        managed_files=(MANAGED_FILE,),
    )


def _folder(environ: Mapping[str, str], variable: str, unix: str, native: str) -> Path:
    given = environ.get(variable)
    if given and Path(given).is_absolute():  # the XDG specification ignores relative values
        return Path(given) / "surefoot"
    if sys.platform in ("darwin", "win32"):
        import platformdirs

        return Path(str(getattr(platformdirs, native)("surefoot", appauthor=False)))
    home = environ.get("HOME")
    return (Path(home) if home else Path.home()) / unix / "surefoot"


@dataclass(frozen=True, slots=True)
class Found:
    """One value of a settings file, with its place."""

    path: str
    value: Any
    file: Path
    line: int

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}"


def read_settings(file: Path) -> list[Found]:
    """Every value of a TOML file, or nothing when there is no such file.

    Raises:
        SettingsError: it cannot be read or is no TOML; names file and line.
    """
    try:
        text = file.read_bytes().decode("utf-8-sig")  # some editors begin a file with a byte order mark
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise SettingsError(
            f"{file} cannot be read: {error.strerror}. Give yourself the right to read it, or move it away."
        ) from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file} is not UTF-8 text. Save it as UTF-8.") from error
    import tomllib  # most starts read no file

    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"at line (\d+)", str(error))
        line = at.group(1) if at else "1"
        raise SettingsError(f"{file}:{line} is not valid TOML: {error}. Correct this line.") from error
    return [Found(path, value, file, line_of(text, path)) for path, value in leaves(tree)]


def leaves(tree: Mapping[str, Any], head: str = "") -> Iterator[tuple[str, Any]]:
    """The path and value of every setting in a tree of tables."""
    for key, value in tree.items():
        path = f"{head}{key}"
        if isinstance(value, dict) and path.rpartition(".")[2] not in ("env", "headers") and value:
            yield from leaves(value, f"{path}.")
        else:
            yield path, value


HEADER = re.compile(r"^\s*\[\[?([^\]]+)\]\]?")
KEY = re.compile(
    r"""^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)


def line_of(text: str, path: str) -> int:
    """The line that sets `path`. tomllib tells no lines, so headers and keys are followed by hand;
    a value inside an inline table gets the line of the longest beginning that is found."""
    table, best, best_length = "", 1, 0
    for number, line in enumerate(text.splitlines(), start=1):
        header = HEADER.match(line)
        key = None if header else KEY.match(line)
        if header:
            table = dotted(header.group(1))
            reached = table
        elif key:
            reached = f"{table}.{dotted(key.group(1))}" if table else dotted(key.group(1))
        else:
            continue
        if (path == reached or path.startswith(reached + ".")) and len(reached) > best_length:
            best, best_length = number, len(reached)
    return best


def dotted(name: str) -> str:
    """The path that a header or a key means, without its quotation marks."""
    return ".".join(part.strip().strip("\"'") for part in name.strip().split("."))


def project_files(root: Path) -> tuple[list[Path], list[Path]]:
    """The shared and the own settings files that exist in a project."""
    shared = [root / name for name in SHARED_FILES if (root / name).is_file()]
    own = [root / OWN_FILE] if (root / OWN_FILE).is_file() else []
    return shared, own


def left_out(root: Path) -> list[str]:
    """Names of the project's files that count only in a trusted project."""
    names = (*SHARED_FILES, OWN_FILE, ".mcp.json")
    found = [name for name in names if (root / name).is_file()]
    packs = root / ".surefoot/packs"
    return found + ([".surefoot/packs"] if packs.is_dir() and any(packs.glob("*.toml")) else [])


def executable_digest(root: Path) -> str:
    """Digest of what a project's files can start: its MCP servers and hooks (UX-23)."""
    parts: list[Any] = []
    shared, own = project_files(root)
    for file in (*shared, *own):
        parts.extend(
            [file.name, found.path, found.value]
            for found in read_settings(file)
            if found.path.startswith(("mcp.", "hooks"))
        )
    servers = root / ".mcp.json"
    if servers.is_file():
        parts.append(hashlib.sha256(servers.read_bytes()).hexdigest())
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def is_trusted(where: Places, root: Path) -> bool:
    """Whether a person accepted this project's files as they are now."""
    given = _trust_store(where).get(str(root))
    return given is not None and given == executable_digest(root)


def set_trust(where: Places, root: Path, *, trusted: bool) -> None:
    """Record or take back a person's word about a project's files."""
    store = _trust_store(where)
    if trusted:
        store[str(root)] = executable_digest(root)
    else:
        store.pop(str(root), None)
    where.state_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = where.trust_file.with_suffix(".new")
    beside.write_text(json.dumps(store, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    beside.replace(where.trust_file)


def _trust_store(where: Places) -> dict[str, str]:
    try:
        value = json.loads(where.trust_file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # an unreadable store trusts nothing
    return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True)
class Instructions:
    """The joined instruction files; advice to the model that can change no setting."""

    text: str
    digests: Mapping[str, str]
    """Path → `sha256:…` of each file, the whole of it, as it stood when it was read."""
    cut: bool
    left_out: tuple[str, ...] = ()
    """Files of a project that nobody trusts which lead out of it: they could show the model any file of its reader."""


def read_instructions(directory: Path, where: Places) -> Instructions:
    """Instruction files of settings folder, repository root and each folder down to `directory` (UX-45)."""
    root, here = project_root(directory), Path(os.path.realpath(directory))
    chain = [
        root,
        *(
            root.joinpath(*here.relative_to(root).parts[: n + 1])
            for n in range(len(here.relative_to(root).parts))
        ),
    ]
    parts: list[str] = []
    digests: dict[str, str] = {}
    left_out: list[str] = []
    for folder in (where.settings_folder, *chain):
        for name in INSTRUCTION_NAMES:
            found = _begin_of(folder / name)
            if found is None:
                continue
            if folder != where.settings_folder and _leads_out(folder / name, root, where):
                left_out.append(str(folder / name))
                continue
            content, digests[str(folder / name)] = found
            parts.append(f"# {folder / name}\n\n{content.decode('utf-8', 'replace').strip()}\n")
            break
    joined = "\n".join(parts).encode()
    kept = joined[:INSTRUCTION_BYTES].decode("utf-8", "ignore")
    return Instructions(kept, digests, cut=len(joined) > INSTRUCTION_BYTES, left_out=tuple(left_out))


def _leads_out(file: Path, root: Path, where: Places) -> bool:
    return not Path(os.path.realpath(file)).is_relative_to(root) and not is_trusted(where, root)


def _begin_of(file: Path) -> tuple[bytes, str] | None:
    """As much of a file as can be told to a model, and the digest of the whole.

    Of a device or pipe, which a repository may link to, nothing; of a giant the digest of its beginning.
    """
    try:
        number = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            return None
        with os.fdopen(number, "rb", closefd=False) as stream:
            content = stream.read(INSTRUCTION_BYTES + 1)
            digest, left = hashlib.sha256(content), DIGEST_BYTES - len(content)
            while left > 0 and (more := stream.read(min(left, 1 << 20))):
                digest.update(more)
                left -= len(more)
        return content, "sha256:" + digest.hexdigest()
    except OSError:
        return None
    finally:
        os.close(number)


def untold(found: Instructions) -> list[str]:
    """What of the instruction files the model is not told, one sentence each (UX-45)."""
    told = [
        f"{name} leads out of the project, which is not trusted, and is not read; surefoot trust takes it in."
        for name in found.left_out
    ]
    if found.cut:
        told.append(
            "The instruction files hold more than 64 KiB; what comes after that is not told to the model."
        )
    return told
