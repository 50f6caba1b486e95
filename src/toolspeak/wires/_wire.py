"""What every wire gives: both directions, for us as the server and for us as the client.

    as the server   decode_request   bytes of a client   -> Request
                    new_encoder      events              -> bytes of a stream        (or, all at once,)
                    encode_turn      a folded turn       -> bytes of a whole answer
                    encode_failure   Failure             -> HTTP status and bytes of an error
    as the client   encode_request   Request             -> path and bytes
                    new_decoder      bytes of a stream   -> events
                    decode_turn      bytes of an answer  -> events
                    decode_failure   HTTP status, bytes  -> Failure

Codecs are made new for each response and never reset. Nothing here reads a clock or makes up an id: both come in.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from toolspeak.ir.event import Event
from toolspeak.ir.failure import Failure
from toolspeak.ir.quirks import Quirks
from toolspeak.ir.request import Request
from toolspeak.ir.turn import Turn


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a response is marked with. `id` has no prefix, must never come twice, and is letters and digits only."""

    id: str
    created: int
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request as its upstream wants it: `path` follows the base URL; `dropped` says what the wire has no word for."""

    path: str
    body: bytes
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """An error as a client of the wire expects it."""

    status: int
    body: bytes


class EventDecoder(Protocol):
    """Bytes of an upstream's stream become events; chunking is invisible.

    The last event is one `Finished` or one `Failed`. After it, feeding gives nothing. A driver always calls `finish`
    when the bytes end: whatever is then missing becomes a `Failed` (P3, P6).
    """

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that this chunk completes."""
        ...

    def finish(self) -> list[Event]:
        """Return what the end of the bytes means."""
        ...


class EventEncoder(Protocol):
    """Events become bytes of a client's stream. Each call returns all that can leave, in one piece, maybe nothing.

    A `Failed` that comes before anything has left can still be answered by `encode_failure`; later it becomes the
    protocol's own error inside the stream.
    """

    def encode(self, events: Iterable[Event]) -> bytes:
        """Return the bytes for these events."""
        ...

    def keep_alive(self) -> bytes:
        """Return what may be sent while there is nothing to say, which no client takes for an event."""
        ...


@dataclass(frozen=True, slots=True)
class Wire:
    """One vendor's protocol."""

    name: str
    stream_type: str
    """The media type of a streamed response; whole ones are `application/json`."""
    decode_request: Callable[[bytes, str], Request]
    """Takes the body and the request's path with its query; raises `BadField`."""
    encode_request: Callable[[Request, Quirks], Outgoing]
    new_decoder: Callable[[Request, Iterator[str]], EventDecoder]
    """Takes the request as it was sent upstream, and fresh ids for calls that come without a usable one."""
    new_encoder: Callable[[Request, Stamp], EventEncoder]
    decode_turn: Callable[[Request, Iterator[str], bytes], list[Event]]
    encode_turn: Callable[[Request, Stamp, Turn], bytes]
    """Takes a turn without failure."""
    encode_failure: Callable[[Failure, Stamp], ErrorBody]
    decode_failure: Callable[[int, bytes], Failure]
