"""Which tools there are under these settings, and what is said of their calls.

Owns: the built-in tools as the settings want them, the packs in use with the owner's own words
beside them (EC-8, EC-35, EC-38), the rows of `surefoot tools`, their permission rules and
which names in them mean no tool. Does not own: wiring them to a
session (`app`), what a tool does (`tools`), which value of a setting holds (`config`).
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from surefoot.config import Settings, ToolWord
from surefoot.core.effects import EVERYTHING, Effect
from surefoot.core.model import EffectClass
from surefoot.runtime.equipment import BY_ARGUMENTS
from surefoot.runtime.permission import Rules, parse_rule, parse_rules, speaks_of
from surefoot.runtime.tools import Place, Tool
from surefoot.settings_hooks import SESSION_EVENTS, HookSetting
from surefoot.tools.ask import ask_tool
from surefoot.tools.files.toolset import file_tools
from surefoot.tools.packs.checking import check
from surefoot.tools.packs.judging import Judges, with_packs
from surefoot.tools.packs.reading import Pack, PackEntry, find_pack, read_pack_file
from surefoot.tools.place import find_place
from surefoot.tools.processes.background import background_tool
from surefoot.tools.recovery_tool import recovery_tool
from surefoot.tools.shell import shell_tool
from surefoot.tools.todo import todo_tool
from surefoot.tools.worker import Worker
from surefoot.verifiers.files import FilesVerifier

JUDGES = Judges(shell=lambda command, place: _shell_effect(command, place))
OWN_WORDS = "settings"
"""The pack that is made of the tables `tools.*` of a settings file."""
UNLISTED = ("Hosted", "Hook")
"""Names of rules for calls that no tool of the list makes: requests with hosted tools, hooks."""


def built_in_tools(
    settings: Settings,
    *,
    worker: Worker,
    verifier: FilesVerifier,
    reach_of: Callable[[str], tuple[str, ...]] = lambda attempt_id: (),
) -> list[Tool]:
    """The tools of surefoot itself, as these settings want them."""
    values = settings.values
    tools = [
        *file_tools(worker=worker, verifier=verifier),
        shell_tool(
            at_deadline=values.get("tools.shell.at_deadline", "stop"),
            push_window_seconds=values.get("tools.shell.push_window_seconds"),
        ),
        background_tool(reach_of),
        ask_tool(),
        todo_tool(),
        recovery_tool(),
    ]
    if values.get("tools.http.offered"):
        from surefoot.tools.web import HttpService, http_tool  # offered to few

        tools.append(http_tool([HttpService(**table) for table in settings.http_services.values()]))
    return tools


def judged(tools: Iterable[Tool], settings: Settings) -> list[Tool]:
    """The tools as packs and the owner's own words have them. Raises `SettingsError`."""
    packs = packs_in_use(settings)
    return [with_packs(tool, packs, JUDGES) for tool in tools]


def packs_in_use(settings: Settings) -> list[Pack]:
    """The packs that `packs.use` names, the owner's own words, and those of a trusted project, which can only
    tighten (EC-35, EC-38).

    Raises `SettingsError` for a pack that is named and cannot be accepted.
    """
    packs = [find_pack(name, [settings.places.settings_folder / "packs"]) for name in settings.packs]
    for source in ("owner", "project"):
        said = [word for word in settings.tool_words if word.source == source]
        if said:
            entries = {word.name: _entry(word) for word in said}
            packs.append(Pack(name=OWN_WORDS, version="", entries=entries, source=source))
    project = settings.root / ".surefoot" / "packs"
    if settings.trusted and project.is_dir():
        packs += [read_pack_file(file, source="project") for file in sorted(project.glob("*.toml"))]
    return packs


def _entry(word: ToolWord) -> PackEntry:
    return PackEntry(
        name=word.name,
        effect_class=EffectClass(word.effect_class),
        reach=word.reach,
        registered=True,
        why=word.reason,
    )


def _shell_effect(command: str, place: Place) -> Effect:
    from surefoot.tools.classify.shell import classify_shell  # its grammar is heavy to load

    return classify_shell(command, place).effect


# Listings -------------------------------------------------------------------------------------


def tool_findings(settings: Settings, *, directory: Path) -> list[dict[str, Any]]:
    """Rows of `surefoot tools check`: where registry and packs in use disagree (EC-54)."""
    found = check(declared(settings, directory), packs_in_use(settings))
    return [dataclasses.asdict(finding) for finding in found]


def tool_table(settings: Settings, *, directory: Path) -> list[dict[str, Any]]:
    """Rows of `surefoot tools`: each tool with its class and reach where they are fixed, and the reason of who set
    them (EC-8); then the hooks of the settings, where `call` stands for the reach of the call they belong to."""
    packs = packs_in_use(settings)
    tools = [_tool_row(tool, packs) for tool in declared(settings, directory)]
    return tools + [_hook_row(number, hook) for number, hook in enumerate(settings.hooks, start=1)]


def unmatched(settings: Settings, *, directory: Path) -> list[str]:
    """Permission rules and named tools of `--tools` and of endpoints that mean no tool, with the nearest name (UX-25).

    A rule for an MCP server is left alone: its tools are known when it is started. Raises `SettingsError` for a rule
    that cannot be read.
    """
    permissions = settings.permissions
    said = {"allow": permissions.allow, "ask": permissions.ask, "deny": permissions.deny}
    rules = [(kind, parse_rule(text)) for kind, texts in said.items() for text in texts]
    asked = settings.offered_tools or ()
    offered = _offered_by_endpoints(settings)
    if not rules and not asked and not offered:
        return []
    every = dataclasses.replace(settings, values={**settings.values, "tools.http.offered": True})
    tools = declared(every, directory)
    names = sorted({name for tool in tools for name in (tool.name, *tool.aliases, tool.rule_name) if name})
    rule_names = sorted({tool.rule_name or tool.name for tool in tools})
    told = [
        f"{_origin(settings, kind)}: the rule {rule.text!r} means no tool{_near(rule.name, rule_names)}"
        for kind, rule in rules
        if not rule.name.startswith(("mcp__", *UNLISTED)) and not any(speaks_of(rule, tool) for tool in tools)
    ]
    told += [f"--tools: {name!r} means no tool{_near(name, names)}" for name in _unknown(asked, names)]
    return told + [
        f"{place} names {name!r}, which is no tool{_near(name, names)}"
        for place, given in offered.items()
        for name in _unknown(given, names)
    ]


def _unknown(given: Iterable[str], names: Sequence[str]) -> list[str]:
    return [name for name in given if name not in names and not name.startswith("mcp__")]


def _offered_by_endpoints(settings: Settings) -> dict[str, Sequence[str]]:
    """What the owner's own lines offer the models of endpoints, by the place of each line."""
    found = {f"endpoints.{name}.tools": one.tools for name, one in settings.endpoints.items() if one.tools}
    written = {path: settings.origins[path].where for path in found if path in settings.origins}
    return {f"{path} ({where})": found[path] for path, where in written.items() if where}


def _origin(settings: Settings, kind: str) -> str:
    found = settings.origins.get(f"permissions.{kind}")
    if found and found.source == "flags":
        return {"allow": "--allowed-tools", "deny": "--disallowed-tools"}[kind]
    return f"permissions.{kind} ({found.where or found.source})" if found else f"permissions.{kind}"


def _near(name: str, names: Sequence[str]) -> str:
    """The name that is most like it, whatever its letters' case."""
    known = {one.lower(): one for one in names}
    found = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    return f"; did you mean {known[found[0]]}?" if found else "; see surefoot tools"


def rules_of(settings: Settings, place: Place) -> Rules:
    """The permission rules of these settings, as they hold at a place."""
    said = settings.permissions
    roots = [str(root) for root in place.roots]
    home = None if place.home is None else str(place.home)
    return parse_rules(said.allow, said.ask, said.deny, roots=roots, home=home)


def declared(settings: Settings, directory: Path) -> list[Tool]:
    """The tools of these settings by their declarations; none of them can be run."""
    place = find_place(directory)
    with closing(Worker()) as worker:  # made for its tools' declarations; none of them runs
        return built_in_tools(settings, worker=worker, verifier=FilesVerifier(roots=lambda: place.roots))


def readers(settings: Settings, directory: Path) -> list[str]:
    """Names of the tools on offer that only read, whatever their arguments."""
    wanted = settings.offered_tools
    return [
        tool.name
        for tool in judged(declared(settings, directory), settings)
        if isinstance(tool.effect, Effect) and tool.effect.effect_class is EffectClass.READ_ONLY
        if wanted is None or {tool.name, tool.rule_name, *tool.aliases} & set(wanted)
    ]


def _tool_row(tool: Tool, packs: Sequence[Pack]) -> dict[str, Any]:
    effect = tool.effect
    said = None if callable(effect) else effect.effect_class.value
    reach = None if callable(effect) else list(effect.reach)
    entries = [(pack, entry) for pack in packs for entry in pack.named(tool.name)]
    fixed = [entry for pack, entry in entries if pack.source == "owner" and not entry.rules]
    if fixed:
        entry = max(fixed, key=lambda one: one.effect_class.strictness)
        read = entry.effect_class is EffectClass.READ_ONLY
        said, reach = entry.effect_class.value, [] if read else list(entry.reach or (EVERYTHING,))
    return {
        "name": tool.name,
        "rule": tool.rule_name,
        "class": said or BY_ARGUMENTS,
        "reach": reach,
        "verifier": None if tool.verifier is None else tool.verifier.name,
        "reason": "; ".join(f"{pack.name}: {entry.why}" for pack, entry in entries if entry.why) or None,
        "description": tool.description.split(". ")[0],
    }


def _hook_row(number: int, hook: HookSetting) -> dict[str, Any]:
    return {
        "name": f"{hook.event} {number}",
        "rule": hook.matcher or EVERYTHING,
        "class": hook.effect_class or BY_ARGUMENTS,
        "reach": _hook_reach(hook),
        "verifier": None,
        "reason": None,
        "description": hook.command,
    }


def _hook_reach(hook: HookSetting) -> list[str]:
    if hook.reach is not None:
        return list(hook.reach)
    if hook.effect_class == EffectClass.READ_ONLY.value:
        return []
    return ["repo:."] if hook.event in SESSION_EVENTS else ["call", "repo:."]
