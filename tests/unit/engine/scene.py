"""What the tests of the engine share: two tools, requests about them, and turns that are run against a script."""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from toolspeak.dialects import Writer, load
from toolspeak.engine.effects import Emit, Outcome, Pull, TurnProgram
from toolspeak.engine.plan import decide
from toolspeak.engine.readers import emulated_ids
from toolspeak.engine.settings import Mode, Settings, Strategy
from toolspeak.engine.turn import take_turn
from toolspeak.facts.model import UNKNOWN_MODEL, ModelFacts
from toolspeak.ir.event import Event, Finished, StopReason, TextDelta, Usage
from toolspeak.ir.message import Call, Message, Result, Role, Text
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import AUTO, ChoiceMode, Tool, ToolChoice
from toolspeak.ir.turn import Turn
from toolspeak.runtime.drive import drive_sync
from toolspeak.testing import Scripted, ScriptedUpstream
from toolspeak.toolset.toolset import ToolSet

WEATHER = Tool(
    "get_weather",
    "Tell the weather of a city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    },
)
NOW = Tool("now", "Tell the time.", {"type": "object", "properties": {}, "additionalProperties": False})
TOOLS = (WEATHER, NOW)

FORCE = Settings(mode=Mode.FORCE)
FALLBACK = Settings(mode=Mode.FALLBACK)
DECISION = Settings(mode=Mode.FORCE, strategy=Strategy.DECISION)
NATIVE = Settings()

REQUIRED = ToolChoice(ChoiceMode.REQUIRED)
NONE = ToolChoice(ChoiceMode.NONE)
NAMED = ToolChoice(ChoiceMode.NAMED, "get_weather")
ONE = ToolChoice(parallel=False)

OSLO = Call("c1", "get_weather", '{"city": "Oslo"}')
BERGEN = Call("c2", "get_weather", '{"city": "Bergen"}')
CLOCK = Call("c3", "now", "{}")
WRONG = Call("c4", "get_weather", '{"town": 5}')
"""Its arguments do not fit."""
NO_TOOLS = "I'm sorry, but I don't have access to any tools, so I can't look that up."
LONG = "The weather there is cold in winter and mild in summer. " * 12
"""More than any refusal is looked for."""


def system(text: str) -> Message:
    return Message(Role.SYSTEM, (Text(text),))


def user(text: str) -> Message:
    return Message(Role.USER, (Text(text),))


def said(text: str, *calls: Call) -> Message:
    return Message(Role.ASSISTANT, (*((Text(text),) if text else ()), *calls))


def answered(call: Call, text: str) -> Message:
    return Message(Role.TOOL, (Result(call.id, (Text(text),), call.name),))


QUESTION = user("Weather in Oslo?")
HISTORY = (QUESTION, said("Let me see.", OSLO), answered(OSLO, "3 °C"))
"""A turn with a call, and its result."""


def ask(
    *messages: Message, tools: Sequence[Tool] = TOOLS, choice: ToolChoice = AUTO, stop: tuple[str, ...] = ()
) -> Request:
    return Request("m", messages or (QUESTION,), tuple(tools), choice, Sampling(stop=stop), stream=True)


ASK = ask()


@dataclass(frozen=True)
class Ran:
    """A turn that is over."""

    outcome: Outcome
    upstream: ScriptedUpstream
    events: list[Event]

    @property
    def turn(self) -> Turn:
        return self.outcome.turn

    @property
    def calls(self) -> list[tuple[str, Any]]:
        return [(call.name, json.loads(call.arguments)) for call in self.turn.calls]

    @property
    def sent(self) -> list[Request]:
        return self.upstream.requests

    @property
    def failure(self) -> str:
        return self.turn.failure.message if self.turn.failure is not None else ""


def run(
    settings: Settings,
    *answers: Scripted,
    request: Request = ASK,
    facts: ModelFacts = UNKNOWN_MODEL,
    remembered: Iterable[Tool] = (),
    chunk: int = 5,
) -> Ran:
    """Run a turn: each answer costs 10 tokens in and 5 out."""
    upstream = ScriptedUpstream(*answers, chunk=chunk, usage=Usage(10, 5))
    events: list[Event] = []
    outcome = drive_sync(program(settings, request, facts, remembered), upstream, events.extend)
    return Ran(outcome, upstream, events)


def program(
    settings: Settings, request: Request = ASK, facts: ModelFacts = UNKNOWN_MODEL, remembered: Iterable[Tool] = ()
) -> TurnProgram:
    return take_turn(request, decide(request, settings, facts), emulated_ids(7), remembered)


def texts(*pieces: str, stop: StopReason = StopReason.END) -> list[Event]:
    """Say an answer in exactly these pieces."""
    return [*map(TextDelta, pieces), Finished(stop)]


def leaving(settings: Settings, answer: Sequence[Event], request: Request = ASK) -> list[tuple[int, Event]]:
    """Give one answer, an event a read; tell after how many reads each event left."""
    turn = program(replace(settings, retries=0), request)
    left: list[tuple[int, Event]] = []
    given: list[Event] | None = None
    reads = 0
    with suppress(StopIteration):
        while True:
            effect = turn.send(given)
            given = None
            if isinstance(effect, Emit | Pull):
                left += [(reads, event) for event in effect.events]
            if isinstance(effect, Pull):
                given, reads = [answer[reads]], reads + 1
    return left


def writer(dialect: str) -> Writer:
    found = load(dialect).writer
    assert found is not None
    return found


def written(*calls: Call, dialect: str = "fenced", tools: Sequence[Tool] = TOOLS) -> str:
    """Write calls as a model should that has learned the dialect."""
    return writer(dialect).write_calls(calls, ToolSet.of(tools))


def words(request: Request) -> str:
    """Say a request as a template might: all that is text, each message with its role."""
    return "".join(f"<{message.role}>{words_of(message)}" for message in request.messages)


def words_of(message: Message) -> str:
    return "\n\n".join(part.text for part in message.parts if isinstance(part, Text))


def roles(request: Request) -> list[str]:
    return [message.role.value for message in request.messages]
