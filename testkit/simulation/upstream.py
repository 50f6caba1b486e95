"""The simulated upstream: reads what the engine really sends, and answers in the vendor's bytes, in virtual time."""

import json
from collections.abc import AsyncGenerator, Generator, Iterator
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Final

from testkit.simulation.bytes import Delivery, deliver, pieces
from testkit.simulation.model import Model, Saying
from testkit.simulation.scenario import Scenario
from toolspeak.ir.event import Event, Failed, Finished, ReasoningDelta, TextDelta
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.request import Request

PATIENCE_S: Final = 60.0
"""How long one read may take."""
ENDLESS: Final = 200
"""Reads of an endless answer after which the client goes away."""
READ_S: Final = 0.02


class Cancelled(BaseException):
    """The client has gone away: the driver stops at its current point."""


class Clock:
    """The time and the steps of one run; nothing waits for real."""

    def __init__(self, cancels_at: int) -> None:
        """Start at zero; at that step (0: never) the client goes away."""
        self.now_s = 0.0
        self.steps = 0
        self.cancelled = False
        self._cancels_at = cancels_at

    def tick(self, seconds: float = READ_S) -> bool:
        """Let time pass; tell whether the client has gone away."""
        self.now_s += seconds
        self.steps += 1
        if self.steps == self._cancels_at:
            self.cancelled = True
        return self.cancelled

    def leave(self) -> None:
        """Let the client go away now."""
        self._cancels_at = self.steps + 1


class Tick:
    """An awaitable: the caller that runs the coroutine decides how it continues."""

    def __await__(self) -> Generator[None, None, None]:
        """Yield control once."""
        yield


@dataclass
class Attempt:
    """One request, and its results."""

    request: Request
    emulated: bool
    said: Saying
    delivery: Delivery
    pulls: int = 0
    texts: list[str] = field(default_factory=list[str])
    """The text that the engine has been given."""
    words: list[str] = field(default_factory=list[str])
    """The text and the reasoning, as they came."""
    last: Event | None = None
    closed: bool = False
    salvage: str = ""

    @property
    def ended(self) -> bool:
        """Tell whether the engine has received the end of the answer."""
        return self.last is not None

    def lines(self) -> list[str]:
        """Say it in a few lines."""
        calls = [(call.name, call.arguments) for call in self.said.calls]
        fault, how = self.delivery.fault or "no fault", "emulated" if self.emulated else "as it is"
        return [f"{self.said.kind}, {fault}, {how}: {self.said.text!r} calls {calls}", f"    read as {self.last}"]

    @property
    def good(self) -> bool:
        """Tell whether the answer came whole, with nothing wrong on the way."""
        return self.delivery.whole and isinstance(self.last, Finished)


class SimUpstream:
    """Answers requests of one scenario."""

    def __init__(self, scenario: Scenario, dice: Random, clock: Clock) -> None:
        """Take chance from `dice`."""
        self._scenario, self._dice, self._clock = scenario, dice, clock
        self._model = Model(scenario, dice)
        self._ids = (f"call_fresh{number}" for number in count())
        self.attempts: list[Attempt] = []
        self.faults: list[str] = []
        """What is wrong with the requests that came."""

    def open(self, request: Request) -> Generator[list[Event], None, None]:
        """Answer a request, for the synchronous driver."""
        attempt = self._begun(request)
        try:
            for batch in self._batches(attempt):
                if self._clock.tick():
                    raise Cancelled
                yield batch
        finally:
            attempt.closed = True

    def _begun(self, request: Request) -> Attempt:
        self._look_at(request)
        said = self._model.think(request)
        delivery = deliver(self._scenario.upstream.name, said, self._dice, stream=request.stream)
        if delivery.fault in ("http error", "endless"):
            said = Saying(delivery.fault)
        attempt = Attempt(request, self._model.is_emulated(request), said, delivery)
        self.attempts.append(attempt)
        return attempt

    def _look_at(self, request: Request) -> None:
        """Read the request as the vendor's server would get it."""
        sent = self._scenario.upstream.encode_request(request, self._scenario.facts.quirks)
        body = json.loads(sent.body)
        if not request.tools and body.get("tools"):
            self.faults.append("a request without tools has some in its body")
        if not (body.get("messages") or body.get("input") or body.get("contents")):
            self.faults.append("a request has no messages")

    def _batches(self, attempt: Attempt) -> Iterator[list[Event]]:
        """Yield the events of one read after the other; a read without events is skipped."""
        for batch in self._read(attempt):
            if batch:
                attempt.pulls += 1
                attempt.texts += [event.text for event in batch if isinstance(event, TextDelta)]
                attempt.words += [event.text for event in batch if isinstance(event, TextDelta | ReasoningDelta)]
                if isinstance(batch[-1], Finished | Failed):
                    attempt.last = batch[-1]
                    attempt.salvage = batch[-1].failure.salvage if isinstance(batch[-1], Failed) else ""
                yield batch
                if attempt.ended:
                    return

    def _read(self, attempt: Attempt) -> Iterator[list[Event]]:
        delivery, wire = attempt.delivery, self._scenario.upstream
        if delivery.status != 200:
            yield [Failed(wire.decode_failure(delivery.status, delivery.data))]
        elif delivery.then == "silence" and not attempt.request.stream:
            yield self._silence()
        elif not attempt.request.stream:
            yield wire.decode_turn(attempt.request, self._ids, delivery.data)
        else:
            yield from self._streamed(attempt)

    def _streamed(self, attempt: Attempt) -> Iterator[list[Event]]:
        delivery = attempt.delivery
        decoder = self._scenario.upstream.new_decoder(attempt.request, self._ids)
        for piece in pieces(delivery.data, self._dice):
            yield decoder.feed(piece)
        for number in count() if delivery.then == "again" else ():
            yield decoder.feed(delivery.again)
            if number == ENDLESS:
                self._clock.leave()
        yield self._silence() if delivery.then == "silence" else decoder.finish()

    def _silence(self) -> list[Event]:
        self._clock.tick(PATIENCE_S)
        return [Failed(Failure(FailureKind.TIMEOUT, f"no answer within {PATIENCE_S} seconds", 504))]


class AsyncSimUpstream:
    """The same, for the asynchronous driver."""

    def __init__(self, upstream: SimUpstream) -> None:
        """Wrap a synchronous upstream."""
        self._upstream = upstream

    async def open(self, request: Request) -> AsyncGenerator[list[Event], None]:
        """Answer a request."""
        batches = self._upstream.open(request)
        try:
            for batch in batches:
                await Tick()
                yield batch
        finally:
            batches.close()
