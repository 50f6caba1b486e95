"""Watches what a profile does to real answers, and suspends it if calls stay out more often than before (CAP-11).

For each model and tenant it counts the answers to a user's words with tools at hand, and how many of them had no call:
while no profile is used, and while the present one is. When 8, 16, 32, … answers have come under the profile, an exact
test compares both. Six looks at `BY_CHANCE` each suspend a harmless profile in 3 of 100 cases at most.

A client can ask for answers without calls, so a tenant suspends a profile only for itself; two tenants, or the one of
a gateway without keys, suspend it for all (CAP-6). A request that is sent again counts once. A gateway keeps the counts
in a file beside the profile, so that it can compare after a restart too; `toolspeak models` and clients read it.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from toolspeak.engine.effects import Outcome
from toolspeak.engine.guardrails.guardrail import latest_words
from toolspeak.engine.plan import Way
from toolspeak.facts.chance import more_often
from toolspeak.ir.event import CallStarted, Failed
from toolspeak.ir.request import Request
from toolspeak.ir.tool import AUTO
from toolspeak.runtime.clock import Clock

LOOKS: Final = (8, 16, 32, 64, 128, 256)
"""Answers under a profile after which it is compared. After the last one the profile is trusted."""
BY_CHANCE: Final = 0.005
QUORUM: Final = 2
"""Tenants that suspend a profile for all."""
WRITE_EVERY: Final = 30.0
"""Seconds between two writes of the counts; a suspension is written at once."""
_MOST_MODELS, _MOST_TENANTS, _MOST_SEEN = 1024, 64, 512
_LARGEST: Final = 64 * 1024
_DIGITS: Final = 16
_SUSPENDED: Final = (
    "the profile of %s at %s is suspended%s: since it is used, %d of %d answers had no call, before it %d of %d. "
    "Run toolspeak doctor to measure again, or delete %s"
)
_LOG: Final = logging.getLogger(__name__)


class _Counts(msgspec.Struct):
    """Answers without a call and all answers of one tenant: without a profile, and with the present one."""

    silent_before: int = 0
    before: int = 0
    silent: int = 0
    turns: int = 0
    suspends: bool = False


class _Kept(msgspec.Struct):
    """What the file has."""

    profile: str = ""
    tenants: dict[str, _Counts] = msgspec.field(default_factory=dict[str, _Counts])


@dataclass(slots=True)
class _Watched:
    kept: _Kept
    seen: dict[bytes, None] = field(default_factory=dict[bytes, None])
    """Requests that were counted, the oldest first."""
    written: float = 0.0


_decode = msgspec.json.Decoder(_Kept).decode


class ProfileWatch:
    """The counts for the models of one endpoint. Storage errors are treated as missing counts; nothing here raises."""

    def __init__(self, endpoint: str, clock: Clock) -> None:
        """Start without counts; a model's file is read when it is first needed."""
        self._endpoint: Final = endpoint
        self._clock: Final = clock
        self._models: Final[dict[Path, _Watched]] = {}

    def is_suspended(self, path: Path, profile: str, tenant: str) -> bool:
        """Return whether a profile is suspended for a tenant. `profile` identifies the measured file."""
        kept = self._watched(path).kept
        if kept.profile != profile:
            return False
        own = kept.tenants.get(_digest(tenant))
        return (own is not None and own.suspends) or _is_for_all(kept.tenants)

    def suspension(self, path: Path, profile: str) -> str:
        """Return for whom a profile is suspended, in words; empty if it is in use."""
        kept = self._watched(path).kept
        count = sum(one.suspends for one in kept.tenants.values()) if kept.profile == profile else 0
        if not count:
            return ""
        return "suspended" if _is_for_all(kept.tenants) else "suspended for 1 tenant"

    def note(self, path: Path, profile: str, used: bool, model: str, turn: "WatchedTurn") -> None:  # noqa: FBT001
        """Count a turn; `profile` is empty if there is none, and `used` says whether it applied to this turn."""
        watched = self._watched(path)
        digest = sha256(turn.key).digest()
        if digest in watched.seen:
            return
        watched.seen[digest] = None
        if len(watched.seen) > _MOST_SEEN:
            watched.seen.pop(next(iter(watched.seen)))
        kept = watched.kept
        if kept.profile != profile:
            kept.profile = profile
            for one in kept.tenants.values():
                one.silent = one.turns = 0
                one.suspends = False
        tenant = _digest(turn.tenant)
        if tenant not in kept.tenants and len(kept.tenants) >= _MOST_TENANTS:
            kept.tenants.pop(next(iter(kept.tenants)))
        counts = kept.tenants.setdefault(tenant, _Counts())
        suspends = self._count(counts, turn, used=used)
        if suspends:
            scope = "" if _is_for_all(kept.tenants) else " for one tenant"
            figures = (counts.silent, counts.turns, counts.silent_before, counts.before)
            _LOG.warning(_SUSPENDED, ascii(model), self._endpoint, scope, *figures, path.with_suffix(".json"))
        self._write(path, watched, at_once=suspends)

    def _count(self, counts: _Counts, turn: "WatchedTurn", *, used: bool) -> bool:
        """Count a turn; return whether it makes the tenant suspend the profile."""
        if not used:
            if counts.before >= LOOKS[-1]:  # old turns fade, so that the count follows what clients ask
                counts.before, counts.silent_before = counts.before // 2, counts.silent_before // 2
            counts.before += 1
            counts.silent_before += turn.is_silent
            return False
        if counts.turns >= LOOKS[-1]:
            return False
        counts.turns += 1
        counts.silent += turn.is_silent
        if counts.turns not in LOOKS or counts.suspends:
            return False
        chance = more_often((counts.silent_before, counts.before), (counts.silent, counts.turns))
        counts.suspends = chance <= BY_CHANCE
        return counts.suspends

    def _watched(self, path: Path) -> _Watched:
        found = self._models.get(path)
        if found is None:
            if len(self._models) >= _MOST_MODELS:
                self._models.pop(next(iter(self._models)))
            found = self._models[path] = _Watched(_read(path))
        return found

    def _write(self, path: Path, watched: _Watched, *, at_once: bool) -> None:
        now = self._clock.monotonic()
        if not at_once and now - watched.written < WRITE_EVERY:
            return
        watched.written = now
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new = path.with_suffix(".watch.new")
            new.write_bytes(msgspec.json.encode(watched.kept))
            new.replace(path)
        except OSError as error:
            _LOG.debug("the counts of %s cannot be kept: %s", path, error)


@dataclass(frozen=True, slots=True)
class WatchedTurn:
    """One answer to a user's words with tools at hand."""

    tenant: str
    key: bytes
    """Equal for a request that is sent again."""
    is_silent: bool
    """It has no call."""


def watched_turn(request: Request, outcome: Outcome, tenant: str) -> WatchedTurn | None:
    """Return what a turn shows about calls; None if it shows nothing: no tools, no words of a user, or an error."""
    words = latest_words(request)
    failed = bool(outcome.events) and isinstance(outcome.events[-1], Failed)
    if not request.tools or not words or request.choice != AUTO or failed or outcome.plan.way in (Way.PLAIN, Way.OFF):
        return None
    names = "\n".join(tool.name for tool in request.tools)
    key = "\n".join((tenant, str(len(request.messages)), names, words)).encode("utf-8", "replace")
    return WatchedTurn(tenant, key, not any(isinstance(event, CallStarted) for event in outcome.events))


def _is_for_all(tenants: Mapping[str, _Counts]) -> bool:
    """Whether enough tenants suspend a profile. Without keys all clients are one tenant, and share what they do."""
    own = tenants.get("")
    return (own is not None and own.suspends) or sum(one.suspends for one in tenants.values()) >= QUORUM


def _digest(tenant: str) -> str:
    """Return a name of a tenant for the file; the one without keys keeps its empty name."""
    return sha256(tenant.encode()).hexdigest()[:_DIGITS] if tenant else ""


def _read(path: Path) -> _Kept:
    try:
        with path.open("rb") as file:
            return _decode(file.read(_LARGEST))
    except (OSError, ValueError):
        return _Kept()
