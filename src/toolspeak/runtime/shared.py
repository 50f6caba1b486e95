"""Verdicts in Redis, shared by a fleet. Redis away, slow or full: each process goes on alone, and comes back by itself.

    toolspeak:verdict:HASH     the verdict about an endpoint, a model and a fingerprint; a day, or less
    toolspeak:seen:HASH        which fingerprint an endpoint and a model had last
    toolspeak:probe:HASH       who is probing it now (SET NX PX with a token)

The package `redis` is an extra, `toolspeak[redis]`, and loaded only here.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import msgspec

from toolspeak.engine.verdict import Verdict
from toolspeak.errors import BadConfig
from toolspeak.runtime.cache import LONGEST_PROBE, SEEN, Memory, Subject, lifetime
from toolspeak.runtime.clock import CLOCK, Clock

_LOG: Final = logging.getLogger(__name__)
CHECK: Final = 60.0
"""Seconds that a process believes what it has read."""
TIMEOUT: Final = 0.1
"""Seconds for one answer of Redis."""
FIRST_REST, LONGEST_REST = 1.0, 60.0
"""Seconds in which a Redis that failed is left alone; each further failure doubles them."""
_VERDICT, _SEEN, _PROBE = "toolspeak:verdict:", "toolspeak:seen:", "toolspeak:probe:"
_RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
_Found = TypeVar("_Found")
_decode: Callable[[bytes], Verdict] = msgspec.json.Decoder(Verdict).decode


class Away(Exception):
    """Redis gives no answer."""


class Shared:
    """Verdicts in Redis; beside them a memory of this process, for the time in which Redis is away."""

    def __init__(self, url: str, clock: Clock = CLOCK) -> None:
        """Connect nothing yet; raises `BadConfig` if the package is missing, or the URL is none of Redis."""
        self._clock: Final = clock
        self._alone: Final = Memory(clock)
        self._redis: Final = _opened(url)
        self._rest = FIRST_REST
        self._until = 0.0

    @property
    def check(self) -> float:
        """Others put in what they find."""
        return CHECK

    async def find(self, subject: Subject) -> Verdict | None:
        """Return what is known."""
        try:
            known = subject if subject.fingerprint else await self._last(subject)
            return _read(await self._asked(lambda redis: redis.get(_VERDICT + known.key))) if known else None
        except Away:
            return await self._alone.find(subject)

    async def keep(self, subject: Subject, verdict: Verdict) -> None:
        """Keep a verdict, here too."""
        await self._alone.keep(subject, verdict)
        known, data = subject.of(verdict.fingerprint), msgspec.json.encode(verdict)
        lasts = round(lifetime(verdict) * 1000)
        try:
            await self._asked(lambda redis: redis.set(_VERDICT + known.key, data, px=lasts))
        except Away:
            return
        await self.seen(known)

    async def seen(self, subject: Subject) -> None:
        """Note that the server with this fingerprint is still there."""
        await self._alone.seen(subject)
        key = _SEEN + subject.of("").key
        try:
            await self._asked(lambda redis: redis.set(key, subject.fingerprint, px=round(SEEN * 1000)))
        except Away:
            return

    async def claim(self, subject: Subject) -> str:
        """Return a token if nobody else is probing; while Redis is away, each process asks only itself."""
        token, key = self._clock.fresh_id(), _PROBE + subject.of("").key
        try:
            set_ = await self._asked(lambda redis: redis.set(key, token, nx=True, px=round(LONGEST_PROBE * 1000)))
        except Away:
            return await self._alone.claim(subject)
        return token if set_ else ""

    async def release(self, subject: Subject, token: str) -> None:
        """Let others probe again; what is no longer ours is left alone."""
        await self._alone.release(subject, token)
        try:
            await self._asked(lambda redis: redis.eval(_RELEASE, 1, _PROBE + subject.of("").key, token))
        except Away:
            return

    async def close(self) -> None:
        """Close the connections."""
        try:
            async with asyncio.timeout(TIMEOUT):
                await self._redis.aclose()
        except Exception:  # noqa: BLE001 # who goes does not care why it could not say so
            _LOG.debug("redis could not be closed in peace")

    async def _last(self, subject: Subject) -> Subject | None:
        """Return the subject with the fingerprint that was there last."""
        seen: bytes | None = await self._asked(lambda redis: redis.get(_SEEN + subject.key))
        return None if seen is None else subject.of(seen.decode())

    async def _asked(self, command: Callable[[Any], Awaitable[_Found]]) -> _Found:
        """Ask Redis, unless it failed just now: a dead one must cost nothing."""
        if self._clock.monotonic() < self._until:
            raise Away
        try:
            async with asyncio.timeout(2 * TIMEOUT):
                found = await command(self._redis)
        except Exception as error:  # noqa: BLE001 # whatever is wrong with it, nothing here may fail
            self._leave(error)
            raise Away from None
        self._rest = FIRST_REST
        return found

    def _leave(self, error: Exception) -> None:
        """Leave it alone for a while; its words may hold the URL, and the URL a password."""
        _LOG.warning("redis gives no answer (%s): going on alone for %g s", type(error).__name__, self._rest)
        self._until = self._clock.monotonic() + self._rest
        self._rest = min(2 * self._rest, LONGEST_REST)


def _opened(url: str) -> Any:  # noqa: ANN401 # an optional package
    try:
        from redis.asyncio import Redis  # noqa: PLC0415
        from redis.asyncio.retry import Retry  # noqa: PLC0415
        from redis.backoff import NoBackoff  # noqa: PLC0415
    except ImportError:
        raise BadConfig("redis.url: the package redis is missing: pip install 'toolspeak[redis]'") from None
    try:
        return Redis.from_url(  # pyright: ignore[reportUnknownMemberType]
            url, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT, retry=Retry(NoBackoff(), 0)
        )
    except ValueError:
        raise BadConfig("redis.url: is not a URL such as redis://127.0.0.1:6379/0 (it is not shown)") from None


def _read(data: bytes | None) -> Verdict | None:
    """Read a verdict; one of another version of ours is as good as none."""
    try:
        return None if data is None else _decode(data)
    except msgspec.MsgspecError:
        return None
