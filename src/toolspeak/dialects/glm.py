"""GLM 4.5 to 5: `<tool_call>f<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>` (D24).

    <tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call>

Values are raw text. Where one would not be read back as it is, all arguments follow the name as JSON instead.
"""

from collections.abc import Sequence

from toolspeak.dialects.core.dialect import Dialect
from toolspeak.dialects.core.grammar import RESULT_TAGS, MarkupGrammar
from toolspeak.dialects.core.markup import RECOVERY, TOOL_CALL
from toolspeak.dialects.core.writer import (
    CDATA,
    IN_TAGS,
    RAW_TEXTS,
    Contract,
    Writer,
    arguments_line,
    between,
    call_json,
    result_as_text,
    tags_in,
    texts_of,
)
from toolspeak.ir.message import Call, Result
from toolspeak.toolset.toolset import ToolSet

_OWN_TAGS = ("tool_call", "arg_key", "arg_value")


def _write_calls(calls: Sequence[Call], tools: ToolSet) -> str:
    return "".join(f"<tool_call>{_write_call(call, tools)}</tool_call>" for call in calls)


def _write_call(call: Call, tools: ToolSet) -> str:
    if not call.name[:1].isalpha() and not call.name.startswith("_"):  # would not look like a name
        return call_json(call)
    texts = texts_of(call, tools, _is_data)
    if texts is None:
        return call.name + arguments_line(call)
    pairs = (f"<arg_key>{key}</arg_key><arg_value>{text}</arg_value>" for key, text in texts)
    return call.name + "".join(pairs)


def _is_data(text: str) -> bool:
    return not text.startswith(CDATA) and not any(tag.name in _OWN_TAGS for tag in tags_in(text))


def _write_result(result: Result) -> str:
    return between("<tool_response>\n", result_as_text(result), "\n</tool_response>")


_WRITER = Writer(
    Contract(
        how="For each call, write the tool's name, and its arguments as pairs of key and value, in `<tool_call>` tags:",
        example=(
            "<tool_call>[tool name]<arg_key>[argument]</arg_key><arg_value>[value]</arg_value>"
            "<arg_key>[argument]</arg_key><arg_value>[value]</arg_value></tool_call>"
        ),
        rules=(RAW_TEXTS, "For several calls, repeat the `<tool_call>` block for each."),
        around=IN_TAGS,
    ),
    _write_calls,
    _write_result,
    stop=("<tool_response>",),
)

DIALECT = Dialect(
    "glm", MarkupGrammar((TOOL_CALL,), results=(*RESULT_TAGS, "<|observation|>")) | RECOVERY, _WRITER, rescues=True
)
