"""Cline, Roo: the tool's name is the element's name, its parameters are elements inside (D44)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Where, Wrapper
from toolspeak.dialects._shared import RECOVERY
from toolspeak.dialects._tagged import ELEMENTS

_ELEMENT = Wrapper((), (), (ELEMENTS,), Where.LINE, sure=False)

DIALECT = Dialect("cline", Grammar((_ELEMENT,)) | RECOVERY)
