"""DBOS: one workflow of many steps on SQLite. A step is recorded when it has ended."""

from __future__ import annotations

import sys
from pathlib import Path

import sqlalchemy
from dbos import DBOS
from dbos._dbos import _get_dbos_instance
from pace import RESULT, TEXT, Pace

folder, calls = Path(sys.argv[1]), int(sys.argv[2])
store = folder / "dbos.sqlite"
DBOS(
    config={
        "name": "bench",
        "system_database_url": f"sqlite:///{store}",
        "log_level": "ERROR",
        "run_admin_server": False,
    }
)


@DBOS.step()
def write_note(text: str) -> str:
    return RESULT


@DBOS.workflow()
def loop(pace_calls: int) -> int:
    for _ in range(pace_calls):
        pace.begin()
        write_note(TEXT)
        pace.end()
    return pace_calls


pace = Pace(folder, calls)
DBOS.launch()
loop(calls)
with _get_dbos_instance()._sys_db.engine.connect() as connection:
    synchronous = connection.execute(sqlalchemy.text("PRAGMA synchronous")).scalar()
DBOS.destroy()
pace.report(store, int(synchronous or 0))
