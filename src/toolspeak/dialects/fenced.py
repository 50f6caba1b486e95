"""The default: a fence with the info string `tool_call` around `{"name": …, "arguments": …}` (D45)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._shared import RECOVERY

FENCE = Wrapper(("tool_call", "tool_calls", "json tool_call", "toolcall"), ("```",), (JSON,), fence=True)

DIALECT = Dialect("fenced", Grammar((FENCE,)) | RECOVERY)
