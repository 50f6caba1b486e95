"""One worked example, as real messages: request, call, result, answer (INL-5)."""

from typing import Final

from toolspeak.dialects import Writer
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call, Message, Result, Role, Text
from toolspeak.text.strict import dump
from toolspeak.toolset.toolset import ToolSet

EXAMPLE: Final = "[An example of how calls are written. It is no part of the conversation.]"
_VALUES: Final[dict[str, Json]] = {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}, "null": None}


def example_messages(tools: ToolSet, writer: Writer) -> tuple[Message, ...]:
    """Show one call of the first tool, marked as an example so that nobody takes it for the user's words."""
    name = tools.names[0]
    call = Call("example", name, dump(_arguments(tools, name)))
    result = Result("example", (Text("ok"),), name)
    return (
        Message(Role.USER, (Text(f"{EXAMPLE}\nUse the tool {name}, then say that it is done."),)),
        Message(Role.ASSISTANT, (Text(writer.write_calls([call], tools)),)),
        Message(Role.USER, (Text(f"{EXAMPLE}\n{writer.write_result(result)}"),)),
        Message(Role.ASSISTANT, (Text("It is done."),)),
    )


def _arguments(tools: ToolSet, name: str) -> JsonObject:
    return {key: _value(tools.schema_of(name, key)) for key in tools.ordered(name) if key in tools.required(name)}


def _value(schema: JsonObject) -> Json:
    options, kind = schema.get("enum"), schema.get("type")
    if isinstance(options, list) and options:
        return options[0]
    return _VALUES.get(kind, "example") if isinstance(kind, str) else "example"
