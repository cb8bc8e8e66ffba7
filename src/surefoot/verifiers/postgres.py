"""The database verifier for PostgreSQL: is a row with the call's key committed, and can it still be?

Owns: the row `database` of TR-109 for databases behind a PostgreSQL server: the row, the fate of a
transaction, and whether the server session of the call is over. Does not own: SQLite files
(`database`), how a tool writes. Reads only, in transactions that the server itself keeps read-only.

    PostgresVerifier("dbname=shop", "select 1 from outbox where key = %(key)s", session=session_name)

The death of a client proves nothing: its server session goes on until it ends by itself, and may commit.
So a session has a name the verifier can find (`session_name(key)` as its `application_name`), or its
transaction a number that the tool wrote down (`pg_current_xact_id()`). Without either absence is no proof.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from surefoot.core.installing import Installation, install_line
from surefoot.core.model import EffectClass, Grade, Receipt
from surefoot.errors import ExtraMissing
from surefoot.machine import boot_ms
from surefoot.verifiers.port import Deadline, Observation, WriteAttempted

if TYPE_CHECKING:
    import psycopg

NAME_BYTES = 63
"""The server cuts longer names of applications."""
CONNECT_SECONDS = 5
_SCOPE = """
select (select system_identifier from pg_control_system())::text, oid::text, datname, current_user
from pg_database where datname = current_database()
"""
_SESSIONS = """
select count(*) from pg_stat_activity
where application_name = %(name)s and pid <> pg_backend_pid() and datname = current_database()
"""
"""The server shows the names of applications to everybody."""
_PREPARED = "select count(*) from pg_prepared_xacts where database = current_database()"


def session_name(key: str) -> str:
    """The `application_name` under which a tool connects, so that its server session can be found."""
    return key[:NAME_BYTES]


class PostgresVerifier:
    """Looks for a committed row by key; implements `verifiers.port.EffectVerifier`."""

    name = "database"
    operations = (("select", EffectClass.READ_ONLY),)

    def __init__(
        self,
        conninfo: str | Callable[[Receipt], str],
        query: str,
        *,
        values: Callable[[Receipt], Mapping[str, Any]] | None = None,
        session: Callable[[str], str] | None = None,
        transaction: Callable[[Receipt], int | None] | None = None,
        far: bool = True,
    ) -> None:
        """`query` selects what the call left, with `%(key)s` for its key and further `values` by name.

        `session` tells the application name that the tool connected under, by key; `transaction` the number
        it wrote down. `far` is False for a server of this machine. Raises `ExtraMissing`.
        """
        if importlib.util.find_spec("psycopg") is None:
            here = Installation(sys.prefix, sys.executable, importlib.util.find_spec("pip") is not None)
            line = install_line("postgres", here)
            raise ExtraMissing(
                f"Looking into PostgreSQL needs the extra `postgres`. Install it with: {line}",
                next_command=line,
            )
        self.far = far
        self._conninfo = conninfo
        self._query = query
        self._values = values
        self._session = session
        self._transaction = transaction

    def recovery_scope(self, call: Receipt) -> str:
        """Cluster, database and user as the server knows them. Raises OSError when it cannot be asked."""
        import psycopg

        try:
            with self._reading(call, None) as connection:
                row = connection.execute(_SCOPE).fetchone()
        except psycopg.Error as error:
            raise OSError(f"the database cannot be asked: {_said(error)}") from error
        return json.dumps(["postgres", *(row or ())], separators=(",", ":"))

    def inspect_effect(self, key: str, call: Receipt, deadline: Deadline, *, fenced: bool) -> Observation:
        """Look for the row. `fenced` says that the process that used the server session is gone."""
        import psycopg

        values = {"key": key, **(self._values(call) if self._values is not None else {})}
        try:
            with self._reading(call, deadline) as connection:
                # In this order: what is over before the rows are read can add none to them.
                why_open = self._why_open(connection, key, call) if fenced else "not_fenced"
                fate = self._fate(connection, call)
                rows = connection.execute(self._query, values).fetchmany(1)
        except psycopg.errors.ReadOnlySqlTransaction:
            raise WriteAttempted(self._query) from None
        except psycopg.errors.QueryCanceled:
            return _unknown("verifier_timeout", "The database did not answer in time.")
        except psycopg.Error as error:
            return _unknown("database_unreadable", f"The database could not be read: {_said(error)}.")
        return _observed(len(rows), fate, why_open, fenced=fenced)

    @contextmanager
    def _reading(self, call: Receipt, deadline: Deadline | None) -> Iterator[psycopg.Connection[Any]]:
        """A connection on which the server refuses every write, each statement with a snapshot of its own."""
        import psycopg

        conninfo = self._conninfo(call) if callable(self._conninfo) else self._conninfo
        left_ms = CONNECT_SECONDS * 1000 if deadline is None else deadline.boot_ms - boot_ms()
        if left_ms <= 0:
            raise psycopg.errors.QueryCanceled("no time is left")
        left_ms = min(left_ms, (1 << 31) - 1)
        with psycopg.connect(
            conninfo,
            autocommit=True,
            connect_timeout=max(2, min(CONNECT_SECONDS, left_ms // 1000)),
            options=f"-c default_transaction_read_only=on -c statement_timeout={left_ms}",
            application_name="surefoot look-up",
        ) as connection:
            yield connection

    def _why_open(self, connection: psycopg.Connection[Any], key: str, call: Receipt) -> str | None:
        """Why the call's own transaction may still commit; None when it cannot any more."""
        fate = self._fate(connection, call)
        if fate is not None:
            return None if fate in ("aborted", "committed") else "transaction_open"
        if self._session is None:
            return "session_unnamed"
        if (connection.execute("select pg_is_in_recovery()").fetchone() or (True,))[0]:
            return "standby"  # its rows and sessions are not those of the server that is written to
        name = session_name(self._session(key))
        if not name:
            return "session_unnamed"
        if (connection.execute(_SESSIONS, {"name": name}).fetchone() or (1,))[0]:
            return "session_alive"
        prepared = (connection.execute(_PREPARED).fetchone() or (1,))[0]
        return "transaction_prepared" if prepared else None

    def _fate(self, connection: psycopg.Connection[Any], call: Receipt) -> str | None:
        """`committed`, `aborted` or `in progress`; None when no transaction is known, or it is too long ago."""
        number = None if self._transaction is None else self._transaction(call)
        if number is None:
            return None
        row = connection.execute("select pg_xact_status(%s::text::xid8)", (str(number),)).fetchone()
        return None if row is None else row[0]


def _observed(rows: int, fate: str | None, why_open: str | None, *, fenced: bool) -> Observation:
    evidence = {"rows": rows, "transaction": fate}
    if rows or fate == "committed":
        said = "A row with the key is committed." if rows else "The transaction of the call is committed."
        return Observation("present", Grade.PROOF, fenced, said, evidence)
    if why_open is None:
        said = "No row with the key is committed, and the call's own session is over."
        return Observation("absent", Grade.PROOF, True, said, evidence)
    open_point = "that a transaction which is still open cannot commit one"
    said = "No row with the key is committed."
    return Observation("absent", Grade.PROOF, False, said, evidence, open_point, why_open)


def _said(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _unknown(reason: str, summary: str) -> Observation:
    return Observation("unknown", Grade.NONE, False, summary, {}, reason=reason)
