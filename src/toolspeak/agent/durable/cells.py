"""Runs in several databases, the cells: each holds the runs of a part of the tenants (RUN-21).

run_3f28…04a8        a run of the default cell, `runs.database`; so are all ids from before there were cells
run_3f28…04a8.eu     a run of the cell `eu` of `[runs.cells]`

All runs of a tenant are in one cell, which a hash of its name chooses. So its list, its limit of live runs and the
names that it gave to runs are matters of one database, as they are without cells; the least loaded cell would need a
question to all of them for each of these. A new cell takes over its share of the tenants, and moves no other tenant.

A cell is opened when it is first needed. One that is away fails requests for its own runs only.
"""

import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from hashlib import sha256
from typing import Final

from toolspeak.agent.durable.runs import DurableRuns, open_runs
from toolspeak.agent.runs.runs import NumberedEvent, Runs, RunSummary, RunView, Spec
from toolspeak.config.shape import DEFAULT_CELL, Config
from toolspeak.engine.agent import Status
from toolspeak.errors import BadConfig, BadField, CellUnavailable, RunsUnavailable, UnknownRun
from toolspeak.runtime.directory import Directory
from toolspeak.runtime.shared_attempt import SharedAttempt

_LOG: Final = logging.getLogger("toolspeak.runs")
_MADE: Final = re.compile(r"run_[0-9a-f]{24}(?:\.([a-z0-9-]+))?")
"""An id that toolspeak made, and its cell."""


def cell_names(config: Config) -> list[str]:
    """Return the names of all cells, the default cell first."""
    return [DEFAULT_CELL, *(name for name, _ in config.runs.cells)]


def at_cell(config: Config, name: str) -> Config:
    """Return the configuration with the database of one cell, and without the others. Raises `BadConfig`."""
    urls = {DEFAULT_CELL: config.runs.database, **dict(config.runs.cells)}
    if name not in urls:
        raise BadConfig(f"no cell has the name {name[:80]!r}; [runs.cells] has {', '.join(urls)}")
    cell = "" if name == DEFAULT_CELL else name
    return replace(config, runs=replace(config.runs, database=urls[name], cells=(), cell=cell))


def home_cell(tenant: str, cells: Sequence[str]) -> str:
    """Return the cell of a tenant's new runs. Runs without a tenant are in the default cell.

    Each tenant ranks all cells by a hash, and is in the first: a cell more changes the first for its own share only.
    """
    if not tenant:
        return DEFAULT_CELL
    ranks = {sha256(f"{cell}\0{tenant}".encode()).digest(): cell for cell in cells}
    return ranks[max(ranks)]


def named_cell(id: str, cells: Sequence[str]) -> str | None:
    """Return the cell that an id names; None for an id that a person chose."""
    found = _MADE.fullmatch(id)
    if found is None:
        return None
    cell = found[1] or DEFAULT_CELL
    return cell if cell in cells else None


class _Cell:
    """One database, which is opened when it is first needed."""

    def __init__(self, name: str, config: Config, patience: float | None, here: DurableRuns | None) -> None:
        self.name: Final = name
        self._config: Final = config
        self._patience: Final = patience
        self._here: Final = here
        self._stack: Final = AsyncExitStack()
        self._opening: Final = SharedAttempt(self._open)
        self._is_away = False
        """The last request found the database unreachable; only changes are logged."""

    @asynccontextmanager
    async def runs(self) -> AsyncGenerator[DurableRuns]:
        """Yield the runs of this cell, for a request to it. Raises `CellUnavailable`."""
        try:
            yield self._here or await self._opening.result(self._patience)
        except (RunsUnavailable, BadConfig, TimeoutError) as error:  # BadConfig: another database may answer by now
            if not self._is_away:
                _LOG.warning("cell %s of runs is away: %s", self.name, str(error) or "no response in time")
            self._is_away = True
            raise CellUnavailable(self.name) from None
        if self._is_away:
            _LOG.warning("cell %s of runs responds again", self.name)
        self._is_away = False

    async def close(self) -> None:
        await self._opening.cancel()
        await self._stack.aclose()

    async def _open(self) -> DurableRuns:
        return await self._stack.enter_async_context(open_runs(self._config, patience=self._patience))


class CellRuns:
    """The runs of all cells. Implements `Runs`: each method asks only the cell that its id or its tenant names."""

    def __init__(self, config: Config, patience: float | None, here: DurableRuns | None = None) -> None:
        """Take all cells; `here` are the runs of the default cell, if this process executes them."""
        self._names: Final = cell_names(config)
        self._cells: Final = {
            name: _Cell(name, at_cell(config, name), patience, here if name == DEFAULT_CELL else None)
            for name in self._names
        }

    async def start(self, spec: Spec, id: str = "", live: int | None = None) -> str:
        """Start a run in the cell of its tenant, as `Runs.start` says.

        An id that names another cell starts no run there: a tenant could have `live` runs in each of the cells.
        """
        home, named = home_cell(spec.tenant, self._names), named_cell(id, self._names)
        if named in (None, home):
            async with self._cells[home].runs() as runs:
                return await runs.start(spec, id, live)
        with suppress(UnknownRun):
            return (await self.show(await self.find(id, spec.tenant))).line.id
        raise BadField("id", f"{id!r} is the id of a run in cell {named}, which has no such run: choose another id")

    async def find(self, name: str, tenant: str = "") -> str:
        """Return the id of the run that a tenant knows by this name. Without a tenant, names are ids.

        A name that a tenant chose is looked up in its cell, and then in the default cell, which had all runs before
        there were others.
        """
        home = named_cell(name, self._names) or home_cell(tenant, self._names)
        if home != DEFAULT_CELL and named_cell(name, self._names) is None:
            with suppress(UnknownRun):
                return await self._find(home, name, tenant)
            home = DEFAULT_CELL
        return await self._find(home, name, tenant)

    async def show(self, id: str) -> RunView:
        """Return the present state of a run."""
        async with self._of(id).runs() as runs:
            return await runs.show(id)

    async def list(self, limit: int = 50, status: Status | None = None, tenant: str = "") -> list[RunSummary]:
        """Return the latest runs, newest first: those of a tenant's cell, or of all cells that respond.

        Raises `CellUnavailable` if none does.
        """
        found: list[RunSummary] = []
        away: CellUnavailable | None = None
        asked = [home_cell(tenant, self._names)] if tenant else self._names
        answered = 0
        for name in asked:
            try:
                async with self._cells[name].runs() as runs:
                    found += await runs.list(limit, status, tenant)
            except CellUnavailable as error:
                away = error
            else:
                answered += 1
        if away is not None and not answered:
            raise away
        return sorted(found, key=lambda line: line.began, reverse=True)[:limit]

    async def events(self, id: str, after: int = -1) -> AsyncIterator[NumberedEvent]:
        """Yield the events after a number, then new ones as they come. The last one is `RunEnded`."""
        async with self._of(id).runs() as runs:
            async for each in runs.events(id, after):
                yield each

    async def cancel(self, id: str) -> None:
        """Stop a run; its rounds are kept."""
        async with self._of(id).runs() as runs:
            await runs.cancel(id)

    async def resume(self, id: str, live: int | None = None) -> None:
        """Continue a cancelled or failed run from its last stored step. Workers of its cell execute it."""
        async with self._of(id).runs() as runs:
            await runs.resume(id, live)

    async def approve(self, id: str, call_id: str, *, allowed: bool, reason: str = "") -> None:
        """Answer a call that waits for a person's approval."""
        async with self._of(id).runs() as runs:
            await runs.approve(id, call_id, allowed=allowed, reason=reason)

    async def close(self) -> None:
        """Close all cells that were opened here. Their runs continue."""
        for cell in self._cells.values():
            await cell.close()

    def _of(self, id: str) -> _Cell:
        return self._cells[named_cell(id, self._names) or DEFAULT_CELL]

    async def _find(self, cell: str, name: str, tenant: str) -> str:
        async with self._cells[cell].runs() as runs:
            return await runs.find(name, tenant)


@asynccontextmanager
async def open_cells(
    config: Config, directory: Directory | None = None, imports: Sequence[str] = (), patience: float | None = None
) -> AsyncGenerator[Runs]:
    """Open the runs of a configuration: of its one database, or of its cells. See `open_runs`.

    With a directory of models, this process executes runs of the default cell only.
    """
    async with AsyncExitStack() as stack:
        if not config.runs.cells:
            yield await stack.enter_async_context(open_runs(config, directory, imports, patience=patience))
            return
        here = None
        if directory is not None:
            own = at_cell(config, DEFAULT_CELL)
            here = await stack.enter_async_context(open_runs(own, directory, imports))
        runs = CellRuns(config, patience, here)
        stack.push_async_callback(runs.close)
        yield runs
