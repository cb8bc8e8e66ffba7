"""The rows FI-1 to FI-7 of the recovery matrix against real services. Opt-in: `make live`.

Owns: which rows there are, the one edit of the outgoing copy of a replay request, and the table of results.
Does not own: recovery itself. Nothing here is collected by pytest.

Credentials come from the environment alone. They leave it before anything is started and appear in no
output, file or message (PR-96). Without them the rows are listed and nothing is sent.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surefoot.app import Parts, open_app
from surefoot.config import load_settings
from surefoot.core.model import TurnStatus
from surefoot.errors import ProviderError, SurefootError
from surefoot.providers import contracts
from surefoot.providers.client import Client
from surefoot.providers.endpoints import Endpoint, Frozen
from surefoot.providers.port import Reply, ToolSpec
from surefoot.providers.projection import WIRES
from surefoot.providers.shaping import body_bytes
from surefoot.runtime.controller import TurnEnd
from surefoot.runtime.models import EndpointModel

SEARCH = "Search the web once for the height of Mount Fuji and answer in one sentence. Use no other tool."
WORDS = "Read the file notes/marker.txt with the tool `read`, then tell me in one sentence what it says."
PREFIX = "SUREFOOT_LIVE_"
DEEPSEEK_URLS = {
    "chat": "https://api.deepseek.com/v1",
    "responses": "https://api.deepseek.com/v1",
    "anthropic": "https://api.deepseek.com/anthropic/v1",
}
CASE_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Case:
    """One row with one model on one wire."""

    row: str
    service: str
    wire: str
    model: str
    contract: str
    expects: str
    """`automatic`, `explicit`, `either`, `failed` or `search`."""
    protocol: str | None = None

    @property
    def name(self) -> str:
        """As the table shows it."""
        return f"{self.row} {self.service}/{self.model} {self.wire}"


@dataclass(slots=True)
class Seen:
    """What one case showed. `explicit` is never counted as `automatic`."""

    statuses: list[int] = field(default_factory=list)
    fired: bool = False
    executions: int = 0
    automatic: bool = False
    explicit: bool = False
    offered: bool = False
    ended: str = ""
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    sources: str = ""
    """`available` or `not_provided`, as the record of the search says; empty when none finished."""
    replayed: bool = False
    """Whether the search's raw items stood unchanged in every later request."""
    searches: int = 0


_SEARCH_TYPES = ("server_tool_use", "web_search_tool_result", "web_search_call")


def search_items(raw: Mapping[str, Any]) -> list[Any]:
    """The items a native search left in a reply, as they came, but for keys without a value. Pure."""
    items = raw.get("content") or raw.get("output") or ()
    found = [one for one in items if isinstance(one, dict) and one.get("type") in _SEARCH_TYPES]
    return [{key: value for key, value in one.items() if value is not None} for one in found]


def holds(body: Mapping[str, Any], items: Sequence[Any]) -> bool:
    """Whether a request brings all of these items back. Pure."""
    given = list(body.get("input") or ())
    for message in body.get("messages") or ():
        given += message["content"] if isinstance(message.get("content"), list) else []
    return bool(items) and all(one in given for one in items)


def without_carrier(wire: str, body: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """A copy of a request without the model's reasoning, and whether anything was taken away. Pure."""
    copied: dict[str, Any] = json.loads(json.dumps(body))
    before = json.dumps(copied)
    if wire == "responses":
        copied["input"] = [one for one in copied.get("input", ()) if one.get("type") != "reasoning"]
    for message in copied.get("messages", ()):
        if wire == "chat" and message.get("role") == "assistant":
            message.pop("reasoning_content", None)
        content = message.get("content")
        if wire == "anthropic" and isinstance(content, list):
            message["content"] = [one for one in content if "thinking" not in str(one.get("type"))]
    return copied, json.dumps(copied) != before


class TamperedModel(EndpointModel):
    """Sends the second request without its carriers; what is stored stays whole (PR-95)."""

    seen: Seen
    tampers = True

    async def send(self, frozen: Frozen, on_delta: Callable[[Any], None]) -> Reply:
        if self.tampers and len(self.seen.statuses) == 1:
            body, self.seen.fired = without_carrier(self.wire, frozen.body)
            frozen = Frozen(frozen.request, body, body_bytes(body))
        try:
            reply = await super().send(frozen, on_delta)
        except ProviderError as error:
            self.seen.statuses.append(int(error.facts.get("status") or 0))
            raise
        self.seen.statuses.append(200)
        self.seen.input_tokens = _sum(self.seen.input_tokens, reply.usage.input_tokens)
        self.seen.output_tokens = _sum(self.seen.output_tokens, reply.usage.output_tokens)
        return reply


class SearchingModel(TamperedModel):
    """Sends everything as it is, and looks whether the items of the search come back unchanged."""

    tampers = False
    _items: Sequence[Any] = ()

    async def send(self, frozen: Frozen, on_delta: Callable[[Any], None]) -> Reply:
        seen = self.seen
        if seen.statuses:
            seen.replayed = holds(frozen.body, self._items) and (seen.replayed or len(seen.statuses) == 1)
        reply = await super().send(frozen, on_delta)
        items = search_items(reply.raw)
        seen.searches += sum(one["type"] != "web_search_tool_result" for one in items)
        if len(seen.statuses) == 1:
            self._items, seen.fired = items, bool(reply.searches)
            seen.sources = reply.searches[0]["sources_status"] if reply.searches else ""
        return reply


def _sum(so_far: int | None, more: int | None) -> int | None:
    return None if so_far is None or more is None else so_far + more


def verdict(case: Case, seen: Seen) -> str:
    """`passed`, `failed: …` or `not_exercised`. Pure."""
    if case.expects == "search":
        return _searched(seen)
    if len(seen.statuses) < 2:
        return "failed: the model asked for no tool, so nothing was replayed"
    if not seen.fired:
        return "failed: the fault did not fire, the reply carried nothing to take away"
    if seen.statuses[1] == 200:
        return "not_exercised"  # FI-5: the service accepted the edited request
    if seen.executions != 1:
        return f"failed: {seen.executions} executions instead of one"
    if case.expects == "failed":
        return "passed" if not seen.automatic and (seen.offered or seen.ended) else "failed: it did not fail"
    if case.expects == "explicit" and seen.automatic:
        return "failed: it recovered without being asked"
    wanted = {
        "automatic": seen.automatic,
        "explicit": seen.explicit,
        "either": seen.automatic or seen.explicit,
    }
    return "passed" if wanted[case.expects] else f"failed: {seen.ended}"


def _searched(seen: Seen) -> str:
    """FI-7: one search, told with its status, replayed raw through a turn with a tool."""
    if not seen.fired:
        return "failed: the provider finished no search"
    if seen.searches != 1:
        return f"failed: {seen.searches} searches instead of one"
    if set(seen.statuses) != {200} or seen.ended != "completed":
        return f"failed: {seen.ended}"
    if seen.executions != 1 or len(seen.statuses) < 3:
        return "failed: the model asked for no tool afterwards"
    return "passed" if seen.replayed else "failed: the raw items did not come back unchanged"


def cases(environ: Mapping[str, str]) -> tuple[list[Case], list[str]]:
    """The cases these variables allow, and one line for each row that is not run. Pure."""
    found: list[Case] = []
    missing: list[str] = []
    models = environ.get(PREFIX + "DEEPSEEK_MODELS", "deepseek-chat,deepseek-reasoner").split(",")
    first = [
        Case("FI-1", "deepseek", wire, model, f"deepseek/{wire}", "either")
        for model in models
        for wire in ("chat", "anthropic", "responses")
    ]
    if environ.get("DEEPSEEK_API_KEY"):
        found += first
    else:
        missing += [f"{case.name}: set DEEPSEEK_API_KEY" for case in first]
    model = environ.get(PREFIX + "GATEWAY_MODEL", "")
    protocol = environ.get(PREFIX + "GATEWAY_PROTOCOL", "deepseek")
    chat = environ.get(PREFIX + "GATEWAY_CONTRACT_CHAT", "deepseek/chat")
    messages = environ.get(PREFIX + "GATEWAY_CONTRACT_ANTHROPIC", "deepseek/anthropic")
    behind = [
        Case("FI-2", "gateway", "anthropic", model, messages, "explicit"),
        Case("FI-3", "gateway", "responses", model, "compat/responses", "automatic", protocol),
        Case("FI-4", "gateway", "chat", model, chat, "automatic"),
        Case("FI-4", "gateway", "responses", model, "compat/responses", "automatic", protocol),
        Case("FI-6", "gateway", "responses", model, "compat/responses", "failed"),
    ]  # fmt: skip
    for case in behind:
        needed = [
            PREFIX + "GATEWAY_KEY",
            PREFIX + "GATEWAY_MODEL",
            f"{PREFIX}GATEWAY_URL_{case.wire.upper()}",
        ]
        absent = [name for name in needed if not environ.get(name)]
        if absent:
            missing.append(f"{case.name}: set {', '.join(absent)}")
        else:
            found.append(case)
    names = environ.get(PREFIX + "SEARCH_MODELS", "")
    for wire in ("anthropic", "responses"):
        needed = [PREFIX + "SEARCH_KEY", PREFIX + "SEARCH_MODELS", f"{PREFIX}SEARCH_URL_{wire.upper()}"]
        absent = [name for name in needed if not environ.get(name)]
        if absent:
            missing.append(f"FI-7 native search {wire}: set {', '.join(absent)}")
            continue
        contract = environ.get(f"{PREFIX}SEARCH_CONTRACT_{wire.upper()}", f"compat/{wire}")
        found += [Case("FI-7", "search", wire, one.strip(), contract, "search") for one in names.split(",")]
    missing.append(
        "FI-5 is no case of its own: a case whose edited request is accepted reports not_exercised"
    )
    return found, missing


class Keys:
    """The credentials, taken out of the environment so that nothing started here inherits one."""

    def __init__(self, environ: dict[str, str] | os._Environ[str]) -> None:
        names = [name for name in environ if name.endswith(("_API_KEY", "_KEY", "_TOKEN"))]
        self._kept = {name: environ.pop(name) for name in names}

    def __repr__(self) -> str:
        return "Keys(…)"

    def of(self, case: Case) -> str:
        """The key of a case's service."""
        named = {"deepseek": "DEEPSEEK_API_KEY", "search": PREFIX + "SEARCH_KEY"}
        return self._kept[named.get(case.service, PREFIX + "GATEWAY_KEY")]


def endpoint_of(case: Case, keys: Keys, environ: Mapping[str, str]) -> Endpoint:
    """Where a case is sent."""
    default = DEEPSEEK_URLS[case.wire] if case.service == "deepseek" else ""
    url = environ.get(f"{PREFIX}{case.service.upper()}_URL_{case.wire.upper()}", default)
    return Endpoint(
        case.service,
        url,
        case.wire,
        case.contract,
        case.model,
        key=lambda: keys.of(case),
        reasoning_protocol=case.protocol,
    )


async def run_case(case: Case, endpoint: Endpoint) -> Seen:
    """Run one case in a directory of its own."""
    seen = Seen()
    with tempfile.TemporaryDirectory(prefix="surefoot-live-", ignore_cleanup_errors=True) as name:
        project = Path(name) / "project"
        (project / "notes").mkdir(parents=True)
        (project / "notes/marker.txt").write_text("The kettle is blue.\n")
        environ = {"HOME": name, "SUREFOOT_HOME": str(Path(name) / "home")}
        flags = {"permissions.mode": "dontAsk", "permissions.allow": ["Read"]}
        settings = dataclasses.replace(load_settings(flags, environ, project), offered_tools=("read",))
        contract = contracts.resolve(case.contract).with_reasoning_protocol(case.protocol)
        async with Client() as client, open_app(settings, directory=project, parts=Parts()) as app:
            tools = [ToolSpec(tool.name, tool.description, tool.parameters) for tool in app.registry()]
            effort = "low" if case.wire == "anthropic" else None
            searches = case.expects == "search"
            made = SearchingModel if searches else TamperedModel
            model = made(
                client,
                endpoint,
                WIRES[case.wire](),
                contract,
                system=app.briefing().text,
                tools=tools,
                effort=effort,
                hosted=("search",) if searches else (),
            )
            model.seen, app.model = seen, model
            controller = await app.session()
            async with asyncio.timeout(CASE_SECONDS):
                if searches:
                    await controller.submit(SEARCH)
                end = await controller.submit(WORDS)
                _note_end(seen, end)
                seen.automatic = seen.ended == "completed" and 400 in seen.statuses
                seen.offered = await controller.pending_recovery() is not None
                if seen.offered and case.expects != "failed":
                    again = await controller.recover_context()
                    seen.explicit = isinstance(again, TurnEnd) and again.status is TurnStatus.COMPLETED
            seen.executions = sum(one.started_at is not None for one in controller.session.book)
    return seen


def _note_end(seen: Seen, end: Any) -> None:
    """How the turn ended, in codes: a provider's words may hold anything."""
    if not isinstance(end, TurnEnd):
        seen.ended = "parked"
        return
    code = end.error.code if end.error is not None else end.reason
    seen.ended = end.status.value if end.status is TurnStatus.COMPLETED else f"{end.status.value} ({code})"


def line(case: Case, seen: Seen, said: str) -> str:
    """One row of the table."""
    yes = {True: "yes", False: "no"}
    return (
        f"| {case.name} | {seen.statuses} | {seen.executions} | {yes[seen.automatic]} | {yes[seen.explicit]} | "
        f"{seen.input_tokens} / {seen.output_tokens} | {said}{f' ({seen.sources})' if seen.sources else ''} |"
    )


async def run_all(found: list[Case], keys: Keys, environ: Mapping[str, str]) -> list[dict[str, Any]]:
    """Run the cases one after another, printing each as it ends."""
    print(
        "| case | statuses | executions | automatic | explicit | tokens in / out | verdict |\n"
        + "|---" * 7
        + "|"
    )
    records = []
    for case in found:
        seen = Seen()
        try:
            seen = await run_case(case, endpoint_of(case, keys, environ))
            said = verdict(case, seen)
        except TimeoutError:
            said = "failed: out of time"
        except SurefootError as error:
            said = f"failed: {error.code}"
        print(line(case, seen, said), flush=True)
        records.append({**dataclasses.asdict(case), **dataclasses.asdict(seen), "verdict": said})
    return records


def main(arguments: list[str]) -> int:
    """0 when nothing failed; without credentials nothing is sent."""
    parser = argparse.ArgumentParser(prog="make live", description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="say what would run, send nothing")
    parser.add_argument("--row", action="append", help="only this row, e.g. FI-3; may be repeated")
    parser.add_argument("--wire", choices=sorted(WIRES), help="only this wire")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    options = parser.parse_args(arguments)
    found, missing = cases(os.environ)
    found = [
        case
        for case in found
        if (not options.row or case.row in options.row) and options.wire in (None, case.wire)
    ]
    keys = Keys(os.environ)
    for one in missing:
        print(f"not run: {one}")
    if options.list or not found:
        for case in found:
            print(f"would run: {case.name}, expects {case.expects}")
        return 0
    records = asyncio.run(run_all(found, keys, dict(os.environ)))
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n")
    return 1 if any(record["verdict"].startswith("failed") for record in records) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
