"""Stores probe verdicts and claims on probes, in this process. `shared.py` does the same for a fleet, in Redis.

    verdict = await verdicts.find(subject)             None if there is no verdict
    token = await verdicts.claim(subject)              "" if another task or process is probing the model
    await verdicts.keep(subject, verdict)
    await verdicts.release(subject, token)

A verdict belongs to an endpoint, a model and the server's fingerprint: a server that restarts with another build or
chat template gets a new verdict. The last fingerprint of a server is stored for a shorter time than its verdict: a new
look, which finds it, costs no tokens.
"""

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, Protocol, TypeVar

from toolspeak.engine.verdict import Layer, Verdict
from toolspeak.facts.model import Support
from toolspeak.runtime.clock import CLOCK, Clock

LONG, SHORT, SOON = 86_400.0, 600.0, 60.0
"""Lifetimes in seconds: of a verdict, of an uncertain one, and of the result of a probe that was interrupted."""
NEGATIVE: Final = 3_600.0
"""Seconds that a measured "no tools" is valid. It is shorter than `LONG`, because a wrong one disables native calls."""
SEEN: Final = 3_600.0
"""Seconds that a fingerprint is valid: afterwards a look checks that it is still the same server."""
CHECK: Final = 60.0
"""Seconds for which a process uses a verdict of a store that others write, too, before it reads it again."""
LONGEST_PROBE: Final = 360.0
"""Seconds after which a claim expires. It exceeds the limit of a probe, so only a dead process loses its claim."""
MOST: Final = 4096
"""Entries of each table of `Memory`: clients choose model names, so the number must be bounded."""
_Kept = TypeVar("_Kept")


@dataclass(frozen=True, slots=True)
class Subject:
    """The key of a verdict. The fingerprint is empty until a look has found it."""

    endpoint: str
    model: str
    fingerprint: str = ""

    @property
    def key(self) -> str:
        """Return a hash of all fields. It is a hash because the endpoint's URL may contain an API key."""
        return sha256(f"{self.endpoint}\n{self.model}\n{self.fingerprint}".encode()).hexdigest()

    def of(self, fingerprint: str) -> "Subject":
        """Return the same endpoint and model with another fingerprint."""
        return replace(self, fingerprint=fingerprint)


def lifetime(verdict: Verdict) -> float:
    """Return for how many seconds a verdict is valid: the less certain or the more harmful if wrong, the shorter."""
    if verdict.stopped and verdict.tools is Support.UNKNOWN:
        return SOON
    if verdict.tools is Support.UNKNOWN:
        return SHORT
    if verdict.tools is Support.NONE:
        from_traffic = bool(verdict.evidence) and verdict.evidence[-1].layer is Layer.TRAFFIC
        return SHORT if from_traffic else NEGATIVE
    return LONG


class Verdicts(Protocol):
    """Stores probe verdicts. Storage errors are logged and treated as a cache miss; methods never raise."""

    @property
    def check(self) -> float:
        """Seconds after which a process should read its verdict again, because other processes may have stored one."""
        ...

    async def find(self, subject: Subject) -> Verdict | None:
        """Return the valid verdict, or None. A subject without a fingerprint means the server that was seen last."""
        ...

    async def keep(self, subject: Subject, verdict: Verdict) -> None:
        """Store a verdict under its own fingerprint, which becomes the one that was seen last."""
        ...

    async def seen(self, subject: Subject) -> None:
        """Store that the server still has the subject's fingerprint."""
        ...

    async def claim(self, subject: Subject) -> str:
        """Return a token if no other task or process is probing this model, else an empty string."""
        ...

    async def release(self, subject: Subject, token: str) -> None:
        """Give up a claim. An outdated token has no effect: the claim may belong to another process by now."""
        ...

    async def close(self) -> None:
        """Close the connections of the store."""
        ...


class Memory:
    """Stores verdicts in this process, up to `most` of them; the oldest is dropped first (P7)."""

    def __init__(self, clock: Clock = CLOCK, most: int = MOST) -> None:
        """Create an empty store."""
        self._clock: Final = clock
        self._most: Final = most
        self._kept: Final[dict[str, tuple[float, Verdict]]] = {}
        self._seen: Final[dict[str, tuple[float, str]]] = {}
        self._claims: Final[dict[str, tuple[float, str]]] = {}

    @property
    def check(self) -> float:
        """No other process writes here, so one look per lifetime of a fingerprint is enough."""
        return SEEN

    async def find(self, subject: Subject) -> Verdict | None:
        """Return the valid verdict, or None."""
        fingerprint = subject.fingerprint or self._fresh(self._seen, subject.key)
        if fingerprint is None:
            return None
        return self._fresh(self._kept, subject.of(fingerprint).key)

    async def keep(self, subject: Subject, verdict: Verdict) -> None:
        """Store a verdict under its own fingerprint, which becomes the one that was seen last."""
        known = subject.of(verdict.fingerprint)
        self._put(self._kept, known.key, verdict, lifetime(verdict))
        await self.seen(known)

    async def seen(self, subject: Subject) -> None:
        """Store that the server still has the subject's fingerprint."""
        self._put(self._seen, subject.of("").key, subject.fingerprint, SEEN)

    async def claim(self, subject: Subject) -> str:
        """Return a token if no other task is probing this model, else an empty string."""
        # The fingerprint is not part of the key: two probes of one model must not run even if the server has changed.
        key = subject.of("").key
        if self._fresh(self._claims, key) is not None:
            return ""
        token = self._clock.fresh_id()
        self._put(self._claims, key, token, LONGEST_PROBE)
        return token

    async def release(self, subject: Subject, token: str) -> None:
        """Give up a claim, if the token is still its current one."""
        key = subject.of("").key
        if self._fresh(self._claims, key) == token:
            del self._claims[key]

    async def close(self) -> None:
        """Do nothing: there are no connections."""

    def _fresh(self, where: dict[str, tuple[float, _Kept]], key: str) -> _Kept | None:
        until, found = where.get(key, (0.0, None))
        return found if self._clock.monotonic() < until else None

    def _put(self, where: dict[str, tuple[float, _Kept]], key: str, value: _Kept, lasts: float) -> None:
        where.pop(key, None)  # a dict keeps the order of insertion: an entry that is written again becomes the newest
        if len(where) >= self._most:
            where.pop(next(iter(where)))
        where[key] = (self._clock.monotonic() + lasts, value)
