"""The check of a whole ledger, without changing anything (TR-200, `surefoot ledger verify`).

Owns: what is compared with what: chains, positions, witness, blobs, the file's own
structure. Does not own: what a person does about it.
"""

from __future__ import annotations

import re
from pathlib import Path

from surefoot.errors import LedgerError, SessionMissing
from surefoot.ledger import claims
from surefoot.ledger.blobs import Blobs
from surefoot.ledger.chain import POSITION_BITS, POSITION_MASK, check, genesis
from surefoot.ledger.database import Database
from surefoot.ledger.places import BLOBS, LEDGER, WITNESS
from surefoot.ledger.port import Finding, Report
from surefoot.ledger.witness import Witness, tag_of

_REF = re.compile(rb'"(?:resultRef|ref)":"(sha256:[0-9a-f]{64})"')


def audit(database: Database, witness: Witness | None, blobs: Blobs, session_id: str | None) -> Report:
    """Check one session, or everything."""
    findings: list[Finding] = []
    entries, refs = 0, set[str]()
    known = [claims.known_of(row) for row in database.rows("sessions")]
    chosen = [item for item in known if session_id in (None, item.session_id)]
    for item in chosen:
        entries += _session(database, witness, item, (findings, refs))
    findings += [
        Finding("blob_missing", session_id, None, f"{ref} is named by an entry and not there")
        for ref in sorted(refs)
        if not blobs.has(ref)
    ]
    count = 0
    if session_id is None:
        findings += [Finding("file_damaged", None, None, line) for line in database.check_file()]
        findings += _witnessed(witness, known)
        count, wrong = blobs.findings()
        findings += [Finding(code, None, None, ref) for code, ref in wrong]
    return Report(len(chosen), entries, count, tuple(findings))


def audit_folder(folder: Path, session_id: str | None = None) -> Report:
    """Check the ledger in `folder` without a handle on it: opens read-only and copies nothing.

    Raises:
        SessionMissing: there is no ledger.
        LedgerDamaged, LedgerNewer, LedgerError: it cannot be opened.
    """
    if not (folder / LEDGER).exists():
        raise SessionMissing(
            f"there is no ledger in {str(folder)!r}; start a session there first", answer="absent"
        )
    database = Database(folder / LEDGER, read_only=True)
    witness = None
    try:
        if (folder / WITNESS).exists():
            witness = Witness(folder / WITNESS, read_only=True)
        return audit(database, witness, Blobs(folder / BLOBS), session_id)
    finally:
        database.close()
        if witness is not None:
            witness.close()


def _session(
    database: Database, witness: Witness | None, item: claims.Known, found: tuple[list[Finding], set[str]]
) -> int:
    findings, refs = found
    try:
        rows = database.rows("chain_after", item.number << POSITION_BITS)
    except LedgerError as error:
        findings.append(Finding("unreadable", item.session_id, None, error.message))
        return 0
    _, position, broken = check(genesis(item.session_id), 0, rows)
    if broken is not None:
        findings.append(Finding("chain_broken", item.session_id, position + 1, broken))
        return len(rows)
    for row in rows:
        if row[6] is not None:
            refs.update(match.decode() for match in _REF.findall(row[6]))
    seen = witness.read(item.number) if witness is not None else None
    heads = {row[0] & POSITION_MASK: row[4] for row in rows}
    if seen is not None and seen.position > position:
        detail = f"the witness saw entry {seen.position}, the ledger ends at {position}"
        findings.append(Finding("tail_lost", item.session_id, seen.position, detail))
    elif seen is not None and not seen.same_head(heads.get(seen.position)):
        detail = f"entry {seen.position} is not the one the witness saw"
        findings.append(Finding("tail_lost", item.session_id, seen.position, detail))
    return len(rows)


def _witnessed(witness: Witness | None, known: list[claims.Known]) -> list[Finding]:
    if witness is None:
        return [Finding("witness_missing", None, None, "a lost tail could not be noticed")] if known else []
    tags = {tag_of(item.session_id)[0] for item in known}
    lost = [
        Finding("session_lost", seen.session_id, seen.position, "only the witness knows this session")
        for seen in witness.all()
        if seen.tag not in tags
    ]
    torn = [
        Finding("witness_torn", None, None, f"record {number} cannot be read") for number in witness.torn()
    ]
    return lost + torn
