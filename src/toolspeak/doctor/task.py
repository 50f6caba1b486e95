"""A task of the suite, and how an answer to it is marked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

from toolspeak import dialects
from toolspeak.errors import BadJson
from toolspeak.ir.json import Json
from toolspeak.ir.message import Call, Message
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import Turn
from toolspeak.text.schema import compile_schema
from toolspeak.text.strict import parse

_AROUND: Final = " \t\n.,;!?\"'`"
_LOOKS_LIKE_A_CALL: Final = ("{", "[{", "```json", "```tool", "<tool", "<function")
_LONGEST: Final = 60


class Kind(StrEnum):
    """What a task is about; all kinds weigh the same."""

    ONE = "one"
    """One tool, which fits."""
    PICK = "pick"
    """Several tools, of which one fits."""
    TWO = "two"
    """Two calls at once."""
    NONE = "none"
    """Nothing that a tool could do: words are wanted."""
    RESULT = "result"
    """The result is there: words are wanted that say it."""
    TYPES = "types"
    """Numbers, truths, lists, choices, objects in objects."""
    TEXT = "text"
    """Text that must arrive letter by letter."""
    STEPS = "steps"
    """More than one turn."""


@dataclass(frozen=True, slots=True)
class AnyOf:
    """An argument that may be one of several."""

    values: tuple[Json, ...]


Accepted: TypeAlias = Json | AnyOf


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call. With `exact`, texts count letter by letter; else small and capital letters are the same."""

    name: str
    arguments: Mapping[str, Accepted] = field(default_factory=dict[str, Accepted])
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One answer: all of these calls, or words that say one of `says`; then what the tools return."""

    calls: tuple[Wanted, ...] = ()
    says: tuple[str, ...] = ()
    results: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """A conversation up to the model's turn, and what is right."""

    name: str
    kind: Kind
    tools: tuple[Tool, ...]
    messages: tuple[Message, ...]
    steps: tuple[Step, ...]

    @property
    def wants_calls(self) -> bool:
        """Return whether the first answer must be a call."""
        return bool(self.steps[0].calls)


@dataclass(frozen=True, slots=True)
class Mark:
    """What an answer was worth, and what it cost."""

    right: bool
    problem: str = ""
    """Why it is not right, in a few words."""
    spurious: bool = False
    """It calls where no tool fits."""
    valid: bool = True
    """All calls fit the schemas of their tools."""
    failed: bool = False
    """There was no answer at all."""
    requests: int = 0
    tokens: int = 0
    """Read and written."""
    seconds: float = 0.0


def check(step: Step, turn: Turn, tools: Sequence[Tool]) -> str:
    """Return what is wrong with an answer; nothing if it is right."""
    if step.calls:
        return _check_calls(step.calls, turn)
    if turn.calls:
        return f"calls {turn.calls[0].name}"
    text = turn.text.strip()
    if not text:
        return "says nothing"
    if text.startswith(_LOOKS_LIKE_A_CALL) or dialects.load("any").read(text, tools).calls:
        return "shows a call as text"
    return "" if _says(text, step.says) else f"does not say {step.says[0]}"


def is_valid(call: Call, tools: Sequence[Tool]) -> bool:
    """Return whether a call fits its tool's schema."""
    tool = next((tool for tool in tools if tool.name == call.name), None)
    try:
        return tool is not None and compile_schema(tool.parameters).accepts(parse(call.arguments))
    except BadJson:
        return False


def _check_calls(wanted: Sequence[Wanted], turn: Turn) -> str:
    calls = list(turn.calls)
    if not calls:
        return "calls nothing" if turn.text.strip() else "says nothing"
    for one in wanted:
        found = next((call for call in calls if call.name == one.name and not _differs(one, call)), None)
        if found is None:
            return _nearest(one, calls) if len(turn.calls) >= len(wanted) else f"makes only {len(turn.calls)} call"
        calls.remove(found)
    return f"calls {calls[0].name} as well" if calls else ""


def _nearest(wanted: Wanted, calls: Sequence[Call]) -> str:
    same = next((call for call in calls if call.name == wanted.name), None)
    return f"calls {calls[0].name}" if same is None else _differs(wanted, same)


def _differs(wanted: Wanted, call: Call) -> str:
    """Say in which argument a call is not the one that is wanted."""
    try:
        given = parse(call.arguments)
    except BadJson:
        given = None
    if not isinstance(given, dict):
        return "arguments are no JSON object"
    for name, accepted in wanted.arguments.items():
        if name not in given:
            return f"lacks {name}"
        if not _fits(given[name], accepted, exact=wanted.exact):
            return f"{name} is {_shown(given[name])}"
    more = [name for name in given if name not in wanted.arguments]
    return f"has {more[0]} as well" if more else ""


def _fits(given: Json, accepted: Accepted, *, exact: bool) -> bool:
    if isinstance(accepted, AnyOf):
        return any(_fits(given, value, exact=exact) for value in accepted.values)
    if isinstance(given, str) and isinstance(accepted, str):
        return given == accepted if exact else _plain(given) == _plain(accepted)
    if isinstance(given, list) and isinstance(accepted, list):
        pairs = zip(given, accepted, strict=False)
        return len(given) == len(accepted) and all(_fits(one, other, exact=exact) for one, other in pairs)
    if isinstance(given, dict) and isinstance(accepted, dict):
        same = given.keys() == accepted.keys()
        return same and all(_fits(given[name], accepted[name], exact=exact) for name in given)
    return given == accepted and isinstance(given, bool) == isinstance(accepted, bool)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(_AROUND)


def _says(text: str, words: Sequence[str]) -> bool:
    return not words or any(word.casefold() in text.casefold() for word in words)


def _shown(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
