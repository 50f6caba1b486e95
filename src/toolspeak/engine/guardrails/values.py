"""Compares the values of a call with the conversation: small models fill in every field of a schema.

In the ten languages that guardrails read besides English (`language.py`), a value counts as made up only if it
cannot be a translation of what the user said. In other languages no value does.
"""

from collections.abc import Iterator

from toolspeak.engine.guardrails.foreign_mentions import may_be_said
from toolspeak.engine.guardrails.guardrail import GuardedConversation
from toolspeak.engine.guardrails.language import ENGLISH
from toolspeak.engine.guardrails.mentions import is_mostly_mentioned, is_number_mentioned
from toolspeak.ir.json import Json
from toolspeak.ir.message import Call
from toolspeak.text.strict import parse_object


def has_made_up_arguments(call: Call, conversation: GuardedConversation) -> bool:
    """Return whether a required argument has a value that the conversation does not mention.

    The call is not checked yet. For an unknown tool this returns False, and the checker rejects the call later.
    """
    if not conversation.is_readable or call.name not in conversation.tools.names:
        return False
    value = parse_object(call.arguments)
    required = (key for key in conversation.tools.required(call.name) if key in value)
    return any(is_made_up(call.name, key, value[key], conversation) for key in required)


def is_made_up(tool: str, key: str, value: Json, conversation: GuardedConversation) -> bool:
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
    for key, value in parse_object(call.arguments).items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str | int | float) and not isinstance(one, bool):
                yield key, one
