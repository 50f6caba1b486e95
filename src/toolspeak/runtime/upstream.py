"""An upstream over HTTP: encodes requests in its wire, sends them to its servers, and decodes the answers.

`replica_client.py` sends them, again where that can help, and knows which servers are in service.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from copy import copy
from dataclasses import replace
from itertools import count
from typing import Final

from toolspeak.engine.memory import memory_key
from toolspeak.errors import BadField
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.event import Event, Failed, Finished, TextDelta
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.quirks import Quirks
from toolspeak.ir.request import Request
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.offload import THREADED, Run, at_once
from toolspeak.runtime.replica_client import (
    JSON_TYPE,
    Opened,
    ReplicaClient,
    ServerPage,
    UpstreamAddress,
    media_type,
    whole_body,
)
from toolspeak.runtime.replicas import ReplicaPool
from toolspeak.runtime.text_shortcut import TextShortcut
from toolspeak.runtime.transport import Headers, LoadsModels, Response, TransportError, UpstreamTransport
from toolspeak.runtime.turn_progress import TurnProgress
from toolspeak.wires import EncodedRequest, EventDecoder, Wire

_STREAMS = ("text/event-stream", "application/x-ndjson", "application/jsonl")
STEP: Final = 2048
"""Characters of text that a turn reads before other tasks may run."""
_EVENT_SIZE: Final = 16
"""Characters for which an event without text counts."""
_MOST_BYTES: Final = 8192
"""Bytes of a stream that a decoder reads before other tasks may run."""
_MOST_EVENTS: Final = STEP // _EVENT_SIZE


class HttpUpstream:
    """Sends requests to one upstream, and returns answers as batches of events. Copies share the connections."""

    def __init__(  # noqa: PLR0913 # what an upstream is made of
        self,
        transport: UpstreamTransport,
        wire: Wire,
        address: UpstreamAddress,
        clock: Clock = CLOCK,
        prepare: Run = at_once,
        *,
        pool: ReplicaPool | None = None,
    ) -> None:
        """Take the connections, the wire and the address. `prepare` decides where requests are encoded.

        `pool` has the servers of the address, with what is known about their health; by default it is a new one.
        """
        self._transport: Final = transport
        self.wire: Final = wire
        self.url: Final = address.url.rstrip("/")
        """The URL of its first server, by which the upstream is known."""
        self._client: Final = ReplicaClient(transport, wire, address, pool or address.new_pool(), clock)
        self._clock: Final = clock
        self._quirks = address.quirks
        self._prepare = prepare

    @property
    def pool(self) -> ReplicaPool:
        """The servers of the upstream."""
        return self._client.pool

    @property
    def is_out(self) -> bool:
        """Whether none of its servers is in service. Those whose time is up are probed; needs a running event loop."""
        return self._client.is_out

    @property
    def model_state(self) -> str:
        """Return whether the upstream's model is loaded, where toolspeak itself loads it; else an empty string."""
        return self._transport.model_state(f"{self.url}/") if isinstance(self._transport, LoadsModels) else ""

    def with_quirks(self, quirks: Quirks) -> "HttpUpstream":
        """Return the same upstream with the quirks of one of its models."""
        if quirks == self._quirks:
            return self
        other = copy(self)
        other._quirks = quirks  # noqa: SLF001 # a copy of ours
        return other

    def encoding(self, prepare: Run) -> "HttpUpstream":
        """Return the same upstream for a request that `prepare` encodes, for example in a thread."""
        if prepare is self._prepare:
            return self
        other = copy(self)
        other._prepare = prepare  # noqa: SLF001 # a copy of ours
        return other

    def constrained(self, form: ConstraintForm) -> "HttpUpstream":
        """Return the same upstream, with constraints on the answer written in this form."""
        quirks = self._quirks
        return self if form is quirks.constraint else self.with_quirks(replace(quirks, constraint=form))

    def open(self, request: Request) -> AsyncGenerator[list[Event], None]:
        """Send a request and yield the batches of its answer, which end with exactly one Finished or Failed.

        Errors of the upstream and the connection are events (`Failed`), never exceptions.
        """
        return self.open_observed(request, TurnProgress())

    async def open_observed(
        self, request: Request, progress: TurnProgress, shortcut: TextShortcut | None = None
    ) -> AsyncGenerator[list[Event], None]:
        """Do the same as `open`, and keep `progress` up to date while the answer is awaited and read.

        What `shortcut` carries is not yielded.
        """
        outgoing = await self._prepare(lambda: self.wire.encode_request(request, self._quirks))
        now = self._clock.monotonic
        progress.sent(now(), len(outgoing.body), is_streamed=request.stream)
        opened = await self._client.open(outgoing, self._affinity(request), progress, is_streamed=request.stream)
        if isinstance(opened, Failure):
            progress.end(now())
            yield [Failed(opened)]
            return
        if not _is_stream(opened, request):  # some servers ignore `stream`, and answer in one piece
            whole = await self._turn(opened, request, outgoing, progress)
            for batch in _steps(whole):
                yield batch
                await self._let_others_run(batch, whole)
            return
        close = opened.close
        decoder = self.wire.new_decoder(request, self._ids())
        try:
            read = _Pieces(opened, self._clock).read
            feed = _diverted(opened, decoder, progress, shortcut) if shortcut is not None else decoder.feed
            # Each batch is yielded before the next bytes are read: a consumer that does not take them slows the
            # upstream down, so that memory stays bounded.
            try:
                while piece := await read():
                    events = feed(piece)
                    progress.pieces += len(events)
                    if _is_small(events):  # as nearly all are
                        yield events
                        continue
                    if events and type(events[-1]) is Finished:
                        close = opened.end  # the answer is complete, so the connection can be reused
                        opened.judge(events[-1])
                        progress.end(now(), events[-1])
                    for batch in _steps(events):
                        yield self._ended(opened, batch, outgoing) if type(batch[-1]) is Failed else batch
                        await self._let_others_run(batch, events)
                last = decoder.finish()
            except TransportError as error:
                last = _broken_off(decoder.finish(), error.failure)
            if last:
                progress.end(now(), last[-1])
                yield self._ended(opened, last, outgoing)
        finally:
            close()
            progress.end(now())  # the turn stopped reading: it has seen enough, or its client is gone

    def _affinity(self, request: Request) -> str:
        """Return the key by which a conversation stays with one server, whose prompt cache has it (POOL-1)."""
        return memory_key(request) if len(self.pool.replicas) > 1 else ""

    def _ended(self, opened: Opened, events: list[Event], outgoing: EncodedRequest) -> list[Event]:
        """Return the last events of an answer, and note what they say about the server."""
        opened.judge(events[-1])
        return self._client.checked(events, outgoing)

    async def _let_others_run(self, batch: list[Event], events: list[Event]) -> None:
        if batch is not events:  # one of several: an ordinary chunk is one batch, and costs no pass of the event loop
            await self._clock.sleep(0)

    async def get(self, path: str, body: bytes = b"") -> bytes:
        """Fetch a small page, such as the list of models, with short timeouts; with a body, it is a POST.

        A path that starts with a slash is relative to the server, any other to the base URL. Raises `TransportError`,
        also for an error status.
        """
        return await self._client.get(path, body)

    async def get_of(self, number: int, path: str, headers: Headers, most: int) -> ServerPage:
        """Fetch a page of one of its servers; see `ReplicaClient.get_of`. Raises `TransportError`."""
        return await self._client.get_of(number, path, headers, most)

    async def forward(self, path: str, headers: Headers, body: bytes, traceparent: str = "") -> Response:
        """Send a body as it is to another endpoint of a server, and return the response, which the caller closes.

        See `ReplicaClient.forward`. Raises `TransportError`, also for an error status.
        """
        return await self._client.forward(path, headers, body, traceparent)

    async def _decoded(self, request: Request, body: bytes) -> list[Event]:
        """Decode an answer that was not streamed; a large one in a thread, to keep the event loop responsive."""
        ids = self._ids()
        if len(body) <= THREADED:
            return self.wire.decode_turn(request, ids, body)
        return await asyncio.to_thread(self.wire.decode_turn, request, ids, body)

    async def _turn(
        self, opened: Opened, request: Request, outgoing: EncodedRequest, progress: TurnProgress
    ) -> list[Event]:
        """Read and decode an answer that is not streamed."""
        try:
            body = await whole_body(opened, opened.first)
            read = self._clock.monotonic()
            events = self._ended(opened, await self._decoded(request, body), outgoing)
            progress.end(read, events[-1])
            return events  # noqa: TRY300 # `else` would be after the `except`, far from what it follows
        except TransportError as error:
            progress.end(self._clock.monotonic())
            return self._ended(opened, [Failed(error.failure)], outgoing)
        finally:
            opened.close()

    def _ids(self) -> Iterator[str]:
        """Return ids for calls that the upstream sends without one; unique across turns."""
        token = self._clock.fresh_id()
        return (f"call_{token}{index}" for index in count())


class ObservedUpstream:
    """An upstream that notes the progress of its requests."""

    def __init__(self, upstream: HttpUpstream, progress: TurnProgress, shortcut: TextShortcut | None = None) -> None:
        """Take the upstream of one turn."""
        self._upstream: Final = upstream
        self._progress: Final = progress
        self._shortcut: Final = shortcut

    def open(self, request: Request) -> AsyncGenerator[list[Event], None]:
        """Send a request and yield the batches of its answer."""
        return self._upstream.open_observed(request, self._progress, self._shortcut)


class _DivertedText:
    """Decodes bytes in the call in which they arrive, and lets the shortcut carry what it can."""

    def __init__(self, decoder: EventDecoder, progress: TurnProgress, shortcut: TextShortcut) -> None:
        self._decoder: Final = decoder
        self._progress: Final = progress
        self._shortcut: Final = shortcut
        self._events: list[Event] = []
        self._size = 0
        """Bytes of the next piece that are decoded already: as these events, which the shortcut did not carry."""

    def takes(self, piece: bytes) -> bool:
        """Return whether the client has these bytes; if not, `feed` must get them."""
        if len(piece) > _MOST_BYTES:
            return False
        events = self._decoder.feed(piece)
        if self._shortcut.carries(events):
            self._progress.pieces += len(events)
            return True
        self._events, self._size = events, len(piece)
        return False

    def feed(self, piece: bytes) -> list[Event]:
        """Return the events of a piece."""
        if not self._size:
            return self._decoder.feed(piece)
        events, rest = self._events, piece[self._size :]
        self._events, self._size = [], 0
        return [*events, *self._decoder.feed(rest)] if rest else events


def _diverted(
    opened: Opened, decoder: EventDecoder, progress: TurnProgress, shortcut: TextShortcut
) -> Callable[[bytes], list[Event]]:
    """Let the shortcut have the bytes of a response first, if its connection can; return what decodes the others."""
    if opened.divert is None:
        return decoder.feed
    text = _DivertedText(decoder, progress, shortcut)
    opened.divert(text.takes)
    return text.feed


class _Pieces:
    """Reads a stream in pieces that a decoder handles in a few milliseconds, and lets other tasks run between (P8).

    A fast upstream fills its buffer while the decoder works: 256 KB of empty events took 600 ms in one step.
    """

    def __init__(self, opened: Opened, clock: Clock) -> None:
        self._next: Final = opened.read
        self._clock: Final = clock
        self._first: bytes | None = opened.first
        self._rest = b""

    async def read(self) -> bytes:
        """Return the next piece; empty at the end."""
        if self._rest:
            await self._clock.sleep(0)
        else:
            chunk = await self._next() if self._first is None else self._first
            self._first = None
            if len(chunk) <= _MOST_BYTES:
                return chunk
            self._rest = chunk
        piece, self._rest = self._rest[:_MOST_BYTES], self._rest[_MOST_BYTES:]
        return piece


def _is_small(events: list[Event]) -> bool:
    """Return whether the events are one short text, which needs no further look."""
    return len(events) == 1 and type(event := events[0]) is TextDelta and len(event.text) <= STEP


def _steps(events: list[Event]) -> list[list[Event]]:
    """Cut events into batches that a turn reads in a few milliseconds, so that other tasks can run between them (P8).

    One event of a stream may carry megabytes of text, and a reader needs half a second for 100 KB of broken calls.
    Read in one step, such an answer stops every other client of the process for that time.
    """
    if len(events) <= _MOST_EVENTS and not any(type(event) is TextDelta and len(event.text) > STEP for event in events):
        return [events] if events else []
    batches: list[list[Event]] = []
    room = 0
    for event in _pieces(events):
        if room <= 0:
            batches.append([])
            room = STEP
        batches[-1].append(event)
        room -= len(event.text) if isinstance(event, TextDelta) else _EVENT_SIZE
    return batches


def _pieces(events: list[Event]) -> Iterator[Event]:
    """Yield the events, with long text split into several. The reader's result does not depend on the splits."""
    for event in events:
        if type(event) is TextDelta and len(event.text) > STEP:
            yield from (TextDelta(event.text[start : start + STEP]) for start in range(0, len(event.text), STEP))
        else:
            yield event


def _is_stream(response: Opened, request: Request) -> bool:
    """Return whether the answer is a stream: by its media type, or by the request if that is missing or unknown."""
    found = media_type(response)
    return found in _STREAMS or (request.stream and found != JSON_TYPE)


def _broken_off(events: list[Event], why: Failure) -> list[Event]:
    """Return the last events of an answer that broke off. If its end had arrived, it is complete and not a failure."""
    match events:
        case [*before, Failed(usage=usage)]:
            return [*before, Failed(why, usage)]
        case _:
            return events


async def list_models(upstream: HttpUpstream) -> list[str]:
    """Return the names of the models that an upstream lists. Raises `TransportError`, also if the list is malformed."""
    body = await upstream.get(upstream.wire.models_path)
    try:
        return upstream.wire.decode_models(body)
    except BadField as error:
        message = f"the upstream's list of models cannot be read: {error}"
        raise TransportError(Failure(FailureKind.OTHER, message, 502)) from None
