"""Sends requests to upstreams with aiohttp. The only user of aiohttp as a client.

aiohttp was chosen for its cost per chunk of a stream: httpx and httpcore take three to five times as long.
"""

import asyncio
import io
from collections.abc import Mapping
from functools import partial
from typing import Final

import aiohttp
from aiohttp import StreamReader
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError, RawResponseMessage
from typing_extensions import override

from toolspeak.runtime.outbound import Outbound, origin_of
from toolspeak.runtime.transport import (
    DEFAULT_TIMEOUTS,
    LINGER,
    MOST_INTERIM,
    Headers,
    OutboundTransport,
    Response,
    TimedOut,
    TimedResponse,
    Timeouts,
    TransportError,
    broken_off,
    closed_without_answer,
    connection_error,
    no_answer_in_time,
    no_connection,
    no_connection_in_time,
    no_proxy,
    timed_out,
    unusable_request,
)

_LARGE = 1 << 20
"""Bytes above which a body is sent in pieces: aiohttp writes `bytes` in one call, and a file object in chunks."""

_UntrustedCertificate = aiohttp.ClientConnectorCertificateError


class HttpTransport(OutboundTransport):
    """A transport on aiohttp with keep-alive connections. It belongs to the event loop of its first request."""

    def __init__(self, outbound: Mapping[str, Outbound] | None = None) -> None:
        """Prepare a transport; the session is opened by the first request. `outbound` is by origin."""
        super().__init__(outbound)
        self._session: aiohttp.ClientSession | None = None
        self._ending: Final[set[aiohttp.ClientResponse]] = set()
        """Responses after `end`, whose connections wait for the end of the body. `close` must not leave them open."""

    async def send(
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: Timeouts = DEFAULT_TIMEOUTS
    ) -> Response:
        """Send a request and return once the response's headers have arrived.

        Raises `TransportError`, and `RuntimeError` on another event loop than that of the first request.
        """
        loop = asyncio.get_running_loop()
        session = self._session if loop is self._loop else None
        if session is None:
            session = self._opened(loop)
        started = loop.time()
        limit = aiohttp.ClientTimeout(total=None, connect=timeouts.connect)
        data = io.BytesIO(body) if len(body) > _LARGE else body or None
        leaves = self.outbound_to(origin_of(url))
        try:
            async with asyncio.timeout_at(started + min(timeouts.first_byte, timeouts.total)):
                response = await session.request(
                    method,
                    url,
                    data=data,
                    headers=headers,
                    timeout=limit,
                    allow_redirects=False,
                    proxy=leaves.proxy_url,
                    ssl=leaves.tls,
                )
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise transport_error(error, timeouts) from None
        return _HttpResponse(response, timeouts, started, self._ending)

    async def close(self) -> None:
        """Close all connections."""
        for response in self._ending:
            response.close()
        if self._session is not None:
            await self._session.close()

    def _opened(self, loop: asyncio.AbstractEventLoop) -> aiohttp.ClientSession:
        self.bind(loop)
        self._session = aiohttp.ClientSession(
            connector=_connector(loop),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("user-agent", "content-type"),  # only the wire and the configuration add headers
            headers={"accept-encoding": "identity"},  # a compressor holds events back until its block is full
            trust_env=False,  # no ~/.netrc: it could send credentials to another host; proxies are resolved before
            auto_decompress=True,
        )
        return self._session


class _Connection(ResponseHandler):
    """Ends what aiohttp leaves open: interim responses without an end, and the body after an error of the parser.

    aiohttp skips the first in a loop that never yields to other tasks: an upstream that sends nothing else stopped all
    streams of the gateway for two seconds.
    """

    _interim = 0

    @override
    async def read(self) -> tuple[RawResponseMessage, StreamReader]:
        """Return the next response, interim ones included. Raises `HttpProcessingError` after too many of them."""
        message, payload = await super().read()
        self._interim = self._interim + 1 if message.code // 100 == 1 else 0
        if self._interim > MOST_INTERIM:
            raise HttpProcessingError(code=message.code, message="too many interim responses")
        return message, payload

    @override
    def set_exception(self, exc: BaseException, exc_cause: BaseException | None = None) -> None:
        """Raise the error in the reader of a body as well.

        aiohttp keeps an error of its parser for the next response only: after a bad chunk the reader of the body waited
        for its idle timeout, although the connection was closed.
        """
        payload = self._payload
        if exc_cause is None:
            super().set_exception(exc)
        else:
            super().set_exception(exc, exc_cause)
        if payload is not None and not payload.is_eof() and payload.exception() is None:
            payload.set_exception(aiohttp.ClientPayloadError("the body cannot be parsed"))


def _connector(loop: asyncio.AbstractEventLoop) -> aiohttp.TCPConnector:
    def connection() -> ResponseHandler:
        return _Connection(loop)

    # No limit: the gateway limits its requests itself, and aiohttp would count the wait for a free connection as time
    # to connect, so that a busy pool would look like an unreachable upstream.
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
    # aiohttp has no public way to choose the class of its connections; the tests fail if this name goes away
    connector._factory = partial(connection)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    return connector


class _HttpResponse(TimedResponse):
    """A response of aiohttp."""

    def __init__(
        self, response: aiohttp.ClientResponse, timeouts: Timeouts, started: float, ending: set[aiohttp.ClientResponse]
    ) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self._response: Final = response
        self._ending: Final = ending
        self._next: Final = response.content.readany
        super().__init__(timeouts, started)

    async def read(self) -> bytes:
        """Wait for bytes and return all that have arrived; empty at the end. Raises `TransportError`."""
        self._since = self._now()
        try:
            chunk = await self._next()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            # aiohttp keeps the error in the stream, to which these frames refer: only the collector would free them.
            error.__traceback__ = None
            raise transport_error(error, self._timeouts) from None
        self._since = None
        self._begun = True
        return chunk

    def close(self) -> None:
        """Stop the response: the upstream's connection is closed, unless the body was read to its end."""
        self._timer.cancel()
        self._response.close()

    def end(self) -> None:
        """Stop reading after the last event. The connection is reused if the end of the body arrives soon.

        The last event (`[DONE]`, `message_stop`) often arrives before the bytes that end the HTTP body. Closing at that
        moment would cost a new connection for every turn; waiting for them would delay the client's answer.
        """
        self._timer.cancel()
        if not self._response.content.is_eof():  # at the end of the body aiohttp itself returns the connection
            self._ending.add(self._response)
            self._loop.call_later(LINGER, self._cut)

    def _cut(self) -> None:
        self._ending.discard(self._response)
        self._response.close()

    @override
    def _expire(self, error: TimedOut) -> None:
        # The timer cannot raise into the task that reads. The stream can: the waiting read raises this error.
        self._response.content.set_exception(error)


def transport_error(error: Exception, timeouts: Timeouts) -> TransportError:
    """Translate an error of aiohttp or the system. The message never has the URL, which may contain a key."""
    match error:
        case TimedOut():
            return timed_out(error, timeouts)
        case aiohttp.ConnectionTimeoutError():
            return no_connection_in_time(timeouts)
        case TimeoutError():
            return no_answer_in_time(timeouts)
        case aiohttp.ClientProxyConnectionError():
            return no_proxy(f"{error.host}:{error.port}", error.os_error)
        case aiohttp.ClientHttpProxyError():
            return connection_error(f"the proxy refused to connect to the upstream ({error.status})", connected=False)
        case aiohttp.ClientConnectorError():
            # Before 3.13.4 aiohttp's error for an untrusted certificate has no `os_error`, and reading it raises.
            cause = error.certificate_error if isinstance(error, _UntrustedCertificate) else error.os_error
            return no_connection(error.host, error.port, cause)
        case aiohttp.ServerDisconnectedError():
            return closed_without_answer()
        case ValueError():  # aiohttp rejects the URL or a header before it connects
            return unusable_request(error)
        case _:
            return broken_off(type(error).__name__)
