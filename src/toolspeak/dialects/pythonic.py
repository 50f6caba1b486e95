"""Python calls: the message is `[f(a="x", n=2), g()]` (Llama 3.2, ToolACE, watt, CoALM, Gemma 3) (D31).

    [get_weather(city="Oslo", days=2), now()]

Arguments whose names Python does not allow go into `**{…}`; tools whose names it does not allow are called in JSON.
"""

import re
from collections.abc import Sequence

from toolspeak.dialects.core.dialect import Dialect
from toolspeak.dialects.core.grammar import RESULT_TAGS, MarkupGrammar
from toolspeak.dialects.core.markup import BARE_PYTHON, RECOVERY
from toolspeak.dialects.core.writer import Contract, Writer, arguments_of, call_json, ipython_result
from toolspeak.ir.json import Json
from toolspeak.ir.message import Call
from toolspeak.text.strict import dump
from toolspeak.toolset.toolset import ToolSet

_NAME = re.compile(r"[A-Za-z_][\w.\-]{0,127}")
_KEYWORD = re.compile(r"[A-Za-z_]\w{0,127}")


def _write_calls(calls: Sequence[Call], tools: ToolSet) -> str:
    del tools
    write = _write_call if all(_NAME.fullmatch(call.name) for call in calls) else call_json
    return f"[{', '.join(map(write, calls))}]" if calls else ""


def _write_call(call: Call) -> str:
    arguments = arguments_of(call)
    if all(map(_KEYWORD.fullmatch, arguments)):
        return f"{call.name}({', '.join(f'{key}={_literal(value)}' for key, value in arguments.items())})"
    return f"{call.name}(**{_literal(arguments)})"


def _literal(value: Json) -> str:
    """Write a Python literal; strings as JSON writes them, which Python reads too."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{dump(key)}: {_literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    return str(value) if value is None or isinstance(value, bool) else dump(value)


_WRITER = Writer(
    Contract(
        how="To call tools, answer with a Python list of calls and nothing else, no text before or after it:",
        example="[<tool name>(<argument>=<value>, <argument>=<value>)]",
        rules=("Values are Python literals, each with its name.", "For several calls, put them into the same list."),
    ),
    _write_calls,
    ipython_result,
    stop=("<ipython>",),
)

DIALECT = Dialect(
    "pythonic", MarkupGrammar((BARE_PYTHON,), results=(*RESULT_TAGS, "<ipython>")) | RECOVERY, _WRITER, rescues=True
)
