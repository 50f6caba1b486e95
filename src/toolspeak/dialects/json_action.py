"""A fence with the info string `json action` around `{"tool": …, "parameters": …}` (D40).

    ```json action
    {"tool": "get_weather", "parameters": {"city": "Oslo"}}
    ```

The result comes in a tag, because it often has fences itself.
"""

from functools import partial

from toolspeak.dialects.core.dialect import Dialect
from toolspeak.dialects.core.grammar import RESULT_TAGS, MarkupGrammar, Wrapper
from toolspeak.dialects.core.json_form import JSON
from toolspeak.dialects.core.markup import RECOVERY
from toolspeak.dialects.core.writer import Contract, JsonCalls, Shape, Writer, tagged_result

FENCE = Wrapper(("json action",), ("```",), (JSON,), fence=True)

_SHAPE = Shape("```json action\n", "\n```", "tool", "parameters", mark="```json action")
_WRITER = Writer(
    Contract(
        how="To act, write an action block: a fence with the info string `json action` that holds one JSON object:",
        example='```json action\n{"tool": "<tool name>", "parameters": {"<argument>": "<value>"}}\n```',
        rules=("For several calls, write one action block for each.",),
    ),
    JsonCalls(_SHAPE),
    partial(tagged_result, "tool_result"),
    stop=("<tool_result",),
    shape=_SHAPE,
)

DIALECT = Dialect(
    "json_action", MarkupGrammar((FENCE,), results=(*RESULT_TAGS, "<tool_result ")) | RECOVERY, _WRITER, rescues=True
)
