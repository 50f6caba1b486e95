"""The only source of time, sleep and randomness. Tests replace it, so that every run of a test can be repeated."""

import asyncio
import random
import secrets
import time

_BYTES = 12


class Clock:
    """The clock of the system, and its random numbers."""

    def seconds(self) -> int:
        """Return the wall-clock time in whole seconds since 1970."""
        return int(time.time())

    def nanoseconds(self) -> int:
        """Return the wall-clock time in nanoseconds since 1970."""
        return time.time_ns()

    def monotonic(self) -> float:
        """Return seconds that never go back, for all deadlines: a change of the wall clock does not move them."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Suspend the calling task; zero seconds lets other tasks run once."""
        await asyncio.sleep(seconds)

    def chance(self) -> float:
        """Return a random number from 0 to below 1, for jitter."""
        return random.random()  # noqa: S311 # it only spreads retries, so it need not be unpredictable

    def fresh_id(self) -> str:
        """Return a unique id of hex digits that cannot be guessed: claims of probes use it as their token."""
        return secrets.token_hex(_BYTES)


CLOCK = Clock()
