"""Nothing that a person reads is left in English: what surfaces say by themselves, and what they are given to say."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import surefoot
from surefoot import offering
from surefoot.config import Origin, load_settings
from surefoot.ledger.port import Finding, Report
from surefoot.surfaces import (
    words_asides,
    words_doctor,
    words_evidence,
    words_faults,
    words_mistakes,
)
from surefoot.surfaces.cli import configs, ledgers
from surefoot.surfaces.phrases import translated
from surefoot.surfaces.words_help import HELP

SOURCE = Path(surefoot.__file__).parent
SURFACES = SOURCE / "surfaces"
TABLES: dict[str, Mapping[str, tuple[str, str]]] = {
    "questions": words_asides.QUESTIONS,
    "warnings": words_asides.WARNINGS,
    "findings": words_asides.FINDINGS,
    "lines": words_asides.LINES,
    "tools": words_asides.TOOLS,
    "seen": words_evidence.SEEN,
    "not shown": words_evidence.NOT_SHOWN,
}
WITH_CODE = (
    words_mistakes.MISTAKES,
    words_mistakes.MISTAKE_PARTS,
    words_mistakes.PARSER,
    words_faults.FAULTS,
    words_faults.FAULT_PARTS,
    words_doctor.CHECKS,
)
HAN = re.compile(r"[\u4e00-\u9fff]")
BOTH = ("zh-Hans", "zh-Hant")


def bare(text: str) -> str:
    return re.sub(r"\{\w*\}", "{}", text)


ROWS = {bare(text) for table in (*TABLES.values(), *WITH_CODE) for text in table} | set(HELP)

PUT_TOGETHER = {
    " or ": "between two names in a sentence with a code",
    "from key_command": "part of a line of the doctor, which has a row",
    "in {}": "the same",
    " Did you mean {}?": "end of a sentence with a code; its whole has a row of its own",
    "{} {}.{}": "the same: the sentences of a setting that is not there",
    "is not set here": "the same",
    "is no setting": "the same",
    "There is no setting {}.{}": "the same",
    "No tool is called {}.{}": "the same",
    "{} is no command.{} As a prompt: {}": "the same",
    "{}: {} · {} sessions, {} entries, {} blobs": "head of `ledger verify`, which has a row per verdict",
    "{} findings": "the verdict in it",
    "{} at {}": "a place, in the line of a finding",
    "{} warning{}": "the number in the line of `config check`",
    "settings: {} warning{}": "the line of `config check`, which has a row per number",
    "go on: surefoot -r {}": "a command behind words that have a row",
}
"""Parts of sentences, or sentences with parts, that are told whole by a row of another form."""

NOT_FOR_PEOPLE = {
    "Look only, and change nothing": "an instruction for the model",
    "Your final answer": "what a model is told of the form of its answer",
    "\nGive the corrected JSON value": "the same",
    "it is not JSON: {}": "a fault of an answer, for the model and in `result`",
    "the schema cannot be followed: {}": "the same",
    "{} is no JSON number": "the same",
    "The result is too long for a line of output.": "what a script is given for a call in stream-json",
    "({} fields)": "what stands in a diagnostic log in the place of words",
    "({} characters)": "the same",
    "built in": "the word of an origin, looked at and not told",
    "surefoot session export, schema_version {}": "title of a JSON schema",
    "surefoot output: one line, schema_version {}": "title of a JSON schema",
}
"""English that no person reads on a surface; by how it begins."""

COMMAND = re.compile(
    r"(session|auth|ledger|recover) [a-z]+|(surefoot|export|pip|chmod|mount|git|sh) [-\w{$].*|[ac] \{\}"
    r"|--[\w-]+[ =]\S+| / --[\w-]+ \S+|\[REF\].*|\{\} [MK]iB|<.*| stroke.*|.*(https?://|/proc/).*",
    re.DOTALL,
)
"""Commands, flags, keys, units, markup and addresses are the same in every language."""
WORDS = re.compile(r"[A-Za-z]{2,}[,:;]? [A-Za-z{]|[}\]] [a-z]{2,}|[A-Za-z]{3,}[?!.]( |$)| [a-z]{2,}( |$)")

SINKS = {"complain", "say_lines", "page_lines", "echo", "secho", "prompt", "confirm", "print"}
SAID_BY_CODE = re.compile(
    r"[A-Z]\w*(Error|Missing|Refused|Newer|Damaged)|Check|blame|_tell|Full|compile|translated|no_answer"
)
"""What takes English and tells it by a row: errors (a test of their own), the doctor, the look-up itself."""


def text_of(node: ast.AST) -> str | None:
    """The fixed words of a literal, with {} for what differs; None where the node is no text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(v.value) if isinstance(v, ast.Constant) else "{}" for v in node.values)
    return None


def name_of(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def not_said(tree: ast.Module) -> set[ast.AST]:
    """Docstrings, pieces of a larger literal, and what goes where English is told by a row."""
    found: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            found.update(node.values)
        elif isinstance(node, ast.Call):
            found.update(word.value for word in node.keywords if word.arg in ("help", "short_help"))
            if SAID_BY_CODE.fullmatch(name_of(node)) and name_of(node) != "translated":
                found.update(below for one in node.args for below in ast.walk(one))
    return found


def literals(file: Path) -> Iterator[tuple[int, str]]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    skipped = not_said(tree)
    for node in ast.walk(tree):
        text = None if node in skipped else text_of(node)
        if text is not None and WORDS.search(text) and not COMMAND.fullmatch(text):
            yield node.lineno, text  # type: ignore[attr-defined]


def surface_files() -> list[Path]:
    return [file for file in sorted(SURFACES.rglob("*.py")) if not file.name.startswith("words_")]


def left_over(file: Path) -> dict[str, str]:
    place = file.relative_to(SURFACES).as_posix()
    return {
        text: f"{place}:{line}"
        for line, text in literals(file)
        if text not in ROWS and text not in PUT_TOGETHER and not text.startswith(tuple(NOT_FOR_PEOPLE))
    }


def test_ux_11_no_text_of_a_surface_is_without_a_row() -> None:
    missing = {text: place for file in surface_files() for text, place in left_over(file).items()}
    assert not missing, "give each a row in words_asides, or say in NOT_FOR_PEOPLE who reads it"


def test_ux_11_a_text_without_a_row_is_found(tmp_path: Path) -> None:
    file = tmp_path / "new.py"
    file.write_text(
        'click.echo("Nothing was found.")\nsay_lines([f"{count} were left out"])\nx = "surefoot -r {}"\n'
    )
    assert [text for _, text in literals(file)] == ["Nothing was found.", "{} were left out"]
    assert said_in_english(file) == [1, 2]


def said_in_english(file: Path) -> list[int]:
    """Lines where a literal goes to a stream without the look-up in between."""

    def direct(node: ast.AST) -> Iterator[ast.AST]:
        if isinstance(node, ast.Call) and name_of(node) != "join":
            return
        text = text_of(node)
        if text is not None:
            if WORDS.search(text) and not COMMAND.fullmatch(text):
                yield node
            return
        for below in ast.iter_child_nodes(node):
            yield from direct(below)

    tree = ast.parse(file.read_text(encoding="utf-8"))
    sinks = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and name_of(node) in SINKS]
    return [node.lineno for call in sinks for one in call.args for node in direct(one)]  # type: ignore[attr-defined]


def test_ux_11_no_surface_writes_a_literal_past_the_look_up() -> None:
    found = {file.name: lines for file in surface_files() if (lines := said_in_english(file))}
    assert not found, "put `translated(text, language)` or `say(key, language)` around each"


def test_ux_11_no_surface_uses_the_yes_and_no_of_the_parser_which_speaks_english() -> None:
    for file in surface_files():
        called = [
            node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Attribute)
        ]
        assert not [
            node.lineno for node in called if node.attr == "confirm" and ast.unparse(node.value) == "click"
        ], file


# What is said below, and told by surfaces ----------------------------------------------------------

BELOW = {
    "config.py": {"_lay_project", "_accepted"},
    "settings_table.py": {"forbidden_in_project", "_loosens"},
    "offering.py": {"unmatched", "_near"},
    "ledger/audit.py": {"audit", "_session", "_witnessed"},
    "ledger/chain.py": {"check"},
    "tools/packs/checking.py": {"check", "_without_class", "_without_tool", "_aliases", "_counts", "_laxer"},
    "providers/local.py": {"start"},
}
"""Where warnings, findings and lines without a code are made."""
WHOLE_BELOW = {
    "project shared",  # sources of a setting: words of a table of their own
    "project own",
    "{} is not trusted, so this was left out: {}. `surefoot trust {}` accepts it.",
    "{}: {} is not a setting of surefoot{}",
    "; did you mean {}?",
    "; see surefoot tools",
    "{}: the rule {} means no tool{}",
    "--tools: {} means no tool{}",
    "{} names {}, which is no tool{}",
    "alias {} of {} is a tool of its own ({}, {})",
}
"""Sentences with parts; the whole ones that come of them are told in a test below."""


def test_ux_11_every_warning_and_finding_from_below_has_a_row() -> None:
    missing = {}
    for place, names in BELOW.items():
        tree = ast.parse((SOURCE / place).read_text("utf-8"))
        made = [node for node in ast.walk(tree) if getattr(node, "name", None) in names]
        assert {node.name for node in made} >= names, place  # type: ignore[attr-defined]
        for node in made:
            skipped = not_said(ast.Module([node], []))  # type: ignore[list-item]
            texts = {text_of(below) for below in ast.walk(node) if below not in skipped}
            said = {text for text in texts if text and WORDS.search(text) and not COMMAND.fullmatch(text)}
            missing |= {text: place for text in said if text not in ROWS | WHOLE_BELOW}
    assert not missing, "give each a row in words_asides"


def test_ux_11_everything_that_a_verifier_sees_has_a_row() -> None:
    sentence = re.compile(r"[A-Z{].* .*\.|(that|how|what|whether|a commit) .+")
    missing = {}
    for name in ("database", "files", "git", "http", "postgres", "process"):
        tree = ast.parse((SOURCE / f"verifiers/{name}.py").read_text("utf-8"))
        skipped = not_said(tree)
        texts = {text_of(node) for node in ast.walk(tree) if node not in skipped} - {None}
        missing |= {text: name for text in texts if text and sentence.fullmatch(text) and text not in ROWS}
    assert not missing, "give each a row in words_evidence"


@pytest.mark.parametrize("language", BOTH)
@pytest.mark.parametrize(
    "text",
    [
        "/a/c.toml:1: foo is not a setting of surefoot",
        "/a/c.toml:1: recovery.barier is not a setting of surefoot; did you mean recovery.barrier?",
        "/a/c.toml:2: permissions.mode was ignored: only your own settings may set this.",
        "/a is not trusted, so this was left out: b.toml. `surefoot trust /a` accepts it.",
        "permissions.allow (/a/c.toml:3): the rule 'Foo(x)' means no tool; see surefoot tools",
        "permissions.allow (/a/c.toml:3): the rule 'Red' means no tool; did you mean Read?",
        "--tools: 'rad' means no tool; did you mean read?",
        "--tools: 'zzz' means no tool; see surefoot tools",
        "endpoints.w.tools (/a/c.toml:3) names 'rad', which is no tool; did you mean read?",
        "endpoints.w.tools (/a/c.toml:3) names 'zzz', which is no tool; see surefoot tools",
        "alias a of b is a tool of its own (b: UNKNOWN, c: READ_ONLY)",
        "settings: 1 warning",
        "settings: 3 warnings",
        "go on: surefoot -r ses_1",
        "/a b/c: satisfied; /d: unchanged",
        "Nothing can look up what a shell command did. None of its processes is left.",
    ],
)
def test_ux_11_sentences_with_parts_are_told_whole(text: str, language: str) -> None:
    told = translated(text, language)
    assert HAN.search(told)
    facts = (
        r"/\w[\w./]*|surefoot \S+|\S+\.(mode|allow|toml|barier|barrier)\S*|--tools|READ_ONLY|UNKNOWN|ses_1"
    )
    assert not re.search(r"[A-Za-z]{3,} [A-Za-z]{2,}", re.sub(facts, "", told))


def test_ux_11_one_entry_of_a_list_is_never_taken_for_the_whole_list() -> None:
    assert translated("a: satisfied; b: unchanged", "zh-Hans") == "a：与要写入的一致；b：没有改变"
    assert translated("of a server: x; y", "zh-Hans") == "of a server: x; y"


@pytest.mark.parametrize("table", TABLES)
def test_ux_11_every_row_without_a_code_is_whole_in_both_languages(table: str) -> None:
    for english, texts in TABLES[table].items():
        places = sorted(re.findall(r"\{(\w+)\}", english))
        assert len(texts) == 2
        for text in texts:
            assert sorted(re.findall(r"\{(\w+)\}", text)) == places, english
            assert HAN.search(text) or re.sub(r"\W", "", re.sub(r"\{\w+\}", "", english)) == "", english


def test_ux_11_every_tool_of_surefoot_says_what_it_does_in_every_language(tmp_path: Path) -> None:
    settings = load_settings({}, {"SUREFOOT_HOME": str(tmp_path)}, tmp_path)
    described = [str(row["description"]) for row in offering.tool_table(settings, directory=tmp_path)]
    assert len(described) > 10
    for text in described:
        assert all(HAN.search(translated(text, language)) for language in BOTH), text


def test_ux_11_every_source_of_a_setting_has_a_word() -> None:
    text = (SOURCE / "config.py").read_text("utf-8")
    sources = set(re.findall(r'Origin\("(\w+)"', text)) | {
        "built in",
        "user",
        "project shared",
        "project own",
    }
    for source in [*sources, "managed", "managed, final", "user, flags"]:
        told = configs._origin(Origin(source, "/a:1"), "zh-Hant")
        assert HAN.search(told) and told.endswith(" (/a:1)") and not re.search(r"[b-z]", told)
        assert configs._origin(Origin(source, "/a:1"), "en") == str(Origin(source, "/a:1"))


def test_ux_11_findings_of_a_ledger_are_told_in_the_language_and_keep_their_code() -> None:
    found = (Finding("chain_broken", "ses_1", 4, "entry 4 does not follow from the one before it"),)
    report = Report(1, 9, 0, found)
    assert ledgers._lines("p", report, "en") == [
        "p: 1 findings · 1 sessions, 9 entries, 0 blobs",
        "  chain_broken: ses_1 at 4: entry 4 does not follow from the one before it",
    ]
    assert ledgers._lines("p", report, "zh-Hant") == [
        "p：1 處異常 · 1 個工作階段，9 筆記錄，0 個資料塊",
        "  chain_broken：ses_1 第 4 筆：第 4 筆記錄與前一筆不相接",
    ]
