"""Sends requests to the servers of an upstream: to which one, when again, and what it says about their health.

`replicas.py` decides; this module does the I/O. A request is sent again only before the first byte of an answer, and
only where that can help: no connection, overload, a rate limit. After the first byte the client may have seen part of
the answer, and a second one could differ. Another server is tried at once. The same server is tried after a pause; its
`Retry-After` is respected up to a limit, and if it is longer, the client gets the error and decides.

All retries of an upstream share one budget (POOL-4), so that they cannot multiply the load when everything fails.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final, TypeAlias

from toolspeak.ir.event import Event, Failed, Finished
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.quirks import QUIRKS, Quirks
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.redaction import Redactor
from toolspeak.runtime.replicas import Replica, ReplicaPool
from toolspeak.runtime.transport import (
    DEFAULT_TIMEOUTS,
    IN_BACKGROUND,
    Divert,
    Headers,
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
_SHORT_REST: Final = 1.0
"""Seconds for which other servers are preferred after a rate limit that names no time."""
_FIRST_ERROR, _FIRST_REFUSAL, _FIRST_FAULT = 300, 400, 500
"""Statuses. A redirect is an error here: it could lead a key elsewhere."""
_PAGE = "text/html"
"""With a wrong base URL a server may answer 200 with a web page: that is an error, not an empty answer."""
JSON_TYPE: Final = "application/json"
TRACEPARENT: Final = "traceparent"
MOST_OF_AN_ERROR, MOST = 1 << 20, 64 << 20
"""Bytes that are read of an error, and of an answer that is not streamed."""
_SOON = 5.0
"""Seconds for requests that no model works on, such as the list of models."""
_VERSION = re.compile(r"/v\d{1,2}(?:alpha|beta)?\d{0,2}\Z")
"""The version at the end of a base URL: `/v1`, `/v1beta`."""
_OWN_API = "/api/"
"""Paths that only Ollama has, and that have no version."""
_PASSES = frozenset((FailureKind.TRANSIENT, FailureKind.RATE_LIMITED))
"""Kinds of failures that pass by themselves, so that a retry can help."""
_OWN_FAULTS: Final = frozenset((FailureKind.TRANSIENT, FailureKind.TIMEOUT, FailureKind.DISCONNECTED))
"""Kinds of failures that are the server's, and not the request's."""


@dataclass(frozen=True, slots=True)
class UpstreamAddress:
    """The URLs of an upstream, and how to send requests to it.

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
    more_urls: tuple[str, ...] = ()
    """Further servers with the same models and the same key."""
    passes_traceparent: bool = False
    """Whether its servers get the `traceparent` of turns: it tells them which requests belong together."""

    def new_pool(self) -> ReplicaPool:
        """Return a pool of its servers, all of them in service."""
        return ReplicaPool([url.rstrip("/") for url in (self.url, *self.more_urls)])


@dataclass(frozen=True, slots=True)
class ServerPage:
    """A small page of a server."""

    content_type: str
    body: bytes


class Opened:
    """A response of a replica. `close` or `end` must be called: until then the request counts as in flight."""

    def __init__(self, response: Response, replica: Replica, clock: Clock, pool: ReplicaPool, first: bytes) -> None:
        """Take the response; `first` are the bytes of it that have been read already."""
        self.status: Final = response.status
        self.headers: Final[Mapping[str, str]] = response.headers
        self.read: Final = response.read  # not a method: it would cost each chunk of each stream a coroutine
        # Asked for by name: Python 3.11 takes 10 µs and more to check whether an object has a protocol.
        self.divert: Final[Divert | None] = getattr(response, "divert", None)
        self.first: Final = first
        self._response: Final = response
        self._replica: Final = replica
        self._clock: Final = clock
        self._pool: Final = pool
        self._is_open = True

    def close(self) -> None:
        """Stop the response: the connection is closed, unless the body was read to its end."""
        self._release()
        self._response.close()

    def end(self) -> None:
        """Stop reading after the last event. The connection is reused if the end of the body arrives soon."""
        self._release()
        self._response.end()

    def judge(self, last: Event) -> None:
        """Note what the last event of the answer says about the health of the server."""
        if isinstance(last, Finished):
            self._replica.succeed(self._clock.monotonic())
        elif isinstance(last, Failed) and last.failure.kind in _OWN_FAULTS:
            self._pool.fail(self._replica, self._clock.monotonic())

    def _release(self) -> None:
        if self._is_open:
            self._is_open = False
            self._replica.in_flight -= 1


@dataclass(frozen=True, slots=True)
class _Refused:
    failure: Failure
    again: bool
    """Whether a retry can help."""
    is_answer: bool = True
    """Whether the server answered; False if the connection failed."""
    is_down: bool = False
    """Whether no connection could be made."""


_Send: TypeAlias = Callable[[Replica], Awaitable[Opened | _Refused]]


class ReplicaClient:
    """Sends requests to one upstream."""

    def __init__(
        self, transport: UpstreamTransport, wire: Wire, address: UpstreamAddress, pool: ReplicaPool, clock: Clock
    ) -> None:
        """Take the connections, the wire, the address, and the servers of that address."""
        self._transport: Final = transport
        self._wire: Final = wire
        self._address: Final = address
        self._headers: Final[Headers] = (("content-type", JSON_TYPE), *address.headers)
        self._redactor: Final = Redactor(address.headers, address.public)
        self._whole_timeouts: Final = replace(address.timeouts, first_byte=address.timeouts.total)
        """Timeouts of requests without a stream: the server sends the first byte when the whole answer is generated."""
        self._clock: Final = clock
        self.pool: Final = pool
        self._probes: Final[set[asyncio.Task[None]]] = set()
        """The running probes of ejected servers; each ends after `2 * _SOON` seconds."""

    async def open(
        self, outgoing: EncodedRequest, key: str, progress: TurnProgress, *, is_streamed: bool
    ) -> Opened | Failure:
        """Send a request for a turn, and return its response when the first bytes have arrived.

        Requests with the same `key` go to the same server while that is possible.
        """
        timeouts = self._address.timeouts if is_streamed else self._whole_timeouts

        async def send(replica: Replica) -> Opened | _Refused:
            return await self._try(replica, outgoing, timeouts, progress)

        opened = await self._send(send, key, progress)
        return opened.failure if isinstance(opened, _Refused) else opened

    def _traced(self, traceparent: str) -> Headers:
        return ((TRACEPARENT, traceparent),) if traceparent and self._address.passes_traceparent else ()

    async def forward(self, path: str, headers: Headers, body: bytes, traceparent: str = "") -> Response:
        """Send a body as it is to another endpoint, and return the response, which the caller closes.

        `path` has no version: `/api/…` is relative to the server, any other to the versioned base. `headers` are added
        to the upstream's own. Raises `TransportError`, also for an error status. Only a request that cannot have
        reached the server is sent again: it may be expensive, and no rule says that two are the same as one.
        """
        outgoing = EncodedRequest(path, body)
        sent = (*headers, *self._traced(traceparent), *self._address.headers)

        async def send(replica: Replica) -> Opened | _Refused:
            base = _root(replica.url) if path.startswith(_OWN_API) else self._versioned(replica.url)
            try:
                response = await self._transport.send("POST", base + path, sent, body, self._whole_timeouts)
            except TransportError as error:
                return self._broken(error, again=not error.connected)
            if response.status < _FIRST_ERROR and media_type(response) != _PAGE:
                return Opened(response, replica, self._clock, self.pool, b"")
            return replace(await self._refusal(response, outgoing), again=False)

        opened = await self._send(send, "", TurnProgress())
        if isinstance(opened, _Refused):
            raise TransportError(opened.failure, connected=not opened.is_down)
        return opened

    async def get(self, path: str, body: bytes = b"") -> bytes:
        """Fetch a small page, such as the list of models, with short timeouts; with a body, it is a POST.

        A path that starts with a slash is relative to the server, any other to the base URL. The first server that is
        in service gets the request, and the next one if there is no connection. Raises `TransportError`, also for an
        error status.
        """
        self._start_probes()
        tried: list[Replica] = []
        while True:
            replica = self.pool.first(self._clock.monotonic(), tried)
            try:
                response = await self._fetch(replica, path, body)
            except TransportError as error:
                now = self._clock.monotonic()
                self.pool.fail(replica, now, is_down=not error.connected)
                tried.append(replica)
                if self.pool.has_other(now, tried):
                    continue
                raise TransportError(self._redactor.clean_failure(error.failure), connected=error.connected) from None
            return await self._page(response, EncodedRequest(path, body))

    async def get_of(self, number: int, path: str, headers: Headers, most: int) -> ServerPage:
        """Fetch a page of one server, the first being 0, in service or not; `path` is relative to the server.

        It says nothing about the health of the server, and is not sent again. Raises `TransportError`, also for an
        error status and for a page of more than `most` bytes.
        """
        replica = self.pool.replicas[number]
        url, timeouts = _root(replica.url) + path, _soon(self._address.timeouts)
        try:
            sent = (*headers, *self._address.headers)
            response = await self._transport.send("GET", url, sent, b"", timeouts)
            body = await self._page(response, EncodedRequest(path, b""), most)
        except TransportError as error:
            raise TransportError(self._redactor.clean_failure(error.failure), connected=error.connected) from None
        return ServerPage(response.headers.get("content-type", ""), body)

    def checked(self, events: list[Event], outgoing: EncodedRequest) -> list[Event]:
        """Return the events; a failure at their end is cleaned of secrets and marked if it echoes the request."""
        match events[-1]:
            case Failed(failure, usage):
                return [*events[:-1], Failed(self._judged(failure, outgoing), usage)]
            case _:
                return events

    @property
    def is_out(self) -> bool:
        """Return whether no server is in service. Those whose time is up are probed, as requests would do."""
        self._start_probes()
        return self.pool.is_out()

    # ---------------------------------------------------------------- tries

    async def _send(self, send: _Send, key: str, progress: TurnProgress) -> Opened | _Refused:
        self._start_probes()
        pool, now = self.pool, self._clock.monotonic
        pool.budget.count_request(now())
        suspects: list[Replica] = []
        tried: list[Replica] = []
        for number in count():
            replica = pool.take(now(), key, self._clock.chance() if not key else 0.0, tried)
            opened: Opened | _Refused | None = None
            try:
                opened = await send(replica)
            finally:
                if not isinstance(opened, Opened):
                    replica.in_flight -= 1
            if isinstance(opened, Opened):
                self._blame(suspects)
                return opened
            self._note(replica, opened, suspects)
            tried.append(replica)
            if not await self._waited(opened, number, tried, progress):
                self._blame(suspects if len(set(suspects)) == 1 else [])
                return opened
        raise AssertionError  # count() has no end

    async def _waited(self, refused: _Refused, number: int, tried: list[Replica], progress: TurnProgress) -> bool:
        """Return whether to send the request again, after the pause before that."""
        has_other = self.pool.has_other(self._clock.monotonic(), tried)
        pause = self._pause(refused, number, has_other=has_other)
        if pause is None or not self.pool.budget.spend(self._clock.monotonic()):
            return False
        if has_other:
            return True
        tried.clear()  # all have failed it: the same ones may be tried again
        progress.pause = refused.failure.kind
        await self._clock.sleep(pause)
        progress.pause = ""
        return True

    def _note(self, replica: Replica, refused: _Refused, suspects: list[Replica]) -> None:
        """Note what a refusal says about the health of a server."""
        failure, now = refused.failure, self._clock.monotonic()
        if not refused.is_answer:
            self.pool.fail(replica, now, is_down=refused.is_down)
        elif failure.kind in _PASSES and failure.retry_after is not None:
            replica.rest(now, failure.retry_after)
        elif failure.kind is FailureKind.RATE_LIMITED:
            replica.rest(now, _SHORT_REST)
        elif failure.kind in _OWN_FAULTS:
            suspects.append(replica)

    def _blame(self, suspects: list[Replica]) -> None:
        """Count an error status against the servers that answered with it.

        Not if another server failed the same request as well: it is then the request that no server can bear, and one
        client could eject all servers with it.
        """
        for replica in set(suspects):
            self.pool.fail(replica, self._clock.monotonic())

    async def _try(
        self, replica: Replica, outgoing: EncodedRequest, timeouts: Timeouts, progress: TurnProgress
    ) -> Opened | _Refused:
        url = f"{replica.url}/{outgoing.path}"
        try:
            headers = (*self._traced(progress.traceparent), *self._headers)
            response = await self._transport.send("POST", url, headers, outgoing.body, timeouts)
        except TransportError as error:
            return self._broken(error)
        if response.status >= _FIRST_ERROR or media_type(response) == _PAGE:
            return await self._refusal(response, outgoing)
        # The first bytes are read here. vLLM and SGLang send the head of a stream at once, and read the prompt for
        # seconds after it: a server that dies in that time has shown the client nothing.
        progress.has_headers = True
        try:
            first = await response.read()
        except TransportError as error:
            progress.has_headers = False
            response.close()
            return self._broken(error)
        except BaseException:  # cancelled: the client has hung up
            response.close()
            raise
        return Opened(response, replica, self._clock, self.pool, first)

    def _broken(self, error: TransportError, *, again: bool | None = None) -> _Refused:
        failure = self._redactor.clean_failure(error.failure)
        if again is None:
            # Servers close idle connections at any time, and the next request finds out: it is sent again. A timeout
            # after the connection is not repeated: the model may have worked all the time, and would again.
            again = not error.connected or error.failure.kind is FailureKind.DISCONNECTED
        return _Refused(failure, again, is_answer=False, is_down=not error.connected)

    async def _refusal(self, response: Response, outgoing: EncodedRequest) -> _Refused:
        try:
            failure = self._failure(response, await _most_of(response), outgoing)
        finally:
            response.close()
        return _Refused(failure, again=failure.kind in _PASSES)

    def _pause(self, refused: _Refused, tried: int, *, has_other: bool) -> float | None:
        """Return the seconds to wait before the next try; None if the request is not sent again."""
        if not refused.again or tried >= self._address.retries:
            return None
        if has_other:  # another server owes nothing to the `Retry-After` of this one
            return 0.0
        asked = refused.failure.retry_after
        if (asked or 0) > _LONGEST_ASKED:
            return None
        grown = min(_FIRST_PAUSE * float(2**tried), _LONGEST_PAUSE)
        # Jitter on top of Retry-After, never below it: clients that got the same value would otherwise all return at
        # one moment, and one that returns too early is refused again.
        return (asked or 0.0) + grown * (0.5 + self._clock.chance() / 2)

    # ---------------------------------------------------------------- pages and probes

    def _start_probes(self) -> None:
        """Probe the ejected servers whose time is up, beside the request that notices it (POOL-3)."""
        for replica in self.pool.due(self._clock.monotonic()):
            task = asyncio.get_running_loop().create_task(self._probe(replica))
            self._probes.add(task)
            task.add_done_callback(self._probes.discard)

    async def _probe(self, replica: Replica) -> None:
        """Ask for the list of models. A server that refuses it (401, 404) is there, so that it may serve turns."""
        IN_BACKGROUND.set(True)  # in the context of this task alone
        answers: bool | None = None
        try:
            response = await self._fetch(replica, self._wire.models_path, b"")
            response.close()
            answers = response.status < _FIRST_FAULT
        except TransportError:
            answers = False
        finally:
            replica.end_probe(self._clock.monotonic(), answers=answers)

    async def _fetch(self, replica: Replica, path: str, body: bytes) -> Response:
        url = _root(replica.url) + path if path.startswith("/") else f"{replica.url}/{path}"
        method, headers = ("POST", self._headers) if body else ("GET", self._address.headers)
        return await self._transport.send(method, url, headers, body, _soon(self._address.timeouts))

    async def _page(self, response: Response, outgoing: EncodedRequest, most: int = MOST) -> bytes:
        try:
            page = (
                await _most_of(response) if response.status >= _FIRST_ERROR else await whole_body(response, most=most)
            )
        finally:
            response.close()
        if response.status >= _FIRST_ERROR:
            raise TransportError(self._failure(response, page, outgoing))
        return page

    def _versioned(self, url: str) -> str:
        """Return the base of endpoints in OpenAI's form. Ollama's own URL has no version, and serves them below /v1."""
        return f"{_root(url)}/v1" if self._wire.name == "ollama" else url

    # ---------------------------------------------------------------- failures

    def _failure(self, response: Response, body: bytes, outgoing: EncodedRequest) -> Failure:
        if response.status < _FIRST_REFUSAL:
            is_page = response.status < _FIRST_ERROR
            what = "a web page" if is_page else f"a redirect ({response.status}), which is not followed"
            message = f"the upstream answers with {what}: is its URL right?"
            return Failure(FailureKind.OTHER, message, response.status)
        # Remove secrets before decoding: decoding shortens the text, and a secret that is cut in two is not found.
        failure = self._wire.decode_failure(response.status, self._redactor.clean_bytes(body))
        if failure.retry_after is None:
            failure = replace(failure, retry_after=_seconds(response.headers.get("retry-after", "")))
        return self._judged(failure, outgoing)

    def _judged(self, failure: Failure, outgoing: EncodedRequest) -> Failure:
        """Remove secrets (SAFE-6), and mark a failure whose class rests on words of the request (CAP-6)."""
        echoed = rests_on_echo(failure, outgoing.path, outgoing.body)
        return self._redactor.clean_failure(replace(failure, echoed=True) if echoed else failure)


def media_type(response: Response) -> str:
    """Return the media type of a response, without its parameters."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


async def whole_body(response: Response, first: bytes = b"", most: int | None = None) -> bytes:
    """Read a body, whose `first` bytes are read already. Raises `TransportError`, also above a limit."""
    pieces: list[bytes] = []
    size, chunk = 0, first
    most = MOST if most is None else most
    while chunk := chunk or await response.read():
        pieces.append(chunk)
        size += len(chunk)
        chunk = b""
        if size > most:
            raise TransportError(Failure(FailureKind.OTHER, f"the upstream's answer is over {most} bytes", 502))
    return b"".join(pieces)


def _root(url: str) -> str:
    """Return the base of the server's own pages (`/props`, `/api/show`), which are not under its wire's version."""
    return _VERSION.sub("", url)


def _soon(timeouts: Timeouts) -> Timeouts:
    """Return shorter timeouts, for requests that no model works on; configured ones that are shorter are kept."""
    return replace(
        timeouts,
        connect=min(timeouts.connect, _SOON),
        first_byte=min(timeouts.first_byte, _SOON),
        idle=min(timeouts.idle, _SOON),
        total=min(timeouts.total, 2 * _SOON),
    )


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
