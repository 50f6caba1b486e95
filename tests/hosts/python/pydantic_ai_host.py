"""pydantic-ai: its agent, on Chat Completions and on Messages."""

from pydantic_ai import Agent
from rows import QUESTION, run


def agent(host, weather):
    return Agent(host.model, tools=[weather.get_weather])


def sync(host, weather):
    return agent(host, weather).run_sync(QUESTION).output


async def whole(host, weather):
    return (await agent(host, weather).run(QUESTION)).output


async def streamed(host, weather):
    async with agent(host, weather).run_stream(QUESTION) as result:
        return "".join([text async for text in result.stream_text(delta=True)])


MODES = {"sync, whole": sync, "async, whole": whole, "async, streamed": streamed}
run("pydantic-ai", ("pydantic-ai-slim",), MODES)
run("pydantic-ai with the API of Anthropic", ("pydantic-ai-slim",), MODES)
