"""Decides about limits in Redis, so that they hold over all gateways of a fleet; see `limit_store.py` for the rules.

    toolspeak:limit:v1:SUBJECT    hash: when what was spent of each meter is used up, and when that was last looked at
    toolspeak:open:v1:SUBJECT     sorted set: the leases of open requests, by the time at which they expire

One script makes each decision, so no two gateways take the last place. The time is that of Redis: the clocks of
machines differ. All scripts of a process go over one connection, many in one round trip, in their order: the end of a
request can never overtake its renewal.

An open request is a lease of 15 seconds, renewed every 5: a gateway that is killed gives its requests back by falling
silent. While Redis is away each process (all workers of one machine together) applies the whole limits to what it
serves itself, so N gateways may let through N times as much. What they let through is added when Redis is back, as
much as one minute of each limit: more would lock out a tenant for an outage that it did not cause.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from toolspeak.gateway.limit_store import FULL_WAIT, MINUTE, ROUNDING, Demand, Denial, LocalLimits, Spent
from toolspeak.gateway.tally import Meter
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.redis_link import Away, RedisLink, Rejected

_LOG: Final = logging.getLogger(__name__)
LEASE: Final = 15.0
"""Seconds after which the open request of a silent process is given back."""
RENEWAL: Final = 5.0
"""Seconds between two renewals of leases."""
RETRY: Final = 1.0
"""Seconds between two attempts to reach a Redis that is away."""
TIMEOUT: Final = 0.5
"""Seconds for one response of Redis. Longer than for verdicts: a busy event loop must not look like an outage."""
_BATCH: Final = 500
"""Scripts, and leases of one script, that are sent in one round trip."""
_LIMIT, _OPEN = "toolspeak:limit:v1:", "toolspeak:open:v1:"
_ScriptCall: TypeAlias = tuple[str, list[str], list[str]]
"""A script with its keys and its arguments."""
_METERS: Final = tuple(Meter)
_NO_SECONDS: Final = (0.0,) * len(_METERS)

SERVER_TIME: Final = "local t = redis.call('time') local now = t[1] + t[2] / 1000000"
"""Sets `now` in the scripts; tests replace it to move the time."""

# `seen` is when the hash was last written. If the clock of Redis is set back, all times are moved with it; without that
# a tenant would be locked out for as long as the clock went back. `%.17g`: Lua writes 14 digits, which is too few.
_SPENT: Final = """
local names = {'requests', 'input', 'output'}
local kept = redis.call('hmget', KEYS[1], 'seen', 'requests', 'input', 'output')
local back = math.max(0, (tonumber(kept[1]) or 0) - now)
local until_ = {}
for i = 1, 3 do until_[i] = math.max((tonumber(kept[i + 1]) or 0) - back, 0) end
local function keep()
  local last = now
  local args = {'seen', string.format('%.17g', now)}
  for i = 1, 3 do
    if until_[i] > now then
      last = math.max(last, until_[i])
      args[#args + 1] = names[i]
      args[#args + 1] = string.format('%.17g', until_[i])
    else
      redis.call('hdel', KEYS[1], names[i])
    end
  end
  redis.call('hset', KEYS[1], unpack(args))
  redis.call('pexpire', KEYS[1], math.ceil((last - now + 60) * 1000))
end
if back > 0 then keep() end
"""

# Leases far in the future were written before the clock was set back: those that still live are renewed within seconds.
_TAKE: Final = (
    _SPENT
    + """
local lease, lasts, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
if most > 0 then
  redis.call('zremrangebyscore', KEYS[2], '-inf', now)
  redis.call('zremrangebyscore', KEYS[2], now + 2 * lasts, '+inf')
  if not redis.call('zscore', KEYS[2], lease) and redis.call('zcard', KEYS[2]) >= most then return {4, '0'} end
end
local which, longest = 0, tonumber(ARGV[4])
for i = 1, 3 do
  local limit = tonumber(ARGV[4 + i])
  if limit > 0 then
    local wait = math.max(until_[i] - now, 0) + 60 / limit - 60
    if wait > longest then which, longest = i, wait end
  end
end
if which > 0 then return {which, string.format('%.17g', longest)} end
if most > 0 then
  redis.call('zadd', KEYS[2], now + lasts, lease)
  redis.call('pexpire', KEYS[2], math.ceil(lasts * 2000))
end
local requests = tonumber(ARGV[5])
if requests > 0 then
  until_[1] = math.max(until_[1], now) + 60 / requests
  keep()
end
return {0, '0'}
"""
)

# ARGV: seconds of each meter, how long ago they were spent, the longest debt (0: none), then the leases that ended.
_END: Final = (
    _SPENT
    + """
local ago, most, changed = tonumber(ARGV[4]), tonumber(ARGV[5]), false
for i = 1, 3 do
  local seconds = tonumber(ARGV[i])
  if seconds ~= 0 then
    changed = true
    local spent = math.max(until_[i], now - ago) + seconds
    if most > 0 then spent = math.max(until_[i], math.min(spent, now + most)) end
    until_[i] = spent
  end
end
if changed then keep() end
if #ARGV > 5 then redis.call('zrem', KEYS[2], unpack(ARGV, 6)) end
return 1
"""
)

_RENEW: Final = """
local lasts = tonumber(ARGV[1])
for i = 2, #ARGV do redis.call('zadd', KEYS[1], now + lasts, ARGV[i]) end
redis.call('pexpire', KEYS[1], math.ceil(lasts * 2000))
return 1
"""


@dataclass(eq=False, slots=True)
class _Take:
    """A decision that a request waits for."""

    demand: Demand
    decided: "asyncio.Future[Denial | None]"

    def call(self) -> _ScriptCall:
        """Return the script with its keys and arguments."""
        demand, limits = self.demand, self.demand.limits
        rates = dict(demand.rates())
        numbers = (LEASE, limits.concurrent or 0, ROUNDING, *(rates.get(meter, 0) for meter in _METERS))
        return _TAKE, _keys(demand.subject), [demand.lease, *map(repr, numbers)]


@dataclass(slots=True)
class _Debt:
    """What was spent on a subject and is not in Redis yet: seconds of each meter, and the leases that ended."""

    seconds: list[float] = field(default_factory=lambda: list(_NO_SECONDS))
    leases: list[str] = field(default_factory=list[str])
    since: float | None = None
    """When Redis went away, in monotonic seconds; None if it was there."""

    def calls(self, subject: str, now: float) -> Iterator[_ScriptCall]:
        """Yield the scripts that write it."""
        ago, most = (0.0, 0.0) if self.since is None else (now - self.since, MINUTE)
        seconds: Sequence[float] = self.seconds
        for start in range(0, max(len(self.leases), 1), _BATCH):
            ended = self.leases[start : start + _BATCH]
            yield _END, _keys(subject), [*map(repr, (*seconds, ago, most)), *ended]
            seconds = _NO_SECONDS


class FleetLimits:
    """Counts in Redis; while it is away, in the tally of this process."""

    def __init__(
        self,
        url: str,
        local: LocalLimits,
        clock: Clock,
        time_source: str = SERVER_TIME,
        *,
        timeout: float = TIMEOUT,  # tests of what is counted give a busy machine more
    ) -> None:
        """Prepare a client without connecting. Raises `BadConfig` as `RedisLink` does."""
        self._clock: Final = clock
        self._local: Final = local
        self._time: Final = time_source
        self._timeout: Final = timeout
        self._link: Final = RedisLink(url, clock, timeout=timeout, longest_rest=RETRY)
        self._leases: Final[dict[str, dict[str, None]]] = {}
        """The open requests of this process that a limit counts, by subject."""
        self._takes: Final[list[_Take]] = []
        self._debts: Final[dict[str, _Debt]] = {}
        self._wake: Final = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._renewed = 0.0
        self._shas: dict[str, str] | None = None
        """The scripts that Redis has; None before the first contact, and after each outage."""
        self._away_since: float | None = None
        self._is_closing = False

    @property
    def is_alone(self) -> bool:
        """Whether Redis is away."""
        return self._away_since is not None

    async def take(self, demand: Demand) -> Denial | None:
        """Count a request if it fits."""
        if self._away_since is None:
            loop = asyncio.get_running_loop()
            take = _Take(demand, loop.create_future())
            self._takes.append(take)
            self._run()
            try:
                denial = await take.decided
            except Away:
                return self._take_alone(demand)
            if denial is None:
                self._local.count(demand)
                self._open(demand)
            return denial
        return self._take_alone(demand)

    def end(self, demand: Demand, spent: Spent) -> None:
        """Count the end of a request, and what it has spent. Redis learns of it soon after."""
        self._local.end(demand, spent)
        self._leases.get(demand.subject, {}).pop(demand.lease, None)
        self._owe(demand, spent)

    async def close(self) -> None:
        """Give back what is open, and close the connection."""
        for subject, leases in self._leases.items():
            self._debt(subject).leases.extend(leases)
        self._leases.clear()
        if self._task is not None:
            # Not only cancelled: redis-py swallows a cancellation that comes while it reads, and the task would go on.
            self._is_closing = True
            self._wake.set()
            await asyncio.wait((self._task,), timeout=RETRY + 2 * self._timeout)
            self._task.cancel()
            if self._away_since is None:
                await self._exchange()
        await self._link.close()

    def _take_alone(self, demand: Demand) -> Denial | None:
        denial = self._local.decide(demand)
        if denial is None:
            self._open(demand)
            for meter, limit in demand.rates():
                if meter is Meter.REQUESTS:
                    self._debt(demand.subject).seconds[meter] += MINUTE / limit
        self._run()
        return denial

    def _open(self, demand: Demand) -> None:
        if demand.limits.concurrent is not None:
            self._leases.setdefault(demand.subject, {})[demand.lease] = None

    def _owe(self, demand: Demand, spent: Spent) -> None:
        debt = self._debt(demand.subject)
        for meter, limit in demand.rates():
            debt.seconds[meter] += spent.amount(meter) * MINUTE / limit
        if demand.limits.concurrent is not None:
            debt.leases.append(demand.lease)
        self._run()

    def _debt(self, subject: str) -> _Debt:
        debt = self._debts.get(subject)
        if debt is None:
            debt = self._debts[subject] = _Debt(since=self._away_since)
        return debt

    # ------------------------------------------------------------ the connection

    def _run(self) -> None:
        """Wake the task that talks to Redis; start it with the first request."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._talk())
        self._wake.set()

    async def _talk(self) -> None:
        while not self._is_closing:
            if self._away_since is None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(RENEWAL):
                        await self._wake.wait()
            else:
                await self._clock.sleep(RETRY)
            self._wake.clear()
            if self._is_closing:
                return
            try:
                await self._exchange()
            except Exception:  # noqa: BLE001 # without this task no limit would be shared again
                _LOG.exception("a fault while limits were shared")
                self._lose(*self._takes)
                self._takes.clear()

    async def _exchange(self) -> None:
        """Send everything that waits: the ends of requests, renewals, then new requests."""
        now = self._clock.monotonic()
        takes = [take for take in self._takes if not take.decided.done()]  # the clients of others have hung up
        self._takes.clear()
        debts = dict(self._debts)
        self._debts.clear()
        calls = [call for subject, debt in debts.items() for call in debt.calls(subject, now)]
        if now - self._renewed >= RENEWAL or self._away_since is not None:
            self._renewed = now
            calls += self._renewals()
        first = len(calls)
        calls += [take.call() for take in takes]
        if not calls and self._away_since is None:
            return
        try:
            found = await self._send(calls)
        except (Away, Rejected) as error:
            self._lose(*takes, *self._takes)
            self._takes.clear()
            self._take_back(debts)
            self._leave(error)
            return
        self._return(debts)
        for take, (which, wait) in zip(takes, found[first:], strict=True):
            denial = _denial(int(which), float(wait))
            if not take.decided.done():
                take.decided.set_result(denial)
            elif denial is None:  # its client hung up while the script ran
                self._owe(take.demand, Spent(is_refunded=True))

    def _renewals(self) -> list[_ScriptCall]:
        calls: list[_ScriptCall] = []
        for subject, leases in list(self._leases.items()):
            if not leases:
                del self._leases[subject]
            named = list(leases)
            calls += [
                (_RENEW, [_OPEN + subject], [repr(LEASE), *named[start : start + _BATCH]])
                for start in range(0, len(named), _BATCH)
            ]
        return calls

    async def _send(self, calls: Sequence[_ScriptCall]) -> list[Any]:
        found: list[Any] = []
        if self._shas is None:
            self._shas = await self._link.run(self._load)
        shas = self._shas
        for start in range(0, max(len(calls), 1), _BATCH):
            part = calls[start : start + _BATCH]

            async def send(redis: Any, part: Sequence[_ScriptCall] = part) -> list[Any]:  # noqa: ANN401 # an optional package
                async with redis.pipeline(transaction=False) as pipe:
                    for script, keys, values in part:
                        pipe.evalsha(shas[script], len(keys), *keys, *values)
                    return await pipe.execute() if part else [await redis.ping()]

            found += await self._link.run(send)
        return found

    async def _load(self, redis: Any) -> dict[str, str]:  # noqa: ANN401 # an optional package
        return {script: await redis.script_load(f"{self._time}\n{script}") for script in (_TAKE, _END, _RENEW)}

    # ------------------------------------------------------------ outages

    def _leave(self, error: Exception) -> None:
        self._shas = None
        if self._away_since is None:
            self._away_since = self._clock.monotonic()
            reason = f" ({error})" if isinstance(error, Rejected) else ""
            _LOG.warning("limits are not shared while redis is away%s: each gateway counts alone", reason)

    def _return(self, debts: dict[str, _Debt]) -> None:
        if self._away_since is None:
            return
        lasted, self._away_since = self._clock.monotonic() - self._away_since, None
        said = len(debts), lasted
        _LOG.warning("limits are shared again: the use of %d keys and models in %.0f s without redis was added", *said)

    def _lose(self, *takes: _Take) -> None:
        for take in takes:
            if not take.decided.done():
                take.decided.set_exception(Away())

    def _take_back(self, debts: dict[str, _Debt]) -> None:
        """Keep what could not be sent."""
        since = self._clock.monotonic() if self._away_since is None else self._away_since
        for subject, debt in debts.items():
            newer = self._debts.get(subject)
            if newer is not None:
                debt.seconds = [one + other for one, other in zip(debt.seconds, newer.seconds, strict=True)]
                debt.leases += newer.leases
            debt.since = since if debt.since is None else debt.since
            debt.leases = debt.leases[-_BATCH:]  # the others expire by themselves, and an outage may be long
            self._debts[subject] = debt


def _keys(subject: str) -> list[str]:
    return [_LIMIT + subject, _OPEN + subject]


def _denial(which: int, wait: float) -> Denial | None:
    if not which:
        return None
    return Denial(None, FULL_WAIT) if which > len(_METERS) else Denial(_METERS[which - 1], wait)
