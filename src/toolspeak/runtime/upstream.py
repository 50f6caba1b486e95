"""An upstream over HTTP: a wire on top of a transport.

It is tried again only before its first byte, and only where that can help: no connection, overloaded, rate limited.
A pause that the upstream asks for is kept, up to a limit; a longer one is the client's to decide.
"""

from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from toolspeak.ir.event import Event, Failed, Finished
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.quirks import QUIRKS, Quirks
from toolspeak.ir.request import Request
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.transport import WAITS, Broken, Headers, Reply, Transport, Waits
from toolspeak.wires import Outgoing, Wire

RETRIES = 2
_FIRST_PAUSE, _LONGEST_PAUSE, _LONGEST_ASKED = 0.5, 8.0, 20.0
_FIRST_ERROR = 300  # a redirect is an error here: it could lead a key elsewhere
_STREAMS = ("text/event-stream", "application/x-ndjson", "application/jsonl")
_JSON = "application/json"
_MOST_OF_AN_ERROR, _MOST = 1 << 20, 64 << 20
_PASSES = frozenset((FailureKind.TRANSIENT, FailureKind.RATE_LIMITED))


@dataclass(frozen=True, slots=True)
class Address:
    """Where an upstream is, and how it wants to be spoken to. Its headers carry its key."""

    url: str
    headers: Headers
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
        self._base: Final = address.url.rstrip("/") + "/"
        self._clock: Final = clock

    async def open(self, request: Request) -> AsyncGenerator[list[Event], None]:
        """Send a request; the batches of its answer end with one Finished or Failed."""
        outgoing = self.wire.encode_request(request, self._address.quirks)
        opened = await self._opened(outgoing)
        if isinstance(opened, Failure):
            yield [Failed(opened)]
            return
        close = opened.close
        try:
            if _is_stream(opened, request):
                decoder = self.wire.new_decoder(request, self._ids())
                while chunk := await opened.read():
                    if events := decoder.feed(chunk):
                        if isinstance(events[-1], Finished):
                            close = opened.end  # who has the last event asks for no more
                        yield events
                yield decoder.finish()
            else:
                yield self.wire.decode_turn(request, self._ids(), await _whole(opened, _MOST))
        except Broken as broken:
            yield [Failed(broken.failure)]
        finally:
            close()

    async def get(self, path: str) -> bytes:
        """Fetch something small that is no turn, such as the list of models."""
        address = self._address
        reply = await self._transport.send("GET", self._base + path, address.headers, b"", address.waits)
        try:
            body = await _whole(reply, _MOST_OF_AN_ERROR)
        finally:
            reply.close()
        if reply.status >= _FIRST_ERROR:
            raise Broken(self.wire.decode_failure(reply.status, body))
        return body

    async def _opened(self, outgoing: Outgoing) -> Reply | Failure:
        for tried in count():
            opened = await self._tried(outgoing)
            if not isinstance(opened, _Refused):
                return opened
            pause = self._pause(opened, tried)
            if pause is None:
                return opened.failure
            await self._clock.sleep(pause)
        raise AssertionError  # count() has no end

    async def _tried(self, outgoing: Outgoing) -> "Reply | _Refused":
        address = self._address
        try:
            reply = await self._transport.send(
                "POST", self._base + outgoing.path, self._headers, outgoing.body, address.waits
            )
            if reply.status < _FIRST_ERROR:
                return reply
            try:
                body = await _whole(reply, _MOST_OF_AN_ERROR)
            finally:
                reply.close()
        except Broken as broken:
            kind = broken.failure.kind
            return _Refused(broken.failure, again=not broken.connected or kind is FailureKind.DISCONNECTED)
        failure = self.wire.decode_failure(reply.status, body)
        if failure.retry_after is None:
            failure = replace(failure, retry_after=_seconds(reply.headers.get("retry-after", "")))
        return _Refused(failure, again=failure.kind in _PASSES)

    def _pause(self, refused: "_Refused", tried: int) -> float | None:
        """Return how long to wait before the next try; None if there shall be none."""
        asked = refused.failure.retry_after
        if not refused.again or tried >= self._address.retries or (asked or 0) > _LONGEST_ASKED:
            return None
        grown = min(_FIRST_PAUSE * float(2**tried), _LONGEST_PAUSE)
        return max(asked or 0.0, grown * (0.5 + self._clock.chance() / 2))

    def _ids(self) -> Iterator[str]:
        """Give ids to calls that come without one."""
        token = self._clock.fresh_id()
        return (f"call_{token}{index}" for index in count())


@dataclass(frozen=True, slots=True)
class _Refused:
    failure: Failure
    again: bool


def _is_stream(reply: Reply, request: Request) -> bool:
    """Trust what the upstream says; one that says nothing does what it was asked."""
    media_type = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    return media_type in _STREAMS or (request.stream and media_type != _JSON)


async def _whole(reply: Reply, most: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while chunk := await reply.read():
        pieces.append(chunk)
        size += len(chunk)
        if size > most:
            raise Broken(Failure(FailureKind.OTHER, f"the upstream's answer is over {most} bytes", 502))
    return b"".join(pieces)


def _seconds(text: str) -> float | None:
    """Read Retry-After; a date is not worth a parser here."""
    return float(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None  # noqa: PLR2004 # ten digits
