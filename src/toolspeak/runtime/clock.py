"""Time and chance, in one place: tests put their own here, and everything else can be repeated."""

import asyncio
import random
import secrets
import time

_BYTES = 12


class Clock:
    """The real ones."""

    def seconds(self) -> int:
        """Return the seconds since 1970."""
        return int(time.time())

    def nanoseconds(self) -> int:
        """Return the nanoseconds since 1970."""
        return time.time_ns()

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    def chance(self) -> float:
        """Return a number from 0 to below 1."""
        return random.random()  # noqa: S311 # it spreads retries, it keeps no secret

    def fresh_id(self) -> str:
        """Return letters and digits that never come twice and cannot be guessed."""
        return secrets.token_hex(_BYTES)


CLOCK = Clock()
