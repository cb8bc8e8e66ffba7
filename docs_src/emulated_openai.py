"""An agent on the official OpenAI SDK, tried on an endpoint that refuses, breaks off and counts."""

import asyncio
import json

import openai

from surefoot.testing.emulator.server import Emulator

TOOLS = [{"type": "function", "function": {"name": "pay", "parameters": {"type": "object"}}}]
SCRIPT = [
    {"thinking": "They want it paid.", "calls": [{"name": "pay", "args": {"cents": 1200}}]},
    {"text": "Paid."},
]


async def agent(client: openai.AsyncOpenAI, paid: list[dict]) -> str:
    """Your agent stands here; this one asks, pays, and sends everything back as it came."""
    messages: list = [{"role": "user", "content": "Pay the bill."}]
    while True:
        reply = await client.chat.completions.create(model="m", messages=messages, tools=TOOLS)
        said = reply.choices[0].message
        messages.append(said.model_dump(exclude_none=True))
        if not said.tool_calls:
            return said.content or ""
        for call in said.tool_calls:
            paid.append(json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": "paid"})


async def main() -> None:
    async with Emulator() as emulator:
        client = openai.AsyncOpenAI(base_url=emulator.base_url("deepseek"), api_key="sk-x", max_retries=0)

        # 1. A healthy run: the profile accepts every request.
        emulator.script(SCRIPT)
        assert await agent(client, []) == "Paid."
        assert [request.status for request in emulator.requests()] == [200, 200]

        # 2. The reasoning is lost on its way, so the endpoint's real rule fires; nothing is paid twice.
        emulator.reset()
        emulator.script(SCRIPT)
        paid: list[dict] = []
        lose = [{"path": ["messages", 1, "reasoning_content"], "remove": True}]
        emulator.fault(tamper_request=lose, match={"nth": 2})
        try:
            await agent(client, paid)
        except openai.BadRequestError as refused:
            print(refused.body["message"])
        assert emulator.requests()[-1].rules == ["DS-03"] and len(paid) == 1
        emulator.assert_fired()
        await client.close()


asyncio.run(main())
