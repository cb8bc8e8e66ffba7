"""Hosted tools in a request: the contract's forms, on each wire, only where they are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from surefoot.core.history import UserWords
from surefoot.errors import SettingsError
from surefoot.providers import contracts
from surefoot.providers.anthropic import AnthropicWire
from surefoot.providers.chat import ChatWire
from surefoot.providers.hosted import enabled, with_effects
from surefoot.providers.port import ModelRequest, ToolSpec
from surefoot.providers.responses import ResponsesWire
from surefoot.providers.rules import check

TOOL = ToolSpec("look", "Look.", {"type": "object"})


def body(wire: Any, contract: Any, *hosted: str, tools: tuple[ToolSpec, ...] = (TOOL,)) -> dict[str, Any]:
    request = ModelRequest("m", "s", [UserWords("t", "go")], tools, hosted=hosted)
    return dict(wire.encode(request, contract))


@pytest.mark.parametrize(
    ("wire", "name", "kind", "form"),
    [
        (AnthropicWire(), "anthropic/anthropic", "code", {"type": "code_execution_20250825", "name": "code_execution"}),
        (AnthropicWire(), "deepseek/anthropic", "search", {"type": "web_search_20250305", "name": "web_search"}),
        (ResponsesWire(), "openai/responses", "code", {"type": "code_interpreter", "container": {"type": "auto"}}),
        (ResponsesWire(), "xai/responses", "image", {"type": "image_generation"}),
    ],
)  # fmt: skip
def test_pr_98_a_named_kind_stands_behind_our_own_tools_and_nowhere_else(
    wire: Any, name: str, kind: str, form: dict[str, Any]
) -> None:
    contract = contracts.resolve(name)
    plain, on = body(wire, contract), body(wire, contract, kind)
    assert on["tools"] == [*plain["tools"], form]
    assert {**on, "tools": None} == {**plain, "tools": None}  # PR-93: nothing else of the request moves
    assert body(wire, contract, kind, tools=())["tools"] == [form]
    assert check(on, contract) == check(plain, contract)


def test_pr_98_a_chat_endpoint_has_none_unless_its_own_contract_gives_a_form(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'code' has no form in contract compat/chat; known: none"):
        enabled(["code"], contracts.resolve("compat/chat"))
    (tmp_path / "mine.toml").write_text(
        '[contract]\nschema = 1\nid = "mine/chat"\nbase = "compat/chat"\nrevision = 1\ntier = 2\n\n'
        '[tools]\nhosted = { search = ["web_search"] }\nhosted_forms.search = { type = "web_search" }\n'
    )
    contract = contracts.resolve("mine/chat", [tmp_path])
    assert enabled(["search"], contract) == ("search",)
    assert body(ChatWire(), contract, "search")["tools"][-1] == {"type": "web_search"}


def test_pr_98_kinds_come_in_the_contracts_order_and_search_alone_needs_no_receipt() -> None:
    contract = contracts.resolve("anthropic/anthropic")
    assert enabled(["code", "search"], contract) == ("search", "code")
    assert with_effects(("search", "fetch", "code")) == ("fetch", "code")


def test_wc_1_a_form_that_is_none_is_a_fault_of_the_contract(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        '[contract]\nschema = 1\nid = "mine/chat"\nbase = "compat/chat"\nrevision = 1\ntier = 2\n\n'
        '[tools]\nhosted_forms.magic = { type = "x" }\n'
    )
    with pytest.raises(SettingsError, match=r"tools\.hosted_forms"):
        contracts.resolve("mine/chat", [tmp_path])
