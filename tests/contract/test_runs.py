"""What every keeper of runs does, whichever it is (RUN-1, RUN-3, RUN-5, RUN-8).

A keeper is put in by a row of KEEPERS: it gets what prepares the runs of a scene, and gives `Runs`.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

import pytest

from tests.contract.runs_scene import Answer, Hangs, Model, World, call
from toolspeak.agent.durable import worker
from toolspeak.agent.durable.runs import open_runs
from toolspeak.agent.runs.events import (
    RunEnded,
    ToolCallAsked,
    ToolCallBegan,
    ToolCallEnded,
    TurnBegan,
    TurnEnded,
    Wrote,
)
from toolspeak.agent.runs.memory import MemoryRuns, PrepareRun
from toolspeak.agent.runs.runs import NumberedEvent, Runs, Spec
from toolspeak.agent.runs.steps import Work
from toolspeak.config.shape import Approval, Config, Durable
from toolspeak.engine.agent import Status
from toolspeak.errors import BadRequest, TooManyRuns, UnknownRun
from toolspeak.ir.failure import FailureKind
from toolspeak.ir.message import part_text
from toolspeak.runtime.directory import Directory
from toolspeak.testing import failed

SPEC: Final = Spec("Look around.", "tiny", approval=Approval.AUTO)
ASKS: Final = Spec("Change it.", approval=Approval.ASK)
PATIENCE_S: Final = 20.0
BARE: Final = Spec("Look around.", "tiny", approval=Approval.AUTO, settings={"mode": "off"})
"""A turn is as the model wrote it, with nothing in it too."""
DOWN: Final = failed(FailureKind.OTHER, "the model is down", 400)


@asynccontextmanager
async def _memory(prepare: PrepareRun) -> AsyncGenerator[Runs]:
    runs = MemoryRuns(prepare)
    try:
        yield runs
    finally:
        await runs.close()


def _durable(prepare: PrepareRun) -> AbstractAsyncContextManager[Runs]:
    return durable_at("", prepare)


@asynccontextmanager
async def durable_at(database: str, prepare: PrepareRun) -> AsyncGenerator[Runs]:
    """Keep them in this database, or in a SQLite of their own; the work is done here."""

    def ready(*args: Any, imports: object, began: float) -> AbstractAsyncContextManager[Work]:  # noqa: ANN401 # as prepare_run
        del imports
        id, spec, _, _, watch = args
        return prepare(id, spec, watch, began)

    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "prepare_run", ready)
        async with open_runs(Config(runs=Durable(database=database, folder=Path(folder))), Directory([])) as runs:
            yield runs


Keeper: TypeAlias = Callable[[PrepareRun], AbstractAsyncContextManager[Runs]]
KEEPERS: Final[dict[str, Keeper]] = {"memory": _memory, "durable": _durable}
Test: TypeAlias = Callable[[Runs, World], Awaitable[None]]


@pytest.fixture(params=KEEPERS)
def keeper(request: pytest.FixtureRequest) -> str:
    return request.param


def play(keeper: str, test: Test, *answers: Answer) -> World:
    """Run a test with a model that says this."""

    async def played() -> World:
        world = World(Model(*answers))
        async with asyncio.timeout(PATIENCE_S), KEEPERS[keeper](world.prepare) as runs:
            await test(runs, world)
        return world

    return asyncio.run(played())


async def ended(runs: Runs, id: str, after: int = -1) -> list[NumberedEvent]:
    """Return all events behind a number, up to the end."""
    return [each async for each in runs.events(id, after)]


async def seen(runs: Runs, id: str, kind: type, after: int = -1) -> NumberedEvent:
    """Wait for an event of a kind."""
    async for each in runs.events(id, after):
        if isinstance(each.event, kind):
            return each
    raise AssertionError(f"the run ended without {kind.__name__}")


def end_of(events: list[NumberedEvent]) -> tuple[Status, str]:
    last = events[-1].event
    assert isinstance(last, RunEnded)
    return last.status, last.text


# ---------------------------------------------------------------- beginning and watching


def test_a_run_is_worked_to_its_end_run1(keeper: str) -> None:
    async def test(runs: Runs, world: World) -> None:
        id = await runs.start(SPEC)
        events = await ended(runs, id)
        assert end_of(events) == (Status.DONE, "A stone.")
        view = await runs.show(id)
        assert [[call.name for call in each.calls] for each in view.kept.rounds] == [["look"]]
        assert view.kept.rounds[0].text == "I look."
        assert (view.line.status, view.line.rounds, view.line.model) == (Status.DONE, 1, "tiny")
        assert view.line.ended >= view.line.began > 0
        assert view.spec.task == "Look around."
        assert world.done == ["look"]

    play(keeper, test, call("look", before="I look."), "A stone.")


def test_a_run_that_is_begun_is_not_begun_twice(keeper: str) -> None:
    async def test(runs: Runs, world: World) -> None:
        first = await runs.start(SPEC, "run-1")
        assert (first, await runs.start(SPEC, "run-1")) == ("run-1", "run-1")
        await ended(runs, "run-1")
        assert await runs.start(SPEC, "run-1") == "run-1"
        assert (world.done, len(await runs.list())) == (["look"], 1)

    play(keeper, test, call("look"), "A stone.")


@pytest.mark.parametrize("id", ["../../etc", "a/b", "a b", "-a", "x" * 129, "..", "a\n"])
def test_an_id_that_could_be_a_path_is_refused(keeper: str, id: str) -> None:
    async def test(runs: Runs, _: World) -> None:
        with pytest.raises(BadRequest, match="id: "):
            await runs.start(SPEC, id)

    play(keeper, test)


def test_events_tell_the_whole_story_in_order_run8(keeper: str) -> None:
    async def test(runs: Runs, _: World) -> None:
        events = await ended(runs, await runs.start(SPEC))
        numbers = [each.number for each in events]
        assert numbers == sorted(set(numbers))
        kinds = [type(each.event).__name__ for each in events if not isinstance(each.event, Wrote)]
        assert kinds == [
            "TurnBegan",
            "TurnEnded",
            "ToolCallBegan",
            "ToolCallEnded",
            "TurnBegan",
            "TurnEnded",
            "RunEnded",
        ]
        written = "".join(each.event.text for each in events if isinstance(each.event, Wrote) and each.event.round == 1)
        assert written == "A stone, and a tree."

    play(keeper, test, call("look", before="I look."), "A stone, and a tree.")


def test_who_rejoins_misses_nothing_and_hears_nothing_twice_run8(keeper: str) -> None:
    """Whatever number somebody saw last, what follows fits on to it: while the run goes on and after its end."""

    async def test(runs: Runs, _: World) -> None:
        id = await runs.start(SPEC)
        whole = asyncio.create_task(ended(runs, id))
        pieced: list[NumberedEvent] = []
        while not pieced or not isinstance(pieced[-1].event, RunEnded):
            async for each in runs.events(id, pieced[-1].number if pieced else -1):
                pieced.append(each)
                break
        assert pieced == await whole
        for at, each in enumerate(pieced):
            assert await ended(runs, id, each.number) == pieced[at + 1 :]

    play(keeper, test, call("look"), call("write"), "One two three four five.")


# ---------------------------------------------------------------- cancelling and going on


def test_cancelled_while_the_model_writes_it_goes_on_from_there_run3(keeper: str) -> None:
    async def test(runs: Runs, world: World) -> None:
        id = await runs.start(SPEC)
        last = await seen(runs, id, Wrote, (await seen(runs, id, ToolCallEnded)).number)
        await runs.cancel(id)
        events = await ended(runs, id)
        assert end_of(events) == (Status.CANCELLED, "")
        view = await runs.show(id)
        assert (view.line.status, view.line.rounds) == (Status.CANCELLED, 1)
        assert "cancelled" in view.reason
        await runs.resume(id)
        assert end_of(await ended(runs, id, last.number)) == (Status.DONE, "A stone.")
        assert (await runs.show(id)).line.status is Status.DONE
        assert world.done == ["look"], "what was done is not done again"
        assert len(world.model.requests) == 3

    play(keeper, test, call("look"), Hangs("Let me"), "A stone.")


def test_cancelled_while_a_tool_runs_its_outcome_is_unknown_run3(keeper: str) -> None:
    """It has side effects and was stopped in the middle: it is not run again, and the model is told."""

    async def test(runs: Runs, world: World) -> None:
        id = await runs.start(SPEC)
        began = await seen(runs, id, ToolCallBegan, (await seen(runs, id, ToolCallEnded)).number)
        assert began.event == ToolCallBegan(0, "b", "slow", "{}")
        await runs.cancel(id)
        assert end_of(await ended(runs, id))[0] is Status.CANCELLED
        assert (await runs.show(id)).line.rounds == 0, "a round whose tools did not end is none"
        await runs.resume(id)
        assert end_of(await ended(runs, id, began.number)) == (Status.DONE, "I looked.")
        assert world.begun == ["write", "slow"]
        first, second = (await runs.show(id)).kept.rounds[0].results
        assert part_text(first.content[0]) == "write number 1"
        assert "unknown" in part_text(second.content[0])
        assert second.is_error

    play(keeper, test, [*call("write", "a"), *call("slow", "b")], "I looked.")


def test_a_call_that_only_reads_is_run_again_run3(keeper: str) -> None:
    async def test(runs: Runs, world: World) -> None:
        id = await runs.start(SPEC)
        began = await seen(runs, id, ToolCallBegan)
        await runs.cancel(id)
        await ended(runs, id)
        world.slow.set()
        await runs.resume(id)
        assert end_of(await ended(runs, id, began.number)) == (Status.DONE, "I looked.")
        assert (world.begun, world.done) == (["slow_look", "slow_look"], ["slow_look"])

    play(keeper, test, call("slow_look"), "I looked.")


def test_cancelled_while_it_waits_for_a_word_it_asks_again_run5(keeper: str) -> None:
    async def test(runs: Runs, world: World) -> None:
        id = await runs.start(ASKS)
        await seen(runs, id, ToolCallAsked)
        assert (await runs.show(id)).line.status is Status.WAITING
        await runs.cancel(id)
        assert end_of(await ended(runs, id))[0] is Status.CANCELLED
        assert (await runs.show(id)).asked == ()
        with pytest.raises(BadRequest):
            await runs.approve(id, "call_1", allowed=True)
        await runs.resume(id)
        while not (await runs.show(id)).asked:  # noqa: ASYNC110 # whether it is told again is the keeper's choice
            await asyncio.sleep(0.02)
        await runs.approve(id, "call_1", allowed=True)
        assert end_of(await ended(runs, id)) == (Status.DONE, "Done.")
        assert world.done == ["write"]

    play(keeper, test, call("write"), "Done.")


def test_a_failed_turn_is_tried_again_and_nothing_else_run3(keeper: str) -> None:
    async def test(runs: Runs, world: World) -> None:
        id = await runs.start(SPEC)
        events = await ended(runs, id)
        assert end_of(events)[0] is Status.FAILED
        view = await runs.show(id)
        assert (view.line.status, view.line.rounds) == (Status.FAILED, 1)
        assert "the model is down" in view.reason
        await runs.resume(id)
        later = await ended(runs, id, events[-1].number)
        assert later[0].event == TurnBegan(1), "who saw the end sees all that follows"
        assert end_of(later) == (Status.DONE, "A stone.")
        assert world.done == ["write"]

    play(keeper, test, call("write"), DOWN, "A stone.")


def test_of_two_turns_of_one_round_only_the_failed_one_is_tried_again_run3(keeper: str) -> None:
    """A model that says nothing is asked for words: that is a second turn of the same round."""

    async def test(runs: Runs, world: World) -> None:
        id = await runs.start(BARE)
        events = await ended(runs, id)
        assert end_of(events)[0] is Status.FAILED
        assert len((await runs.show(id)).kept.rounds) == 1
        await runs.resume(id)
        assert end_of(await ended(runs, id, events[-1].number)) == (Status.SUMMED_UP, "A stone.")
        assert (world.done, len((await runs.show(id)).kept.rounds)) == (["write"], 1)

    play(keeper, test, call("write"), [], DOWN, "A stone.")


def test_only_what_was_cancelled_or_failed_can_go_on(keeper: str) -> None:
    async def test(runs: Runs, _: World) -> None:
        id = await runs.start(ASKS)
        await seen(runs, id, ToolCallAsked)
        await runs.resume(id)  # it goes on: nothing happens
        await runs.approve(id, "call_1", allowed=True)
        before = await ended(runs, id)
        with pytest.raises(BadRequest, match="done"):
            await runs.resume(id)
        await runs.cancel(id)  # it has ended: nothing happens
        assert await ended(runs, id) == before
        assert (await runs.show(id)).line.status is Status.DONE

    play(keeper, test, call("write"), "Done.")


# ---------------------------------------------------------------- a person's word


def test_a_call_waits_for_a_yes_run5(keeper: str) -> None:
    async def test(runs: Runs, world: World) -> None:
        id = await runs.start(ASKS)
        asked = await seen(runs, id, ToolCallAsked)
        assert asked.event == ToolCallAsked(0, "call_1", "write", "{}")
        view = await runs.show(id)
        assert (view.line.status, [call.id for call in view.asked]) == (Status.WAITING, ["call_1"])
        assert world.begun == []
        with pytest.raises(BadRequest, match="other"):
            await runs.approve(id, "other", allowed=True)
        await runs.approve(id, "call_1", allowed=True)
        assert end_of(await ended(runs, id)) == (Status.DONE, "Done.")
        assert world.done == ["write"]

    play(keeper, test, call("write"), "Done.")


def test_a_no_goes_to_the_model_with_its_reason_run5(keeper: str) -> None:
    async def test(runs: Runs, world: World) -> None:
        id = await runs.start(ASKS)
        await seen(runs, id, ToolCallAsked)
        await runs.approve(id, "call_1", allowed=False, reason="not on Sundays")
        assert end_of(await ended(runs, id)) == (Status.DONE, "As you like.")
        assert world.begun == []
        result = (await runs.show(id)).kept.rounds[0].results[0]
        assert result.is_error
        assert "not on Sundays" in part_text(result.content[0])

    play(keeper, test, call("write"), "As you like.")


def test_what_only_reads_needs_no_word_and_read_only_allows_nothing_else_run5(keeper: str) -> None:
    async def test(runs: Runs, world: World) -> None:
        id = await runs.start(Spec("Look.", approval=Approval.READ_ONLY))
        assert end_of(await ended(runs, id)) == (Status.DONE, "Well.")
        assert world.begun == ["look"]
        refused = (await runs.show(id)).kept.rounds[1].results[0]
        assert "read-only" in part_text(refused.content[0])

    play(keeper, test, call("look"), call("write"), "Well.")


# ---------------------------------------------------------------- what there is


def test_the_list_has_the_newest_first_and_can_be_filtered(keeper: str) -> None:
    async def test(runs: Runs, _: World) -> None:
        for name, tenant in (("one", "anna"), ("two", "berta"), ("three", "anna")):
            await ended(runs, await runs.start(Spec(name, tenant=tenant), name))
        assert [line.name for line in await runs.list()] == ["three", "two", "one"]
        assert [line.name for line in await runs.list(limit=2)] == ["three", "two"]
        assert [line.name for line in await runs.list(tenant="anna")] == ["three", "one"]
        assert [line.name for line in await runs.list(status=Status.FAILED)] == ["two"]
        assert await runs.list(tenant="nobody") == []
        line = (await runs.list())[0]
        assert (line.task, line.tenant, line.status) == ("three", "anna", Status.DONE)

    play(keeper, test, "First.", DOWN, "Third.")


def test_two_tenants_may_use_one_name_and_neither_sees_the_others_run(keeper: str) -> None:
    async def test(runs: Runs, _: World) -> None:
        mine = await runs.start(Spec("Anna's.", tenant="anna"), "same")
        theirs = await runs.start(Spec("Berta's.", tenant="berta"), "same")
        assert mine != theirs
        assert await runs.start(Spec("Anna's again.", tenant="anna"), "same") == mine
        assert [await runs.find("same", "anna"), await runs.find("same", "berta")] == [mine, theirs]
        assert (await runs.show(theirs)).spec.task == "Berta's."
        for name, tenant in ((mine, "berta"), (theirs, "anna"), (mine, "anna"), ("same", "carla"), ("other", "anna")):
            with pytest.raises(UnknownRun, match=f"no run has the id {name!r}"):
                await runs.find(name, tenant)
        own = await runs.start(Spec("Nobody's."), "plain")
        assert (own, await runs.find("plain")) == ("plain", "plain")

    play(keeper, test, "One.", "Two.", "Three.")


def test_a_tenant_has_no_more_live_runs_than_its_limit_however_they_become_live(keeper: str) -> None:
    """An attack cancelled its live runs, started as many, and resumed the cancelled ones: twice the limit was live."""
    spec = Spec("Wait.", approval=Approval.ASK, tenant="anna")

    async def test(runs: Runs, _: World) -> None:
        async def live() -> int:
            return sum(not line.ended for line in await runs.list(tenant="anna"))

        first = [await runs.start(spec, live=2) for _ in range(2)]
        with pytest.raises(TooManyRuns, match="2 runs go on already"):
            await runs.start(spec, "third", live=2)
        with pytest.raises(UnknownRun):
            await runs.find("third", "anna")
        assert await runs.start(Spec("Else.", tenant="berta"), live=1), "each tenant has a limit of its own"
        for id in first:
            await runs.cancel(id)
        for number in range(2):
            await runs.start(spec, f"second{number}", live=2)
        assert await runs.find("second0", "anna") == await runs.start(spec, "second0", live=2), "it was there already"
        for id in first:
            with pytest.raises(TooManyRuns):
                await runs.resume(id, live=2)
            assert (await runs.show(id)).line.status is Status.CANCELLED
            assert isinstance((await ended(runs, id))[-1].event, RunEnded), "it still has its end"
        assert await live() == 2
        await runs.cancel(await runs.find("second0", "anna"))
        outcomes = await asyncio.gather(*(runs.resume(id, live=2) for id in first * 3), return_exceptions=True)
        assert [type(each) for each in outcomes].count(TooManyRuns) >= 1
        assert await live() == 2

    play(keeper, test, *([Hangs()] * 12))


def test_a_run_that_cannot_be_made_ready_fails_and_says_why(keeper: str) -> None:
    async def test(runs: Runs, _: World) -> None:
        id = await runs.start(Spec("Dig.", tools=("spade",)))
        assert end_of(await ended(runs, id))[0] is Status.FAILED
        assert "'spade' is not one of" in (await runs.show(id)).reason

    play(keeper, test)


def test_a_run_that_nobody_knows(keeper: str) -> None:
    async def test(runs: Runs, _: World) -> None:
        for asked in (runs.show, runs.cancel, runs.resume):
            with pytest.raises(UnknownRun):
                await asked("nobody")
        with pytest.raises(UnknownRun):
            await runs.approve("nobody", "call_1", allowed=True)
        with pytest.raises(UnknownRun):
            await ended(runs, "nobody")

    play(keeper, test)


def test_turns_tell_how_many_calls_they_made_run8(keeper: str) -> None:
    async def test(runs: Runs, _: World) -> None:
        events = await ended(runs, await runs.start(SPEC))
        turns = [each.event for each in events if isinstance(each.event, TurnEnded)]
        assert [(turn.round, turn.text, turn.calls) for turn in turns] == [(0, "I look.", 1), (1, "A stone.", 0)]

    play(keeper, test, call("look", before="I look."), "A stone.")
