"""Step3: `function<｜tool_sep｜><steptml:invoke name="f">…` inside sections (D27)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Where, Wrapper
from toolspeak.dialects._shared import RECOVERY
from toolspeak.dialects._tagged import XML

_CALL = Wrapper(
    ("<｜tool_calls_begin｜>", "<｜tool_call_begin｜>", "function<｜tool_sep｜>", "<｜tool_sep｜>"),
    ("<｜tool_call_end｜>", "<｜tool_calls_end｜>"),
    (XML,),
)
_BARE = Wrapper(("<steptml:invoke ",), ("<｜tool_call_end｜>",), (XML,), Where.LINE, sure=False, keep_opener=True)

DIALECT = Dialect("step3", Grammar((_CALL, _BARE)) | RECOVERY, rescues=True)
