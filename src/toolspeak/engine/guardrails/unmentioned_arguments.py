"""`drop_unmentioned_arguments`: drops optional arguments whose value the conversation does not mention (CHK-11).

    Which books of Selma Lagerlöf came out?     find_books(writer="Selma Lagerlöf", limit=25)
                                                find_books(writer="Selma Lagerlöf")

Small models fill in every field of a schema. An optional argument is dropped if nothing like its value is in the
conversation; the drop is recorded as a fix of the call. The price: a value that the model rightly knew or inferred is
lost. In the ten languages that guardrails read besides English (`language.py`), an argument is dropped only if it
cannot be a translation of what the user said. In other languages nothing is dropped.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from toolspeak.engine.guardrails.foreign_mentions import may_be_said
from toolspeak.engine.guardrails.guardrail import GuardedConversation, Guardrail, KeepCall
from toolspeak.engine.guardrails.language import ENGLISH
from toolspeak.engine.guardrails.mentions import is_mostly_mentioned, is_number_mentioned
from toolspeak.errors import BadJson
from toolspeak.ir.complaint import Fix
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call
from toolspeak.text.strict import dump, parse

LEFT_OUT: Final = "left out: the conversation does not mention it"


def drop_unmentioned(call: Call, conversation: GuardedConversation) -> KeepCall:
    """Keep a call without its unmentioned optional arguments, with a fix for each of them."""
    if not conversation.is_readable:
        return KeepCall(call)
    value, required = _object(call.arguments), conversation.tools.required(call.name)
    out = [key for key in value if key not in required and is_unmentioned(call.name, key, value[key], conversation)]
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
    return any(is_unmentioned(call.name, key, value[key], conversation) for key in required)


def is_unmentioned(tool: str, key: str, value: Json, conversation: GuardedConversation) -> bool:
    """Return whether no part of a value is in the conversation. A value from an enum never counts as made up."""
    schema = conversation.tools.schema_of(tool, key)
    if "enum" in schema or "const" in schema:
        return False
    values = value if isinstance(value, list) else [value]
    return bool(values) and not any(_may_be_mentioned(one, conversation) for one in values)


def _may_be_mentioned(value: Json, conversation: GuardedConversation) -> bool:
    """Return whether a value may come from the conversation. For truth values, null and nested values: maybe."""
    if isinstance(value, bool) or value is None or isinstance(value, dict | list):
        return True
    return is_value_in(value, conversation.text, conversation)


def is_value_in(value: str | float, text: str, conversation: GuardedConversation) -> bool:
    """Return whether a value may come from a text in the language of the conversation."""
    if conversation.language is not ENGLISH:
        return may_be_said(value, text, conversation.language)
    return is_mostly_mentioned(value, text) if isinstance(value, str) else is_number_mentioned(value, text)


def texts_and_numbers(call: Call) -> Iterator[tuple[str, str | float]]:
    """Yield the texts and numbers among the arguments of a call, each with its key; lists count by their items."""
    for key, value in _object(call.arguments).items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str | int | float) and not isinstance(one, bool):
                yield key, one


def _object(arguments: str) -> JsonObject:
    try:
        value = parse(arguments)
    except BadJson:
        return {}
    return value if isinstance(value, dict) else {}
