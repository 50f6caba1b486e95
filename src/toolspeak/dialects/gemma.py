"""Gemma 4: `<|tool_call>call:f{k:<|"|>text<|"|>}<tool_call|>` (D37)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._gemma_kv import KEY_VALUE
from toolspeak.dialects._grammar import RESULT_TAGS, Grammar, Wrapper
from toolspeak.dialects._shared import RECOVERY

_CALL = Wrapper(("<|tool_call>",), ("<tool_call|>",), (KEY_VALUE,))

DIALECT = Dialect("gemma", Grammar((_CALL,), results=(*RESULT_TAGS, "<|tool_response>")) | RECOVERY)
