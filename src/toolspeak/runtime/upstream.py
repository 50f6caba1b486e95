"""An upstream over HTTP: a wire on top of a transport.

It is tried again only before its first byte, and only where that can help: no connection, overloaded, rate limited.
A pause that the upstream asks for is kept, up to a limit; a longer one is the client's to decide.
"""

import re
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.event import Event, Failed, Finished
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.quirks import QUIRKS, Quirks
from toolspeak.ir.request import Request
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.transport import WAITS, Broken, Headers, Reply, Transport, Waits
from toolspeak.wires import Outgoing, Wire

RETRIES = 2
_FIRST_PAUSE, _LONGEST_PAUSE, _LONGEST_ASKED = 0.5, 8.0, 20.0
_FIRST_ERROR, _FIRST_REFUSAL = 300, 400  # a redirect is an error here: it could lead a key elsewhere
_PAGE = "text/html"
_STREAMS = ("text/event-stream", "application/x-ndjson", "application/jsonl")
_JSON = "application/json"
MOST_OF_AN_ERROR, MOST = 1 << 20, 64 << 20
"""Bytes that are read of an error, and of an answer that is no stream."""
_SOON = 5.0
_SECRET_WORDS = ("auth", "key", "token", "secret", "cookie")
_SHORTEST_KEY = 6
_VERSION = re.compile(r"/v\d{1,2}(?:alpha|beta)?\d{0,2}\Z")
_PASSES = frozenset((FailureKind.TRANSIENT, FailureKind.RATE_LIMITED))


@dataclass(frozen=True, slots=True)
class Address:
    """Where an upstream is, and how it wants to be spoken to. Its headers carry its key."""

    url: str
    headers: Headers = field(repr=False)
    quirks: Quirks = QUIRKS
    waits: Waits = WAITS
    retries: int = RETRIES


class HttpUpstream:
    """Answers requests, a batch of events at a time."""

    def __init__(self, transport: Transport, wire: Wire, address: Address, clock: Clock = CLOCK) -> None:
        """Connect nothing yet."""
        self._transport: Final = transport
        self.wire: Final = wire
        self._address: Final = address
        self._headers: Final[Headers] = (("content-type", _JSON), *address.headers)
        secrets = (_secret(name, value) for name, value in address.headers)
        self._secrets: Final = tuple(filter(None, secrets))
        self.url: Final = address.url.rstrip("/")
        self._base: Final = self.url + "/"
        self._root: Final = _VERSION.sub("", self.url)
        """Where pages of the server itself are, beside those of its wire."""
        self._whole_waits: Final = replace(address.waits, first_byte=address.waits.total)
        """An answer in one piece has its first byte at its end."""
        self._clock: Final = clock

    def with_quirks(self, quirks: Quirks) -> "HttpUpstream":
        """Return the same upstream for a model that demands something else."""
        if quirks == self._address.quirks:
            return self
        return HttpUpstream(self._transport, self.wire, replace(self._address, quirks=quirks), self._clock)

    def constrained(self, form: ConstraintForm) -> "HttpUpstream":
        """Return the same upstream, told in this form what an answer must look like."""
        quirks = self._address.quirks
        return self if form is quirks.constraint else self.with_quirks(replace(quirks, constraint=form))

    async def open(self, request: Request) -> AsyncGenerator[list[Event], None]:
        """Send a request; the batches of its answer end with one Finished or Failed."""
        outgoing = self.wire.encode_request(request, self._address.quirks)
        opened = await self._opened(outgoing, self._address.waits if request.stream else self._whole_waits)
        if isinstance(opened, Failure):
            yield [Failed(opened)]
            return
        if not _is_stream(opened, request):
            yield await self._turn(opened, request)
            return
        close = opened.close
        decoder = self.wire.new_decoder(request, self._ids())
        try:
            while chunk := await opened.read():
                if events := decoder.feed(chunk):
                    last = type(events[-1])
                    if last is Finished:
                        close = opened.end  # who has the last event asks for no more
                    elif last is Failed:
                        events = self._discreetly(events)
                    yield events
            if events := decoder.finish():
                yield self._discreetly(events)
        except Broken as broken:
            if events := decoder.finish():
                yield _broken_off(events, broken.failure)
        finally:
            close()

    async def get(self, path: str, body: bytes = b"") -> bytes:
        """Fetch something small that is no turn, such as the list of models, and soon; what has a body is posted.

        A path with a slash in front is one of the server, else it follows the base URL.
        """
        url = self._root + path if path.startswith("/") else self._base + path
        method, headers = ("POST", self._headers) if body else ("GET", self._address.headers)
        reply = await self._transport.send(method, url, headers, body, _soon(self._address.waits))
        try:
            answer = await _most_of(reply) if reply.status >= _FIRST_ERROR else await _whole(reply)
        finally:
            reply.close()
        if reply.status >= _FIRST_ERROR:
            raise Broken(self._failure(reply, answer))
        return answer

    async def _turn(self, reply: Reply, request: Request) -> list[Event]:
        """Read an answer that comes in one piece."""
        try:
            return self._discreetly(self.wire.decode_turn(request, self._ids(), await _whole(reply)))
        except Broken as broken:
            return [Failed(broken.failure)]
        finally:
            reply.close()

    async def _opened(self, outgoing: Outgoing, waits: Waits) -> Reply | Failure:
        for tried in count():
            opened = await self._tried(outgoing, waits)
            if not isinstance(opened, _Refused):
                return opened
            pause = self._pause(opened, tried)
            if pause is None:
                return opened.failure
            await self._clock.sleep(pause)
        raise AssertionError  # count() has no end

    async def _tried(self, outgoing: Outgoing, waits: Waits) -> "Reply | _Refused":
        try:
            reply = await self._transport.send("POST", self._base + outgoing.path, self._headers, outgoing.body, waits)
            if reply.status < _FIRST_ERROR and _media_type(reply) != _PAGE:
                return reply
        except Broken as broken:
            kind = broken.failure.kind
            return _Refused(broken.failure, again=not broken.connected or kind is FailureKind.DISCONNECTED)
        try:
            failure = self._failure(reply, await _most_of(reply))
        finally:
            reply.close()
        return _Refused(failure, again=failure.kind in _PASSES)

    def _failure(self, reply: Reply, body: bytes) -> Failure:
        if reply.status < _FIRST_REFUSAL:
            is_page = reply.status < _FIRST_ERROR
            what = "a web page" if is_page else f"a redirect ({reply.status}), which is not followed"
            message = f"the upstream answers with {what}: is its URL right?"
            return Failure(FailureKind.OTHER, message, reply.status)
        failure = self.wire.decode_failure(reply.status, body)
        if failure.retry_after is None:
            failure = replace(failure, retry_after=_seconds(reply.headers.get("retry-after", "")))
        return self._discreet(failure)

    def _discreetly(self, events: list[Event]) -> list[Event]:
        match events[-1]:
            case Failed(failure, usage):
                return [*events[:-1], Failed(self._discreet(failure), usage)]
            case _:
                return events

    def _discreet(self, failure: Failure) -> Failure:
        """Take our key out of the upstream's words: some repeat it when they refuse it (SAFE-6)."""
        message = failure.message
        for secret in self._secrets:
            message = message.replace(secret, "[key]")
        return replace(failure, message=message)

    def _pause(self, refused: "_Refused", tried: int) -> float | None:
        """Return how long to wait before the next try; None if there shall be none."""
        asked = refused.failure.retry_after
        if not refused.again or tried >= self._address.retries or (asked or 0) > _LONGEST_ASKED:
            return None
        grown = min(_FIRST_PAUSE * float(2**tried), _LONGEST_PAUSE)
        return (asked or 0.0) + grown * (0.5 + self._clock.chance() / 2)  # all who were told the same come apart

    def _ids(self) -> Iterator[str]:
        """Give ids to calls that come without one."""
        token = self._clock.fresh_id()
        return (f"call_{token}{index}" for index in count())


@dataclass(frozen=True, slots=True)
class _Refused:
    failure: Failure
    again: bool


def _media_type(reply: Reply) -> str:
    return reply.headers.get("content-type", "").partition(";")[0].strip().lower()


def _is_stream(reply: Reply, request: Request) -> bool:
    """Trust what the upstream says; one that says nothing does what it was asked."""
    media_type = _media_type(reply)
    return media_type in _STREAMS or (request.stream and media_type != _JSON)


def _broken_off(events: list[Event], why: Failure) -> list[Event]:
    """Return what is left of an answer whose bytes broke off; one that had said that it ends is whole."""
    match events[-1]:
        case Failed(usage=usage):
            return [*events[:-1], Failed(why, usage)]
        case _:
            return events


def _soon(waits: Waits) -> Waits:
    """Return waits for a question that needs no thought."""
    return replace(
        waits,
        connect=min(waits.connect, _SOON),
        first_byte=min(waits.first_byte, _SOON),
        idle=min(waits.idle, _SOON),
        total=min(waits.total, 2 * _SOON),
    )


async def _whole(reply: Reply) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while chunk := await reply.read():
        pieces.append(chunk)
        size += len(chunk)
        if size > MOST:
            raise Broken(Failure(FailureKind.OTHER, f"the upstream's answer is over {MOST} bytes", 502))
    return b"".join(pieces)


async def _most_of(reply: Reply) -> bytes:
    """Read an error as far as it is there: its status alone says something."""
    body = bytearray()
    try:
        while len(body) < MOST_OF_AN_ERROR and (chunk := await reply.read()):
            body += chunk
    except Broken:
        pass
    return bytes(body[:MOST_OF_AN_ERROR])


def _secret(name: str, value: str) -> str:
    """Return the key that a header carries, if it is one that does."""
    is_secret = any(word in name.lower() for word in _SECRET_WORDS)
    key = value.rpartition(" ")[2]
    return key if is_secret and len(key) >= _SHORTEST_KEY else ""


def _seconds(text: str) -> float | None:
    """Read Retry-After; a date is not worth a parser here."""
    return float(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None  # noqa: PLR2004 # ten digits
