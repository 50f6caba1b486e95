"""Kimi K2: `<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{…}<|tool_call_end|>` in a section (D18).

The id is the only carrier of the name, and has been seen damaged in many ways.
"""

import re

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Wrapper
from toolspeak.dialects._named_json import Header, NamedJson
from toolspeak.dialects._shared import RECOVERY
from toolspeak.toolset.toolset import ToolSet

_HEADER = re.compile(r"\s*(?P<id>[\w.:/\-]{0,160})\s*<\|tool_call_argument_begin\|>\s*")
_PREFIXES = ("functions.", "functions_", "functions", "")
_COUNTER = re.compile(r"[:_]?\d{0,6}\Z")


def name_in(id: str, tools: ToolSet) -> str | None:
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
    return None if found is None else Header(name_in(found["id"], tools), found["id"])


_NAMED = NamedJson((_read_header,))
_CALL = Wrapper(
    ("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>", "<|tool_call_begin|>"),
    ("<|tool_call_end|>", "<|tool_calls_section_end|>", "<|tool_call_section_end|>"),
    (_NAMED,),
)
_LOST_BEGIN = Wrapper(("functions.",), ("<|tool_call_end|>", "<|tool_calls_section_end|>"), (_NAMED,), sure=False)

DIALECT = Dialect("kimi", Grammar((_CALL, _LOST_BEGIN)) | RECOVERY)
