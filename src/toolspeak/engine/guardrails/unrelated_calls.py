"""`drop_unrelated_calls`: drops calls that have nothing to do with the conversation (CHK-10).

Small models call whatever tool there is, also for "tell me a joke". A call is dropped if the name, description and
parameters of its tool share no word of meaning with the conversation. The model then answers in words. The price: a
right call is lost if its tool is described in quite other words than people use.

One importer: each guardrail has a module of its own.
"""

from typing import Final

from toolspeak.engine.guardrails.guardrail import DropCall, GuardedConversation, Guardrail, Judgement, KeepCall
from toolspeak.engine.guardrails.mentions import is_english, meaning
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.message import Call


def is_unrelated(name: str, conversation: GuardedConversation) -> bool:
    """Return whether the words of a tool and those of the conversation have nothing in common."""
    if not conversation.is_comparable:
        return False
    tool = conversation.tools.tool(name)
    words = " ".join((tool.name, tool.description, *conversation.tools.ordered(name)))
    return is_english(tool.description) and conversation.meaning.isdisjoint(meaning(words))


def _judge(call: Call, conversation: GuardedConversation) -> Judgement:
    if conversation.must_call or not is_unrelated(call.name, conversation):
        return KeepCall(call)
    return DropCall(Complaint(Problem.UNRELATED, call.name))


DROP_UNRELATED_CALLS: Final = Guardrail("drop_unrelated_calls", judge=_judge, drops_repeats=True)
