"""Every sentence with an `SF-` code, line of the doctor and text of help has its row in both Chinese languages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
import pytest

import surefoot
from surefoot import errors
from surefoot.core.limits import LimitInvalid
from surefoot.providers.diagnosis import Refusal, error_of
from surefoot.surfaces import words_doctor, words_faults, words_help, words_mistakes
from surefoot.surfaces.cli.entry import COMMANDS, commands
from surefoot.surfaces.cli.talk import talk
from surefoot.surfaces.phrases import help_words, translated

SOURCE = Path(surefoot.__file__).parent
RAISED = {
    name for name, found in vars(errors).items() if isinstance(found, type) and issubclass(found, Exception)
} - {"ToolError"} | {LimitInvalid.__name__}  # what a tool says is for the model
FOR_PROGRAMS = {"library.py", "errors.py", "runtime/guarded.py", "runtime/tools.py", "runtime/inside.py"}
"""What these raise reaches whoever writes Python, in English as every traceback."""
PUT_TOGETHER = {
    "{} {}.": ("'x' names no session of this project.", "'x' fits more than one session."),
    "{} {}.{}": ("a.b is not set here.", "a.b is no setting. Did you mean a.c?"),
    "There is no setting {}.{}": ("There is no setting 'a'.", "There is no setting 'a'. Did you mean b, c?"),
    "No tool is called {}.{}": ("No tool is called 'x'.", "No tool is called 'x'. Did you mean y?"),
    "{}.{} Known: {}.": (
        "No contract is called 'a/chat'. Known: b/chat.",
        "No contract is called 'a' (a base of 'c'). Did you mean b? Known: b.",
    ),
    "{} {}; nothing of a reply ran.": (
        "The model's server of endpoint 'a' (http://a) could not be connected to; nothing of a reply ran.",
    ),
    "{} sent a reply that cannot be decompressed.": (
        "The model's server of endpoint 'a' (http://a) sent a reply that cannot be decompressed.",
    ),
    "{} sent more than {} MiB.": ("The model's server of endpoint 'a' (http://a) sent more than 64 MiB.",),
    "{} is {}: {}; a bound cannot be switched off": (),  # the settings refuse it first, in words of their own
    "{} is {}: {}": (),
    "{} is {}, which is outside its range: {}": (),
    "The system did not allow it: {}{}.": (
        "The system did not allow it: Permission denied.",
        "The system did not allow it: Permission denied (/a).",
    ),
}
"""Sentences whose parts are chosen where they are made, with the whole ones that can come of it."""
TABLES: dict[str, Mapping[str, tuple[str, str]]] = {
    "mistakes": words_mistakes.MISTAKES,
    "parser": words_mistakes.PARSER,
    "mistake parts": words_mistakes.MISTAKE_PARTS,
    "faults": words_faults.FAULTS,
    "fault parts": words_faults.FAULT_PARTS,
    "doctor": words_doctor.CHECKS,
    "help": words_help.HELP,
}
HAN = re.compile(r"[\u4e00-\u9fff]")


def bare(text: str) -> str:
    return re.sub(r"\{\w*\}", "{}", text)


ROWS = {bare(text) for name, table in TABLES.items() if name != "help" for text in table}


def sentence(node: ast.expr) -> str:
    """The fixed words of an expression, with {} for each thing that differs from case to case."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(v.value) if isinstance(v, ast.Constant) else "{}" for v in node.values)
    return "{}"


def choices(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.IfExp):
        yield from choices(node.body)
        yield from choices(node.orelse)
    else:
        yield sentence(node)


def calls(file: Path, names: set[str]) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = node.func
            name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
            if name in names:
                yield name, node


def raised() -> dict[str, str]:
    """Every sentence that an error of ours is made with, and where."""
    found = {}
    for file in sorted(SOURCE.rglob("*.py")):
        place = file.relative_to(SOURCE).as_posix()
        if place.startswith("testing/") or place in FOR_PROGRAMS:
            continue
        for _, node in calls(file, RAISED | {"_tell", "Full"}):
            for text in choices(node.args[0]) if node.args else ():
                found[text] = f"{place}:{node.lineno}"
    return {text: place for text, place in found.items() if re.search(r"[A-Za-z]{2}", text)}


def test_ux_11_every_sentence_with_a_code_has_a_row() -> None:
    missing = {
        text: place for text, place in raised().items() if text not in ROWS and text not in PUT_TOGETHER
    }
    assert not missing, "give each a row in words_mistakes or words_faults"


@pytest.mark.parametrize("language", ["zh-Hans", "zh-Hant"])
def test_ux_11_sentences_that_are_put_together_are_told_whole(language: str) -> None:
    for whole in PUT_TOGETHER.values():
        for text in whole:
            assert HAN.search(translated(text, language)), text


def test_ux_11_every_line_of_the_doctor_has_a_row() -> None:
    positions = {"Check": (2,), "blame": (1, 2)}
    told: set[str] = set()
    files = [SOURCE / f"surfaces/cli/{name}.py" for name in ("doctor", "checks")]
    for name, node in [found for file in files for found in calls(file, set(positions))]:
        for position in positions[name]:
            told.update(choices(node.args[position]) if position < len(node.args) else ())
    commands_or_facts = re.compile(r"(surefoot|export|pip|chmod) .*")
    needed = {one for one in told if re.search(r"[A-Za-z]{2}", one) and not commands_or_facts.fullmatch(one)}
    whole_below = {"{} is {}", "{} listed in the background", "{} may have happened; {}"}
    assert not {one for one in needed if one not in ROWS} - whole_below
    for told_text in (
        "/a is trusted",
        "/a is not trusted; its settings files are left out",
        "3 calls may have happened; decide before you install an older version, which promises nothing about them",
        "commands end with this container, an out-of-memory kill of the group",
        "2 sessions, 1 open call",
        "1 command listed in the background",
        "1 ledger, 4 sessions",
    ):
        assert not re.search(r"[A-Za-z]{3}", translated(told_text, "zh-Hant").replace("/a", ""))


def shown() -> dict[str, str]:
    """Every text of help, and whose it is."""
    found = {told: name for name, (_, told) in COMMANDS.items() if told}
    with click.Context(commands) as context:
        pending: list[tuple[str, click.Command | None]] = [("", talk)]
        pending += [(name, commands.get_command(context, name)) for name in COMMANDS]
    while pending:
        name, command = pending.pop()
        assert command is not None
        texts = [command.help, command.short_help, *(getattr(one, "help", None) for one in command.params)]
        found |= {text: name for text in texts if text}
        if isinstance(command, click.Group) and command is not commands:
            pending += [(f"{name} {below}", one) for below, one in command.commands.items()]
    return found


def test_ux_11_every_text_of_help_has_a_row_and_no_row_is_left_over() -> None:
    own = {"Show this message and exit.", "Usage: ", "Options", "Commands"}
    assert set(words_help.HELP) == set(shown()) | own


@pytest.mark.parametrize("table", TABLES)
def test_ux_11_every_row_is_whole_in_both_languages(table: str) -> None:
    for english, texts in TABLES[table].items():
        places = set(re.findall(r"\{(\w+)\}", english))
        assert len(texts) == 2
        for text in texts:
            assert set(re.findall(r"\{(\w+)\}", text)) <= places, english
            assert (
                HAN.search(text)
                or text in (english, english.replace(", ", "，"), english.replace(". ", "。"))
                or (
                    not re.search(
                        r"[a-z]{4}",
                        re.sub(
                            r"\{\w+\}|SF-|TERM=|SQLite|apsw|acceptEdits|plan|dontAsk|bypassPermissions",
                            "",
                            english,
                        ),
                    )
                    or english.startswith(("default,", "session,"))
                )
            ), english


def test_ux_11_facts_are_carried_over_and_foreign_text_stays_as_it_is() -> None:
    text = "/home/a b/config.toml:3: recovery.barrier must be one of session, reach."
    assert (
        translated(text, "zh-Hans")
        == "/home/a b/config.toml:3：recovery.barrier 必须是以下之一：session, reach。"
    )
    assert translated(text, "en") == text
    assert (
        translated("some text of a server, at its place", "zh-Hans") == "some text of a server, at its place"
    )
    with pytest.raises(KeyError):
        help_words("no such text", "zh-Hant")


@pytest.mark.parametrize("language", ["zh-Hans", "zh-Hant"])
@pytest.mark.parametrize("kind", ["auth", "quota"])
@pytest.mark.parametrize("status", [401, None])
def test_pr_17_a_refused_key_and_a_spent_account_are_told_whole(
    kind: str, status: int | None, language: str
) -> None:
    told = translated(str(error_of(Refusal(kind, status, "empty")).message), language)
    assert not re.search(r"refused|says|status", told) and (status is None or "401" in told)
