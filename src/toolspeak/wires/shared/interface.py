"""What every wire provides: as the server of a client, and as the client of an upstream.

    server   api              endpoints, and how a client is recognized
             decode_request   bytes of a client   -> Request
             new_encoder      events              -> bytes of a stream
             encode_turn      a folded turn       -> bytes of a whole answer
             encode_failure   Failure             -> HTTP status and bytes of an error
             encode_models    the models          -> a list of them           (`encode_model`: one of them)
             encode_count     a number of tokens  -> the answer to a count
    client   encode_request   Request             -> path and bytes
             new_decoder      bytes of a stream   -> events
             decode_turn      bytes of an answer  -> events
             decode_failure   HTTP status, bytes  -> Failure
             decode_models    bytes of a list     -> names of models

Only the codecs are required; everything else defaults to OpenAI's format, which most servers imitate. Codecs are
created for each response and never reset. Wires read no clock and create no ids: callers pass both in.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol, TypeAlias

from toolspeak.ir.event import Event
from toolspeak.ir.failure import Failure
from toolspeak.ir.json import JsonObject
from toolspeak.ir.quirks import Quirks
from toolspeak.ir.request import Request
from toolspeak.ir.turn import Turn
from toolspeak.wires.shared.model_list import ModelEntry, decode_models, encode_count, encode_model, encode_models

# ---------------------------------------------------------------- HTTP endpoints
#
# The gateway serves a wire by its `HttpApi` alone, and loads the codecs with the first request: starting with all five
# would cost their import time even for a gateway that only ever serves one.

MODEL_FIELD: Final = "{model}"
"""The placeholder for a model's name in a path."""


class Operation(StrEnum):
    """What the gateway does at an endpoint."""

    TURN = "turn"
    """Decode a request, take the turn, and answer, streamed or whole."""
    COUNT = "count"
    """Decode a request and estimate its tokens."""
    MODELS = "models"
    """List all models that the client's key may use."""
    MODEL = "model"
    """Describe one model, named by `{model}` in the path, or else by `model` or `name` in the body."""
    FIXED = "fixed"
    """Answer with the endpoint's body."""
    FORWARD = "forward"
    """Forward the body unchanged to the upstream of the model that it names, and the response as it arrives."""
    HEALTH = "health"
    """Report that the gateway is running; needs no key."""
    RESPONSE = "response"
    """Return the stored response that `{model}` in the path names, or delete it."""
    HOME = "home"
    """The same as plain text, for clients that request `/`; needs no key."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A path of a wire.

    `path` has no version: the gateway takes `/v1`, `/v1beta` and `/v1alpha` off what clients write, however often they
    write it. One `{model}` in it is any text, slashes too; a colon after it may also come escaped.
    """

    method: str
    path: str
    operation: Operation
    body: JsonObject | None = None
    """The answer of `Operation.FIXED`."""


class RequestHead(Protocol):
    """A client's request before its body is read. Header names are lower-case."""

    @property
    def path(self) -> str:
        """The path as the client wrote it, with versions and escapes, without its query."""
        ...

    @property
    def query(self) -> str:
        """The part after the question mark."""
        ...

    def headers(self, name: bytes) -> Sequence[str]:
        """Return all values of a header."""
        ...


def _recognizes_none(head: RequestHead) -> bool:
    del head
    return False


@dataclass(frozen=True, slots=True)
class HttpApi:
    """The HTTP endpoints of a wire, and how its clients are recognized."""

    endpoints: tuple[Endpoint, ...] = ()
    prefix: str = ""
    """The prefix of paths that only this wire has, such as `/api/`: below it, a 404 is also written in its format."""
    recognizes: Callable[[RequestHead], bool] = _recognizes_none
    """Whether a request is of a client of this wire; asked on paths that several wires have or none has."""
    request_id_header: bytes = b"x-request-id"
    """The response header, in lower case, from which clients of this wire read the request's id."""


# ---------------------------------------------------------------- codecs

EVENT_STREAM: Final = "text/event-stream"
_NO_API: Final = HttpApi()


def _no_time() -> float:
    """Return 0: the time is not measured."""
    return 0.0


@dataclass(frozen=True, slots=True)
class Stamp:
    """The identity of a response. `id` has no prefix, is unique, and consists of letters and digits."""

    id: str
    created: int
    """Seconds since 1970."""
    previous: str = ""
    """The id of the response that this one continues, where the wire has such ids."""
    is_stored: bool = False
    """Whether later requests can refer to this response."""
    elapsed: Callable[[], float] = field(default=_no_time, compare=False)
    """Returns the seconds since the request arrived. It comes from the caller: wires read no clock."""


@dataclass(frozen=True, slots=True)
class EncodedRequest:
    """A request for an upstream. `path` is relative to the base URL; `dropped` names what the wire cannot express."""

    path: str
    body: bytes
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """An error in the format of the wire."""

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
        """Return the last events, for the end of the bytes."""
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
        """Return bytes to send while the upstream is silent; no client takes them for an event."""
        ...


# ---------------------------------------------------------------- stored responses


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A stored response: all items of its conversation, as a JSON array, and the response as it was sent."""

    items: bytes
    answer: bytes


FindResponse: TypeAlias = Callable[[str], StoredResponse | None]


@dataclass(frozen=True, slots=True)
class ExpandedRequest:
    """A request with all that it refers to: its body, the response that it continues, and its items."""

    body: bytes
    previous: str
    items: bytes


@dataclass(frozen=True, slots=True)
class ResponseStorage:
    """How a wire's requests refer to responses that the server stores."""

    expand: Callable[[bytes, FindResponse], ExpandedRequest]
    """Raises `NotStored`, `BadField`."""
    wants_storage: Callable[[Request], bool]
    conversation: Callable[[bytes, bytes], tuple[str, StoredResponse]]
    """Takes the items of a request and the response to it; returns the response's id too."""
    final_response: Callable[[EventEncoder], bytes]
    """Returns the whole response that a stream ended with; empty before its end."""


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
    encode_request: Callable[[Request, Quirks], EncodedRequest]
    new_decoder: Callable[[Request, Iterator[str]], EventDecoder]
    """Takes the request as it was sent upstream, and fresh ids for calls that come without a usable one."""
    new_encoder: Callable[[Request, Stamp], EventEncoder]
    decode_turn: Callable[[Request, Iterator[str], bytes], list[Event]]
    encode_turn: Callable[[Request, Stamp, Turn], bytes]
    """Takes a turn without failure."""
    encode_failure: Callable[[Failure, Stamp], ErrorBody]
    decode_failure: Callable[[int, bytes], Failure]
    api: HttpApi = _NO_API
    """Its HTTP endpoints. Without any, the wire is for upstreams only."""
    stream_type: Callable[[Request], str] = _event_stream
    """The media type of a streamed response; whole ones are `application/json`."""
    encode_models: Callable[[Sequence[ModelEntry]], JsonObject] = encode_models
    encode_model: Callable[[ModelEntry], JsonObject] = encode_model
    encode_count: Callable[[int], JsonObject] = encode_count
    unwrap_count: Callable[[bytes], bytes] = _as_it_is
    """Takes the body of a token count request, and returns the request in it."""
    skips_comments: bool = False
    """Whether all its clients skip comments in a stream, also after its last event."""
    storage: ResponseStorage | None = None
    """How its requests refer to stored responses; None if they cannot."""
    models_path: str = "models"
    """The path of the upstream's model list, relative to the base URL."""
    decode_models: Callable[[bytes], list[str]] = decode_models
    """Raises `BadField`."""
    extensible: bool = False
    """Whether servers add fields of their own to it, such as for constrained decoding; probes then try them."""
