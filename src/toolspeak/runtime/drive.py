"""Drivers of a turn: they do what its program asks, and decide nothing.

    outcome = await drive(take_turn(request, plan, ids), upstream, emit)

An upstream opens an answer as an iterator of batches; closing the iterator closes the connection. A driver that is
cancelled closes what is open.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from typing import Protocol, TypeAlias

from toolspeak.engine.effects import EffectReply, Emit, Open, Pull, TurnProgram
from toolspeak.engine.outcome import Outcome
from toolspeak.ir.event import Event, Failed
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.request import Request
from toolspeak.runtime.offload import Run, at_once

Batch: TypeAlias = list[Event]
Batches: TypeAlias = Generator[Batch, None, None]
AsyncBatches: TypeAlias = AsyncGenerator[Batch, None]
ENDED: Batch = [Failed(Failure(FailureKind.DISCONNECTED, "the upstream's answer ended without an end", 502))]


class SyncUpstream(Protocol):
    """Answers requests, a batch of events at a time."""

    def open(self, request: Request) -> Batches:
        """Send a request; the batches of its answer end with one Finished or Failed."""
        ...


class AsyncUpstream(Protocol):
    """Answers requests, a batch of events at a time, for many at once."""

    def open(self, request: Request) -> AsyncBatches:
        """Send a request; the batches of its answer end with one Finished or Failed."""
        ...


def drive_sync(program: TurnProgram, upstream: SyncUpstream, emit: Callable[[Sequence[Event]], object]) -> Outcome:
    """Run a turn in this thread."""
    opened: Batches | None = None
    answer: EffectReply = None
    try:
        while True:
            effect = program.send(answer)
            answer = None
            if type(effect) is Pull:  # the frequent one first
                if effect.events:
                    emit(effect.events)
                answer = next(opened, ENDED) if opened is not None else ENDED
            elif type(effect) is Emit:
                emit(effect.events)
            elif type(effect) is Open:
                opened = _reopened(opened, upstream, effect.request)
            else:
                opened = _reopened(opened, None, None)
    except StopIteration as stop:
        outcome: Outcome = stop.value
        return outcome
    finally:
        _reopened(opened, None, None)


async def drive(
    program: TurnProgram,
    upstream: AsyncUpstream,
    emit: Callable[[Sequence[Event]], Awaitable[None]],
    prepare: Run = at_once,
) -> Outcome:
    """Run a turn; a cancelled one closes its upstream.

    The program's first step compiles the tools and writes the prompt, which takes time in proportion to the request:
    `prepare` says where. The steps after it read a chunk each.
    """
    opened: AsyncBatches | None = None
    answer: EffectReply = None
    try:
        effect = await prepare(lambda: next(program, None))
        while effect is not None:
            if type(effect) is Pull:  # the frequent one first
                if effect.events:
                    await emit(effect.events)
                try:
                    answer = await opened.__anext__() if opened is not None else ENDED
                except StopAsyncIteration:
                    answer = ENDED
            elif type(effect) is Emit:
                await emit(effect.events)
            elif type(effect) is Open:
                await _closed(opened)
                opened = upstream.open(effect.request)
            else:
                await _closed(opened)
                opened = None
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
