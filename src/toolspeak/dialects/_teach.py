"""The contract in the prompt: which tools there are, how to call one, and when not to (INL-1).

Same tools, same text: nothing here depends on a clock, on chance or on the conversation (INL-8). The example of a call
has placeholders in brackets, which no tool's name may contain: our own reader does not take it for a call. Markers in
the tools' own words are written as escapes of JSON (SAFE-2).
"""

from dataclasses import dataclass
from typing import Final

from toolspeak.dialects._marks import escaped_json
from toolspeak.ir.json import JsonObject
from toolspeak.ir.tool import Tool
from toolspeak.text.strict import dump
from toolspeak.toolset.toolset import ToolSet

JSON_EXAMPLE: Final = '{"name": "<tool name>", "arguments": {"<argument>": "<value>"}}'
LISTED: Final = "Each line is one tool as JSON: its name, what it does, and the JSON Schema of its arguments."
FILL_IN: Final = (
    "What stands in brackets is yours to fill in, without the brackets: "
    "the name of a tool from the list, and arguments that fit its schema."
)
RAW_TEXTS: Final = "Write texts as they are, without quotes or escapes; write lists and objects as JSON."
OTHERWISE: Final = "Call a tool only where it helps. Otherwise answer normally, without any call."
WAIT: Final = "After your calls, stop and wait: the results come in the next message. Never write a result yourself."


@dataclass(frozen=True)
class Contract:
    """How to call tools in one dialect. Called with the tools, it gives the text for the prompt."""

    how: str
    example: str
    """One call, with placeholders in brackets."""
    rules: tuple[str, ...]
    """What is special here, such as how several calls are written."""
    manners: tuple[str, ...] = (OTHERWISE, WAIT)
    """When to call, and when to stop."""
    around: tuple[str, str] = ("", "")
    """What stands before and after the list of tools."""

    def __call__(self, tools: ToolSet) -> str:
        """Write the contract."""
        before, after = self.around
        rules = "\n".join(f"- {rule}" for rule in (FILL_IN, *self.rules, *self.manners))
        return (
            f"# Tools\n\nYou can call the tools below. {LISTED}\n\n{before}{tool_lines(tools)}{after}\n\n"
            f"# How to call a tool\n\n{self.how}\n\n{self.example}\n\n{rules}"
        )


IN_TAGS: Final = ("<tools>\n", "\n</tools>")
"""Where Hermes, Qwen and GLM have learned to look for tools."""


def tool_lines(tools: ToolSet) -> str:
    """Write each tool as one line of JSON, in which only JSON is markup."""
    return "\n".join(escaped_json(dump(_described(tools.tool(name)))) for name in tools.names)


def _described(tool: Tool) -> JsonObject:
    """Keep the order of the schema's keys, and leave out what is empty."""
    described: JsonObject = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {key: value for key, value in described.items() if value}
