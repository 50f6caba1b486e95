"""What only the keeper in memory does: it forgets, it joins text that nobody has read, it stops with its process."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from tests.contract.runs_scene import Hangs, Model, World, call
from toolspeak.agent.runs.events import RunEnded, TurnBegan, Watch, Wrote
from toolspeak.agent.runs.memory import MemoryRuns
from toolspeak.agent.runs.runs import Spec
from toolspeak.agent.runs.steps import Work
from toolspeak.engine.agent import Status
from toolspeak.errors import UnknownRun

SPEC = Spec("Talk.")


async def read(runs: MemoryRuns, id: str) -> list[object]:
    return [each.event async for each in runs.events(id)]


def test_only_the_latest_runs_are_kept() -> None:
    async def test() -> None:
        runs = MemoryRuns(World(Model("a", "b", "c", Hangs(), "d")).prepare, kept=2)
        for id in ("one", "two", "three"):
            await runs.start(SPEC, id)
            await read(runs, id)
        await runs.start(SPEC, "goes-on")
        assert [line.id for line in await runs.list()] == ["goes-on", "three"]
        with pytest.raises(UnknownRun):
            await runs.show("one")
        await runs.start(SPEC, "five")
        assert [line.id for line in await runs.list()] == ["five", "goes-on", "three"], "what goes on is not forgotten"
        await runs.close()

    asyncio.run(test())


def test_text_that_nobody_watches_is_one_event() -> None:
    async def test() -> None:
        runs = MemoryRuns(World(Model("one two three four")).prepare)
        id = await runs.start(SPEC)
        while (await runs.show(id)).line.ended == 0:  # noqa: ASYNC110 # who watched would change it
            await asyncio.sleep(0.01)
        assert [type(each) for each in await read(runs, id)][:2] == [TurnBegan, Wrote]
        texts = [each.text for each in await read(runs, id) if isinstance(each, Wrote)]
        assert texts == ["one two three four"]

    asyncio.run(test())


def test_what_goes_on_ends_with_its_keeper() -> None:
    async def test() -> None:
        runs = MemoryRuns(World(Model(call("look"), Hangs())).prepare)
        id = await runs.start(SPEC)
        async for each in runs.events(id):
            if isinstance(each.event, Wrote):
                break
        await runs.close()
        view = await runs.show(id)
        assert (view.line.status, view.line.rounds) == (Status.CANCELLED, 1)

    asyncio.run(test())


def test_a_run_can_be_cancelled_before_it_is_ready() -> None:
    @asynccontextmanager
    async def never(id: str, spec: Spec, watch: Watch, began: float) -> AsyncGenerator[Work]:
        del id, spec, watch, began
        await asyncio.sleep(3600)
        yield None  # pyright: ignore[reportReturnType] # it never comes

    async def test() -> None:
        runs = MemoryRuns(never)
        id = await runs.start(SPEC)
        await asyncio.sleep(0)
        await runs.cancel(id)
        assert await read(runs, id) == [RunEnded(0, Status.CANCELLED, "", "cancelled before it began")]

    asyncio.run(test())


@pytest.mark.parametrize("error", [OSError("a server of tools hangs"), asyncio.CancelledError()])
def test_tools_that_cannot_be_closed_do_not_undo_what_was_done(error: BaseException) -> None:
    world = World(Model("Done."))

    @asynccontextmanager
    async def breaking(id: str, spec: Spec, watch: Watch, began: float) -> AsyncGenerator[Work]:
        async with world.prepare(id, spec, watch, began) as work:
            yield work
        raise error

    async def test() -> None:
        runs = MemoryRuns(breaking)
        id = await runs.start(SPEC)
        assert (await read(runs, id))[-1] == RunEnded(0, Status.DONE, "Done.")

    asyncio.run(test())
