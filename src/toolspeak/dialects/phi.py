"""Phi-4-mini's own tokens: `<|tool_call|>[{…}]<|/tool_call|>` (D14)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._shared import RECOVERY

_CALLS = Wrapper(("<|tool_call|>",), ("<|/tool_call|>",), (JSON,))

DIALECT = Dialect("phi", Grammar((_CALLS,)) | RECOVERY, rescues=True)
