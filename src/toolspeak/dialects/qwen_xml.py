"""Qwen3-Coder: `<tool_call><function=f><parameter=k>` value `</parameter></function></tool_call>` (D20).

    <tool_call>
    <function=get_weather>
    <parameter=city>
    Oslo
    </parameter>
    </function>
    </tool_call>

Values are raw text. Where one would not be read back as it is, the function holds all arguments as JSON instead.
"""

from collections.abc import Sequence

from toolspeak.dialects.core.dialect import Dialect
from toolspeak.dialects.core.grammar import MarkupGrammar
from toolspeak.dialects.core.markup import RECOVERY, TOOL_CALL
from toolspeak.dialects.core.writer import (
    IN_TAGS,
    RAW_TEXTS,
    Contract,
    Shape,
    Tags,
    Writer,
    arguments_line,
    between,
    call_json,
    has_no_roles,
    result_as_text,
    texts_of,
)
from toolspeak.ir.message import Call, Result
from toolspeak.toolset.toolset import ToolSet


def _write_calls(calls: Sequence[Call], tools: ToolSet) -> str:
    return "\n".join(f"<tool_call>\n{_write_call(call, tools)}\n</tool_call>" for call in calls)


def _write_call(call: Call, tools: ToolSet) -> str:
    if call.name.endswith("/"):  # would close its own tag
        return call_json(call)
    texts = texts_of(call, tools, lambda text: has_no_roles(text, call, tools))
    if texts is None:
        return f"<function={call.name}>\n{arguments_line(call)}\n</function>"
    parameters = "".join(f"<parameter={key}>\n{text}\n</parameter>\n" for key, text in texts)
    return f"<function={call.name}>\n{parameters}</function>"


def _write_result(result: Result) -> str:
    return between("<tool_response>\n", result_as_text(result), "\n</tool_response>")


_TAGS = Tags(("<function=", ">\n", "</function>"), ("<parameter=", ">\n", "\n</parameter>\n"))
_WRITER = Writer(
    Contract(
        how="For each call, write a function and its parameters in `<tool_call>` tags:",
        example=(
            "<tool_call>\n<function=[tool name]>\n<parameter=[argument]>\n[value, on as many lines as it needs]\n"
            "</parameter>\n</function>\n</tool_call>"
        ),
        rules=(RAW_TEXTS, "For several calls, repeat the `<tool_call>` block for each."),
        around=IN_TAGS,
    ),
    _write_calls,
    _write_result,
    stop=("<tool_response>",),
    shape=Shape("<tool_call>\n", "\n</tool_call>", mark="<tool_call>", tags=_TAGS),
)

DIALECT = Dialect("qwen_xml", MarkupGrammar((TOOL_CALL,)) | RECOVERY, _WRITER)
