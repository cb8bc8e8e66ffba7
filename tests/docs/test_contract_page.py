"""The page of contracts names every key, with every value a key may have, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from surefoot.providers import contracts
from surefoot.providers.contract_keys import SCHEMA

PAGE = Path(__file__).parents[2] / "docs/reference/contracts.md"
ROWS = {
    tuple(re.findall(r"`([a-z_.]+)`", cells[1])): re.findall(r"`([^`]+)`", cells[2])
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| `") and (cells := line.split("|"))
}


def test_wc_1_the_page_of_contracts_has_every_key_and_no_other() -> None:
    listed = [key for keys in ROWS for key in keys]
    assert sorted(listed) == sorted(SCHEMA)


def test_wc_1_the_page_of_contracts_has_the_values_of_every_closed_list() -> None:
    for keys, values in ROWS.items():
        for allowed in (SCHEMA[key] for key in keys):
            words = [str(one).lower() if isinstance(one, bool) else one for one in allowed]
            if isinstance(allowed, tuple):
                assert sorted(values) == sorted(words), keys


def test_wc_1_the_contract_on_the_page_is_one(tmp_path: Path) -> None:
    found = re.search(r"```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    (tmp_path / "acme.toml").write_text(found.group(1), encoding="utf-8")
    shown = contracts.resolve("acme/chat", [tmp_path])
    assert shown["pairing.orphan_result"] == "accept" and shown["limits.body_bytes"] == 4 << 20
