"""The guardrails by the names of their settings, in the order in which they judge a call.

One importer: only the plan chooses guardrails.
"""

from collections.abc import Collection
from typing import Final

from toolspeak.engine.guardrails.guardrail import Guardrail
from toolspeak.engine.guardrails.missing_calls import REQUEST_MISSING_CALLS
from toolspeak.engine.guardrails.tool_fit import CONFIRM_TOOL_FIT
from toolspeak.engine.guardrails.unmentioned_arguments import DROP_UNMENTIONED_ARGUMENTS
from toolspeak.engine.guardrails.unrelated_calls import DROP_UNRELATED_CALLS
from toolspeak.engine.guardrails.untaught_calls import ACCEPT_MENTIONED_CALLS, ACCEPT_UNTAUGHT_CALLS
from toolspeak.ir.request import Request

_CATALOGUE: Final = (
    DROP_UNRELATED_CALLS,
    DROP_UNMENTIONED_ARGUMENTS,
    REQUEST_MISSING_CALLS,
    ACCEPT_UNTAUGHT_CALLS,
    CONFIRM_TOOL_FIT,  # last: the model is asked only about calls that the others keep
)
GUARDRAILS: Final = tuple(guardrail.name for guardrail in _CATALOGUE)
"""The names of all settings for guardrails."""
# With both of these, calls in an untaught form are also tested for made-up values: of the calls that only
# `accept_untaught_calls` reads, those with a required value that the conversation does not mention were mostly false.
_STRICT: Final = {DROP_UNRELATED_CALLS.name, DROP_UNMENTIONED_ARGUMENTS.name}


def guardrails_for(request: Request, chosen: Collection[str]) -> tuple[Guardrail, ...]:
    """Return the chosen guardrails that apply to a request, in the order in which they judge a call."""
    if not chosen:
        return ()
    stricter = {ACCEPT_UNTAUGHT_CALLS: ACCEPT_MENTIONED_CALLS} if _STRICT.issubset(chosen) else {}
    applying = (one for one in _CATALOGUE if one.name in chosen and one.applies(request))
    return tuple(stricter.get(guardrail, guardrail) for guardrail in applying)
