"""The steps of a durable run: each is done once, and what it gave is given again after a crash (RUN-3).

    outfit               what the run was given: the model's name, the tools that end it
    turn:N               the Nth turn of the run: a round may have two, where words are asked for
    asked:ROUND:CALL     a person was asked; DBOS keeps the word itself
    started:ROUND:CALL   a call that may run only once is about to run
    tool:ROUND:CALL      a call's result

Whoever finds `started` without `tool` knows that nobody knows the outcome. Calls that only read run side by side: their
steps are numbered when they begin, which they do in the calls' order.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, groupby
from typing import Any, Final

from dbos import DBOS

from toolspeak.engine.agent import RunTools, TakeTurn, Task
from toolspeak.engine.journal import result_from, result_json, turn_from, turn_json
from toolspeak.ir.message import Call, Result
from toolspeak.ir.turn import Turn
from toolspeak.runs.durable.taken import Taken
from toolspeak.runs.durable.written import read, written
from toolspeak.runs.watch import CallAsked
from toolspeak.runs.work import Work, refused, unknown
from toolspeak.runtime.tools.action import Effect
from toolspeak.runtime.tools.approval import Word

_YEAR: Final = 365 * 24 * 3600.0
"""So long a person's word is waited for."""
_SIDE_BY_SIDE: Final = 8


@dataclass(frozen=True, slots=True)
class _Numbered:
    """A call, and which one of its round it is."""

    round: int
    index: int
    call: Call
    reads: bool

    @property
    def key(self) -> str:
        return f"{self.round}:{self.index}"


@dataclass(frozen=True, slots=True)
class DurableSteps:
    """The steps of one execution of a run."""

    work: Work
    taken: Taken
    _turns: Iterator[int] = field(default_factory=count)

    async def outfitted(self) -> Task:
        """Return the task as it was when the run began, however its tools have changed since."""

        async def body() -> str:
            task = self.work.task
            return written({"model": task.request.model, "ending": [*sorted(task.ending)]})

        kept = read(await self._step("outfit", body))
        return replace(self.work.task, ending=frozenset(kept["ending"]))

    async def turn(self, effect: TakeTurn) -> Turn:
        """Take one turn."""

        async def body() -> str:
            with self.taken.stoppable():
                return written(turn_json(await self.work.turn(effect)))

        return turn_from(read(await self._step(f"turn:{next(self._turns)}", body)))

    async def tools(self, effect: RunTools) -> tuple[Result, ...]:
        """Run calls in their order; neighbours that only read run side by side."""
        calls = [
            _Numbered(effect.round, index, call, self.work.effect(call) is Effect.READS)
            for index, call in enumerate(effect.calls)
        ]
        results: list[Result] = []
        for reads, neighbours in groupby(calls, key=lambda each: each.reads):
            group = list(neighbours)
            results += await self._together(group) if reads else [await self._tool(each) for each in group]
        return tuple(results)

    async def _together(self, calls: Sequence[_Numbered]) -> list[Result]:
        """Run calls side by side; they begin in their order, as people will see them."""
        room = asyncio.Semaphore(_SIDE_BY_SIDE)
        begun = [asyncio.Event() for _ in range(len(calls) + 1)]
        begun[0].set()

        async def one(number: int, each: _Numbered) -> Result:
            try:
                return await self._result(each, partial(self._in_turn, each, room, begun[number], begun[number + 1]))
            finally:
                begun[number + 1].set()

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(number, each)) for number, each in enumerate(calls)]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _in_turn(
        self, each: _Numbered, room: asyncio.Semaphore, before: asyncio.Event, begun: asyncio.Event
    ) -> Result:
        await before.wait()
        async with room:
            begun.set()
            return await self.work.tool(each.round, each.index, each.call)

    async def _tool(self, each: _Numbered) -> Result:
        word, why = self.work.word(each.call), "nobody allowed it"
        if word is Word.ASK:
            word, why = await self._asked(each)
        if word is not Word.YES:
            return await self._refuse(each, why)
        return await (self._once(each) if self.work.effect(each.call) is Effect.ONCE else self._run(each))

    async def _run(self, each: _Numbered) -> Result:
        return await self._result(each, partial(self.work.tool, each.round, each.index, each.call))

    async def _once(self, each: _Numbered) -> Result:
        """Run a call that may not run twice: that it starts is kept before it does."""
        fresh = False

        async def start() -> str:
            nonlocal fresh
            fresh = True
            return ""

        async def body() -> Result:
            if not fresh:
                return await self._unknown(each)
            await self.taken.assure()
            return await self.work.tool(each.round, each.index, each.call)

        await self._step(f"started:{each.key}", start)
        return await self._result(each, body, goes_on=True)

    async def _unknown(self, each: _Numbered) -> Result:
        result = unknown(each.call, "its run was interrupted")
        await self.work.ended(each.round, result)
        return result

    async def _refuse(self, each: _Numbered, why: str) -> Result:
        async def body() -> Result:
            result = refused(each.call, f"the approval mode is {self.work.approval}, and {why}")
            await self.work.ended(each.round, result)
            return result

        return await self._result(each, body)

    async def _asked(self, each: _Numbered) -> tuple[Word, str]:
        """Ask a person, and wait for the word; nothing runs meanwhile."""

        async def body() -> str:
            await self.work.watch(CallAsked(each.round, each.call.id, each.call.name, each.call.arguments))
            return ""

        await self._step(f"asked:{each.key}", body)
        self.taken.admit()
        with self.taken.stoppable(waits=True):
            said: Any = await DBOS.recv_async(each.key, timeout_seconds=_YEAR)
        if said is None:
            return Word.NO, "nobody said anything"
        return Word.YES if said["allowed"] is True else Word.NO, said["reason"] or "it was refused"

    async def _result(self, each: _Numbered, body: Callable[[], Awaitable[Result]], *, goes_on: bool = False) -> Result:
        async def kept() -> str:
            with self.taken.stoppable():
                return written(result_json(await body()))

        return result_from(read(await self._step(f"tool:{each.key}", kept, goes_on=goes_on)))

    async def _step(self, name: str, body: Callable[[], Any], *, goes_on: bool = False) -> str:
        """Do a step, or return what it gave when it was done. Nothing may be awaited before it has its number.

        One that goes on with the step before it is begun even by a worker that is about to end.
        """
        if not goes_on:
            self.taken.admit()
        given: str = await DBOS.run_step_async({"name": name}, body)
        return given
