"""The gateway as an ASGI application. No other module depends on ASGI.

It is a raw application without a web framework. Per chunk of a stream, tasks, futures and ASGI messages cost more than
parsing JSON, and a framework would add layers to each of them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping, Sequence
from typing import Any, Final, TypeAlias

from typing_extensions import override

from toolspeak.config.shape import Limits
from toolspeak.gateway.app import Gateway
from toolspeak.gateway.bounded_exchange import BODY_PATIENCE, BoundedExchange
from toolspeak.gateway.exchange import Beat, Gone, Headers, T
from toolspeak.gateway.overload import Overload

AsgiMessage: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[AsgiMessage]]
Send: TypeAlias = Callable[[AsgiMessage], Awaitable[None]]


class Asgi:
    """The ASGI application. It runs under any ASGI server; `server.py` sets up uvicorn."""

    def __init__(self, gateway: Gateway) -> None:
        """Take the gateway."""
        self.gateway = gateway
        """Answers new requests; a reload replaces it."""

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        """Answer one HTTP request, or the server's start and end (`lifespan`); websockets are closed."""
        if scope["type"] == "http":
            gateway = self.gateway
            exchange = _AsgiExchange(scope, receive, send, gateway.config.limits, gateway.overload)
            try:
                await gateway.handle(exchange)
            finally:
                exchange.release()
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1003})

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        await self.gateway.begin()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.gateway.close()
        await send({"type": "lifespan.shutdown.complete"})


class _AsgiExchange(BoundedExchange):
    """An `Exchange` on ASGI's `receive` and `send`."""

    def __init__(self, scope: AsgiMessage, receive: Receive, send: Send, limits: Limits, overload: Overload) -> None:
        super().__init__(limits, overload)
        self.method: str = scope["method"]
        self.path: str = scope["raw_path"].decode("latin-1")
        self._scope: Final = scope
        self._receive: Final = receive
        self._send: Final = send

    @property
    def client(self) -> str:
        address: tuple[str, int] | None = self._scope.get("client")
        return address[0] if address else ""

    @property
    def query(self) -> str:
        text: str = self._scope["query_string"].decode("latin-1")
        return text

    @property
    @override
    def _raw_headers(self) -> Sequence[tuple[bytes, bytes]]:
        raw: Sequence[tuple[bytes, bytes]] = self._scope["headers"]
        return raw

    async def body(self) -> bytes:
        """Read the body, within the limits of size, time and memory."""
        self._check_length()
        idle = self._limits.body_idle_seconds
        now = asyncio.get_running_loop().time
        end = now() + idle * BODY_PATIENCE
        try:
            async with asyncio.timeout(idle) as limit:
                message = await self._receive()
                if not message.get("more_body", False):  # most bodies arrive in one piece, and are not copied
                    return self._piece(message, 0)
                pieces, size = [b""], 0
                while True:
                    pieces.append(self._piece(message, size))
                    size += len(pieces[-1])
                    if not message.get("more_body", False):
                        return b"".join(pieces)
                    limit.reschedule(min(now() + idle, end))
                    message = await self._receive()
        except TimeoutError:
            raise self._too_slow() from None

    async def start(self, status: int, headers: Headers) -> None:
        self.status = status
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    writer_at_once = None
    """ASGI takes pieces of a response from the task that answers."""

    async def write(self, chunk: bytes, *, last: bool = False) -> None:
        await self._send({"type": "http.response.body", "body": chunk, "more_body": not last})

    async def attended(self, work: Coroutine[object, object, T], beat: Beat) -> T:
        """Run the work in its own task, and watch the client in this one.

        A chunk from the upstream then wakes only the frames of the work, not those of a task that waits for both. When
        the work ends it cancels this task, which waits for the client. `attending` and `uncancel` distinguish that
        cancellation from one that comes from outside, such as a shutdown, which must be passed on.
        """
        here = asyncio.current_task()
        task = asyncio.get_running_loop().create_task(work)
        attending = True
        task.add_done_callback(lambda _: here.cancel() if here is not None and attending else None)
        try:
            await self._watch(beat)
        except asyncio.CancelledError:
            if not task.done() or here is None or here.uncancel():
                raise  # cancelled from outside
            return task.result()
        finally:
            attending = False  # the end of the work must no longer cancel this task
            await _stopped(task)
            del task  # an error of the work refers to this frame: else only the garbage collector would free both
        raise Gone

    async def _watch(self, beat: Beat) -> None:
        """Return when the client disconnects; call `beat` whenever it is due.

        After the body, ASGI's `receive` returns nothing but the disconnect: waiting for it is how a server learns that
        the client has gone while the upstream is silent.
        """
        while True:
            wait = await beat()
            try:
                async with asyncio.timeout(wait):
                    message = await self._receive()
            except TimeoutError:
                continue
            if message["type"] == "http.disconnect":
                return

    def _piece(self, message: AsgiMessage, size: int) -> bytes:
        if message["type"] == "http.disconnect":
            raise Gone
        return self._hold(message.get("body", b""), size)


async def _stopped(task: asyncio.Task[T]) -> None:
    """Cancel a task, and wait until it has closed its upstream connection; its result no longer matters."""
    if not task.done():
        task.cancel()
        await asyncio.wait((task,))
