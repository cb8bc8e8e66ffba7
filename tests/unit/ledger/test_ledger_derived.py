"""What is read back from rows: payloads in any form JSON allows, and a collector that is left as it was."""

from __future__ import annotations

import gc
import json

import pytest

from surefoot.ledger.derived import read_entry, without_collecting

FACTS = (3, 1, 1_700_000_000_000, "todo")


@pytest.mark.parametrize("text", ['{"a":[1,"é"]}', ' {"a": [1, "\\u00e9"]} \n', '{"a":[1,"é"]}\n'])
@pytest.mark.parametrize("stored", [str, str.encode])
def test_a_payload_reads_the_same_however_it_was_laid_out(text: str, stored: type) -> None:
    assert read_entry("ses_1", FACTS, stored(text), b"\1" * 32).payload == {"a": [1, "é"]}


@pytest.mark.parametrize("text", ["", "{", '{"a":1}x', '{"a":1}{"b":2}'])
def test_a_payload_that_is_no_json_is_not_half_read(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        read_entry("ses_1", FACTS, text, b"\1" * 32)


def test_the_collector_is_left_as_it_was_found() -> None:
    with without_collecting():
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with without_collecting():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_collector_runs_again_after_a_failure() -> None:
    with pytest.raises(ValueError, match="no"), without_collecting():
        raise ValueError("no")
    assert gc.isenabled()
