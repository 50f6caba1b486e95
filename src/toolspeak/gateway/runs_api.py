"""What answers requests below /v1/runs, as the gateway sees it: runs are imported only where they are offered."""

from typing import Final, Protocol

from toolspeak.config.shape import Key
from toolspeak.gateway.exchange import Exchange, Refused, ResponseContext
from toolspeak.gateway.routes import Target
from toolspeak.ir.failure import Failure, FailureKind


class RunsApi(Protocol):
    """Answers requests below /v1/runs: `gateway.runs.RunsEndpoints`, or `DisabledRuns`."""

    async def open(self) -> None:
        """Open the store of runs."""
        ...

    async def close(self) -> None:
        """Close the store of runs."""
        ...

    async def answer(self, exchange: Exchange, target: Target, response: ResponseContext, key: Key) -> None:
        """Answer one request; raises `Refused`."""
        ...


class DisabledRuns:
    """Refuses every request below /v1/runs."""

    async def open(self) -> None:
        """Do nothing: there is no store."""

    async def close(self) -> None:
        """Do nothing: there is no store."""

    async def answer(self, exchange: Exchange, target: Target, response: ResponseContext, key: Key) -> None:
        """Raise `Refused` (404)."""
        del exchange, target, response, key
        raise Refused(Failure(FailureKind.NOT_FOUND, _NO_RUNS, 404))


_NO_RUNS: Final = "runs are not offered here: say enabled = true under [runs] in the configuration"
