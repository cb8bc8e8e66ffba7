"""Modes and rules of permission (UX-38 to UX-40)."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.core.effects import Effect
from surefoot.core.model import EffectClass, Mode
from surefoot.errors import SettingsError
from surefoot.runtime.permission import ALSO, UNTOLD, Rules, decide, mode_of, parse_rule, parse_rules
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
    ("eval 'rm x'", "deny"),
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


DENIED = parse_rules(deny=["Bash(rm *)", "Bash(git push *)", "Bash(gh pr merge *)", "Bash(kubectl delete *)"])
HIDDEN = r"""
//bin/rm x
/bin/../bin/rm x
./../../bin/rm x
/opt/own/rm x
busybox rm x
sudo -u root rm x
sudo -n --user=root rm x
sudo A=1 rm x
sudo sh -c 'rm x'
doas -u root rm x
env -u X rm x
env -S 'rm x'
timeout 5 sudo -u root rm x
timeout -s KILL 5 rm x
ionice -c 3 rm x
chroot / rm x
su root -c 'rm x'
ssh h rm x
ssh -p 22 h 'ls; rm x'
bash -lc 'rm x'
bash -x -c 'rm x'
bash --norc -c 'ls && rm x'
bash -o pipefail -c "bash -x -c 'rm x'"
script -qc 'rm x' /dev/null
flock f -c 'rm x'
coproc rm x
exec -a y rm x
builtin command rm x
trap 'rm x' EXIT
alias a='rm x'
eval "rm x"
eval rm x
find . -execdir rm {} \;
find . -exec sudo rm {} +
xargs -n 1 sudo rm
strace -f rm x
nsenter -t 1 rm x
git -C . push
git -c a=b push origin
git --git-dir=.git push
git --git-dir .git push
git --no-pager push
/usr/bin/git -P push
sudo git -C . push
gh -R a/b pr merge
gh pr -R a/b merge 1
kubectl -n x delete pod y
kubectl --context=a delete pod y
""".strip().split("\n")

UNSEEN_PARTS = [
    "bash <<< 'rm x'",
    "echo rm x | sh",
    "bash -s < list",
    "cat list | sudo bash",
    'eval "$x"',
    'bash -c "$x"',
    "timeout 5 $X x",
    "sudo $X x",
    "find . -exec $X {} +",
    "source <(echo rm x)",
    ". /dev/stdin <<< $x",
    "bash <<'E'\nrm x\nE",
    "r\\\nm x",
    "ls\r\nrm x",
]

HARMLESS = r"""
git commit -m 'rm x'
git rm x
docker rm x
npm run rm
grep rm x
timeout 5 grep rm x
sudo -n apt-get install rm
xargs grep rm
find . -name rm
find . -exec grep rm {} +
echo rm x
git log --grep push
git -C . log push
git stash push
bash build.sh
bash -c 'ls; git status'
bash --version
env
command -v rm
python3 -m x rm
ls \
 rm
""".strip().split("\n")


@pytest.mark.parametrize("line", HIDDEN)
def test_ux_40_a_denied_command_is_denied_behind_paths_options_launchers_and_shells(line: str) -> None:
    found = classify_shell(line, PLACE).simple_commands
    for mode in COLUMNS:
        assert decide(DENIED, Mode(mode), BASH, found or (), UNKNOWN).kind == "deny"
    wide = parse_rules(
        allow=["Bash"], ask=["Bash(rm *)", "Bash(git push *)", "Bash(gh *)", "Bash(kubectl *)"]
    )
    assert decide(wide, Mode.DEFAULT, BASH, found or (), UNKNOWN).kind == "ask"


@pytest.mark.parametrize("line", UNSEEN_PARTS)
def test_ux_40_what_a_shell_would_run_and_the_line_does_not_show_is_asked(line: str) -> None:
    found = classify_shell(line, PLACE).simple_commands or ()
    assert decide(DENIED, Mode.BYPASS, BASH, found, UNKNOWN).kind == "ask"
    assert decide(parse_rules(allow=["Bash(*)"]), Mode.DEFAULT, BASH, found, UNKNOWN).kind == "ask"


def test_ux_40_a_command_that_only_speaks_of_a_denied_one_is_not_denied() -> None:
    lines = ["ls \\\n rm" if line == "ls \\" else line for line in HARMLESS if line != " rm"]
    kinds = {
        line: decide(DENIED, Mode.BYPASS, BASH, classify_shell(line, PLACE).simple_commands or (), UNKNOWN)
        for line in lines
    }
    assert [line for line, verdict in kinds.items() if verdict.kind != "allow"] == []


def test_ux_40_a_further_reading_needs_no_rule_that_allows_it() -> None:
    rules = parse_rules(allow=["Bash(strace -f make *)", "Bash(git -C sub status)"])
    for line in ("strace -f make all", "git -C sub status"):
        found = classify_shell(line, PLACE).simple_commands
        assert decide(rules, Mode.DEFAULT, BASH, found or (), UNKNOWN).kind == "allow"
    inner = parse_rules(allow=["Bash(make *)"])
    found = classify_shell("strace -f make all", PLACE).simple_commands
    assert decide(inner, Mode.DEFAULT, BASH, found or (), UNKNOWN).kind == "ask", (
        "nor does one allow the command"
    )


@pytest.mark.parametrize(
    "line",
    ["tr\\\nuncate -s0 f", "ls\\\nof x", "ls | tr\\\nuncate x", "cat a\\\nb", "ls 2\\\n>f", "ls &\\\n& ls"],
)
def test_ec_20_ux_40_a_word_that_goes_on_behind_an_escaped_line_end_is_no_reader(line: str) -> None:
    found = classify_shell(line, PLACE)
    assert found.effect.effect_class is EffectClass.UNKNOWN and found.simple_commands is None
    allowed = parse_rules(allow=["Bash(tr *)", "Bash(ls *)", "Bash(cat *)"])
    assert decide(allowed, Mode.DEFAULT, BASH, found.simple_commands or (), found.effect).kind == "ask"


@pytest.mark.parametrize(
    "line", ["ls \\\n -la", "ls\\\n -la", "ls;\\\nls", "ls |\\\nhead", 'echo "a\\\nb"', "\\\nls"]
)
def test_ec_20_an_escaped_line_end_between_words_is_a_blank(line: str) -> None:
    assert classify_shell(line, PLACE).effect.effect_class is EffectClass.READ_ONLY


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("secrets/", "/w/secrets"),
        ("secrets/", "/w/secrets/deep/a"),
        ("./secrets/", "/w/secrets/a"),
        ("/w/secrets/", "/w/secrets/a"),
        ("~/.ssh/", "/home/lin/.ssh/key"),
        ("~/.ssh/**", "/home/lin/.ssh/key"),
        ("../secret", "/secret"),
        ("src/../.env", "/w/.env"),
        ("./src/./a", "/w/src/a"),
        ("/w//src/a", "/w/src/a"),
        ("//w/src/a", "/w/src/a"),
        ("caf\u00e9/**", "/w/cafe\u0301/a"),
        ("cafe\u0301/**", "/w/caf\u00e9/a"),
        ("**/.env", f"{ALSO}/w/.env"),
        ("**/.Env", f"{ALSO}/w/.env"),
        ("/w/Keys/**", f"{ALSO}/w/keys/a"),
    ],
)
def test_ux_40_a_path_is_denied_however_path_and_pattern_are_spelled(pattern: str, path: str) -> None:
    rules = parse_rules(deny=[f"Read({pattern})"], roots=ROOTS, home="/home/lin")
    assert decide(rules, Mode.BYPASS, READ, ("/w/other", path), READS).kind == "deny"
    assert decide(rules, Mode.BYPASS, BASH, ("cat x",), READS, (path,)).kind == "deny"
    asking = parse_rules(ask=[f"Read({pattern})"], roots=ROOTS, home="/home/lin")
    assert decide(asking, Mode.DEFAULT, READ, (path,), READS).kind == "ask"


@pytest.mark.parametrize("pattern", ["caf\u00e9/**", "Keys/**"])
def test_ux_40_a_rule_that_allows_takes_a_path_at_its_letters(pattern: str) -> None:
    rules = parse_rules(allow=[f"Write({pattern})"], roots=ROOTS)
    for path in ("/w/cafe\u0301/a", "/w/keys/a"):
        assert decide(rules, Mode.DEFAULT, WRITE, (path, f"{ALSO}{path}"), WRITES).kind == "ask"


def test_ux_40_another_spelling_of_a_path_is_no_path_outside() -> None:
    seen = ("/w/Report.txt", f"{ALSO}/w/report.txt")
    assert decide(Rules(roots=("/w",)), Mode.DEFAULT, READ, seen, READS).kind == "allow"
    assert (
        decide(Rules(roots=("/W",)), Mode.ACCEPT_EDITS, WRITE, ("/W/a", f"{ALSO}/w/a"), WRITES).kind
        == "allow"
    )
    assert decide(Rules(roots=("/w",)), Mode.DEFAULT, BASH, ("cat a",), READS, seen).kind == "allow"


def test_ux_40_a_subcommand_is_found_behind_many_options_and_a_flood_of_them_is_asked_about() -> None:
    for count, kind in ((60, "deny"), (5000, "ask")):
        line = f"git {'-c a.b=c ' * count}push"
        found = classify_shell(line, PLACE).simple_commands or ()
        assert decide(DENIED, Mode.BYPASS, BASH, found, UNKNOWN).kind == kind
    compiling = f"gcc {'-I dir ' * 60}-c a.c b.c"
    found = classify_shell(compiling, PLACE).simple_commands or ()
    assert decide(parse_rules(allow=["Bash(gcc *)"]), Mode.DEFAULT, BASH, found, UNKNOWN).kind == "allow"


@pytest.mark.parametrize(
    "line",
    [
        "cat " + "{1..64}" * 4,
        "cat {1..9999999}",
        "cat " + "{a,b}" * 30,
        "; ".join(f'a{n}="$a{n + 1}$a{n + 1}"' for n in range(1, 60)) + "; a60=x; cat $a1",
        "; ".join(f"a{n}=$a{n + 1}" for n in range(1, 900)) + "; a900=x; cat $a1",
        "x=a; cat " + "$x" * 1000 + " ${y}",
        "x='a b'; cat " + "$x" * 30,
    ],
)
def test_ux_40_what_grows_beyond_all_bounds_cannot_be_told(line: str) -> None:
    assert classify_shell(line, PLACE).names.untold
