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

from toolspeak.dialects._dialect import Dialect, Writer
from toolspeak.dialects._grammar import Grammar
from toolspeak.dialects._shape import Shape, Tags
from toolspeak.dialects._shared import RECOVERY, TOOL_CALL
from toolspeak.dialects._teach import IN_TAGS, RAW_TEXTS, Contract
from toolspeak.dialects._write import arguments_text, between, call_json, result_text
from toolspeak.dialects._write_texts import has_no_roles, texts_of
from toolspeak.ir.message import Call, Result
from toolspeak.toolset.toolset import ToolSet


def _write_calls(calls: Sequence[Call], tools: ToolSet) -> str:
    return "\n".join(f"<tool_call>\n{_write_call(call, tools)}\n</tool_call>" for call in calls)


def _write_call(call: Call, tools: ToolSet) -> str:
    if call.name.endswith("/"):  # would close its own tag
        return call_json(call)
    texts = texts_of(call, tools, lambda text: has_no_roles(text, call, tools))
    if texts is None:
        return f"<function={call.name}>\n{arguments_text(call)}\n</function>"
    parameters = "".join(f"<parameter={key}>\n{text}\n</parameter>\n" for key, text in texts)
    return f"<function={call.name}>\n{parameters}</function>"


def _write_result(result: Result) -> str:
    return between("<tool_response>\n", result_text(result), "\n</tool_response>")


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

DIALECT = Dialect("qwen_xml", Grammar((TOOL_CALL,)) | RECOVERY, _WRITER)
