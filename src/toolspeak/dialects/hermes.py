"""Hermes: `<tool_call>{"name": …, "arguments": …}</tool_call>`; parallel calls are repeated blocks (D01, D02, D04).

    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    </tool_call>

The result stands between `<tool_response>` and `</tool_response>`, as JSON with the tool's name.
"""

from toolspeak.dialects._dialect import Dialect, Writer
from toolspeak.dialects._grammar import Grammar
from toolspeak.dialects._shape import Shape
from toolspeak.dialects._shared import RECOVERY, TOOL_CALL
from toolspeak.dialects._teach import IN_TAGS, JSON_EXAMPLE, Contract
from toolspeak.dialects._write import JsonCalls, between_json, result_json
from toolspeak.ir.message import Result


def _write_result(result: Result) -> str:
    return between_json("<tool_response>\n", result_json(result), "\n</tool_response>")


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

DIALECT = Dialect("hermes", Grammar((TOOL_CALL,)) | RECOVERY, _WRITER, rescues=True)
