"""Pure. What an Anthropic Messages request must look like before its history is looked at.

Owns: required fields and the table of known keys (AN-20). Does not own: the order of
blocks and messages (`anthropic_rules`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from surefoot.testing.emulator.bodies import Refusal
from surefoot.testing.emulator.hosted import anthropic_tool_fault

_ANY = frozenset({"type", "cache_control"})
_BLOCK_KEYS: dict[str, frozenset[str]] = {
    "text": _ANY | {"text", "citations"},
    "image": _ANY | {"source", "transformations"},
    "document": _ANY | {"source", "title", "context", "citations"},
    "search_result": _ANY | {"source", "title", "content", "citations"},
    "thinking": _ANY | {"thinking", "signature"},
    "redacted_thinking": _ANY | {"data"},
    "tool_use": _ANY | {"id", "name", "input", "caller"},
    "server_tool_use": _ANY | {"id", "name", "input", "caller"},
    "mcp_tool_use": _ANY | {"id", "name", "input", "server_name"},
    "tool_result": _ANY | {"tool_use_id", "content", "is_error"},
    "container_upload": _ANY | {"file_id"},
}
_SERVER_RESULT = _ANY | {"tool_use_id", "content", "is_error", "caller"}
_TOP_KEYS = frozenset(
    {"model", "messages", "max_tokens", "system", "tools", "tool_choice", "thinking", "temperature"}
    | {"top_p", "top_k", "stop_sequences", "stream", "metadata", "service_tier", "container", "mcp_servers"}
    | {
        "context_management",
        "betas",
        "output_config",
        "output_format",
        "speed",
        "inference_geo",
        "cache_control",
        "diagnostics",
    }
    | {"fallbacks"}
)
_NEEDED: dict[str, tuple[str, ...]] = {
    "text": ("text",),
    "tool_use": ("id", "name", "input"),
    "tool_result": ("tool_use_id",),
    "server_tool_use": ("id", "name", "input"),
}


def has_form(request: dict[str, Any]) -> Refusal | None:
    """What every endpoint needs to read the request at all."""
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        return _schema("messages: at least one message is required")
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
            return _schema(f"messages.{index}.role: Input should be 'user' or 'assistant'")
        content = message.get("content")
        if not isinstance(content, (str, list)):
            return _schema(f"messages.{index}.content: Input should be a valid string or list")
        if isinstance(content, list) and not all(isinstance(block, dict) for block in content):
            return _schema(f"messages.{index}.content: Input should be a valid dictionary")
    return None


def blocks_have_form(request: dict[str, Any]) -> Refusal | None:
    """Required fields of the request, its tools and its blocks."""
    if not isinstance(request.get("model"), str) or not request["model"]:
        return _schema("model: Field required")
    limit = request.get("max_tokens")
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        return _schema("max_tokens: Field required")
    tools = request.get("tools") or []
    if not isinstance(tools, list):
        return _schema("tools: Input should be a valid list")
    for index, tool in enumerate(tools):
        name = tool.get("name") if isinstance(tool, dict) else None
        if not isinstance(name, str) or not re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", name):
            return _schema(f"tools.{index}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        fault = anthropic_tool_fault(tool)
        if fault is not None:
            return _schema(f"tools.{index}{fault}")
        if "type" not in tool and not isinstance(tool.get("input_schema"), dict):
            return _schema(f"tools.{index}.input_schema: Field required")
    for index, message in enumerate(request["messages"]):
        content = message["content"]
        for place, block in enumerate(content if isinstance(content, list) else ()):
            fault = _block_fault(block, message["role"])
            if fault:
                return _schema(f"messages.{index}.content.{place}{fault}")
    return None


def unknown_keys(request: dict[str, Any]) -> Iterator[str]:
    """The place of each key the endpoint does not know."""
    for key in request:
        if key not in _TOP_KEYS:
            yield key
    for index, message in enumerate(request["messages"]):
        for key in message:
            if key not in ("role", "content"):
                yield f"messages.{index}.{key}"
        content = message["content"]
        for place, block in enumerate(content if isinstance(content, list) else ()):
            kind = str(block.get("type"))
            known = _BLOCK_KEYS.get(kind) or (_SERVER_RESULT if kind.endswith("_tool_result") else None)
            for key in block:
                if known is not None and key not in known:
                    yield f"messages.{index}.content.{place}.{kind}.{key}"


def _block_fault(block: dict[str, Any], role: str) -> str:
    kind = block.get("type")
    known = isinstance(kind, str) and (kind in _BLOCK_KEYS or kind.endswith("_tool_result"))
    if not known and kind != "mcp_tool_use":
        return f": Input tag {kind!r} found using 'type' does not match any of the expected tags"
    for key in _NEEDED.get(str(kind), ()):
        if key not in block:
            return f".{kind}.{key}: Field required"
    if kind in ("tool_use", "server_tool_use") and not isinstance(block["input"], dict):
        return f".{kind}.input: Input should be a valid dictionary"
    if kind in ("tool_use", "tool_result") and (kind == "tool_use") != (role == "assistant"):
        return f": `{kind}` blocks can only be in `{'assistant' if kind == 'tool_use' else 'user'}` messages"
    return ""


def _schema(message: str) -> Refusal:
    return Refusal(("schema",), message)
