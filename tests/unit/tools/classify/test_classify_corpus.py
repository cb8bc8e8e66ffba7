"""A labelled set of commands (EC-31): no write counts as a reader, most readers are found.

`read` is what changes nothing; `write` is what may, or what may not be called a reader for another reason.
A `␊` in a command stands for the end of a line.
"""

from __future__ import annotations

from pathlib import Path

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
ROWS = [
    tuple(line.replace("␊", "\n").split("\t", 1))
    for line in (Path(__file__).parent / "corpus.tsv").read_text("utf-8").splitlines()[1:]
]
READS = [command for label, command in ROWS if label == "read"]
WRITES = [command for label, command in ROWS if label == "write"]


def reads(command: str) -> bool:
    return classify_shell(command, PLACE).effect.effect_class is EffectClass.READ_ONLY


def test_case_j06_ec_31_no_write_is_a_reader() -> None:
    assert [command for command in WRITES if reads(command)] == []


def test_ec_31_at_least_four_of_five_reads_are_found() -> None:
    missed = [command for command in READS if not reads(command)]
    assert len(missed) <= len(READS) * 0.2, missed


def test_ec_31_the_set_holds_a_thousand_commands_each_once() -> None:
    assert {label for label, _ in ROWS} == {"read", "write"}
    assert len({command for _, command in ROWS}) == len(ROWS) >= 1000


def test_ec_22_a_reader_before_a_write_hides_nothing() -> None:
    """Whatever stands first, a line that ends in a write is no reader."""
    for _, command in ROWS:
        after = [f"{command}\nrm x", f"({command}\n); rm x", f"{command}; rm x"]
        if "#" in command or "<<" in command:
            after = after[:2]
        assert [line for line in after if reads(line)] == [], command
