"""Inkling: `<|content_invoke_tool_json|>{"name": …, "args": …}<|end_message|>` (D09d)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Label, Where, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._shared import RECOVERY

_CALL = Wrapper(("<|content_invoke_tool_json|>", "<|content_invoke_tool_text|>"), ("<|end_message|>",), (JSON,))
_HEADER = Label("<|message_model|>", Where.ANYWHERE)

DIALECT = Dialect("inkling", Grammar((_CALL,), labels=(_HEADER,)) | RECOVERY, rescues=True)
