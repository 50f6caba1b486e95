"""FunctionGemma: `<start_function_call>call:f{k:<escape>text<escape>}<end_function_call>` (D36)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._gemma_kv import KEY_VALUE
from toolspeak.dialects._grammar import RESULT_TAGS, Grammar, Wrapper
from toolspeak.dialects._shared import RECOVERY

_CALL = Wrapper(("<start_function_call>",), ("<end_function_call>",), (KEY_VALUE,))

DIALECT = Dialect(
    "function_gemma", Grammar((_CALL,), results=(*RESULT_TAGS, "<start_function_response>")) | RECOVERY, rescues=True
)
