"""The transport of clients with `await`: the application runs in the event loop of its caller."""

# mypy: disallow-subclassing-any=False
# See `AnyBase`.

import asyncio
import weakref
from collections.abc import AsyncGenerator
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self, Unpack

from toolspeak.errors import ClientClosed
from toolspeak.transport.application import Application
from toolspeak.transport.call import LoopCall
from toolspeak.transport.library import (
    AnyBase,
    HttpxRequest,
    library_errors,
    library_of,
    new_response,
    read_request,
    read_timeout,
    stream_class,
)
from toolspeak.transport.source import TransportOptions, load_source


class AsyncTransport(AnyBase):
    """A transport for `httpx.AsyncClient` and `httpx2.AsyncClient` that answers requests with toolspeak, in this loop.

    It belongs to the event loop of its first request. It ends with `aclose`, or when `asyncio.run` ends that loop.
    """

    def __init__(self, upstream: str = "", **options: Unpack[TransportOptions]) -> None:
        """Take a base URL, the name of a preset, or nothing: then the user's configuration, or a local server.

        `options` are those of `TransportOptions`. Nothing is connected yet. Raises `BadConfig`.
        """
        config = load_source(upstream, options)
        self._upstreams: Final = config.upstreams
        self._app: Final = Application(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    async def handle_async_request(self, request: Any) -> Any:  # noqa: ANN401 # `Request` and `Response` of either library
        """Answer a request. The response has its status and headers; its body arrives while it is read.

        Raises the client library's `ReadTimeout` and `RemoteProtocolError`, `ClientClosed` after `aclose`, and
        `RuntimeError` in another event loop than that of the first request.
        """
        library = library_of(request)
        if self._is_closed:
            raise ClientClosed("the client is closed")
        self._own_loop()
        call = LoopCall(read_request(request, await request.aread(), self._upstreams))
        if not self._app.is_running:
            await self._app.start(call.request.caller)
        self._app.begin(call)
        try:
            with library_errors(request):
                head = await call.head(read_timeout(request))
        except BaseException:  # a cancellation too: the upstream would go on for a client that has gone
            call.leave()
            raise
        return new_response(request, head, stream_class(library, "AsyncByteStream", _AsyncBody)(self, call, request))

    async def aclose(self) -> None:
        """End open responses, and close all connections."""
        if self._loop is not None:
            self._own_loop()
            await self._app.close()
        self._is_closed = True

    def _own_loop(self) -> None:
        """Take the running loop as that of this transport. Raises `RuntimeError` if it has another one."""
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
            # Ends the application when the transport is garbage collected without `aclose`.
            weakref.finalize(self, _end_soon, loop, self._app).atexit = False
        if self._loop is not loop:
            raise RuntimeError(
                "this AsyncTransport belongs to another event loop, that of its first request: make a client and a "
                "transport in each loop, or use a toolspeak.Transport, which all threads can share"
            )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        where: TracebackType | None = None,
    ) -> None:
        await self.aclose()


def _end_soon(loop: asyncio.AbstractEventLoop, app: Application) -> None:
    with suppress(RuntimeError):  # the loop has ended, and with it the application
        loop.call_soon_threadsafe(app.end)


class _AsyncBody:
    """The body of a response, as it arrives."""

    def __init__(self, transport: AsyncTransport, call: LoopCall, request: HttpxRequest) -> None:
        self._transport: Final = transport  # keeps it alive: its garbage collection would end the application
        self._call: Final = call
        self._request: Final = request
        self._loop: Final = asyncio.get_running_loop()

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        call, timeout = self._call, read_timeout(self._request)
        try:
            while True:
                with library_errors(self._request):
                    chunk = await call.chunk(timeout)
                if not chunk:
                    return
                yield chunk
        finally:
            self._leave()

    async def aclose(self) -> None:
        """Stop reading: if the response is not complete, the application cancels its work."""
        self._leave()

    def _leave(self) -> None:
        if not self._call.is_over:
            self._call.leave()

    def __del__(self) -> None:
        # A response that is dropped without `aclose` must not hold its upstream connection. The garbage collector may
        # run in any thread.
        if not self._call.is_over:
            with suppress(RuntimeError):  # the loop has ended, and with it the call
                self._loop.call_soon_threadsafe(self._call.leave)
