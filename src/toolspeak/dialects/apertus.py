"""Apertus: `<|tools_prefix|>[{"f": {…}}, {"g": {…}}]<|tools_suffix|>`; the key is the tool's name (D09b)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._shared import RECOVERY

_CALLS = Wrapper(("<|tools_prefix|>",), ("<|tools_suffix|>",), (JSON,))

DIALECT = Dialect("apertus", Grammar((_CALLS,)) | RECOVERY, rescues=True)
