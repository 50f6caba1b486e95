"""A connection to an upstream that parses responses with httptools, and the response that is read from it.

Bytes go from `data_received` through the parser to the task that reads, which is resumed in the same call stack (see
`wakeup.py`). Errors are those that aiohttp raises in the same situation, so that both drivers say the same.
"""

import asyncio
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol, cast

import httptools
from typing_extensions import override

from toolspeak.runtime.transport import (
    LINGER,
    MOST_INTERIM,
    TimedOut,
    TimedResponse,
    Timeouts,
    TransportError,
    broken_off,
    closed_without_answer,
    no_answer_in_time,
    timed_out,
)
from toolspeak.runtime.wakeup import Wakeup

_MOST_FIELD: Final = 8190
"""Bytes of a header, and of the status line."""
_MOST_HEADERS: Final = 128
_FULL: Final = 1 << 16
"""Bytes that wait for their reader before the upstream is slowed down."""
_SLICE: Final = 1 << 18
"""Bytes of a request's body that are written at once."""
_SWITCHING, _FIRST_FINAL = 101, 200
_HEAD, _BODY = "ClientResponseError", "ClientPayloadError"
"""What aiohttp calls an error in the head and in the body."""
_UNSUPPORTED: Final = frozenset(("br", "zstd"))
"""Encodings that no request allows and that nothing here decodes; aiohttp rejects them without further packages."""


class ResponseHeaders(Mapping[str, str]):
    """The headers of a response; lookups ignore case, and find the first of several."""

    def __init__(self) -> None:
        """Start empty."""
        self._values: Final[dict[str, str]] = {}

    def add(self, name: str, value: str) -> None:
        """Add a header."""
        self._values.setdefault(name.lower(), value)

    def clear(self) -> None:
        """Remove all: they were those of an interim response."""
        self._values.clear()

    @override
    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    @override
    def __len__(self) -> int:
        return len(self._values)


class Decompressor(Protocol):
    """The part of zlib's objects that is used here."""

    @property
    def unconsumed_tail(self) -> bytes:
        """Return input that waits for room."""
        ...

    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes:
        """Return at most this many bytes of the content; the rest of the input is in `unconsumed_tail`."""
        ...


def _decompressor(encoding: str, first: bytes) -> Decompressor:
    if encoding == "gzip":
        return zlib.decompressobj(16 + zlib.MAX_WBITS)
    is_raw = first[:1] and first[0] & 0xF != zlib.DEFLATED  # some servers send "deflate" without its header
    return zlib.decompressobj(-zlib.MAX_WBITS if is_raw else zlib.MAX_WBITS)


class PushResponse(TimedResponse):
    """A response, from the moment its request is sent."""

    def __init__(self, connection: "UpstreamConnection", timeouts: Timeouts, started: float) -> None:
        """Take the connection on which the request is sent."""
        self.status = 0
        self.headers: Final = ResponseHeaders()
        self._connection: Final = connection
        self._pieces: Final[list[bytes]] = []
        self._size = 0
        self._has_head = False
        self._is_read = False
        """The head is with the caller of `head`."""
        self._is_complete = False
        self._is_ended = False
        """Nobody reads the rest."""
        self._error: TransportError | None = None
        self._encoding = ""
        self._decompressor: Decompressor | None = None
        self._takes: Callable[[bytes], bool] | None = None
        super().__init__(timeouts, started)
        self._wakeup: Final = Wakeup(self._loop)

    async def head(self) -> None:
        """Wait for status and headers. Raises `TransportError`; the connection is closed then, and if it is cancelled.

        `first_byte` counts for the head as for the body, and its error says that nothing has come.
        """
        try:
            self._since = self._started
            while not self._has_head:
                if self._error is not None:
                    raise self._error.again() from None  # noqa: TRY301 # `except` closes in any case
                await self._wakeup
        except BaseException:
            self.close()
            raise
        self._since = None
        self._is_read = True

    async def read(self) -> bytes:
        """Wait for bytes and return all that have arrived; empty at the end. Raises `TransportError`."""
        pieces = self._pieces
        while not pieces and not self._is_complete and self._error is None:
            self._since = self._now()
            await self._wakeup
        self._since = None
        if not pieces:
            if self._error is not None:
                raise self._error.again() from None
            return b""
        self._begun = True
        chunk = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        if self._size >= _FULL and not self._is_complete:
            self._connection.resume()
        self._size = 0
        if self._decompressor is not None and self._decompressor.unconsumed_tail:
            self._inflate(self._decompressor.unconsumed_tail)
        return chunk

    def divert(self, takes: Callable[[bytes], bool]) -> None:
        """Offer the bytes that arrive while `read` waits to `takes`; `read` returns those that it does not take."""
        self._takes = takes

    def close(self) -> None:
        """Stop the response: the upstream's connection is closed, unless the body was read to its end."""
        self._timer.cancel()
        self._is_ended = True
        self._connection.cut(self)

    def end(self) -> None:
        """Stop reading after the last event. The connection is reused if the end of the body arrives soon."""
        self._timer.cancel()
        self._is_ended = True
        self._pieces.clear()
        self._size = 0
        if not self._is_complete:
            self._connection.resume()
            self._loop.call_later(LINGER, self._connection.cut, self)

    @override
    def _expire(self, error: TimedOut) -> None:
        self.fail(timed_out(error, self._timeouts) if self._is_read else no_answer_in_time(self._timeouts))

    # ---------------------------------------------------------------- the connection's side

    def begin(self, status: int) -> None:
        """Note that the headers are complete."""
        encoding = self.headers.get("content-encoding", "").lower()
        if encoding in _UNSUPPORTED:
            raise ValueError(f"content-encoding {encoding}")
        self._encoding = encoding if encoding in ("gzip", "deflate") else ""
        self.status, self._has_head = status, True

    def take(self, body: bytes) -> None:
        """Keep bytes of the body for the reader."""
        if self._is_ended:
            return
        if self._encoding:
            self._inflate(body)
        else:
            self._pieces.append(body)
            self._size += len(body)

    def _inflate(self, body: bytes) -> None:
        """Decode bytes, a bounded number at a time: a small piece may hold a gigabyte."""
        try:
            if self._decompressor is None:
                self._decompressor = _decompressor(self._encoding, body)
            elif self._decompressor.unconsumed_tail is not body:
                body = self._decompressor.unconsumed_tail + body
            found = self._decompressor.decompress(body, _FULL)
        except zlib.error:
            self._error = broken_off(_BODY)
            self._connection.retire()
            return
        if found:
            self._pieces.append(found)
            self._size += len(found)

    def break_off(self) -> None:
        """Note that what comes is no HTTP. If the head came with it, the head is not trusted either."""
        if self._is_read:
            self.fail(broken_off(_BODY))
        else:
            self._has_head = self._is_complete = False
            self.fail(broken_off(_HEAD))

    def lose(self, error: Exception | None) -> None:
        """Note that the connection is closed before the end of the body."""
        if self._has_head:
            self.fail(broken_off(_BODY))
        else:
            self.fail(broken_off("ClientOSError") if isinstance(error, OSError) else closed_without_answer())

    def fail(self, error: TransportError) -> None:
        """Raise the error in the reader, after the bytes that have arrived."""
        if not self._is_complete and self._error is None:
            self._error = error
        self._wakeup.wake()

    def complete(self) -> None:
        """Note that the body is complete."""
        self._is_complete = True

    def arrived(self) -> bool:
        """Resume the reader, if there is something for it. Return whether more than enough waits for it then."""
        if self._takes is not None and self._is_diverted(self._takes):
            return False
        self._wakeup.wake()
        return self._size >= _FULL and not self._is_complete

    def _is_diverted(self, takes: Callable[[bytes], bool]) -> bool:
        """Return whether the bytes that wait were taken, and their reader can go on waiting."""
        pieces = self._pieces
        if not pieces or self._is_complete or self._error is not None or not self._wakeup.is_awaited:
            return False
        if not takes(pieces[0] if len(pieces) == 1 else b"".join(pieces)):
            return False
        pieces.clear()
        self._size, self._begun, self._since = 0, True, self._now()
        return True


class UpstreamConnection(asyncio.Protocol):
    """A connection to an upstream, which answers one request at a time.

    It is reused only after a response whose end is certain, and on which nothing follows that was not asked for.
    """

    def __init__(
        self, release: "Callable[[UpstreamConnection], None]", lost: "Callable[[UpstreamConnection], None]"
    ) -> None:
        """`release` is called when the connection can be reused, `lost` when it is closed."""
        self._release: Final = release
        self._lost: Final = lost
        self._transport: asyncio.Transport
        self._response: PushResponse | None = None
        self._parser = httptools.HttpResponseParser(self)
        # As aiohttp does: a server that ends lines with LF alone is not rare, and each response has one reader.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._unsent = memoryview(b"")
        """The rest of a large body."""
        self._is_full = False
        """The system takes no more bytes of the request at the moment."""
        self._unparsed = 0
        """Bytes since the parser last reported something; llhttp buffers a header until it is complete."""
        self._headers = 0
        self._interim = 0
        self._in_head = True
        self._ends_with_connection = False
        """The body has no length: it ends where the connection does."""
        self._is_answered = False
        """The response is complete."""
        self._is_spent = False
        """It cannot be reused."""
        self._is_paused = False
        self._is_receiving = False
        """`data_received` runs: the transport is at work with what has arrived."""

    def send(self, head: bytes, body: bytes, timeouts: Timeouts, started: float) -> PushResponse:
        """Send a request, and return its response, whose head has not arrived yet."""
        self._interim, self._is_answered, self._ends_with_connection = 0, False, False
        self._begin_message()
        response = self._response = PushResponse(self, timeouts, started)
        if self._transport.is_closing():
            response.lose(None)
        elif len(body) <= _SLICE:
            self._transport.write(head + body)
        else:
            self._unsent = memoryview(body)
            self._transport.write(head)
            self._write_on()
        return response

    def cut(self, response: PushResponse) -> None:
        """Close the connection if this response is still on it."""
        if self._response is response:
            self._response = None
            self.abort()

    def abort(self) -> None:
        """Close the connection at once."""
        self._is_spent = True
        self._unsent = memoryview(b"")
        if self._is_receiving:  # asyncio's TLS goes on after `data_received`, and fails if the connection is gone then
            asyncio.get_running_loop().call_soon(self._transport.abort)
        else:
            self._transport.abort()

    def retire(self) -> None:
        """Close instead of being reused, at the end of the response."""
        self._is_spent = True

    def resume(self) -> None:
        """Read on after a pause."""
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()

    @property
    def is_usable(self) -> bool:
        """Return whether a request can be sent on it."""
        return not self._is_spent and not self._transport.is_closing()

    # ---------------------------------------------------------------- asyncio's side

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        self._is_receiving = True
        try:
            self._receive(data)
        finally:
            self._is_receiving = False

    def _receive(self, data: bytes) -> None:
        response = self._response
        if response is None:  # an upstream speaks without being asked: what it says could answer the next request
            self.abort()
            return
        self._unparsed += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:  # 101: no request asks for it
            self._is_spent = True
        except httptools.HttpParserError:
            self._break_off(response)
            return
        if self._unparsed > _MOST_FIELD:
            self._break_off(response)
        elif self._is_answered:
            self._finish(response)
        elif response.arrived() and self._response is response and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._is_spent = True
        self._lost(self)
        del self._parser  # it refers to this connection: else only the garbage collector would free both
        response, self._response = self._response, None
        if response is not None and self._ends_with_connection:
            response.complete()
            response.arrived()
        elif response is not None:
            response.lose(exc)

    @override
    def pause_writing(self) -> None:
        self._is_full = True

    @override
    def resume_writing(self) -> None:
        self._is_full = False
        self._write_on()

    def _write_on(self) -> None:
        while self._unsent and not self._is_full:
            piece, self._unsent = self._unsent[:_SLICE], self._unsent[_SLICE:]
            self._transport.write(piece)

    def _break_off(self, response: PushResponse) -> None:
        """Close after bytes that are no HTTP. An error in the bytes of the head is one of the head, as with aiohttp."""
        self._response = None
        self.abort()
        response.break_off()

    def _finish(self, response: PushResponse) -> None:
        """Give the connection back, then let the reader have the end: its next request may be the next one here."""
        self._response = None
        self.resume()
        if self._is_spent or self._unsent or self._transport.get_write_buffer_size():
            self.abort()
        else:
            self._release(self)
        response.arrived()

    # ---------------------------------------------------------------- the parser's side

    def _begin_message(self) -> None:
        self._in_head, self._headers, self._unparsed = True, 0, 0

    def on_message_begin(self) -> None:
        """Begin a response, or the next one after an interim response."""
        if self._is_answered:
            self._is_spent = True  # a second answer to one request
        self._begin_message()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header of the response; those of interim ones and trailers are dropped."""
        response = self._response
        self._unparsed = 0
        self._headers += 1
        if self._headers > _MOST_HEADERS or len(name) + len(value) > _MOST_FIELD or b"\0" in value:
            raise ValueError("the head is too large, or holds what no header may hold")
        if response is None or self._is_answered or not self._in_head:
            return
        response.headers.add(name.decode("latin-1"), value.rstrip(b" \t").decode("utf-8", "surrogateescape"))

    def on_headers_complete(self) -> None:
        """Begin the body, or count an interim response."""
        response = self._response
        self._unparsed = 0
        if response is None or self._is_answered:
            return
        status = self._parser.get_status_code()
        if status < _FIRST_FINAL and status != _SWITCHING:
            self._interim += 1
            response.headers.clear()
            if self._interim > MOST_INTERIM:
                raise ValueError("too many interim responses")
            return
        self._in_head = False
        headers = response.headers
        is_chunked = headers.get("transfer-encoding", "").lower().rpartition(",")[2].strip() == "chunked"
        self._ends_with_connection = not is_chunked and "content-length" not in headers
        self._is_spent = self._is_spent or not self._parser.should_keep_alive()
        response.begin(status)
        if status == _SWITCHING:
            self._is_spent = True
            self._complete(response)

    def on_body(self, body: bytes) -> None:
        """Keep bytes of the body."""
        self._unparsed = 0
        if self._response is not None and not self._is_answered:
            self._response.take(body)

    def on_message_complete(self) -> None:
        """Note the end of the response; interim ones have none that matters."""
        self._unparsed = 0
        if self._response is not None and not self._in_head and not self._is_answered:
            self._complete(self._response)

    def _complete(self, response: PushResponse) -> None:
        self._is_answered = True
        response.complete()
