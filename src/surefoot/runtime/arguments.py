"""Argument validation: what a model wrote against what a tool declares, before anything else.

Owns: strict JSON and JSON Schema in one answer, and the words of a fault for the model
(PR-66 to PR-69). Does not own: which tool a name means (`runtime.tools`), what happens
next (`runtime.barrier`). A fault never holds an argument value and never repairs one.

Nothing here does I/O: a schema that points elsewhere is a broken declaration.
`jsonschema` is imported with the first call. Text above 64 KiB is to be checked off the
event loop by the caller (TR-10).
"""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from surefoot.core.canonical import (
    ARGUMENTS_BYTES,
    ARGUMENTS_DEPTH,
    Arguments,
    ArgumentsInvalid,
    digest_json,
    read_arguments,
)
from surefoot.runtime.tools import Tool

ON_LOOP_CHARACTERS = 16 << 10
"""Text up to here is at most 64 KiB and is read on the event loop, longer text beside it (TR-10)."""
_KEPT_VALIDATORS = 512
_PATH_LENGTH = 200
_EXPECTED_LENGTH = 300
_MOST_LINES = 40


@dataclass(frozen=True, slots=True)
class ArgumentLimits:
    """Bounds of argument text and of a fault told to the model."""

    max_bytes: int = ARGUMENTS_BYTES
    max_depth: int = ARGUMENTS_DEPTH
    fault_bytes: int = 4096


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a call cannot start, in words for the model."""

    text: str
    code: str = "arguments_invalid"
    """`arguments_invalid`, or `schema_unusable` when the declaration itself is broken."""

    @property
    def host(self) -> bool:
        """True for a fault of the tool's declaration, which new arguments cannot cure (PR-68)."""
        return self.code == "schema_unusable"


DEFAULT_LIMITS = ArgumentLimits()


@dataclass(frozen=True, slots=True)
class _Compiled:
    parameters: Mapping[str, Any]
    """Kept so that the identity used as cache key stays taken."""
    validator: Any
    digest: str
    broken: str | None


_compiled: OrderedDict[tuple[int, str | None], _Compiled] = OrderedDict()
_compiling = threading.Lock()
"""Long text is read in threads, which share the validators."""


def validate(tool: Tool, text: str | None, limits: ArgumentLimits = DEFAULT_LIMITS) -> Arguments | Fault:
    """Check argument text against a tool's declaration; never raises, never changes a value."""
    with _compiling:
        schema = _compile(tool)
    if schema.broken is not None:
        return _host_fault(tool, schema.digest, schema.broken, limits)
    try:
        arguments = read_arguments(text, max_bytes=limits.max_bytes, max_depth=limits.max_depth)
    except ArgumentsInvalid as error:
        return _fault(
            tool, schema.digest, [f"- (root): json: expected one strict JSON object; {error}"], limits
        )
    import referencing.exceptions

    try:
        errors = sorted(schema.validator.iter_errors(arguments.value), key=_place)
    except (referencing.exceptions.Unresolvable, RecursionError, re.error) as error:
        # A schema can be valid and still not usable: a reference that leads nowhere, or into itself.
        return _host_fault(tool, schema.digest, type(error).__name__, limits)
    if not errors:
        # A key that the model makes up anew for each try would make each try another action.
        return arguments if tool.key_argument is None else arguments.apart_from(tool.key_argument)
    lines = list(dict.fromkeys(_line(error) for error in errors))
    hint = _wrapper_hint(tool, schema, arguments.value)
    return _fault(tool, schema.digest, lines, limits, hint)


def _compile(tool: Tool) -> _Compiled:
    key = (id(tool.parameters), tool.key_argument)
    found = _compiled.get(key)
    if found is not None and found.parameters is tool.parameters:
        _compiled.move_to_end(key)
        return found
    made = _compiled[key] = _make(tool)
    while len(_compiled) > _KEPT_VALIDATORS:
        _compiled.popitem(last=False)
    return made


def _make(tool: Tool) -> _Compiled:
    import jsonschema
    import referencing

    try:
        digest = digest_json(tool.parameters).removeprefix("sha256:")[:16]
        schema = _as_asked(json.loads(json.dumps(dict(tool.parameters))), tool.key_argument)
        if schema.get("type", "object") != "object":
            return _Compiled(tool.parameters, None, digest, "its schema is not one of an object")
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        kind.check_schema(schema)
    except (TypeError, ValueError, RecursionError):
        return _Compiled(tool.parameters, None, "0" * 16, "its schema is not JSON")
    except jsonschema.SchemaError as error:
        place = "/".join(map(str, error.absolute_path)) or "(root)"
        return _Compiled(tool.parameters, None, digest, f"its schema is invalid at {place}")
    # An empty registry: a reference to anywhere else is never fetched, it fails.
    return _Compiled(tool.parameters, kind(schema, registry=referencing.Registry()), digest, None)


def _as_asked(schema: dict[str, Any], key_argument: str | None) -> dict[str, Any]:
    """The runtime fills the key argument itself (TR-17), so the model need not."""
    required = schema.get("required")
    if key_argument is not None and isinstance(required, list) and key_argument in required:
        return {**schema, "required": [name for name in required if name != key_argument]}
    return schema


def _place(error: Any) -> tuple[str, str]:
    return _path(error.absolute_path), str(error.validator)


def _path(parts: Iterable[Any]) -> str:
    path = "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)
    return (path if len(path) <= _PATH_LENGTH else path[:_PATH_LENGTH] + "…") or "(root)"


def _line(error: Any) -> str:
    """One fault: where, which keyword, and what the declaration expects; never what was given."""
    return f"- {_path(error.absolute_path)}: {error.validator}: expected {_expected(error)}"


def _expected(error: Any) -> str:
    keyword, wanted = error.validator, error.validator_value
    if keyword == "required" and isinstance(error.instance, Mapping):
        said = "the key " + ", ".join(json.dumps(name) for name in wanted if name not in error.instance)
    elif keyword in ("additionalProperties", "unevaluatedProperties"):
        known = sorted((error.schema.get("properties") or {}) if isinstance(error.schema, Mapping) else ())
        said = "no other keys than " + (", ".join(map(json.dumps, known)) or "none")
    elif keyword in ("anyOf", "oneOf"):
        said = f"{'one' if keyword == 'oneOf' else 'any'} of {len(wanted)} forms"
    elif keyword == "enum":
        said = "one of " + json.dumps(wanted, ensure_ascii=False)
    else:
        said = wanted if isinstance(wanted, str) else json.dumps(wanted, ensure_ascii=False, default=str)
    return said if len(said) <= _EXPECTED_LENGTH else said[:_EXPECTED_LENGTH] + "…"


def _wrapper_hint(tool: Tool, schema: _Compiled, value: Mapping[str, Any]) -> str | None:
    """PR-68: the whole object was put inside one more `arguments`; said, never rewritten."""
    declared = tool.parameters
    plain = not any(key in declared for key in ("anyOf", "oneOf", "allOf", "$ref"))
    if set(value) != {"arguments"} or not plain or "arguments" in (declared.get("properties") or {}):
        return None
    inner = value["arguments"]
    if isinstance(inner, str):
        try:
            inner = read_arguments(inner).value
        except ArgumentsInvalid:
            return None
    if not isinstance(inner, dict) or not schema.validator.is_valid(inner):
        return None
    return 'Hint: give these keys at the top level; there is no outer "arguments".'


def _fault(
    tool: Tool, digest: str, lines: list[str], limits: ArgumentLimits, hint: str | None = None
) -> Fault:
    head = [
        f"The arguments of this call of {tool.name} do not fit its schema {digest}. Nothing was started.",
        *lines[:_MOST_LINES],
    ]
    tail = [
        *([hint] if hint else []),
        "Call it again with corrected arguments. Permission rules still apply to it.",
    ]
    return Fault(_fitted("\n".join(head), "\n".join(tail), limits.fault_bytes))


def _host_fault(tool: Tool, digest: str, why: str, limits: ArgumentLimits) -> Fault:
    head = (
        f"The tool {tool.name} cannot be called: {why} (schema {digest}). This is a fault of its declaration; "
        "other arguments cannot cure it. Nothing was started."
    )
    tail = "Go on without this tool, or tell the user. Permission rules still apply to every other call."
    return Fault(_fitted(head, tail, limits.fault_bytes), "schema_unusable")


def _fitted(head: str, tail: str, most_bytes: int) -> str:
    """Cut the middle, between code points, so that what to do is always said (PR-67)."""
    room = most_bytes - len(tail.encode()) - 5
    encoded = head.encode("utf-8", "replace")
    if len(encoded) > room:
        head = encoded[: max(room, 0)].decode("utf-8", "ignore") + "…"
    return f"{head}\n{tail}"
