"""Cohere: `<|START_ACTION|>[{"tool_name": …, "parameters": …}]<|END_ACTION|>`, `Action:` and a fence, or tags (D13)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import RESULT_TAGS, Grammar, Label, Where, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._shared import RECOVERY
from toolspeak.dialects._tagged import XML

_ACTION = Wrapper(("<|START_ACTION|>",), ("<|END_ACTION|>",), (JSON,))
_FENCED = Wrapper(("Action:",), (), (JSON,), Where.LINE)
_TAGS = Wrapper(("<cofl:tool_calls>",), ("</cofl:tool_calls>",), (XML,))
_RESPONSE = (Label("<|START_RESPONSE|>", Where.ANYWHERE), Label("<|END_RESPONSE|>", Where.ANYWHERE))
_RESULTS = (*RESULT_TAGS, "<|START_TOOL_RESULT|>", "<results>")

DIALECT = Dialect(
    "cohere", Grammar((_ACTION, _FENCED, _TAGS), results=_RESULTS, labels=_RESPONSE) | RECOVERY, rescues=True
)
