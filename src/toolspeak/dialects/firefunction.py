"""Firefunction and Phi-4-mini: `functools[{…}, {…}]` with no closer (D14)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Where, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._shared import RECOVERY

_CALLS = Wrapper(("functools",), (), (JSON,), Where.LINE)

DIALECT = Dialect("firefunction", Grammar((_CALLS,)) | RECOVERY, rescues=True)
