"""Llama 3: the message is `{"name": …, "parameters": …}`, perhaps after `<|python_tag|>`; `;` between several (D10).

    {"name": "get_weather", "parameters": {"city": "Oslo"}}

The result is JSON, as in Llama's `ipython` turns, between tags: those turns' own tokens are not ours to write.
"""

from toolspeak.dialects.core.dialect import Dialect
from toolspeak.dialects.core.grammar import RESULT_TAGS, MarkupGrammar, OpenerPosition
from toolspeak.dialects.core.markup import PYTHON_TAG, RECOVERY
from toolspeak.dialects.core.writer import Contract, JsonCalls, Shape, Writer, ipython_result

_SHAPE = Shape(arguments="parameters", separator="; ", mark='{"name": ', where=OpenerPosition.START)
_WRITER = Writer(
    Contract(
        how="To call a tool, answer with one JSON object and nothing else, no text before or after it:",
        example='{"name": "<tool name>", "parameters": {"<argument>": "<value>"}}',
        rules=("For several calls, write one such object for each, with a semicolon between them.",),
    ),
    JsonCalls(_SHAPE),
    ipython_result,
    stop=("<ipython>",),
    shape=_SHAPE,
)

DIALECT = Dialect(
    "llama_json", MarkupGrammar((PYTHON_TAG,), results=(*RESULT_TAGS, "<ipython>")) | RECOVERY, _WRITER, rescues=True
)
