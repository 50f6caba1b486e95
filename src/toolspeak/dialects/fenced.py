"""The default: a fence with the info string `tool_call` around `{"name": …, "arguments": …}` (D45).

    ```tool_call
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    ```

The result is a fence too, with the info string `tool_result` and the tool's name. It is longer than any run of
backticks inside it.
"""

import re

from toolspeak.dialects.core.dialect import Dialect
from toolspeak.dialects.core.grammar import MarkupGrammar, Wrapper
from toolspeak.dialects.core.json_form import JSON
from toolspeak.dialects.core.markup import RECOVERY
from toolspeak.dialects.core.writer import JSON_EXAMPLE, Contract, JsonCalls, Shape, Writer, result_as_text
from toolspeak.ir.message import Result

FENCE = Wrapper(("tool_call", "tool_calls", "json tool_call", "toolcall"), ("```",), (JSON,), fence=True)
_TICKS = re.compile(r"`{3,}")


def _write_result(result: Result) -> str:
    text = result_as_text(result)
    fence = "`" * max([3, *(len(run) + 1 for run in _TICKS.findall(text))])
    return f"{fence}tool_result {result.name}".rstrip() + f"\n{text}\n{fence}"


_SHAPE = Shape("```tool_call\n", "\n```", mark="```tool_call")
_WRITER = Writer(
    Contract(
        how="To call a tool, write a fenced block with the info string `tool_call` that holds one JSON object:",
        example=f"```tool_call\n{JSON_EXAMPLE}\n```",
        rules=("For several calls, write one such block for each.",),
    ),
    JsonCalls(_SHAPE),
    _write_result,
    stop=("```tool_result",),
    shape=_SHAPE,
)

DIALECT = Dialect("fenced", MarkupGrammar((FENCE,), result_lines=("```tool_result",)) | RECOVERY, _WRITER, rescues=True)
