"""Markers that carry a key: `<<KEY:call>>{"name": …, "arguments": …}<<KEY:end>>` (SAFE-4).

    <<k7Qz:call>>
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    <<k7Qz:end>>

Only markers with this conversation's key are calls, so an example, an echo or an old transcript is text for certain.
The result is between `<<KEY:result NAME>>` and `<<KEY:end>>`.
"""

from functools import partial

from toolspeak.dialects.core.dialect import Dialect
from toolspeak.dialects.core.grammar import RESULT_TAGS, MarkupGrammar, Wrapper
from toolspeak.dialects.core.json_form import JSON
from toolspeak.dialects.core.writer import (
    JSON_EXAMPLE,
    Contract,
    JsonCalls,
    Shape,
    Writer,
    break_markers,
    result_as_text,
)
from toolspeak.errors import BadRequest
from toolspeak.ir.message import Result

_MIN_KEY = 4


def keyed(key: str) -> Dialect:
    """Make the dialect of one key."""
    if len(key) < _MIN_KEY or not key.isalnum():
        message = f"key {key!r} is not at least {_MIN_KEY} letters and digits"
        raise BadRequest(message)
    call = Wrapper((f"<<{key}:call>>",), (f"<<{key}:end>>",), (JSON,))
    results = (*RESULT_TAGS, f"<<{key}:result")
    return Dialect("keyed", MarkupGrammar((call,), results=results, whole_fences=False), _writer(key))


def _writer(key: str) -> Writer:
    contract = Contract(
        how=f"For each call, write a JSON object with name and arguments between these marks with the key `{key}`:",
        example=f"<<{key}:call>>\n{JSON_EXAMPLE}\n<<{key}:end>>",
        rules=(
            "Copy both marks to the letter: the key is that of this conversation, and without it nothing is a call.",
            "For several calls, repeat the marks and the object for each.",
        ),
    )
    shape = Shape(f"<<{key}:call>>\n", f"\n<<{key}:end>>", mark=f"<<{key}:call>>")
    return Writer(contract, JsonCalls(shape), partial(_write_result, key), stop=(f"<<{key}:result",), shape=shape)


def _write_result(key: str, result: Result) -> str:
    named = f" {result.name}" if result.name else ""
    return f"<<{key}:result{named}>>\n{break_markers(result_as_text(result), f'<<{key}:')}\n<<{key}:end>>"
