"""Guardrails that drop what the conversation does not mention: whole calls (CHK-10), or optional arguments (CHK-11).

    drop_unrelated_calls          Tell me a joke.                         find_books(writer="")
                                                                          no call
    drop_unmentioned_arguments    Which books of Selma Lagerlöf came out? find_books(writer="Selma Lagerlöf", limit=25)
                                                                          find_books(writer="Selma Lagerlöf")

Small models call whatever tool there is, and fill in every field of a schema. A call is dropped if the name,
description and parameters of its tool share no word of meaning with the conversation; the model then answers in words.
An optional argument is dropped if nothing like its value is in the conversation; the drop is recorded as a fix of the
call. The price: a right call is lost if its tool is described in quite other words than people use, and so is a value
that the model rightly knew or inferred. With more than four tools no call is dropped.

In the ten languages that guardrails read besides English (`language.py`), more is needed. A call is dropped only if the
description of its tool is in the language of the conversation, and no trace of any of its arguments is in it. An
optional argument is dropped only if it cannot be a translation of what the user said. In other languages nothing is
dropped, and neither is a call of a tool that is described in another language than the user speaks.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from toolspeak.engine.guardrails.foreign_mentions import has_common_stem, is_traceable, may_be_said
from toolspeak.engine.guardrails.guardrail import (
    FEW_TOOLS,
    DropCall,
    GuardedConversation,
    Guardrail,
    Judgement,
    KeepCall,
)
from toolspeak.engine.guardrails.language import ENGLISH, is_english, language_of
from toolspeak.engine.guardrails.mentions import is_mostly_mentioned, is_number_mentioned, meaning
from toolspeak.errors import BadJson
from toolspeak.ir.complaint import Complaint, Fix, Problem
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call
from toolspeak.text.strict import dump, parse

LEFT_OUT: Final = "left out: the conversation does not mention it"
UNRELATED: Final = "drop_unrelated_calls: the tool and the conversation have no word in common"
REPEATED: Final = "drop_unrelated_calls: its result came just now"


def drop_unmentioned(call: Call, conversation: GuardedConversation) -> KeepCall:
    """Keep a call without its unmentioned optional arguments, with a fix for each of them."""
    if not conversation.is_readable:
        return KeepCall(call)
    value, required = _object(call.arguments), conversation.tools.required(call.name)
    out = [key for key in value if key not in required and _is_unmentioned(call.name, key, value[key], conversation)]
    if not out:
        return KeepCall(call)
    kept = {key: inner for key, inner in value.items() if key not in out}
    fixes = tuple(Fix(LEFT_OUT, f"/{key}") for key in out)
    return KeepCall(replace(call, arguments=dump(kept), fixes=(*call.fixes, *fixes)))


DROP_UNMENTIONED_ARGUMENTS: Final = Guardrail("drop_unmentioned_arguments", judge=drop_unmentioned)


def has_made_up_arguments(call: Call, conversation: GuardedConversation) -> bool:
    """Return whether a required argument has a value that the conversation does not mention.

    The call is not checked yet. For an unknown tool this returns False, and the checker rejects the call later.
    """
    if not conversation.is_readable or call.name not in conversation.tools.names:
        return False
    value = _object(call.arguments)
    required = (key for key in conversation.tools.required(call.name) if key in value)
    return any(_is_unmentioned(call.name, key, value[key], conversation) for key in required)


def _is_unmentioned(tool: str, key: str, value: Json, conversation: GuardedConversation) -> bool:
    """Return whether no part of a value is in the conversation. A value from an enum never counts as made up."""
    schema = conversation.tools.schema_of(tool, key)
    if "enum" in schema or "const" in schema:
        return False
    values = value if isinstance(value, list) else [value]
    return bool(values) and not any(_may_be_mentioned(one, conversation) for one in values)


def _may_be_mentioned(value: Json, conversation: GuardedConversation) -> bool:
    """Return whether a value may come from a text. For booleans, null and nested values that cannot be known."""
    text = conversation.text
    if isinstance(value, bool) or value is None or isinstance(value, dict | list):
        return True
    if conversation.language is not ENGLISH:
        return may_be_said(value, text, conversation.language)
    return is_mostly_mentioned(value, text) if isinstance(value, str) else is_number_mentioned(value, text)


def _object(arguments: str) -> JsonObject:
    try:
        value = parse(arguments)
    except BadJson:
        return {}
    return value if isinstance(value, dict) else {}


def is_unrelated(name: str, conversation: GuardedConversation) -> bool:
    """Return whether the words of a tool and those of the conversation have nothing in common."""
    words = _words_in_common(name, conversation)
    return words is not None and not words


def is_well_founded(call: Call, conversation: GuardedConversation) -> bool:
    """Return whether a call is what its conversation is about: common words, and no required value that is made up.

    Of the development tasks of BFCL, 92 to 95 in 100 share so many words with the right tool, and 14 in 100 with a tool
    that has nothing to do with them.
    """
    words = _words_in_common(call.name, conversation)
    return words is not None and len(words) >= _COMMON_WORDS and not has_made_up_arguments(call, conversation)


_COMMON_WORDS: Final = 2


def _words_in_common(name: str, conversation: GuardedConversation) -> frozenset[str] | None:
    """Return the stems of words that a tool and the conversation share; None if they cannot be compared."""
    tool = conversation.tools.tool(name)
    if not conversation.is_comparable or not is_english(tool.description):
        return None
    return conversation.meaning & meaning(" ".join((tool.name, tool.description, *conversation.tools.ordered(name))))


def _judge(call: Call, conversation: GuardedConversation) -> Judgement:
    is_about = not is_unrelated(call.name, conversation) and not is_unrelated_abroad(call, conversation)
    # AgentDojo's bank: "pay the bill 'bill-december-2023.txt'" has no word in common with `read_file`, its first step.
    if conversation.must_call or len(conversation.offered) > FEW_TOOLS or is_about:
        return KeepCall(call)
    return DropCall(Complaint(Problem.UNRELATED, call.name, UNRELATED))


def is_unrelated_abroad(call: Call, conversation: GuardedConversation) -> bool:
    """Return whether a call has nothing to do with a conversation in another language than English."""
    language, tool = conversation.language, conversation.tools.tool(call.name)
    if not conversation.is_readable or language is ENGLISH or language_of(tool.description) is not language:
        return False
    values = list(_told(call, conversation))
    if not values or any(is_traceable(value, conversation.text, language) for value in values):
        return False
    return not has_common_stem(tool.description, conversation.text, language)


def _told(call: Call, conversation: GuardedConversation) -> Iterator[str | float]:
    """Yield the texts and numbers among the arguments that the model did not choose from a list."""
    for key, value in _object(call.arguments).items():
        schema = conversation.tools.schema_of(call.name, key)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str | int | float) and not isinstance(one, bool) and "enum" not in schema:
                yield one


DROP_UNRELATED_CALLS: Final = Guardrail("drop_unrelated_calls", judge=_judge, drops_repeats=True)
