"""Kimi K2: `<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{…}<|tool_call_end|>` in a section (D18).

    <|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Oslo"}
    <|tool_call_end|><|tool_calls_section_end|>

The id is the only carrier of the name. If a gateway rewrites ids in the history, the model copies the damaged shape and
later calls cannot be read (vllm#50768): toolspeak gives the model its own ids back unchanged.
"""

import re
from collections.abc import Sequence

from toolspeak.dialects.core.dialect import Dialect
from toolspeak.dialects.core.grammar import MarkupGrammar, Wrapper
from toolspeak.dialects.core.markup import RECOVERY
from toolspeak.dialects.core.named_json import Header, NamedJson
from toolspeak.dialects.core.writer import Contract, Writer, arguments_line, result_as_text
from toolspeak.ir.message import Call, Result
from toolspeak.toolset.toolset import ToolSet

_HEADER = re.compile(r"\s*(?P<id>[^\s<>{}]{0,160})\s*<\|tool_call_argument_begin\|>\s*")
# Seen: `functions.f:0`, `f:0`, `functions.f0`, `functionsf0`, `functions_f_0`, and a bare `0`.
_PREFIXES = ("functions.", "functions_", "functions", "")
_COUNTER = re.compile(r"[:_]?\d{0,6}\Z")
_ID = re.compile(r"functions\.(?P<name>[^\s<>{}]+):\d{1,6}")


def tool_of_id(id: str, tools: ToolSet) -> str | None:
    """Return the tool that an id names; None if it is a bare counter."""
    if id.isdigit() or not id:
        return None
    for prefix in _PREFIXES:
        if id.startswith(prefix):
            inner = id[len(prefix) :]
            for name in (_COUNTER.sub("", inner), inner):
                if tools.find(name).tool is not None:
                    return name
    return id.removeprefix("functions.").rpartition(":")[0] or id


def _read_header(header: str, tools: ToolSet) -> Header | None:
    found = _HEADER.fullmatch(header)
    return None if found is None else Header(tool_of_id(found["id"], tools), found["id"])


_NAMED = NamedJson((_read_header,))
_CALL = Wrapper(
    # the section in the singular: llama.cpp#17376
    ("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>", "<|tool_call_begin|>"),
    ("<|tool_call_end|>", "<|tool_calls_section_end|>", "<|tool_call_section_end|>"),
    (_NAMED,),
    single=True,
)
_LOST_BEGIN = Wrapper(
    ("functions.",), ("<|tool_call_end|>", "<|tool_calls_section_end|>"), (_NAMED,), sure=False, single=True
)


def _write_calls(calls: Sequence[Call], tools: ToolSet) -> str:
    del tools
    inner = "".join(
        f"<|tool_call_begin|>{_id(call, number)}<|tool_call_argument_begin|>{arguments_line(call)}<|tool_call_end|>"
        for number, call in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{inner}<|tool_calls_section_end|>" if calls else ""


def _id(call: Call, number: int) -> str:
    native = _ID.fullmatch(call.native_id)
    return call.native_id if native and native["name"] == call.name else f"functions.{call.name}:{number}"


def _write_result(result: Result) -> str:
    """Name the call by its id, if that is of this dialect; else only the tool is known."""
    answered = result.call_id if _ID.fullmatch(result.call_id) else f"functions.{result.name or result.call_id}"
    return f"## Return of {answered}\n{result_as_text(result)}"


_WRITER = Writer(
    Contract(
        how="To call tools, write a section with the id of each call and its arguments as JSON:",
        example=(
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.<tool name>:<number><|tool_call_argument_begin|>"
            '{"<argument>": "<value>"}<|tool_call_end|><|tool_calls_section_end|>'
        ),
        rules=(
            "Number the calls from 0 on, through the whole conversation.",
            "For several calls, put them one after the other into the same section.",
        ),
    ),
    _write_calls,
    _write_result,
    stop=("## Return of functions.",),
)

DIALECT = Dialect(
    "kimi",
    MarkupGrammar((_CALL, _LOST_BEGIN), result_lines=("## Return of functions.",)) | RECOVERY,
    _WRITER,
    rescues=True,
)
