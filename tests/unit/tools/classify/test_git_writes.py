"""Which lines are one git write and nothing else (TR-109, TR-110)."""

from __future__ import annotations

import pytest

from surefoot.tools.classify.git_writes import git_write

HEREDOC = "git commit -m \"$(cat <<'EOF'\nfix: $x `y`\n\nbody\nEOF\n)\""


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("git commit -m x", "commit"),
        ("git commit --amend --no-edit", "commit"),
        ('git commit -m "$TITLE"', "commit"),
        (HEREDOC, "commit"),
        ("cd sub && git add . && git commit -qm 'x y' > /dev/null 2>&1", "commit"),
        ("git tag -a v1 -m m HEAD~1", "tag"),
        ("git branch -f side main", "branch"),
        ("git switch -c side", "branch"),
        ("git push -u origin main", "push"),
        ("git push origin +main:refs/heads/x", "push"),
    ],
)
def test_tr_109_a_single_git_write_is_recognised(line: str, kind: str) -> None:
    found = git_write(line)
    assert found is not None and found.kind == kind


@pytest.mark.parametrize(
    "line",
    [
        "git commit",
        'git commit -m "$(rm -rf other; echo x)"',
        "git commit -m `date`",
        "git commit -m \"$(cat <<'EOF'\nx\nEOF\nrm -rf other\n)\"",
        'git commit -m "$(cat <<EOF\n$(rm -rf other)\nEOF\n)"',
        "git commit -F <(make message)",
        "git commit -m x; rm -rf other",
        "git commit -m x || rm -rf other",
        "git commit -m x && git push",
        "git commit -m x | tee log",
        "git commit -m x > log",
        "git commit -m x &",
        "(git commit -m x)",
        "GIT_DIR=other git commit -m x",
        "git -c core.hooksPath=other commit -m x",
        "git --git-dir=other commit -m x",
        "git commit -m x file.txt",
        "git commit --fixup=HEAD",
        "git commit -e -m x",
        "make && git commit -m x",
        "cd $HOME && git commit -m x",
        "git add -p && git commit -m x",
        "git add x && git -C other commit -m x",
        "git add x && git tag v1",
        "git tag -d v1",
        "git tag",
        "git branch -D side",
        "git branch -m a b",
        "git checkout main",
        "git checkout -b side main",
        "git push --tags",
        "git push --delete origin side",
        "git push origin :side",
        "git push --mirror",
        "git push origin 'refs/heads/*'",
        "git merge side",
        "gitcommit -m x",
        "git commit -m 'x",
        "",
    ],
)
def test_tr_110_whatever_may_do_more_or_other_is_not_recognised(line: str) -> None:
    assert git_write(line) is None


def test_tr_109_a_message_is_known_only_when_it_is_literal() -> None:
    def messages(line: str) -> tuple[str, ...] | None:
        found = git_write(line)
        assert found is not None
        return found.messages

    assert messages("git commit -m one -m 'two  three'") == ("one", "two  three")
    assert messages("git commit -m '-all of it'") == ("-all of it",)
    assert messages("git commit -qmshort") == ("short",)
    assert messages(HEREDOC) == ("fix: $x `y`\n\nbody",)
    assert messages('git commit -m "$TITLE"') is None
    assert messages("git commit -s -m x") is None and messages("git commit --amend -m x") is None
