"""What a command line means: a command, a prompt, or a mistake.

Owns: the table of commands, lazy loading of their modules, the rule that tells a
prompt from a command (UX-14), exit codes of usage faults, and the last line of
defence against faults of ours. Does not own: what a command does.
"""

from __future__ import annotations

import difflib
import errno
import itertools
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from surefoot.errors import LedgerError, RecoveryRefused, SessionHeld, Signal, SurefootError, UsageError
from surefoot.surfaces.cli import completing
from surefoot.surfaces.cli.output import SCREEN_READER_FLAG, begin_command, tell
from surefoot.surfaces.cli.talk import talk
from surefoot.surfaces.cli.tongue import language_here, spoken
from surefoot.surfaces.ways import next_of

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("talk:run", "One prompt to the end, no questions (also: exec, surefoot -p)."),
    "exec": ("talk:run", ""),
    "recover": ("recover:recover", "Calls that may have happened: list, look, decide."),
    "recover-context": ("recovering:recover_context", ""),
    "session": ("sessions:session", "Sessions of this project: list, show, resume."),
    "timeline": ("timelines:timeline", "What ran when in a session, and where it died."),
    "sessions": ("sessions:session", ""),
    "ledger": ("ledgers:ledger", "The ledger of this project: verify, path, prune."),
    "config": ("configs:config", "Settings and where each comes from: show, path."),
    "trust": ("configs:trust", "Accept the settings files of this project."),
    "doctor": ("doctor:doctor", "Check settings, ledger, keys and terminal."),
    "tools": ("extras:tools", "The tools a model is offered, with class and reach."),
    "models": ("endpoints:models", "The models of the settings."),
    "auth": ("endpoints:auth", "Which key is found where, never the key: status."),
    "contract": ("extras:contract", "What an endpoint demands of replayed history."),
    "demo": ("extras:demo", "A killed agent that tells the truth, in under a minute."),
    "emulate": ("extras:emulate", "A strict model server for tests, on this machine."),
    "completion": ("extras:completion", "Print the completion script of a shell."),
}
"""Name → module and attribute, help. A row without help is another name of one above."""
MEANT: dict[str, str] = {
    "help": "--help",
    "version": "--version",
    "continue": "-c",
    "resume": "session resume",
    "list": "session list",
    "show": "session show",
    "fork": "session fork",
    "export": "session export",
    "login": "auth status",
    "settings": "config",
    "verify": "ledger verify",
    "inspect": "recover inspect",
    "confirm": "recover confirm",
    "deny": "recover deny",
}
"""Words that are commands elsewhere, or below a command of ours, and what they are here (UX-14)."""
REFUSALS = {errno.ENOENT, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO}
"""What a system refuses for reasons of its own: a full or read-only disk, a missing right, a folder that is gone."""


class Lazy(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, (_, help_text) in COMMANDS.items() if help_text]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        module, _, attribute = place[0].partition(":")
        # By name, so that one command does not load what only another needs (UX-139).
        import importlib

        found = importlib.import_module(f"surefoot.surfaces.cli.{module}")
        command = getattr(found, attribute)
        return spoken(command, language_here()) if isinstance(command, click.Command) else None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names with their help from the table: a shell that asks for them loads no command (UX-59)."""
        rows = [(name, told) for name, (_, told) in COMMANDS.items() if told and name.startswith(incomplete)]
        return [
            *(CompletionItem(name, help=told) for name, told in rows),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, help_text) for name, (_, help_text) in COMMANDS.items() if help_text]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]}, add_help_option=False)
@click.option("-C", "--cd", "directory", type=click.Path(exists=True, file_okay=False), default=None)
@click.option("--plain", is_flag=True)
@SCREEN_READER_FLAG
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto")
@click.pass_context
def commands(ctx: click.Context, directory: str | None, plain: bool, color: str) -> None:
    """Commands of surefoot."""
    ctx.obj = {"plain": plain, "color": color}
    if directory:
        os.chdir(directory)


def run(arguments: Sequence[str]) -> int:
    """Run one command line; the exit code."""
    sys.setswitchinterval(0.001)  # a commit waits for its thread; in commands only, never on import
    printed_to = sys.stdout
    begin_command()
    try:
        return _dispatched(normalised(arguments))
    except click.exceptions.Exit as leave:
        return int(leave.exit_code)
    except click.exceptions.NoArgsIsHelpError as mistake:
        # A group without its command: the help is the answer, and no fault is told in front of it.
        tell(mistake.format_message() + "\n")
        return 2
    except click.ClickException as mistake:
        # On one line, also where the parser would list the choices below each other (UX-9).
        told = " ".join(mistake.format_message().split())
        _tell(told, "SF-USAGE", _help_of(mistake), arguments)
        return 2
    except click.Abort:
        return 130
    except KeyboardInterrupt:
        return 130
    except SystemExit:
        # click ends a command whose reader went away by itself, with 1, and puts a quiet stream in the place of ours.
        if sys.stdout is printed_to:
            raise
        sys.stdout = printed_to
        return refused_by_system(BrokenPipeError())
    except SurefootError as error:
        code = str(error.facts.get("code") or error.code)
        if first_word(arguments) == "recover" and "--json" in arguments:
            _say_object(str(error.facts.get("refusal") or code), error.message)
        else:
            _tell(error.message, code, next_of(error), arguments)
        return exit_of(error)
    except Signal as error:
        _tell(str(error), "SF-SIGNAL", "surefoot doctor")
        return 1
    except OSError as error:
        return refused_by_system(error)


def refused_by_system(error: OSError) -> int:
    """What the system did not let us do, in its own words; what is a fault of ours is raised again."""
    if isinstance(error, BrokenPipeError):
        from surefoot.surfaces.cli.output import forget_output

        forget_output()
        return 141
    if error.errno not in REFUSALS:
        raise error
    if isinstance(error, FileNotFoundError):
        if _is_somewhere():
            raise error
        _tell("The working directory is gone.", "SF-USAGE", "cd ~")
        return 2
    where = f" ({error.filename})" if error.filename else ""
    if error.errno == errno.ENOSPC and not error.filename:
        from surefoot.surfaces.cli.output import forget_output

        forget_output()  # what is left in the buffer would be refused again at exit
    _tell(f"The system did not allow it: {error.strerror}{where}.", "SF-ERROR", "surefoot doctor")
    return 1


def _is_somewhere() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True


def fault(error: Exception) -> int:
    """Tell a fault of ours; with SUREFOOT_DEBUG it is raised again, for whoever looks for it."""
    if os.environ.get("SUREFOOT_DEBUG"):
        raise error
    _tell(f"A fault of surefoot: {type(error).__name__}: {error}", "SF-FAULT", "surefoot doctor")
    return 1


def exit_of(error: SurefootError) -> int:
    """The exit code of a command that stopped with this error."""
    if isinstance(error, UsageError):
        return 2
    if isinstance(error, SessionHeld):
        return 8
    if isinstance(error, LedgerError):
        return 1
    if isinstance(error, RecoveryRefused):
        return 4
    return {"SF-PROVIDER-CREDENTIALS": 6, "SF-OUTCOME-UNKNOWN": 3, "SF-EXTRA-MISSING": 2}.get(error.code, 1)


def _dispatched(arguments: list[str]) -> int:
    if "_SUREFOOT_COMPLETE" in os.environ:
        offer = completing.plainly_asked(os.environ)
        if offer is not None:
            completed = click.Command(
                "surefoot", params=[click.Argument(["words"], nargs=-1, shell_complete=offer)]
            )
        else:
            completed = talk if completing.of_a_run(os.environ) else commands
        return _code(completed.main(arguments, prog_name="surefoot", standalone_mode=False))
    word = first_word(arguments)
    if word is None and ("-h" in arguments or "--help" in arguments):
        sys.stdout.write(help_text())
        sys.stdout.flush()  # here a reader that is gone has an exit code, at the end of the interpreter it has not
        return 0
    if word in COMMANDS and not _print_asked(arguments, word):
        return _code(commands.main(arguments, prog_name="surefoot", standalone_mode=False))
    if word is not None and not _is_prompt(arguments, word):
        raise click.UsageError(_no_command(arguments, word))
    return _code(talk.main(arguments, prog_name="surefoot", standalone_mode=False))


def _no_command(arguments: Sequence[str], word: str) -> str:
    """The nearest commands by their first name, and how the same words would be a prompt (UX-14)."""
    names = [name for name, (_, told) in COMMANDS.items() if told]
    near = [MEANT[word]] if word in MEANT else difflib.get_close_matches(word, names, n=3, cutoff=0.6)
    near = near or difflib.get_close_matches(word, names, n=1, cutoff=0.0)
    words = " ".join(arguments[list(arguments).index(word) :])
    prompt = shlex.join(["surefoot", words] if " " in words else ["surefoot", "--", words])
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"{word!r} is no command.{hint} As a prompt: {prompt}"


def _code(answer: object) -> int:
    """Without standalone mode click returns the code of `ctx.exit` instead of raising it."""
    return answer if isinstance(answer, int) else 0


def normalised(arguments: Sequence[str]) -> list[str]:
    """`-r` may stand alone: what follows is its value only when it can be a session's name or id.

    `--debug` takes its topics behind `=` only, so that a prompt behind it is a prompt.
    """
    given = list(arguments)
    for index, argument in enumerate(given):
        if argument == "--":
            break
        if argument == "--debug":
            given[index] = "--debug=all"
        if argument not in ("-r", "--resume"):
            continue
        following = given[index + 1] if index + 1 < len(given) else ""
        if following and not _wordy(following):
            given[index : index + 2] = [f"--resume={following}"]
        else:
            given[index] = "--resume="
    return given


def first_word(arguments: Sequence[str]) -> str | None:
    """The first argument that is neither a flag nor the value of one."""
    with_value = {
        name
        for option in talk.params
        if isinstance(option, click.Option) and not option.is_flag
        for name in option.opts
    } - {"--debug"}
    skip = False
    for index, argument in enumerate(arguments):
        if skip:
            skip = False
        elif argument == "--":
            return arguments[index + 1] if index + 1 < len(arguments) else None
        elif argument.startswith("-") and len(argument) > 1:
            skip = argument in with_value
        else:
            return argument
    return None


def _wordy(text: str) -> bool:
    return any(letter.isspace() for letter in text) or text.startswith("-")


def _print_asked(arguments: Sequence[str], word: str) -> bool:
    before = arguments[: list(arguments).index(word)]
    return "-p" in before or "--print" in before


def _is_prompt(arguments: Sequence[str], word: str) -> bool:
    if _wordy(word) or _print_asked(arguments, word):
        return True
    if "-p" in arguments or "--print" in arguments:
        return True
    return "--" in arguments and list(arguments).index("--") < len(arguments) - 1


def help_text() -> str:
    """The help of the whole program: flags of a run, then the commands."""
    context = spoken(talk, language_here()).make_context("surefoot", [], resilient_parsing=True)
    formatter = context.make_formatter()
    talk.format_help(context, formatter)
    rows = [(name, text) for name, (_, text) in COMMANDS.items() if text]
    with formatter.section("Commands"):
        formatter.write_dl(rows)
    return formatter.getvalue() + "\n"


def _help_of(mistake: click.ClickException) -> str:
    context = getattr(mistake, "ctx", None)
    return f"{context.command_path} --help" if context is not None else "surefoot --help"


def _tell(message: str, code: str, next_command: str, arguments: Sequence[str] = ()) -> None:
    """One sentence, its code, and what to do next; on standard error.

    A run in print mode that could not begin says it on one last line, and with its document in the form that was
    asked for (UX-29, UX-30).
    """
    told, label, language = message.strip(), "next: ", language_here()
    printing = _is_print_run(arguments)
    if printing:
        _say_not_begun(arguments, told)
    if language != "en":
        from surefoot.surfaces.phrases import translated
        from surefoot.surfaces.words import say

        told, label = translated(told, language), say("end_next", language, command="")
    between = " " if printing else "\n"
    tell(f"{code}: {told}{between}{label}{next_command}\n")


def _is_print_run(arguments: Sequence[str]) -> bool:
    """Whether these words ask for one prompt to the end."""
    flags = _before_words(arguments)
    return "-p" in flags or "--print" in flags or first_word(flags) in ("run", "exec")


def _before_words(arguments: Sequence[str]) -> list[str]:
    given = list(arguments)
    return given[: given.index("--")] if "--" in given else given


def _say_not_begun(arguments: Sequence[str], message: str) -> None:
    """The document of a run that could not begin, when one was asked for (UX-34)."""
    flags = _before_words(arguments)
    asked = [after for flag, after in itertools.pairwise(flags) if flag == "--output-format"]
    asked += [flag.partition("=")[2] for flag in flags if flag.startswith("--output-format=")]
    if not {"json", "stream-json"} & set(asked):
        return
    from surefoot.surfaces.cli.output import say_json
    from surefoot.surfaces.verdict import Ending, Tally, result_document

    say_json(result_document(Ending(usage=True, reason=message), Tally()))


def _say_object(code: str, message: str) -> None:
    """Whoever asked for JSON gets the error as JSON, and nothing else (TR-149)."""
    from surefoot.surfaces.cli.output import say_json

    say_json({"code": code, "message": message.strip()})
