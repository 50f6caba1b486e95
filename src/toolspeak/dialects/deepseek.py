"""DeepSeek V3 to V3.2-Exp: `<｜tool▁call▁begin｜>f<｜tool▁sep｜>{…}<｜tool▁call▁end｜>` inside a section (D16, D17)."""

import re
from itertools import product

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import RESULT_TAGS, Grammar, Wrapper
from toolspeak.dialects._named_json import Header, NamedJson
from toolspeak.dialects._shared import RECOVERY
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
)
_RESULTS = (*RESULT_TAGS, *spelled("tool outputs begin"), *spelled("tool output begin"))

DIALECT = Dialect("deepseek", Grammar((_CALL,), results=_RESULTS) | RECOVERY)
