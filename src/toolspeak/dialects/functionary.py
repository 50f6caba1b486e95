"""Functionary: `>>>f` and JSON on the next line (v3.2), or `<function=f>{…}</function>` (v3.1) (D15, D19)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Label, Where, Wrapper
from toolspeak.dialects._named_json import BareNamedJson, NamedJson, by_pattern
from toolspeak.dialects._shared import FUNCTION, RECOVERY

_NAMED = NamedJson((by_pattern(r"(?P<name>[\w.\-]{1,128})\n\s*"),))
_RECIPIENT = Wrapper((">>>",), (), (_NAMED,))
_FIRST = Wrapper((), (), (BareNamedJson(r"\n\s{0,8}"),), Where.START, sure=False)
_TO_ALL = (Label(">>>all\n", Where.ANYWHERE), Label("all\n", Where.START))

DIALECT = Dialect("functionary", Grammar((_RECIPIENT, _FIRST, FUNCTION), labels=_TO_ALL) | RECOVERY)
