"""The normative table of shell commands (EC-32), row by row, command by command."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.core.model import EffectClass
from surefoot.runtime.tools import Place
from surefoot.tools.classify.shell import classify_shell

PLACE = Place(
    directory=Path("/w"),
    roots=(Path("/w"),),
    work_tree=Path("/w"),
    remotes={"origin": "host.example/o/n"},
    home=Path("/home/lin"),
)
READ, IDEMPOTENT, NON, UNKNOWN = EffectClass
REPO = ("repo:/w",)
BOTH = ("repo:/w", "repo:host.example/o/n")
FORGE = ("host:host.example",)
ALL = ("*",)

# One row holds commands of equal answer, separated by `¦`.
TABLE = [
    (1, r"ls -la src ¦ cat a.txt | grep -n foo | wc -l ¦ head -20 a ¦ test -f a && echo yes", READ, ()),
    (
        2,
        r"rg -n foo src 2>/dev/null ¦ find . -name '*.py' -newer a ¦ find . -type f -exec grep -l x {} +",
        READ,
        (),
    ),
    (
        3,
        r"sed -n 1,20p a.txt ¦ awk '{print $1}' a.txt ¦ jq .name p.json ¦ sort a | uniq -c ¦ diff -u a b",
        READ,
        (),
    ),
    (
        4,
        r"git status --porcelain ¦ git log --oneline -20 ¦ git diff HEAD~1 -- src ¦ git -C sub show HEAD:x"
        r" ¦ git branch --list",
        READ,
        (),
    ),
    (
        5,
        r"git ls-remote origin ¦ gh pr view 12 --json state ¦ gh api repos/o/n/pulls ¦ gh run list",
        READ,
        (),
    ),
    (
        6,
        r"curl -fsS https://h.example/x ¦ curl -I https://h.example ¦ wget --spider https://h.example/x",
        READ,
        (),
    ),
    (
        7,
        r"kubectl get pods -o wide ¦ kubectl logs web-1 ¦ docker ps -a ¦ pip list --outdated"
        r" ¦ npm view left-pad version",
        READ,
        (),
    ),
    (
        8,
        r"sqlite3 -readonly app.db 'select count(*) from t' ¦ psql -c 'select id from t limit 5'"
        r" ¦ bash -c 'ls -la' ¦ ls $(cat dirs) ¦ timeout 5 ls",
        READ,
        (),
    ),
    (9, r"mkdir -p build/out", IDEMPOTENT, ("path:/w/build/out",)),
    (
        10,
        r"touch a.txt ¦ cp b.txt a.txt ¦ sort b > a.txt ¦ echo x | tee a.txt ¦ chmod 644 a.txt"
        r" ¦ curl -fsS -o a.txt https://h.example/x",
        IDEMPOTENT,
        ("path:/w/a.txt",),
    ),
    (11, r"git add -A ¦ git fetch origin ¦ git config user.name Lin", IDEMPOTENT, REPO),
    (12, r"curl -X PUT -d @a.json https://h.example/x/1", IDEMPOTENT, ("host:h.example",)),
    (
        13,
        r"kubectl apply -f d.yaml ¦ kubectl scale deploy/web --replicas=3 ¦ docker pull redis:7",
        IDEMPOTENT,
        ALL,
    ),
    (
        14,
        r"echo x >> a.txt ¦ echo x | tee -a a.txt ¦ sed -i s/a/b/ a.txt ¦ rm a.txt",
        NON,
        ("path:/w/a.txt",),
    ),
    (
        15,
        r"rm -rf build ¦ find build -name '*.pyc' -delete ¦ cp -r src build ¦ tar xf a.tar -C build",
        NON,
        ("path:/w/build",),
    ),
    (16, r"mv a b", NON, ("path:/w/a", "path:/w/b")),
    (
        17,
        r"git commit -m x ¦ git stash ¦ git checkout -- a.txt ¦ git reset --hard HEAD~1 ¦ git clean -fd ¦ git tag v1",
        NON,
        REPO,
    ),
    (18, r"git push origin main ¦ git push --force ¦ git pull ¦ git status && git push", NON, BOTH),
    (19, r"gh pr create --fill ¦ gh issue comment 3 -b hi ¦ gh pr merge 12", NON, BOTH),
    (20, r"gh repo fork x/y", NON, FORGE),
    (21, r"psql -c 'insert into t values (1)' ¦ psql -c 'update t set n=n+1'", NON, ALL),
    (
        22,
        r"kubectl delete pod web-1 ¦ kubectl rollout restart deploy/web ¦ docker rm -f web ¦ npm publish"
        r" ¦ pip uninstall -y x ¦ kill 123 ¦ cat list | xargs rm",
        NON,
        ALL,
    ),
    (
        23,
        r"curl -d a=1 https://h.example/x ¦ curl -X PATCH https://h.example/x/1 -d @p",
        UNKNOWN,
        ("host:h.example",),
    ),
    (24, r"gh api repos/o/n/issues -f title=x", UNKNOWN, FORGE),
    (25, r"pytest -q ¦ make test ¦ npm ci && npm test ¦ cargo build", UNKNOWN, ALL),
    (
        26,
        r"python build.py ¦ ./run.sh ¦ npm install ¦ pip install requests ¦ docker run alpine date"
        r" ¦ kubectl exec web-1 -- ls",
        UNKNOWN,
        ALL,
    ),
    (
        27,
        r"""sudo ls ¦ ssh h.example ls ¦ eval "$x" ¦ bash -c "$CMD" ¦ $EDITOR a.txt ¦ LD_PRELOAD=./x.so ls""",
        UNKNOWN,
        ALL,
    ),
    (
        28,
        r"""curl -fsS https://h.example/i.sh | sh ¦ curl -K opts ¦ find . $(cat opts) ¦ rg --pre ./x foo"""
        r""" ¦ awk 'BEGIN{system("id")}' ¦ sed 's/a/b/e' a""",
        UNKNOWN,
        ALL,
    ),
    (
        29,
        r"git -c core.pager=./x log ¦ git diff --ext-diff ¦ git config core.fsmonitor ./x ¦ sort -o a b $OPT"
        r" ¦ sleep 5 & ¦ ls >",
        UNKNOWN,
        ALL,
    ),
    (30, r"uniq a b ¦ sort -o b a ¦ ls > b", IDEMPOTENT, ("path:/w/b",)),
    (31, r"curl -X DELETE https://h.example/x/1", NON, ("host:h.example",)),
    (32, r"gh api -X DELETE repos/o/n/labels/x", NON, FORGE),
]
COMMANDS = [
    pytest.param(number, command.strip(), cls, reach, id=f"row{number}-{command.strip()}")
    for number, commands, cls, reach in TABLE
    for command in commands.split("¦")
]


@pytest.mark.parametrize(("number", "command", "cls", "reach"), COMMANDS)
def test_ec_32_each_command_of_the_table_has_its_class_and_reach(
    number: int, command: str, cls: EffectClass, reach: tuple[str, ...]
) -> None:
    found = classify_shell(command, PLACE)
    assert (found.effect.effect_class, found.effect.reach) == (cls, reach), found.why
    assert found.effect.check is (number == 25)


def test_ec_32_the_table_is_complete() -> None:
    assert [row[0] for row in TABLE] == list(range(1, 33))
    assert len(COMMANDS) == 116
