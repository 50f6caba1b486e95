"""`accept_untaught_calls`: accepts calls in a form that no prompt taught and no dialect reads (CHK-13).

    {"name": "find_bus", "arguments": {"stop": "Moss"}}
    {"name": "find_bus", "arguments": {"stop": "Hort            cut by the limit, so the reader calls all of it text

Small models write such calls as JSON lines, run into the token limit, or add "done". If the answer was free to be text,
these objects are calls only if nothing else is beside them: with words around them the model may be quoting, so it is
asked to write the call again. In an answer to a question for calls they are calls in any case. The language of the
conversation does not matter: JSON is JSON, and "done" is the word that toolspeak's own question asks for.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from toolspeak.engine.guardrails.guardrail import NOTHING_RECOVERED, GuardedConversation, Guardrail, Recovered
from toolspeak.engine.guardrails.unmentioned_arguments import has_made_up_arguments
from toolspeak.engine.loose_calls import LooseCalls, loose_calls
from toolspeak.engine.trouble import AROUND
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import CallRejected
from toolspeak.ir.message import Call

MADE_UP: Final = "accept_untaught_calls: the conversation does not mention the values that it needs"


def _accept(text: str, conversation: GuardedConversation) -> Recovered:
    return _recovered(loose_calls_in(text, conversation), ())


def _accept_mentioned(text: str, conversation: GuardedConversation) -> Recovered:
    """Drop calls with made-up required arguments, unless the tool choice demands a call."""
    found = loose_calls_in(text, conversation)
    judged = () if conversation.must_call else found.calls
    return _recovered(found, [call for call in judged if has_made_up_arguments(call, conversation)])


def _recovered(found: LooseCalls, made_up: Sequence[Call]) -> Recovered:
    """Return the objects as calls, or as complaints if words are around them; their text is then shown as text."""
    if not found.calls:
        return NOTHING_RECOVERED
    calls = tuple(call for call in found.calls if call not in made_up)
    if found.alone:
        dropped = tuple(Complaint(Problem.UNRELATED, call.name, MADE_UP) for call in made_up)
        return Recovered(calls, dropped, replaces_text=True)
    around = (Complaint(Problem.PARSE_ERROR, call.name, AROUND) for call in calls)
    return Recovered(rejected=tuple(map(CallRejected, around)))


ACCEPT_UNTAUGHT_CALLS: Final = Guardrail("accept_untaught_calls", recover=_accept, buffers=True)
ACCEPT_MENTIONED_CALLS: Final = replace(ACCEPT_UNTAUGHT_CALLS, recover=_accept_mentioned)
"""The variant for use with both `drop_` guardrails: a model that makes values up calls for the sake of calling."""


def loose_calls_in(text: str, conversation: GuardedConversation) -> LooseCalls:
    """Return the calls of offered tools in a text; none if the text only repeats untrusted text (SAFE-3)."""
    found = loose_calls(text, {tool.name for tool in conversation.offered}, conversation.ids)
    return LooseCalls() if found.calls and conversation.echo.is_echo(text.strip()) else found
