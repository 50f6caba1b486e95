"""What stands under /v1/runs. Without runs it is one answer: who does not offer them does not load them either."""

from typing import Final, Protocol

from toolspeak.config.shape import Key
from toolspeak.gateway.exchange import Exchange, Refused
from toolspeak.gateway.marks import Marks
from toolspeak.gateway.routes import Target
from toolspeak.ir.failure import Failure, FailureKind

_OFF: Final = "runs are not offered here: say enabled = true under [runs] in the configuration"


class RunsOffer(Protocol):
    """Answers what stands under /v1/runs."""

    async def open(self) -> None:
        """Make ready what answers."""
        ...

    async def close(self) -> None:
        """Let go of it."""
        ...

    async def answer(self, exchange: Exchange, target: Target, marks: Marks, key: Key) -> None:
        """Do what a path and its method mean."""
        ...


class NoRuns:
    """Says that there are none, and how there would be."""

    async def open(self) -> None:
        """Open nothing."""

    async def close(self) -> None:
        """Close nothing."""

    async def answer(self, exchange: Exchange, target: Target, marks: Marks, key: Key) -> None:
        """Refuse."""
        del exchange, target, marks, key
        raise Refused(Failure(FailureKind.NOT_FOUND, _OFF, 404))
