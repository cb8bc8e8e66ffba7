"""What an incident's budget is bound to: one server is the same one wherever it listens today."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from surefoot.core.incident import scope
from surefoot.providers import contracts
from surefoot.providers.chat import ChatWire
from surefoot.providers.client import Client
from surefoot.providers.endpoints import Endpoint
from surefoot.providers.local import LocalServer
from surefoot.runtime.models import EndpointModel

FAR = Endpoint("far", "https://user:word@models.example.com/v1?key=x", "chat", "compat/chat", "m")


def of(endpoint: Endpoint) -> str:
    contract = contracts.resolve(endpoint.contract)
    model = EndpointModel(Client(), endpoint, ChatWire(), contract, system="", tools=())
    return scope("ses_a", model.target())


def test_pr_19_the_embedded_server_is_the_same_one_on_every_port() -> None:
    server = LocalServer("smollm2")
    first, second = server._endpoint("http://127.0.0.1:40001"), server._endpoint("http://127.0.0.1:40002")
    assert first.url != second.url and of(first) == of(second)


def test_pr_19_user_info_and_query_are_no_part_of_it() -> None:
    assert of(FAR) == of(dataclasses.replace(FAR, url="https://models.example.com/v1?key=y"))


@pytest.mark.parametrize(
    "changed",
    [{"url": "https://models.example.com:8443/v1"}, {"url": "https://models.example.com/v2"}, {"model": "n"},
     {"contract": "openai/chat"}, {"reasoning_protocol": "deepseek"}],
    ids=["port", "path", "model", "contract", "protocol"],
)  # fmt: skip
def test_pr_19_pr_79_another_place_model_contract_or_protocol_is_another_scope(
    changed: dict[str, Any],
) -> None:
    assert of(FAR) != of(dataclasses.replace(FAR, **changed))
