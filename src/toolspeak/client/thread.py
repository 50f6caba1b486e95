"""An event loop in a thread of its own, for those who do not await."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")
Last: TypeAlias = Callable[[], Coroutine[object, object, None]]


class Closed(RuntimeError):
    """There is no thread any more."""


class LoopThread:
    """Starts with its first work. Work may come from any thread."""

    def __init__(self, last: Last) -> None:
        """Start nothing yet; `last` is done before the thread ends."""
        self._last: Final = last
        self._lock: Final = threading.RLock()  # the collector may end a stream while we hold it
        self._running: _Running | None = None
        self._closed = False

    def run(self, work: Coroutine[object, object, T]) -> T:
        """Wait for some work; who is interrupted here stops it there."""
        future = self._scheduled(work)
        try:
            return future.result()
        except CancelledError:
            raise Closed("the client was closed while somebody waited for it") from None
        except BaseException:
            future.cancel()
            raise

    def end(self, work: Coroutine[object, object, None]) -> None:
        """Do some last work, if there is still a thread; who comes by in that very thread cannot wait for it."""
        running = self._running
        try:
            future = self._scheduled(work)
        except Closed:
            return
        if running is None or running.thread is not threading.current_thread():
            future.result()

    def close(self) -> None:
        """Stop all work, and end the thread."""
        with self._lock:
            self._closed = True
            running, self._running = self._running, None
        if running is not None:
            running.loop.call_soon_threadsafe(running.stop.set)
            if running.thread is not threading.current_thread():
                running.thread.join()

    def _scheduled(self, work: Coroutine[object, object, T]) -> Future[T]:
        with self._lock:  # what is scheduled before the end is done or cancelled, never forgotten
            if self._closed:
                work.close()
                raise Closed("the client is closed")
            if self._running is None:
                self._running = _Running(self._last)
            return asyncio.run_coroutine_threadsafe(work, self._running.loop)


@dataclass(eq=False)
class _Running:
    last: Last
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._serve, name="toolspeak", daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        """Live, and end. asyncio's own `Runner` would start a thread for its end, which an exiting process forbids."""
        try:
            self.loop.run_until_complete(self._live())
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            self.loop.close()

    async def _live(self) -> None:
        await self.stop.wait()
        await self.last()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
