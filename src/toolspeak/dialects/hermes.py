"""Hermes: `<tool_call>{"name": …, "arguments": …}</tool_call>`; parallel calls are repeated blocks (D01, D02, D04).

    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    </tool_call>

The result is between `<tool_response>` and `</tool_response>`, as JSON with the tool's name.
"""

from toolspeak.dialects.core.dialect import Dialect
from toolspeak.dialects.core.grammar import MarkupGrammar
from toolspeak.dialects.core.markup import RECOVERY, TOOL_CALL
from toolspeak.dialects.core.writer import (
    IN_TAGS,
    JSON_EXAMPLE,
    Contract,
    JsonCalls,
    Shape,
    Writer,
    between_json,
    result_as_json,
)
from toolspeak.ir.message import Result


def _write_result(result: Result) -> str:
    return between_json("<tool_response>\n", result_as_json(result), "\n</tool_response>")


_SHAPE = Shape("<tool_call>\n", "\n</tool_call>", mark="<tool_call>")
_WRITER = Writer(
    Contract(
        how="For each call, write a JSON object with the tool's name and arguments in `<tool_call>` tags:",
        example=f"<tool_call>\n{JSON_EXAMPLE}\n</tool_call>",
        rules=("For several calls, repeat the tags and the object for each.",),
        around=IN_TAGS,
    ),
    JsonCalls(_SHAPE),
    _write_result,
    stop=("<tool_response>",),
    shape=_SHAPE,
)

DIALECT = Dialect("hermes", MarkupGrammar((TOOL_CALL,)) | RECOVERY, _WRITER, rescues=True)
