"""A decision: the message is `{"tools": [{"name": …, "arguments": …}]}`, with an empty list for none (D42)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Where, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._shared import RECOVERY

_DECISION = Wrapper((), (), (JSON,), Where.LINE, sure=False, tail=True, no_calls_is_answer=True)

DIALECT = Dialect("decision_json", Grammar((_DECISION,)) | RECOVERY)
