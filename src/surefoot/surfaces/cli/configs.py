"""`surefoot config` and `surefoot trust`: settings, their origin, and a person's word about a project.

Owns: how settings are printed. Does not own: which value holds (`config`).
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import click

from surefoot.config import EXAMPLE, Origin, Settings, load_settings, places, project_root, set_trust
from surefoot.errors import SettingsError, UsageError
from surefoot.settings_files import HEADER, KEY, dotted, left_out, read_settings
from surefoot.settings_table import SETTINGS, form_of
from surefoot.surfaces import plain
from surefoot.surfaces.cli.output import complain, look_here, say_json, say_lines
from surefoot.surfaces.cli.tongue import language_here
from surefoot.surfaces.phrases import translated


@click.group()
def config() -> None:
    """Settings, and where each value comes from."""


@config.command()
@click.option("--origin", is_flag=True, help="Name unit, default and source of each value.")
@click.option("--example", is_flag=True, help="Print a complete example file.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def show(origin: bool, example: bool, as_json: bool) -> None:
    """Show every setting that holds here."""
    if example:
        click.echo(EXAMPLE, nl=False)
        return
    settings = load_settings({}, os.environ, Path.cwd())
    language = look_here(settings).language
    complain(translated(one, language) for one in settings.warnings)
    if as_json:
        document = {
            path: {
                "value": _public(path, value),
                "origin": str(where),
                "unit": _unit(path),
                "default": _default(path),
            }
            for path, value, where in settings.rows()
        }
        click.echo(json.dumps(document, ensure_ascii=False, indent=1))
        return
    rows = [[path, _shown(_public(path, value))] for path, value, _ in settings.rows()]
    if origin:
        rows = [
            [
                path,
                _shown(_public(path, value)),
                _unit(path),
                _shown(_default(path)),
                _origin(where, language),
            ]
            for path, value, where in settings.rows()
        ]
    say_lines(plain.table(rows))


@config.command()
def path() -> None:
    """Print where the settings file lies, or would lie."""
    click.echo(str(places(os.environ).settings_file))


@config.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def get(name: str, as_json: bool) -> None:
    """Print the value of one setting that holds here."""
    settings = load_settings({}, os.environ, Path.cwd())
    found = {path: _public(path, value) for path, value, _ in settings.rows()}
    if name not in found:
        said = "is not set here" if form_of(name) else "is no setting"
        near = "" if form_of(name) else _near(name, [*found, *SETTINGS])
        raise UsageError(f"{name} {said}.{near}", next_command="surefoot config show")
    say_lines([json.dumps(found[name], ensure_ascii=False) if as_json else _shown(found[name])])


@config.command("set", short_help="Write one setting into your own settings file.")
@click.argument("name")
@click.argument("value")
def set_(name: str, value: str) -> None:
    """Write one setting into your own settings file; other lines stay as they are."""
    form = form_of(name)
    if form is None:
        raise UsageError(
            f"There is no setting {name!r}.{_near(name, SETTINGS)}", next_command="surefoot config show"
        )
    meant = _meant(value)
    wrong = form.problem(meant)
    if wrong is not None and isinstance(meant, int | float) and form.problem(value) is None:
        meant, wrong = value, None
    if wrong is not None:
        raise UsageError(f"{name} = {value}: expected {wrong}.", next_command="surefoot config show --origin")
    file = places(os.environ).settings_file
    read_settings(file)  # what is wrong with it is said of the file as it stands
    before = file.read_text(encoding="utf-8-sig") if file.exists() else ""
    try:
        after = with_value(before, name, meant)
    except ValueError:
        raise UsageError(
            f"{file} writes {name.rpartition('.')[0]} in a form that config set cannot change; write {name} by hand.",
            next_command="surefoot config show --example",
        ) from None
    _write(file, after)
    try:
        load_settings({}, os.environ, Path.cwd())
    except SettingsError:
        _write(file, before)
        raise
    click.echo(f"{file}: {name} = {json.dumps(meant, ensure_ascii=False)}")


@config.command()
@click.option(
    "--recovery",
    type=click.Choice(["snapshot", "action", "process", "error"]),
    help="Of what `recover --json` prints, or of what is sent to a session, instead.",
)
@click.option("--output", is_flag=True, help="Of a line of `--output-format json` or `stream-json`, instead.")
@click.option("--export", is_flag=True, help="Of what `session export` writes, instead.")
def schema(recovery: str | None, output: bool, export: bool) -> None:
    """Print the JSON Schema of the settings file."""
    named = {"output": output, "export": export, f"tool-recovery-{recovery}": recovery is not None}
    asked = [name for name, wanted in named.items() if wanted]
    if len(asked) > 1:
        raise UsageError("--recovery, --output and --export name different schemas; ask for one.")
    if asked:
        click.echo(published_schema(asked[0]), nl=False)
        return
    click.echo(json.dumps(schema_of_settings(), ensure_ascii=False, indent=1))


def published_schema(name: str) -> str:
    """The text of a published schema, as it ships with the package (TR-148, UX-32)."""
    return resources.files("surefoot").joinpath(f"schemas/{name}.json").read_text("utf-8")


def _near(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, sorted(set(known)), n=3, cutoff=0.6)
    return f" Did you mean {', '.join(close)}?" if close else ""


def _meant(text: str) -> Any:
    """The value a word means: JSON where it is some, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def with_value(text: str, name: str, value: Any) -> str:
    """A settings file with one value set; every other line, comments included, stays.

    Raises `ValueError` where the file writes the table in a form that takes no line more, as an inline table does.
    """
    lines = text.splitlines()
    table, _, key = name.rpartition(".")
    under = header = sibling = ""
    place = 0 if not table else None
    index = 0
    while index < len(lines):
        head, written = HEADER.match(lines[index]), KEY.match(lines[index])
        after = index + 1
        if head:
            under = dotted(head.group(1))
            place, header = (after, under) if under == table else (place, header)
        elif written:
            after = _end_of_value(lines, index)
            reached = ".".join(part for part in (under, dotted(written.group(1))) if part)
            if reached == name:
                comment = _comment(lines[index]) if after == index + 1 else ""
                lines[index:after] = [f"{written.group(1)} = {_toml(value)}{comment}"]
                return _checked(lines)
            if place is None and reached.rpartition(".")[0] == table:
                place, sibling = after, written.group(1).rpartition(".")[0] + "."
        index = after
    if place is None:
        lines += [*([""] if lines else []), f"[{'.'.join(map(_bare, table.split('.')))}]"]
        place = len(lines)
    lines.insert(place, f"{'' if header else sibling}{_bare(key)} = {_toml(value)}")
    return _checked(lines)


def _end_of_value(lines: list[str], first: int) -> int:
    """Where the value that begins in this line is over: a list or a long text has lines of its own."""
    for last in range(first + 1, len(lines) + 1):
        try:
            tomllib.loads("\n".join(lines[first:last]))
        except tomllib.TOMLDecodeError:
            continue
        return last
    return first + 1


def _comment(line: str) -> str:
    """What a line says behind its value, with the space before it."""
    for found in re.finditer(r"\s*#", line):
        try:
            tomllib.loads(line[: found.start()])
        except tomllib.TOMLDecodeError:
            continue  # a text that holds this sign
        return line[found.start() :]
    return ""


def _checked(lines: list[str]) -> str:
    text = "\n".join(lines) + "\n"
    tomllib.loads(text)
    return text


def _bare(part: str) -> str:
    return part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else _toml(part)


def _toml(value: Any) -> str:
    """JSON's texts, numbers, switches and lists are TOML as well."""
    return json.dumps(value, ensure_ascii=False)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = file.resolve()  # a link, as people have who keep such files elsewhere, goes on leading there
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(file)


_JSON_TYPES: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "switch": {"type": "boolean"},
    "number": {"type": "number"},
    "seconds": {"type": "number"},
    "words": {"type": "array", "items": {"type": "string"}},
    "map": {"type": "object"},
    "any": {},
}


def schema_of_settings() -> dict[str, Any]:
    """The JSON Schema of the settings file, made from the table of settings."""
    root: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}
    for path, form in SETTINGS.items():
        parts = path.split(".")
        place = root
        for part in parts[:-1]:
            place = _below(place, part)
            place.setdefault("type", "object")
        leaf = dict(_JSON_TYPES.get(form.kind, {}))
        if form.allowed:
            leaf["enum"] = list(form.allowed)
        if form.ends:
            leaf["minimum"], leaf["maximum"] = form.ends
        if form.unit:
            leaf["description"] = form.unit
        if form.default is not None:
            leaf["default"] = list(form.default) if isinstance(form.default, tuple) else form.default
        _below(place, parts[-1]).update(leaf)
    return root


def _below(place: dict[str, Any], part: str) -> dict[str, Any]:
    """The schema of one key; `*` stands for any."""
    if part == "*":
        found: dict[str, Any] = place.setdefault("additionalProperties", {})
        return found
    properties: dict[str, Any] = place.setdefault("properties", {})
    child: dict[str, Any] = properties.setdefault(part, {})
    return child


@config.command()
@click.option("--explain", metavar="CALL", help="Say which rule decides a call: 'Bash(git push -f)'.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def check(explain: str | None, as_json: bool) -> None:
    """Read every settings file and say what is wrong with it."""
    from surefoot.app import examine
    from surefoot.offering import unmatched

    warnings: list[str] = []
    try:
        settings = load_settings({}, os.environ, Path.cwd())
        language = look_here(settings).language
        if explain is not None:
            complain(translated(one, language) for one in settings.warnings)
            _explain(settings, explain, as_json=as_json)
            return
        warnings = [*settings.warnings, *unmatched(settings, directory=Path.cwd())]
        complain(translated(one, language) for one in warnings)
        examine(settings)
    except SettingsError as error:
        if as_json:
            say_json({"ok": False, "warnings": warnings, "error": error.message})
        raise
    count = len(warnings)
    if as_json:
        say_json({"ok": not count, "warnings": warnings, "error": None})
        return
    told = f"settings: {count} warning{'s' * (count > 1)}" if count else "settings: ok"
    say_lines([translated(told, language)])


def _explain(settings: Settings, call: str, *, as_json: bool) -> None:
    """Which rule decides a call, and where it is written (UX-44)."""
    from surefoot.ruling import ruling
    from surefoot.surfaces.words import in_language
    from surefoot.surfaces.words_chat import why_asked
    from surefoot.surfaces.words_tools import RULINGS

    found = ruling(settings, call, directory=Path.cwd(), environ=os.environ)
    written, kind = settings.origins["permissions.mode"], found.effect.effect_class.value
    if as_json:
        facts = {"verdict": found.verdict, "rule": found.rule, "list": found.kind, "written": found.written}
        more = {"tool": found.tool, "class": kind, "reach": found.effect.reach, "reason": found.reason}
        say_json({"call": call, **facts, **more, "mode": found.mode, "mode_origin": str(written)})
        return
    language = look_here(settings).language

    def told(key: str, **values: str) -> str:
        return in_language(RULINGS[key], language).format(**values)

    lines = [f"{told(found.verdict)}: {why_asked(found.reason, language)}"]
    if found.kind is None:
        lines.append(told("no_rule", mode=found.mode, origin=_origin(written, language)))
    else:
        lines.append(told("rule", rule=str(found.rule), name=f"permissions.{found.kind}"))
        lines += [told("written", where=where) for where in found.written]
    reach = ", ".join(found.effect.reach) or "-"
    say_lines([*lines, told("call", tool=found.tool, kind=kind, reach=reach)])


def _origin(where: Origin, language: str) -> str:
    """Who set a value, in words, with the place."""
    from surefoot.surfaces.words import in_language
    from surefoot.surfaces.words_asides import ORIGINS

    sources = ", ".join(in_language(ORIGINS[one], language) for one in where.source.split(", "))
    return f"{sources} ({where.where})" if where.where else sources


def _unit(name: str) -> str:
    form = form_of(name)
    return form.unit if form else ""


def _default(name: str) -> Any:
    form = form_of(name)
    return form.default if form else None


def _public(path: str, value: Any) -> Any:
    """Headers by their names: a value may be a key."""
    is_header = path.endswith(".headers") and isinstance(value, Mapping)
    return dict.fromkeys(value, "…") if is_header else value


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else value


@click.command()
@click.argument("directory", required=False, type=click.Path(exists=True, file_okay=False))
@click.option("--revoke", is_flag=True, help="Take the word back.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def trust(directory: str | None, revoke: bool, as_json: bool) -> None:
    """Accept this project's settings files, MCP servers and packs as they are now."""
    root = project_root(Path(directory or "."))
    set_trust(places(os.environ), root, trusted=not revoke)
    files = list(left_out(root))
    if as_json:
        say_json({"root": str(root), "trusted": not revoke, "files": files})
        return
    names = ", ".join(files) or "no settings files yet"
    told = f"{root}: no longer trusted ({names})" if revoke else f"{root}: trusted ({names})"
    say_lines([translated(told, language_here())])
