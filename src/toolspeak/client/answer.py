"""The results that a caller gets: a whole turn, the stream of its events, and the message that answers a call."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from toolspeak.engine.effects import Outcome
from toolspeak.engine.plan import Plan
from toolspeak.errors import BadField, UpstreamFailed
from toolspeak.ir.complaint import Complaint
from toolspeak.ir.event import Event, Failed, StopReason, Usage
from toolspeak.ir.message import Call, Message, Reasoning, Result, Role, Text
from toolspeak.ir.turn import Turn
from toolspeak.runtime.directory import EmitEvents

_CLOSED = "the stream was closed before its end"


@dataclass(frozen=True)
class Answer:
    """One turn of the model, and how toolspeak got it."""

    outcome: Outcome

    @cached_property
    def turn(self) -> Turn:
        """All parts, in the order in which the model wrote them."""
        return self.outcome.turn

    @property
    def text(self) -> str:
        """The visible text."""
        return self.turn.text

    @property
    def reasoning(self) -> str:
        """The reasoning of the model."""
        return self.turn.reasoning

    @property
    def calls(self) -> tuple[Call, ...]:
        """The checked calls."""
        return self.turn.calls

    @property
    def stop(self) -> StopReason:
        """Why the model stopped."""
        return self.turn.stop or StopReason.END

    @property
    def usage(self) -> Usage:
        """The tokens of all upstream requests."""
        return self.outcome.usage

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the caller, such as that calls were emulated."""
        return self.outcome.warnings

    @property
    def complaints(self) -> tuple[Complaint, ...]:
        """Why attempted calls were not delivered."""
        return self.outcome.complaints

    @property
    def plan(self) -> Plan:
        """How the turn was run, and why."""
        return self.outcome.plan

    @property
    def requests(self) -> int:
        """The number of upstream requests."""
        return self.outcome.requests

    @property
    def message(self) -> Message:
        """The answer as a message, to continue the conversation with."""
        kept = tuple(part for part in self.turn.parts if isinstance(part, Text | Reasoning | Call))
        return Message(Role.ASSISTANT, kept)


def answer_from(outcome: Outcome) -> Answer:
    """Return the answer of a turn; raises `UpstreamFailed` if the turn failed."""
    last = outcome.events[-1] if outcome.events else None
    if isinstance(last, Failed):
        raise UpstreamFailed(last.failure.message, last.failure.kind, last.failure.status)
    return Answer(outcome)


def tool_result(call: Call, result: Any, *, is_error: bool = False) -> Message:  # noqa: ANN401 # anything that JSON has
    """Return the message that answers a call; a result that is not a string is written as JSON. Raises `BadField`."""
    try:
        text = result if isinstance(result, str) else msgspec.json.encode(result).decode()
    except (TypeError, ValueError) as error:
        raise BadField("result", f"it cannot be written as JSON: {error}") from None
    return Message(Role.TOOL, (Result(call.id, (Text(text),), call.name, is_error),))


class AsyncStream:
    """The events of one turn, as they arrive; after the last one, `answer` is the whole.

    A task runs the turn, and the reader sets its pace: the next bytes are read from the upstream only when the reader
    has taken all events. Leaving the loop early closes the upstream connection.
    """

    def __init__(
        self, take: Callable[[EmitEvents], Coroutine[object, object, Outcome]], running: "set[AsyncStream]"
    ) -> None:
        """Prepare a stream; reading its first event starts the turn. `running` has this stream while its task runs."""
        self._take: Final = take
        self._running: Final = running
        # None in the queue means that the task has ended. It is not bounded: `_emit` waits until its batch is taken, so
        # there is never more than one batch.
        self._batches: Final[asyncio.Queue[Sequence[Event] | None]] = asyncio.Queue()
        self._task: asyncio.Task[Outcome] | None = None
        self._answer: Answer | None = None
        self._closed = False

    @property
    def answer(self) -> Answer:
        """The whole answer; raises `RuntimeError` before the last event."""
        if self._answer is None:
            raise RuntimeError("there is no answer yet: read the stream to its end first")
        return self._answer

    async def batch(self) -> Sequence[Event]:
        """Return the next events, empty at the end. Raises `UpstreamFailed`, and `RuntimeError` after `close`.

        A `Failed` event is not returned: the caller gets it as the exception, after all events before it.
        """
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
        """Stop reading; the upstream connection is closed when this returns."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])  # `wait` does not raise the task's own CancelledError

    async def __aiter__(self) -> AsyncGenerator[Event, None]:
        """Yield the events one by one."""
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
        await self._batches.join()  # backpressure: return when the reader has taken them

    def _over(self, task: asyncio.Task[Outcome]) -> None:
        self._running.discard(self)
        self._batches.put_nowait(None)
        if not task.cancelled():
            task.exception()  # mark it as retrieved: asyncio logs exceptions of tasks that no caller has read

    def _ended(self, task: asyncio.Task[Outcome]) -> None:
        self._closed = True
        if task.cancelled():
            raise RuntimeError(_CLOSED)
        self._answer = answer_from(task.result())
