"""Runs in this process, with nothing kept: for programs that wait for the end themselves."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from toolspeak.agent.runs.steps import Do, Permission, RunSteps, T, TextForm
from toolspeak.agent.runs.watch import RunEvent, Watch, run_ended
from toolspeak.agent.runs.work import Work
from toolspeak.engine.agent import Ending
from toolspeak.ir.message import Call

AskPermission: TypeAlias = Callable[[Call], Awaitable[bool]]
"""Asks a person whether a call may run."""


async def refuse(call: Call) -> bool:
    """Answer where there is no person to ask: the call may not run."""
    del call
    return False


@dataclass(frozen=True, slots=True)
class NoStepStore:
    """Keeps nothing: each step is done once, at once. Implements `Keeper`."""

    ask_person: AskPermission = refuse

    async def keep(self, step: str, form: TextForm[T], do: Do[T], *, once: bool = False) -> T:
        """Do the step."""
        del step, form, once
        return await do()

    async def ask(self, key: str, call: Call) -> Permission:
        """Ask at once."""
        del key
        return Permission(await self.ask_person(call))


async def run_inline(work: Work, ask: AskPermission = refuse) -> Ending:
    """Work on a run to its end. `work.watch` is called with one event at a time, though calls may run in parallel."""
    work = replace(work, watch=_one_at_a_time(work.watch))
    ending = await RunSteps(work, NoStepStore(ask)).run(work.task)
    await work.watch(run_ended(ending))
    return ending


def _one_at_a_time(watch: Watch) -> Watch:
    """Let a function that awaits see an event only after it has dealt with the one before it."""
    lock = asyncio.Lock()

    async def watched(event: RunEvent) -> None:
        async with lock:
            await watch(event)

    return watched
