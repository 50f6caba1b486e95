"""The whole answer is JSON: a thought, then calls; the answer itself is a call too (D46).

{"thought": "I look it up.", "calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}

For upstreams that can be held to a schema. The thought comes first, because small models choose worse without one.
"""

from dataclasses import replace
from functools import partial

from toolspeak.dialects.core.dialect import Dialect
from toolspeak.dialects.core.grammar import RESULT_TAGS, MarkupGrammar, OpenerPosition, Wrapper
from toolspeak.dialects.core.json_form import JSON
from toolspeak.dialects.core.markup import RECOVERY
from toolspeak.dialects.core.writer import JSON_EXAMPLE, Contract, JsonCalls, Shape, Writer, tagged_result

_LINE = Wrapper((), (), (JSON,), OpenerPosition.LINE, sure=False, tail=True, no_calls_is_answer=True)
_AT_ONCE = replace(_LINE, where=OpenerPosition.START)

_SHAPE = Shape(separator=", ", around=('{"calls": [', "]}"), thought="thought")
_WRITER = Writer(
    Contract(
        how="Answer with one JSON object and nothing else, first what you think, then what you call:",
        example=f'{{"thought": "<one sentence>", "calls": [{JSON_EXAMPLE}]}}',
        rules=("List all calls that are needed now, in the order in which they shall run.",),
        manners=(
            "If no tool is needed any more, call the one that answers the user.",
            "Write no Markdown, and never a result: the results come later.",
        ),
    ),
    JsonCalls(_SHAPE),
    partial(tagged_result, "tool_result"),
    stop=("<tool_result",),
    shape=_SHAPE,
)

DIALECT = Dialect(
    "steps_json", MarkupGrammar((_AT_ONCE, _LINE), results=(*RESULT_TAGS, "<tool_result ")) | RECOVERY, _WRITER
)
