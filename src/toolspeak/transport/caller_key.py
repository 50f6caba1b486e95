"""The SDK's own key: which upstream gets it, and how.

A gateway never forwards the key of a client (SAFE-6), because client and upstream belong to different people. In one
process they do not: a program that gives its SDK a base URL and a key means the key for that server. So an upstream
gets the SDK's key under two conditions: the configuration has none for it, and the SDK's base URL has the same scheme,
host and port. Without the second one, `OpenAI()` would send the OPENAI_API_KEY of the environment, which it reads by
itself, to whatever server the transport leads to.

The application's code stays as it is for servers: nothing in it can forward a key. The key travels beside it, in the
context of the task, to the connections.
"""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from toolspeak.config.addresses import same_server
from toolspeak.config.assemble import key_headers
from toolspeak.config.shape import Upstream
from toolspeak.runtime.outbound import origin_of
from toolspeak.runtime.redaction import Redactor
from toolspeak.runtime.replica_client import MOST_OF_AN_ERROR
from toolspeak.runtime.transport import DEFAULT_TIMEOUTS, Headers, Response, Timeouts, UpstreamTransport

_FIRST_ERROR: Final = 300


@dataclass(frozen=True, slots=True)
class Caller:
    """The key of a request, and the server that the SDK meant the request for. The key is not in the repr."""

    key: str = field(default="", repr=False)
    server: str = ""
    """`https://HOST:PORT`."""


NO_CALLER: Final = Caller()
CALLER: Final = ContextVar("CALLER", default=NO_CALLER)
"""The caller of the task's request. Tasks that a request starts, such as a probe, inherit it."""


class CallerKeyTransport:
    """Connections that add the caller's key to requests for the caller's own server."""

    def __init__(self, inner: UpstreamTransport, upstreams: Sequence[Upstream]) -> None:
        """Take the connections, and the upstreams, of which those with a key keep it."""
        self._inner: Final = inner
        self._keyless: Final = {origin_of(each.url): each for each in upstreams if not each.key}

    async def send(
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: Timeouts = DEFAULT_TIMEOUTS
    ) -> Response:
        """Send a request and return once the response's headers have arrived. Raises `TransportError`."""
        added = self._added(url)
        response = await self._inner.send(method, url, (*headers, *added), body, timeouts)
        # An upstream may echo the key in an error, which goes to logs and traces.
        return _CleanError(response, Redactor(added)) if added and response.status >= _FIRST_ERROR else response

    async def close(self) -> None:
        """Close all connections."""
        await self._inner.close()

    def _added(self, url: str) -> Headers:
        caller = CALLER.get()
        upstream = self._keyless.get(origin_of(url)) if caller.key else None
        if upstream is None or not same_server(caller.server, upstream.url):
            return ()
        return key_headers(upstream.auth, caller.key)


class _CleanError:
    """An error response of an upstream, without the caller's key."""

    def __init__(self, response: Response, redactor: Redactor) -> None:
        self.status: Final = response.status
        self.headers: Final[Mapping[str, str]] = response.headers
        self._response: Final = response
        self._redactor: Final = redactor
        self._is_read = False

    async def read(self) -> bytes:
        """Return all of it at once: a key that is cut in two would not be found."""
        if self._is_read:
            return b""
        self._is_read = True
        body = b""
        while len(body) < MOST_OF_AN_ERROR and (piece := await self._response.read()):
            body += piece
        return self._redactor.clean_bytes(body)

    def close(self) -> None:
        """Stop the response."""
        self._response.close()

    def end(self) -> None:
        """Stop reading."""
        self._response.end()
