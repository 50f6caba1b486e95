"""LM Studio's default: `[TOOL_REQUEST]{"name": …, "arguments": …}[END_TOOL_REQUEST]` (D43)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._shared import RECOVERY

CALL = Wrapper(("[TOOL_REQUEST]",), ("[END_TOOL_REQUEST]", "[/TOOL_REQUEST]"), (JSON,))

DIALECT = Dialect("lmstudio", Grammar((CALL,)) | RECOVERY, rescues=True)
