"""httpx and httpx2: their requests in ASGI's terms, and responses and errors of the library that a client uses.

Both libraries have the same interface under two names, and neither is a dependency of toolspeak. The request that a
client hands over tells which one it is. Their clients check the class of a response and of its stream, so these are of
the client's library; they do not check the class of a transport.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Protocol

from toolspeak.config.addresses import same_server
from toolspeak.config.shape import HOST, Upstream
from toolspeak.gateway.access import sent_keys
from toolspeak.transport.call import CallBroken, Head, SentRequest
from toolspeak.transport.caller_key import Caller

_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}
_HOST: Final = (b"host", HOST.encode())
_VERSION: Final = re.compile(r"/v\d[^/]*\Z")
_PATH: Final = re.compile(r"https?://[^/]*", re.IGNORECASE)


if TYPE_CHECKING:
    AnyBase = Any
    """Makes type checkers accept a transport as the `BaseTransport` of either library, which are two classes."""
else:
    AnyBase = object


class HttpxUrl(Protocol):
    """The URL of a request of httpx or httpx2."""

    scheme: str
    netloc: bytes
    raw_path: bytes


class HttpxHeaders(Protocol):
    """The headers of a request of httpx or httpx2."""

    raw: list[tuple[bytes, bytes]]


class HttpxRequest(Protocol):
    """A request of httpx or httpx2."""

    method: str
    url: Any
    headers: Any
    extensions: Any

    def read(self) -> bytes:
        """Return the body."""
        ...

    async def aread(self) -> bytes:
        """Return the body."""
        ...


# ---------------------------------------------------------------- requests


@dataclass(frozen=True, slots=True)
class _Carrier:
    """The places of a request that may carry a key."""

    values: Mapping[bytes, list[str]]
    query: str

    def headers(self, name: bytes) -> list[str]:
        return self.values.get(name, [])


def read_request(request: HttpxRequest, body: bytes, upstreams: Sequence[Upstream]) -> SentRequest:
    """Return the request as the application takes it.

    The SDK may be set up for its vendor's server or for the upstream. The application answers in its place, so it gets
    its own name as the `Host`, and the path without what only the upstream's base URL has (`/openai/v1` at Groq).
    """
    url: HttpxUrl = request.url
    server = f"{url.scheme}://{url.netloc.decode('ascii')}"
    path, _, query = url.raw_path.partition(b"?")
    path = _without_prefix(path, server, upstreams)
    raw: HttpxHeaders = request.headers
    headers = [(name.lower(), value) for name, value in raw.raw]
    scope = {
        "type": "http",
        "asgi": _ASGI,
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": path.decode("latin-1"),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": [_HOST, *(header for header in headers if header[0] != _HOST[0])],
        "client": None,
        "server": None,
    }
    return SentRequest(scope, body, Caller(_key(headers, query), server))


def read_timeout(request: HttpxRequest) -> float | None:
    """Return how long the client wants to wait for each piece of the response, in seconds; None is for ever.

    It is the only one of httpx's timeouts that applies: within a process there is nothing to connect to, no pool to
    wait for, and the body is handed over whole.
    """
    timeouts: Mapping[str, float | None] = request.extensions.get("timeout", {})
    return timeouts.get("read")


def _without_prefix(path: bytes, server: str, upstreams: Sequence[Upstream]) -> bytes:
    for upstream in upstreams:
        prefix = _VERSION.sub("", _PATH.sub("", upstream.url, count=1)).encode()
        if prefix and same_server(server, upstream.url) and path.startswith(prefix + b"/"):
            return path[len(prefix) :]
    return path


def _key(headers: Sequence[tuple[bytes, bytes]], query: bytes) -> str:
    """Return the key of the request; none if it has several, for then it is not clear which one is meant."""
    values: defaultdict[bytes, list[str]] = defaultdict(list)
    for name, value in headers:
        values[name].append(value.decode("latin-1"))
    keys = {key for key in sent_keys(_Carrier(values, query.decode("latin-1"))) if key}
    return keys.pop() if len(keys) == 1 else ""


# ---------------------------------------------------------------- responses


def library_of(request: object) -> ModuleType:
    """Return httpx or httpx2, whichever made the request. Raises `TypeError` for other objects."""
    for kind in type(request).__mro__:
        module = sys.modules.get(kind.__module__.partition(".")[0])
        if kind.__name__ == "Request" and hasattr(module, "BaseTransport"):
            assert module is not None  # noqa: S101 # for type checkers: None has no such attribute
            return module
    raise TypeError(f"a transport takes requests of httpx or httpx2, not {type(request).__name__}")


@cache
def stream_class(library: ModuleType, base: str, ours: type) -> type[Any]:
    """Return our stream as a class of the library, whose clients check that a response has one."""
    return type(ours.__name__, (ours, getattr(library, base)), {})


def new_response(request: HttpxRequest, head: Head, stream: object) -> Any:  # noqa: ANN401 # `Response` of either library
    """Return a response of the client's library."""
    library = library_of(request)
    return library.Response(head.status, headers=[*head.headers], stream=stream, request=request)


@contextmanager
def library_errors(request: HttpxRequest) -> Generator[None]:
    """Raise the errors of a call as those of the client's library, which SDKs catch."""
    try:
        yield
    except TimeoutError:
        message = f"toolspeak sent nothing for {read_timeout(request):g} s, the read timeout of the client"
        raise library_of(request).ReadTimeout(message, request=request) from None
    except CallBroken as broken:
        raise library_of(request).RemoteProtocolError(str(broken), request=request) from broken.__cause__
