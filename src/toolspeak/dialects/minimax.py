"""MiniMax M2: `<minimax:tool_call><invoke name="f">…`; M3: a token before each tag, parameters as elements (D26)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import RESULT_TAGS, Grammar, Wrapper
from toolspeak.dialects._shared import BARE_INVOKE, RECOVERY
from toolspeak.dialects._tagged import XML, Tagged
from toolspeak.dialects._tags import XmlTags

_TOKEN = "]<]minimax[>["
_M2 = Wrapper(("<minimax:tool_call>",), ("</minimax:tool_call>",), (XML,))
_M3 = Wrapper((f"{_TOKEN}<tool_call>",), (f"{_TOKEN}</tool_call>",), (Tagged(XmlTags(_TOKEN)),))

DIALECT = Dialect(
    "minimax", Grammar((_M2, _M3, BARE_INVOKE), results=(*RESULT_TAGS, "<response>")) | RECOVERY, rescues=True
)
