"""The keeper of runs that this machine has."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from toolspeak.config.assemble import assemble
from toolspeak.config.shape import Config
from toolspeak.runs.memory import MemoryRuns
from toolspeak.runs.outfit import outfit
from toolspeak.runs.runs import Runs
from toolspeak.runtime.directory import Directory
from toolspeak.runtime.transport import HttpTransport


@dataclass(frozen=True, slots=True)
class Opened:
    """A keeper; `lasts` tells whether its runs outlive this process."""

    runs: Runs
    lasts: bool


@asynccontextmanager
async def opened_runs(config: Config) -> AsyncGenerator[Opened]:
    """Open the keeper for one person, and close it in the end."""
    transport = HttpTransport()
    runs = runs_here(config, assemble(config, transport), ("*",))
    try:
        yield Opened(runs, lasts=False)
    finally:
        await runs.close()
        await transport.close()


def runs_here(config: Config, directory: Directory, imports: Sequence[str] = ()) -> MemoryRuns:
    """Make a keeper whose runs end with this process; `imports` are the functions that specs may name."""
    return MemoryRuns(lambda id, spec, watch: outfit(id, spec, config, directory, watch, imports=imports))
