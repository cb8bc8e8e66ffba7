"""Flags of a run: what somebody wants done, in which session, under which rules.

Owns: the flags of UX-15 and how they become settings. Does not own: the run
(`running`), the chat (`surfaces.chat`), printing (`printing`).
"""

from __future__ import annotations

import os
import re
import select
import stat
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surefoot.errors import UsageError
from surefoot.surfaces.cli import completing
from surefoot.surfaces.cli.output import (
    SCREEN_READER_FLAG,
    Look,
    complain,
    confirmed,
    is_person_here,
    look_here,
    say_lines,
)
from surefoot.surfaces.cli.run_inputs import (
    check_target,
    folders_of,
    joined,
    new_session_id,
    session_of,
    settings_of,
    words_of,
)
from surefoot.surfaces.cli.tongue import language_here
from surefoot.surfaces.phrases import translated

if TYPE_CHECKING:
    from surefoot.config import Settings
    from surefoot.surfaces.cli.diagnosing import Log
    from surefoot.surfaces.cli.final_answer import AnswerForm

FORMATS = ("text", "json", "stream-json")
INPUT_FORMATS = ("text", "stream-json")
FIRST_INPUT_SECONDS = 3.0
INPUT_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Wish:
    """What one command line asks for."""

    settings: Settings
    directory: Path
    prompt: str
    output: str
    look: Look
    go_on: bool = False
    """Continue the newest session here."""
    resume: str | None = None
    """A session to resume; empty for a choice from the list."""
    fork: bool = False
    """Go on in a copy of that session; it stays as it is (UX-52)."""
    name: str | None = None
    wait_seconds: float = 0
    take_over: bool = False
    timeout_seconds: float | None = None
    max_turns: int | None = None
    verbose: bool = False
    partial: bool = False
    """Whether `stream-json` has the pieces of a reply as they come."""
    last_message: Path | None = None
    """A file for the final answer."""
    session_id: str | None = None
    """The id of a new session."""
    kept: bool = True
    """False: the ledger is in memory and is gone with the run."""
    conversing: bool = False
    """Whether standard input brings messages, one line each, as long as it is open."""
    form: AnswerForm | None = None
    """What the final answer must fit."""
    log: Log | None = None
    """Where a diagnostic log goes; None for none."""


def _version(ctx: click.Context, option: click.Parameter, given: bool) -> None:
    if given:
        from surefoot import __version__

        say_lines([f"surefoot {__version__}"])
        ctx.exit(0)


def _options(command: Any) -> Any:
    """The flags shared by chat, `-p`, `run` and `exec`; in order of the help text."""
    choice = click.Choice
    flags = [
        click.argument("words", nargs=-1),
        click.option("--output-format", "output", type=choice(FORMATS), default="text", help="What is printed."),
        click.option("--input-format", "input_format", type=choice(INPUT_FORMATS), default="text",
                     help="stream-json: messages on standard input, one JSON line each, each a turn."),
        click.option("--include-partial-messages", "partial", is_flag=True,
                     help="With stream-json: the pieces of a reply as they come."),
        click.option("-o", "--output-last-message", "last_message", metavar="FILE",
                     help="Write the final answer to a file as well."),
        click.option("--json-schema", "json_schema", metavar="FILE|JSON",
                     help="The final answer must be JSON that fits this schema."),
        click.option("-c", "--continue", "go_on", is_flag=True, help="Go on with the newest session here."),
        click.option("-r", "--resume", metavar="[REF]", help="Go on with this session.",
                     shell_complete=completing.sessions),
        click.option("--fork-session", "fork", is_flag=True,
                     help="With -c or -r: go on in a copy; the session itself stays as it is."),
        click.option("-n", "--name", metavar="NAME", help="Name of a new session."),
        click.option("--session-id", "session_id", metavar="ID", help="The id of a new session; a UUID will do."),
        click.option("--no-session-persistence", "not_kept", is_flag=True,
                     help="With -p: keep nothing of the run on disk; only tools that read are offered."),
        click.option("--wait", "wait", metavar="SECONDS",
                     help="Wait while another process holds the session."),
        click.option("--take-over", is_flag=True, help="Take a held session over; asks at a terminal."),
        click.option("-m", "--model", metavar="ENDPOINT[/MODEL]", help="The model to use.",
                     shell_complete=completing.models),
        click.option("--effort", metavar="WORD", help="How much the model reasons: none, low, high …"),
        click.option("--permission-mode", metavar="MODE",
                     help="default, acceptEdits, plan, dontAsk or bypassPermissions."),
        click.option("--allowedTools", "--allowed-tools", "allowed", multiple=True, metavar="RULES",
                     help="Allow these without a question: Write, 'Bash(git status)'."),
        click.option("--disallowedTools", "--disallowed-tools", "disallowed", multiple=True,
                     metavar="RULES", help="Never allow these; stands before every other rule."),
        click.option("--tools", "offered", multiple=True, metavar="NAMES", help="Offer only these tools."),
        click.option("--dangerously-skip-permissions", "--yolo", "yolo", is_flag=True,
                     help="Allow everything that no deny rule names."),
        click.option("--settings", "more_settings", metavar="FILE|JSON",
                     help="Settings for this run; other flags stand above them."),
        click.option("--system-prompt", metavar="TEXT", help="Words in the place of the system text."),
        click.option("--system-prompt-file", metavar="FILE", help="The same, from a file."),
        click.option("--append-system-prompt", metavar="TEXT", help="Words behind the system text."),
        click.option("--append-system-prompt-file", metavar="FILE", help="The same, from a file."),
        click.option("--barrier", metavar="LEVEL", help="session, reach, action, advise or off."),
        click.option("--on-unknown", metavar="stop|continue", help="What an unattended run does with open calls."),
        click.option("--max-turns", metavar="N", help="Most model requests of this run; at least 1."),
        click.option("--timeout", "timeout", metavar="DURATION", help="End the run after 90s, 10m or 2h."),
        click.option("-C", "--cd", "directory", type=click.Path(exists=True, file_okay=False), metavar="DIR",
                     help="Work in this directory."),
        click.option("--add-dir", "added", multiple=True, metavar="DIR",
                     help="Work in this folder too; may stand several times."),
        click.option("--color", "colour", type=choice(["auto", "always", "never"]), default="auto",
                     help="Whether colour is written; NO_COLOR counts for auto."),
        click.option("--plain", is_flag=True, help="No boxes drawn over, no colour, no redraw."),
        SCREEN_READER_FLAG,
        click.option("-V", "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version,
                     help="The version."),
        click.option("-v", "--verbose", is_flag=True, help="Name each change of a receipt on standard error."),
        click.option("--debug", "debug", metavar="[=TOPIC,…]",
                     help="A diagnostic log on standard error: settings, session, model, tools, recovery, hooks."),
        click.option("--debug-file", "debug_file", metavar="FILE", help="The diagnostic log, at the end of a file."),
    ]  # fmt: skip
    for flag in reversed(flags):
        command = flag(command)
    return command


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    options_metavar="[FLAGS]",
    help="An agent whose tool calls tell the truth. Without -p: a chat in this directory.",
)
@click.option("-p", "--print", "printing", is_flag=True, help="One prompt to the end, no questions.")
@_options
@click.pass_context
def talk(ctx: click.Context, /, printing: bool, **flags: Any) -> None:
    """Chat, or one prompt with -p."""
    wish = wished(flags, printing=printing)
    ctx.exit(_printed(wish) if printing else _chatted(wish))


@click.command(
    help="One prompt to the end, no questions; the same as surefoot -p.", options_metavar="[FLAGS]"
)
@_options
@click.pass_context
def run(ctx: click.Context, /, **flags: Any) -> None:
    """One prompt to the end."""
    ctx.exit(_printed(wished(flags, printing=True)))


def _printed(wish: Wish) -> int:
    from surefoot.surfaces.cli.printing import print_run

    return print_run(wish)


def _chatted(wish: Wish) -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "A chat needs a terminal. For one prompt without questions use -p.",
            next_command='surefoot -p "PROMPT"',
        )
    from surefoot.surfaces.cli.chatting import chat_run

    return chat_run(wish)


def wished(flags: dict[str, Any], *, printing: bool) -> Wish:
    """Settings and prompt of a command line; asks for trust only on a terminal in a chat (UX-23)."""
    if flags["directory"]:
        os.chdir(flags["directory"])
    _refuse_together(flags, printing=printing)
    if flags["resume"]:
        flags = {**flags, "resume": session_of(flags["resume"])}
    directory = Path.cwd()
    if not printing:
        _ask_for_trust(directory)
    settings = _settings_of(flags, directory)
    look = look_here(settings, plain_flag=flags["plain"], colour=flags["colour"])
    if flags["go_on"] or flags["resume"] is not None:
        from surefoot.surfaces.cli.resumed import as_before  # nothing else reads a ledger before it is opened

        settings, told = as_before(settings, flags, look.language)
        complain(told)
    from surefoot.config import read_instructions  # not for the help text, which is answered at once
    from surefoot.settings_files import untold

    not_told = untold(read_instructions(directory, settings.places))
    warnings = [*settings.warnings, *not_told, *_unmatched(settings, directory)]
    complain(translated(one, look.language) for one in warnings)
    if flags["fork"] and not (flags["go_on"] or flags["resume"] is not None):
        raise UsageError(
            "--fork-session copies a session: say which with -r REF, or -c for the newest.",
            next_command="surefoot session list",
        )
    form, settings = _with_form(flags["json_schema"], settings)
    if flags["not_kept"]:
        settings = _reading_only(settings, directory)
        complain([translated(NOT_KEPT, look.language)])
    prompt = " ".join(flags["words"])
    conversing = flags["input_format"] == "stream-json"
    if printing and not conversing:
        prompt = _with_input(prompt)
        if not prompt.strip() and not (flags["go_on"] or flags["resume"] is not None):
            raise UsageError("There is no prompt: give one as an argument or on standard input.")
    return Wish(
        settings=settings,
        directory=directory,
        prompt=prompt,
        output=flags["output"],
        look=look,
        go_on=flags["go_on"],
        resume=flags["resume"],
        fork=flags["fork"],
        name=flags["name"],
        wait_seconds=seconds("--wait", flags["wait"], least=0.0) or 0.0,
        take_over=flags["take_over"],
        timeout_seconds=seconds("--timeout", flags["timeout"]),
        max_turns=_turns(flags["max_turns"]),
        verbose=flags["verbose"],
        partial=flags["partial"],
        last_message=check_target(flags["last_message"]),
        session_id=None if flags["session_id"] is None else new_session_id(flags["session_id"]),
        kept=not flags["not_kept"],
        conversing=conversing,
        form=form,
        log=_log_of(flags, settings),
    )


def _log_of(flags: dict[str, Any], settings: Settings) -> Log | None:
    """The diagnostic log that was asked for, begun with where the settings come from."""
    if flags["debug"] is None and flags["debug_file"] is None:
        return None
    from surefoot.surfaces.cli.diagnosing import Log

    log = Log(flags["debug"], None if flags["debug_file"] is None else Path(flags["debug_file"]))
    log.settings(settings)
    return log


NOT_KEPT = (
    "Nothing of this run is kept: no receipts, no resume, no card after a kill. Only readers are offered."
)
"""What `--no-session-persistence` gives up, said before anything runs."""


def _refuse_together(flags: dict[str, Any], *, printing: bool) -> None:
    """Flags that mean nothing where they stand. Raises `UsageError`."""
    goes_on = flags["go_on"] or flags["resume"] is not None
    if flags["session_id"] is not None and goes_on:
        raise UsageError("--session-id names a new session; with -c or -r there is one already.")
    if flags["not_kept"] and (goes_on or flags["name"]):
        raise UsageError("--no-session-persistence keeps no session: it goes without -c, -r and -n.")
    if not printing:
        alone = {"--no-session-persistence": "not_kept", "--json-schema": "json_schema"}
        given = [flag for flag, name in alone.items() if flags[name]]
        given += ["--input-format stream-json"] if flags["input_format"] != "text" else []
        if given:
            raise UsageError(f"{given[0]} belongs to a run without questions: add -p.")
    if flags["input_format"] == "stream-json" and flags["output"] != "stream-json":
        raise UsageError(
            "--input-format stream-json needs --output-format stream-json: each message has its answer."
        )


def _settings_of(flags: dict[str, Any], directory: Path) -> Settings:
    """What the settings and the flags above them say. Raises `UsageError`, `SettingsError`."""
    from surefoot.config import load_settings

    said = _as_settings(flags)
    _refuse_wrong(said)
    said = joined(settings_of(flags["more_settings"]), said)
    return replace(
        load_settings(said, os.environ, directory),
        system_text=_system_text(flags),
        offered_tools=tuple(rules_of(flags["offered"])) or None,
        added_folders=folders_of(flags["added"]),
        effort=flags["effort"] or None,
    )


def _with_form(given: str | None, settings: Settings) -> tuple[AnswerForm | None, Settings]:
    """The form of `--json-schema`, and settings whose system text asks the model for it."""
    if given is None:
        return None, settings
    from surefoot.surfaces.cli.final_answer import AnswerForm  # its validator is heavy to load

    form = AnswerForm(given)
    ours, more = settings.system_text
    behind = "\n\n".join(part for part in (more, form.wish()) if part)
    return form, replace(settings, system_text=(ours, behind))


def _reading_only(settings: Settings, directory: Path) -> Settings:
    """The same settings with nothing on offer but tools that only read, those of a provider left out."""
    from surefoot.offering import readers

    endpoints = {name: replace(one, hosted_tools=()) for name, one in settings.endpoints.items()}
    names = readers(settings, directory)
    return replace(settings, endpoints=endpoints, offered_tools=tuple(names))


def _system_text(flags: dict[str, Any]) -> tuple[str | None, str | None]:
    words = ("system_prompt", "append_system_prompt")
    ours, more = (words_of(flags[one], flags[f"{one}_file"], f"--{one.replace('_', '-')}") for one in words)
    return ours, more


NAMED = {
    "permissions.mode": "--permission-mode",
    "recovery.barrier": "--barrier",
    "recovery.on_unknown": "--on-unknown",
}
"""Settings that a flag sets with one word of a few."""


def _refuse_wrong(said: dict[str, Any]) -> None:
    """Name the flag, where the settings could only name the setting. Raises `UsageError`."""
    from surefoot.settings_table import form_of

    for path, flag in NAMED.items():
        form, value = form_of(path), said[path]
        problem = form.problem(value) if form is not None and value is not None else None
        if problem:
            raise UsageError(f"{flag} {value!r} must be {problem}.", next_command="surefoot --help")


def _unmatched(settings: Any, directory: Path) -> list[str]:
    """Rules and names that mean no tool; where there are none, nothing is loaded to find that out."""
    said = settings.permissions
    if not (said.allow or said.ask or said.deny or settings.offered_tools):
        return []
    from surefoot.offering import unmatched

    return unmatched(settings, directory=directory)


def _as_settings(flags: dict[str, Any]) -> dict[str, Any]:
    mode = "bypassPermissions" if flags["yolo"] else flags["permission_mode"]
    return {
        "model": flags["model"],
        "permissions.mode": mode,
        "permissions.allow": rules_of(flags["allowed"]) or None,
        "permissions.deny": rules_of(flags["disallowed"]) or None,
        "recovery.barrier": flags["barrier"],
        "recovery.on_unknown": flags["on_unknown"],
    }


def rules_of(given: tuple[str, ...]) -> list[str]:
    """Rules of several flags; commas and spaces outside brackets separate them.

    An open bracket keeps all that follows: cut there, `Bash(git` would become a rule for every command.
    """
    found: list[str] = []
    for text in given:
        depth, rule = 0, ""
        for letter in text:
            depth = max(0, depth + (letter == "(") - (letter == ")"))
            if depth == 0 and (letter == "," or letter.isspace()):
                found, rule = [*found, rule], ""
            else:
                rule += letter
        found.append(rule)
    return [rule for rule in found if rule]


UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
"""Seconds of each unit in which a duration may be written."""


def seconds(flag: str, text: str | None, *, least: float = 0.001) -> float | None:
    """Seconds of `90`, `90s`, `500ms`, `10m`, `2h`, `1h30m`. Raises `UsageError` with the flag's name."""
    if text is None:
        return None
    part = r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)"
    plain = re.fullmatch(r"\d+(?:\.\d+)?", text.strip())
    parts = [] if plain else re.findall(part, text) if re.fullmatch(rf"\s*(?:{part}\s*)+", text) else None
    total = float(text) if plain else sum(float(number) * UNITS[unit] for number, unit in parts or ())
    if parts is None or total < least:
        raise UsageError(f"{flag} {text!r} is no duration. Write 90s, 10m or 2h.")
    return total


def _turns(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) < 1:
        raise UsageError(f"--max-turns {text!r} must be a whole number from 1.")
    return int(text)


def _with_input(prompt: str) -> str:
    """The prompt, and behind it what a pipe or a file on standard input holds."""
    mode = os.fstat(0).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or (stat.S_ISSOCK(mode) and not prompt)):
        return prompt
    if prompt and stat.S_ISFIFO(mode) and not select.select([0], [], [], FIRST_INPUT_SECONDS)[0]:
        told = "Nothing came on standard input; going on with the prompt alone."
        complain([translated(told, language_here())])
        return prompt
    content = sys.stdin.buffer.read(INPUT_BYTES + 1)
    if len(content) > INPUT_BYTES:
        raise UsageError("Standard input holds more than 8 MiB. Put it in a file and name the file.")
    text = content.decode("utf-8", "replace").strip("\n")
    return "\n\n".join(part for part in (prompt, text) if part.strip())


def _ask_for_trust(directory: Path) -> None:
    """Asked once per repository root, on a terminal only; Enter is no."""
    if not is_person_here():
        return
    from surefoot.config import is_trusted, places, project_root, set_trust
    from surefoot.settings_files import left_out

    where, root = places(os.environ), project_root(directory)
    names = left_out(root)
    if not names or is_trusted(where, root):
        return
    language = language_here()
    told = f"{root} has files that change settings or start programs: {', '.join(names)}."
    complain([translated(told, language)])
    if confirmed(translated("Trust them as they are now?", language), language):
        set_trust(where, root, trusted=True)
