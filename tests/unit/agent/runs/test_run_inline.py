"""What only runs with nothing kept do: they show one event at a time, and end with their caller."""

import asyncio
from contextlib import suppress

import pytest

from tests.contract.runs_scene import Model, World, call
from toolspeak.agent.runs.events import RunEnded, RunEvent, ToolCallBegan
from toolspeak.agent.runs.runs import Spec
from toolspeak.agent.runs.steps import run_inline
from toolspeak.engine.agent import Status

SPEC = Spec("Look.")
LOOKS = [event for number in range(4) for event in call("look", f"c{number}")]


def test_events_are_shown_one_at_a_time_though_calls_run_in_parallel() -> None:
    inside, most, seen = 0, 0, list[RunEvent]()

    async def watch(event: RunEvent) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.001)
        seen.append(event)
        inside -= 1

    async def test() -> None:
        async with World(Model(LOOKS, "Seen.")).prepare("run", SPEC, watch) as work:
            assert (await run_inline(work)).status is Status.DONE

    asyncio.run(test())
    assert most == 1
    assert [event.id for event in seen if isinstance(event, ToolCallBegan)] == ["c0", "c1", "c2", "c3"]
    assert isinstance(seen[-1], RunEnded)


def test_an_error_of_the_watcher_is_the_callers_as_it_is() -> None:
    async def watch(event: RunEvent) -> None:
        if isinstance(event, ToolCallBegan):
            raise LookupError(event.id)  # noqa: TRY004 # any error that the library does not raise

    async def test() -> None:
        async with World(Model(LOOKS)).prepare("run", SPEC, watch) as work:
            with pytest.raises(LookupError, match="c0"):
                await run_inline(work)

    asyncio.run(test())


def test_parallel_reads_end_with_the_caller() -> None:
    world = World(Model([event for number in range(3) for event in call("slow_look", f"c{number}")]))

    async def watch(event: RunEvent) -> None:
        del event

    async def test() -> None:
        async with world.prepare("run", SPEC, watch) as work:
            running = asyncio.create_task(run_inline(work))
            while len(world.begun) < 3:  # noqa: ASYNC110 # tools tell of it by a list
                await asyncio.sleep(0)
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
            assert running.cancelled()
            assert len(asyncio.all_tasks()) == 1, "nothing goes on"

    asyncio.run(test())
    assert world.done == []
