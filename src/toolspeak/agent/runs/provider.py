"""Opens the runs of this machine: in a database if the extra `runs` is installed, else in memory."""

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from toolspeak.agent.runs.memory import MemoryRuns
from toolspeak.agent.runs.preparation import prepare_run
from toolspeak.agent.runs.runs import Runs
from toolspeak.agent.runs.steps import TakeRecorded, take_unrecorded
from toolspeak.config.assemble import assemble, outbound_of
from toolspeak.config.shape import Config
from toolspeak.extras import has_extra, require_extra
from toolspeak.runtime.directory import Directory
from toolspeak.runtime.http_transport import HttpTransport

_ENGINE = "dbos"


@dataclass(frozen=True, slots=True)
class OpenRuns:
    """Open runs. `lasts` tells whether they outlive this process."""

    runs: Runs
    lasts: bool


@asynccontextmanager
async def open_user_runs(config: Config, *, works: bool = True) -> AsyncGenerator[OpenRuns]:
    """Open the runs of one person: in a database if the extra `runs` is installed, else in this process's memory.

    A database that the configuration names is not ignored: without the extra it raises `MissingExtra`. With `works`,
    this process executes the runs that are started or resumed, while it is open.
    """
    transport = HttpTransport(outbound_of(config))
    try:
        if config.runs.database:
            require_extra("runs", "runs.database")
        directory = assemble(config, transport)
        if has_extra("runs") and (config.runs.database or config.runs.folder):
            async with open_durable_runs(config, directory if works else None, ("*",)) as runs:
                logging.getLogger(_ENGINE).setLevel(logging.CRITICAL)  # DBOS logs cancelled runs as its own errors
                yield OpenRuns(runs, lasts=True)
        else:
            here = memory_runs(config, directory, ("*",))
            try:
                yield OpenRuns(here, lasts=False)
            finally:
                await here.close()
    finally:
        await transport.close()


@asynccontextmanager
async def open_durable_runs(
    config: Config, directory: Directory | None = None, imports: Sequence[str] = (), patience: float | None = None
) -> AsyncGenerator[Runs]:
    """Open the runs of the databases. Without a directory of models, other processes execute them. See `open_cells`."""
    from toolspeak.agent.durable.cells import open_cells  # noqa: PLC0415 # importing DBOS takes two seconds

    async with open_cells(config, directory, imports, patience=patience) as runs:
        yield runs


def memory_runs(
    config: Config, directory: Directory, imports: Sequence[str] = (), take: TakeRecorded = take_unrecorded
) -> MemoryRuns:
    """Return runs that end with this process. `imports` are the names or globs of functions that specs may name.

    `take` takes the turns of the model.
    """
    return MemoryRuns(
        lambda id, spec, watch, began: prepare_run(
            id, spec, config, directory, watch, imports=imports, began=began, take=take
        )
    )
