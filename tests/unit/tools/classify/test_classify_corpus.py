"""A labelled set of commands (EC-31): no write counts as a reader, most readers are found."""

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
ROWS = [
    tuple(line.split("\t", 1))
    for line in (Path(__file__).parent / "corpus.tsv").read_text("utf-8").splitlines()[1:]
]
READS = [command for label, command in ROWS if label == "read"]
WRITES = [command for label, command in ROWS if label == "write"]


@pytest.mark.parametrize("command", WRITES)
def test_ec_31_no_write_is_a_reader(command: str) -> None:
    assert classify_shell(command, PLACE).effect.effect_class is not EffectClass.READ_ONLY


def test_ec_31_at_least_four_of_five_reads_are_found() -> None:
    missed = [
        line for line in READS if classify_shell(line, PLACE).effect.effect_class is not EffectClass.READ_ONLY
    ]
    assert len(missed) <= len(READS) * 0.2, missed


def test_ec_31_the_set_holds_each_command_once() -> None:
    assert {label for label, _ in ROWS} == {"read", "write"}
    assert len({command for _, command in ROWS}) == len(ROWS) >= 700


@pytest.mark.parametrize("command", [command for _, command in ROWS])
def test_ec_22_a_reader_before_a_write_hides_nothing(command: str) -> None:
    """Whatever stands first, a line that ends in a write is no reader."""
    after = [f"{command}\nrm x", f"({command}\n); rm x"]
    for line in after if "#" in command else [*after, f"{command}; rm x"]:
        assert classify_shell(line, PLACE).effect.effect_class is not EffectClass.READ_ONLY
