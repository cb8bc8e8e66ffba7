"""What a shell line opens outside the workspace is asked about like what the file tools open (UX-38, UX-40)."""

from __future__ import annotations

import shlex
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from surefoot.core.model import EffectClass, Mode
from surefoot.runtime.permission import UNTOLD, Verdict, decide, parse_rules
from surefoot.runtime.tools import Place, Tool, classify
from surefoot.tools.files.toolset import file_tools
from surefoot.tools.place import find_place
from surefoot.tools.shell import shell_tool
from surefoot.tools.worker import Worker

SHELL = shell_tool()


def file_tool(name: str) -> Tool:
    with closing(Worker()) as worker:  # made for its tools' declarations; none of them runs
        return next(tool for tool in file_tools(worker=worker) if tool.name == name)


OUTSIDE = "it reads outside the workspace: "
UNCERTAIN = "it cannot be told what it would read"
MODES = ("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")


@dataclass(frozen=True)
class World:
    """A home with a key and a secret in it, and a project with links below it."""

    home: Path
    place: Place

    def verdict(
        self,
        line: str,
        mode: str = "default",
        *,
        tool: Tool = SHELL,
        name: str = "command",
        **said: list[str],
    ) -> Verdict:
        rules = parse_rules(
            said.get("allow", []),
            said.get("ask", []),
            said.get("deny", []),
            roots=[str(root) for root in self.place.roots],
            home=str(self.home),
        )
        arguments = {name: line, "pattern": "x"}
        subjects = None if tool.subjects is None else tool.subjects(arguments, self.place)
        reads = () if tool.reads is None else tool.reads(arguments, self.place)
        effect = classify(tool, arguments, self.place)
        assert effect.effect_class is EffectClass.READ_ONLY, "else it is asked about for another reason"
        return decide(rules, Mode(mode), tool, subjects, effect, reads)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    home = tmp_path_factory.mktemp("home").resolve()
    work = home / "work"
    for folder in (home / ".ssh", home / "other", work / ".git", work / "src" / "sub"):
        folder.mkdir(parents=True)
    for file in (".ssh/key", ".netrc", "secret", "work/a.txt", "work/.env", "work/src/m.py", "work/list"):
        (home / file).write_text("x\n")
    (work / "link").symlink_to(home / ".ssh")
    (work / "lf.txt").symlink_to(home / "secret")
    (work / "in").symlink_to("src")
    return World(home, replace(find_place(work), home=home))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A project without links, beside the same secrets."""
    home = tmp_path_factory.mktemp("plain").resolve()
    work = home / "work"
    (work / ".git").mkdir(parents=True)
    (work / "src").mkdir()
    for file in (".netrc", "secret", "work/a.txt", "work/list", "work/src/m.py"):
        (home / file).write_text("x\n")
    return World(home, replace(find_place(work), home=home))


NAMED = r"""
cat ~/.ssh/key
cat < ../secret
grep -r x ..
echo $(cat ~/.netrc)
echo "$(< ~/.netrc)"
echo `cat ~/.netrc`
cat <(cat ~/.netrc)
[ -n "$(cat ../secret)" ]
cat src/../../secret
cat in/../../secret
cat "$HOME/.netrc"
cat ${HOME}/.netrc
x=../secret; cat "$x"
x=..; y=$x/secret; cat $y
a=.. b=secret; cat $a/$b
a=~; cat $a/.netrc
x='a ../secret'; cat $x
x='../sec*'; cat $x
for f in ../secret; do cat "$f"; done
for f in ../sec*; do cat "$f"; done
x=a.txt; for i in 1 2; do cat $x; x=../secret; done
cd ..; cat secret
cd ~ && ls
(cd ..; cat secret)
cat ../sec*
cat ../s?cret
cat ../[s]ecret
cat ../[[:alpha:]]ecret
cat ../{secret,x}
cat ../secre{t,}
ls ..
ls -d ../*
stat ../secret
find .. -name x
du -sh ..
rg x ~
diff a.txt ../secret
git -C .. log
git diff a.txt ../secret
grep -f ../secret a.txt
grep -f../secret a.txt
grep --file=../secret a.txt
grep -e x ../secret
grep --regexp=x ../secret
grep -- x ../secret
sed 'r ../secret' a.txt
sed -n '$r../secret' a.txt
dd if=../secret
awk 1 ../secret
jq -n --rawfile x ../secret '$x'
timeout 5 cat ../secret
env LANG=C cat ../secret
bash -c 'cat ../secret'
if true; then cat ../secret; fi
cat a.txt | cat - ../secret
cat "../secret"
cat '..'/secret
cat \../secret
/bin/cat ../secret
cat ../../../../../../../../../../../../etc/passwd
cat /usr/../etc/passwd
cat /dev/../etc/passwd
cat /proc/self/environ
cat /proc/self/cwd/../secret
cat link/key
cat lf.txt
cat l*.txt
cat *.txt
cat */key
ls link/
cd link && cat key
grep -R x .
rg --follow x
find -L . -name x
diff -r src in
find . -exec cat {} +
find . -name '*.txt' | xargs cat
git ls-files | head -3 | xargs cat
cat $(find . -name '*.txt')
git ls-files | while read -r f; do cat "$f"; done
for f in $(git ls-files); do cat "$f"; done
""".strip().split("\n")

HIDDEN = r"""
cat $X
cat "${X:-../secret}"
cat $'../secret'
cat $(cat list)
cat ~root/.netrc
cat ~+/../secret
cd -; cat secret
cat list | xargs cat
xargs cat < list
xargs -a list cat
find . | xargs -I% cat ../%
find . | sed 's,.*,../secret,' | xargs cat
grep -el list | xargs cat
while read -r f; do cat "$f"; done < list
find . -exec cat {}/../../secret \;
wc --files0-from=list
wc --files0=list
awk 'BEGIN{ARGV[1]="../secret";ARGC=2}{print}'
d=.; for i in 1 2; do d=$d/..; done; cat $d/secret
x=$PWD; cd src; cat $x/../secret
""".strip().split("\n")

ORDINARY = r"""
ls -la src
cat src/../a.txt
cat src/*.py
cat *.txt
cat < a.txt
git status
git diff main..HEAD -- src
git log ..origin/main
grep -rn '/api/v1' .
grep -rn "/" src
grep -n "$pat" a.txt
rg "/usr/[a-z]+" src
find . -name '*.py' -not -path './node_modules/*' | head
find . -name '*.py' -print0 | xargs -0 wc -l
find . -name '*.py' 2>/dev/null | xargs grep -l foo
find src -type f -exec wc -l {} +
git ls-files | grep -v vendor | head -20 | xargs wc -l
wc -l $(git ls-files '*.py')
for f in src/*.py; do echo "== $f"; head -5 "$f"; done
git ls-files | while read -r f; do wc -l "$f"; done
while read -r l; do echo "$l"; done < a.txt
cat list | xargs echo
cd src && cat ../a.txt
cat "$(pwd)/a.txt" $PWD/list
ls /usr/lib
cat /usr/include/stdio.h
cat /proc/cpuinfo
cat /dev/null
df -h /
echo "hello / world" ../secret
basename ../secret
test -f ../secret && echo yes
cut -d/ -f1 a.txt
cut -d / -f 1 a.txt
awk -F/ '{print $NF}' a.txt
sort -t/ -k2 a.txt
sed -n '/foo/,/bar/p' a.txt
sed 's,/usr/lib,/opt,' a.txt
jq '.. | .name?' a.txt
diff <(sort a.txt) <(sort list)
cat ../nothing
""".strip().split("\n")


@pytest.mark.parametrize("line", NAMED)
def test_ux_38_ux_40_a_reader_that_opens_what_lies_outside_is_asked_about(world: World, line: str) -> None:
    verdict = world.verdict(line)
    assert verdict.kind == "ask" and verdict.reason.startswith(OUTSIDE), verdict


@pytest.mark.parametrize("line", HIDDEN)
def test_ux_38_ux_40_a_reader_whose_files_cannot_be_told_is_asked_about(plain: World, line: str) -> None:
    verdict = plain.verdict(line)
    assert verdict.kind == "ask" and verdict.reason in (UNCERTAIN, f"{OUTSIDE}{plain.home}"), verdict


@pytest.mark.parametrize("line", ORDINARY)
def test_ux_38_readers_of_the_workspace_and_of_the_system_are_not_asked_about(
    plain: World, line: str
) -> None:
    assert plain.verdict(line).kind == "allow"


@pytest.mark.parametrize(
    ("mode", "kind"), list(zip(MODES, ("ask", "ask", "ask", "deny", "allow"), strict=True))
)
def test_ux_38_every_mode_answers_a_shell_reader_as_it_answers_the_file_tool(
    world: World, mode: str, kind: str
) -> None:
    path = str(world.home / "secret")
    by_tool = world.verdict(path, mode, tool=file_tool("read"), name="path")
    for line in (f"cat {shlex.quote(path)}", "cat ../secret", "cat lf.txt", "cat $X"):
        assert world.verdict(line, mode).kind == by_tool.kind == kind


def test_ux_40_rules_on_reading_hold_for_the_files_a_shell_line_opens(world: World) -> None:
    for line in ("cat .env", "cat < .env", "cat .e*", "cat src/../.env", "f=.env; cat $f", "cat a.txt .env"):
        for mode in MODES:
            assert world.verdict(line, mode, deny=["Read(**/.env)"]).rule == "Read(**/.env)"
        assert world.verdict(line, ask=["Read(.env)"], allow=["Bash"]).kind == "ask"
    assert world.verdict("cat ~/.ssh/key", "bypassPermissions", deny=["Read(~/.ssh/**)"]).kind == "deny"
    assert world.verdict("cat link/key", "bypassPermissions", deny=["Read(~/.ssh/**)"]).kind == "deny"
    assert world.verdict("cat a.txt", deny=["Read(**/.env)"]).kind == "allow"
    grep = world.verdict(".env", tool=file_tool("grep"), name="path", deny=["Read(**/.env)"])
    assert grep.kind == "deny", "a search shows what is in the file"


def test_ux_40_a_rule_that_allows_reading_or_the_command_answers_the_question(world: World) -> None:
    line = "cat ../secret"
    assert world.verdict(line, allow=[f"Read({world.home}/secret)"]).kind == "allow"
    assert world.verdict(line, allow=["Read(~/*)"]).kind == "allow"
    assert world.verdict(line, allow=["Read"]).kind == "allow"
    assert world.verdict(line, allow=["Bash(cat *)"]).kind == "allow"
    assert world.verdict(line, allow=["Read(~/other/**)", "Bash(ls *)"]).kind == "ask"
    assert world.verdict("cat $X", allow=["Read(~/**)"]).kind == "ask", (
        "what cannot be told is no path of a rule"
    )
    both = "cat ../secret; ls ../other"
    assert world.verdict(both, allow=["Read(~/other/**)"]).kind == "ask", "all of them must be allowed"


def test_ux_38_a_home_below_a_folder_of_the_system_is_no_part_of_it(world: World) -> None:
    rules = parse_rules(roots=["/w"], home="/usr/local/lib/lin")
    effect = classify(SHELL, {"command": "cat a"}, world.place)
    for path, kind in (("/usr/local/lib/lin/key", "ask"), ("/usr/local/lib/x.py", "allow")):
        assert decide(rules, Mode.DEFAULT, SHELL, ("cat a",), effect, (path,)).kind == kind


def test_ux_38_a_pattern_that_fits_more_than_can_be_looked_at_cannot_be_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("surefoot.tools.reaching.MOST_PATHS", 1)
    assert SHELL.reads is not None
    assert UNTOLD in SHELL.reads({"command": "cat *"}, world.place)
    monkeypatch.setattr("surefoot.tools.reaching.MOST_ENTRIES", 1)
    assert UNTOLD in SHELL.reads({"command": "grep -R x ."}, world.place)


def test_ux_40_what_is_denied_to_be_read_is_neither_copied_nor_moved_to_another_name(world: World) -> None:
    rules = parse_rules(deny=["Read(**/.env)"], roots=[str(root) for root in world.place.roots])
    move = file_tool("move")
    assert move.subjects is not None and move.reads is not None and SHELL.subjects is not None
    moved = {"source": ".env", "target": "b"}
    effect = classify(move, moved, world.place)
    subjects, reads = move.subjects(moved, world.place), move.reads(moved, world.place)
    assert decide(rules, Mode.ACCEPT_EDITS, move, subjects, effect, reads).kind == "deny"
    assert SHELL.reads is not None
    for line in ("cp .env b", "mv .env b", "ln -s .env b", "ln .env b", "tar -cf b .env", "dd if=.env of=b"):
        said = {"command": line}
        effect = classify(SHELL, said, world.place)
        subjects, reads = SHELL.subjects(said, world.place), SHELL.reads(said, world.place)
        assert decide(rules, Mode.BYPASS, SHELL, subjects, effect, reads).kind == "deny", line


def test_ux_40_on_a_disk_that_does_not_tell_case_every_spelling_of_a_file_is_denied(tmp_path: Path) -> None:
    """Two hard links make a folder look like one of such a disk."""
    blind = tmp_path.resolve() / "disk"
    (blind / ".git").mkdir(parents=True)
    (blind / "key.pem").write_text("x")
    (blind / "KEY.PEM").hardlink_to(blind / "key.pem")
    world = World(tmp_path, replace(find_place(blind), home=tmp_path))
    for name in ("key.pem", "KEY.PEM"):
        for rule in ("Read(**/*.pem)", "Read(*.PEM)", "Read(Key.pem)"):
            assert world.verdict(name, tool=file_tool("read"), name="path", deny=[rule]).kind == "deny"
            assert world.verdict(f"cat {name}", deny=[rule]).kind == "deny"
        assert world.verdict(f"cat {name}", deny=["Read(other.pem)"]).kind == "allow"
