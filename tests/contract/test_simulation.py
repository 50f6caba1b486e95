"""Whole turns against a simulated model, network and client keep all promises; and the simulation can fail."""

import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from itertools import repeat
from pathlib import Path

import pytest

from testkit.simulation import trial as simulation
from testkit.simulation.bytes import FAULTS
from testkit.simulation.trial import Result, checked, simulate
from testkit.simulation.upstream import SimUpstream
from toolspeak.engine import turn
from toolspeak.engine.answer_reader import StopText
from toolspeak.engine.effects import Emit, Pull, TurnProgram
from toolspeak.engine.guard import Echo
from toolspeak.engine.outbox import Outbox
from toolspeak.engine.plan import decide
from toolspeak.engine.readers import emulated_ids
from toolspeak.engine.settings import Mode, Release, Settings
from toolspeak.ir.event import ArgsDelta, CallStarted, Event, Failed, Finished, ReasoningDelta, TextDelta, Usage
from toolspeak.ir.failure import Failure
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Message, Role, Text
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.runtime.drive import drive_sync
from toolspeak.toolset.toolset import Fitted, ToolSet
from toolspeak.wires.shared.answer_decoder import AnswerState

SEEDS = 400
PARTS = 4
TRIED = 1500
"""Seeds within which a fault that was put in must be found."""


@pytest.mark.parametrize("part", range(PARTS))
def test_a_turn_keeps_its_promises_whatever_happens_p1_p2_p3_p5_p6_p7(part: int) -> None:
    broken = [result for seed in range(part, SEEDS, PARTS) if (result := checked(seed)).wrong]
    assert "\n".join(map(Result.report, broken)) == ""


def test_the_seeds_reach_every_kind_of_answer_and_fault() -> None:
    results = [simulate(seed) for seed in range(SEEDS)]
    assert {result.fault for result in results} >= {*FAULTS, "lost arguments"}
    assert len({result.kind for result in results}) >= 16
    assert any(result.cancelled for result in results)
    assert max(result.requests for result in results) >= 4


def test_the_same_seed_gives_the_same_bytes_in_another_process() -> None:
    code = "from testkit.simulation.trial import simulate; print([simulate(seed).digest.hex() for seed in range(40)])"
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[2]).stdout
    assert said.strip() == str([simulate(seed).digest.hex() for seed in range(40)])


def test_a_breach_tells_its_seed_and_how_to_see_it_again() -> None:
    report = Result(7, "calls", "", 1, cancelled=False, digest=b"", wrong=("P3: x",), lines=("a line",)).report()
    assert report.splitlines()[0] == "seed 7:"
    assert "P3: x" in report
    assert "just simulate 1 --seed 7" in report


# ---------------------------------------------------------------- more than a seed may cost

TOOL = Tool("search", "Searches.", {"type": "object", "properties": {"query": {"type": "string"}}})
ASKED = Request("m", (Message(Role.USER, (Text("Go on."),)),), (TOOL,), stream=True)
FLOOD = 64 * 1024 * 1024
PIECE = "and more " * 30_000


class Endless:
    """An upstream that goes on until somebody stops it."""

    def __init__(self, event: Event) -> None:
        self._event = event
        self.read = 0

    def open(self, request: Request) -> Generator[list[Event], None, None]:
        assert request.stream
        if isinstance(self._event, ArgsDelta):
            yield [CallStarted("call_1", "search")]
        while self.read < FLOOD:
            self.read += len(PIECE)
            yield [self._event]


@pytest.mark.parametrize("event", [TextDelta(PIECE), ReasoningDelta(PIECE), ArgsDelta("call_1", PIECE)], ids=type)
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("release", Release)
def test_an_endless_answer_ends_at_a_limit_in_an_error_p7_p6(event: Event, mode: Mode, release: Release) -> None:
    upstream = Endless(event)
    plan = decide(ASKED, Settings(mode=mode, release=release, retries=0))
    outcome = drive_sync(turn.take_turn(ASKED, plan, emulated_ids(1)), upstream, lambda _: None)
    assert outcome.turn.failure is not None
    assert upstream.read < FLOOD


# ---------------------------------------------------------------- the simulation can fail


def no_echo(_: Echo, raw: str) -> bool:
    return not raw


def ends_well(answer: AnswerState, _: Failure, events: list[Event]) -> None:
    answer.end(events)


def fits_all(_: ToolSet, __: str, value: JsonObject) -> Fitted:
    return Fitted(value)


def last_usage(_: Usage, other: Usage) -> Usage:
    return other


def no_trouble(*_: object, **__: object) -> None:
    return None


def stops_nothing(_: StopText, text: str) -> str:
    return text


def one_id(_: int) -> Iterator[str]:
    return repeat("emulated_1_0")


def left_open(opened: object, upstream: SimUpstream | None, request: Request | None) -> object:
    kept.append(opened)
    return upstream.open(request) if upstream is not None and request is not None else None


async def not_closed(opened: object) -> None:
    kept.append(opened)


kept: list[object] = []


def changed(change: Callable[[Event], list[Event]]) -> Callable[..., TurnProgram]:
    """Make a turn whose events are changed on their way to the client."""

    def take_turn(*given: object) -> TurnProgram:
        program, answer = turn.take_turn(*given), None  # pyright: ignore[reportArgumentType] - handed on as they came
        while True:
            try:
                effect = program.send(answer)
            except StopIteration as stop:
                return stop.value
            if isinstance(effect, Emit | Pull):
                effect = type(effect)([other for event in effect.events for other in change(event)])
            answer = yield effect

    return take_turn


def longer(event: Event) -> list[Event]:
    return [TextDelta(f"{event.text}§") if isinstance(event, TextDelta) else event]


def other_argument(event: Event) -> list[Event]:
    return [ArgsDelta(event.id, event.json.replace("o", "0")) if isinstance(event, ArgsDelta) else event]


def shorter_argument(event: Event) -> list[Event]:
    return [ArgsDelta(event.id, event.json.replace('"}', "")) if isinstance(event, ArgsDelta) else event]


def held(_: Outbox, __: list[Event]) -> tuple[Event, ...]:
    return ()


def ended_twice(event: Event) -> list[Event]:
    return [event, event] if isinstance(event, Finished | Failed) else [event]


FAULTY = {
    "P1: the text": ("testkit.simulation.trial.take_turn", changed(longer)),
    "P2": ("testkit.simulation.trial.take_turn", changed(other_argument)),
    "P3": ("testkit.simulation.trial.take_turn", changed(shorter_argument)),
    "P5": ("toolspeak.engine.guard.Echo.is_echo", no_echo),
    "P6: the answer broke": ("toolspeak.wires.shared.answer_decoder.AnswerState.fail", ends_well),
    "P6: the ends": ("testkit.simulation.trial.take_turn", changed(ended_twice)),
    "P6: an empty success": ("toolspeak.engine.answer.ReadAnswer.trouble", no_trouble),
    "P7": ("toolspeak.engine.outbox.Outbox.take", held),
    "CHK-1: a call is required": ("toolspeak.engine.answer.ReadAnswer.trouble", no_trouble),
    "CHK-3": ("toolspeak.toolset.toolset.ToolSet.fit", fits_all),
    "MODE-9: usage": ("toolspeak.ir.event.Usage.plus", last_usage),
    "ids": ("testkit.simulation.trial.emulated_ids", one_id),
    "the client's stop sequence": ("toolspeak.engine.answer_reader.StopText.feed", stops_nothing),
    "the client went away, and the upstream": ("toolspeak.runtime.drive._closed", not_closed),
    "an answer of the upstream was left open": ("toolspeak.runtime.drive._reopened", left_open),
}
"""What is found, and the fault that was put in."""


@pytest.mark.parametrize("promise", FAULTY)
def test_the_simulation_notices_a_broken(promise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, fault = FAULTY[promise]
    monkeypatch.setattr(where, fault)
    assert any(breach.startswith(promise) for seed in range(TRIED) for breach in simulation.simulate(seed).wrong)
    kept.clear()
