"""The texts of results that stand in blobs (TR-6).

Owns: that a missing or torn one is left out, and told as missing by whoever asked. Does not own: what is
told of a call (`core.results`).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

from surefoot.core.model import Receipt
from surefoot.errors import LedgerDamaged


class ReadsBlobs(Protocol):
    """The one verb of a ledger that this needs."""

    async def get_blob(self, ref: str) -> bytes: ...


async def stored_texts(ledger: ReadsBlobs, refs: Iterable[str]) -> dict[str, str]:
    """The text behind each reference that can be read now."""
    found: dict[str, str] = {}
    for ref in dict.fromkeys(refs):
        with suppress(LedgerDamaged):
            found[ref] = (await ledger.get_blob(ref)).decode("utf-8", "surrogatepass")
    return found


def refs_of(receipts: Iterable[Receipt]) -> list[str]:
    """The references of the results that stand in no entry."""
    return [one.result_ref for one in receipts if one.result is None and one.result_ref]
