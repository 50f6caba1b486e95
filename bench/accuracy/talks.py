"""Twenty conversations with tools that really run: both the final state and the answers must be right.

    user: How warm is the kitchen?      -> read_room runs -> the answer must name 17.5
    user: Make it 21 degrees.           -> set_target runs -> the state must have the target

The state is compared at the end, and every answer must mention what only the tools could report.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from bench.accuracy.score import Delivered, Score, arguments_of, is_valid
from bench.accuracy.speak import Said, Speaker
from bench.accuracy.worlds import (
    BANK,
    CALENDAR,
    FILES,
    LIGHTS,
    ORDERS,
    PEOPLE,
    SHOPPING,
    THERMOSTAT,
    Refused,
    State,
    World,
)
from toolspeak.ir.message import Call, Message, Result, Role, Text
from toolspeak.text.strict import dump

MOST_ROUNDS = 8
"""Rounds of calls that a user waits for in one step."""


@dataclass(frozen=True, slots=True)
class Played:
    """The result of one answer or of a whole conversation."""

    right: bool
    valid: bool
    calls: tuple[Delivered, ...]
    text: str = ""
    failure: str = ""
    notes: Sequence[str] = ()

    @staticmethod
    def of(said: Said, score: Score) -> "Played":
        """Make the result of a single answer."""
        return Played(score.right, score.valid, said.calls, said.text, said.failure)


@dataclass(frozen=True, slots=True)
class Step:
    """The user's message, and what the answer must mention: each as a pattern of whole words."""

    user: str
    mentions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation: the world, its initial state, the user's messages, and the check of the final state."""

    id: str
    world: World
    begin: Mapping[str, Any]
    steps: tuple[Step, ...]
    end: Callable[[State], bool]
    set: str = "multi_turn"


@dataclass
class _Stage:
    """A conversation in progress."""

    talk: Talk
    state: State
    messages: list[Message] = field(default_factory=list[Message])
    calls: list[Delivered] = field(default_factory=list[Delivered])
    valid: bool = True

    async def answered(self, step: Step, speaker: Speaker) -> Said:
        """Send the user's message, and run tools until the model answers in text."""
        self.messages.append(Message(Role.USER, (Text(step.user),)))
        for _ in range(MOST_ROUNDS):
            said = await speaker.ask(self.messages, self.talk.world.tools)
            self._heard(said)
            if said.failure or not said.calls:
                return said
        return Said(failure=f"no answer after {MOST_ROUNDS} rounds")

    def _heard(self, said: Said) -> None:
        numbers = range(len(self.calls), len(self.calls) + len(said.calls))
        ids = [f"call_{number:04}" for number in numbers]
        calls = [Call(id, call.name, call.arguments) for id, call in zip(ids, said.calls, strict=True)]
        text = (Text(said.text),) if said.text else ()
        self.messages.append(Message(Role.ASSISTANT, (*text, *calls)))
        self.calls += said.calls
        if calls:
            self.messages.append(Message(Role.TOOL, tuple(map(self._result, calls))))

    def _result(self, call: Call) -> Result:
        world, arguments = self.talk.world, arguments_of(call.arguments)
        if not is_valid(world.tools, call.name, arguments):
            self.valid = False
        try:
            told = dump(world.run(call.name, self.state, arguments or {}))
        except Refused as refused:
            return Result(call.id, (Text(f"Error: {refused}"),), call.name, is_error=True)
        return Result(call.id, (Text(told),), call.name)


async def play(talk: Talk, speaker: Speaker) -> Played:
    """Play a conversation until its end or its first failure."""
    stage = _Stage(talk, deepcopy(dict(talk.begin)))
    said, notes = Said(), list[str]()
    for step in talk.steps:
        said = await stage.answered(step, speaker)
        notes += [f"{step.user!r}: nothing of {what}" for what in missing(step, said.text)]
        if said.failure or notes:
            break
    if not said.failure and not notes and not talk.end(stage.state):
        notes.append(f"the end is {dump(stage.state)}")
    return Played(not notes and not said.failure, stage.valid, tuple(stage.calls), said.text, said.failure, notes)


def missing(step: Step, text: str) -> list[str]:
    """Return what an answer should mention, and does not."""
    plain = text.replace(",", "")
    return [what for what in step.mentions if not re.search(rf"(?<![\w.])(?:{what})(?![\w])", plain, re.IGNORECASE)]


# ---------------------------------------------------------------- the conversations

_ROOMS = {"rooms": {"kitchen": 17.5, "bedroom": 19.0, "office": 23.5}, "targets": {}}
_WEEK = {"events": [["monday", "09:30", "dentist"], ["monday", "15:00", "yoga"], ["friday", "11:00", "team lunch"]]}
_DISK = {"files": {"notes.txt": "The code is 4711.", "draft.md": "Hello", "old.log": "x"}}
_SHOP = {
    "orders": {
        "1041": {"item": "lamp", "quantity": 1, "status": "open"},
        "1042": {"item": "desk", "quantity": 2, "status": "shipped"},
    }
}
_MONEY = {"accounts": {"checking": 1250.0, "savings": 8300.0, "travel": 90.0}}
_HOUSE = {"lights": {"kitchen": True, "hall": False, "garage": True}}
_LIST = {"items": ["milk", "bread", "apples"]}
_BOOK: State = {"contacts": {"Ada": {"phone": "5550142"}, "Grace": {"phone": "5550199"}}, "sent": []}


def _targets(**targets: float) -> Callable[[State], bool]:
    return lambda state: bool(state["targets"] == targets)


def _events(*events: list[str]) -> Callable[[State], bool]:
    return lambda state: bool(sorted(state["events"]) == sorted(map(list, events)))


def _items(*items: str) -> Callable[[State], bool]:
    return lambda state: bool(sorted(state["items"]) == sorted(items))


def _accounts(**accounts: float) -> Callable[[State], bool]:
    return lambda state: bool(state["accounts"] == accounts)


def _lit(**lights: bool) -> Callable[[State], bool]:
    return lambda state: bool(state["lights"] == lights)


def _same(begin: Mapping[str, Any]) -> Callable[[State], bool]:
    return lambda state: bool(state == begin)


def _sent(*phones: str) -> Callable[[State], bool]:
    return lambda state: bool([phone for phone, _ in state["sent"]] == list(phones))


TALKS: Sequence[Talk] = (
    Talk(
        "warm kitchen",
        THERMOSTAT,
        _ROOMS,
        (Step("How warm is it in the kitchen?", (r"17\.5",)), Step("Set it to 21 degrees there, please.")),
        _targets(kitchen=21.0),
    ),
    Talk(
        "coldest room",
        THERMOSTAT,
        _ROOMS,
        (
            Step("What is the temperature in the bedroom?", ("19",)),
            Step("And in the office?", (r"23\.5",)),
            Step("Set the office to 20 degrees."),
        ),
        _targets(office=20.0),
    ),
    Talk(
        "two rooms",
        THERMOSTAT,
        _ROOMS,
        (Step("Set the kitchen to 20 degrees and the bedroom to 18 degrees."), Step("Thank you!")),
        _targets(kitchen=20.0, bedroom=18.0),
    ),
    Talk(
        "a day's events",
        CALENDAR,
        _WEEK,
        (Step("What do I have on Friday?", ("lunch",)), Step("Add a haircut on Friday at 16:00.")),
        _events(*_WEEK["events"], ["friday", "16:00", "haircut"]),
    ),
    Talk(
        "cancel one",
        CALENDAR,
        _WEEK,
        (
            Step("Which events are on Monday?", ("dentist", "yoga")),
            Step("Cancel the one at 15:00."),
            Step("What is left on Monday?", ("dentist",)),
        ),
        _events(_WEEK["events"][0], _WEEK["events"][2]),
    ),
    Talk(
        "move an event",
        CALENDAR,
        _WEEK,
        (Step("Cancel my event on Monday at 09:30."), Step("Now add an event Dentist on Tuesday at 10:00.")),
        _events(*_WEEK["events"][1:], ["tuesday", "10:00", "dentist"]),
    ),
    Talk(
        "read a file",
        FILES,
        _DISK,
        (Step("Which files are there?", (r"notes\.txt", r"draft\.md")), Step("What is in notes.txt?", ("4711",))),
        _same(_DISK),
    ),
    Talk(
        "copy a file",
        FILES,
        _DISK,
        (
            Step("What does draft.md contain?", ("hello",)),
            Step("Write the text Goodbye to a file named final.md."),
            Step("Delete old.log."),
        ),
        lambda state: state["files"] == {"notes.txt": "The code is 4711.", "draft.md": "Hello", "final.md": "Goodbye"},
    ),
    Talk(
        "tidy up",
        FILES,
        _DISK,
        (Step("Delete the file old.log."), Step("List the files that are left.", (r"notes\.txt", r"draft\.md"))),
        lambda state: set(state["files"]) == {"notes.txt", "draft.md"},
    ),
    Talk(
        "an open order",
        ORDERS,
        _SHOP,
        (Step("What is the status of order 1041?", ("open",)), Step("Cancel it, please.")),
        lambda state: state["orders"]["1041"]["status"] == "cancelled",
    ),
    Talk(
        "a shipped order",
        ORDERS,
        _SHOP,
        (
            Step("Please cancel order 1042.", ("shipped|cannot|can't|unable|could not|couldn't|not possible",)),
            Step("What did I order there, and how many?", ("desks?", "2|two")),
        ),
        _same(_SHOP),
    ),
    Talk(
        "a new order",
        ORDERS,
        _SHOP,
        (
            Step("Order 3 chairs.", ("1043",)),
            Step("What is the status of that order?", ("open",)),
        ),
        lambda state: (
            state["orders"].get("1043")
            in [{"item": item, "quantity": 3, "status": "open"} for item in ("chair", "chairs")]
        ),
    ),
    Talk(
        "a transfer",
        BANK,
        _MONEY,
        (
            Step("How much is on my savings account?", (r"8300(?:\.0+)?",)),
            Step("Move 200 from savings to travel."),
            Step("How much is on travel now?", (r"290(?:\.0+)?",)),
        ),
        _accounts(checking=1250.0, savings=8100.0, travel=290.0),
    ),
    Talk(
        "too much",
        BANK,
        _MONEY,
        (
            Step(
                "Transfer 500 from travel to checking.",
                ("only|not enough|insufficient|cannot|can't|unable|could not|couldn't|error|failed|90(?:\\.0+)?",),
            ),
            Step("Then transfer 50 instead."),
        ),
        _accounts(checking=1300.0, savings=8300.0, travel=40.0),
    ),
    Talk(
        "two balances",
        BANK,
        _MONEY,
        (
            Step("What are the balances of checking and travel?", (r"1250(?:\.0+)?", r"90(?:\.0+)?")),
            Step("Move 100 from checking to travel, please."),
        ),
        _accounts(checking=1150.0, savings=8300.0, travel=190.0),
    ),
    Talk(
        "lights out",
        LIGHTS,
        _HOUSE,
        (Step("Which lights are on?", ("kitchen", "garage")), Step("Switch off the light in the garage.")),
        _lit(kitchen=True, hall=False, garage=False),
    ),
    Talk(
        "light up",
        LIGHTS,
        _HOUSE,
        (
            Step("Switch on the light in the hall."),
            Step("Now switch off the kitchen light."),
            Step("Which lights are on now?", ("hall", "garage")),
        ),
        _lit(kitchen=False, hall=True, garage=True),
    ),
    Talk(
        "a shopping list",
        SHOPPING,
        _LIST,
        (
            Step("Put cheese on my shopping list."),
            Step("Take bread off the list."),
            Step("What is on the list now?", ("milk", "apples", "cheese")),
        ),
        _items("milk", "apples", "cheese"),
    ),
    Talk(
        "no tool needed",
        SHOPPING,
        _LIST,
        (
            Step("What is on my shopping list?", ("milk", "bread", "apples")),
            Step("Thanks! By the way, what is the capital of France?", ("paris",)),
            Step("Please remove the apples from the list."),
        ),
        _items("milk", "bread"),
    ),
    Talk(
        "a message",
        PEOPLE,
        _BOOK,
        (
            Step("What is Grace's phone number?", ("555 ?-?0199",)),
            Step("Send her the message: See you at noon."),
            Step("What is Ada's number?", ("555 ?-?0142",)),
        ),
        _sent("5550199"),
    ),
)
