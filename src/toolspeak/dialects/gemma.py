"""Gemma 4: `<|tool_call>call:f{k:<|"|>text<|"|>}<tool_call|>` (D37).

    <|tool_call>call:get_weather{city:<|"|>Oslo<|"|>,days:2}<tool_call|>

Keys are sorted, as in Gemma's own template. A string that holds the quote token is written as JSON, and so is a key
that needs quotes.
"""

import re
from collections.abc import Sequence

from toolspeak.dialects.core.dialect import Dialect
from toolspeak.dialects.core.grammar import RESULT_TAGS, MarkupGrammar, Wrapper
from toolspeak.dialects.core.key_value_form import KEY_VALUE
from toolspeak.dialects.core.markup import RECOVERY
from toolspeak.dialects.core.writer import UNSEEN, Contract, Writer, arguments_of, break_markers, result_as_text
from toolspeak.ir.json import Json
from toolspeak.ir.message import Call, Result
from toolspeak.text.strict import dump
from toolspeak.toolset.toolset import ToolSet

_CALL = Wrapper(("<|tool_call>",), ("<tool_call|>",), (KEY_VALUE,))
_RESULT, _RESULT_END = "<|tool_response>", "<tool_response|>"
_QUOTE = '<|"|>'
_KEY = re.compile(r"[A-Za-z_][\w.\-]{0,127}")


def _write_calls(calls: Sequence[Call], tools: ToolSet) -> str:
    del tools
    return "".join(f"<|tool_call>call:{call.name}{_value(arguments_of(call))}<tool_call|>" for call in calls)


def _value(value: Json) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_key(key)}:{_value(item)}" for key, item in sorted(value.items())) + "}"
    if isinstance(value, list):
        return f"[{','.join(map(_value, value))}]"
    plain = isinstance(value, str) and _QUOTE not in value and not UNSEEN.search(value)
    return f"{_QUOTE}{value}{_QUOTE}" if plain else dump(value)


def _key(key: str) -> str:
    return key if _KEY.fullmatch(key) else dump(key)


def _write_result(result: Result) -> str:
    key = "error" if result.is_error else "value"
    text = break_markers(result_as_text(result, error=""), _RESULT, _RESULT_END)
    return f"{_RESULT}response:{result.name}{{{key}:{_value(text)}}}{_RESULT_END}"


_WRITER = Writer(
    Contract(
        how=f"To call a tool, write its name and its arguments like this, with `{_QUOTE}` around each text:",
        example=f"<|tool_call>call:[tool name]{{[argument]:{_QUOTE}[text]{_QUOTE},[argument]:[number]}}<tool_call|>",
        rules=("For several calls, write one after the other.",),
    ),
    _write_calls,
    _write_result,
    stop=(_RESULT,),
)

DIALECT = Dialect("gemma", MarkupGrammar((_CALL,), results=(*RESULT_TAGS, _RESULT)) | RECOVERY, _WRITER, rescues=True)
