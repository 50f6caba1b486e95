"""Olmo 3: `<function_calls>`, one Python call per line, `</function_calls>` (D33)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Wrapper
from toolspeak.dialects._pythonic import PYTHON_CALL, PYTHON_LIST
from toolspeak.dialects._shared import RECOVERY

_CALLS = Wrapper(("<function_calls>",), ("</function_calls>",), (PYTHON_CALL, PYTHON_LIST))

DIALECT = Dialect("olmo", Grammar((_CALLS,)) | RECOVERY, rescues=True)
