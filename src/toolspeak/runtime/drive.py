"""Runs a turn's program against an upstream: performs the effects that the program yields, and decides nothing.

    outcome = await drive(take_turn(request, plan, ids), upstream, emit)

The engine is pure: it yields `Open`, `Pull`, `Emit` or `Close`, and a driver does the I/O. The same program thus
runs in a thread (`drive_sync`), on the event loop (`drive`) and in simulations.

An upstream opens an answer as an iterator of batches; closing the iterator closes the connection. Each driver closes
the open answer when the turn ends, fails or is cancelled.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from typing import Protocol, TypeAlias

from toolspeak.engine.effects import EffectReply, Emit, Escalate, Open, Outcome, Pull, TurnProgram
from toolspeak.ir.event import Event, Failed
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.request import Request
from toolspeak.runtime.offload import Run, at_once
from toolspeak.runtime.recorder import UNWATCHED, TurnWatch
from toolspeak.runtime.text_shortcut import TextShortcut

Batch: TypeAlias = list[Event]
Batches: TypeAlias = Generator[Batch, None, None]
AsyncBatches: TypeAlias = AsyncGenerator[Batch, None]
# An upstream must end its batches with Finished or Failed. If the iterator just stops, the program still gets an end:
# a program that waits for one would pull forever.
ENDED: Batch = [Failed(Failure(FailureKind.DISCONNECTED, "the upstream's answer ended without an end", 502))]


AskStronger: TypeAlias = Callable[[Escalate], Awaitable[Batch | None]]
"""Lets a stronger model take the turn, and returns all its events; None if it may not be asked now."""


class SyncUpstream(Protocol):
    """Answers requests in batches of events; each call blocks its thread."""

    def open(self, request: Request) -> Batches:
        """Send a request and return the batches of its answer, which end with exactly one Finished or Failed."""
        ...


class AsyncUpstream(Protocol):
    """Answers requests in batches of events; many requests may be open at once."""

    def open(self, request: Request) -> AsyncBatches:
        """Send a request and return the batches of its answer, which end with exactly one Finished or Failed."""
        ...


def drive_sync(program: TurnProgram, upstream: SyncUpstream, emit: Callable[[Sequence[Event]], object]) -> Outcome:
    """Run a turn in the calling thread and return its outcome. Exceptions of `upstream` and `emit` are passed on."""
    opened: Batches | None = None
    answer: EffectReply = None
    try:
        while True:
            effect = program.send(answer)
            answer = None
            if type(effect) is Pull:  # first, because there is one per chunk and the others come once per request
                if effect.events:
                    emit(effect.events)
                answer = next(opened, ENDED) if opened is not None else ENDED
            elif type(effect) is Emit:
                emit(effect.events)
            elif type(effect) is Open:
                opened = _reopened(opened, upstream, effect.request)
            else:  # Close, or Escalate: there is no stronger model here
                opened = _reopened(opened, None, None)
    except StopIteration as stop:
        outcome: Outcome = stop.value
        return outcome
    finally:
        _reopened(opened, None, None)


async def drive(  # noqa: PLR0913 # a turn, and what its caller hears of it
    program: TurnProgram,
    upstream: AsyncUpstream,
    emit: Callable[[Sequence[Event]], Awaitable[None]],
    prepare: Run = at_once,
    watch: TurnWatch = UNWATCHED,
    *,
    escalate: AskStronger | None = None,
    shortcut: TextShortcut | None = None,
) -> Outcome:
    """Run a turn on the event loop and return its outcome. If the task is cancelled, the open answer is closed.

    The program's first step compiles the tools and writes the prompt, which takes time in proportion to the request.
    `prepare` decides where that step runs (see `offload.py`). Each later step reads one chunk and runs at once.
    `watch` is told of all requests and answers. `escalate` asks a stronger model. `shortcut` is open while the turn
    waits for its upstream.
    """
    opened: AsyncBatches | None = None
    answer: EffectReply = None
    try:
        # `next` with a default, because `prepare` may use a thread, and a future cannot carry StopIteration
        effect = await prepare(lambda: next(program, None))
        while effect is not None:
            if type(effect) is Pull:  # first, because there is one per chunk and the others come once per request
                if effect.events:
                    await emit(effect.events)
                if shortcut is not None:
                    shortcut.open(effect.lane, watch.received)
                try:
                    answer = await opened.__anext__() if opened is not None else ENDED
                except StopAsyncIteration:
                    answer = ENDED
                if shortcut is not None:
                    shortcut.close()
                watch.received(answer)
            elif type(effect) is Emit:
                await emit(effect.events)
            elif type(effect) is Open:
                await _closed(opened)
                watch.opened(effect)
                opened = upstream.open(effect.request)
            else:
                await _closed(opened)
                opened = None
                answer = await escalate(effect) if type(effect) is Escalate and escalate is not None else None
            effect, answer = program.send(answer), None
    except StopIteration as stop:
        outcome: Outcome = stop.value
        return outcome
    finally:
        await _closed(opened)
    raise AssertionError("the program ended before its first effect")


def _reopened(opened: Batches | None, upstream: SyncUpstream | None, request: Request | None) -> Batches | None:
    if opened is not None:
        opened.close()
    return upstream.open(request) if upstream is not None and request is not None else None


async def _closed(opened: AsyncBatches | None) -> None:
    if opened is not None:
        await opened.aclose()
