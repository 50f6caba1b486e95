"""openai-agents on Chat Completions and Responses, streamed."""

import asyncio

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from note import asked, end, write_note
from openai import AsyncOpenAI

url, model, prompt, wire = asked()


async def run() -> str:
    set_tracing_disabled(disabled=True)
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    kind = OpenAIChatCompletionsModel if wire == "openai_chat" else OpenAIResponsesModel
    agent = Agent(name="notes", model=kind(model=model, openai_client=client), tools=[function_tool(write_note)])
    result = Runner.run_streamed(agent, prompt)
    async for _ in result.stream_events():
        pass
    return result.final_output


end(asyncio.run(run()))
