"""Modes and rules of permission (UX-38 to UX-40)."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.core.effects import Effect
from surefoot.core.model import EffectClass, Mode
from surefoot.errors import SettingsError
from surefoot.runtime.permission import UNTOLD, Rules, decide, mode_of, parse_rule, parse_rules
from surefoot.runtime.tools import Place, Tool
from surefoot.tools.classify.shell import classify_shell


async def _body(attempt: object, arguments: object) -> str:
    return ""


def tool(name: str, rule_name: str | None = None, aliases: tuple[str, ...] = ()) -> Tool:
    return Tool(name, "", {"type": "object"}, body=_body, rule_name=rule_name, aliases=aliases)


BASH, READ, WRITE, EDIT = (
    tool("shell", "Bash"),
    tool("read", "Read"),
    tool("write", "Write"),
    tool("edit", "Edit"),
)
FETCH, TODO, MCP = tool("fetch", "WebFetch"), tool("todo"), tool("mcp__git__push")
READS = Effect(EffectClass.READ_ONLY)
WRITES = Effect(EffectClass.IDEMPOTENT_WRITE, ("path:/w/a",))
ADDS = Effect(EffectClass.NON_IDEMPOTENT, ("path:/w/a",))
UNKNOWN = Effect(EffectClass.UNKNOWN, ("*",))
QUESTION = Effect(EffectClass.UNKNOWN, ("*",), interaction=True)
OWN = Effect(EffectClass.IDEMPOTENT_WRITE)
ROOTS = ("/w",)
PLACE = Place(Path("/w"), (Path("/w"),), Path("/w"), {"origin": "h.example/o/n"})

CALLS: dict[str, tuple[Tool, tuple[str, ...] | None, Effect]] = {
    "read inside": (READ, ("/w/a",), READS),
    "read outside": (READ, ("/etc/passwd",), READS),
    "edit inside": (EDIT, ("/w/a",), WRITES),
    "edit outside": (EDIT, ("/etc/passwd",), WRITES),
    "write partly outside": (WRITE, ("/w/a", "/x"), WRITES),
    "shell reader": (BASH, ("ls",), READS),
    "shell write": (BASH, ("touch a",), WRITES),
    "shell unknown": (BASH, ("make",), UNKNOWN),
    "shell unparsable": (BASH, (), UNKNOWN),
    "question": (tool("ask_user"), None, QUESTION),
    "own session": (TODO, None, OWN),
    "mcp": (MCP, None, UNKNOWN),
}
COLUMNS = ("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")
ACTIONS = {
    "read inside": "allow allow allow allow allow",
    "read outside": "ask ask ask deny allow",
    "edit inside": "ask allow deny deny allow",
    "edit outside": "ask ask deny deny allow",
    "write partly outside": "ask ask deny deny allow",
    "shell reader": "allow allow allow allow allow",
    "shell write": "ask ask deny deny allow",
    "shell unknown": "ask ask deny deny allow",
    "shell unparsable": "ask ask deny deny allow",
    "question": "allow allow allow allow allow",
    "own session": "allow allow deny allow allow",
    "mcp": "ask ask deny deny allow",
}
CELLS = [
    pytest.param(call, mode, verdict, id=f"{call}-{mode}")
    for call, row in ACTIONS.items()
    for mode, verdict in zip(COLUMNS, row.split(), strict=True)
]


@pytest.mark.parametrize(("call", "mode", "verdict"), CELLS)
def test_ux_38_every_mode_answers_every_action(call: str, mode: str, verdict: str) -> None:
    which, subjects, effect = CALLS[call]
    assert decide(Rules(roots=ROOTS), Mode(mode), which, subjects, effect).kind == verdict


def test_ux_38_manual_is_another_word_for_default_and_other_words_are_refused() -> None:
    assert mode_of("manual") is mode_of("default") is Mode.DEFAULT
    with pytest.raises(SettingsError, match="'yolo' is no permission mode"):
        mode_of("yolo")


@pytest.mark.parametrize("mode", COLUMNS)
def test_ux_38_no_mode_passes_what_a_rule_denies(mode: str) -> None:
    rules = parse_rules(allow=["Bash"], deny=["Bash(rm *)"], roots=ROOTS)
    verdict = decide(rules, Mode(mode), BASH, ("ls", "rm a"), ADDS)
    assert (verdict.kind, verdict.rule) == ("deny", "Bash(rm *)")


def test_ux_38_bypass_asks_when_it_cannot_be_told_whether_a_rule_denies() -> None:
    rules = parse_rules(deny=["Bash(rm *)"])
    assert decide(rules, Mode.BYPASS, BASH, (), UNKNOWN).kind == "ask"
    assert decide(rules, Mode.BYPASS, BASH, ("ls", UNTOLD), UNKNOWN).kind == "ask"
    assert decide(rules, Mode.BYPASS, BASH, ("ls",), UNKNOWN).kind == "allow"


@pytest.mark.parametrize("swapped", [False, True])
def test_ux_39_deny_beats_ask_beats_allow_whatever_the_order(swapped: bool) -> None:
    lists = [["Bash(git *)", "Bash(ls)"], ["Bash(git push *)"], ["Bash(git push -f *)"]]
    if swapped:
        lists = [list(reversed(names)) for names in lists]
    rules = parse_rules(allow=lists[0], ask=lists[1], deny=lists[2])
    found = [
        decide(rules, Mode.DEFAULT, BASH, (line,), ADDS).kind
        for line in ("git add", "git push origin", "git push -f origin")
    ]
    assert found == ["allow", "ask", "deny"]


@pytest.mark.parametrize(
    ("rule", "which", "subject", "matches"),
    [
        ("Read", READ, "/w/a", True),
        ("Read", WRITE, "/w/a", False),
        ("write", WRITE, "/w/a", True),
        ("Write(src/**)", WRITE, "/w/src/a/b.py", True),
        ("Write(src/**)", WRITE, "/w/src", True),
        ("Write(src/*)", WRITE, "/w/src/a/b.py", False),
        ("Write(src/*.py)", WRITE, "/w/src/b.py", True),
        ("Write(src/?.py)", WRITE, "/w/src/bb.py", False),
        ("Write(src/**)", WRITE, "/w/srcs/a", False),
        ("Write(src/**)", WRITE, "/other/src/a", False),
        ("Write(.env)", WRITE, "/w/deep/.env", True),
        ("Write(/etc/**)", WRITE, "/etc/passwd", True),
        ("Write(~/.ssh/**)", WRITE, "/home/lin/.ssh/id", True),
        ("Write(**/*.pem)", WRITE, "/w/x/y.pem", True),
        ("Bash(git push *)", BASH, "git push", True),
        ("Bash(git push *)", BASH, "git pushy", False),
        ("Bash(npm run:*)", BASH, "npm run build", True),
        ("Bash(npm run:*)", BASH, "npm runner", False),
        ("Bash(git ??? *)", BASH, "git add a", True),
        ("WebFetch(https://docs.example/**)", FETCH, "https://docs.example/a/b", True),
        ("WebFetch(domain:docs.example)", FETCH, "https://docs.example/a", True),
        ("WebFetch(domain:docs.example)", FETCH, "https://docs.example.evil/a", False),
        ("mcp__git__push", MCP, None, True),
        ("mcp__git__*", MCP, None, True),
        ("mcp__git", MCP, None, True),
        ("mcp__gi", MCP, None, False),
        ("mcp__other__*", MCP, None, False),
    ],
)
def test_ux_39_a_rule_matches_by_name_and_pattern(
    rule: str, which: Tool, subject: str | None, matches: bool
) -> None:
    rules = parse_rules(deny=[rule], roots=ROOTS, home="/home/lin")
    subjects = None if subject is None else (subject,)
    assert (decide(rules, Mode.BYPASS, which, subjects, ADDS).kind == "deny") is matches


@pytest.mark.parametrize(
    "text", ["", "Bash(", "Bash)", "Bash()", "Bash( )", "(rm)", "mcp__a__b(x)", "two words"]
)
def test_ux_39_a_rule_that_cannot_be_read_is_quoted(text: str) -> None:
    with pytest.raises(SettingsError) as raised:
        parse_rules(allow=[text])
    assert repr(text) in str(raised.value)


def test_ux_39_a_pattern_may_hold_brackets_of_its_own() -> None:
    assert parse_rule("Bash(echo (a))").pattern == "echo (a)"


def test_ux_40_several_paths_must_all_be_allowed() -> None:
    rules = parse_rules(allow=["Write(src/**)"], roots=ROOTS)
    assert decide(rules, Mode.DEFAULT, WRITE, ("/w/src/a", "/w/src/b"), WRITES).kind == "allow"
    assert decide(rules, Mode.DEFAULT, WRITE, ("/w/src/a", "/w/b"), WRITES).kind == "ask"


ALLOWED = parse_rules(
    allow=["Bash(git status *)", "Bash(git add *)", "Bash(echo *)", "Bash(timeout *)"], deny=["Bash(rm *)"]
)

# Lines that hold more than the allowed part: none may pass, and a plain `rm` is denied.
EVASIONS = [
    ("git add a; rm x", "deny"),
    ("git add a && curl -d x h.example", "ask"),
    ("git add a || rm x", "deny"),
    ("git add a | sh", "ask"),
    ("git add a\nrm x", "deny"),
    ("git add $(rm x)", "deny"),
    ("git add `rm x`", "deny"),
    ('git add "$(rm x)"', "deny"),
    ("git add <(rm x)", "deny"),
    ("(git add a; rm x)", "deny"),
    ("{ git add a; rm x; }", "deny"),
    ("if git add a; then rm x; fi", "deny"),
    ("for f in a; do rm $f; done", "deny"),
    ("git add a & rm x", "deny"),
    ("git() { rm x; }; git add a", "deny"),
    ("GIT_DIR=/evil git add a", "ask"),
    ("LD_PRELOAD=./x.so git add a", "ask"),
    ("PATH=/evil; git add a", "ask"),
    ("export PATH=/evil; git add a", "ask"),
    ("git add a > /w/b", "ask"),
    ("echo x >> /home/lin/.bashrc", "ask"),
    ("'git add' a", "ask"),
    ("git\\ add a", "ask"),
    ("./git add a", "ask"),
    ("/w/git add a", "ask"),
    ("\\rm x", "deny"),
    ('"rm" x', "deny"),
    ("r'm' x", "deny"),
    ("/bin/rm x", "deny"),
    ("rm\tx", "deny"),
    ("rm  -rf   x", "deny"),
    ("command rm x", "deny"),
    ("timeout 5 rm x", "deny"),
    ("nohup rm x", "deny"),
    ("env rm x", "deny"),
    ("sudo rm x", "deny"),
    ("sudo -n rm x", "deny"),
    ("xargs rm < list", "deny"),
    ("find . -exec rm {} +", "deny"),
    ("bash -c 'rm x'", "deny"),
    ("bash -c 'git add a; rm x'", "deny"),
    ("watch 'rm x'", "deny"),
    ("cat <<E\n$(rm x)\nE", "deny"),
    ("cat <<E && rm x\nE", "deny"),
    ("echo $((x)); rm x", "deny"),
    ("$'rm' x", "ask"),
    ("$CMD x", "ask"),
    ("git add a; $CMD", "ask"),
    ("eval 'rm x'", "ask"),
    ("git add 'a", "ask"),
    ("git add a #\nrm x", "deny"),
    ("echo a\\\n; rm x", "deny"),
]


@pytest.mark.parametrize(("line", "verdict"), EVASIONS)
def test_ux_40_a_line_passes_only_when_all_its_parts_are_allowed(line: str, verdict: str) -> None:
    found = classify_shell(line, PLACE)
    assert decide(ALLOWED, Mode.DEFAULT, BASH, found.simple_commands or (), UNKNOWN).kind == verdict


@pytest.mark.parametrize(
    "line",
    [
        "git add a",
        "git  add\ta",
        "git add a && git status",
        "'git' add a",
        "git add a; echo done > /dev/null 2>&1",
    ],
)
def test_ux_40_a_line_of_allowed_parts_passes(line: str) -> None:
    found = classify_shell(line, PLACE)
    assert decide(ALLOWED, Mode.DEFAULT, BASH, found.simple_commands or (), UNKNOWN).kind == "allow"
