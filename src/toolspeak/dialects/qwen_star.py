"""Qwen-Agent's star format: `✿FUNCTION✿: f`, `✿ARGS✿: {…}`, then our `✿RESULT✿:` (D39)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import RESULT_TAGS, Grammar, Label, Wrapper
from toolspeak.dialects._lines import Labelled
from toolspeak.dialects._shared import RECOVERY

_CALL = Wrapper(("✿FUNCTION✿:",), (), (Labelled("✿ARGS✿:"),), single=True)

DIALECT = Dialect(
    "qwen_star",
    Grammar((_CALL,), results=(*RESULT_TAGS, "✿RESULT✿"), labels=(Label("✿RETURN✿:"),)) | RECOVERY,
    rescues=True,
)
