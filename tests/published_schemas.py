"""The published JSON schemas: written from the code, and told apart by who would break.

`--write` writes the files that ship with the package. What was published stays in
`tests/upgrade/schemas/`, one folder per version; `breaks` says whom a change would break.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from surefoot.core.schemas import NAMES, schema_of
from surefoot.surfaces.export_schema import export_schema
from surefoot.surfaces.output_schema import output_schema

ROOT = Path(__file__).parent.parent
SHIPPED = ROOT / "src/surefoot/schemas"
PUBLISHED = Path(__file__).parent / "upgrade/schemas"
SENT_TO_US = ("action", "process")
ALL = (*NAMES, "output", "export")
_OTHERS = {"output": output_schema, "export": export_schema}

Schema = Mapping[str, Any]


def made(name: str) -> Schema:
    """A schema as the code makes it."""
    return _OTHERS[name]() if name in _OTHERS else schema_of(name)


def text_of(name: str) -> str:
    """A schema as its file holds it."""
    return json.dumps(made(name), ensure_ascii=False, indent=1) + "\n"


def file_of(name: str) -> str:
    """The name of its file."""
    return f"{name}.json" if name in _OTHERS else f"tool-recovery-{name}.json"


def shipped(name: str) -> Path:
    """The file that ships."""
    return SHIPPED / file_of(name)


def breaks(old: Schema, new: Schema, *, sent: bool, place: str = "") -> Iterator[str]:
    """What of `new` breaks whoever was written for `old`: a reader of ours, or with `sent` a sender to us."""
    yield from _words(old, new, sent, place)
    kinds = (old.get("type"), new.get("type"))
    if kinds[0] != kinds[1] or old.get("$ref") != new.get("$ref"):
        yield f"{place}: another type"
    before, after = set(old.get("required", ())), set(new.get("required", ()))
    for field in sorted(after - before if sent else before - after):
        yield f"{place}/{field}: {'now demanded' if sent else 'no longer always there'}"
    for part in ("properties", "$defs"):
        was, now = old.get(part, {}), new.get(part, {})
        for field in was:
            if field not in now:
                yield f"{place}/{field}: gone"
            else:
                yield from breaks(was[field], now[field], sent=sent, place=f"{place}/{field}")
    if "items" in old:
        yield from breaks(old["items"], new.get("items", {}), sent=sent, place=f"{place}[]")
    for number, part in enumerate(old.get("anyOf", ())):
        others = new.get("anyOf", ())
        if number >= len(others):
            yield f"{place}: one form less"
        else:
            yield from breaks(part, others[number], sent=sent, place=place)
    if old.get("pattern") != new.get("pattern") and (sent or new.get("pattern") is None):
        yield f"{place}: another pattern"


def _words(old: Schema, new: Schema, sent: bool, place: str) -> Iterator[str]:
    """A word that goes breaks a sender who says it, and a new one a reader who knows them all (TR-8 bids it
    to read on, so only a word that goes is told there)."""
    gone = set(old.get("enum", ())) - set(new.get("enum", old.get("enum", ())))
    if gone:
        yield f"{place}: without {sorted(map(str, gone))}"


if __name__ == "__main__":
    if "--write" in sys.argv:
        SHIPPED.mkdir(exist_ok=True)
        for name in ALL:
            shipped(name).write_text(text_of(name), encoding="utf-8")
