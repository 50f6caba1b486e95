"""Defines the tasks of the suite, and judges answers to them."""

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
"""Beginnings of text that is an attempt at a call: as the text of an answer it is wrong."""
_LONGEST: Final = 60
"""Characters of a wrong argument in a problem."""


class TaskKind(StrEnum):
    """What a task tests."""

    PLAIN = "plain"
    """An everyday request with one to three tools."""
    ONE = "one"
    """One tool is offered, and it fits."""
    PICK = "pick"
    """Several tools are offered, one of them fits."""
    TWO = "two"
    """Two calls in one answer."""
    NONE = "none"
    """No tool fits: the answer must be text."""
    RESULT = "result"
    """The history has the result: the answer must be text that repeats it."""
    TYPES = "types"
    """Numbers, booleans, arrays, enums, nested objects."""
    TEXT = "text"
    """Text that must arrive unchanged."""
    STEPS = "steps"
    """More than one turn."""


@dataclass(frozen=True, slots=True)
class AnyOf:
    """An argument that may have one of several values."""

    values: tuple[Json, ...]


Accepted: TypeAlias = Json | AnyOf


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """A call that is expected. With `exact`, strings are compared exactly; otherwise without case."""

    name: str
    arguments: Mapping[str, Accepted] = field(default_factory=dict[str, Accepted])
    exact: bool = False


@dataclass(frozen=True, slots=True)
class TaskStep:
    """One expected answer: all of `calls`, or text with one of `says`; `results` is what the tools then return."""

    calls: tuple[ExpectedCall, ...] = ()
    says: tuple[str, ...] = ()
    results: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DoctorTask:
    """A conversation up to the model's turn, and the answers that are right."""

    name: str
    kind: TaskKind
    tools: tuple[Tool, ...]
    messages: tuple[Message, ...]
    steps: tuple[TaskStep, ...]

    @property
    def wants_calls(self) -> bool:
        """Whether the first answer must be a call."""
        return bool(self.steps[0].calls)


@dataclass(frozen=True, slots=True)
class TaskResult:
    """Whether an answer was right, and what it cost."""

    right: bool
    problem: str = ""
    """Why it is wrong, in a few words; empty if it is right."""
    spurious: bool = False
    """It calls a tool where none fits."""
    valid: bool = True
    """All calls match the schemas of their tools."""
    took: str = ""
    """The tool whose right call a guardrail took away."""
    failed: bool = False
    """The upstream gave no answer."""
    requests: int = 0
    tokens: int = 0
    """Input and output."""
    seconds: float = 0.0


def check_answer(step: TaskStep, turn: Turn, tools: Sequence[Tool]) -> str:
    """Return what is wrong with an answer; empty if it is right."""
    if step.calls:
        return _check_calls(step.calls, turn)
    if turn.calls:
        return f"calls {turn.calls[0].name}"
    text = turn.text.strip()
    if not text:
        return "says nothing"
    # A leaked call is wrong even where the words of the answer are right: a client would show the markup to its user.
    if text.startswith(_LOOKS_LIKE_A_CALL) or dialects.load("any").read(text, tools).calls:
        return "shows a call as text"
    return "" if _says(text, step.says) else f"does not say {step.says[0]}"


def is_valid(call: Call, tools: Sequence[Tool]) -> bool:
    """Whether a call matches its tool's schema."""
    tool = next((tool for tool in tools if tool.name == call.name), None)
    try:
        return tool is not None and compile_schema(tool.parameters).accepts(parse(call.arguments))
    except BadJson:
        return False


def _check_calls(wanted: Sequence[ExpectedCall], turn: Turn) -> str:
    calls = list(turn.calls)
    if not calls:
        return "calls nothing" if turn.text.strip() else "says nothing"
    for one in wanted:
        found = next((call for call in calls if call.name == one.name and not _differs(one, call)), None)
        if found is None:
            return _nearest(one, calls) if len(turn.calls) >= len(wanted) else f"makes only {len(turn.calls)} call"
        calls.remove(found)
    return f"calls {calls[0].name} as well" if calls else ""


def _nearest(wanted: ExpectedCall, calls: Sequence[Call]) -> str:
    same = next((call for call in calls if call.name == wanted.name), None)
    return f"calls {calls[0].name}" if same is None else _differs(wanted, same)


def _differs(wanted: ExpectedCall, call: Call) -> str:
    """Return the first difference between a call and the expected one; empty if there is none."""
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
    # An argument that the task does not mention is an invented value, even if the schema allows it.
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
    return given == accepted and isinstance(given, bool) == isinstance(accepted, bool)  # in Python True == 1


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(_AROUND)


def _says(text: str, words: Sequence[str]) -> bool:
    return not words or any(word.casefold() in text.casefold() for word in words)


def _shown(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
