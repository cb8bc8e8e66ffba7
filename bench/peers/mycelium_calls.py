"""mycelium-runtime: a tool behind `ledger_sync` on its SQLite storage, claimed before and settled after."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

from mycelium import SqliteLedgerStorage, execution_scope, ledger_sync
from mycelium.transition import SideEffectClass, ToolTransitionBinding, TransitionScope
from pace import RESULT, TEXT, Pace

folder, calls = Path(sys.argv[1]), int(sys.argv[2])
store = folder / "mycelium.db"
storage = SqliteLedgerStorage(store)
binding = ToolTransitionBinding.for_tool(
    agent_id="bench", policy_version="1", side_effect_class=SideEffectClass.NON_IDEMPOTENT_MUTATE
)


@ledger_sync(storage, transition_binding=binding)
def write_note(text: str) -> str:
    return RESULT


pace = Pace(folder, calls)
with execution_scope(TransitionScope(thread_id="t1", run_id="r1", node="tools")):
    for number in range(calls):
        pace.begin()
        write_note(TEXT, tool_call_id=f"call_{number}")
        pace.end()
# It opens a connection for every operation and leaves the setting at the default of the library.
connection = sqlite3.connect(store)
synchronous = connection.execute("PRAGMA synchronous").fetchone()[0]
connection.close()
pace.report(store, synchronous)
