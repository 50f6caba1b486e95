"""GigaChat 3: `<|function_call|>` JSON, or `function call<|role_sep|>` and JSON on the next line (D09c)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._shared import RECOVERY

_CALL = Wrapper(("<|function_call|>", "function call<|role_sep|>"), ("<|message_sep|>",), (JSON,))

DIALECT = Dialect("gigachat", Grammar((_CALL,)) | RECOVERY, rescues=True)
