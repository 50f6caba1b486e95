"""Kimi K3: channels and calls as `<|open|>tag attributes<|sep|> … <|close|>tag<|sep|>` (D30)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Label, Where, Wrapper
from toolspeak.dialects._shared import RECOVERY
from toolspeak.dialects._tagged import XTML

_CALLS = Wrapper(("<|open|>tools<|sep|>",), ("<|close|>tools<|sep|>",), (XTML,))
_RESPONSE = (
    Label("<|open|>response<|sep|>", Where.ANYWHERE),
    Label("<|close|>response<|sep|>", Where.ANYWHERE),
)

DIALECT = Dialect("kimi_k3", Grammar((_CALLS,), labels=_RESPONSE) | RECOVERY, rescues=True)
