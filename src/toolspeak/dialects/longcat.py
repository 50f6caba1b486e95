"""LongCat: `<longcat_tool_call>{…}</longcat_tool_call>` (D03)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._shared import RECOVERY

_CALL = Wrapper(("<longcat_tool_call>",), ("</longcat_tool_call>",), (JSON,))

DIALECT = Dialect("longcat", Grammar((_CALL,)) | RECOVERY, rescues=True)
