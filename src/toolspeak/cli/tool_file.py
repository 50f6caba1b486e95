"""Reads tool definitions from JSON: an array or a whole request, in the format of any vendor, or an array of names.

["find_bus", "now"]
[{"name": "now", "parameters": {…}}]      or {"type": "function", "function": {…}}
{"tools": [{"name": "now", "input_schema": {…}}]}      or inputSchema, as MCP servers list them
[{"functionDeclarations": [{"name": "now", "parameters": {…}}]}]
"""

from collections.abc import Iterable
from typing import Final

from toolspeak.errors import BadJson, BadRequest, ToolspeakError
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.tool import Tool
from toolspeak.text.strict import dump, parse
from toolspeak.wires.anthropic.request_reader import read_tools as read_anthropic
from toolspeak.wires.gemini.request_reader import read_tools as read_gemini
from toolspeak.wires.openai_chat.request_reader import read_tools as read_openai

_SHOWN: Final = 80
"""Characters of a wrong value in a message."""
_ACCEPTED: Final = "write an array of tools, an object with `tools`, or an array of names"


def read_tool_file(body: bytes, where: str) -> tuple[Tool, ...]:
    """Parse a file; raises `BadRequest`, with `where` (the name of the file) in the message."""
    try:
        return _tools(parse(body.decode("utf-8-sig", "replace")))
    except BadJson as error:
        raise BadRequest(f"{where}: is not JSON ({error} at character {error.position}); {_ACCEPTED}") from None
    except ToolspeakError as error:
        raise BadRequest(f"{where}: {error}") from None


def tools_by_name(names: Iterable[str]) -> tuple[Tool, ...]:
    """Return tools that accept any arguments, one for each distinct name."""
    return tuple(Tool(name) for name in dict.fromkeys(names))


def _tools(value: Json) -> tuple[Tool, ...]:
    if isinstance(value, dict):
        value = value.get("tools", [value])
    if not isinstance(value, list) or not value:
        raise BadRequest(f"the file contains no tools; {_ACCEPTED}")
    names = [item for item in value if isinstance(item, str)]
    if len(names) == len(value):
        return tools_by_name(names)
    items = [_without_mcp(item) for item in value if isinstance(item, dict)]
    if len(items) < len(value):
        wrong = next(item for item in value if not isinstance(item, dict))
        raise BadRequest(f"{dump(wrong)[:_SHOWN]} is not a tool; {_ACCEPTED}")
    return _by_vendor(items)


def _by_vendor(items: list[JsonObject]) -> tuple[Tool, ...]:
    # The readers of the wires are used, so that a file means the same as the `tools` of a request.
    body = dump([*items]).encode()
    keys = {key for item in items for key in item}
    if keys & {"functionDeclarations", "function_declarations"}:
        return read_gemini(body)[0]
    return (read_anthropic if "input_schema" in keys else read_openai)(body)[0]


def _without_mcp(item: JsonObject) -> JsonObject:
    return {"input_schema" if key == "inputSchema" else key: value for key, value in item.items()}
