"""Contracts: what one endpoint demands of replayed history, as data.

Owns: reading TOML contract files, resolving `base`, refusing what is unknown,
the digest, and where each key came from. Does not own: whether a request obeys
(`rules`), how it is shaped (`shaping`, `chat`), which endpoint uses which (`config`).

Nothing here ever looks at a model's or a host's name (WC-3).
"""

from __future__ import annotations

import difflib
import functools
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surefoot.core.canonical import digest_json
from surefoot.errors import SettingsError, UsageError
from surefoot.providers.contract_keys import IDENTITY_KEYS, ROOTS, SCHEMA, flatten, value_fault

SHIPPED = Path(__file__).parent / "contract_files"
_ID = re.compile(r"^[a-z0-9][a-z0-9._-]*/[a-z]+$")
_DEPTH = 8

_CHAT = "reasoning_content"
_ON = "thinking_on"
REASONING_PROTOCOLS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "chat": {
        "deepseek": {"carrier": _CHAT, "required": "all_with_tools", "when": _ON, "empty_ok": True},
        "mimo": {"carrier": _CHAT, "required": "tool_turns", "when": _ON, "empty_ok": False},
        "kimi": {"carrier": _CHAT, "required": "tool_turns", "when": _ON, "empty_ok": True},
        "none": {"carrier": "none", "required": "never"},
    },
    "responses": {
        "deepseek": {"carrier": "item_text", "required": "tool_turns", "when": _ON, "empty_ok": False},
        "mimo": {"carrier": "item_text", "required": "tool_turns", "when": _ON, "empty_ok": False},
    },
}
"""Wire → what `reasoning_protocol` lays over a contract of it (WC-4), and nothing else."""
_PROTOCOL_RULES: Mapping[str, Mapping[str, str]] = {
    "responses": {"deepseek": "DS-05", "mimo": "MI-01"},
}
"""The rule that reports a missing carrier under a protocol; `suspect`, so that a healthy pair passes (PR-78)."""


@dataclass(frozen=True)
class Contract(Mapping[str, Any]):
    """A resolved contract: dotted key → value, and dotted key → id of the contract that gave it."""

    id: str
    keys_by_name: Mapping[str, Any]
    origin: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, key: str) -> Any:
        return self.keys_by_name[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys_by_name)

    def __len__(self) -> int:
        return len(self.keys_by_name)

    __hash__ = object.__hash__

    @property
    def wire(self) -> str:
        """The wire its id names."""
        return self.id.partition("/")[2]

    @functools.cached_property
    def digest(self) -> str:
        """`sha256:` of the canonical JSON of every resolved key (WC-7)."""
        return digest_json({"id": self.id, "keys": dict(self.keys_by_name)})

    @functools.cached_property
    def rules(self) -> Mapping[str, str]:
        """Rule id → level, for every rule this contract names (WC-5)."""
        prefix = "rules."
        return {
            key[len(prefix) :]: value for key, value in self.keys_by_name.items() if key.startswith(prefix)
        }

    def effort(self, word: str | None, endpoint: str) -> str | None:
        """The word as it is, if this contract knows it; None stays None. Raises `SettingsError`."""
        known = self.keys_by_name["reasoning.efforts"]
        if word is None or word in known:
            return word
        said = f"use one of {', '.join(known)}" if known else "leave it out, this server takes none"
        raise SettingsError(
            f"effort {word!r} of endpoint {endpoint!r} is not known to its contract {self.id!r}; {said}.",
            next_command=f"surefoot contract show {self.id}",
        )

    def with_reasoning_protocol(self, name: str | None) -> Contract:
        """Lay an endpoint's `reasoning_protocol` over this contract (WC-4)."""
        if name is None:
            return self
        known = REASONING_PROTOCOLS.get(self.wire, {})
        if name not in known:
            said = f"use one of {', '.join(known)}" if known else "leave it out"
            raise SettingsError(
                f"reasoning_protocol {name!r} is not known on the wire {self.wire!r} of contract {self.id!r}; {said}."
            )
        laid = {f"reasoning.{key}": value for key, value in known[name].items()}
        rule = _PROTOCOL_RULES.get(self.wire, {}).get(name)
        if rule is not None and self.get(f"rules.{rule}", "off") == "off":
            laid[f"rules.{rule}"] = "suspect"
        origin = dict.fromkeys(laid, f"reasoning_protocol={name}")
        return Contract(self.id, {**self.keys_by_name, **laid}, {**self.origin, **origin})


def contract_ids(directories: Sequence[Path] = ()) -> list[str]:
    """Every contract that can be named: shipped ones and those in the user's `directories`."""
    return sorted(_files(tuple(directories)))


def resolve(contract_id: str, directories: Sequence[Path] = ()) -> Contract:
    """Resolve a contract with everything its bases give (WC-2).

    Raises:
        UsageError: no contract of that id.
        SettingsError: a file holds an unknown key, value or rule, a newer schema, or a loop of bases.
    """
    chain = _chain(contract_id, _files(tuple(directories)))
    values: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for name, given in reversed(chain):
        for key, value in given.items():
            if key in IDENTITY_KEYS:
                continue
            values[key] = value
            origin[key] = name
    for key in ("contract.id", "contract.schema", "contract.revision", "contract.tier"):
        values[key] = chain[0][1].get(key, IDENTITY_KEYS.get(key))
        origin[key] = contract_id
    missing = sorted(set(SCHEMA) - set(values))
    if missing:
        raise SettingsError(f"contract {contract_id!r} and its bases do not give the key {missing[0]!r}.")
    return Contract(contract_id, values, origin)


def resolve_for(endpoint: str, wire: str, contract_id: str, directories: Sequence[Path] = ()) -> Contract:
    """The contract of an endpoint. Raises as `resolve` does, and `SettingsError` where it is one of another wire."""
    contract = resolve(contract_id, directories)
    if contract.wire != wire:
        raise SettingsError(
            f"Endpoint {endpoint!r} speaks the wire {wire!r}, and its contract {contract_id!r} is one of another wire.",
            next_command=f"surefoot contract show compat/{wire}",
        )
    return contract


def show(contract_id: str, directories: Sequence[Path] = ()) -> list[str]:
    """The resolved keys, one line each, with the contract every value came from."""
    contract = resolve(contract_id, directories)
    lines = [f"{contract_id}  {contract.digest}"]
    width = max(len(key) for key in contract)
    for key in sorted(contract):
        value = _toml(contract[key])
        lines.append(f"{key.ljust(width)}  {value}  # {contract.origin[key]}")
    return lines


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items()) + " }"
    return str(value)


def _chain(contract_id: str, files: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """The contract and its bases, nearest first."""
    chain: list[tuple[str, Mapping[str, Any]]] = []
    name: str | None = contract_id
    while name is not None:
        if name not in files:
            raise _missing(contract_id, name, files)
        if any(name == seen for seen, _ in chain) or len(chain) >= _DEPTH:
            raise SettingsError(f"contract {contract_id!r}: its bases form a loop at {name!r}.")
        given = files[name]
        chain.append((name, given))
        name = given.get("contract.base")
        if name is None and chain[-1][0] not in ROOTS:
            name = "compat/" + chain[-1][0].partition("/")[2]
    return chain


def _missing(asked: str, name: str, files: Mapping[str, Any]) -> UsageError:
    wire = name.partition("/")[2]
    known = [one for one in sorted(files) if one.endswith("/" + wire)] or sorted(files)
    said = f"No contract is called {name!r}" + ("" if asked == name else f" (a base of {asked!r})")
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f" Did you mean {near[0]}?" if near else ""
    return UsageError(
        f"{said}.{hint} Known: {', '.join(known)}.",
        next_command=f"surefoot contract show {near[0] if near else 'compat/chat'}",
    )


@functools.lru_cache(maxsize=16)
def _files(directories: tuple[Path, ...]) -> Mapping[str, Mapping[str, Any]]:
    """Every contract file read once for these folders; a user's own file replaces a shipped one of its id."""
    found: dict[str, Mapping[str, Any]] = {}
    for directory in (SHIPPED, *directories):
        for path in sorted(directory.glob("*.toml")) if directory.is_dir() else ():
            given = read_file(path)
            found[given["contract.id"]] = given
    return found


def read_file(path: Path) -> Mapping[str, Any]:
    """Read one contract file into dotted keys, refusing whatever this version does not know (WC-1)."""
    try:
        parsed = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"contract file {str(path)!r} cannot be read: {error}.") from None
    return checked(parsed, str(path))


def checked(parsed: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    """Check parsed TOML against the key list and flatten it.

    Raises:
        SettingsError: names `place`, the key and what it may be.
    """
    head = parsed.get("contract")
    schema = head.get("schema") if isinstance(head, Mapping) else None
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise SettingsError(f"{place}: [contract] needs schema = 1.")
    if schema > 1:
        raise SettingsError(
            f"{place}: schema {schema} is newer than this surefoot reads (1); update surefoot."
        )
    flat = flatten(parsed)
    identity = flat.get("contract.id")
    if not isinstance(identity, str) or not _ID.match(identity):
        raise SettingsError(f"{place}: contract.id must look like 'profile/wire', e.g. 'acme/chat'.")
    for key, value in flat.items():
        fault = value_fault(key, value)
        if fault is not None:
            raise SettingsError(f"{place}: {fault}")
    return flat
