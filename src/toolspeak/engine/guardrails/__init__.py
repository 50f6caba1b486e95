"""Guardrails: heuristics against the habits of small models. All are off unless a setting or a profile asks for them.

Belongs here: guesses whether a call is meant, complete, or the right one, based on the words of the conversation.
Does not: checks that hold for every model (`toolset/check.py`), and anything that a turn must know by name.
Read first: `guardrail.py`, the protocol that a turn speaks; then the catalogue below. `language.py` says which
languages they read.

What each of them is worth on tasks that it was not shaped on is in docs/accuracy.md. All are for small models, and can
take a right call away, which is why a profile must ask for them.
"""

from collections.abc import Collection
from typing import Final

from toolspeak.engine.guardrails.guardrail import Guardrail
from toolspeak.engine.guardrails.missing_calls import REQUEST_MISSING_CALLS
from toolspeak.engine.guardrails.tool_fit import CONFIRM_TOOL_FIT
from toolspeak.engine.guardrails.unrelated_calls import DROP_UNRELATED_CALLS
from toolspeak.ir.request import Request

_CATALOGUE: Final = (
    DROP_UNRELATED_CALLS,
    REQUEST_MISSING_CALLS,
    CONFIRM_TOOL_FIT,  # last: the model is asked only about calls that the others keep
)
GUARDRAILS: Final = tuple(guardrail.name for guardrail in _CATALOGUE)
"""The names of all settings for guardrails."""


def guardrails_for(request: Request, chosen: Collection[str]) -> tuple[Guardrail, ...]:
    """Return the chosen guardrails that apply to a request, in the order in which they judge a call."""
    return tuple(one for one in _CATALOGUE if one.name in chosen and one.applies(request))
