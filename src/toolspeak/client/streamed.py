"""The events of one turn while it is taken: a task takes it, and the reader sets its pace."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from types import TracebackType
from typing import Final, Self

from toolspeak.client.answer import Answer
from toolspeak.engine.outcome import Outcome
from toolspeak.errors import UpstreamFailed
from toolspeak.ir.event import Event, Failed
from toolspeak.runtime.directory import Emit

_CLOSED = "the stream was closed before its end"


class AsyncStream:
    """The events of one turn; when they are over, `answer` has the whole. Who leaves early closes the upstream."""

    def __init__(self, take: Callable[[Emit], Coroutine[object, object, Outcome]], running: "set[AsyncStream]") -> None:
        """Take nothing yet: who asks for the first event does. While it is `running` it is in that set."""
        self._take: Final = take
        self._running: Final = running
        self._batches: Final[asyncio.Queue[Sequence[Event] | None]] = asyncio.Queue()
        self._task: asyncio.Task[Outcome] | None = None
        self._answer: Answer | None = None
        self._closed = False

    @property
    def answer(self) -> Answer:
        """Return the whole answer, once the events are over."""
        if self._answer is None:
            raise RuntimeError("there is no answer: it comes with the last event, and not to who left before")
        return self._answer

    async def batch(self) -> Sequence[Event]:
        """Return the next events, as they come together; nothing at the end. Raises `UpstreamFailed`."""
        while self._answer is None:
            if self._closed:
                raise RuntimeError(_CLOSED)
            task = self._task or self._started()
            batch = await self._batches.get()
            self._batches.task_done()
            if batch is None:
                self._ended(task)
            elif shown := batch[:-1] if isinstance(batch[-1], Failed) else batch:
                return shown
        return ()

    async def close(self) -> None:
        """Read no more; the upstream is closed when this returns."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def __aiter__(self) -> AsyncGenerator[Event, None]:
        """Return the events one by one."""
        try:
            while batch := await self.batch():
                for event in batch:
                    yield event
        finally:
            await self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await self.close()

    def _started(self) -> asyncio.Task[Outcome]:
        self._task = asyncio.get_running_loop().create_task(self._take(self._emit))
        self._running.add(self)
        self._task.add_done_callback(self._over)
        return self._task

    async def _emit(self, events: Sequence[Event]) -> None:
        self._batches.put_nowait(events)
        await self._batches.join()  # until the reader has them

    def _over(self, task: asyncio.Task[Outcome]) -> None:
        self._running.discard(self)
        self._batches.put_nowait(None)
        if not task.cancelled():
            task.exception()  # seen, even if nobody reads on

    def _ended(self, task: asyncio.Task[Outcome]) -> None:
        self._closed = True
        if task.cancelled():
            raise RuntimeError(_CLOSED)
        self._answer = answered(task.result())


def answered(outcome: Outcome) -> Answer:
    """Return the answer; raises `UpstreamFailed` if it broke."""
    last = outcome.events[-1] if outcome.events else None
    if isinstance(last, Failed):
        raise UpstreamFailed(last.failure.message, last.failure.kind, last.failure.status)
    return Answer(outcome)
