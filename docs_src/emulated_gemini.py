"""A tool loop on the official Google SDK: a signed call returns as it came, or is refused."""

import asyncio

from google import genai
from google.genai import errors, types

from surefoot.testing.emulator.server import Emulator

LOOK = types.FunctionDeclaration(name="look", parameters_json_schema={"type": "object"})
SCRIPT = [{"calls": [{"name": "look"}]}, {"text": "Seen."}]


async def main() -> None:
    async with Emulator() as emulator:
        emulator.script(SCRIPT)
        address = types.HttpOptions(base_url=emulator.base_url("gemini", wire="gemini"))
        settings = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[LOOK])])

        async with genai.Client(api_key="a-key", http_options=address).aio as client:
            history = [types.UserContent("Look.")]
            first = await client.models.generate_content(model="m", contents=history, config=settings)
            asked = first.candidates[0].content
            call = asked.parts[0].function_call
            answer = types.FunctionResponse(id=call.id, name="look", response={"output": "a cat"})
            history += [asked, types.UserContent(types.Part(function_response=answer))]
            second = await client.models.generate_content(model="m", contents=history, config=settings)
            assert second.text == "Seen."

            asked.parts[0].thought_signature = None
            try:
                await client.models.generate_content(model="m", contents=history, config=settings)
            except errors.ClientError as refused:
                print(refused.message)
            assert emulator.requests()[-1].rules == ["GE-01"]


asyncio.run(main())
