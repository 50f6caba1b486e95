"""`{"tool": …, "args": …}` on a line of its own, as the last thing of the message (D41)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Where, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._shared import RECOVERY

_LINE = Wrapper((), ("</tool_call>",), (JSON,), Where.LINE, sure=False, tail=True)

DIALECT = Dialect("inline_json", Grammar((_LINE,)) | RECOVERY)
