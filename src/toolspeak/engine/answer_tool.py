"""The answer tool (INL-6): a synthetic tool by which the model answers in words; the client never sees it.

Text without a call is ambiguous: the model has answered, or it forgot to call. With the answer tool every answer is a
call. Other projects arrived at the same tool: forge has `respond`, LocalAI `answer`, claude-code-router `ExitTool`.
"""

from collections.abc import Container
from typing import Final

from toolspeak.errors import BadJson
from toolspeak.ir.tool import Tool
from toolspeak.text.strict import parse

NAME: Final = "answer"
ANSWER: Final = Tool(
    NAME,
    "Answer the user. Call this when no other tool is needed any more.",
    {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "The whole answer."}},
        "required": ["text"],
        "additionalProperties": False,
    },
)


def offered_name(names: Container[str]) -> str:
    """Return a name for the answer tool that no tool of the client has."""
    name = NAME
    while name in names:
        name = f"final_{name}"
    return name


def answer_text(arguments: str) -> str:
    """Return the text of an answer. Arguments in another form are returned as they are: no text is lost (P1)."""
    try:
        value = parse(arguments)
    except BadJson:
        return arguments
    text = value.get("text") if isinstance(value, dict) else None
    return text if isinstance(text, str) else arguments
