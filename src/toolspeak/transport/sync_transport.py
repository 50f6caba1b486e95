"""The transport of clients without `await`: the application runs in one thread, whatever threads send requests."""

# mypy: disallow-subclassing-any=False
# See `AnyBase`.

import asyncio
import sys
import weakref
from collections.abc import Generator
from functools import partial
from types import TracebackType
from typing import Any, Final, Self, Unpack

from toolspeak.runtime.loop_thread import LoopThread
from toolspeak.transport.application import Application
from toolspeak.transport.call import ThreadCall
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


class Transport(AnyBase):
    """A transport for `httpx.Client` and `httpx2.Client` that answers requests with toolspeak, in this process.

    Several threads may use it. The first request starts a thread, in which the application runs until `close`, until
    the transport is garbage collected, or until the program exits. SDKs do not close an `http_client` that they were
    given, so the last two are the usual ends.
    """

    def __init__(self, upstream: str = "", **options: Unpack[TransportOptions]) -> None:
        """Take a base URL, the name of a preset, or nothing: then the user's configuration, or a local server.

        `options` are those of `TransportOptions`. Nothing is connected yet. Raises `BadConfig`.
        """
        config = load_source(upstream, options)
        self._upstreams: Final = config.upstreams
        self._app: Final = Application(config)
        self._thread: Final = LoopThread(self._app.close, _new_loop)
        # It must not refer to the transport itself, which would then never be collected.
        weakref.finalize(self, self._thread.stop).atexit = False

    def handle_request(self, request: Any) -> Any:  # noqa: ANN401 # `Request` and `Response` of either library
        """Answer a request. The response has its status and headers; its body arrives while it is read.

        Raises the client library's `ReadTimeout` and `RemoteProtocolError`, and `ClientClosed` after `close`.
        """
        library = library_of(request)
        call = ThreadCall(read_request(request, request.read(), self._upstreams))
        if not self._app.is_running:
            self._thread.run(self._app.start(call.request.caller))
        self._thread.schedule(partial(self._app.begin, call))
        try:
            with library_errors(request):
                head = call.head(read_timeout(request))
        except BaseException:  # Ctrl-C too: the upstream would go on for a client that has gone
            self._thread.call_soon(call.leave)
            raise
        stream = stream_class(library, "SyncByteStream", _Body)(self, self._thread, call, request)
        return new_response(request, head, stream)

    def close(self) -> None:
        """End open responses, close all connections and end the thread."""
        self._thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        where: TracebackType | None = None,
    ) -> None:
        self.close()


def _new_loop() -> asyncio.AbstractEventLoop:
    """Return a loop of the kind that `toolspeak serve` runs on."""
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    import uvloop  # noqa: PLC0415 # not on Windows

    return uvloop.new_event_loop()


class _Body:
    """The body of a response, as it arrives."""

    def __init__(self, transport: Transport, thread: LoopThread, call: ThreadCall, request: HttpxRequest) -> None:
        self._transport: Final = transport  # keeps it alive: its garbage collection would end the thread
        self._thread: Final = thread
        self._call: Final = call
        self._request: Final = request

    def __iter__(self) -> Generator[bytes]:
        call, timeout = self._call, read_timeout(self._request)
        try:
            while True:
                with library_errors(self._request):
                    chunk, is_room_due = call.chunk(timeout)
                if is_room_due:
                    self._thread.call_soon(call.make_room)
                if not chunk:
                    return
                yield chunk
        finally:
            self.close()

    def close(self) -> None:
        """Stop reading: if the response is not complete, the application cancels its work."""
        if not self._call.is_over:
            self._thread.call_soon(self._call.leave)

    def __del__(self) -> None:
        self.close()  # a response that is dropped without `close` must not hold its upstream connection
