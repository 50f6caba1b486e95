"""Anthropic style: `<invoke name="f"><parameter name="k">v</parameter></invoke>` inside `<function_calls>` (D23).

    <function_calls>
    <invoke name="get_weather">
    <parameter name="city">Oslo</parameter>
    </invoke>
    </function_calls>

Values are raw text. Where one would not be read back as it is, the invoke holds all arguments as JSON instead.
"""

from collections.abc import Sequence

from toolspeak.dialects.core.dialect import Dialect
from toolspeak.dialects.core.grammar import RESULT_TAGS, MarkupGrammar, Wrapper
from toolspeak.dialects.core.markup import BARE_INVOKE, NAMESPACES, RECOVERY
from toolspeak.dialects.core.tag_form import XML
from toolspeak.dialects.core.writer import (
    CDATA,
    RAW_TEXTS,
    Contract,
    Writer,
    arguments_line,
    between,
    has_no_roles,
    result_as_text,
    texts_of,
)
from toolspeak.ir.message import Call, Result
from toolspeak.toolset.toolset import ToolSet

CALLS = Wrapper(
    (*(f"<{prefix}function_calls>" for prefix in NAMESPACES), "<minimax:tool_call>"),
    (*(f"</{prefix}function_calls>" for prefix in NAMESPACES), "</minimax:tool_call>"),
    (XML,),
)


def _write_calls(calls: Sequence[Call], tools: ToolSet) -> str:
    invokes = "".join(f'<invoke name="{call.name}">\n{_arguments(call, tools)}</invoke>\n' for call in calls)
    return f"<function_calls>\n{invokes}</function_calls>" if calls else ""


def _arguments(call: Call, tools: ToolSet) -> str:
    def is_data(text: str) -> bool:
        return not text.startswith(("\n", CDATA)) and has_no_roles(text, call, tools)

    texts = texts_of(call, tools, is_data)
    if texts is None:
        return f"{arguments_line(call)}\n"
    return "".join(f'<parameter name="{key}">{text}</parameter>\n' for key, text in texts)


def _write_result(result: Result) -> str:
    tag = "error" if result.is_error else "output"
    named = f"<name>{result.name}</name>\n" if result.name else ""
    body = between(f"<{tag}>", result_as_text(result, error=""), f"</{tag}>")
    return between("<function_results>", f"\n<result>\n{named}{body}\n</result>\n", "</function_results>")


_WRITER = Writer(
    Contract(
        how="To call tools, write a block like this one:",
        example=(
            '<function_calls>\n<invoke name="[tool name]">\n<parameter name="[argument]">[value]</parameter>\n'
            "</invoke>\n</function_calls>"
        ),
        rules=(RAW_TEXTS, "For several calls, put one `<invoke>` for each into the same block."),
    ),
    _write_calls,
    _write_result,
    stop=("<function_results>",),
)

DIALECT = Dialect(
    "invoke_xml",
    MarkupGrammar((CALLS, BARE_INVOKE), results=(*RESULT_TAGS, "<result>")) | RECOVERY,
    _WRITER,
    rescues=True,
)
