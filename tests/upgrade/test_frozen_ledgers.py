"""Can yesterday's ledger be read? Every frozen ledger is opened, read, verified and continued."""

from __future__ import annotations

import importlib.util
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from surefoot.ledger.opening import open_ledger

HERE = Path(__file__).parent
FROZEN = sorted((HERE / "ledgers").glob("*.tar.gz"))


def _freeze() -> Any:
    spec = importlib.util.spec_from_file_location("freeze", HERE / "freeze.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=FROZEN, ids=lambda path: path.name)
def frozen(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    with tarfile.open(request.param) as archive:
        # Python 3.11.0 to 3.11.3 know no filter; the archive is our own.
        archive.extractall(tmp_path, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return tmp_path, json.loads(Path(str(request.param).removesuffix(".tar.gz") + ".json").read_text())


def test_there_is_a_frozen_ledger() -> None:
    assert FROZEN


async def test_a_frozen_ledger_reads_as_it_did_when_it_was_written(
    frozen: tuple[Path, dict[str, Any]],
) -> None:
    folder, told = frozen
    assert await _freeze().read(folder) == told


async def test_a_frozen_ledger_keeps_its_stored_results_and_verifies_before_and_after_it_is_opened_for_writing(
    frozen: tuple[Path, dict[str, Any]],
) -> None:
    folder, told = frozen
    for _ in range(2):
        ledger = await open_ledger(folder)
        try:
            assert not (await ledger.verify()).findings
            for session_id in told["sessions"]:
                for receipt in await ledger.receipts(session_id):
                    if receipt.result_ref is not None:
                        assert await ledger.get_blob(receipt.result_ref)
        finally:
            await ledger.close()
