"""Pure. Tools the emulated provider runs on its own side: what a step asks for, and what a reply shows.

Owns: the kinds, their sources, their form on each wire, and by which tools a request switches
them on. Does not own: counting that they ran (`scripts`), the rest of a reply
(`anthropic_replies` and its siblings). Bedrock's wire shows none of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from surefoot.testing.emulator.issuing import Token, seal, sha

KINDS = ("search", "fetch", "code", "computer", "mcp", "image", "other")
_ANTHROPIC_NAMES = {"search": "web_search", "fetch": "web_fetch", "code": "code_execution"}
_RESPONSES_TYPES = {
    "search": "web_search_call",
    "code": "code_interpreter_call",
    "mcp": "mcp_call",
    "image": "image_generation_call",
    "computer": "computer_call",
}


_DATED = re.compile(r"(web_search|web_fetch|code_execution)_\d{8}")
_CLIENT_SIDE = re.compile(r"(bash|text_editor|computer|memory|tool_search_tool\w*)_\d{8}")
"""Types of the vendor that the client carries out; a request may declare them like any function."""
_SWITCHES = {
    "search": ("web_search", "web_search_preview", "file_search", "googleSearch", "google_search"),
    "fetch": ("web_fetch", "urlContext", "url_context"),
    "code": ("code_execution", "code_interpreter", "codeExecution"),
    "mcp": ("mcp", "mcp_toolset"),
    "image": ("image_generation",),
}


def switched_on(request: dict[str, Any]) -> set[str]:
    """The kinds a request switches on by the types of its tools, on Gemini's wire by their keys."""
    given = request.get("tools")
    tools = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    types = {str(one.get("type")) for one in tools} | {key for one in tools for key in one}
    stems = types | {re.sub(r"_\d{4}_?\d{2}_?\d{2}$", "", one) for one in types}
    found = {kind for kind, names in _SWITCHES.items() if stems & set(names)}
    return found | ({"mcp"} if request.get("mcp_servers") else set())


def enables(request: dict[str, Any], kind: str) -> bool:
    """Whether this request lets the provider run that kind."""
    return kind in switched_on(request)


def anthropic_tool_fault(tool: dict[str, Any]) -> str | None:
    """What is wrong with a tool of a type of the vendor's, as far as it is known; None for a function."""
    kind = tool.get("type")
    if kind in (None, "custom") or (isinstance(kind, str) and _CLIENT_SIDE.fullmatch(kind)):
        return None
    dated = _DATED.fullmatch(kind) if isinstance(kind, str) else None
    if dated is None:
        return f": Input tag {kind!r} found using 'type' does not match any of the expected tags"
    return None if tool.get("name") == dated[1] else f".name: Input should be {dated[1]!r}"


@dataclass(frozen=True, slots=True)
class Hosted:
    """One run of a hosted tool."""

    kind: str
    query: str = ""
    sources: tuple[dict[str, str], ...] = field(default=())
    """Each `{"url", "title"}`."""


def sources(count: int) -> tuple[dict[str, str], ...]:
    """So many sources that do not exist anywhere."""
    numbers = range(1, count + 1)
    return tuple({"url": f"https://example.invalid/{n}", "title": f"Source {n}"} for n in numbers)


def anthropic_blocks(ran: Hosted, identity: str) -> list[dict[str, Any]]:
    """The use and its result, both in one assistant message."""
    name = _ANTHROPIC_NAMES.get(ran.kind, ran.kind)
    asked = {"query": ran.query} if ran.kind in ("search", "fetch") else {"code": ran.query or "1"}
    if ran.kind == "mcp":
        use = {"type": "mcp_tool_use", "id": identity, "name": "act", "server_name": "hosted", "input": asked}
        shown = [{"type": "text", "text": "done"}]
        return [
            use,
            {"type": "mcp_tool_result", "tool_use_id": identity, "is_error": False, "content": shown},
        ]
    use = {"type": "server_tool_use", "id": identity, "name": name, "input": asked}
    content: Any
    if ran.kind == "search":
        content = [
            {"type": "web_search_result", **source, "encrypted_content": _sealed(source), "page_age": None}
            for source in ran.sources
        ]
    elif ran.kind == "fetch":
        document = {
            "type": "document",
            "title": "A page",
            "source": {"type": "text", "media_type": "text/plain", "data": "text"},
        }
        content = {"type": "web_fetch_result", "url": ran.query or "https://example.invalid/1"}
        content |= {"content": document, "retrieved_at": None}
    else:
        content = {"type": "code_execution_result", "stdout": "done", "stderr": "", "return_code": 0}
        content["content"] = []
    return [use, {"type": f"{name}_tool_result", "tool_use_id": identity, "content": content}]


def anthropic_citations(ran: list[Hosted]) -> list[dict[str, Any]]:
    """Citations of every source found."""
    return [
        {
            "type": "web_search_result_location",
            **source,
            "cited_text": "quoted",
            "encrypted_index": _sealed(source),
        }
        for one in ran
        for source in one.sources
    ]


def responses_item(ran: Hosted, identity: str) -> dict[str, Any]:
    """The item of one run."""
    kind = _RESPONSES_TYPES.get(ran.kind, f"{ran.kind}_call")
    item: dict[str, Any] = {"type": kind, "id": identity, "status": "completed"}
    if ran.kind == "search":
        found = [{"type": "url", "url": source["url"]} for source in ran.sources]
        item["action"] = {"type": "search", "query": ran.query, "sources": found}
    elif ran.kind == "code":
        outputs = [{"type": "logs", "logs": "done"}]
        item |= {"code": ran.query or "1", "container_id": "cntr_emulated", "outputs": outputs}
    elif ran.kind == "mcp":
        item |= {"name": "act", "server_label": "hosted", "arguments": "{}", "output": "done", "error": None}
    elif ran.kind == "image":
        item["result"] = "AA=="
    return item


def gemini_grounding(ran: list[Hosted]) -> dict[str, Any]:
    """What a Gemini candidate says of the searches behind it; nothing when there were none."""
    searches = [one for one in ran if one.kind == "search"]
    if not searches:
        return {}
    found = [source for one in searches for source in one.sources]
    chunks = [{"web": {"uri": source["url"], "title": source["title"]}} for source in found]
    queries = [one.query for one in searches]
    return {"groundingMetadata": {"webSearchQueries": queries, "groundingChunks": chunks}}


def id_prefix(kind: str) -> str:
    """The prefix of a hosted item's id on the Responses wire."""
    return {"search": "ws", "code": "ci", "mcp": "mcp", "image": "ig"}.get(kind, "ht")


def url_annotations(ran: list[Hosted]) -> list[dict[str, Any]]:
    """Annotations of every source found, as OpenAI's wires show them."""
    return [
        {"type": "url_citation", "start_index": 0, "end_index": 1, **source}
        for one in ran
        for source in one.sources
    ]


def _sealed(source: dict[str, str]) -> str:
    return seal(Token("source", "", "", sha(source["url"])), "Enc")
