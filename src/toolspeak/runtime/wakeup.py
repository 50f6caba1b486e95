"""Resumes a task at once, inside the call that has news for it.

    upstream's `data_received` -> wakeup.wake() -> the task reads, decodes, encodes and writes -> back

A task that waits for an asyncio future is scheduled for the next pass of the event loop: a future, a handle and a pass
for every chunk of every stream. asyncio lets tasks wait for any object that has a future's few methods, and leaves to
that object when it calls the task back. This one does so in the same call stack, and serves all waits of its owner.
"""

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context
from typing import Any, Final


class Wakeup:
    """What one task at a time waits for."""

    __slots__ = ("_asyncio_future_blocking", "_callback", "_context", "_is_cancelled", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take the event loop of the tasks."""
        self._loop: Final = loop
        self._asyncio_future_blocking = False
        """asyncio's protocol: a future that was yielded by `await` says so, and the task takes it back."""
        self._callback: Callable[[object], object] | None = None
        """Resumes the waiting task; None while there is none."""
        self._context: Context | None = None
        self._is_cancelled = False

    def __await__(self) -> Generator[Any, None, None]:
        """Suspend the task until `wake`. Raises `RuntimeError` if another task waits."""
        if self._callback is not None:
            raise RuntimeError("another task waits for the same bytes")
        self._asyncio_future_blocking = True
        yield self

    @property
    def is_awaited(self) -> bool:
        """Whether a task waits, and has not been woken."""
        return self._callback is not None

    def wake(self) -> None:
        """Resume the waiting task, and return when it waits again or has ended. Without a task nothing happens.

        Inside another task it is scheduled instead: asyncio runs one task at a time.
        """
        callback, self._callback = self._callback, None
        if callback is None:
            return
        context = self._context
        if context is None or asyncio.current_task(self._loop) is not None:
            self._loop.call_soon(callback, self, context=context)
        else:
            context.run(callback, self)

    # ---------------------------------------------------------------- what a task asks of a future

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop."""
        return self._loop

    def add_done_callback(self, callback: Callable[[object], object], *, context: Context | None = None) -> None:
        """Keep what resumes the task."""
        self._callback, self._context = callback, context

    def result(self) -> None:
        """Raise `CancelledError` if the wait was cancelled."""
        if self._is_cancelled:
            self._is_cancelled = False
            raise asyncio.CancelledError

    def cancel(self, msg: object = None) -> bool:
        """Cancel the wait, and return whether there was one. The task is scheduled, as by asyncio's futures."""
        del msg
        callback, self._callback = self._callback, None
        if callback is None:
            return False
        self._is_cancelled = True
        self._loop.call_soon(callback, self, context=self._context)
        return True
