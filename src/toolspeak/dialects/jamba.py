"""Jamba, Hunyuan A13B, Apriel: `<tool_calls>[{…}, {…}]</tool_calls>` (D05)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._shared import RECOVERY, TOOL_CALL

CALLS = Wrapper(("<tool_calls>",), ("</tool_calls>",), (JSON,))

DIALECT = Dialect("jamba", Grammar((CALLS, TOOL_CALL)) | RECOVERY, rescues=True)
