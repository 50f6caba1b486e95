"""One attempt that all callers wait for: opening a database, for example."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")


class SharedAttempt(Generic[T]):
    """An operation that is executed once for all callers. After a failure, the next caller tries again."""

    def __init__(self, do: Callable[[], Awaitable[T]]) -> None:
        """Take the operation."""
        self._do: Final = do
        # It runs in its own task, so that a caller that gives up does not end it for the others.
        self._task: asyncio.Task[T] | None = None

    async def result(self, patience: float | None) -> T:
        """Return the result, or raise the operation's error. Raises `TimeoutError` after `patience` seconds."""
        task = self._task
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            self._task = task = asyncio.get_running_loop().create_task(self._run())
        done, _ = await asyncio.wait((task,), timeout=patience)
        if not done:
            raise TimeoutError
        return task.result()

    async def cancel(self) -> None:
        """End an attempt that is under way."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _run(self) -> T:
        return await self._do()
