"""The sentences of the shell section (EC-5, EC-9, EC-13, EC-20 to EC-30), one by one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from surefoot.core.model import EffectClass
from surefoot.runtime.tools import Place
from surefoot.tools.classify.shell import ShellEffect, classify_shell, lexical_paths

READ, IDEMPOTENT, NON, UNKNOWN = EffectClass
PLACE = Place(
    directory=Path("/w"),
    roots=(Path("/w"),),
    work_tree=Path("/w"),
    remotes={"origin": "host.example/o/n", "fork": "host.example/me/n"},
    home=Path("/home/lin"),
)


WIDE = ("{{{0}", "echo {{{0}..3}}", "${{{0}", "a{0}=1", "<<{0}", "$(({0}", "[[ a =~ {0} ]]", "{0}")


def judged(command: str, place: Place = PLACE) -> tuple[EffectClass, tuple[str, ...]]:
    found = classify_shell(command, place).effect
    return found.effect_class, found.reach


def is_unknown(command: str) -> bool:
    return judged(command) == (UNKNOWN, ("*",))


def test_ec_5_a_command_above_64_kib_is_unknown_and_says_so() -> None:
    fits = "echo " + "a" * (64 * 1024 - 5)
    assert judged(fits) == (READ, ())
    found = classify_shell(fits + "a", PLACE)
    assert (found.effect.effect_class, found.effect.reach) == (UNKNOWN, ("*",))
    assert found.effect.notes == ("the command is longer than 65536 bytes",)
    assert found.simple_commands is None


def test_ec_5_a_command_above_20_000_nodes_is_unknown() -> None:
    assert judged("echo" + " a" * 9_000) == (READ, ())
    found = classify_shell("echo" + " a" * 21_000, PLACE)
    assert found.effect.notes == ("the command has more than 20000 parts",)


@pytest.mark.parametrize(
    "command", ["", "  ", "\n", "# only a comment", "ls\0", "ls\r", "ls \x1b[0m", "ls '", "ls (", "\udcff"]
)
def test_ec_5_what_cannot_be_read_is_unknown(command: str) -> None:
    assert is_unknown(command)


def test_ec_5_deep_nesting_is_unknown_and_does_not_raise() -> None:
    assert classify_shell("(" * 3000 + "ls" + ")" * 3000, PLACE).effect.effect_class is UNKNOWN
    assert classify_shell("echo " + "$(echo " * 500 + "rm" + ")" * 500, PLACE).effect.effect_class is not NON


def test_ec_5_wide_characters_never_end_the_process() -> None:
    """The grammar's scanner reads past a table for a wide character after `{`; it must never see one."""
    lines = [
        shape.format(chr(code))
        for code in range(0x80, 0x110000, 0x3FD)
        if not 0xD800 <= code < 0xE000
        for shape in WIDE
    ]
    child = "import json, sys; from surefoot.tools.classify.tree import syntax_tree\n"
    child += "for line in json.load(sys.stdin): syntax_tree(line.encode(), 99)\nprint('alive')"
    ran = subprocess.run(
        [sys.executable, "-c", child], input=json.dumps(lines), capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "alive\n")


def test_ec_5_a_wide_character_is_a_part_of_a_word_and_never_of_a_name() -> None:
    assert judged("cat 'é.txt' ü") == (READ, ())
    assert judged("touch é") == judged("touch 'é'")
    assert judged("touch é")[1] == ("path:/w/é",)
    assert is_unknown("é=1")
    assert is_unknown("é=1 ls")
    assert is_unknown("ls\u2028touch a")


def test_ec_6_the_same_command_and_place_give_the_same_answer() -> None:
    command = "git push && touch a; cat < b | tee c"
    assert len({repr(classify_shell(command, PLACE)) for _ in range(5)}) == 1


def test_ec_9_parts_have_the_strictest_class_and_the_union_of_reaches() -> None:
    assert judged("touch b && rm a; ls | tee c") == (NON, ("path:/w/a", "path:/w/b", "path:/w/c"))
    assert judged("touch a; make") == (UNKNOWN, ("*",))


@pytest.mark.parametrize(
    "command",
    ["touch $x", 'rm "$x"', "echo a > $f", "cp a ${dir}/b", "touch ~lin/a", "rm $(cat list)", "touch */a"],
)
def test_ec_13_a_path_that_is_not_known_is_the_whole_session(command: str) -> None:
    assert judged(command)[1] == ("*",)
    assert judged(command)[0] is not READ


def test_ec_13_without_a_known_repository_git_reaches_everything() -> None:
    bare = Place(Path("/x"))
    assert judged("git commit -m x", bare) == (NON, ("*",))
    assert judged("git push", Place(Path("/w"), work_tree=Path("/w"))) == (NON, ("*",))
    assert judged("git -C /elsewhere commit -m x") == (NON, ("*",))


def test_ec_14_a_push_carries_both_names_and_a_forge_call_about_no_repository_its_host() -> None:
    assert judged("git push origin") == (NON, ("repo:/w", "repo:host.example/o/n"))
    assert judged("git push fork x") == (NON, ("repo:/w", "repo:host.example/me/n"))
    assert judged("git push") == (NON, ("repo:/w", "repo:host.example/me/n", "repo:host.example/o/n"))
    assert judged("git push git@other.example:a/b.git") == (NON, ("repo:/w", "repo:other.example/a/b"))
    assert judged("git push nowhere") == (NON, ("*",))
    assert judged("gh pr close 1 -R a/b") == (NON, ("repo:host.example/a/b",))
    assert judged("gh pr close 1 -R o/n")[1] == ("repo:/w", "repo:host.example/o/n")
    assert judged("gh repo fork a/b", Place(Path("/x"))) == (NON, ("host:github.com",))


def test_ec_11_symbolic_links_are_resolved_by_what_was_looked_up() -> None:
    assert lexical_paths("touch link/a && cd sub && rm ../b", PLACE) == ("/w/link/a", "/w/sub", "/w/sub/../b")
    place = Place(Path("/w"), real_paths={"/w/link/a": "/elsewhere/a"})
    assert judged("touch link/a", place) == (IDEMPOTENT, ("path:/elsewhere/a",))
    assert lexical_paths("ls '", PLACE) == ()


@pytest.mark.parametrize(
    "command",
    [
        "ls >",
        "if ls",
        "bash <<E\nls\nE",
        "python3 - <<'E'\nprint(1)\nE",
        "cat <<E | sh\nls\nE",
        "f() { ls; }",
        "alias x=ls",
        "eval ls",
        "source a",
        ". ./a",
        "exec ls",
        "fg",
        "jobs",
        "disown",
        "ls &",
        "(ls &)",
        "no-such-command",
    ],
)
def test_ec_20_errors_definitions_jobs_and_unnamed_parts_are_unknown(command: str) -> None:
    assert is_unknown(command)


@pytest.mark.parametrize(
    "command", ["$x", "$(echo ls)", "`echo ls`", "${x}ls", "l?", "$'ls'", "~/ls", "{ls,x}"]
)
def test_ec_21_a_command_name_must_be_literal(command: str) -> None:
    assert is_unknown(command)


def test_ec_21_literal_programs_are_parsed_three_levels_deep() -> None:
    assert judged("bash -c 'rm a'") == (NON, ("path:/w/a",))
    assert judged("sh -c \"bash -c 'ls'\"") == (READ, ())
    nested = "ls"
    for level in range(5):
        assert (judged(nested)[0] is READ) is (level <= 3), nested
        nested = "sh -c '" + nested.replace("'", "'\\''") + "'"
    assert is_unknown('bash -c "$x"')
    assert is_unknown("bash -lc ls")


def test_ec_21_loops_and_conditions_take_the_strictest_part() -> None:
    assert judged("for f in a b; do cat $f; done") == (READ, ())
    assert judged("if ls; then touch a; else rm b; fi") == (NON, ("path:/w/a", "path:/w/b"))
    assert judged("while rm a; do ls; done") == (NON, ("path:/w/a",))
    assert judged("case $x in a) ls;; *) touch a;; esac") == (IDEMPOTENT, ("path:/w/a",))
    assert judged("until test -f a; do sleep 1; done") == (READ, ())


@pytest.mark.parametrize(
    "command",
    [
        "sort --no-such a",
        "sort $x",
        "sort $(ls)",
        "sort *",
        "sort {-o,b} a",
        "rg --no-such x",
        "git log $x",
        "sort -- $x",
    ],
)
def test_ec_22_a_command_with_a_writing_option_accepts_only_what_is_listed(command: str) -> None:
    assert is_unknown(command)


def test_ec_22_a_glob_that_cannot_be_an_option_is_accepted() -> None:
    assert judged("sort ./*.txt") == (READ, ())
    assert judged("cat *") == (READ, ())


def test_ec_23_a_substitution_is_judged_as_a_command_of_its_own() -> None:
    assert judged("echo $(rm a)") == (NON, ("path:/w/a",))
    assert judged('echo "`touch a`"') == (IDEMPOTENT, ("path:/w/a",))
    assert judged("cat <(make)") == (UNKNOWN, ("*",))
    assert judged("ls $(cat dirs)") == (READ, ())
    assert is_unknown("sort $(cat names)")
    assert judged("cat <<E\n$(rm a)\nE") == (NON, ("path:/w/a",))
    assert judged("cat <<'E'\n$(rm a)\nE") == (READ, ())


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("ls > a", (IDEMPOTENT, ("path:/w/a",))),
        ("ls >| a", (IDEMPOTENT, ("path:/w/a",))),
        ("ls &> a", (IDEMPOTENT, ("path:/w/a",))),
        ("ls >& a", (IDEMPOTENT, ("path:/w/a",))),
        ("> a", (IDEMPOTENT, ("path:/w/a",))),
        ("ls >> a", (NON, ("path:/w/a",))),
        ("ls &>> a", (NON, ("path:/w/a",))),
        ("ls > /dev/null 2>&1", (READ, ())),
        ("ls 2>&- <&-", (READ, ())),
        ("ls > $x", (IDEMPOTENT, ("*",))),
        ("rm b > a", (NON, ("path:/w/a", "path:/w/b"))),
        ("{ ls; pwd; } > a", (IDEMPOTENT, ("path:/w/a",))),
        ("for f in x; do ls; done > a", (IDEMPOTENT, ("path:/w/a",))),
        ("cat < a", (READ, ())),
        ("cat > a <<E\nx\nE", (IDEMPOTENT, ("path:/w/a",))),
        ("cat <<E > a\nx\nE", (IDEMPOTENT, ("path:/w/a",))),
        ("ls > /dev/tcp/h/1", (UNKNOWN, ("*",))),
    ],
)
def test_ec_24_redirections_write_where_they_point(
    command: str, expected: tuple[EffectClass, tuple[str, ...]]
) -> None:
    assert judged(command) == expected


@pytest.mark.parametrize(
    "wrapper", ["time", "nice -n 5", "timeout 5", "nohup", "env LANG=C", "stdbuf -oL", "command", "watch"]
)
def test_ec_25_a_wrapper_takes_the_class_of_what_it_wraps(wrapper: str) -> None:
    assert judged(f"{wrapper} ls") == (READ, ())
    assert judged(f"{wrapper} rm a") == (NON, ("path:/w/a",))
    assert is_unknown(f"{wrapper} ./run")


def test_ec_25_unseen_arguments_make_a_write_reach_everything() -> None:
    assert judged("ls | xargs rm a") == (NON, ("*",))
    assert judged("ls | xargs touch") == (IDEMPOTENT, ("*",))
    assert judged("find . -exec rm {} +") == (NON, ("*",))
    assert judged("ls | xargs grep x") == (READ, ())
    assert is_unknown("ls | xargs sort")


@pytest.mark.parametrize("name", ["sudo", "doas", "su", "chroot /", "ssh h"])
def test_ec_25_other_users_and_other_machines_are_unknown(name: str) -> None:
    assert is_unknown(f"{name} ls")


def test_ec_26_only_harmless_assignments_are_ignored() -> None:
    for name in ("LANG", "LC_ALL", "TZ", "TERM", "NO_COLOR", "COLUMNS"):
        assert judged(f"{name}=x ls") == (READ, ())
    for name in ("PATH", "LD_PRELOAD", "GIT_DIR", "PAGER", "x", "LANGUAGE"):
        assert is_unknown(f"{name}=x ls")
    assert judged("LANG=$(rm a) ls") == (NON, ("path:/w/a",))


@pytest.mark.parametrize(
    "command", ["pytest", "make build", "cargo test", "npm run lint", "ruff check", "python -m pytest"]
)
def test_ec_27_checks_are_unknown_and_marked(command: str) -> None:
    found = classify_shell(command, PLACE).effect
    assert (found.effect_class, found.reach, found.check) == (UNKNOWN, ("*",), True)


@pytest.mark.parametrize(
    "command", ["make install", "npm install", "python a.py", "pytest && git push", "pytest; touch a"]
)
def test_ec_27_a_line_with_another_write_is_no_check(command: str) -> None:
    assert classify_shell(command, PLACE).effect.check is False


def test_ec_27_readers_beside_a_check_leave_the_mark() -> None:
    assert classify_shell("cd src && ls && pytest -q 2>&1 | tail -5", PLACE).effect.check is True


def test_ec_28_a_literal_cd_moves_the_base() -> None:
    assert judged("cd sub && rm a") == (NON, ("path:/w/sub/a",))
    assert judged("cd /x && cd y && rm a") == (NON, ("path:/x/y/a",))
    assert judged("cd && rm a") == (NON, ("path:/home/lin/a",))
    assert judged("(cd sub && rm a); touch b") == (NON, ("path:/w/b", "path:/w/sub/a"))
    assert judged("cd $x; rm a") == (NON, ("*",))
    assert judged("cd - && rm a") == (NON, ("*",))
    assert judged("cd $x; rm /a") == (NON, ("path:/a",))


def test_ec_28_a_cd_that_may_have_failed_leaves_both_bases() -> None:
    both = (NON, ("path:/w/a", "path:/w/sub/a"))
    assert judged("cd sub; rm a") == both
    assert judged("cd sub || true; rm a") == both
    assert judged("for d in x; do cd sub; rm a; done") == (NON, ("*",))


@pytest.mark.parametrize(
    "command",
    ["curl https://h.example", "gh pr list", "kubectl get pods", "npm view x", "git ls-remote origin"],
)
def test_ec_29_a_look_over_the_network_is_a_reader(command: str) -> None:
    assert judged(command) == (READ, ())


@pytest.mark.parametrize(
    ("command", "cls"),
    [
        ("git switch main", IDEMPOTENT),
        ("git init", IDEMPOTENT),
        ("git config pull.rebase true", IDEMPOTENT),
        ("git config core.pager x", UNKNOWN),
        ("git reflog expire --all", UNKNOWN),
        ("git branch new", NON),
        ("git branch -a", READ),
        ("git tag", READ),
        ("git worktree add ../x", NON),
        ("git ls-remote ext::x", UNKNOWN),
        ("gh secret set X -b y", IDEMPOTENT),
        ("gh api -X PUT x", IDEMPOTENT),
        ("gh pr view --web", UNKNOWN),
        ("gh api graphql -f query=x", UNKNOWN),
        ("kubectl label pod a b=c", IDEMPOTENT),
        ("kubectl drain x", NON),
        ("kubectl patch deploy a -p x", UNKNOWN),
        ("docker compose logs", READ),
        ("docker network create x", IDEMPOTENT),
        ("docker volume rm x", NON),
        ("docker cp a b:c", UNKNOWN),
        ("pip index versions x", READ),
        ("pip wheel x", UNKNOWN),
        ("npm deprecate x y", NON),
        ("npm audit fix", UNKNOWN),
        ("wget https://h.example/x", NON),
        ("curl -c jar https://h.example", UNKNOWN),
        ("curl -L -X PUT https://h.example", UNKNOWN),
        ("curl -X GET -T a https://h.example", UNKNOWN),
        ("psql -f a", UNKNOWN),
        ("psql -c '\\dt'", READ),
        ("psql -c '\\! id'", UNKNOWN),
        ("sqlite3 a.db .tables", READ),
        ("sqlite3 a.db '.shell id'", UNKNOWN),
        ("mysql -e 'drop table t'", NON),
    ],
)
def test_ec_30_families_answer_by_their_table(command: str, cls: EffectClass) -> None:
    assert judged(command)[0] is cls


def test_ec_30_a_database_is_named_when_the_arguments_name_it() -> None:
    assert judged("psql -h db.example -d app -c 'delete from t'") == (NON, ("db:db.example/app",))
    assert judged("sqlite3 app.db 'delete from t'") == (NON, ("db:file/w/app.db",))


def shell(command: str) -> ShellEffect:
    return classify_shell(command, PLACE)


def test_ec_57_clients_with_a_write_are_named() -> None:
    assert shell("curl -X PUT -d a https://h.example").clients == ("curl",)
    assert shell("git push").clients == ("git",)
    assert shell("git commit -m x").clients == ()
    assert shell("curl https://h.example").clients == ()
    assert shell("timeout 5 rsync -a a h:b && make").clients == ("rsync",)
    assert shell("sudo scp a h:b").clients == ("scp",)
    assert shell("for f in a; do curl -d @$f https://h.example; done").clients == ("curl",)


@pytest.mark.parametrize(
    "client",
    ["docker", "podman", "kubectl", "systemd-run", "at", "batch", "crontab", "ssh", "tmux", "screen", "code"],
)
def test_ec_58_clients_that_hand_work_on_are_named(client: str) -> None:
    assert shell(f"{client} run x").clients == (client,)


def test_tr_105_written_literal_paths_are_listed() -> None:
    assert shell("cat > a; touch sub/b").write_targets == ("/w/a", "/w/sub/b")
    assert shell("ls").write_targets == ()


def test_ux_40_every_simple_command_is_listed() -> None:
    found = shell("A=1 git  'add' a | tee b > c; echo $(rm x)")
    assert set(found.simple_commands or ()) == {"A=1", "git add a", "> c", "tee b", "rm x", "echo $(rm x)"}
    assert shell("ls '").simple_commands is None
