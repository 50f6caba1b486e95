"""What can be asked of runs, whoever works on them: the command line, the gateway and MCP know nothing else."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from toolspeak.agent.runs.spec import Spec
from toolspeak.agent.runs.watch import RunEvent
from toolspeak.engine.agent import Status
from toolspeak.errors import BadField
from toolspeak.ir.message import Call
from toolspeak.ir.round import Compact

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def checked_id(id: str) -> str:
    """Return an id that somebody chose; it stands in paths of files and URLs."""
    if _ID.fullmatch(id):
        return id
    raise BadField("id", f"{id[:80]!r} is not 1 to 128 letters, digits and . _ -, the first a letter or digit")


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in a list. Times are seconds since 1970; `ended` is 0 while it goes on."""

    id: str
    task: str
    status: Status
    model: str
    began: float
    ended: float = 0.0
    rounds: int = 0
    tenant: str = ""
    name: str = ""
    """The id that its tenant knows it by: unique within the tenant. Equal to `id` for a run without a tenant."""


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as it stands: what it was asked, its rounds so far, its final text, the calls that wait for a word."""

    line: RunSummary
    spec: Spec
    kept: Compact
    reason: str = ""
    asked: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class NumberedEvent:
    """An event and its number: who lost the line asks for those after it."""

    number: int
    event: RunEvent


class Runs(Protocol):
    """Keeps runs. A run that nobody knows is `UnknownRun`."""

    async def start(self, spec: Spec, id: str = "", live: int | None = None) -> str:
        """Start a run and return its id; a chosen id that the tenant has used already starts nothing.

        A tenant's chosen id becomes the run's `name`: ids are shared by all tenants, so the run itself gets a random
        one, and no tenant can learn which names others use. Raises `TooManyRuns` if the tenant would then have more
        than `live` live runs. The count and the insert are atomic, across all processes that share a database.
        """
        ...

    async def find(self, name: str, tenant: str = "") -> str:
        """Return the id of the run that a tenant knows by this name; without a tenant, names are ids."""
        ...

    async def show(self, id: str) -> RunView:
        """Return a run as it stands."""
        ...

    async def list(self, limit: int = 50, status: Status | None = None, tenant: str = "") -> list[RunSummary]:
        """Return the latest runs, the newest first."""
        ...

    def events(self, id: str, after: int = -1) -> AsyncIterator[NumberedEvent]:
        """Give the events behind a number, those to come as well; the last one is `RunEnded`."""
        ...

    async def cancel(self, id: str) -> None:
        """Stop a run; its rounds are kept."""
        ...

    async def resume(self, id: str, live: int | None = None) -> None:
        """Go on with a run that was cancelled or failed, from where it stood; `live` limits as in `start`."""
        ...

    async def approve(self, id: str, call_id: str, *, allowed: bool, reason: str = "") -> None:
        """Give a person's word on a call that waits for it."""
        ...

    async def close(self) -> None:
        """Let go of everything; runs go on elsewhere or later."""
        ...
