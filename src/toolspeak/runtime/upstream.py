"""An upstream over HTTP: encodes requests in its wire, sends them by a transport, and decodes the answers.

A request is sent again only before the first byte of an answer, and only where that can help: no connection, overload,
a rate limit. After the first byte the client may have seen part of the answer, and a second one could differ. A
`Retry-After` of the upstream is respected up to a limit. If it is longer, the client gets the error and decides.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

from toolspeak.errors import BadField
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.event import Event, Failed, Finished, TextDelta
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.quirks import QUIRKS, Quirks
from toolspeak.ir.request import Request
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.offload import THREADED, Run, at_once
from toolspeak.runtime.redaction import Redactor
from toolspeak.runtime.transport import (
    DEFAULT_TIMEOUTS,
    Headers,
    LoadsModels,
    Response,
    Timeouts,
    TransportError,
    UpstreamTransport,
)
from toolspeak.runtime.turn_progress import TurnProgress
from toolspeak.wires import EncodedRequest, Wire, rests_on_echo

RETRIES = 2
_FIRST_PAUSE, _LONGEST_PAUSE, _LONGEST_ASKED = 0.5, 8.0, 20.0
"""Seconds: the first pause before a retry (it doubles), the longest, and the longest `Retry-After` that is awaited."""
_FIRST_ERROR, _FIRST_REFUSAL = 300, 400  # a redirect is an error here: it could lead a key elsewhere
_PAGE = "text/html"
"""With a wrong base URL a server may answer 200 with a web page: that is an error, not an empty answer."""
_STREAMS = ("text/event-stream", "application/x-ndjson", "application/jsonl")
_JSON = "application/json"
MOST_OF_AN_ERROR, MOST = 1 << 20, 64 << 20
"""Bytes that are read of an error, and of an answer that is not streamed."""
STEP: Final = 2048
"""Characters of text that a turn reads before other tasks may run."""
_EVENT_SIZE: Final = 16
"""Characters for which an event without text counts."""
_MOST_BYTES: Final = 8192
"""Bytes of a stream that a decoder reads before other tasks may run."""
_MOST_EVENTS: Final = STEP // _EVENT_SIZE
_SOON = 5.0
"""Seconds for requests that no model works on, such as the list of models."""
_VERSION = re.compile(r"/v\d{1,2}(?:alpha|beta)?\d{0,2}\Z")
"""The version at the end of a base URL: `/v1`, `/v1beta`."""
_OWN_API = "/api/"
"""Paths that only Ollama has, and that have no version."""
_PASSES = frozenset((FailureKind.TRANSIENT, FailureKind.RATE_LIMITED))
"""Kinds of failures that pass by themselves, so that a retry can help."""


@dataclass(frozen=True, slots=True)
class UpstreamAddress:
    """The URL of an upstream, and how to send requests to it.

    The headers contain its key, so they are not in the repr: tracebacks with local variables, as error trackers such as
    Sentry record them, contain reprs.
    """

    url: str
    headers: Headers = field(repr=False)
    quirks: Quirks = QUIRKS
    timeouts: Timeouts = DEFAULT_TIMEOUTS
    retries: int = RETRIES
    public: Headers = ()
    """Those of the headers whose values are not secret: the headers of presets."""


class HttpUpstream:
    """Sends requests to one upstream, and returns answers as batches of events. Copies share the connections."""

    def __init__(
        self,
        transport: UpstreamTransport,
        wire: Wire,
        address: UpstreamAddress,
        clock: Clock = CLOCK,
        prepare: Run = at_once,
    ) -> None:
        """Take the connections, the wire and the address. `prepare` decides where requests are encoded."""
        self._transport: Final = transport
        self.wire: Final = wire
        self._address: Final = address
        self._headers: Final[Headers] = (("content-type", _JSON), *address.headers)
        self._redactor: Final = Redactor(address.headers, address.public)
        self.url: Final = address.url.rstrip("/")
        self._base: Final = self.url + "/"
        self._root: Final = _VERSION.sub("", self.url)
        """The base of the server's own pages (`/props`, `/api/show`), which are not under the version of its wire."""
        self._versioned: Final = f"{self._root}/v1" if wire.name == "ollama" else self.url
        """The base of endpoints in OpenAI's form. Ollama's own URL has no version, and it serves them below /v1."""
        self._whole_timeouts: Final = replace(address.timeouts, first_byte=address.timeouts.total)
        """Timeouts of requests without a stream: the server sends the first byte when the whole answer is generated."""
        self._clock: Final = clock
        self._prepare: Final = prepare

    @property
    def model_state(self) -> str:
        """Return whether the upstream's model is loaded, where toolspeak itself loads it; else an empty string."""
        return self._transport.model_state(self._base) if isinstance(self._transport, LoadsModels) else ""

    def with_quirks(self, quirks: Quirks) -> "HttpUpstream":
        """Return the same upstream with the quirks of one of its models."""
        if quirks == self._address.quirks:
            return self
        address = replace(self._address, quirks=quirks)
        return HttpUpstream(self._transport, self.wire, address, self._clock, self._prepare)

    def encoding(self, prepare: Run) -> "HttpUpstream":
        """Return the same upstream for a request that `prepare` encodes, for example in a thread."""
        if prepare is self._prepare:
            return self
        return HttpUpstream(self._transport, self.wire, self._address, self._clock, prepare)

    def constrained(self, form: ConstraintForm) -> "HttpUpstream":
        """Return the same upstream, with constraints on the answer written in this form."""
        quirks = self._address.quirks
        return self if form is quirks.constraint else self.with_quirks(replace(quirks, constraint=form))

    def open(self, request: Request) -> AsyncGenerator[list[Event], None]:
        """Send a request and yield the batches of its answer, which end with exactly one Finished or Failed.

        Errors of the upstream and the connection are events (`Failed`), never exceptions.
        """
        return self.open_observed(request, TurnProgress())

    async def open_observed(self, request: Request, progress: TurnProgress) -> AsyncGenerator[list[Event], None]:
        """Do the same as `open`, and keep `progress` up to date while the answer is awaited and read."""
        outgoing = await self._prepare(lambda: self.wire.encode_request(request, self._address.quirks))
        now = self._clock.monotonic
        progress.sent(now(), len(outgoing.body), is_streamed=request.stream)
        timeouts = self._address.timeouts if request.stream else self._whole_timeouts
        opened = await self._opened(outgoing, timeouts, progress)
        if isinstance(opened, Failure):
            progress.end(now())
            yield [Failed(opened)]
            return
        progress.has_headers = True
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
            # Each batch is yielded before the next bytes are read: a consumer that does not take them slows the
            # upstream down, so that memory stays bounded.
            while piece := await read():
                events = decoder.feed(piece)
                progress.pieces += len(events)
                if events and type(events[-1]) is Finished:
                    close = opened.end  # the answer is complete, so the connection can be reused
                    progress.end(now(), events[-1])
                for batch in _steps(events):
                    yield self._checked(batch, outgoing) if type(batch[-1]) is Failed else batch
                    await self._let_others_run(batch, events)
            if events := decoder.finish():
                progress.end(now(), events[-1])
                yield self._checked(events, outgoing)
        except TransportError as error:
            if events := decoder.finish():
                progress.end(now(), events[-1])
                yield self._checked(_broken_off(events, error.failure), outgoing)
        finally:
            close()
            progress.end(now())  # the turn stopped reading: it has seen enough, or its client is gone

    async def _let_others_run(self, batch: list[Event], events: list[Event]) -> None:
        if batch is not events:  # one of several: an ordinary chunk is one batch, and costs no pass of the event loop
            await self._clock.sleep(0)

    async def get(self, path: str, body: bytes = b"") -> bytes:
        """Fetch a small page, such as the list of models, with short timeouts; with a body, it is a POST.

        A path that starts with a slash is relative to the server, any other to the base URL. Raises `TransportError`,
        also for an error status.
        """
        url = self._root + path if path.startswith("/") else self._base + path
        method, headers = ("POST", self._headers) if body else ("GET", self._address.headers)
        try:
            response = await self._transport.send(method, url, headers, body, _soon(self._address.timeouts))
        except TransportError as error:
            raise TransportError(self._redactor.clean_failure(error.failure), connected=error.connected) from None
        try:
            answer = await _most_of(response) if response.status >= _FIRST_ERROR else await _whole(response)
        finally:
            response.close()
        if response.status >= _FIRST_ERROR:
            raise TransportError(self._failure(response, answer, EncodedRequest(path, body)))
        return answer

    async def forward(self, path: str, headers: Headers, body: bytes) -> Response:
        """Send a body as it is to another endpoint of this server, and return the response, which the caller closes.

        `path` has no version: `/api/…` is relative to the server, any other to the versioned base. `headers` are added
        to the upstream's own. Raises `TransportError`, also for an error status. Only a request that cannot have
        reached the server is sent again: it may be expensive, and no rule says that two are the same as one.
        """
        base = self._root if path.startswith(_OWN_API) else self._versioned
        outgoing = EncodedRequest(path, body)
        for tried in count():
            try:
                response = await self._transport.send(
                    "POST", base + path, (*headers, *self._address.headers), body, self._whole_timeouts
                )
            except TransportError as error:
                failure = self._redactor.clean_failure(error.failure)
                pause = self._pause(_Refused(failure, again=not error.connected), tried)
                if pause is None:
                    raise TransportError(failure, connected=error.connected) from None
                await self._clock.sleep(pause)
                continue
            if response.status < _FIRST_ERROR and _media_type(response) != _PAGE:
                return response
            try:
                raise TransportError(self._failure(response, await _most_of(response), outgoing))
            finally:
                response.close()
        raise AssertionError  # count() has no end

    async def _decoded(self, request: Request, body: bytes) -> list[Event]:
        """Decode an answer that was not streamed; a large one in a thread, to keep the event loop responsive."""
        ids = self._ids()
        if len(body) <= THREADED:
            return self.wire.decode_turn(request, ids, body)
        return await asyncio.to_thread(self.wire.decode_turn, request, ids, body)

    async def _turn(
        self, response: Response, request: Request, outgoing: EncodedRequest, progress: TurnProgress
    ) -> list[Event]:
        """Read and decode an answer that is not streamed."""
        try:
            body = await _whole(response)
            read = self._clock.monotonic()
            events = self._checked(await self._decoded(request, body), outgoing)
            progress.end(read, events[-1])
            return events  # noqa: TRY300 # `else` would be after the `except`, far from what it follows
        except TransportError as error:
            progress.end(self._clock.monotonic())
            return self._checked([Failed(error.failure)], outgoing)
        finally:
            response.close()

    async def _opened(self, outgoing: EncodedRequest, timeouts: Timeouts, progress: TurnProgress) -> Response | Failure:
        for tried in count():
            opened = await self._tried(outgoing, timeouts)
            if not isinstance(opened, _Refused):
                return opened
            pause = self._pause(opened, tried)
            if pause is None:
                return opened.failure
            progress.pause = opened.failure.kind
            await self._clock.sleep(pause)
            progress.pause = ""
        raise AssertionError  # count() has no end

    async def _tried(self, outgoing: EncodedRequest, timeouts: Timeouts) -> "Response | _Refused":
        try:
            response = await self._transport.send(
                "POST", self._base + outgoing.path, self._headers, outgoing.body, timeouts
            )
            if response.status < _FIRST_ERROR and _media_type(response) != _PAGE:
                return response
        except TransportError as error:
            kind, failure = error.failure.kind, self._redactor.clean_failure(error.failure)
            # Servers close idle connections at any time, and the next request finds out: it is sent again. A timeout
            # after the connection is not repeated: the model may have worked all the time, and would again.
            return _Refused(failure, again=not error.connected or kind is FailureKind.DISCONNECTED)
        try:
            failure = self._failure(response, await _most_of(response), outgoing)
        finally:
            response.close()
        return _Refused(failure, again=failure.kind in _PASSES)

    def _failure(self, response: Response, body: bytes, outgoing: EncodedRequest) -> Failure:
        if response.status < _FIRST_REFUSAL:
            is_page = response.status < _FIRST_ERROR
            what = "a web page" if is_page else f"a redirect ({response.status}), which is not followed"
            message = f"the upstream answers with {what}: is its URL right?"
            return Failure(FailureKind.OTHER, message, response.status)
        # Remove secrets before decoding: decoding shortens the text, and a secret that is cut in two is not found.
        failure = self.wire.decode_failure(response.status, self._redactor.clean_bytes(body))
        if failure.retry_after is None:
            failure = replace(failure, retry_after=_seconds(response.headers.get("retry-after", "")))
        return self._judged(failure, outgoing)

    def _checked(self, events: list[Event], outgoing: EncodedRequest) -> list[Event]:
        """Return the events; a failure at their end is cleaned of secrets and marked if it echoes the request."""
        match events[-1]:
            case Failed(failure, usage):
                return [*events[:-1], Failed(self._judged(failure, outgoing), usage)]
            case _:
                return events

    def _judged(self, failure: Failure, outgoing: EncodedRequest) -> Failure:
        """Remove secrets (SAFE-6), and mark a failure whose class rests on words of the request (CAP-6)."""
        echoed = rests_on_echo(failure, outgoing.path, outgoing.body)
        return self._redactor.clean_failure(replace(failure, echoed=True) if echoed else failure)

    def _pause(self, refused: "_Refused", tried: int) -> float | None:
        """Return the seconds to wait before the next try; None if the request is not sent again."""
        asked = refused.failure.retry_after
        if not refused.again or tried >= self._address.retries or (asked or 0) > _LONGEST_ASKED:
            return None
        grown = min(_FIRST_PAUSE * float(2**tried), _LONGEST_PAUSE)
        # Jitter on top of Retry-After, never below it: clients that got the same value would otherwise all return at
        # one moment, and one that returns too early is refused again.
        return (asked or 0.0) + grown * (0.5 + self._clock.chance() / 2)

    def _ids(self) -> Iterator[str]:
        """Return ids for calls that the upstream sends without one; unique across turns."""
        token = self._clock.fresh_id()
        return (f"call_{token}{index}" for index in count())


class ObservedUpstream:
    """An upstream that notes the progress of its requests."""

    def __init__(self, upstream: HttpUpstream, progress: TurnProgress) -> None:
        """Take the upstream of one turn."""
        self._upstream: Final = upstream
        self._progress: Final = progress

    def open(self, request: Request) -> AsyncGenerator[list[Event], None]:
        """Send a request and yield the batches of its answer."""
        return self._upstream.open_observed(request, self._progress)


class _Pieces:
    """Reads a stream in pieces that a decoder handles in a few milliseconds, and lets other tasks run between (P8).

    A fast upstream fills its buffer while the decoder works: 256 KB of empty events took 600 ms in one step.
    """

    def __init__(self, response: Response, clock: Clock) -> None:
        self._response: Final = response
        self._clock: Final = clock
        self._rest = b""

    async def read(self) -> bytes:
        """Return the next piece; empty at the end."""
        if self._rest:
            await self._clock.sleep(0)
        else:
            chunk = await self._response.read()
            if len(chunk) <= _MOST_BYTES:
                return chunk
            self._rest = chunk
        piece, self._rest = self._rest[:_MOST_BYTES], self._rest[_MOST_BYTES:]
        return piece


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


@dataclass(frozen=True, slots=True)
class _Refused:
    failure: Failure
    again: bool
    """Whether a retry can help."""


def _media_type(response: Response) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _is_stream(response: Response, request: Request) -> bool:
    """Return whether the answer is a stream: by its media type, or by the request if that is missing or unknown."""
    media_type = _media_type(response)
    return media_type in _STREAMS or (request.stream and media_type != _JSON)


def _broken_off(events: list[Event], why: Failure) -> list[Event]:
    """Return the last events of an answer that broke off. If its end had arrived, it is complete and not a failure."""
    match events[-1]:
        case Failed(usage=usage):
            return [*events[:-1], Failed(why, usage)]
        case _:
            return events


def _soon(timeouts: Timeouts) -> Timeouts:
    """Return shorter timeouts, for requests that no model works on; configured ones that are shorter are kept."""
    return replace(
        timeouts,
        connect=min(timeouts.connect, _SOON),
        first_byte=min(timeouts.first_byte, _SOON),
        idle=min(timeouts.idle, _SOON),
        total=min(timeouts.total, 2 * _SOON),
    )


async def _whole(response: Response) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while chunk := await response.read():
        pieces.append(chunk)
        size += len(chunk)
        if size > MOST:
            raise TransportError(Failure(FailureKind.OTHER, f"the upstream's answer is over {MOST} bytes", 502))
    return b"".join(pieces)


async def _most_of(response: Response) -> bytes:
    """Read the body of an error as far as it arrives: the status alone is enough to classify it."""
    body = bytearray()
    try:
        while len(body) < MOST_OF_AN_ERROR and (chunk := await response.read()):
            body += chunk
    except TransportError:
        pass
    return bytes(body[:MOST_OF_AN_ERROR])


def _seconds(text: str) -> float | None:
    """Parse `Retry-After` in seconds; None for its other form, a date."""
    return float(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None  # noqa: PLR2004 # ten digits


async def list_models(upstream: HttpUpstream) -> list[str]:
    """Return the names of the models that an upstream lists. Raises `TransportError`, also if the list is malformed."""
    body = await upstream.get(upstream.wire.models_path)
    try:
        return upstream.wire.decode_models(body)
    except BadField as error:
        message = f"the upstream's list of models cannot be read: {error}"
        raise TransportError(Failure(FailureKind.OTHER, message, 502)) from None
