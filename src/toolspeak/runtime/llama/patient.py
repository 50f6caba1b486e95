"""Waits for a server that is being started again, instead of telling clients that nobody is there."""

from collections.abc import Mapping
from typing import Final

from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.llama.keeper import Keeper, State
from toolspeak.runtime.transport import WAITS, Broken, Headers, Reply, Transport, Waits

PATIENCE: Final = 10.0
"""Seconds that a request waits; most models are back by then."""
_STEP: Final = 0.05
_AGAIN: Final = 5.0


class Patient:
    """A transport to a server that is kept."""

    def __init__(self, inner: Transport, keeper: Keeper, patience: float = PATIENCE, clock: Clock = CLOCK) -> None:
        """Send by another transport, once the server is up."""
        self._inner: Final = inner
        self._keeper: Final = keeper
        self._patience: Final = patience
        self._clock: Final = clock

    async def send(self, method: str, url: str, headers: Headers, body: bytes, waits: Waits = WAITS) -> Reply:
        """Send one, and wait until the answer's headers are there."""
        until = self._clock.monotonic() + min(self._patience, waits.first_byte)
        while self._keeper.state is not State.UP:
            if self._keeper.state is not State.RESTARTING or self._clock.monotonic() >= until:
                raise Broken(_failure(self._keeper.state))
            await self._clock.sleep(_STEP)
        reply = await self._inner.send(method, url, headers, body, waits)
        self._keeper.note_bytes()
        return _Noted(reply, self._keeper)

    async def close(self) -> None:
        """Close all connections."""
        await self._inner.close()


class _Noted:
    """A reply whose bytes count as a sign of life of its server: a saturated one may not answer `/health`."""

    def __init__(self, inner: Reply, keeper: Keeper) -> None:
        self._inner: Final = inner
        self._keeper: Final = keeper

    @property
    def status(self) -> int:
        return self._inner.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._inner.headers

    async def read(self) -> bytes:
        data = await self._inner.read()
        self._keeper.note_bytes()
        return data

    def close(self) -> None:
        self._inner.close()

    def end(self) -> None:
        self._inner.end()


def _failure(state: State) -> Failure:
    message = f"the model's server is {state}: it failed, and is loading again; try again soon"
    if state is not State.RESTARTING:
        message = f"the model's server is {state}"
    return Failure(FailureKind.TRANSIENT, message, 503, retry_after=_AGAIN)
