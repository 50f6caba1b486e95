"""The simulated client: takes what the engine emits as bytes of its wire, slowly, and may go away at any time."""

import json
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, TypeVar

from testkit.grammar import Seen, read_stream, read_whole
from testkit.matrix import message_of
from testkit.simulation.scenario import Scenario
from testkit.simulation.upstream import Cancelled, Clock, Tick
from toolspeak.ir.event import Event, Failed
from toolspeak.ir.turn import fold
from toolspeak.wires import ErrorBody, Stamp

STAMP: Final = Stamp("0a1b2c3d4e5f", 1_763_000_000)
T = TypeVar("T")


@dataclass
class SimClient:
    """Takes events; `data` is what it got, or `error` if that came before anything else."""

    scenario: Scenario
    dice: Random
    clock: Clock
    events: list[Event] = field(default_factory=list[Event])
    emits: int = 0
    late: int = 0
    """Emits after it went away."""
    data: bytes = b""
    error: ErrorBody | None = None

    def __post_init__(self) -> None:
        """Be ready to encode."""
        self._encoder = self.scenario.client.new_encoder(self.scenario.request, STAMP)

    def emit(self, events: Sequence[Event]) -> None:
        """Take events from the synchronous driver."""
        self._take(events)
        if self.clock.tick(self.dice.choice((0.0, 0.5, 5.0))):
            raise Cancelled

    async def emit_async(self, events: Sequence[Event]) -> None:
        """Take events from the asynchronous driver."""
        self._take(events)
        self.clock.tick()
        await Tick()

    def seen(self) -> Seen | None:
        """Return what it understands; None for an error instead of an answer. Raises GrammarError for invalid bytes."""
        if not self.scenario.request.stream:
            return self._whole()
        if self.error is not None:
            check_error(self.error)
            return None
        return read_stream(self.scenario.client.name, self.data)

    def _take(self, events: Sequence[Event]) -> None:
        self.emits += 1
        self.late += self.clock.cancelled
        self.events += events
        if not self.scenario.request.stream:
            return
        if isinstance(events[0], Failed) and not self.data and self.dice.random() < 0.7:
            self.error = self.scenario.client.encode_failure(events[0].failure, STAMP)
            return
        if self.dice.random() < 0.1:
            self.data += self._encoder.keep_alive()
        self.data += self._encoder.encode(events)

    def _whole(self) -> Seen | None:
        turn = fold(self.events)
        if turn.failure is not None:
            self.error = self.scenario.client.encode_failure(turn.failure, STAMP)
            check_error(self.error)
            return None
        self.data = self.scenario.client.encode_turn(self.scenario.request, STAMP, turn)
        return read_whole(self.scenario.client.name, self.data)


def check_error(error: ErrorBody) -> None:
    """Raise if a client would not recognize this as an error with a message."""
    if (
        not 400 <= error.status <= 599
        or not message_of(error.body).strip()
        or not isinstance(json.loads(error.body), dict)
    ):
        raise ValueError(f"{error.status} {error.body!r} is no error that a client understands")


def run(coroutine: Coroutine[Any, Any, T], clock: Clock) -> T:
    """Run a coroutine without a loop: each wait ends at once, or the client goes away at it."""
    try:
        while True:
            coroutine.send(None)
            if clock.cancelled:
                coroutine.throw(Cancelled())
    except StopIteration as stop:
        return stop.value
