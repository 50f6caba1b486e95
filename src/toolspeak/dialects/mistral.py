"""Mistral: `[TOOL_CALLS]f[ARGS]{…}` for each; before v11 `[TOOL_CALLS] [{"name": …, "arguments": …}]` (D11, 12).

    [TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}[TOOL_CALLS]now[ARGS]{}

Calls end the message. The result is between `[TOOL_RESULTS]` and `[/TOOL_RESULTS]`.
"""

import re
from collections.abc import Sequence

from toolspeak.dialects.core.dialect import Dialect
from toolspeak.dialects.core.grammar import RESULT_TAGS, MarkupGrammar, Wrapper
from toolspeak.dialects.core.json_form import JSON
from toolspeak.dialects.core.markup import RECOVERY
from toolspeak.dialects.core.named_json import NamedJson, by_pattern
from toolspeak.dialects.core.writer import Contract, Writer, arguments_line, between, call_json, result_as_text
from toolspeak.ir.message import Call, Result
from toolspeak.toolset.toolset import ToolSet

_NAMED = NamedJson(
    (by_pattern(r"\s*(?P<name>[\w.\-/:]{1,128})\s*(?:\[CALL_ID\](?P<id>\w{0,64})\s*)?(?:\[ARGS\])?\s*"),)
)
_NAME = re.compile(r"\w[\w.\-/:]{0,127}")
CALLS = Wrapper(("[TOOL_CALLS]", "[TOOL_CALLS"), ("[/TOOL_CALLS]", "</s>"), (JSON, _NAMED), single=True)


def _write_calls(calls: Sequence[Call], tools: ToolSet) -> str:
    del tools
    return "".join(f"[TOOL_CALLS]{_write_call(call)}" for call in calls)


def _write_call(call: Call) -> str:
    """Write the name before the JSON, or into it where it would not be read as a name."""
    return f"{call.name}[ARGS]{arguments_line(call)}" if _NAME.fullmatch(call.name) else f"[{call_json(call)}]"


def _write_result(result: Result) -> str:
    return between("[TOOL_RESULTS]", result_as_text(result), "[/TOOL_RESULTS]")


_WRITER = Writer(
    Contract(
        how="To call a tool, end your message with its name and its arguments as JSON, marked like this:",
        example='[TOOL_CALLS]<tool name>[ARGS]{"<argument>": "<value>"}',
        rules=("For several calls, repeat all of it for each, from `[TOOL_CALLS]` on.",),
        around=("[AVAILABLE_TOOLS]\n", "\n[/AVAILABLE_TOOLS]"),
    ),
    _write_calls,
    _write_result,
    stop=("[TOOL_RESULTS]",),
)

DIALECT = Dialect(
    "mistral", MarkupGrammar((CALLS,), results=(*RESULT_TAGS, "[TOOL_RESULTS]")) | RECOVERY, _WRITER, rescues=True
)
