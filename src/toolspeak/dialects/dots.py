"""dots: invoke and parameter tags inside `<dots_function_call>` (D27)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._shared import BARE_INVOKE, RECOVERY
from toolspeak.dialects._tagged import XML

_CALL = Wrapper(("<dots_function_call>",), ("</dots_function_call>",), (XML, JSON))

DIALECT = Dialect("dots", Grammar((_CALL, BARE_INVOKE)) | RECOVERY, rescues=True)
