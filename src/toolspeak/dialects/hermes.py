"""Hermes: `<tool_call>{"name": …, "arguments": …}</tool_call>`; parallel calls are repeated blocks (D01, D02, D04)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar
from toolspeak.dialects._shared import RECOVERY, TOOL_CALL

DIALECT = Dialect("hermes", Grammar((TOOL_CALL,)) | RECOVERY)
