"""Muse Glimmer: a header `to=f<|message|>`, then `<atem:function_calls>` with invoke tags (D27)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Special, Where, Wrapper
from toolspeak.dialects._headers import HEADER_TO_MESSAGE
from toolspeak.dialects._shared import BARE_INVOKE, RECOVERY
from toolspeak.dialects._tagged import XML

_CALLS = Wrapper(("<atem:function_calls>",), ("</atem:function_calls>",), (XML,))
_HEADER = Special("to=", HEADER_TO_MESSAGE, Where.LINE)

DIALECT = Dialect(
    "muse", Grammar((_CALLS, BARE_INVOKE), closers=("<|eom|>", "<|eot|>"), specials=(_HEADER,)) | RECOVERY
)
