"""Arguments of calls: JSON text in the ir; an object, a string or free text on the wires."""

from toolspeak.errors import BadJson
from toolspeak.ir.json import Json
from toolspeak.text.strict import parse
from toolspeak.wires._body import dump_text
from toolspeak.wires._fields import Fields

FREE_FORM = "input"
"""The one parameter of a custom tool."""


def object_text(arguments: str) -> str:
    """Return the arguments as text of a JSON object.

    What is none goes under the key `arguments`, whole: the client's own check refuses it, and nothing is lost.
    """
    if not arguments.strip():
        return "{}"
    try:
        value = parse(arguments)
    except BadJson:
        return dump_text({"arguments": arguments})
    return arguments if isinstance(value, dict) else dump_text({"arguments": value})


def is_json(text: str) -> bool:
    """Return whether arguments are whole."""
    try:
        parse(text)
    except BadJson:
        return False
    return True


def arguments_text(value: Json) -> str:
    """Return arguments that came as an object, or as text already."""
    if value is None:
        return "{}"
    return value or "{}" if isinstance(value, str) else dump_text(value)


def take_arguments(fields: Fields, key: str = "arguments", accepted: str = "a string of JSON") -> str:
    """Take the arguments of a call of the history; none, or blank ones, are an empty object."""
    value = fields.take(key)
    if not isinstance(value, str | dict | None):
        raise fields.bad(key, accepted, value)
    text = arguments_text(value)
    return text if text.strip() else "{}"


def free_text(arguments: str) -> str:
    """Return the free text of a custom tool's call."""
    try:
        value = parse(arguments)
    except BadJson:
        return arguments
    inner = value.get(FREE_FORM) if isinstance(value, dict) else None
    return inner if isinstance(inner, str) else arguments


def free_form(text: str) -> str:
    """Return the arguments of a custom tool's call."""
    return dump_text({FREE_FORM: text})
