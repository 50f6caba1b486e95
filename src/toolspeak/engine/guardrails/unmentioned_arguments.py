"""`drop_unmentioned_arguments`: drops optional arguments that a small model made up (CHK-11).

    Which books of Selma Lagerlöf came out?      find_books(writer="Selma Lagerlöf", genre="novel", limit=25)
                                                 find_books(writer="Selma Lagerlöf")

Small models fill in every field of a schema. An optional argument is dropped if nothing like its value is in the
conversation; the drop is recorded as a fix of the call. The price: a value that the model rightly knew or inferred is
lost.
"""

from dataclasses import replace
from typing import Final

from toolspeak.engine.guardrails.guardrail import GuardedConversation, Guardrail, KeepCall
from toolspeak.engine.guardrails.mentions import is_mostly_mentioned, is_number_mentioned
from toolspeak.errors import BadJson
from toolspeak.ir.fix import Fix
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call
from toolspeak.text.strict import dump, parse

LEFT_OUT: Final = "left out: the conversation does not mention it"


def drop_unmentioned(call: Call, conversation: GuardedConversation) -> KeepCall:
    """Keep a call without its unmentioned optional arguments, with a fix for each of them."""
    if not conversation.is_comparable:
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
    if not conversation.is_comparable or call.name not in conversation.tools.names:
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
    return bool(values) and not any(_may_be_mentioned(one, conversation.text) for one in values)


def _may_be_mentioned(value: Json, text: str) -> bool:
    """Return whether a value may come from a text. For booleans, null and nested values that cannot be known."""
    if isinstance(value, bool) or value is None or isinstance(value, dict | list):
        return True
    return is_mostly_mentioned(value, text) if isinstance(value, str) else is_number_mentioned(value, text)


def _object(arguments: str) -> JsonObject:
    try:
        value = parse(arguments)
    except BadJson:
        return {}
    return value if isinstance(value, dict) else {}
