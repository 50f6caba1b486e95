"""Runs in two real databases: an id or a tenant names the cell, and a cell that is away fails alone (RUN-21)."""

import asyncio
from collections import Counter
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from testkit.postgres import Postgres, controlled_postgres
from tests.runs.durable_scene import MODEL, Scene, calls, installed, spec
from toolspeak.agent.durable.cells import at_cell, home_cell, named_cell, open_cells
from toolspeak.agent.durable.runs import open_runs, open_worker
from toolspeak.agent.runs.runs import Spec
from toolspeak.config.shape import DEFAULT_CELL, Config, Durable
from toolspeak.engine.agent import Status
from toolspeak.errors import BadConfig, BadField, CellUnavailable, UnknownRun

CELLS = [DEFAULT_CELL, "eu"]
HOME, AWAY = "emil", "anna"
"""Tenants of the default cell and of `eu`."""
PATIENCE = 5.0
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def servers() -> Generator[tuple[Postgres, Postgres]]:
    with controlled_postgres() as first, controlled_postgres() as second:
        yield first, second


@pytest.fixture
def config(servers: tuple[Postgres, Postgres], tmp_path: Path) -> Config:
    first, second = servers
    return Config(runs=Durable(database=first.url, folder=tmp_path, lease=20.0, cells=(("eu", second.url),)))


def of(tenant: str) -> Spec:
    return Spec("do it", MODEL, tools=(), tenant=tenant)


def test_a_new_cell_takes_its_share_of_the_tenants_and_moves_no_other_run21() -> None:
    tenants = [f"tenant{number}" for number in range(3000)]
    before = {tenant: home_cell(tenant, ["default", "eu"]) for tenant in tenants}
    after = {tenant: home_cell(tenant, ["us", "default", "eu"]) for tenant in tenants}
    assert {after[tenant] for tenant in tenants if after[tenant] != before[tenant]} == {"us"}
    assert all(900 < count < 1100 for count in Counter(after.values()).values()), Counter(after.values())
    assert [home_cell(tenant, CELLS) for tenant in (HOME, AWAY, "")] == ["default", "eu", "default"], "ids are stored"


@pytest.mark.parametrize(
    ("id", "cell"),
    [
        ("run_0123456789abcdef01234567", "default"),
        ("run_0123456789abcdef01234567.eu", "eu"),
        ("run_0123456789abcdef01234567.gone", None),
        ("backup.eu", None),
        ("run_1.eu", None),
    ],
)
def test_only_an_id_that_toolspeak_made_names_a_cell_run21(id: str, cell: str | None) -> None:
    assert named_cell(id, CELLS) == cell


def test_each_reader_finds_a_run_in_the_cell_of_its_tenant_run21(config: Config) -> None:
    async def play() -> None:
        async with open_cells(config, patience=PATIENCE) as runs:
            here, there = await runs.start(of(HOME)), await runs.start(of(AWAY))
            assert [named_cell(id, CELLS) for id in (here, there)] == CELLS
            named = await runs.start(of(AWAY), "job")
            assert await runs.start(of(AWAY), "job") == named, "the same name begins once"
            assert await runs.find("job", AWAY) == named
            assert await runs.find(there, AWAY) == there
            assert [(await runs.show(id)).line.tenant for id in (here, there)] == [HOME, AWAY]
            assert {line.id for line in await runs.list(tenant=AWAY)} == {there, named}
            assert {here, there, named} <= {line.id for line in await runs.list()}
            await runs.cancel(there)
            assert (await runs.show(there)).line.status is Status.CANCELLED
            with pytest.raises(UnknownRun):
                await runs.find("job", HOME)
        async with open_runs(at_cell(config, "eu")) as alone:
            assert {line.id for line in await alone.list()} == {there, named}

    asyncio.run(play())


def test_runs_from_before_there_were_cells_are_found_run21(config: Config) -> None:
    async def play() -> None:
        async with open_runs(replace(config, runs=replace(config.runs, cells=()))) as old:
            made, chosen = await old.start(of(AWAY)), await old.start(of(AWAY), "old-job")
        async with open_cells(config, patience=PATIENCE) as runs:
            assert await runs.find(made, AWAY) == made
            assert await runs.find("old-job", AWAY) == chosen
            assert (await runs.show(chosen)).line.name == "old-job"

    asyncio.run(play())


def test_an_id_cannot_place_a_run_in_another_cell_run21(config: Config) -> None:
    """A tenant would have `live` runs in each of the cells."""

    async def play() -> None:
        async with open_cells(config, patience=PATIENCE) as runs:
            with pytest.raises(BadField, match="is the id of a run in cell eu, which has no such run"):
                await runs.start(of(HOME), "run_0123456789abcdef01234567.eu")
            begun = await runs.start(of(AWAY))
            assert await runs.start(of(AWAY), begun) == begun

    asyncio.run(play())


def test_a_worker_serves_one_cell_run21(config: Config, tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        async with open_cells(config, patience=PATIENCE) as runs:
            here, there = [await runs.start(msgspec.structs.replace(spec(), tenant=each)) for each in (HOME, AWAY)]
            async with open_worker(at_cell(config, "eu"), scene.directory, 1.0):
                async with asyncio.timeout(60):
                    assert [each async for each in runs.events(there)]
            assert (await runs.show(there)).line.status is Status.DONE
            assert (await runs.show(here)).line.status is Status.RUNNING

    with installed(Scene(tmp_path, {0: calls("pay"), 1: "Done."})) as scene:
        asyncio.run(play(scene))
    assert scene.acts == {"0:0": 1}
    with pytest.raises(BadConfig, match=r"no cell has the name 'mars'; \[runs.cells\] has default, eu"):
        at_cell(config, "mars")


def test_this_process_executes_runs_of_the_default_cell_run21(config: Config, tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        async with open_cells(config, scene.directory) as runs:
            id = await runs.start(spec())
            async with asyncio.timeout(60):
                assert [each async for each in runs.events(id)]
            assert (await runs.show(id)).line.status is Status.DONE

    with installed(Scene(tmp_path, {0: "Done."})) as scene:
        asyncio.run(play(scene))


@pytest.mark.parametrize("away", ["stopped", "frozen"])
def test_a_cell_that_is_away_fails_its_own_runs_only_run21(
    config: Config, servers: tuple[Postgres, Postgres], away: str
) -> None:
    _, second = servers

    async def play() -> None:
        async with open_cells(config, patience=PATIENCE) as runs:
            here, there = await runs.start(of(HOME)), await runs.start(of(AWAY))
            second.stop() if away == "stopped" else second.freeze()
            try:
                for ask in (runs.show(there), runs.start(of(AWAY)), runs.list(tenant=AWAY), runs.cancel(there)):
                    with pytest.raises(CellUnavailable, match="the cell eu of runs does not respond"):
                        async with asyncio.timeout(3 * PATIENCE):
                            await ask
                assert (await runs.show(here)).line.id == here
                assert await runs.start(of(HOME))
                assert here in {line.id for line in await runs.list()}, "the cells that respond are listed"
            finally:
                second.start() if away == "stopped" else second.thaw()
            async with asyncio.timeout(60):
                while True:
                    try:
                        assert (await runs.show(there)).line.id == there
                    except CellUnavailable:
                        await asyncio.sleep(0.2)
                    else:
                        break

    asyncio.run(play())


def test_a_cell_that_was_away_at_the_start_is_opened_later_run21(
    config: Config, servers: tuple[Postgres, Postgres]
) -> None:
    _, second = servers

    async def play() -> None:
        second.stop()
        async with open_cells(config, patience=PATIENCE) as runs:
            with pytest.raises(CellUnavailable):
                await runs.start(of(AWAY))
            assert await runs.start(of(HOME))
            second.start()
            assert named_cell(await runs.start(of(AWAY)), CELLS) == "eu"

    try:
        asyncio.run(play())
    finally:
        second.start()
