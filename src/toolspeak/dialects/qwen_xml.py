"""Qwen3-Coder: `<tool_call><function=f><parameter=k>` value `</parameter></function></tool_call>` (D20)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar
from toolspeak.dialects._shared import RECOVERY, TOOL_CALL

DIALECT = Dialect("qwen_xml", Grammar((TOOL_CALL,)) | RECOVERY)
