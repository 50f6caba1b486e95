"""The tools that are offered while non-calls are read, and seeded arguments that fit them."""

from functools import cache
from random import Random
from typing import Final, TypeAlias

from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.tool import Tool
from toolspeak.toolset.toolset import ToolSet

Args: TypeAlias = dict[str, str | int | bool]

STRING: Final[JsonObject] = {"type": "string"}
INTEGER: Final[JsonObject] = {"type": "integer", "minimum": 0}
UNITS: Final = ("celsius", "fahrenheit")
CITIES: Final = ("Oslo", "Bergen", "Lima", "New York", "Kyoto", "São Paulo", "München", "北京", "Reykjavík", "Cairo")
PATHS: Final = ("README.md", "src/main.py", "/etc/hosts", "docs/index.html", "notes/2024.txt", "app/config.yaml")
COMMANDS: Final = ("ls -la", "git status", "uname -a", "df -h", "make test", "echo done", "rm -rf build", "id")
QUERIES: Final = ("llm tool calling", "best tea shops", "python asyncio", "weather radar", "how to file taxes", "jazz")
CONTENTS: Final = ("hello", "TODO: write this", "x = 1", "# Title", "a, b, c", "done.")
ZONES: Final = ("UTC", "Europe/Oslo", "Asia/Tokyo")
STRANGERS: Final = ("get_stock_price", "send_email", "book_flight", "lookup_user", "convert_units", "run_query")
"""Names of tools that are not offered."""
PLACEHOLDERS: Final = ("function_name", "tool_name", "your_tool_here", "example_function", "TOOL", "my_function")


def _tool(name: str, description: str, properties: dict[str, Json], required: tuple[str, ...] = ()) -> Tool:
    schema: JsonObject = {"type": "object", "properties": properties}
    return Tool(name, description, {**schema, "required": list(required)} if required else schema)


WEATHER: Final[dict[str, Json]] = {"city": STRING, "unit": {"type": "string", "enum": list(UNITS)}, "days": INTEGER}
TOOLS: Final = (
    _tool("get_weather", "Get the weather of a city.", WEATHER, ("city",)),
    _tool("read_file", "Read a file.", {"path": STRING, "offset": INTEGER, "limit": INTEGER}, ("path",)),
    _tool("write_file", "Write a file.", {"path": STRING, "content": STRING}, ("path", "content")),
    _tool("shell", "Run a command.", {"command": STRING, "timeout": INTEGER}, ("command",)),
    _tool("search", "Search the web.", {"query": STRING, "limit": INTEGER}, ("query",)),
    _tool("list_files", "List a folder.", {"path": STRING, "recursive": {"type": "boolean"}}),
    _tool("now", "Tell the time.", {"timezone": STRING}),
)
NAMES: Final = tuple(tool.name for tool in TOOLS)


@cache
def tool_set() -> ToolSet:
    """Return the tools as every reader gets them."""
    return ToolSet.of(TOOLS)


def arguments(dice: Random, name: str) -> Args:
    """Return arguments that fit the tool, sometimes with optional ones; some that fit nothing for a stranger."""
    args = _required(dice, name)
    optional = _optional(dice, name)
    return {**args, **optional} if optional and (not args or dice.random() < 0.4) else args


def _required(dice: Random, name: str) -> Args:
    match name:
        case "get_weather":
            return {"city": dice.choice(CITIES)}
        case "read_file":
            return {"path": dice.choice(PATHS)}
        case "write_file":
            return {"path": dice.choice(PATHS), "content": dice.choice(CONTENTS)}
        case "shell":
            return {"command": dice.choice(COMMANDS)}
        case "search":
            return {"query": dice.choice(QUERIES)}
        case "list_files" | "now":
            return {}
        case _:
            return {"id": dice.randint(1, 99), "value": dice.choice(QUERIES)}


def _optional(dice: Random, name: str) -> Args:
    match name:
        case "get_weather":
            return {"unit": dice.choice(UNITS)} if dice.random() < 0.5 else {"days": dice.randint(1, 9)}
        case "read_file" | "search":
            return {"limit": dice.randint(1, 200)}
        case "shell":
            return {"timeout": dice.randint(1, 60)}
        case "list_files":
            return {"path": dice.choice(PATHS), "recursive": dice.random() < 0.5}
        case "now":
            return {"timezone": dice.choice(ZONES)}
        case _:
            return {}


def example(dice: Random) -> tuple[str, Args]:
    """Return a call as an example would show it: mostly of a tool that is offered, with arguments that fit."""
    chance = dice.random()
    if chance < 0.88:
        name = dice.choice(NAMES)
        return name, arguments(dice, name)
    if chance < 0.93:
        return dice.choice(NAMES), {"x": dice.randint(0, 9)}
    name = dice.choice(STRANGERS if chance < 0.97 else PLACEHOLDERS)
    return name, arguments(dice, name)
