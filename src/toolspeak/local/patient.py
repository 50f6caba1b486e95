"""Waits for a server that is being started again, instead of telling clients that nobody is there."""

from collections.abc import Mapping
from typing import Final

from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.local.keeper import ServerState, Supervisor
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.transport import DEFAULT_TIMEOUTS, Headers, Response, Timeouts, Transport, TransportError

PATIENCE: Final = 10.0
"""Seconds that a request waits; most models are back by then."""
_STEP: Final = 0.05
_AGAIN: Final = 5.0


class RestartAwareTransport:
    """A transport to a server that is kept."""

    def __init__(self, inner: Transport, keeper: Supervisor, patience: float = PATIENCE, clock: Clock = CLOCK) -> None:
        """Send by another transport, once the server is up."""
        self._inner: Final = inner
        self._keeper: Final = keeper
        self._patience: Final = patience
        self._clock: Final = clock

    async def send(
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: Timeouts = DEFAULT_TIMEOUTS
    ) -> Response:
        """Send one, and wait until the answer's headers are there."""
        until = self._clock.monotonic() + min(self._patience, timeouts.first_byte)
        while self._keeper.state is not ServerState.UP:
            if self._keeper.state is not ServerState.RESTARTING or self._clock.monotonic() >= until:
                raise TransportError(_failure(self._keeper.state))
            await self._clock.sleep(_STEP)
        response = await self._inner.send(method, url, headers, body, timeouts)
        self._keeper.note_bytes()
        return _Noted(response, self._keeper)

    async def close(self) -> None:
        """Close all connections."""
        await self._inner.close()


class _Noted:
    """A reply whose bytes count as a sign of life of its server: a saturated one may not answer `/health`."""

    def __init__(self, inner: Response, keeper: Supervisor) -> None:
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


def _failure(state: ServerState) -> Failure:
    message = f"the model's server is {state}: it failed, and is loading again; try again soon"
    if state is not ServerState.RESTARTING:
        message = f"the model's server is {state}"
    return Failure(FailureKind.TRANSIENT, message, 503, retry_after=_AGAIN)
