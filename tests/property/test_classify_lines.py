"""Laws of the shell classifier over generated lines; what it calls a reader is run by a real shell."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from surefoot.core.model import EffectClass
from surefoot.runtime.tools import Place
from surefoot.tools.classify.environment import reading_environment
from surefoot.tools.classify.shell import classify_shell

PIECES = [
    *("ls", "echo", "cat", "true", "touch m", "> m", ">> m", ">m", "tee m", "x", "E", "in", "m"),
    *(" ", " ", " ", "\n", "\t", ";", "&&", "||", "|", "&", "!", "#", " #", "\\", "\\\n"),
    *(
        "'",
        '"',
        "`",
        "$(",
        ")",
        "(",
        "{",
        "}",
        "${",
        "$'",
        '$"',
        "$x",
        "$",
        "<(",
        ">(",
        "<<E",
        "<<'E'",
        "<<-E",
        "<<<",
        "\nE\n",
    ),
    *(
        "((",
        "))",
        "[[",
        "]]",
        "[",
        "]",
        "for f in a; do",
        "done",
        "if true; then",
        "fi",
        "case x in x)",
        ";;",
        "esac",
    ),
    *(
        "f()",
        "function f",
        "sh -c",
        "bash -c",
        "xargs",
        "env",
        "eval",
        "command",
        "time",
        "-",
        "=",
        "x=",
        "*",
        "?",
        "~",
        ",",
    ),
]
LINES = st.lists(st.sampled_from(PIECES), min_size=1, max_size=14).map("".join)
PLACE = Place(Path("/w"), work_tree=Path("/w"))


def left_behind(line: str) -> list[str]:
    """What a real shell leaves in an empty folder after running a line that was called a reader."""
    found = classify_shell(line, PLACE)
    if found.effect.effect_class is not EffectClass.READ_ONLY or found.reading_text is None:
        return []
    made = reading_environment({"PATH": "/usr/bin:/bin"})
    assert made is not None
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["bash", *made.shell_options, "-c", found.reading_text],
            cwd=folder,
            env=dict(made.variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=90,
            check=False,
        )
        return sorted(path.name for path in Path(folder).iterdir())


@settings(max_examples=400, deadline=None)
@given(LINES)
@example("cat <<E\nx\nE\ntouch m")
@example("cat <<'E'\n$(touch m)\nE\n")
@example("echo '\\' ; touch m")
@example('echo "a"#b; touch m')
@example("echo $'\\'' touch m'")
@example("echo a\\\n; touch m")
@example("echo `echo \\`touch m\\``")
@example("cat <<-E\n\tx\n\tE\ntouch m")
@example("echo ${x:-`touch m`}")
@example("echo x\n\\\ntouch m")
@example("echo a\\\n#$(touch m)")
@example("echo \\<<E m$(touch m)")
@example("sort < /dev/null -o m")
@example("sort <<E -o m\nx\nE")
@example("sort 2>&1 -o m")
@example("cat <<E <<F\nE\nF\ntouch m")
def test_ec_31_what_is_called_a_reader_leaves_nothing_behind(line: str) -> None:
    assert left_behind(line) == []


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=80))
def test_ec_5_any_text_has_an_answer(text: str) -> None:
    found = classify_shell(text, PLACE)
    assert found.effect.effect_class in EffectClass
    assert (found.effect.reach == ()) == (found.effect.effect_class is EffectClass.READ_ONLY)


@settings(max_examples=200, deadline=None)
@given(
    LINES,
    st.sampled_from(["ls", "touch a", "rm b", "make"]),
    st.sampled_from(["{0}\n{1}", "{1}; {0}", "{1} && {0}"]),
)
def test_ec_9_a_line_is_never_looser_than_a_part_of_it(line: str, part: str, shape: str) -> None:
    if shape.startswith("{0}") and ("#" in line or "\\" in line or "<<" in line):
        return
    whole = classify_shell(shape.format(line, part), PLACE).effect
    alone = classify_shell(part, PLACE).effect
    assert whole.effect_class.strictness >= alone.effect_class.strictness
    assert "*" in whole.reach or set(alone.reach) <= set(whole.reach)
