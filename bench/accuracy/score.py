"""Which answers are right, by the rules of BFCL's syntax check, reimplemented.

Each parameter has a list of values that are right, and an empty text among them marks it as optional. Strings
are compared without case, blanks and `,./-_*^`; an integer is accepted for a float; an unexpected call, a missing
one or an unknown parameter makes the answer wrong; the order of calls does not count.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import jiter

from bench.accuracy.data import Task, Wanted
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.tool import Tool
from toolspeak.text.schema import compile_schema

_IGNORED = re.compile(r"[ ,./\-_*^]")
OPTIONAL = ""
KINDS: dict[str, type] = {
    "string": str,
    "integer": int,
    "float": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "dict": dict,
    "any": str,
}
"""Types of the data, as Python reads JSON."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """A call as the client got it; `arguments` is JSON text."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Score:
    """The score of an answer."""

    right: bool
    valid: bool
    """Every delivered call fits its schema; also true if there is none."""
    called: bool

    @property
    def wrong_but_valid(self) -> bool:
        return self.called and self.valid and not self.right


def score(task: Task, calls: Sequence[Delivered]) -> Score:
    """Judge an answer by its calls."""
    read = [(call.name, arguments_of(call.arguments)) for call in calls]
    valid = all(is_valid(task.tools, name, arguments) for name, arguments in read)
    return Score(is_right(task.wanted, read), valid, bool(calls))


def arguments_of(text: str) -> JsonObject | None:
    """Read the arguments as a client does; None if they are no JSON object."""
    try:
        value: Json = jiter.from_json(text.encode())
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def is_valid(tools: Sequence[Tool], name: str, arguments: JsonObject | None) -> bool:
    """Tell whether there is such a tool, and its schema accepts the arguments."""
    tool = next((tool for tool in tools if tool.name == name), None)
    return tool is not None and arguments is not None and compile_schema(tool.parameters).accepts(arguments)


def is_right(wanted: Sequence[Wanted], calls: Sequence[tuple[str, JsonObject | None]]) -> bool:
    """Tell whether these are the expected calls, in any order."""
    if len(wanted) != len(calls):
        return False
    if not wanted:
        return True
    fitting = [index for index, call in enumerate(calls) if fulfils(wanted[0], *call)]
    return any(is_right(wanted[1:], [*calls[:index], *calls[index + 1 :]]) for index in fitting)


def fulfils(want: Wanted, name: str, arguments: JsonObject | None) -> bool:
    """Tell whether a call is the expected one."""
    if name != want.name or arguments is None:
        return False
    if any(OPTIONAL not in accepted for key, accepted in want.accepted.items() if key not in arguments):
        return False
    return all(
        key in want.accepted and key in want.types and fits(value, want.accepted[key], want.types[key])
        for key, value in arguments.items()
    )


def fits(value: Json, accepted: Sequence[Json], kind: str) -> bool:
    """Tell whether a value is one of the accepted, and of the right type."""
    if kind == "float" and type(value) is int:
        value = float(value)
    example = next((type(one) for one in accepted if one != OPTIONAL), None)
    if type(value) not in (KINDS.get(kind, str), example):
        return False
    return any(is_same(value, one) for one in accepted)


def is_same(value: Json, accepted: Json) -> bool:
    """Compare two values: text loosely, objects key by key, each key with its own accepted values."""
    match value, accepted:
        case str(), str():
            return plain(value) == plain(accepted)
        case dict(), dict():
            return _same_object(value, accepted)
        case list(), list():
            return len(value) == len(accepted) and all(map(is_same, value, accepted))
        case (bool(), _) | (_, bool()):
            return value is accepted
        case _:
            return value == accepted


def _same_object(value: JsonObject, accepted: JsonObject) -> bool:
    right = {key: each if isinstance(each, list) else [each] for key, each in accepted.items()}
    if any(OPTIONAL not in each for key, each in right.items() if key not in value):
        return False
    return all(key in right and any(is_same(item, one) for one in right[key]) for key, item in value.items())


def plain(text: str) -> str:
    """Return a text without the characters that do not count."""
    return _IGNORED.sub("", text).lower().replace("'", '"')
