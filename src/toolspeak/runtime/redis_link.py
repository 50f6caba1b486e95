"""A connection to the Redis of a fleet, for callers that go on without it: a failure is `Away`, and never raised twice.

After a failure the next commands raise at once for a while, so that a dead Redis does not cost a timeout for each of
them. The package `redis` is an extra, `toolspeak[redis]`, and loaded only here.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from toolspeak.errors import BadConfig
from toolspeak.extras import require_extra
from toolspeak.runtime.clock import Clock

_LOG: Final = logging.getLogger(__name__)
FIRST_REST, LONGEST_REST = 1.0, 60.0
"""Seconds for which Redis is not used after a failure; each further failure doubles them, up to the second value."""
_Found = TypeVar("_Found")


class Away(Exception):
    """Redis did not respond, or is not used at present because it failed a moment ago."""


class Rejected(Exception):
    """Redis is up, and refuses the command: a key has a wrong type, memory is full, it is a replica, it is loading."""


class RedisLink:
    """Runs commands of one purpose."""

    def __init__(
        self, url: str, clock: Clock, effect: str = "", *, timeout: float, longest_rest: float = LONGEST_REST
    ) -> None:
        """Prepare a client without connecting. Raises `BadConfig` if the package is missing or the URL is invalid.

        `effect` says in the log what a failure means; without it the caller logs failures. A Redis that takes more
        than `timeout` seconds for one response counts as down.
        """
        self._clock: Final = clock
        self._effect: Final = effect
        self._timeout: Final = timeout
        self._longest_rest: Final = longest_rest
        self._redis: Final = _opened(url, timeout)
        self._refuses: Final = _response_error()
        self._rest = FIRST_REST
        self._until = 0.0

    async def run(self, command: Callable[[Any], Awaitable[_Found]]) -> _Found:
        """Run a command. Raises `Away` if Redis fails, or failed a moment ago, and `Rejected` if it refuses."""
        if self._clock.monotonic() < self._until:
            raise Away
        try:
            async with asyncio.timeout(2 * self._timeout):
                found = await command(self._redis)
        except self._refuses as error:
            self._rest = FIRST_REST
            raise Rejected(str(error)[:200]) from None
        except Exception as error:  # noqa: BLE001 # callers rely on two errors alone
            self._leave(error)
            raise Away from None
        self._rest = FIRST_REST
        return found

    async def close(self) -> None:
        """Close the connections; errors are ignored."""
        try:
            async with asyncio.timeout(self._timeout):
                await self._redis.aclose()
        except Exception:  # noqa: BLE001 # the process is shutting down: an error of Redis must not stop that
            _LOG.debug("redis could not be closed in peace")

    def _leave(self, error: Exception) -> None:
        """Stop using Redis for a while. Only the type of the error is logged: its text may have the URL's password."""
        if self._effect:
            _LOG.warning("redis gives no answer (%s): %s for %g s", type(error).__name__, self._effect, self._rest)
        self._until = self._clock.monotonic() + self._rest
        self._rest = min(2 * self._rest, self._longest_rest)


def _opened(url: str, timeout: float) -> Any:  # noqa: ANN401 # an optional package
    require_extra("redis", "redis.url")
    from redis.asyncio import Redis  # noqa: PLC0415
    from redis.asyncio.retry import Retry  # noqa: PLC0415
    from redis.backoff import NoBackoff  # noqa: PLC0415

    try:
        return Redis.from_url(  # pyright: ignore[reportUnknownMemberType]
            url, socket_timeout=timeout, socket_connect_timeout=timeout, retry=Retry(NoBackoff(), 0)
        )
    except ValueError:
        raise BadConfig("redis.url: is not a URL such as redis://127.0.0.1:6379/0 (it is not shown)") from None


def _response_error() -> type[Exception]:
    from redis.exceptions import ResponseError  # noqa: PLC0415

    return ResponseError
