"""Tencent Hy3: `<tool_calls><tool_call>f<tool_sep>` and GLM's pairs (D25)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import RESULT_TAGS, Grammar, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._pairs import PAIRS
from toolspeak.dialects._shared import RECOVERY
from toolspeak.dialects._tagged import XML

_CALL = Wrapper(("<tool_calls>", "<tool_call>"), ("</tool_call>", "</tool_calls>"), (JSON, XML, PAIRS))

DIALECT = Dialect("hy3", Grammar((_CALL,), results=(*RESULT_TAGS, "<tool_responses>")) | RECOVERY)
