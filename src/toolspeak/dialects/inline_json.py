"""`{"tool": …, "args": …}` on a line of its own, as the last thing of the message (D41).

I look it up.
{"tool": "get_weather", "args": {"city": "Oslo"}}
"""

from functools import partial

from toolspeak.dialects.core.dialect import Dialect
from toolspeak.dialects.core.grammar import RESULT_TAGS, MarkupGrammar, OpenerPosition, Wrapper
from toolspeak.dialects.core.json_form import JSON
from toolspeak.dialects.core.markup import RECOVERY
from toolspeak.dialects.core.writer import Contract, JsonCalls, Shape, Writer, tagged_result

_LINE = Wrapper((), ("</tool_call>",), (JSON,), OpenerPosition.LINE, sure=False, tail=True)

_SHAPE = Shape(name="tool", arguments="args", mark='{"tool": ', where=OpenerPosition.LINE)
_WRITER = Writer(
    Contract(
        how="When you need to run a tool, write only the JSON of the call on a new line, as the last line:",
        example='{"tool": "<tool name>", "args": {"<argument>": "<value>"}}',
        rules=("Go step by step: one call at a time if you can, else one line for each call.",),
    ),
    JsonCalls(_SHAPE),
    partial(tagged_result, "tool_output"),
    stop=("<tool_output",),
    shape=_SHAPE,
)

DIALECT = Dialect("inline_json", MarkupGrammar((_LINE,), results=(*RESULT_TAGS, "<tool_output ")) | RECOVERY, _WRITER)
