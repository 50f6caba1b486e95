"""A decision: the message is `{"tools": [{"name": …, "arguments": …}]}`, with an empty list for none (D42).

{"tools": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}
"""

from dataclasses import replace
from functools import partial

from toolspeak.dialects.core.dialect import Dialect
from toolspeak.dialects.core.grammar import RESULT_TAGS, MarkupGrammar, OpenerPosition, Wrapper
from toolspeak.dialects.core.json_form import JSON
from toolspeak.dialects.core.markup import RECOVERY
from toolspeak.dialects.core.writer import JSON_EXAMPLE, Contract, JsonCalls, Shape, Writer, tagged_result

_DECISION = Wrapper((), (), (JSON,), OpenerPosition.LINE, sure=False, tail=True, no_calls_is_answer=True)
_AT_ONCE = replace(
    _DECISION, where=OpenerPosition.START
)  # comes before the recovery of bare JSON, for which no call is text


_SHAPE = Shape(separator=", ", around=('{"tools": [', "]}"))
_WRITER = Writer(
    Contract(
        how="Decide which tools are needed now. Answer with one JSON object and nothing else:",
        example=f'{{"tools": [{JSON_EXAMPLE}]}}',
        rules=("List all calls that are needed now, in the order in which they shall run.",),
        manners=(
            'If no tool is needed, answer `{"tools": []}`: somebody else then writes the answer.',
            "Write no explanation, no Markdown, and never a result: the results come later.",
        ),
    ),
    JsonCalls(_SHAPE),
    partial(tagged_result, "tool_result"),
    stop=("<tool_result",),
    shape=_SHAPE,
)

DIALECT = Dialect(
    "decision_json", MarkupGrammar((_AT_ONCE, _DECISION), results=(*RESULT_TAGS, "<tool_result ")) | RECOVERY, _WRITER
)
