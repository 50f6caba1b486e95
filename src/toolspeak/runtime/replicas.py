"""Decides which server of an upstream gets a request: no I/O, no clock, no randomness (POOL-1 to POOL-4).

    pool = ReplicaPool(("http://a/v1", "http://b/v1"))
    replica = pool.take(now, key)          # the one that the conversation had before, unless it is out or overloaded
    pool.fail(replica, now, is_down=True)  # out of service for a growing time, then back after a probe
    replica.in_flight -= 1

A replica that does not answer is ejected: an open circuit, which a successful probe closes. The pool itself never
refuses a request: if all replicas are out, the one that is due back first gets it. So the last one is never ejected in
effect, and an upstream of one server behaves as it would without a pool.

The names and the rules are those of Envoy (outlier detection, retry budgets), Finagle (retry budgets) and of consistent
hashing with bounded loads.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import exp, inf
from typing import Final

EJECT_AFTER: Final = 5
"""Failures in a row that eject a replica. A refused connection ejects it at once: no request can succeed there."""
RECENT: Final = 20
MOST_FAILED: Final = 10
"""Failures among the last `RECENT` answers that eject a replica. One that fails every other request is an outlier,
though it never fails five times in a row."""
EJECTION: Final = 5.0
LONGEST_EJECTION: Final = 120.0
"""Seconds of the first ejection, which double each time, and of the longest. A replica that served for longer than the
longest begins with the first again."""
LONGEST_REST: Final = 60.0
"""Seconds for which a replica is spared at most after its `Retry-After`."""
_LOAD_FACTOR, _LOAD_SLACK = 2, 4
"""A conversation leaves its replica if that has more requests than twice those of the least loaded one, and 4. A
prompt cache saves seconds of reading; a queue of four costs less, as servers batch."""
_MASK: Final = (1 << RECENT) - 1
_MOST_DOUBLED: Final = 16


@dataclass(slots=True, eq=False)
class Replica:
    """One server of a pool, with its load and its health."""

    url: str
    in_flight: int = 0
    """Requests that are being answered."""
    is_out: bool = False
    """Ejected: no request is sent to it while another replica is in service."""
    requests: int = 0
    failed: int = 0
    ejected: int = 0
    """How often each of these has happened since the start."""
    out_until: float = -inf
    """When it is probed, if it is out."""
    rests_until: float = -inf
    """The end of a pause that it asked for by `Retry-After`: it is busy, not broken."""
    _failures: int = 0
    """Failures in a row."""
    _recent: int = 0
    """The last answers as bits; 1 is a failure."""
    _ejections: int = 0
    """Ejections in a row."""
    _returned: float = -inf
    """When it came back into service."""
    _is_probed: bool = False

    def serves(self, now: float) -> bool:
        """Return whether it is in service and takes requests."""
        return not self.is_out and now >= self.rests_until

    def rest(self, now: float, seconds: float) -> None:
        """Spare it for so many seconds, up to a limit."""
        self.rests_until = max(self.rests_until, now + min(seconds, LONGEST_REST))

    def succeed(self, now: float) -> None:
        """Note a complete answer. One that is out returns: it was tried because all were."""
        self._failures, self._recent = 0, self._recent << 1 & _MASK
        if self.is_out:
            self._return(now)

    def fail(self, now: float, *, is_down: bool = False) -> None:
        """Note a failure that is the server's own; with `is_down`, no connection could be made."""
        self.failed += 1
        self._failures += 1
        self._recent = (self._recent << 1 | 1) & _MASK
        if self.is_out:
            if now >= self.out_until:
                self._eject(now)
        elif is_down or self._failures >= EJECT_AFTER or self._recent.bit_count() >= MOST_FAILED:
            self._eject(now)

    def take_probe(self, now: float) -> bool:
        """Return whether to probe it now: it is out, its time is up, and no other caller probes it."""
        if not self.is_out or now < self.out_until or self._is_probed:
            return False
        self._is_probed = True
        return True

    def end_probe(self, now: float, *, answers: bool | None) -> None:
        """Note the result of a probe: it returns, or stays out for longer. None if the probe was cancelled."""
        self._is_probed = False
        if not self.is_out or answers is None:
            return
        if answers:
            self._return(now)
            # A server may list its models and fail every turn, so the first failure ejects it again.
            self._failures = EJECT_AFTER - 1
        else:
            self._eject(now)

    def _eject(self, now: float) -> None:
        if not self.is_out:
            self.ejected += 1
            if now - self._returned > LONGEST_EJECTION:
                self._ejections = 0
        seconds = min(EJECTION * float(2**self._ejections), LONGEST_EJECTION)
        self._ejections = min(self._ejections + 1, _MOST_DOUBLED)
        self.is_out, self.out_until, self._recent = True, now + seconds, 0

    def _return(self, now: float) -> None:
        self.is_out, self._returned = False, now


class RetryBudget:
    """Bounds retries to a share of requests, so that they cannot multiply the load of servers that are in trouble.

    Both are counted with a memory of about `PERIOD` seconds. `LEAST` retries are always allowed in that time: with few
    requests a share of them would be none.
    """

    SHARE: Final = 0.2
    LEAST: Final = 10.0
    PERIOD: Final = 10.0

    def __init__(self) -> None:
        """Begin without requests."""
        self._requests = self._retries = 0.0
        self._at = -inf
        self.used = self.denied = 0
        """Retries that were sent, and that were not sent because the budget was used up, since the start."""

    def count_request(self, now: float) -> None:
        """Note a request that is not a retry."""
        self._forget(now)
        self._requests += 1

    def spend(self, now: float) -> bool:
        """Return whether a retry is allowed, and count it."""
        self._forget(now)
        if self._retries + 1 > self.LEAST + self.SHARE * self._requests:
            self.denied += 1
            return False
        self._retries += 1
        self.used += 1
        return True

    def allow(self, retries: int) -> None:
        """Allow further retries, once: a server died with so many requests, each of which needs one."""
        self._retries -= retries

    def _forget(self, now: float) -> None:
        kept = exp((self._at - now) / self.PERIOD) if now > self._at else 1.0
        self._requests, self._retries, self._at = self._requests * kept, self._retries * kept, max(now, self._at)


class ReplicaPool:
    """The replicas of one upstream. All times are monotonic seconds that the caller reads."""

    def __init__(self, urls: Sequence[str]) -> None:
        """Take the base URLs, at least one; each replica is in service."""
        self.replicas: Final = tuple(Replica(url) for url in dict.fromkeys(urls))
        self.budget: Final = RetryBudget()

    @property
    def urls(self) -> tuple[str, ...]:
        """The base URLs, in the order of the configuration."""
        return tuple(each.url for each in self.replicas)

    def is_out(self) -> bool:
        """Return whether no replica is in service."""
        return all(each.is_out for each in self.replicas)

    # ---------------------------------------------------------------- choice

    def take(self, now: float, key: str = "", tie: float = 0.0, avoid: Collection[Replica] = ()) -> Replica:
        """Return the replica for a request, which counts as in flight from now on. `avoid` are those that failed it.

        With a key, requests of one key go to one replica, unless that is out, avoided, or much more loaded than the
        least loaded. Without one, the least loaded gets the request; `tie` (from 0 to below 1) decides between equals.
        """
        candidates = [each for each in self.replicas if each.serves(now) and each not in avoid]
        chosen = _balanced(candidates, key, tie) if candidates else self._last_resort(avoid)
        chosen.in_flight += 1
        chosen.requests += 1
        return chosen

    def has_other(self, now: float, tried: Collection[Replica]) -> bool:
        """Return whether a replica is in service that has not failed this request yet."""
        return any(each.serves(now) and each not in tried for each in self.replicas)

    def first(self, now: float, avoid: Collection[Replica] = ()) -> Replica:
        """Return the first replica in service, for a page that should always come from the same server."""
        serving = (each for each in self.replicas if each.serves(now) and each not in avoid)
        return next(serving, None) or self._last_resort(avoid)

    def _last_resort(self, avoid: Collection[Replica]) -> Replica:
        """Return the replica that will be back first; one that has not failed this request, if there is one."""
        left = [each for each in self.replicas if each not in avoid] or self.replicas
        return min(left, key=lambda each: (each.is_out, each.out_until if each.is_out else each.rests_until))

    def fail(self, replica: Replica, now: float, *, is_down: bool = False) -> None:
        """Note a failure that is the server's own; with `is_down`, no connection could be made.

        If that ejects the replica, its open requests may be lost with it: the budget allows a retry for each.
        """
        before = replica.ejected
        replica.fail(now, is_down=is_down)
        if replica.ejected > before:
            self.budget.allow(replica.in_flight)

    def due(self, now: float) -> list[Replica]:
        """Return the ejected replicas whose time is up, each to one caller, which probes it."""
        return [each for each in self.replicas if each.take_probe(now)]


def _balanced(candidates: Sequence[Replica], key: str, tie: float) -> Replica:
    """Return the replica for a key; without a key, the least loaded."""
    least = min(each.in_flight for each in candidates)
    if not key:
        idle = [each for each in candidates if each.in_flight == least]
        return idle[min(int(tie * len(idle)), len(idle) - 1)]
    # Rendezvous hashing: each key has its own order of all replicas, in every process. If one goes, only its
    # conversations move, and they return with it.
    bound = _LOAD_FACTOR * least + _LOAD_SLACK
    return max((each for each in candidates if each.in_flight <= bound), key=lambda each: _score(key, each.url))


def _score(key: str, url: str) -> bytes:
    return blake2b(f"{key}\0{url}".encode("utf-8", "replace"), digest_size=8).digest()
