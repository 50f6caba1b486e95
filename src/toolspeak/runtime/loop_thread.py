"""A thread with an event loop of its own, for callers without `await`."""

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

from toolspeak.errors import ClientClosed

T = TypeVar("T")
Last: TypeAlias = Callable[[], Coroutine[object, object, None]]
NewLoop: TypeAlias = Callable[[], asyncio.AbstractEventLoop]


class LoopThread:
    """A thread with an event loop, started by its first work; work may come from any thread.

    asyncio's objects belong to one loop, and callers without `await` have none. One thread serves all callers of a
    client, so that they share its connections.
    """

    def __init__(self, last: Last, new_loop: NewLoop = asyncio.new_event_loop) -> None:
        """Prepare the thread, which starts with the first work and awaits `last` before it ends."""
        self._last: Final = last
        self._new_loop: Final = new_loop
        # Reentrant: the garbage collector may close a stream in a thread that holds the lock already.
        self._lock: Final = threading.RLock()
        self._running: _Running | None = None
        self._closed = False

    def submit(self, work: Coroutine[object, object, T]) -> Future[T]:
        """Run work in the thread without waiting for it. Raises `ClientClosed`."""
        with self._lock:
            try:
                return asyncio.run_coroutine_threadsafe(work, self._started().loop)
            except ClientClosed:
                work.close()
                raise

    def schedule(self, callback: Callable[[], object]) -> None:
        """Call a function in the thread, without waiting for it; cheaper than `submit`. Raises `ClientClosed`."""
        with self._lock:
            self._started().loop.call_soon_threadsafe(callback)

    def run(self, work: Coroutine[object, object, T]) -> T:
        """Run work in the thread, wait for it and return its result. Raises `ClientClosed`, and exceptions of the work.

        If the waiting thread is interrupted, for example by Ctrl-C, the work is cancelled.
        """
        future = self.submit(work)
        try:
            return future.result()
        except CancelledError:
            raise ClientClosed("the client was closed while a caller waited for it") from None
        except BaseException:
            future.cancel()
            raise

    def call_soon(self, callback: Callable[[], object]) -> None:
        """Call a function in the thread; without effect once the thread has ended.

        It takes no lock: it is for cleanup, which the garbage collector may run anywhere.
        """
        running = self._running
        if running is not None:
            with suppress(RuntimeError):  # its loop was closed between the two lines
                running.loop.call_soon_threadsafe(callback)

    def end(self, work: Coroutine[object, object, None]) -> None:
        """Run cleanup work if the thread still exists, and wait for it.

        In the loop's own thread, where the garbage collector may run this too, it does not wait: that would deadlock.
        """
        running = self._running
        try:
            future = self.submit(work)
        except ClientClosed:
            return
        if running is None or running.thread is not threading.current_thread():
            future.result()

    def close(self) -> None:
        """Cancel all work and end the thread; may be called several times, and from any thread."""
        running = self._stopped()
        if running is not None and running.thread is not threading.current_thread():
            running.thread.join()

    def stop(self) -> None:
        """Do the same without waiting, for the garbage collector.

        It may run in any line of any thread, with any lock held. It once ran where the standard library starts a
        thread of a pool; the loop's last work needed a pool too, and each of both threads waited for the other.
        """
        self._stopped()

    def _started(self) -> "_Running":
        """Return the thread, started if it was not; needs the lock. Raises `ClientClosed`.

        What is scheduled under the lock comes before the end: it is finished or cancelled, never lost.
        """
        if self._closed:
            raise ClientClosed("the client is closed")
        if self._running is None:
            self._running = _Running(self._last, self._new_loop())
            # A program that closes nothing ends its connections in order, and waits for that.
            atexit.register(self.close)
        return self._running

    def _stopped(self) -> "_Running | None":
        """Let the thread end. Return it, once."""
        with self._lock:
            self._closed = True
            running, self._running = self._running, None
        if running is not None:
            atexit.unregister(self.close)
            running.loop.call_soon_threadsafe(running.stop.set)
        return running


@dataclass(eq=False)
class _Running:
    """The running thread and its loop. It is a daemon thread: a client that is never closed keeps no process alive."""

    last: Last
    loop: asyncio.AbstractEventLoop
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._serve, name="toolspeak", daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        """Run the loop until `stop`, then close it.

        `asyncio.Runner` is not used: it starts a thread at its end, which is impossible while the process exits.
        """
        try:
            self.loop.run_until_complete(self._live())
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            self.loop.close()

    async def _live(self) -> None:
        await self.stop.wait()
        await self.last()
        # Callers wait for these tasks in other threads: without the cancellation they would wait forever.
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
