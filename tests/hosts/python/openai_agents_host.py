"""openai-agents: its runner."""

from agents import Agent, Runner, function_tool, set_tracing_disabled
from rows import QUESTION, run

set_tracing_disabled(disabled=True)


def agent(host, weather):
    return Agent(name="weather", model=host.model, tools=[function_tool(weather.get_weather)])


def sync(host, weather):
    return Runner.run_sync(agent(host, weather), QUESTION).final_output


async def whole(host, weather):
    return (await Runner.run(agent(host, weather), QUESTION)).final_output


async def streamed(host, weather):
    result = Runner.run_streamed(agent(host, weather), QUESTION)
    async for _ in result.stream_events():
        pass
    return result.final_output


run("openai-agents", ("openai-agents",), {"sync, whole": sync, "async, whole": whole, "async, streamed": streamed})
