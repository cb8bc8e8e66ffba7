"""LangGraph: a graph over a list of messages, one model node and one tool node, SqliteSaver, durability `sync`.

A call is one round: the assistant message with its call, the tool, its result, and their checkpoints.
"""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from pace import RESULT, TEXT, Pace

folder, calls = Path(sys.argv[1]), int(sys.argv[2])
store = folder / "langgraph.sqlite"
connection = sqlite3.connect(store, check_same_thread=False)


def model(state: MessagesState) -> dict[str, Any]:
    # From one entry of this node to the next: both nodes and both checkpoints.
    if pace.running:
        pace.end()
    pace.begin()
    asked = {"name": "write_note", "args": {"text": TEXT}, "id": f"call_{pace.done}"}
    return {"messages": [AIMessage("", tool_calls=[asked])]}


def tools(state: MessagesState) -> dict[str, Any]:
    asked = state["messages"][-1].tool_calls[0]
    return {"messages": [ToolMessage(RESULT, tool_call_id=asked["id"])]}


def again(state: MessagesState) -> str:
    return "model" if pace.done < calls else END


graph = StateGraph(MessagesState)
graph.add_node("model", model)
graph.add_node("tools", tools)
graph.add_edge(START, "model")
graph.add_edge("model", "tools")
graph.add_conditional_edges("tools", again)
app = graph.compile(checkpointer=SqliteSaver(connection))

pace = Pace(folder, calls)
config = {"configurable": {"thread_id": "bench"}, "recursion_limit": 10 * calls}
app.invoke({"messages": [("user", "Keep the notes of today.")]}, config, durability="sync")
synchronous = connection.execute("PRAGMA synchronous").fetchone()[0]
connection.close()
pace.report(store, synchronous)
