"""Answers turns: reads a request on the client's wire, runs it, and writes the response on the same wire.

The response is streamed or whole, as the client asked.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from toolspeak.config.shape import Key
from toolspeak.engine.effects import EMULATED, Outcome
from toolspeak.engine.plan import Plan, Way
from toolspeak.engine.settings import NOTHING_SAID, Settings
from toolspeak.gateway.access import find_route
from toolspeak.gateway.admission import Ticket
from toolspeak.gateway.exchange import PLAN_HEADER, Exchange, ResponseContext, TurnFailed, answer, plan_line
from toolspeak.gateway.idle_doctor import IdleDoctor
from toolspeak.gateway.request_reader import RequestReader, settings_in_headers
from toolspeak.gateway.response_store import ResponseStore
from toolspeak.gateway.slow_turns import SlowTurn
from toolspeak.gateway.trace_log import TraceLog, TurnRequest, parent_of
from toolspeak.ir.event import CallStarted, Event, Failed, Finished, ReasoningDelta, StopReason, TextDelta
from toolspeak.ir.failure import Failure
from toolspeak.ir.request import Request
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.directory import Directory, EmitEvents, Route
from toolspeak.runtime.fallback import FallbackTurn
from toolspeak.runtime.offload import Run
from toolspeak.runtime.prober import Prober
from toolspeak.runtime.recorder import TurnWatch
from toolspeak.runtime.text_shortcut import TextShortcut, WriteAtOnce
from toolspeak.runtime.turn_progress import TurnProgress
from toolspeak.wires import ExpandedRequest, Wire
from toolspeak.wires.shared.routing_fields import drop_routing_fields

_LAST_WORDS = 1.0
"""Seconds for the error that ends a stream. A client that reads nothing must not hold up a shutdown."""
_JSON = b"application/json"
_SHOWN = (TextDelta, ReasoningDelta, CallStarted)
"""Events that a client can see: after one of them a failure can no longer be a plain HTTP error."""
_LAST = (Finished, Failed)
"""The events that end a turn."""


@dataclass(frozen=True, slots=True)
class TurnContext:
    """One request for a turn with its route and its plan."""

    exchange: Exchange
    wire: Wire
    response: ResponseContext
    request: Request
    route: Route
    plan: Plan
    watch: TurnWatch
    progress: TurnProgress
    slow: SlowTurn
    prepare: Run
    """Runs work whose time is proportional to the request's size, in a thread if it is large."""
    keep: Callable[[bytes], None] | None = None
    """Stores the response before the client learns its end, and could refer to it; None if it is not stored."""

    asked: Settings = NOTHING_SAID
    """The settings in the request's headers."""

    def turn(
        self,
        emit: EmitEvents,
        clock: Clock,
        answers: Callable[[Request], None],
        shortcut: TextShortcut | None = None,
    ) -> Coroutine[object, object, Outcome]:
        """Run the turn. If another model answers, `answers` gets the request under that model's name (POOL-5)."""

        async def take(route: Route, plan: Plan, emit: EmitEvents) -> Outcome:
            return await route.take(
                self.request,
                plan,
                emit,
                clock,
                self.prepare,
                watch=self.watch,
                progress=self.progress,
                shortcut=shortcut,
            )

        def moved(route: Route, plan: Plan, why: str) -> None:
            self.response.entry.falls_back(route, plan, why)
            self.watch.moved(route.place, route.model, plan)
            answers(replace(self.request, model=route.identity))

        return FallbackTurn(self.route, self.request, self.asked, take, moved).run(self.plan, emit)


@dataclass(frozen=True, slots=True)
class OwnTurn:
    """A turn that the gateway takes for a page of its dashboard: the session's key stands for the request's.

    The page has its headers before the turn begins, so a failure is told inside the stream.
    """

    key: Key
    sends_tools: bool = False
    """The upstream gets the tools, whatever is known about the model."""


class Turns:
    """Answers the requests for turns of all wires."""

    def __init__(  # noqa: PLR0913 # the parts of the gateway that a turn needs
        self,
        directory: Directory,
        prober: Prober,
        reader: RequestReader,
        store: ResponseStore,
        traces: TraceLog,
        *,
        idle_doctor: IdleDoctor,
        keep_alive: float,
        clock: Clock,
    ) -> None:
        """`keep_alive` is after how many silent seconds a stream gets a keep-alive."""
        self._reader: Final = reader
        self._store: Final = store
        self._traces: Final = traces
        self._directory: Final = directory
        self._prober: Final = prober
        self._idle_doctor: Final = idle_doctor
        self._keep_alive: Final = keep_alive
        self._clock: Final = clock

    async def take(  # noqa: PLR0913 # what a turn is about
        self,
        exchange: Exchange,
        wire: Wire,
        response: ResponseContext,
        key: Key,
        ticket: Ticket,
        *,
        sends_tools: bool = False,
    ) -> None:
        """Read the request, find its model, and answer; raises `Refused`, `BadField`, `Gone`.

        With `sends_tools`, the upstream gets the tools whatever is known about the model, as the playground asks.
        """
        entry = response.entry
        query = exchange.query
        path = f"{exchange.path}?{query}" if query else exchange.path
        body = await exchange.body()
        entry.body_seconds = self._clock.monotonic() - entry.started
        expanded = await self._expanded(wire, body, key.tenant)
        body = body if expanded is None else expanded.body
        decoded, prepare = await self._reader.read(wire, body, path)
        request = drop_routing_fields(decoded)
        entry.model = request.model
        route = await find_route(self._directory, request.model, key)
        entry.goes_to(route)
        await ticket.use(route)
        route = route.of_tenant(key.tenant)
        route = route.sending_tools() if sends_tools else route
        asked = settings_in_headers(exchange)
        plan = entry.plan = route.plan(request, asked)
        keep = self._keeping(wire, request, expanded, key.tenant)
        if expanded is not None:
            response.stamp = replace(response.stamp, previous=expanded.previous, is_stored=keep is not None)
        progress = entry.progress = TurnProgress()
        slow = SlowTurn(entry, progress, self._clock)
        agent = next(iter(exchange.headers(b"user-agent")), "")
        recorded = TurnRequest(wire.name, path, body, request, route, plan, progress, agent, parent_of(exchange))
        watch = self._traces.begin(recorded, entry, response.plan)
        context = TurnContext(
            exchange, wire, response, request, route, plan, watch, progress, slow, prepare, keep, asked
        )
        response.plan(plan)
        with self._prober.serving(route):
            await (self._stream(context) if request.stream else self._whole(context))
        self._prober.consider(route, request)  # last: the client has its answer, and a probe never delays a request
        self._idle_doctor.note(route, request)

    async def _expanded(self, wire: Wire, body: bytes, tenant: str) -> ExpandedRequest | None:
        """Return the request with the stored responses that it refers to (WIRE-8); None on wires without such."""
        storage = wire.storage
        if storage is None or not self._store.is_open:
            return None
        find = self._store.finder(tenant)
        return await self._reader.read_json(body, lambda checked: storage.expand(checked, find))

    def _keeping(
        self, wire: Wire, request: Request, expanded: ExpandedRequest | None, tenant: str
    ) -> Callable[[bytes], None] | None:
        storage = wire.storage
        if storage is None or expanded is None or not storage.wants_storage(request):
            return None

        def keep(answered: bytes) -> None:
            self._store.keep(tenant, *storage.conversation(expanded.items, answered))

        return keep

    async def _whole(self, context: TurnContext) -> None:
        answered = [context.request]
        turn_taken = context.turn(_keep, self._clock, answered.append)
        outcome = await context.exchange.attended(turn_taken, context.slow.beat)
        context.response.entry.outcome = outcome
        turn = outcome.turn
        context.response.plan(outcome.taken)
        if turn.failure is not None:
            raise TurnFailed(turn.failure)
        response = context.response
        for warning in outcome.warnings:
            response.warn(warning)
        body = context.wire.encode_turn(answered[-1], response.stamp, turn)
        if context.keep is not None:
            context.keep(body)
        await answer(context.exchange, 200, _JSON, body, response.headers)

    async def _stream(self, context: TurnContext) -> None:
        stream = _Stream(context, self._keep_alive, self._clock)
        shortcut = TextShortcut(stream.writer_at_once, stream.emit_at_once)
        turn_taken = context.turn(stream.emit, self._clock, stream.rename, shortcut)
        outcome = await context.exchange.attended(turn_taken, stream.beat)
        context.response.entry.outcome = outcome
        await stream.end(outcome.taken)


class _Stream:
    """One streamed response. Its headers are sent with its first bytes, so that an earlier failure is an HTTP error.

    Clients handle HTTP errors better than errors inside a stream: Gemini CLI loses the text of the latter, and Claude
    Code sends the request again, at last without streaming.
    """

    def __init__(self, context: TurnContext, keep_alive: float, clock: Clock) -> None:
        self._context: Final = context
        self._response: Final = context.response
        self._encoder = context.wire.new_encoder(context.request, context.response.stamp)
        self._encode = self._encoder.encode
        self._exchange: Final = context.exchange
        self._write: Final = context.exchange.write
        self._keep_alive: Final = keep_alive
        self._now: Final = clock.monotonic
        self._last: float = self._now()
        """When content was last sent to the client."""
        self._beaten = self._last
        """When a keep-alive was last sent to the client."""
        self._begun = False
        """Content was sent to the client."""
        self._ended = False
        """The wire's last event is sent: an error after it would break the protocol."""

    async def emit(self, events: Sequence[Event]) -> None:
        """Write the events on the client's wire. A failure before any visible event raises `TurnFailed` instead."""
        if not self._begun:
            await self._begin(events)
        self._ended = type(events[-1]) in _LAST
        data = self._encode(events)
        if self._ended and self._context.keep is not None:
            self._keep(events[-1], self._context.keep)
        if data:
            self._last = self._now()
            await self._write(data)

    def writer_at_once(self) -> WriteAtOnce | None:
        """Return what writes bytes at once; None before the first content, and while the client does not read."""
        return self._exchange.writer_at_once if self._begun else None

    def emit_at_once(self, events: Sequence[Event], write: WriteAtOnce) -> None:
        """Write plain text on the client's wire."""
        self._last = self._now()
        write(self._encode(events))

    def rename(self, request: Request) -> None:
        """Write the response under the name of another model. No content has been written yet."""
        self._encoder = self._context.wire.new_encoder(request, self._response.stamp)
        self._encode = self._encoder.encode

    async def _begin(self, events: Sequence[Event]) -> None:
        if not self._response.started:
            last = events[-1]
            if isinstance(last, Failed) and not any(isinstance(event, _SHOWN) for event in events):
                raise TurnFailed(last.failure)
            await self._start()
        self._begun, self._response.entry.first_byte = True, self._now()

    def _keep(self, last: Event, keep: Callable[[bytes], None]) -> None:
        """Store the response, unless it ended in an error."""
        storage = self._context.wire.storage
        final = storage.final_response(self._encoder) if storage is not None else b""
        if final and isinstance(last, Finished) and last.stop is not StopReason.ERROR:
            keep(final)

    async def beat(self) -> float:
        """Send a keep-alive after a long silence; return in how many seconds to check again.

        A long prompt, or a call that must be complete before it can be checked, keeps a stream silent for so long that
        clients and proxies would close the connection.
        """
        next_line = self._context.slow.look(self._last)
        if self._ended:  # a busy event loop looks here between the last event and the end of the response
            return min(self._keep_alive, next_line)
        silent = self._now() - max(self._last, self._beaten)
        if silent < self._keep_alive:
            return min(self._keep_alive - silent, next_line)
        # This gives up the chance of an HTTP error: a later failure becomes an error inside the stream.
        if not self._response.started:
            await self._start()
        self._beaten = self._now()
        if data := self._encoder.keep_alive():
            await self._write(data)
        return min(self._keep_alive, next_line)

    async def end(self, taken: Plan) -> None:
        """Send the end of the response, after the plan if that changed after the headers were sent.

        It is a comment after the last event. Clients of the other wires fail on a comment, HTTP trailers are dropped by
        proxies and hidden by most SDKs, and a field of our own in the last event could break clients that check it.
        """
        told = self._response.planned
        late = self._context.wire.skips_comments and told is not None and taken.line != told.line
        await self._write(b": %s: %s\n\n" % (PLAN_HEADER, plan_line(taken)) if late else b"", last=True)

    async def fail(self, failure: Failure) -> None:
        """End the stream with its protocol's error, so that the client does not take half a response for a whole one.

        At the shutdown deadline streams once ended without an error frame, and clients believed what they had.
        """
        data = b"" if self._ended else self._encode((Failed(failure),))
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await self._write(data, last=True)

    async def _start(self) -> None:
        planned = self._response.planned
        # Headers leave with the first byte, so a stream cannot announce emulation that begins later.
        if planned is not None and planned.way is Way.FORCE:
            self._response.warn(EMULATED)
        self._response.started, self._response.end_stream = True, self.fail
        media_type = (b"content-type", self._context.wire.stream_type(self._context.request).encode())
        await self._context.exchange.start(200, (media_type, _UNCACHED, _UNBUFFERED, *self._response.headers))


_UNCACHED: Final = (b"cache-control", b"no-cache")
_UNBUFFERED: Final = (b"x-accel-buffering", b"no")  # nginx buffers a response until its end without it


async def _keep(events: Sequence[Event]) -> None:
    """Send nothing: the outcome has all events."""
