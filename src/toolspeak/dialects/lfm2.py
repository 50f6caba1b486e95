"""LFM2: `<|tool_call_start|>[f(a='x')]<|tool_call_end|>`, or JSON inside (D34)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import RESULT_TAGS, Grammar, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._pythonic import PYTHON_CALL, PYTHON_LIST
from toolspeak.dialects._shared import RECOVERY

_CALLS = Wrapper(("<|tool_call_start|>",), ("<|tool_call_end|>",), (JSON, PYTHON_LIST, PYTHON_CALL))

DIALECT = Dialect(
    "lfm2", Grammar((_CALLS,), results=(*RESULT_TAGS, "<|tool_response_start|>")) | RECOVERY, rescues=True
)
