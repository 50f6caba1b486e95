"""Turns for clients: a request comes in on one wire, and its answer leaves on the same, streamed or whole."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from toolspeak.config.shape import Key
from toolspeak.engine.outcome import EMULATED, Outcome
from toolspeak.engine.plan import Way
from toolspeak.gateway.asked import asked_settings
from toolspeak.gateway.auth import permit
from toolspeak.gateway.exchange import Exchange, Refused, answer
from toolspeak.gateway.journal import log_turn
from toolspeak.gateway.marks import Marks
from toolspeak.gateway.places import without_places
from toolspeak.gateway.request_reader import RequestReader
from toolspeak.gateway.visit import Visit
from toolspeak.ir.event import CallStarted, Event, Failed, Finished, ReasoningDelta, TextDelta
from toolspeak.ir.failure import Failure
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.directory import Directory
from toolspeak.runtime.prober import Prober
from toolspeak.wires import Wire

_NEVER = 86_400.0
_LAST_WORDS = 1.0
"""Seconds for the error that ends a stream."""
_JSON = b"application/json"
_SHOWN = (TextDelta, ReasoningDelta, CallStarted)


class Turns:
    """Takes turns."""

    def __init__(
        self, directory: Directory, prober: Prober, reader: RequestReader, keep_alive: float, clock: Clock
    ) -> None:
        """Take where models are found, what finds out about them, and after how much silence a client gets a sign."""
        self._reader: Final = reader
        self._directory: Final = directory
        self._prober: Final = prober
        self._keep_alive: Final = keep_alive
        self._clock: Final = clock

    async def take(self, exchange: Exchange, wire: Wire, marks: Marks, key: Key) -> None:
        """Read the request, find its model, and answer."""
        started = self._clock.monotonic()
        query = exchange.query
        path = f"{exchange.path}?{query}" if query else exchange.path
        body = await exchange.body()
        decoded, prepare = await self._reader.read(wire, body, path)
        request = without_places(decoded)
        route = await self._directory.find(request.model)
        permit(key, route)
        route = route.of_tenant(key.tenant)
        visit = Visit(exchange, wire, marks, request, route, route.plan(request, asked_settings(exchange)), prepare)
        marks.plan(visit.plan)
        with self._prober.serving(route):
            outcome = await (self._stream(visit) if request.stream else self._whole(visit))
        log_turn(visit, outcome, self._clock.monotonic() - started)
        self._prober.consider(route, request)

    async def _whole(self, visit: Visit) -> Outcome:
        outcome = await visit.exchange.attended(visit.turn(_keep, self._clock), _never)
        turn = outcome.turn
        if turn.failure is not None:
            raise Refused(turn.failure)
        marks = visit.marks
        for warning in outcome.warnings:
            marks.warn(warning)
        body = visit.wire.encode_turn(visit.request, marks.stamp, turn)
        await answer(visit.exchange, 200, _JSON, body, marks.headers)
        return outcome

    async def _stream(self, visit: Visit) -> Outcome:
        if visit.plan.way is Way.FORCE:
            visit.marks.warn(EMULATED)
        stream = _Stream(visit, self._keep_alive, self._clock)
        outcome = await visit.exchange.attended(visit.turn(stream.emit, self._clock), stream.beat)
        await stream.end()
        return outcome


class _Stream:
    """One streamed answer. Its head leaves with its first bytes: until then a failure is a plain HTTP error."""

    def __init__(self, visit: Visit, keep_alive: float, clock: Clock) -> None:
        self._visit: Final = visit
        self._marks: Final = visit.marks
        self._encoder: Final = visit.wire.new_encoder(visit.request, visit.marks.stamp)
        self._encode: Final = self._encoder.encode
        self._write: Final = visit.exchange.write
        self._keep_alive: Final = keep_alive
        self._now: Final = clock.monotonic
        self._last: float = self._now()
        """When something left."""
        self._ended = False

    async def emit(self, events: Sequence[Event]) -> None:
        """Send what these events mean on the client's wire."""
        if not self._marks.started:
            last = events[-1]
            if isinstance(last, Failed) and not any(isinstance(event, _SHOWN) for event in events):
                raise Refused(last.failure)
            await self._start()
        self._ended = isinstance(events[-1], Finished | Failed)
        if data := self._encode(events):
            self._last = self._now()
            await self._write(data)

    async def beat(self) -> float:
        """Tell a client that waits long that we are here; return when to look again."""
        silent = self._now() - self._last
        if silent < self._keep_alive:
            return self._keep_alive - silent
        if not self._marks.started:
            await self._start()
        self._last = self._now()
        if data := self._encoder.keep_alive():
            await self._write(data)
        return self._keep_alive

    async def end(self) -> None:
        """Close the answer."""
        await self._write(b"", last=True)

    async def fail(self, failure: Failure) -> None:
        """End the stream with its protocol's error: a client must not take half an answer for a whole one.

        The gateway may be shutting down, so a client that accepts nothing is not waited for.
        """
        data = b"" if self._ended else self._encode((Failed(failure),))
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await self._write(data, last=True)

    async def _start(self) -> None:
        self._marks.started, self._marks.end_stream = True, self.fail
        media_type = (b"content-type", self._visit.wire.stream_type(self._visit.request).encode())
        await self._visit.exchange.start(200, (media_type, _UNCACHED, _UNBUFFERED, *self._marks.headers))


_UNCACHED: Final = (b"cache-control", b"no-cache")
_UNBUFFERED: Final = (b"x-accel-buffering", b"no")  # nginx would hold the stream back


async def _keep(events: Sequence[Event]) -> None:
    """Leave the events in the outcome."""


async def _never() -> float:
    """Send nothing while the client waits for a whole answer."""
    return _NEVER
