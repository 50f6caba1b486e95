"""What the playground shows: ready-made tools, the ways to try, and the columns with their answers (OBS-19)."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import msgspec

from toolspeak import dialects
from toolspeak.engine.effects import EMULATED, Outcome
from toolspeak.engine.plan import DECISION_DIALECT, JSON_DIALECT
from toolspeak.errors import BadField, BadJson
from toolspeak.facts.families import family_facts
from toolspeak.facts.model import DEFAULT_DIALECT
from toolspeak.ir.complaint import Complaint
from toolspeak.ir.failure import Failure
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call
from toolspeak.text.display import cut
from toolspeak.text.strict import parse

COLUMNS: Final = 4
TOOL_PLACES: Final = 4
"""Places for tool definitions in the form; each may have several tools."""
MOST_TOOLS: Final = 16
LONGEST_PROMPT: Final = 20_000
"""Characters."""
LONGEST_TOOLS: Final = 32_000
"""Characters of all tool definitions."""
PROMPT: Final = "What is the weather in Oslo? Write it into weather.txt."
NATIVE, RESCUE, AUTO, DIALECT = "native", "rescue", "auto", "dialect:"
"""The ways to send a request; a dialect's name follows the last one."""
_LONGEST_SHOWN: Final = 20_000


def _tool(name: str, description: str, **properties: str) -> JsonObject:
    fields: JsonObject = {key: {"type": "string", "description": text} for key, text in properties.items()}
    return {
        "name": name,
        "description": description,
        "parameters": {"type": "object", "properties": fields, "required": [*fields]},
    }


@dataclass(frozen=True, slots=True)
class ReadyTool:
    """A tool that the page offers; its definition can be edited."""

    title: str
    json: str
    is_offered: bool


def ready_tools() -> list[ReadyTool]:
    """Return the tools of a new page, and an empty place for one of the person's own."""
    weather = _tool("get_weather", "Return the weather in a city.", city="Name of the city, such as Oslo.")
    write = _tool("write_file", "Write a text file.", path="Path of the file.", content="The whole new content.")
    search = _tool("search_web", "Search the web, and return the best pages.", query="A few keywords.")
    listed = (("get_weather", weather, True), ("write_file", write, True), ("search_web", search, False))
    ready = [ReadyTool(title, _pretty(tool), is_offered) for title, tool, is_offered in listed]
    return [*ready, ReadyTool("A tool of your own", "", is_offered=False)]


@lru_cache(maxsize=1)
def taught_dialects() -> tuple[str, ...]:
    """Return the names of the dialects that calls can be emulated in."""
    special = (DECISION_DIALECT, JSON_DIALECT)
    return tuple(one.name for one in dialects.installed() if one.writer is not None and one.name not in special)


def first_ways(model: str) -> list[str]:
    """Return the ways of the four columns of a new page: native, rescue, the model's own dialect and another one."""
    own = family_facts(model).dialect or DEFAULT_DIALECT
    other = "hermes" if own == DEFAULT_DIALECT else DEFAULT_DIALECT
    return [NATIVE, RESCUE, f"{DIALECT}{own}", f"{DIALECT}{other}"]


def parse_definitions(texts: list[str]) -> list[JsonObject]:
    """Return tool definitions in OpenAI's form. Raises `BadField` with the number of the text that is wrong.

    A text has one tool or an array of them, each as `{"name", "description", "parameters"}` or in OpenAI's form.
    """
    if sum(map(len, texts)) > LONGEST_TOOLS:
        raise BadField("tools", f"they have more than {LONGEST_TOOLS} characters")
    tools = [tool for number, text in enumerate(texts, start=1) for tool in _read(text, f"tool {number}")]
    if len(tools) > MOST_TOOLS:
        raise BadField("tools", f"there are {len(tools)}, and at most {MOST_TOOLS} may be offered here")
    return tools


class _Definition(msgspec.Struct):
    name: str
    description: str = ""
    parameters: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


def _read(text: str, field: str) -> list[JsonObject]:
    try:
        found = parse(text)
    except BadJson as error:
        raise BadField(field, f"it is not JSON: {error}") from None
    listed = found if isinstance(found, list) else [found]
    return [_definition(one, field) for one in listed]


def _definition(found: Json, field: str) -> JsonObject:
    inner = found.get("function", found) if isinstance(found, dict) else found
    try:
        tool = msgspec.convert(inner, _Definition)
    except msgspec.ValidationError as error:
        raise BadField(field, f"it is not a tool: {error}") from None
    return {"type": "function", "function": msgspec.to_builtins(tool)}


# ---------------------------------------------------------------- columns


@dataclass(frozen=True, slots=True)
class CallView:
    """A call that a client would get."""

    name: str
    arguments: str
    fixes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ColumnView:
    """One column: what came of the request in one way."""

    id: str
    state: str
    """`running`, `ok` or `failed`."""
    text: str
    started: float = 0.0
    tools: str = ""
    """How tools were handled: native, rescued, emulated, plain or off."""
    plan: str = ""
    reasoning: str = ""
    calls: tuple[CallView, ...] = ()
    complaints: tuple[Complaint, ...] = ()
    warnings: tuple[str, ...] = ()
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    trace: str = ""
    """Empty if traces are not kept."""
    problem: str = ""


def running_column(number: int, text: str, started: float) -> ColumnView:
    """Return a column whose answer is being written."""
    return ColumnView(_id(number), "running", cut(text, _LONGEST_SHOWN), started)


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """The end of a column's request. Without an outcome it was refused or broken off."""

    outcome: Outcome | None
    failure: Failure | None
    tools: str
    """How tools were handled."""
    seconds: float
    trace: str
    """Empty if traces are not kept."""


def ended_column(number: int, ended: EndedTurn) -> ColumnView:
    """Return a column whose turn has ended."""
    outcome, failure = ended.outcome, ended.failure
    problem, state = ("", "ok") if failure is None else (failure.message, "failed")
    column = ColumnView(_id(number), state, "", seconds=ended.seconds, trace=ended.trace, problem=problem)
    if outcome is None:
        return column
    turn, usage = outcome.turn, outcome.usage
    return replace(
        column,
        text=cut(turn.text, _LONGEST_SHOWN),
        tools=ended.tools,
        plan=outcome.taken.line,
        reasoning=cut(turn.reasoning, _LONGEST_SHOWN),
        calls=tuple(map(_call_view, turn.calls)),
        complaints=outcome.complaints,
        warnings=tuple(warning for warning in outcome.warnings if warning != EMULATED),  # the chip says it
        requests=outcome.requests,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
    )


def _call_view(call: Call) -> CallView:
    return CallView(call.name, _arguments(call.arguments), tuple(fix.what for fix in call.fixes))


def _id(number: int) -> str:
    return f"column-{number}"


def _arguments(text: str) -> str:
    try:
        return cut(_pretty(parse(text)), _LONGEST_SHOWN)
    except BadJson:
        return cut(text, _LONGEST_SHOWN)


def _pretty(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
