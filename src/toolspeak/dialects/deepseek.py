"""DeepSeek V3 to V3.2-Exp: `<｜tool▁call▁begin｜>f<｜tool▁sep｜>{…}<｜tool▁call▁end｜>` inside a section (D16, D17).

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Oslo"}<｜tool▁call▁end｜>
    <｜tool▁calls▁end｜>

We write the form of V3.1. The bars are U+FF5C, the blocks between the words U+2581.
"""

import re
from collections.abc import Sequence
from itertools import product

from toolspeak.dialects.core.dialect import Dialect
from toolspeak.dialects.core.grammar import RESULT_TAGS, MarkupGrammar, Wrapper
from toolspeak.dialects.core.markup import RECOVERY
from toolspeak.dialects.core.named_json import Header, NamedJson
from toolspeak.dialects.core.writer import Contract, Writer, arguments_line, between, result_as_text
from toolspeak.ir.message import Call, Result
from toolspeak.toolset.toolset import ToolSet

_BARS, _BLOCKS = ("｜", "|"), ("▁", "_", " ")
_SEP = re.compile(r"<[｜|]tool[▁_ ]sep[｜|]>")
_NAME = re.compile(r"\s*([^\s`<]{1,128})\s*(?:```(?:json)?\s*)?")


def spelled(words: str) -> tuple[str, ...]:
    """Spell a token as proxies have been seen to retype it: other bars, other blocks between the words."""
    return tuple(f"<{bar}{words.replace(' ', block)}{bar}>" for bar, block in product(_BARS, _BLOCKS))


def _read_header(header: str, tools: ToolSet) -> Header | None:
    """Read `f<sep>` or `function<sep>f` and a fence."""
    first, sep, rest = header.partition(found.group()) if (found := _SEP.search(header)) else (header, "", "")
    named = _NAME.fullmatch(rest if rest.strip("` \njson") else first)
    if not sep or named is None:
        return None
    del tools
    return Header(named.group(1))


_CALL = Wrapper(
    (*spelled("tool calls begin"), *spelled("tool call begin")),
    (*spelled("tool call end"), *spelled("tool calls end")),
    (NamedJson((_read_header,)),),
    single=True,
)
_RESULTS = (*RESULT_TAGS, *spelled("tool outputs begin"), *spelled("tool output begin"))


def _write_calls(calls: Sequence[Call], tools: ToolSet) -> str:
    del tools
    inner = "".join(f"<｜tool▁call▁begin｜>{_write_call(call)}<｜tool▁call▁end｜>" for call in calls)
    return f"<｜tool▁calls▁begin｜>{inner}<｜tool▁calls▁end｜>" if calls else ""


def _write_call(call: Call) -> str:
    """Write the form of V3.1, or that of V3 where the name would not look like one."""
    if call.name[:1].isalnum() or call.name.startswith("_"):
        return f"{call.name}<｜tool▁sep｜>{arguments_line(call)}"
    return f"function<｜tool▁sep｜>{call.name}\n```json\n{arguments_line(call)}\n```"


def _write_result(result: Result) -> str:
    return between("<｜tool▁output▁begin｜>", result_as_text(result), "<｜tool▁output▁end｜>")


_WRITER = Writer(
    Contract(
        how="To call tools, write a section with the name of each tool and its arguments as JSON:",
        example=(
            "<｜tool▁calls▁begin｜>"
            '<｜tool▁call▁begin｜><tool name><｜tool▁sep｜>{"<argument>": "<value>"}<｜tool▁call▁end｜>'
            "<｜tool▁calls▁end｜>"
        ),
        rules=("For several calls, put them one after the other into the same section.",),
    ),
    _write_calls,
    _write_result,
    stop=("<｜tool▁output▁begin｜>",),
)

DIALECT = Dialect("deepseek", MarkupGrammar((_CALL,), results=_RESULTS) | RECOVERY, _WRITER, rescues=True)
