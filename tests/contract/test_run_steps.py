"""The steps of a run are the same whatever keeps them: nothing, a dict, SQLite, PostgreSQL, a history that is replayed.

This is the contract of the seam between a run's program and its store (RUN-1, RUN-3, RUN-5): an engine such as Temporal
can take the place of DBOS as long as its adapter passes it. `replay_store.py` is what such an adapter would do.

A way of working is put in by a row of WAYS: it works on a task to its end, and gives the events and the rounds.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import pytest

from testkit.postgres import postgres
from tests.contract.replay_store import History, replayed
from tests.contract.runs_scene import Answer, Model, World, call
from tests.contract.test_runs import KEEPERS, PATIENCE_S, durable_at, ended, seen
from toolspeak.agent.runs.events import RunEvent, ToolCallAsked, ToolCallBegan, ToolCallEnded
from toolspeak.agent.runs.runs import Runs, Spec
from toolspeak.agent.runs.steps import run_inline
from toolspeak.config.shape import Approval
from toolspeak.engine.agent import Status
from toolspeak.ir.event import Event
from toolspeak.ir.message import Call, result_text
from toolspeak.ir.round import Round

OFF: Final = Spec("Look around.", "tiny", approval=Approval.OFF)
ASK: Final = Spec("Change it.", "tiny", approval=Approval.ASK)
READ_ONLY: Final = Spec("Change it.", "tiny", approval=Approval.READ_ONLY)
AT_ONCE: Final = 8
SETTLED_S: Final = 0.3


@dataclass(frozen=True)
class Worked:
    """What came of a run, and what was seen of it."""

    status: Status
    rounds: Sequence[Round]
    events: Sequence[RunEvent]

    @property
    def texts(self) -> list[str]:
        return [result_text(result) for each in self.rounds for result in each.results]


Way: TypeAlias = Callable[[World, Spec, bool], Awaitable[Worked]]


async def _inline(world: World, spec: Spec, allowed: bool) -> Worked:
    events: list[RunEvent] = []

    async def watch(event: RunEvent) -> None:
        events.append(event)

    async def ask(asked: Call) -> bool:
        del asked
        return allowed

    async with world.prepare("run", spec, watch) as work:
        ending = await run_inline(work, ask)
    return Worked(ending.status, ending.kept.rounds, events)


def _kept_by(keeper: str) -> Way:
    async def way(world: World, spec: Spec, allowed: bool) -> Worked:
        async with KEEPERS[keeper](world.prepare) as runs:
            return await _followed(runs, await runs.start(spec), allowed)

    return way


async def _followed(runs: Runs, id: str, allowed: bool) -> Worked:
    events: list[RunEvent] = []
    async for each in runs.events(id):
        events.append(each.event)
        if isinstance(each.event, ToolCallAsked):
            await runs.approve(id, each.event.id, allowed=allowed)
    view = await runs.show(id)
    return Worked(view.line.status, view.kept.rounds, events)


async def _replayed(world: World, spec: Spec, allowed: bool) -> Worked:
    events: list[RunEvent] = []

    async def watch(event: RunEvent) -> None:
        events.append(event)

    async with world.prepare("run", spec, watch) as work:
        ending = await replayed(work, History(), allowed=allowed)
    return Worked(ending.status, ending.kept.rounds, events)


def _kept_at(database: str) -> Way:
    async def way(world: World, spec: Spec, allowed: bool) -> Worked:
        async with durable_at(database, world.prepare) as runs:
            return await _followed(runs, await runs.start(spec), allowed)

    return way


WAYS: Final[dict[str, Way]] = {
    "inline": _inline,
    **{keeper: _kept_by(keeper) for keeper in KEEPERS},
    "replay": _replayed,
}


@pytest.fixture(scope="module")
def server() -> Generator[str]:
    with postgres() as url:
        yield url


@pytest.fixture(params=[*WAYS, "postgresql"])
def way(request: pytest.FixtureRequest) -> Way:
    if request.param == "postgresql":
        return _kept_at(request.getfixturevalue("server"))
    return WAYS[request.param]


def worked(way: Way, spec: Spec, *answers: Answer, allowed: bool = False) -> tuple[Worked, World]:
    """Work on a task to its end."""

    async def played() -> tuple[Worked, World]:
        world = World(Model(*answers))
        async with asyncio.timeout(PATIENCE_S):
            return await way(world, spec, allowed), world

    return asyncio.run(played())


def calls(*names: str) -> list[Event]:
    """Call tools in one turn: the nth call has the id `c` and n."""
    return [event for number, name in enumerate(names) for event in call(name, f"c{number}")]


# ---------------------------------------------------------------- calls that only read


def test_eight_calls_that_only_read_run_in_parallel_and_keep_their_order(way: Way) -> None:
    async def played() -> tuple[Worked, int]:
        world = World(Model(calls(*["slow_look"] * 10), "I looked."))
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            going = group.create_task(_result(way(world, OFF, False)))
            while len(world.begun) < AT_ONCE:  # noqa: ASYNC110 # tools tell of it by a list
                await asyncio.sleep(0.01)
            await asyncio.sleep(SETTLED_S)
            at_once = len(world.begun)
            world.slow.set()
        return going.result(), at_once

    found, at_once = asyncio.run(played())
    assert at_once == AT_ONCE
    assert [result.call_id for result in found.rounds[0].results] == [f"c{number}" for number in range(10)]
    began = [event.id for event in found.events if isinstance(event, ToolCallBegan)]
    assert began == [f"c{number}" for number in range(10)], "people see them begin in the calls' order"
    assert sorted(event.id for event in found.events if isinstance(event, ToolCallEnded)) == began


async def _result(working: Awaitable[Worked]) -> Worked:
    return await working


def test_no_read_overtakes_a_call_that_changes_something(way: Way) -> None:
    found, world = worked(way, OFF, calls("look", "look", "write", "look", "write", "write"), "Done.")
    assert world.done == ["look", "look", "write", "look", "write", "write"]
    assert found.texts[2:] == ["write number 1", "look number 3", "write number 2", "write number 3"]


def test_a_call_that_only_reads_waits_for_permission_if_its_tool_asks_for_it_run5(way: Way) -> None:
    """Durable runs ran it unasked: they took every call that reads out of the way of approval."""
    turn = calls("look", "look_into_letters", "look")
    found, world = worked(way, ASK, turn, "I see.")
    assert [event.name for event in found.events if isinstance(event, ToolCallAsked)] == ["look_into_letters"]
    assert world.begun == ["look", "look"]
    found, world = worked(way, ASK, turn, "I see.", allowed=True)
    assert (found.status, world.begun) == (Status.DONE, ["look", "look_into_letters", "look"])


# ---------------------------------------------------------------- refusals


def test_a_refusal_has_one_text_run5(way: Way) -> None:
    found, world = worked(way, ASK, call("write"), "As you like.")
    assert found.texts == ["write was not run: the approval mode is ask, and permission was refused."]
    assert (found.rounds[0].results[0].is_error, world.begun) == (True, [])
    found, world = worked(way, READ_ONLY, call("write"), "As you like.")
    assert found.texts == ["write was not run: the approval mode is read-only, which does not allow it."]
    assert (found.rounds[0].results[0].is_error, world.begun) == (True, [])
    ends = [event.text for event in found.events if isinstance(event, ToolCallEnded)]
    assert ends == found.texts, "people see it as well"


@pytest.mark.parametrize("keeper", KEEPERS)
def test_the_reason_of_a_refusal_is_told_to_the_model_run5(keeper: str) -> None:
    async def played() -> list[str]:
        world = World(Model(call("write"), "As you like."))
        async with asyncio.timeout(PATIENCE_S), KEEPERS[keeper](world.prepare) as runs:
            id = await runs.start(ASK)
            await seen(runs, id, ToolCallAsked)
            await runs.approve(id, "call_1", allowed=False, reason="not on Sundays")
            await ended(runs, id)
            return [result_text(each) for each in (await runs.show(id)).kept.rounds[0].results]

    refusal = "write was not run: the approval mode is ask, and permission was refused: not on Sundays."
    assert asyncio.run(played()) == [refusal]


# ---------------------------------------------------------------- cancelled in the middle


@pytest.mark.parametrize("keeper", KEEPERS)
def test_parallel_reads_that_were_cancelled_run_again_and_finished_ones_do_not_run3(keeper: str) -> None:
    async def played() -> World:
        world = World(Model(calls("slow_look", "look", "slow_look"), "I looked."))
        async with asyncio.timeout(PATIENCE_S), KEEPERS[keeper](world.prepare) as runs:
            id = await runs.start(OFF)
            await seen(runs, id, ToolCallEnded)
            await asyncio.sleep(SETTLED_S)  # an event is seen before its step is kept
            assert sorted(world.begun) == ["look", "slow_look", "slow_look"]
            await runs.cancel(id)
            await ended(runs, id)
            view = await runs.show(id)
            assert (view.line.status, view.line.rounds) == (Status.CANCELLED, 0)
            world.slow.set()
            await runs.resume(id)
            await ended(runs, id)
            view = await runs.show(id)
            assert view.line.status is Status.DONE
            assert [result.call_id for result in view.kept.rounds[0].results] == ["c0", "c1", "c2"]
        return world

    world = asyncio.run(played())
    assert (world.begun.count("look"), world.begun.count("slow_look")) == (1, 4)
    assert sorted(world.done) == ["look", "slow_look", "slow_look"]


@pytest.mark.parametrize("keeper", KEEPERS)
def test_a_call_whose_outcome_is_unknown_has_one_text_run3(keeper: str) -> None:
    async def played() -> list[str]:
        world = World(Model(call("slow"), "I looked."))
        async with asyncio.timeout(PATIENCE_S), KEEPERS[keeper](world.prepare) as runs:
            id = await runs.start(OFF)
            await seen(runs, id, ToolCallBegan)
            await asyncio.sleep(SETTLED_S)
            await runs.cancel(id)
            await ended(runs, id)
            await runs.resume(id)
            await ended(runs, id)
            return [result_text(each) for each in (await runs.show(id)).kept.rounds[0].results]

    (text,) = asyncio.run(played())
    assert text.startswith("The outcome of slow is unknown: it was started, and then its run was interrupted.")


# ---------------------------------------------------------------- replayed from history


@pytest.mark.parametrize("number", range(9))
def test_a_worker_that_dies_before_a_step_is_recorded_repeats_no_payment_run3(number: int) -> None:
    """It dies once, after the nth step has happened and before its result is recorded."""
    answers = [calls("look", "look"), calls("write", "look"), "Done."]

    async def played() -> tuple[Worked, World, History]:
        world, history, died = World(Model(*answers)), History(), list[str]()

        def dies(step: str) -> bool:
            if died or len(history.results) < number:
                return False
            died.append(step)
            if step.startswith("turn:"):  # the model is asked again, and says the same
                world.model.answers.insert(0, answers[int(step.removeprefix("turn:"))])
            return True

        async def unseen(event: RunEvent) -> None:
            del event

        async with world.prepare("run", OFF, unseen) as work:
            ending = await replayed(work, history, dies=dies)
        return Worked(ending.status, ending.kept.rounds, ()), world, history

    found, world, history = asyncio.run(played())
    assert (found.status, len(found.rounds)) == (Status.DONE, 2)
    assert world.begun.count("write") <= 1
    unknown = [text for text in found.texts if "outcome of write is unknown" in text]
    assert world.begun.count("write") + (0 if world.begun.count("write") else len(unknown)) == 1
    assert history.attempts > len(history.results) // 2, "the program was replayed"
    assert all(step in history.results for step in history.steps)
