"""Pure. Call fragments of a Chat stream → whole calls, each exactly once (S-10 to S-19).

Owns: which fragment belongs to which call. Does not own: when a call counts as cut (`written`),
whether the arguments fit the tool (`runtime.arguments`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from surefoot.providers.port import ReplyCall
from surefoot.providers.written import Written, as_text, grown, is_json, reply_calls, said


@dataclass(slots=True)
class OpenCall:
    """A call while its fragments arrive. The first non-empty id and name win (S-13)."""

    index: int | None
    id: str = ""
    name: str = ""
    arguments: str = ""
    whole: bool = False
    """Arguments came as a value, not as text: nothing may be appended (S-18)."""
    extra: dict[str, Any] = field(default_factory=dict)
    function_extra: dict[str, Any] = field(default_factory=dict)

    def complete(self) -> bool:
        """Whether the argument text so far is one whole JSON value."""
        return self.whole or is_json(self.arguments)


class CallCollector:
    """Accumulates `tool_calls` deltas in the order in which calls first appeared."""

    def __init__(self, *, snapshots: bool = False) -> None:
        self.calls: list[OpenCall] = []
        self._snapshots = snapshots
        self._latest: dict[int, OpenCall] = {}

    def add(self, delta: Mapping[str, Any]) -> None:
        """Take one element of a delta's `tool_calls`."""
        call_id, name, arguments = _parts(delta)
        index = delta.get("index")
        index = index if isinstance(index, int) and not isinstance(index, bool) else None
        call = self._home(index, call_id, name, arguments)
        if call is None:
            call = OpenCall(index)
            self.calls.append(call)
        if index is not None:
            self._latest[index] = call
        self._take(call, call_id, name, arguments)
        _keep_extra(call, delta)

    def add_whole(self, item: Mapping[str, Any]) -> None:
        """Take one element of a whole message's `tool_calls`; each is a call of its own."""
        call = OpenCall(None)
        self.calls.append(call)
        self._take(call, *_parts(item))
        _keep_extra(call, item)

    def _home(self, index: int | None, call_id: str, name: str, arguments: Any) -> OpenCall | None:
        """The call a fragment goes on with, or None when it opens a new one."""
        if index is not None:
            call = self._latest.get(index)
        elif call_id:
            call = next((one for one in reversed(self.calls) if one.id == call_id), None)
        else:
            call = self.calls[-1] if self.calls else None
        if call is None:
            return None
        if call_id and call.id and call_id != call.id:
            return None  # S-12: a new id opens a new call whatever the index says
        if index is None and not call_id and name and call.name and name != call.name:
            return None
        return None if self._starts_anew(call, arguments) else call

    def _starts_anew(self, call: OpenCall, arguments: Any) -> bool:
        """S-12: a `{` after a complete value cannot belong to that value."""
        if self._snapshots and isinstance(arguments, str) and arguments.startswith(call.arguments):
            return False
        if isinstance(arguments, str):
            return arguments.lstrip().startswith("{") and bool(call.arguments) and call.complete()
        return arguments is not None and bool(call.arguments)

    def _take(self, call: OpenCall, call_id: str, name: str, arguments: Any) -> None:
        call.id = call.id or call_id
        call.name = call.name or name
        if isinstance(arguments, str):
            call.arguments = grown(call.arguments, arguments, snapshots=self._snapshots)
        elif arguments is not None:
            call.arguments, call.whole = as_text(arguments), True


def _parts(delta: Mapping[str, Any]) -> tuple[str, str, Any]:
    function = delta.get("function")
    function = function if isinstance(function, Mapping) else {}
    return said(delta.get("id")), said(function.get("name")), function.get("arguments")


def _keep_extra(call: OpenCall, delta: Mapping[str, Any]) -> None:
    """Provider fields beside ours are stored as sent; added nulls are not (S-40)."""
    for key, value in delta.items():
        if key not in ("index", "id", "type", "function") and value is not None:
            call.extra[key] = value
    function = delta.get("function")
    for key, value in (function if isinstance(function, Mapping) else {}).items():
        if key not in ("name", "arguments") and value is not None:
            call.function_extra[key] = value


def raw_call(call: OpenCall) -> dict[str, Any]:
    """The call in the wire's JSON, for the stored message."""
    function = {"name": call.name, "arguments": call.arguments, **call.function_extra}
    head = {"id": call.id} if call.id else {}
    return {**head, "type": "function", "function": function, **call.extra}


def finished(calls: list[OpenCall], finish: str | None, contract: Mapping[str, Any]) -> tuple[ReplyCall, ...]:
    """The reply's calls, once its end has come."""
    return reply_calls([Written(call.name, call.arguments, call.id) for call in calls], finish, contract)
