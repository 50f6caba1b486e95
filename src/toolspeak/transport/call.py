"""One request inside the application: the client's side and ASGI's side of it, with a bounded buffer between them.

    application ── send ──▶ buffer ── head, chunk ──▶ client
    application ◀─ receive ─ body, then the disconnect ◀─ leave ── client

A chunk can be read as soon as the application has sent it. While more than `MOST_UNREAD` bytes are unread, `send`
waits: a client that does not read holds the upstream back, as a full socket would. `_written` is changed only by the
application's thread and `_read` only by the client's, so neither needs a lock.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeAlias

from typing_extensions import override

from toolspeak.gateway.asgi import AsgiMessage
from toolspeak.transport.caller_key import Caller

MOST_UNREAD: Final = 64 * 1024
"""Bytes that the application may be ahead of the client: what a socket usually buffers."""
_CUT_OFF: Final = "toolspeak ended the response before it was complete"


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A client's request in ASGI's terms. Its content and its headers, which have keys, are not in its repr."""

    scope: AsgiMessage = field(repr=False)
    body: bytes = field(repr=False)
    caller: Caller


@dataclass(frozen=True, slots=True)
class Head:
    """The status and headers of a response."""

    status: int
    headers: Sequence[tuple[bytes, bytes]]


class CallBroken(Exception):
    """The response ended before it was complete."""


_Item: TypeAlias = Head | bytes | CallBroken | None
"""What the application sends; None is the end of a complete response."""


class AppCall(ABC):
    """One request that the application answers. `LoopCall` and `ThreadCall` say how the client waits."""

    def __init__(self, request: SentRequest) -> None:
        """Take the request; it is answered by `Application.begin`."""
        self.request: Final = request
        self._is_body_sent = False
        self._has_ended = False
        self._gone: Final = asyncio.Event()
        self._room: asyncio.Future[None] | None = None
        """The application waits for it while too much is unread."""
        self._written = 0
        self._read = 0
        self._end: CallBroken | None = None
        """How the response ended, once the client has read all of it."""
        self.is_over = False
        """The client has read the end."""

    @abstractmethod
    def _put(self, item: _Item) -> None:
        """Hand an item to the client."""

    # ---------------------------------------------------------------- the application's side, in its event loop

    async def receive(self) -> AsgiMessage:
        """Return the body, and after that the disconnect, once the client has left."""
        if not self._is_body_sent:
            self._is_body_sent = True
            return {"type": "http.request", "body": self.request.body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: AsgiMessage) -> None:
        """Take a part of the response; waits while the client does not read."""
        if self._has_ended:  # the client has left: as a server does, drop what comes after that
            return
        if message["type"] == "http.response.start":
            self._put(Head(message["status"], message["headers"]))
            return
        chunk: bytes = message.get("body", b"")
        if chunk:
            self._written += len(chunk)
            self._put(chunk)
        if not message.get("more_body", False):
            self.end(None)
        elif self._is_full:
            await self._wait_for_room()

    def end(self, broken: CallBroken | None) -> None:
        """Tell the client that no more comes. The first end counts."""
        if not self._has_ended:
            self._has_ended = True
            self._put(broken)

    def finished(self, task: "asyncio.Task[None]") -> None:
        """End a response that the application has not ended itself: it crashed, or was stopped."""
        error = None if task.cancelled() else task.exception()
        broken = CallBroken(f"{_CUT_OFF}: {error!r}" if error is not None else _CUT_OFF)
        broken.__cause__ = error
        self.end(broken)

    def leave(self) -> None:
        """Tell the application that the client has gone, which cancels its work and closes the upstream connection."""
        self.end(CallBroken("the response was closed"))
        self._gone.set()
        self.make_room()

    def make_room(self) -> None:
        """Let the application go on sending."""
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    @property
    def _is_full(self) -> bool:
        return self._written - self._read > MOST_UNREAD

    async def _wait_for_room(self) -> None:
        # The order matters: the client reads `_room` after it has changed `_read`. So either it sees this future, or
        # this check sees what it has read.
        self._room = asyncio.get_running_loop().create_future()
        if self._is_full:
            await self._room
        self._room = None

    # ---------------------------------------------------------------- the client's side

    def _took(self, item: bytes) -> bool:
        """Count what the client has read. Return whether the application waits for that."""
        self._read += len(item)
        return self._room is not None and not self._is_full

    def _is_chunk(self, item: _Item) -> bool:
        """Return False for the end, which is kept for the next read."""
        if isinstance(item, bytes):
            return True
        assert not isinstance(item, Head)  # noqa: S101 # the application sends one, and `head` has read it
        self._end, self.is_over = item, True
        return False

    def _ending(self) -> bytes:
        """Return the empty chunk after the last one. Raises `CallBroken` after a response that is not complete."""
        if self._end is not None:
            raise self._end
        return b""


def _head_of(item: _Item) -> Head:
    match item:
        case Head():
            return item
        case CallBroken():
            raise item
        case _:
            raise CallBroken(_CUT_OFF)


class LoopCall(AppCall):
    """A call whose client runs in the application's own event loop."""

    def __init__(self, request: SentRequest) -> None:
        """Take the request."""
        super().__init__(request)
        self._items: Final[deque[_Item]] = deque()
        self._waiter: asyncio.Future[None] | None = None

    @override
    def _put(self, item: _Item) -> None:
        self._items.append(item)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def head(self, patience: float | None) -> Head:
        """Wait for status and headers. Raises `TimeoutError`, `CallBroken`."""
        await self._wait(patience)
        return _head_of(self._items.popleft())

    async def chunk(self, patience: float | None) -> bytes:
        """Wait for bytes and return all that have been sent; empty at the end. Raises `TimeoutError`, `CallBroken`."""
        if not self.is_over:
            if not self._items:
                await self._wait(patience)
            chunks: list[Any] = []
            while self._items and self._is_chunk(item := self._items.popleft()):
                chunks.append(item)
            if chunks:
                chunk = chunks[0] if len(chunks) == 1 else b"".join(chunks)
                if self._took(chunk):
                    self.make_room()
                return chunk
        return self._ending()

    async def _wait(self, patience: float | None) -> None:
        if self._items:
            return
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        # A timer, because `asyncio.timeout` would cost twice as much for each chunk.
        timer = None if patience is None else loop.call_later(patience, _expire, waiter)
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()


def _expire(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())


class ThreadCall(AppCall):
    """A call whose client waits in another thread than the application's."""

    def __init__(self, request: SentRequest) -> None:
        """Take the request."""
        super().__init__(request)
        self._items: Final[SimpleQueue[_Item]] = SimpleQueue()

    @override
    def _put(self, item: _Item) -> None:
        self._items.put(item)

    def head(self, timeout: float | None) -> Head:
        """Wait for status and headers. Raises `TimeoutError`, `CallBroken`."""
        return _head_of(self._wait(timeout))

    def chunk(self, timeout: float | None) -> tuple[bytes, bool]:
        """Wait for bytes and return all that have been sent, empty at the end, and whether `make_room` is due.

        Raises `TimeoutError`, `CallBroken`.
        """
        if not self.is_over:
            item = self._wait(timeout)
            chunks: list[Any] = []
            while self._is_chunk(item):
                chunks.append(item)
                try:
                    item = self._items.get_nowait()
                except Empty:
                    break
            if chunks:
                chunk = chunks[0] if len(chunks) == 1 else b"".join(chunks)
                return chunk, self._took(chunk)
        return self._ending(), False

    def _wait(self, timeout: float | None) -> _Item:
        try:
            return self._items.get(timeout=timeout)
        except Empty:
            raise TimeoutError from None
