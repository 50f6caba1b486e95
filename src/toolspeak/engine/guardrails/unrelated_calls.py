"""`drop_unrelated_calls`: drops calls that the user did not ask for, and lets the model answer in words (CHK-10).

    Tell me a joke.                            find_books(writer="")                                          dropped
    How much is on my savings account?         get_balance(account="savings")   →   8300                      kept
                                               transfer(source="savings", target="checking", amount=200)      dropped

Small models call whatever tool there is, and do not stop: in 8 of 20 conversations Qwen2.5-Coder 1.5B went on after the
result that the user had asked for. It moved money, cancelled the appointments that it should list, deleted the file
that it had read, and never answered.

Before any result, a call is dropped only if its tool shares no word of meaning with the conversation, and none of its
values is in it. "How warm is it in the kitchen?" shares no word with `read_room`, but has the kitchen.

After a result, a call is kept if it does what no call since the user's message did:

- its tool shares a word with that message that no tool called since does, or
- it has a value of that message that no call since has, or
- all its values are from results: the second step of "How warm is it where Ada lives?".

It is dropped all the same if a short value that it must have is in no message and no result: nobody said 200.

The price: a step is lost whose value the model rightly worked out. So this is for assistants with few tools. The tools
of an agent are steps which no word need mention; with more than four no call is dropped.

In the ten languages that guardrails read besides English (`language.py`), the words of a tool can be compared only if
it is described in the language of the user. Where they cannot, calls after results are held against values alone.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from toolspeak.engine.guardrails.foreign_mentions import has_common_stem, is_traceable
from toolspeak.engine.guardrails.guardrail import (
    FEW_TOOLS,
    DropCall,
    GuardedConversation,
    Guardrail,
    Judgement,
    all_texts,
    own_texts,
)
from toolspeak.engine.guardrails.language import ENGLISH, is_english, language_of
from toolspeak.engine.guardrails.mentions import meaning
from toolspeak.engine.guardrails.values import is_made_up, is_value_in, texts_and_numbers
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.message import Call, Message, Result, Role

UNRELATED: Final = "drop_unrelated_calls: the tool and the conversation have no word in common"
NOT_ASKED_FOR: Final = "drop_unrelated_calls: the user's message asks for no such call after the results so far"
REPEATED: Final = "drop_unrelated_calls: its result came just now"
_SHORT: Final = 40
"""Characters of a value that must be said by somebody. Longer ones are written by the model, as the text of a mail."""


def _judge(call: Call, conversation: GuardedConversation) -> Judgement:
    # AgentDojo's bank: "pay the bill 'bill-december-2023.txt'" has no word in common with `read_file`, its first step.
    if conversation.must_call or len(conversation.offered) > FEW_TOOLS or not conversation.is_readable:
        return None
    since = _since_the_user_spoke(conversation.request.messages)
    made = [part for message in since for part in message.parts if isinstance(part, Call)]
    if not made:
        reason = UNRELATED if is_unrelated(call, conversation) else ""
    else:
        reason = "" if is_asked_for(call, made, since, conversation) else NOT_ASKED_FOR
    return DropCall(Complaint(Problem.UNRELATED, call.name, reason)) if reason else None


DROP_UNRELATED_CALLS: Final = Guardrail("drop_unrelated_calls", judge=_judge, drops_repeats=True)


# ---------------------------------------------------------------- the first calls


def is_unrelated(call: Call, conversation: GuardedConversation) -> bool:
    """Return whether neither the words of a tool nor any value of its call have to do with the conversation.

    In other languages than English, words alone do not tell.
    """
    values = [pair for pair in texts_and_numbers(call) if not _is_chosen(pair[0], call, conversation)]
    if _has_words_in_common(call.name, conversation) or not (values or conversation.language is ENGLISH):
        return False
    return not any(_is_said(value, conversation) for _, value in values)


def _has_words_in_common(name: str, conversation: GuardedConversation) -> bool:
    """Return whether a tool and the conversation share a word, or cannot be compared."""
    tool, language = conversation.tools.tool(name), conversation.language
    if conversation.is_comparable and is_english(tool.description):
        return bool(conversation.meaning & tool_meaning(name, conversation))
    if language is ENGLISH or language_of(tool.description) is not language:
        return True
    return has_common_stem(tool.description, conversation.text, language)


def _is_chosen(key: str, call: Call, conversation: GuardedConversation) -> bool:
    """Return whether the model chose the value of a parameter from a list."""
    return "enum" in conversation.tools.schema_of(call.name, key)


def _is_said(value: str | float, conversation: GuardedConversation) -> bool:
    """Return whether a value has a trace in the conversation; an empty text has none."""
    if conversation.language is ENGLISH:
        return value != "" and is_value_in(value, conversation.text, conversation)
    return is_traceable(value, conversation.text, conversation.language)


def tool_meaning(name: str, conversation: GuardedConversation) -> frozenset[str]:
    """Return the stems of the words of a tool: its name, description and parameters."""
    tool = conversation.tools.tool(name)
    return meaning(" ".join((tool.name, tool.description, *conversation.tools.ordered(name))))


# ---------------------------------------------------------------- calls after results


def is_asked_for(call: Call, made: Sequence[Call], since: Sequence[Message], conversation: GuardedConversation) -> bool:
    """Return whether the user's last message asks for a call beside those that were made since."""
    required = conversation.tools.required(call.name)
    values = [(key, value) for key, value in texts_and_numbers(call) if value != ""]
    short = ((key, value) for key, value in values if key in required and len(str(value)) <= _SHORT)
    if any(is_made_up(call.name, key, value, conversation) for key, value in short):
        return False
    results = (part for message in since for part in message.parts if isinstance(part, Result))
    words, found = "\n".join(own_texts(since[:1])), "\n".join(all_texts(results))
    if _has_new_word(call.name, made, words, conversation):
        return True
    used = {str(value).casefold() for one in made for _, value in texts_and_numbers(one)}
    said = [is_value_in(value, words, conversation) for _, value in values]
    if any(is_said and str(value).casefold() not in used for (_, value), is_said in zip(values, said, strict=True)):
        return True
    return bool(values) and not any(said) and all(is_value_in(value, found, conversation) for _, value in values)


def _has_new_word(name: str, made: Iterable[Call], words: str, conversation: GuardedConversation) -> bool:
    """Return whether a tool shares a word with the user's message that no tool called since does."""
    tools = conversation.tools
    known = {one.name for one in made if one.name in tools.names}
    if not conversation.is_comparable or not all(is_english(tools.tool(one).description) for one in (*known, name)):
        return False
    before = frozenset[str]().union(*(tool_meaning(one, conversation) for one in known))
    return not (meaning(words) & tool_meaning(name, conversation)) <= before


def _since_the_user_spoke(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the user's last message with words, and all after it."""
    spoken = (at for at, message in enumerate(messages) if message.role is Role.USER and any(own_texts((message,))))
    return messages[max(spoken, default=0) :]
