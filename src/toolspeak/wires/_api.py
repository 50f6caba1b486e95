"""Where the gateway serves a wire, known without the wire's codecs: the gateway loads those with the first request.

API = HttpApi(
endpoints=(
Endpoint("POST", "/messages", Operation.TURN),
Endpoint("GET", "/models/{model}", Operation.MODEL),
),
recognizes=lambda head: bool(head.headers(b"anthropic-version")),
)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from toolspeak.ir.json import JsonObject

MODEL_FIELD: Final = "{model}"
"""The place of a model's name in a path."""


class Operation(StrEnum):
    """What the gateway does at an endpoint."""

    TURN = "turn"
    """Decode a request, take the turn, answer streamed or whole."""
    COUNT = "count"
    """Decode a request, estimate its tokens."""
    MODELS = "models"
    """List all models that the client's key may use."""
    MODEL = "model"
    """Describe one model, named by `{model}` in the path, or else by `model` or `name` in the body."""
    FIXED = "fixed"
    """Answer with the endpoint's body."""
    HEALTH = "health"
    """Say that the gateway runs; needs no key."""
    HOME = "home"
    """The same as text, for clients that look at `/`; needs no key."""


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
    """What is known of a client's request before its body is read. Header names are lower-case."""

    @property
    def path(self) -> str:
        """The path as the client wrote it, with versions and escapes, without its query."""
        ...

    @property
    def query(self) -> str:
        """What follows the question mark."""
        ...

    def headers(self, name: bytes) -> Sequence[str]:
        """Return all values of a header."""
        ...


def _recognizes_none(head: RequestHead) -> bool:
    del head
    return False


@dataclass(frozen=True, slots=True)
class HttpApi:
    """A wire as its clients see it over HTTP."""

    endpoints: tuple[Endpoint, ...] = ()
    prefix: str = ""
    """The start of paths that are this wire's alone, such as `/api/`: below it, also a 404 is written in its form."""
    recognizes: Callable[[RequestHead], bool] = _recognizes_none
    """Tells a client of this wire on a path that several wires have, and on one that no wire has."""
    request_id_header: bytes = b"x-request-id"
    """The response header, in lower case, in which clients of this wire look for the request's id."""
