"""Durable runs in one process, on SQLite (RUN-3, RUN-8)."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import msgspec
import pytest
import sqlalchemy as sa
from typing_extensions import override

from tests.runs.durable_scene import MODEL, Scene, calls, installed, spec, to_the_end
from toolspeak.agent.durable import dbos_internals
from toolspeak.agent.durable.database import Database
from toolspeak.agent.durable.ledger import RunRow, delete_old_runs, end_abandoned_runs
from toolspeak.agent.durable.runs import DurableRuns, open_runs, view_of
from toolspeak.agent.durable.schema import EVENTS, RUNS
from toolspeak.agent.runs.events import RunEnded, ToolCallAsked, ToolCallBegan, TurnBegan, Wrote
from toolspeak.agent.runs.runs import RunSummary, RunView
from toolspeak.agent.runs.steps import JSON, RESULT, TURN
from toolspeak.agent.tools.action import CallContext
from toolspeak.config.shape import Approval, Durable
from toolspeak.engine.agent import Status
from toolspeak.errors import BadField, BadRequest, UnknownRun
from toolspeak.facts.model import ModelFacts, Support
from toolspeak.ir.event import Event, StopReason, TextDelta
from toolspeak.ir.failure import FailureKind
from toolspeak.ir.message import Call, Result, Text, part_text
from toolspeak.ir.request import Request
from toolspeak.ir.turn import Turn
from toolspeak.runtime.directory import Directory, Route
from toolspeak.testing import failed

TALK = "It is done, and this is a long text that comes in many small pieces."


def text(result: Result) -> str:
    return "".join(part_text(piece) for piece in result.content)


def final(shown: RunView) -> str:
    return "".join(part.text for part in shown.kept.message.parts if isinstance(part, Text))


def test_a_run_ends_and_is_kept_with_all_its_rounds_run3(tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        async with scene.runs() as runs:
            id = await runs.start(spec())
            seen = await to_the_end(runs, id)
        async with open_runs(scene.config) as others:
            shown = await others.show(id)
            assert (shown.line.status, shown.line.rounds, final(shown)) == (Status.DONE, 2, TALK)
            assert [[text(result) for result in each.results] for each in shown.kept.rounds] == [
                ["did 0:0", "did 0:1"],
                ["did 1:0"],
            ]
            assert await to_the_end(others, id) == seen
            assert await to_the_end(others, id, seen[3].number) == seen[4:]
            assert [line.id for line in await others.list()] == [id]
        assert [each.number for each in seen] == list(range(len(seen)))
        assert isinstance(seen[-1].event, RunEnded)

    with installed(Scene(tmp_path, {0: calls("read", "pay"), 1: calls("set"), 2: TALK})) as scene:
        asyncio.run(play(scene))
    assert scene.acts == {"0:0": 1, "0:1": 1, "1:0": 1}


def test_a_run_that_names_no_model_shows_the_one_that_it_got(tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        default = Route("here", scene, MODEL, ModelFacts(tools=Support.NATIVE))
        async with open_runs(scene.config, Directory([], {"": default})) as runs:
            id = await runs.start(msgspec.structs.replace(spec(), model=""))
            await to_the_end(runs, id)
            assert [line.model for line in await runs.list()] == [MODEL]

    with installed(Scene(tmp_path, {0: TALK})) as scene:
        asyncio.run(play(scene))


def test_text_is_kept_in_few_pieces_and_whole_run8(tmp_path: Path) -> None:
    async def play(scene: Scene) -> list[Wrote]:
        async with scene.runs() as runs:
            seen = await to_the_end(runs, await runs.start(spec()))
        return [each.event for each in seen if isinstance(each.event, Wrote)]

    with installed(Scene(tmp_path, {0: TALK})) as scene:
        wrote = asyncio.run(play(scene))
    assert "".join(each.text for each in wrote) == TALK
    assert len(wrote) < len(TALK) / 4


def test_a_run_is_not_begun_twice(tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        async with scene.runs() as runs:
            assert await runs.start(spec(task="one"), "mine") == "mine"
            await runs.start(spec(task="two"), "mine")
            await to_the_end(runs, "mine")
            assert (await runs.show("mine")).spec.task == "one"

    with installed(Scene(tmp_path, {0: TALK})) as scene:
        asyncio.run(play(scene))
    assert scene.turns == {0: 1}


def test_what_is_not_there_and_what_cannot_be_a_name_is_said(tmp_path: Path) -> None:
    async def play() -> None:
        async with open_runs(Scene(tmp_path, {}).config) as runs:
            with pytest.raises(UnknownRun, match="'nobody'"):
                await runs.show("nobody")
            with pytest.raises(UnknownRun):  # and not a group of errors
                async with Scene(tmp_path, {}).runs() as here:
                    await here.show("nobody")
            with pytest.raises(UnknownRun):
                await runs.cancel("nobody")
            with pytest.raises(UnknownRun):
                await anext(aiter(runs.events("nobody")))
            with pytest.raises(BadField, match=r"id: '\.\./x' is not"):
                await runs.start(spec(), "../x")

    asyncio.run(play())


def test_a_cancelled_call_stops_at_once_and_the_run_goes_on_where_it_stood_run3(tmp_path: Path) -> None:
    """The payment was begun: whether it went through nobody knows, and it is not made again (RUN-3)."""
    stuck = asyncio.Event()

    async def tells(doing: CallContext) -> str:
        if doing.key.endswith(":1:0") and not stuck.is_set():
            stuck.set()
            await asyncio.sleep(60)
        return "done"

    async def play(scene: Scene) -> None:
        async with scene.runs() as runs:
            id = await runs.start(spec())
            await asyncio.wait_for(stuck.wait(), 30)
            began = monotonic()
            await runs.cancel(id)
            seen = await to_the_end(runs, id)
            assert monotonic() - began < 5
            assert isinstance(seen[-1].event, RunEnded)
            shown = await runs.show(id)
            assert (shown.line.status, len(shown.kept.rounds), shown.reason) == (Status.CANCELLED, 1, "cancelled")
            await runs.resume(id)
            more = await to_the_end(runs, id, seen[-1].number)
            assert isinstance(more[-1].event, RunEnded)
            shown = await runs.show(id)
            assert (shown.line.status, final(shown)) == (Status.DONE, TALK)
            assert "outcome of pay is unknown" in text(shown.kept.rounds[1].results[0])
            assert [isinstance(each.event, RunEnded) for each in await to_the_end(runs, id)].count(True) == 1

    with installed(Scene(tmp_path, {0: calls("set"), 1: calls("pay"), 2: TALK}, tells)) as scene:
        asyncio.run(play(scene))
    assert scene.acts == {"0:0": 1, "1:0": 1}
    assert scene.turns == {0: 1, 1: 1, 2: 1}


def test_a_call_that_may_be_repeated_is_run_again_run3(tmp_path: Path) -> None:
    stuck = asyncio.Event()

    async def tells(doing: CallContext) -> str:
        del doing
        if not stuck.is_set():
            stuck.set()
            await asyncio.sleep(60)
        return "done"

    async def play(scene: Scene) -> None:
        async with scene.runs() as runs:
            id = await runs.start(spec())
            await asyncio.wait_for(stuck.wait(), 30)
            await runs.cancel(id)
            await runs.resume(id)
            await to_the_end(runs, id)
            assert text((await runs.show(id)).kept.rounds[0].results[0]) == "done"

    with installed(Scene(tmp_path, {0: calls("set"), 1: TALK}, tells)) as scene:
        asyncio.run(play(scene))
    assert scene.acts == {"0:0": 2}


def test_a_turn_that_failed_is_tried_again_and_nothing_before_it_run3(tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        async with scene.runs() as runs:
            id = await runs.start(spec())
            await to_the_end(runs, id)
            shown = await runs.show(id)
            assert (shown.line.status, len(shown.kept.rounds)) == (Status.FAILED, 1)
            assert "out of order" in shown.reason
            scene.answers = {**scene.answers, 1: TALK}
            await runs.resume(id)
            await to_the_end(runs, id)
            shown = await runs.show(id)
            assert (shown.line.status, final(shown)) == (Status.DONE, TALK)
            with pytest.raises(BadRequest, match="is done"):
                await runs.resume(id)

    with installed(Scene(tmp_path, {0: calls("pay"), 1: failed(FailureKind.OTHER, "out of order")})) as scene:
        asyncio.run(play(scene))
    assert scene.acts == {"0:0": 1}
    assert scene.turns[0] == 1


def test_a_run_that_cannot_begin_fails_with_a_reason_and_begins_later(tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        async with scene.runs() as runs:
            id = await runs.start(spec())
            await to_the_end(runs, id)
            shown = await runs.show(id)
            assert (shown.line.status, shown.reason) == (Status.FAILED, shown.reason)
            assert "'scene' is not one of" in shown.reason
            with installed(scene):
                await runs.resume(id)
                await to_the_end(runs, id)
            assert (await runs.show(id)).line.status is Status.DONE

    asyncio.run(play(Scene(tmp_path, {0: TALK})))


@pytest.mark.parametrize(("allowed", "expected"), [(True, "did 0:0"), (False, "too dear")])
def test_a_persons_word_is_waited_for(tmp_path: Path, allowed: bool, expected: str) -> None:
    async def play(scene: Scene) -> None:
        async with scene.runs() as runs:
            id = await runs.start(spec(Approval.ASK))
            async for each in runs.events(id):
                if isinstance(each.event, ToolCallAsked):
                    shown = await runs.show(id)
                    assert (shown.line.status, [call.id for call in shown.asked]) == (Status.WAITING, ["c0"])
                    with pytest.raises(BadField, match=r"no call 'c9' of run .* waits for a word"):
                        await runs.approve(id, "c9", allowed=True)
                    await runs.approve(id, "c0", allowed=allowed, reason="too dear")
                    await runs.approve(id, "c0", allowed=not allowed)  # the first word counts
            shown = await runs.show(id)
            assert expected in text(shown.kept.rounds[0].results[0])
            assert shown.asked == ()

    with installed(Scene(tmp_path, {0: calls("pay"), 1: TALK})) as scene:
        asyncio.run(play(scene))
    assert scene.acts["0:0"] == allowed


def test_a_run_that_waits_for_a_word_outlives_its_process(tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        async with scene.runs() as runs:
            id = await runs.start(spec(Approval.ASK))
            async for each in runs.events(id):
                if isinstance(each.event, ToolCallAsked):
                    break
        async with open_runs(scene.config) as others:
            await others.approve(id, "c0", allowed=True)
        async with scene.runs() as runs:
            await runs.resume(id)
            seen = await to_the_end(runs, id)
        assert [type(each.event) for each in seen].count(ToolCallAsked) == 1

    with installed(Scene(tmp_path, {0: calls("pay"), 1: TALK})) as scene:
        asyncio.run(play(scene))
    assert scene.acts == {"0:0": 1}
    assert scene.turns == {0: 1, 1: 1}


def test_a_run_that_waits_for_a_word_can_be_cancelled_and_waits_again_when_it_goes_on(tmp_path: Path) -> None:
    async def asked(runs: DurableRuns, id: str) -> None:
        while not (await runs.show(id)).asked:  # noqa: ASYNC110 # it says so by its view
            await asyncio.sleep(0.05)

    async def play(scene: Scene) -> None:
        async with scene.runs() as runs:
            id = await runs.start(spec(Approval.ASK))
            await asyncio.wait_for(asked(runs, id), 30)
            await runs.cancel(id)
            await to_the_end(runs, id)
            assert (await runs.show(id)).asked == ()
            await runs.resume(id)
            await asyncio.wait_for(asked(runs, id), 30)
            await runs.approve(id, "c0", allowed=True)
            await to_the_end(runs, id)
            assert (await runs.show(id)).line.status is Status.DONE

    with installed(Scene(tmp_path, {0: calls("pay"), 1: TALK})) as scene:
        asyncio.run(play(scene))
    assert scene.acts == {"0:0": 1}


def test_a_run_left_in_the_middle_is_taken_up_and_no_finished_step_repeats_run3(tmp_path: Path) -> None:
    stuck = asyncio.Event()

    async def tells(doing: CallContext) -> str:
        if doing.key.endswith(":1:0") and not stuck.is_set():
            stuck.set()
            await asyncio.sleep(60)
        return "done"

    async def play(scene: Scene) -> None:
        async with scene.runs() as runs:
            id = await runs.start(spec())
            await asyncio.wait_for(stuck.wait(), 30)
        async with scene.runs() as runs:
            assert (await runs.show(id)).line.status is Status.RUNNING
            await runs.resume(id)
            await to_the_end(runs, id)
            assert (await runs.show(id)).line.status is Status.DONE

    with installed(Scene(tmp_path, {0: calls("pay", "read"), 1: calls("set"), 2: TALK}, tells)) as scene:
        asyncio.run(play(scene))
    assert scene.acts == {"0:0": 1, "0:1": 1, "1:0": 2}
    assert scene.turns == {0: 1, 1: 1, 2: 1}


def test_calls_that_only_read_run_side_by_side_and_keep_their_order(tmp_path: Path) -> None:
    both = asyncio.Barrier(2)

    async def tells(doing: CallContext) -> str:
        if not doing.key.endswith(":2"):
            await asyncio.wait_for(both.wait(), 20)  # nobody passes alone
        return doing.key[-1]

    async def play(scene: Scene) -> None:
        async with scene.runs() as runs:
            id = await runs.start(spec())
            await to_the_end(runs, id)
            rounds = (await runs.show(id)).kept.rounds
            assert [text(result) for result in rounds[0].results] == ["0", "1", "2"]
            seen = [each.event for each in await to_the_end(runs, id)]
            assert [event.id for event in seen if isinstance(event, ToolCallBegan)] == ["c0", "c1", "c2"]

    with installed(Scene(tmp_path, {0: calls("read", "read", "pay"), 1: TALK}, tells)) as scene:
        asyncio.run(play(scene))


def test_a_run_without_a_folder_has_one_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(scene: Scene) -> None:
        async with scene.runs() as runs:
            id = await runs.start(spec(), "mine")
            await to_the_end(runs, id)

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with installed(Scene(tmp_path, {0: TALK})) as scene:
        asyncio.run(play(scene))
    assert [each.name for each in tmp_path.glob("**/workplaces/*")] == ["mine"]


def test_a_round_with_two_turns_is_shown_whole() -> None:
    """A model that says nothing is asked for words, in the same round."""
    steps = {
        "outfit": JSON.write({"model": MODEL, "ending": []}),
        "turn:0": TURN.write(Turn((Call("c0", "read", "{}"),), StopReason.CALLS)),
        "tool:0:0": RESULT.write(Result("c0", (Text("found"),), "read")),
        "turn:1": TURN.write(Turn((), StopReason.END)),
        "turn:2": TURN.write(Turn((Text(TALK),), StopReason.END)),
    }
    row = RunRow(RunSummary("one", "do it", Status.SUMMED_UP, MODEL, 1.0, 2.0), spec(), "")
    shown = view_of(row, steps, ())
    assert (final(shown), len(shown.kept.rounds)) == (TALK, 1)
    del steps["turn:2"]
    assert final(view_of(row, steps, ())) == ""


# ---------------------------------------------------------------- the database


def test_sqlite_keeps_what_is_committed_and_lets_readers_read(tmp_path: Path) -> None:
    database = Database(Durable(folder=tmp_path))
    with database.new_engine(1).connect() as connection:
        found = {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in PRAGMAS}
    database.close()
    assert found == PRAGMAS


PRAGMAS = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30000}


def test_a_row_that_claims_to_be_pickled_is_not_read(tmp_path: Path) -> None:
    """Who can write to the database must not be able to run code in a worker."""

    async def play(scene: Scene) -> None:
        async with scene.runs() as runs:
            id = await runs.start(spec())
            await to_the_end(runs, id)
            _change(scene, sa.update(dbos_internals.STEPS).values(serialization="py_pickle", output="gASVAAAAAAAAAAAu"))
            with pytest.raises(Exception, match=r"pickled|gASV"):
                await _steps_as_read(runs)

    with installed(Scene(tmp_path, {0: TALK})) as scene:
        asyncio.run(play(scene))


async def _steps_as_read(runs: DurableRuns) -> None:
    database = runs._database
    steps = await asyncio.to_thread(dbos_internals.step_outputs, database.client, (await runs.list())[0].id)
    raise LookupError(str(steps))  # DBOS shows what it cannot read as it stands


def _change(scene: Scene, statement: sa.Update) -> None:
    database = Database(scene.config.runs)
    with database.theirs.begin() as connection:
        connection.execute(statement)
    database.close()


def test_old_runs_go_with_all_that_was_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(scene: Scene) -> None:
        async with scene.runs() as runs:
            for name in ("old", "new"):
                await runs.start(spec(), name)
                await to_the_end(runs, name)

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with installed(Scene(tmp_path, {0: TALK})) as scene:
        asyncio.run(play(scene))
    _change(scene, sa.update(RUNS).where(RUNS.c.id == "old").values(ended=1.0))
    database = Database(scene.config.runs)
    assert delete_old_runs(database, scene.config.runs.keep) == 1
    assert delete_old_runs(database, scene.config.runs.keep) == 0
    with database.theirs.begin() as connection:
        assert set(connection.execute(sa.select(RUNS.c.id)).scalars()) == {"new"}
        assert set(connection.execute(sa.select(EVENTS.c.run)).scalars()) == {"new"}
        assert set(connection.execute(sa.select(dbos_internals.STEPS.c.workflow_uuid)).scalars()) == {"new"}
    database.close()
    assert [each.name for each in tmp_path.glob("**/workplaces/*")] == ["new"]


def test_a_run_whose_canceller_died_gets_its_end(tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        async with open_runs(scene.config) as runs:
            id = await runs.start(spec())
            runs._database.client.cancel_workflow(id)  # and here it died
            _change(scene, sa.update(dbos_internals.WORKFLOWS).values(updated_at=0))
            assert end_abandoned_runs(runs._database) == 1
            assert end_abandoned_runs(runs._database) == 0
            assert [type(each.event) for each in await to_the_end(runs, id)] == [RunEnded]
            assert (await runs.show(id)).line.status is Status.CANCELLED

    asyncio.run(play(Scene(tmp_path, {})))


@dataclass
class Stuck(Scene):
    """Its model begins to answer, and gets no further the first time."""

    @override
    async def open(self, request: Request) -> AsyncGenerator[list[Event], None]:
        if not self.turns.total():
            self.turns[0] += 1
            yield [TextDelta("I ")]
            await asyncio.sleep(3600)
        async for batch in super().open(request):
            yield batch


def test_a_turn_that_was_broken_off_begins_twice_run8(tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        async with scene.runs() as runs:
            id = await runs.start(spec())
            async for each in runs.events(id):
                if isinstance(each.event, TurnBegan):
                    break
            await runs.cancel(id)
            first = await to_the_end(runs, id)
            await runs.resume(id)
            seen = [*first, *await to_the_end(runs, id, first[-1].number)]
            assert [each.event for each in seen if isinstance(each.event, TurnBegan)] == [TurnBegan(0)] * 2
            assert scene.turns[0] == 2

    with installed(Stuck(tmp_path, {0: TALK})) as scene:
        asyncio.run(play(scene))
