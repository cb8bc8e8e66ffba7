"""A tool loop on the official Anthropic SDK: signed thinking returns as it came, or is refused."""

import asyncio

import anthropic

from surefoot.testing.emulator.server import Emulator

TOOLS = [{"name": "look", "input_schema": {"type": "object"}}]
SCRIPT = [{"thinking": "I should look.", "calls": [{"name": "look"}]}, {"text": "Seen."}]


async def main() -> None:
    async with Emulator() as emulator:
        emulator.script(SCRIPT)
        url = emulator.base_url("anthropic", wire="anthropic")
        client = anthropic.AsyncAnthropic(base_url=url, api_key="sk-x", max_retries=0)
        asked = {"role": "user", "content": "Look."}
        settings = {"model": "m", "max_tokens": 2048, "tools": TOOLS}
        settings["thinking"] = {"type": "enabled", "budget_tokens": 1024}

        async with client.messages.stream(messages=[asked], **settings) as stream:
            first = await stream.get_final_message()
        answer = {"type": "tool_result", "tool_use_id": first.content[-1].id, "content": "a cat"}
        history = [
            asked,
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": [answer]},
        ]
        second = await client.messages.create(messages=history, **settings)
        assert second.content[0].text == "Seen."

        first.content[0].thinking = "I should look twice."
        try:
            await client.messages.create(messages=history, **settings)
        except anthropic.BadRequestError as refused:
            print(refused.body["error"]["message"])
        assert emulator.requests()[-1].rules == ["AN-07"]
        await client.close()


asyncio.run(main())
