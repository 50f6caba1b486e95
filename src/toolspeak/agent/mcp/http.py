"""A server over streamable HTTP, whose answers are bounded."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client
from typing_extensions import override

from toolspeak.config.shape import McpServer

LARGEST_ANSWER: Final = 8 << 20
_CONNECT: Final = 10.0
_EVENTS: Final = "text/event-stream"


@asynccontextmanager
async def open_http_transport(server: McpServer) -> AsyncGenerator[TransportStreams]:
    """Connect with a server."""
    waits = httpx2.Timeout(_CONNECT, read=max(server.seconds, _CONNECT) * 2)
    headers = {**dict(server.headers), "accept-encoding": "identity"}  # a small answer could unpack to a large one
    bounded = _Bounded(httpx2.AsyncHTTPTransport(trust_env=False))
    async with (
        httpx2.AsyncClient(headers=headers, timeout=waits, transport=bounded, trust_env=False) as client,
        streamable_http_client(server.url, http_client=client, max_sse_event_size=LARGEST_ANSWER) as streams,
    ):
        yield streams


class _Bounded(httpx2.AsyncBaseTransport):
    """Stops answers that are too large. The SDK bounds events itself."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner: Final = inner

    @override
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.RemoteProtocolError("the answer is compressed, which was not asked for", request=request)
        if not response.headers.get("content-type", "").startswith(_EVENTS):
            response.stream = _BoundedStream(response.stream)
        return response

    @override
    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: object) -> None:
        if not isinstance(inner, httpx2.AsyncByteStream):
            raise TypeError(f"{type(inner).__name__} is no asynchronous stream")
        self._inner: Final = inner

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._inner:
            size += len(piece)
            if size > LARGEST_ANSWER:
                raise httpx2.StreamError(f"the answer is over {LARGEST_ANSWER >> 20} MiB")
            yield piece

    @override
    async def aclose(self) -> None:
        await self._inner.aclose()
