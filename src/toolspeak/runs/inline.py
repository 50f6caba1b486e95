"""Runs in this process, with nothing kept: for programs that wait for the end themselves."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from toolspeak.engine.agent import Ending, RunTools, TakeTurn, run
from toolspeak.ir.message import Call, Result
from toolspeak.ir.turn import Turn
from toolspeak.runs.drive import drive_run
from toolspeak.runs.watch import CallAsked, ended
from toolspeak.runs.work import Work, refused
from toolspeak.runtime.tools.approval import Word

Ask: TypeAlias = Callable[[Call], Awaitable[bool]]
"""A person's word on a call."""


async def nobody(call: Call) -> bool:
    """Answer where there is no person: what nobody allows is not done."""
    del call
    return False


@dataclass(frozen=True, slots=True)
class InlineSteps:
    """Each step is done once, at once."""

    work: Work
    ask: Ask = nobody

    async def turn(self, effect: TakeTurn) -> Turn:
        """Take one turn."""
        return await self.work.turn(effect)

    async def tools(self, effect: RunTools) -> tuple[Result, ...]:
        """Run calls, one behind the other."""
        return tuple([await self._tool(effect.round, index, call) for index, call in enumerate(effect.calls)])

    async def _tool(self, round: int, index: int, call: Call) -> Result:  # noqa: A002 # the word of the house
        said = self.work.word(call)
        if said is Word.ASK:
            await self.work.watch(CallAsked(round, call.id, call.name, call.arguments))
            said = Word.YES if await self.ask(call) else Word.NO
        if said is Word.YES:
            return await self.work.tool(round, index, call)
        result = refused(call, f"the approval mode is {self.work.approval}, and nobody allowed it")
        await self.work.ended(round, result)
        return result


async def run_inline(work: Work, ask: Ask = nobody) -> Ending:
    """Work on a run to its end."""
    ending = await drive_run(run(work.task), InlineSteps(work, ask))
    await work.watch(ended(ending))
    return ending
