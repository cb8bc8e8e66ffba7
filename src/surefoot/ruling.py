"""Which permission rule would decide a call, and where it is written.

Owns: reading a call as people write one (`Bash(git push -f)`), asking the rules as a session here would,
finding the line of a rule. Does not own: the rules (`runtime.permission`), the tools (`offering`).
Promises: nothing is run and nobody is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.config import Settings, variable_of
from surefoot.core.effects import Effect
from surefoot.offering import declared, judged, rules_of
from surefoot.runtime.permission import Rule, decide, mode_of, parse_rule
from surefoot.runtime.tools import Tool, classify
from surefoot.settings_files import project_files, read_settings
from surefoot.tools.place import find_place

KINDS = ("deny", "ask", "allow")


@dataclass(frozen=True, slots=True)
class Ruling:
    """What would happen to a call without anybody's answer, and why."""

    verdict: str
    """`allow`, `ask` or `deny`."""
    rule: str | None
    """The rule that decides, as written; None when the mode or the class of the call does."""
    kind: str | None
    """Which list it stands in: `deny`, `ask` or `allow`."""
    written: tuple[str, ...]
    """Where: files with their line, or variables."""
    reason: str
    mode: str
    tool: str
    effect: Effect


def ruling(settings: Settings, call: str, *, directory: Path, environ: Mapping[str, str]) -> Ruling:
    """Decide a call written as a rule, `Tool(what it would do)`. Raises `SettingsError` when it cannot be read."""
    asked = parse_rule(call)
    place = find_place(directory, settings.added_folders)
    tool = _tool(settings, asked.name, directory)
    arguments = _arguments(tool, asked)
    subjects = None
    if asked.pattern is not None:
        subjects = () if tool.subjects is None else tool.subjects(arguments, place)
    reads = () if subjects is None or tool.reads is None else tool.reads(arguments, place)
    said, rules = settings.permissions, rules_of(settings, place)
    effect = classify(tool, arguments, place)
    verdict = decide(rules, mode_of(said.mode), tool, subjects, effect, reads)
    kinds = sorted(KINDS, key=lambda one: one != verdict.kind.value)
    kind = next((one for one in kinds if verdict.rule in getattr(said, one)), None)
    written = () if kind is None else tuple(_written(settings, kind, str(verdict.rule), environ))
    return Ruling(
        verdict.kind.value, verdict.rule, kind, written, verdict.reason, said.mode, tool.name, effect
    )


def _tool(settings: Settings, name: str, directory: Path) -> Tool:
    """The tool of this name; one that is not known before its server starts is of no declared class."""
    tools = judged(declared(settings, directory), settings)
    for fits in (
        lambda tool: tool.name == name,
        lambda tool: tool.rule_name == name,
        lambda tool: name in tool.aliases,
    ):
        found = next(filter(fits, tools), None)
        if found is not None:
            return found
    return Tool(name=name, description="", parameters={})


def _arguments(tool: Tool, asked: Rule) -> dict[str, Any]:
    """The arguments of the call, as far as what was written tells them."""
    text = asked.pattern or ""
    if tool.rule_name == "Http":
        method, gap, url = text.partition(" ")
        return {"method": method, "url": url.strip()} if gap else {"method": "GET", "url": text}
    names: Sequence[str] = tool.parameters.get("required", ())
    known = [
        name
        for name in ("command", "path", "source", "target")
        if name in tool.parameters.get("properties", {})
    ]
    return {**dict.fromkeys(names, ""), **dict.fromkeys(known, text)}


def _written(settings: Settings, kind: str, rule: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Every place that has the rule, those that count most first."""
    path = f"permissions.{kind}"
    shared, own = project_files(settings.root) if settings.trusted else ((), ())
    above, below = settings.places.managed_files, (*own, *shared, settings.places.settings_file)
    yield from (found for file in above for found in _lines(file, path, rule))
    if rule in environ.get(variable_of(path), ""):
        yield variable_of(path)
    yield from (found for file in below for found in _lines(file, path, rule))


def _lines(file: Path, path: str, rule: str) -> Iterator[str]:
    for one in read_settings(file):
        if one.path == path and rule in one.value:
            lines = file.read_text(encoding="utf-8").splitlines()
            quoted = (f'"{rule}"', f"'{rule}'")
            line = next(
                (
                    n
                    for n, text in enumerate(lines, 1)
                    if n >= one.line and any(part in text for part in quoted)
                ),
                one.line,
            )
            yield f"{file}:{line}"
