"""Where verdicts are kept between requests, and who may probe: in process (here), or shared by a fleet (`shared.py`).

    verdict = await verdicts.find(subject)             None if nobody knows
    token = await verdicts.claim(subject)              "" if somebody else is probing it
    await verdicts.keep(subject, verdict)
    await verdicts.release(subject, token)

A verdict belongs to an endpoint, a model and the server's fingerprint: a server that comes back with another build or
template has another one. Which fingerprint it had last is kept for a shorter time, since to look again is free.
"""

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, Protocol, TypeVar

from toolspeak.engine.verdict import Layer, Verdict
from toolspeak.facts.model import Support
from toolspeak.runtime.clock import CLOCK, Clock

LONG, SHORT, SOON = 86_400.0, 600.0, 60.0
"""Seconds: that a verdict counts, that an uncertain one does, that a broken probe waits for the next."""
NEGATIVE: Final = 3_600.0
"""That a measured "no tools" counts: it is the one that takes something away from people."""
SEEN: Final = 3_600.0
"""That a server is taken for the one that it was."""
LONGEST_PROBE: Final = 360.0
"""Seconds after which who claimed a probe is taken for dead."""
MOST: Final = 4096
_Kept = TypeVar("_Kept")


@dataclass(frozen=True, slots=True)
class Subject:
    """What a verdict is about. The fingerprint is empty where it is not known yet."""

    endpoint: str
    model: str
    fingerprint: str = ""

    @property
    def key(self) -> str:
        """Return what it is kept under; a URL could hold a key, so it is not shown."""
        return sha256(f"{self.endpoint}\n{self.model}\n{self.fingerprint}".encode()).hexdigest()

    def of(self, fingerprint: str) -> "Subject":
        """Return the same model of a server with another fingerprint."""
        return replace(self, fingerprint=fingerprint)


def lifetime(verdict: Verdict) -> float:
    """Return for how many seconds a verdict counts."""
    if verdict.stopped and verdict.tools is Support.UNKNOWN:
        return SOON
    if verdict.tools is Support.UNKNOWN:
        return SHORT
    if verdict.tools is Support.NONE:
        from_traffic = bool(verdict.evidence) and verdict.evidence[-1].layer is Layer.TRAFFIC
        return SHORT if from_traffic else NEGATIVE
    return LONG


class Verdicts(Protocol):
    """What keeps verdicts. Nothing here raises: who cannot keep or find something goes on without."""

    @property
    def check(self) -> float:
        """Seconds after which a process should look here again: others may have put something in."""
        ...

    async def find(self, subject: Subject) -> Verdict | None:
        """Return what is known; without a fingerprint, about the server that was there last."""
        ...

    async def keep(self, subject: Subject, verdict: Verdict) -> None:
        """Keep a verdict under its fingerprint, and that this is the one that was there last."""
        ...

    async def seen(self, subject: Subject) -> None:
        """Note that the server with this fingerprint is still there."""
        ...

    async def claim(self, subject: Subject) -> str:
        """Return a token if nobody else is probing this model, else an empty string."""
        ...

    async def release(self, subject: Subject, token: str) -> None:
        """Let others probe again."""
        ...

    async def close(self) -> None:
        """Close what is open."""
        ...


class Memory:
    """In this process, bounded (P7)."""

    def __init__(self, clock: Clock = CLOCK, most: int = MOST) -> None:
        """Know nothing."""
        self._clock: Final = clock
        self._most: Final = most
        self._kept: Final[dict[str, tuple[float, Verdict]]] = {}
        self._seen: Final[dict[str, tuple[float, str]]] = {}
        self._claims: Final[dict[str, tuple[float, str]]] = {}

    @property
    def check(self) -> float:
        """Nobody else puts anything in: look again when a server should be looked at again."""
        return SEEN

    async def find(self, subject: Subject) -> Verdict | None:
        """Return what is known."""
        fingerprint = subject.fingerprint or self._fresh(self._seen, subject.key)
        if fingerprint is None:
            return None
        return self._fresh(self._kept, subject.of(fingerprint).key)

    async def keep(self, subject: Subject, verdict: Verdict) -> None:
        """Keep a verdict."""
        known = subject.of(verdict.fingerprint)
        self._put(self._kept, known.key, verdict, lifetime(verdict))
        await self.seen(known)

    async def seen(self, subject: Subject) -> None:
        """Note that the server with this fingerprint is still there."""
        self._put(self._seen, subject.of("").key, subject.fingerprint, SEEN)

    async def claim(self, subject: Subject) -> str:
        """Return a token if nobody else is probing."""
        key = subject.of("").key
        if self._fresh(self._claims, key) is not None:
            return ""
        token = self._clock.fresh_id()
        self._put(self._claims, key, token, LONGEST_PROBE)
        return token

    async def release(self, subject: Subject, token: str) -> None:
        """Let others probe again."""
        key = subject.of("").key
        if self._fresh(self._claims, key) == token:
            del self._claims[key]

    async def close(self) -> None:
        """Nothing is open."""

    def _fresh(self, where: dict[str, tuple[float, _Kept]], key: str) -> _Kept | None:
        until, found = where.get(key, (0.0, None))
        return found if self._clock.monotonic() < until else None

    def _put(self, where: dict[str, tuple[float, _Kept]], key: str, value: _Kept, lasts: float) -> None:
        where.pop(key, None)
        if len(where) >= self._most:
            where.pop(next(iter(where)))
        where[key] = (self._clock.monotonic() + lasts, value)
