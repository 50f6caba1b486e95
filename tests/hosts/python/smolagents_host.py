"""smolagents: its agent with tool calls, which answers with a tool too."""

from rows import QUESTION, run
from smolagents import LogLevel, ToolCallingAgent, tool


def agent(host, weather, **options):
    @tool
    def get_weather(city: str) -> str:
        """Look up the weather of a city.

        Args:
            city: its name
        """
        return weather.get_weather(city)

    return ToolCallingAgent([get_weather], host.model, max_steps=4, verbosity_level=LogLevel.OFF, **options)


def whole(host, weather):
    return agent(host, weather).run(QUESTION)


def streamed(host, weather):
    return agent(host, weather, stream_outputs=True).run(QUESTION)


run("smolagents", ("smolagents",), {"sync, whole": whole, "sync, streamed": streamed})
