"""A small store in an SQLite file that the processes of one machine share: values with a lifetime, in bounded spaces.

    store.put("session", key, value, Bounds(seconds=60.0, entries=1000))
    store.get("session", key)                                   None if it is absent or too old

The workers of one gateway keep in it what one process would keep in its memory: sessions, stored responses, verdicts.
The file is in a private folder and goes with the gateway, so nothing is synchronized to the disk: a write takes less
than 0.1 ms, and the event loop may wait for it. Errors (a full disk) are logged, and treated as an absent value.

Times are monotonic seconds, which all processes of a machine share.
"""

import logging
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

import msgspec

from toolspeak.engine.verdict import Verdict
from toolspeak.runtime.cache import CHECK, LONGEST_PROBE, MOST, SEEN, Subject, lifetime
from toolspeak.runtime.clock import CLOCK, Clock

_LOG: Final = logging.getLogger(__name__)
_BUSY: Final = 1.0
"""Seconds for which a process waits for the write of another."""
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS entries (
    number INTEGER PRIMARY KEY, space TEXT NOT NULL, key TEXT NOT NULL, expires REAL NOT NULL, size INTEGER NOT NULL,
    value BLOB NOT NULL, UNIQUE (space, key)
);
CREATE INDEX IF NOT EXISTS entries_by_age ON entries (space, number, size);
"""
_DELETE: Final = "DELETE FROM entries WHERE space = ? AND key = ?"
_INSERT: Final = "INSERT INTO entries (space, key, expires, size, value) VALUES (?, ?, ?, ?, ?)"
_EXPIRED: Final = "DELETE FROM entries WHERE space = ? AND expires <= ?"
_TOTALS: Final = "SELECT COUNT(*), SUM(size) FROM entries WHERE space = ?"
_OVER: Final = """
DELETE FROM entries WHERE number IN (
    SELECT number FROM (
        SELECT number, ROW_NUMBER() OVER newest AS place, SUM(size) OVER newest AS total FROM entries WHERE space = ?
        WINDOW newest AS (ORDER BY number DESC)
    ) WHERE place > ? OR total > ?
)
"""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long a value is kept, and how many values of its space, and bytes of all of them."""

    seconds: float
    entries: int = MOST
    bytes: int = 1 << 62


class LocalStore:
    """The open file. Any thread of the process may use it; after a fork, each process opens its own."""

    def __init__(self, file: Path, clock: Clock = CLOCK) -> None:
        """Open the file, or create it. The first process must have done so before others open it at the same time."""
        self._clock: Final = clock
        self._lock: Final = Lock()
        self._database: Final = sqlite3.connect(file, timeout=_BUSY, isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.executescript(_SCHEMA)

    def get(self, space: str, key: str) -> bytes | None:
        """Return the value; None if it is absent or too old."""
        with self._guarded():
            sql = "SELECT value FROM entries WHERE space = ? AND key = ? AND expires > ?"
            row = self._database.execute(sql, (space, key, self._clock.monotonic())).fetchone()
            return bytes(row[0]) if row is not None else None
        return None

    def put(self, space: str, key: str, value: bytes, bounds: Bounds) -> None:
        """Store a value, and drop those of its space that are too old, or the oldest over a bound."""
        with self._guarded(), self._transaction():
            self._database.execute(_DELETE, (space, key))
            self._insert(space, key, value, bounds.seconds)
            count, size = self._database.execute(_TOTALS, (space,)).fetchone()
            if count > bounds.entries or size > bounds.bytes:
                self._database.execute(_OVER, (space, bounds.entries, bounds.bytes))

    def put_new(self, space: str, key: str, value: bytes, seconds: float) -> bool:
        """Store a value if its key has none; return whether it was stored. It is atomic over all processes."""
        with self._guarded(), self._transaction(), suppress(sqlite3.IntegrityError):
            self._insert(space, key, value, seconds)
            return True
        return False

    def delete(self, space: str, key: str, value: bytes | None = None) -> bool:
        """Remove a value, or only this one; return whether it was there."""
        with self._guarded():
            sql, more = (_DELETE, ()) if value is None else (f"{_DELETE} AND value = ?", (value,))
            return self._database.execute(sql, (space, key, *more)).rowcount > 0
        return False

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _insert(self, space: str, key: str, value: bytes, seconds: float) -> None:
        now = self._clock.monotonic()
        self._database.execute(_EXPIRED, (space, now))
        self._database.execute(_INSERT, (space, key, now + seconds, len(value), value))

    @contextmanager
    def _transaction(self) -> Generator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    @contextmanager
    def _guarded(self) -> Generator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                _LOG.warning("the store that workers share failed: %s", error)


# ---------------------------------------------------------------- verdicts

_VERDICT, _SEEN, _PROBE = "verdict", "seen", "probe"
_decode = msgspec.json.Decoder(Verdict).decode


class LocalVerdicts:
    """Stores probe verdicts for the workers of one machine, so that each model is probed once; see `cache.Verdicts`."""

    def __init__(self, store: LocalStore, clock: Clock = CLOCK) -> None:
        """Take the store. Its entries are written by processes of this version only."""
        self._store: Final = store
        self._clock: Final = clock

    @property
    def check(self) -> float:
        """Other workers store verdicts at any time."""
        return CHECK

    async def find(self, subject: Subject) -> Verdict | None:
        """Return the valid verdict, or None."""
        seen = subject.fingerprint.encode() or self._store.get(_SEEN, subject.key)
        found = self._store.get(_VERDICT, subject.of(seen.decode()).key) if seen is not None else None
        return _decode(found) if found is not None else None

    async def keep(self, subject: Subject, verdict: Verdict) -> None:
        """Store a verdict under its own fingerprint, which becomes the one that was seen last."""
        known = subject.of(verdict.fingerprint)
        self._store.put(_VERDICT, known.key, msgspec.json.encode(verdict), Bounds(lifetime(verdict)))
        await self.seen(known)

    async def seen(self, subject: Subject) -> None:
        """Store that the server still has the subject's fingerprint."""
        self._store.put(_SEEN, subject.of("").key, subject.fingerprint.encode(), Bounds(SEEN))

    async def claim(self, subject: Subject) -> str:
        """Return a token if no other worker is probing this model, else an empty string."""
        token = self._clock.fresh_id()
        is_new = self._store.put_new(_PROBE, subject.of("").key, token.encode(), LONGEST_PROBE)
        return token if is_new else ""

    async def release(self, subject: Subject, token: str) -> None:
        """Give up a claim, if the token is still its current one."""
        self._store.delete(_PROBE, subject.of("").key, token.encode())

    async def close(self) -> None:
        """Close the store."""
        self._store.close()
