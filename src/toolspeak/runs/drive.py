"""The driver of a run: it does what the program asks, by the steps of an engine, and decides nothing."""

from typing import Protocol

from toolspeak.engine.agent import Ending, RunAnswer, RunProgram, RunTools, Stop, TakeTurn
from toolspeak.ir.message import Result
from toolspeak.ir.turn import Turn


class Steps(Protocol):
    """How an engine takes turns and runs tools; what it answers it must answer again after a crash."""

    async def turn(self, effect: TakeTurn) -> Turn | Stop:
        """Take one turn."""
        ...

    async def tools(self, effect: RunTools) -> tuple[Result, ...] | Stop:
        """Run calls."""
        ...


async def drive_run(program: RunProgram, steps: Steps) -> Ending:
    """Work on a run until it ends."""
    answer: RunAnswer = None
    try:
        while True:
            effect = program.send(answer)
            answer = await (steps.turn(effect) if isinstance(effect, TakeTurn) else steps.tools(effect))
    except StopIteration as stop:
        ending: Ending = stop.value
        return ending
