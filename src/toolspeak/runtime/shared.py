"""Stores verdicts in Redis for a fleet. If Redis is down, slow or full, each process works alone until it is back.

    toolspeak:verdict:v2:HASH     the verdict about an endpoint, a model and a fingerprint; expires after a day, or less
    toolspeak:seen:v2:HASH        the last fingerprint of an endpoint and a model
    toolspeak:probe:v2:HASH       the token of the process that is probing (SET NX PX)

A stored value is untrusted input: another version may have written it, or an attacker. Reads are bounded in size, and a
value that a process of this version could not have written counts as missing: one of a wrong type, without an expiry,
too long, too deep, or with a field that no probe produces. So a verdict from Redis has no effect that a local one could
not have, and a bad key neither stops the others from being read nor stays for ever.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import msgspec

from toolspeak.engine.look import SERVERS
from toolspeak.engine.verdict import MOST_EVIDENCE, Verdict
from toolspeak.facts.strategy import CONSTRAINTS
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.runtime.cache import CHECK, LONGEST_PROBE, SEEN, Memory, Subject, lifetime
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.redis_link import Away, RedisLink, Rejected

_VERDICT, _SEEN, _PROBE = "toolspeak:verdict:v2:", "toolspeak:seen:v2:", "toolspeak:probe:v2:"
"""Prefixes with the version of the rules. Before v2, one client's error could change the verdict of all clients, so
verdicts of older processes are never read."""
TIMEOUT: Final = 0.5
"""Seconds for one response of Redis. No request waits for it, and a process that gives up early probes once more: with
0.1 s, the processes of a fleet that start together on a busy machine did."""
_LARGEST: Final = 64 * 1024
"""Bytes of a value that are read."""
_LONGEST_REASON, _MOST_CONTEXT, _LONGEST_DAYS = 1000, 1 << 31, 2 * 86_400_000
"""Limits of a plausible value: characters of a reason, tokens of context, milliseconds to live."""
_FINGERPRINT: Final = re.compile(r"[0-9A-Za-z]{0,64}", re.ASCII)
# Compare and delete in one step: between a GET and a DEL the claim could expire and pass to another process.
_RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
_Found = TypeVar("_Found")
_decode: Callable[[bytes], Verdict] = msgspec.json.Decoder(Verdict).decode


class Shared:
    """Stores verdicts in Redis, and a copy in this process that is used while Redis is down."""

    def __init__(self, url: str, clock: Clock = CLOCK) -> None:
        """Prepare a client without connecting. Raises `BadConfig` if the package is missing or the URL is invalid."""
        self._clock: Final = clock
        self._alone: Final = Memory(clock)
        self._link: Final = RedisLink(url, clock, "going on alone", timeout=TIMEOUT)

    @property
    def check(self) -> float:
        """Other processes store verdicts at any time, so each verdict is read again after `CHECK` seconds."""
        return CHECK

    async def find(self, subject: Subject) -> Verdict | None:
        """Return the valid verdict, or None; while Redis is down, the one of this process."""
        try:
            known = subject if subject.fingerprint else await self._last(subject)
            return _read(await self._value(_VERDICT + known.key), known.fingerprint) if known else None
        except Away:
            return await self._alone.find(subject)

    async def keep(self, subject: Subject, verdict: Verdict) -> None:
        """Store a verdict in this process and in Redis."""
        await self._alone.keep(subject, verdict)
        known, data = subject.of(verdict.fingerprint), msgspec.json.encode(verdict)
        lasts = round(lifetime(verdict) * 1000)
        try:
            await self._asked(lambda redis: redis.set(_VERDICT + known.key, data, px=lasts))
        except Away:
            return
        await self.seen(known)

    async def seen(self, subject: Subject) -> None:
        """Store that the server still has the subject's fingerprint."""
        await self._alone.seen(subject)
        key = _SEEN + subject.of("").key
        try:
            await self._asked(lambda redis: redis.set(key, subject.fingerprint, px=round(SEEN * 1000)))
        except Away:
            return

    async def claim(self, subject: Subject) -> str:
        """Return a token if no other process is probing, else an empty string.

        While Redis is down, only this process is considered: two processes may then probe one model at once.
        """
        token, key = self._clock.fresh_id(), _PROBE + subject.of("").key
        try:
            claimed = await self._set_claim(key, token) or (
                await self._drop_stuck(key) and await self._set_claim(key, token)
            )
        except Away:
            return await self._alone.claim(subject)
        return token if claimed else ""

    async def _set_claim(self, key: str, token: str) -> bool:
        lasts = round(LONGEST_PROBE * 1000)
        return bool(await self._asked(lambda redis: redis.set(key, token, nx=True, px=lasts)))

    async def _drop_stuck(self, key: str) -> bool:
        """Delete a claim that never expires or outlives every probe, and return whether there was one.

        toolspeak does not write such a claim. Left in place, it would prevent all probes of the model forever.
        """
        lasts = await self._asked(lambda redis: redis.pttl(key))
        stuck = not isinstance(lasts, int) or lasts == -1 or lasts > LONGEST_PROBE * 1000
        if stuck:
            await self._asked(lambda redis: redis.delete(key))
        return stuck

    async def release(self, subject: Subject, token: str) -> None:
        """Give up a claim, unless it has expired and belongs to another process."""
        await self._alone.release(subject, token)
        try:
            await self._asked(lambda redis: redis.eval(_RELEASE, 1, _PROBE + subject.of("").key, token))
        except Away:
            return

    async def close(self) -> None:
        """Close the connections; errors are ignored."""
        await self._link.close()

    async def _last(self, subject: Subject) -> Subject | None:
        """Return the subject with the fingerprint that was seen last; None if there is no valid one."""
        seen = await self._value(_SEEN + subject.key)
        fingerprint = None if seen is None else seen.decode("ascii", "replace")
        return subject.of(fingerprint) if fingerprint is not None and _FINGERPRINT.fullmatch(fingerprint) else None

    async def _value(self, key: str) -> bytes | None:
        """Return a stored value; None if it is missing, or toolspeak cannot have written it."""
        found = await self._asked(lambda redis: _bounded(redis, key))
        value, lasts = found or (None, None)
        # GETRANGE gives an empty string for a missing key; an empty fingerprint is a value, and its key has an expiry.
        is_ours = isinstance(value, bytes) and isinstance(lasts, int) and 0 < lasts <= _LONGEST_DAYS
        return value if isinstance(value, bytes) and is_ours and len(value) <= _LARGEST else None

    async def _asked(self, command: Callable[[Any], Awaitable[_Found]]) -> _Found | None:
        """Run a command; None if Redis refuses it. Raises `Away` if Redis fails, or failed a moment ago."""
        try:
            return await self._link.run(command)
        except Rejected:
            return None  # this one key has a wrong type: the others can still be read


async def _bounded(redis: Any, key: str) -> tuple[object, object]:  # noqa: ANN401 # an optional package
    """Read the beginning of a value, one byte more than is accepted, and its time to live."""
    async with redis.pipeline(transaction=False) as pipe:
        # GETRANGE, not GET: a value of a gigabyte would be transferred and held before its size could be checked.
        pipe.getrange(key, 0, _LARGEST)
        pipe.pttl(key)
        value, lasts = await pipe.execute()
        return value, lasts


def _read(data: bytes | None, fingerprint: str) -> Verdict | None:
    """Decode a verdict; None if it is malformed, or no probe of this version can have produced it."""
    try:
        verdict = None if data is None else _decode(data)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    return verdict if verdict is not None and verdict.fingerprint == fingerprint and _is_possible(verdict) else None


def _is_possible(verdict: Verdict) -> bool:
    form, context = verdict.constraint, verdict.context_tokens
    return (
        0 <= verdict.confidence <= 1
        and len(verdict.evidence) <= MOST_EVIDENCE
        and all(len(found.reason) <= _LONGEST_REASON for found in verdict.evidence)
        and (not verdict.server or verdict.server in SERVERS)
        and form in (ConstraintForm.NONE, CONSTRAINTS.get(verdict.server, ConstraintForm.NONE))
        and (context is None or 0 < context < _MOST_CONTEXT)
    )
