"""Granite 3: `<|tool_call|>[{…}]` with no closer; Granite 20b: `<function_call> {…}` for each call (D08)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._shared import RECOVERY, TOOL_CALL

_LIST = Wrapper(("<|tool_call|>",), ("<|/tool_call|>",), (JSON,))
_EACH = Wrapper(("<function_call>",), ("</function_call>",), (JSON,))

DIALECT = Dialect("granite", Grammar((_LIST, _EACH, TOOL_CALL)) | RECOVERY, rescues=True)
