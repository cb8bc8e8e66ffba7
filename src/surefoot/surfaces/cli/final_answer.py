"""The form of the final answer that `--json-schema` asks for (UX-37).

Owns: reading the schema, the words that ask a model for it, what is wrong with an answer. Does not own: asking
(`printing`), the documents (`verdict`).
Promises nothing is fetched: a schema that points elsewhere is refused when it is read.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from surefoot.errors import UsageError
from surefoot.surfaces.cli.run_inputs import schema_text

MOST_FAULTS = 20
FAULT_LENGTH = 300
_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\n(.*?)\n?```\s*", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Judged:
    """An answer as it was read: its `value` in one line of JSON, or what is wrong with it."""

    value: Any = None
    faults: tuple[str, ...] = ()

    def text(self) -> str:
        """The value as one line."""
        return json.dumps(self.value, ensure_ascii=False)


class AnswerForm:
    """A JSON schema that a final answer must fit."""

    def __init__(self, given: str) -> None:
        """Read a file, or JSON itself. Raises `UsageError`, `SettingsError`."""
        import jsonschema
        import referencing

        self.schema = schema_text(given)
        kind = jsonschema.validators.validator_for(self.schema, default=jsonschema.Draft202012Validator)
        try:
            kind.check_schema(self.schema)
        except jsonschema.SchemaError as error:
            place = "/".join(map(str, error.absolute_path)) or "(root)"
            raise UsageError(f"--json-schema is no valid JSON schema at {place}.") from None
        far = [] if '"$id"' in json.dumps(self.schema) else _far_references(self.schema)
        if far:
            raise UsageError(
                f"--json-schema points to {far[0]}; references may only lead into the schema itself."
            )
        # An empty registry: a reference to anywhere else is never fetched.
        self._validator = kind(self.schema, registry=referencing.Registry())

    def wish(self) -> str:
        """What the model is told of it."""
        form = json.dumps(self.schema, ensure_ascii=False)
        return (
            "Your final answer, after all work is done, must be one JSON value that is valid under this JSON schema,"
            f" and nothing else: no words around it, no code fence.\n{form}"
        )

    def judge(self, text: str) -> Judged:
        """The value in an answer, one code fence around it taken off; or its faults, one line each."""
        import referencing.exceptions

        fenced = _FENCED.fullmatch(text)
        try:
            value = json.loads(fenced.group(1) if fenced else text, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            return Judged(faults=(f"it is not JSON: {error}",))
        try:
            found = sorted(
                self._validator.iter_errors(value), key=lambda one: list(map(str, one.absolute_path))
            )
        except referencing.exceptions.Unresolvable as error:
            return Judged(faults=(f"the schema cannot be followed: {error}"[:FAULT_LENGTH],))
        return Judged(value, tuple(_line(error) for error in found[:MOST_FAULTS]))

    def again(self, judged: Judged) -> str:
        """The one request for a better answer."""
        faults = "\n".join(f"- {one}" for one in judged.faults)
        return (
            "Your final answer does not fit the JSON schema:\n"
            f"{faults}\nGive the corrected JSON value and nothing else. Run nothing again for it."
        )


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no JSON number")


def _line(error: Any) -> str:
    place = "".join(f"/{part}" for part in error.absolute_path) or "(root)"
    told = f"{place}: {error.message}"
    return told if len(told) <= FAULT_LENGTH else told[:FAULT_LENGTH] + "…"


def _far_references(schema: Any) -> list[str]:
    """References that lead out of the schema to an address."""
    if isinstance(schema, list):
        return [far for one in schema for far in _far_references(one)]
    if not isinstance(schema, dict):
        return []
    found = [
        far for key, one in schema.items() if key not in ("const", "enum") for far in _far_references(one)
    ]
    aim = schema.get("$ref")
    return [aim, *found] if isinstance(aim, str) and not aim.startswith("#") else found
