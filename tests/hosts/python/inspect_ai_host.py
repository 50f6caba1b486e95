"""inspect_ai: a model that generates, and its loop of tools."""

from inspect_ai.model import ChatMessageUser, execute_tools
from inspect_ai.tool import ToolDef
from rows import QUESTION, run


async def whole(host, weather, **options):
    async def get_weather(city: str) -> str:
        """Look up the weather of a city.

        Args:
            city: its name
        """
        return weather.get_weather(city)

    tools = [ToolDef(get_weather).as_tool()]
    messages = [ChatMessageUser(content=QUESTION)]
    for _ in range(2):
        output = await host.model.generate(messages, tools, **options)
        messages.append(output.message)
        messages += (await execute_tools(messages, tools)).messages
    return output.completion


run("inspect_ai", ("inspect-ai",), {"async, whole": whole})
