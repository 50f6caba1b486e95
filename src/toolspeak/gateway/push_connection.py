"""The server's side of the push driver: exchanges that write to their connection directly, without ASGI messages.

The whole turn runs in one task. While it waits for its upstream, the upstream's `data_received` resumes it (see
`runtime.wakeup`), so that a chunk is decoded, encoded and written to the client in one call stack.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, ClassVar, Final, cast

import httptools
from typing_extensions import override
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT

from toolspeak.gateway.app import Gateway
from toolspeak.gateway.asgi import Asgi
from toolspeak.gateway.bounded_exchange import BODY_PATIENCE, BoundedExchange
from toolspeak.gateway.connections import HttpConnection
from toolspeak.gateway.exchange import Beat, Gone, Headers, T

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

_LOG: Final = logging.getLogger(__name__)
_STATUS_LINES: Final = {each.value: f"HTTP/1.1 {each.value} {each.phrase}\r\n".encode() for each in HTTPStatus}
_NO_BODY: Final = (204, 304)
_NOT_IN_NAMES: Final = re.compile(rb'[\x00-\x20\x7f()<>@,;:\\[\]={}"]')
_NOT_IN_VALUES: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_FAULT: Final = b"Internal Server Error"


class _Flag:
    """An `asyncio.Event` that is made when a task waits: its queue has 0.7 KB, and most bodies come with their head."""

    __slots__ = ("_event", "_is_set")

    def __init__(self) -> None:
        self._is_set = False
        self._event: asyncio.Event | None = None

    def set(self) -> None:
        self._is_set = True
        if self._event is not None:
            self._event.set()

    def clear(self) -> None:
        self._is_set = False
        if self._event is not None:
            self._event.clear()

    async def wait(self) -> None:
        if self._is_set:
            return
        if self._event is None:
            self._event = asyncio.Event()
        await self._event.wait()


class RequestState:
    """One request on a connection. uvicorn's protocol writes to it what the client sends, and whether it is gone."""

    def __init__(
        self, connection: "PushConnection", headers: Sequence[tuple[bytes, bytes]], *, keep_alive: bool
    ) -> None:
        """Take the head of the request."""
        self.connection: Final = connection
        self.headers: Final = headers
        self.keep_alive = keep_alive
        self.message_event: Final = _Flag()
        """Set when more of the body has arrived, or when the client is gone."""
        self.body = bytearray()
        self.more_body = True
        self.disconnected = False
        self.response_started = False
        self.response_complete = False
        self.awaits_continue = False
        """The client sends its body after `100 Continue` only."""
        self.method = ""
        self.path = ""
        self.query = ""
        self._watcher: asyncio.Task[object] | None = None
        """The task that is cancelled when the client goes."""

    def hang_up(self) -> None:
        """Note that the client is gone, and end the work for it."""
        self.disconnected = True
        self.message_event.set()
        if self._watcher is not None:
            self._watcher.cancel()

    def watch(self, task: "asyncio.Task[object] | None") -> None:
        """Cancel this task when the client goes; None for no task."""
        self._watcher = task

    async def run_asgi(self, app: object) -> None:
        """Answer the request. uvicorn calls it, with its application, also for requests that waited in a pipeline."""
        del app
        connection = self.connection
        connection.answering = self
        gateway = connection.application.gateway
        exchange = PushExchange(self, gateway)
        try:
            await gateway.handle(exchange)
        except BaseException:  # noqa: BLE001 # as uvicorn does: the connection must not stay open without an answer
            _LOG.exception("a fault of the gateway")
        finally:
            exchange.release()
            # The next request may be under way: the last byte of this one may be long sent.
            if connection.answering is self:
                connection.answering = None
        await exchange.finish()


class PushExchange(BoundedExchange):
    """An `Exchange` on a connection."""

    def __init__(self, state: RequestState, gateway: Gateway) -> None:
        """Take the request."""
        super().__init__(gateway.config.limits, gateway.overload)
        self.method: Final = state.method
        self.path: Final = state.path
        self.query: Final = state.query
        self._state: Final = state
        self._flow: Final = state.connection.flow
        self._transport: Final = state.connection.transport
        self._is_chunked = False
        self._left = 0
        """Bytes of the body that `content-length` announces and that have not been written."""

    @property
    def client(self) -> str:
        """The address of the connection's other end; empty if it is unknown."""
        address = self._state.connection.client
        return address[0] if address else ""

    @property
    @override
    def _raw_headers(self) -> Sequence[tuple[bytes, bytes]]:
        return self._state.headers

    async def body(self) -> bytes:
        """Read the body, within the limits of size, time and memory."""
        self._check_length()
        state = self._state
        if state.awaits_continue and not self._transport.is_closing():
            state.awaits_continue = False
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if not state.more_body or state.disconnected:  # most bodies arrive with their head
            return self._hold(self._arrived(), 0)
        idle = self._limits.body_idle_seconds
        now = asyncio.get_running_loop().time
        end = now() + idle * BODY_PATIENCE
        pieces, size = [b""], 0
        try:
            async with asyncio.timeout(idle) as limit:
                while state.more_body:
                    self._flow.resume_reading()
                    await state.message_event.wait()
                    state.message_event.clear()
                    pieces.append(self._hold(self._arrived(), size))
                    size += len(pieces[-1])
                    limit.reschedule(min(now() + idle, end))
        except TimeoutError:
            raise self._too_slow() from None
        return b"".join(pieces)

    def _arrived(self) -> bytes:
        state = self._state
        if state.disconnected:
            raise Gone
        piece, state.body = bytes(state.body), bytearray()
        return piece

    async def start(self, status: int, headers: Headers) -> None:
        """Send status and headers."""
        self.status = status
        state = self._state
        if self._flow.write_paused and not state.disconnected:
            await self._flow.drain()
        if state.disconnected:
            return
        if state.response_started:
            raise RuntimeError("the response has started already")
        lines = [_STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status]
        has_length = False
        for name, value in headers:
            # An upstream's header may be among them: with a line break it would be a second response.
            if _NOT_IN_NAMES.search(name) or _NOT_IN_VALUES.search(value):
                raise RuntimeError("a header of the response has a character that none may have")
            lines.append(b"%b: %b\r\n" % (name, value))
            if name == b"content-length":
                has_length, self._left = True, int(value)
        if not state.keep_alive:
            lines.append(b"connection: close\r\n")
        if not has_length and self.method != "HEAD" and status not in _NO_BODY:
            self._is_chunked = True
            lines.append(b"transfer-encoding: chunked\r\n")
        lines.append(b"\r\n")
        state.response_started, state.awaits_continue = True, False
        self._transport.write(b"".join(lines))

    async def write(self, chunk: bytes, *, last: bool = False) -> None:
        """Send a piece of the body; waits while the client does not read."""
        state = self._state
        if self._flow.write_paused and not state.disconnected:
            await self._flow.drain()
        if state.disconnected:
            return
        if not state.response_started or state.response_complete:
            raise RuntimeError("a piece of a response before its start or after its end")
        if self._is_chunked:
            data = _framed(chunk)
            self._transport.write(data + b"0\r\n\r\n" if last else data)
        elif self.method != "HEAD":
            self._write_counted(chunk, last=last)
        if last:
            state.response_complete = True
            state.message_event.set()
            if not state.keep_alive:
                self._transport.close()
            state.connection.on_response_complete()

    @property
    def writer_at_once(self) -> Callable[[bytes], None] | None:
        """What sends a piece of a stream without waiting, while that is possible."""
        state = self._state
        cannot = self._flow.write_paused or state.disconnected or state.response_complete or not self._is_chunked
        return None if cannot else self._write_chunk

    def _write_chunk(self, chunk: bytes) -> None:
        self._transport.write(_framed(chunk))

    def _write_counted(self, chunk: bytes, *, last: bool) -> None:
        self._left -= len(chunk)
        if self._left < 0 or (last and self._left):
            raise RuntimeError(f"the response differs from its content-length by {-self._left} bytes")
        self._transport.write(chunk)

    async def finish(self) -> None:
        """Close a response that was not completed: its client must not wait for the rest, or take it for a whole."""
        state = self._state
        if state.disconnected or state.response_complete:
            return
        if state.response_started:
            self._transport.close()
            return
        state.keep_alive = False
        length = b"%d" % len(_FAULT)
        await self.start(500, ((b"content-type", b"text/plain; charset=utf-8"), (b"content-length", length)))
        await self.write(_FAULT, last=True)

    async def attended(self, work: Coroutine[object, object, T], beat: Beat) -> T:
        """Run the work in this task, which is cancelled if the client goes. A timer calls `beat` when it is due.

        `uncancel` distinguishes that cancellation from one that comes from outside, such as a shutdown, which must be
        passed on.
        """
        state, here = self._state, asyncio.current_task()
        self._flow.resume_reading()  # a large body has paused it, and only a connection that is read can be lost
        if here is None:
            raise RuntimeError("a request is answered in a task")
        beats = _Beats(beat, here)
        try:
            await beats.start()
            if state.disconnected:
                raise Gone
            state.watch(here)
            return await work
        except asyncio.CancelledError:
            if not (state.disconnected or beats.error) or here.uncancel():
                raise  # cancelled from outside
            raise (beats.error or Gone) from None
        finally:
            state.watch(None)
            work.close()  # without effect unless it was never started
            await beats.stop()


def _framed(chunk: bytes) -> bytes:
    """Return a chunk of a chunked body; nothing for an empty one, which would end the response."""
    return b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunk else b""


class _Beats:
    """Calls a beat whenever it is due, in a task of its own: the other one is at work."""

    def __init__(self, beat: Beat, worker: "asyncio.Task[object]") -> None:
        self._beat: Final = beat
        self._worker: Final = worker
        self._loop: Final = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self.error: Exception | None = None
        """What a beat has raised: the work is cancelled then."""

    async def start(self) -> None:
        """Call the beat for the first time."""
        self._timer = self._loop.call_later(await self._beat(), self._due)

    def _due(self) -> None:
        self._task = self._loop.create_task(self._run())

    async def _run(self) -> None:
        try:
            await self.start()
        except Exception as error:  # noqa: BLE001 # raised in the task that does the work
            self.error = error
            self._worker.cancel()

    async def stop(self) -> None:
        """Call it no more, and wait for the end of one that writes."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait((self._task,))


class PushConnection(HttpConnection):
    """A connection whose requests are answered by `PushExchange`. The server sets `application` on a subclass.

    The parser, its limits and its timers are those of the other driver: what a client can do to a connection does not
    depend on who answers it.
    """

    __slots__ = ("answering",)

    application: ClassVar[Asgi]
    answering: RequestState | None
    """The request that is being answered. `cycle` is the newest one, which may wait in the pipeline."""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.answering = None
        super().connection_made(transport)

    @override
    def _begin_request(self) -> None:
        found = httptools.parse_url(self.url)
        is_new = self.parser.get_http_version() != "1.0"
        state = RequestState(self, self.headers, keep_alive=is_new and self.parser.should_keep_alive())
        state.awaits_continue = self.expect_100_continue
        state.method = self.parser.get_method().decode("ascii")
        state.path = found.path.decode("ascii")
        state.query = (found.query or b"").decode("latin-1")
        before = cast("RequestResponseCycle | None", self.cycle)  # uvicorn declares it without the None it starts with
        # A state has the names of uvicorn's cycle: it writes the body to either, and starts either in its turn.
        self.cycle = cast("RequestResponseCycle", state)
        if before is None or before.response_complete:
            task = self.loop.create_task(state.run_asgi(None))
            task.add_done_callback(self.tasks.discard)
            self.tasks.add(task)
        else:  # uvicorn stops reading here, and would not see that the client of the request before leaves
            self.pipeline.appendleft((self.cycle, cast("ASGI3Application", self.application)))

    @override
    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        if self.pipeline and sum(len(waiting.body) for waiting, _ in self.pipeline) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.answering is not None:
            self.answering.hang_up()
        # It refers to this connection: else only the garbage collector would free both.
        self.cycle = cast("RequestResponseCycle", None)  # uvicorn declares it without the None it starts with
