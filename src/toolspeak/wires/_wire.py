"""What every wire gives: both directions, for us as the server and for us as the client.

    as the server   decode_request   bytes of a client   -> Request
                    new_encoder      events              -> bytes of a stream        (or, all at once,)
                    encode_turn      a folded turn       -> bytes of a whole answer
                    encode_failure   Failure             -> HTTP status and bytes of an error
                    api              endpoints, and how a client is recognized
                    encode_models    the models          -> a list of them           (and `encode_model`, one of them)
                    encode_count     a number of tokens  -> the answer to a count
    as the client   encode_request   Request             -> path and bytes
                    new_decoder      bytes of a stream   -> events
                    decode_turn      bytes of an answer  -> events
                    decode_failure   HTTP status, bytes  -> Failure
                    decode_models    bytes of a list     -> names of models

Only the codecs must be written: everything else defaults to the form of OpenAI, which most servers imitate.
Codecs are made new for each response and never reset. Nothing here reads a clock or makes up an id: both come in.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from toolspeak.ir.event import Event
from toolspeak.ir.failure import Failure
from toolspeak.ir.json import JsonObject
from toolspeak.ir.quirks import Quirks
from toolspeak.ir.request import Request
from toolspeak.ir.turn import Turn
from toolspeak.wires._api import HttpApi
from toolspeak.wires._models import ModelEntry, decode_models, encode_count, encode_model, encode_models

EVENT_STREAM: Final = "text/event-stream"
_NO_API: Final = HttpApi()


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


def _event_stream(request: Request) -> str:
    del request
    return EVENT_STREAM


def _as_it_is(body: bytes) -> bytes:
    return body


@dataclass(frozen=True, slots=True)
class Wire:
    """One vendor's protocol."""

    name: str
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
    api: HttpApi = _NO_API
    """Where clients reach it. Without endpoints it is a wire for upstreams only."""
    stream_type: Callable[[Request], str] = _event_stream
    """The media type of a streamed response; whole ones are `application/json`."""
    encode_models: Callable[[Sequence[ModelEntry]], JsonObject] = encode_models
    encode_model: Callable[[ModelEntry], JsonObject] = encode_model
    encode_count: Callable[[int], JsonObject] = encode_count
    unwrap_count: Callable[[bytes], bytes] = _as_it_is
    """Takes the body of a question for a count, and returns the request in it."""
    models_path: str = "models"
    """Where upstreams list their models; follows the base URL."""
    decode_models: Callable[[bytes], list[str]] = decode_models
    """Raises `BadField`."""
    extensible: bool = False
    """Servers add fields of their own to it, such as those for constrained decoding, so that a probe may use them."""
