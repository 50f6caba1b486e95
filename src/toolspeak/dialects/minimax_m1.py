"""MiniMax M1: `<tool_calls>`, one JSON object per line, `</tool_calls>` (D06)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._shared import RECOVERY

_CALLS = Wrapper(("<tool_calls>",), ("</tool_calls>",), (JSON,))

DIALECT = Dialect("minimax_m1", Grammar((_CALLS,), result_lines=("tool result:",)) | RECOVERY)
