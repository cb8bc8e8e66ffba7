"""LangGraph functional API: one entrypoint of many `@task`s with SqliteSaver, durability `sync`."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.func import entrypoint, task
from pace import RESULT, TEXT, Pace

folder, calls = Path(sys.argv[1]), int(sys.argv[2])
store = folder / "langgraph.sqlite"
connection = sqlite3.connect(store, check_same_thread=False)


@task
def write_note(text: str) -> str:
    return RESULT


@entrypoint(checkpointer=SqliteSaver(connection))
def loop(count: int) -> int:
    for _ in range(count):
        pace.begin()
        write_note(TEXT).result()
        pace.end()
    return count


pace = Pace(folder, calls)
loop.invoke(calls, {"configurable": {"thread_id": "bench"}}, durability="sync")
synchronous = connection.execute("PRAGMA synchronous").fetchone()[0]
connection.close()
pace.report(store, synchronous)
