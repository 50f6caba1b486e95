"""Llama 3: the message is `{"name": …, "parameters": …}`, perhaps after `<|python_tag|>`; `;` between several (D10).

    {"name": "get_weather", "parameters": {"city": "Oslo"}}

The result is JSON, as in Llama's `ipython` turns, between tags: those turns' own tokens are not ours to write.
"""

from toolspeak.dialects._dialect import Dialect, Writer
from toolspeak.dialects._grammar import RESULT_TAGS, Grammar, Where, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._pythonic import PYTHON_CALL, PYTHON_LIST
from toolspeak.dialects._shape import Shape
from toolspeak.dialects._shared import RECOVERY
from toolspeak.dialects._teach import Contract
from toolspeak.dialects._write import JsonCalls, ipython_result

PYTHON_TAG = Wrapper(
    ("<|python_tag|>", "<|python_start|>"),
    ("<|python_end|>", "<|eom_id|>", "<|eot_id|>"),
    (JSON, PYTHON_LIST, PYTHON_CALL),
)

_SHAPE = Shape(arguments="parameters", separator="; ", mark='{"name": ', where=Where.START)
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
    "llama_json", Grammar((PYTHON_TAG,), results=(*RESULT_TAGS, "<ipython>")) | RECOVERY, _WRITER, rescues=True
)
