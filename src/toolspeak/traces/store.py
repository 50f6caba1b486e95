"""Keeps traces: in memory, or in an SQLite file that survives a restart.

Both keep the traces of each tenant apart, and both are bounded: by number and size in memory, by age on disk. Errors of
the file are logged and never reach a client: a full disk must not fail a turn.
"""

import logging
import sqlite3
import zlib
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from queue import Empty, SimpleQueue
from sys import getsizeof
from threading import Lock, Thread
from typing import Final, Protocol

import msgspec

from toolspeak.errors import BadConfig
from toolspeak.traces.trace import Trace

_LOG: Final = logging.getLogger(__name__)
MOST_LISTED: Final = 200
_OVERHEAD: Final = 2048
"""Bytes of a trace besides its texts."""


class Summary(msgspec.Struct, omit_defaults=True):
    """A line of the list of traces. It has no content."""

    id: str
    time: float
    tenant: str = ""
    wire: str = ""
    model: str = ""
    upstream: str = ""
    plan: str = ""
    status: int = 0
    error: str = ""
    """The kind of the failure; empty if there was none."""
    calls: list[str] = msgspec.field(default_factory=list[str])
    requests: int = 0
    complaints: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    waits_for: str = ""
    """What a running request waits for; empty if it has ended."""
    agent: str = ""
    tools: str = ""
    """As in `Trace`; of a running turn, as planned."""
    first: float | None = None
    """When the client's first event left, in seconds since the request arrived."""

    @property
    def is_asked_again(self) -> bool:
        """Whether the turn sent more than one request to the upstream."""
        return self.requests > 1


def summary_of(trace: Trace, waits_for: str = "") -> Summary:
    """Return the line of a trace."""
    return Summary(
        trace.id,
        trace.time,
        trace.tenant,
        trace.wire,
        trace.model,
        f"{trace.upstream}:{trace.upstream_model}",
        trace.taken or trace.plan.line,
        trace.status,
        trace.failure.kind if trace.failure is not None else "",
        trace.calls,
        len(trace.attempts),
        len(trace.complaints),
        trace.usage.input_tokens,
        trace.usage.output_tokens,
        trace.seconds,
        waits_for,
        trace.agent,
        trace.tools,
        trace.first,
    )


@dataclass(frozen=True, slots=True)
class TraceQuery:
    """Which traces to list, the newest first."""

    tenant: str | None = None
    """None lists those of all tenants."""
    words: str = ""
    """Words that must all occur in the names of the model, the upstream and the tools, the plan, or the error."""
    is_failed: bool = False
    is_asked_again: bool = False
    """List only turns that asked the upstream more than once."""
    limit: int = 50

    def matches(self, summary: Summary) -> bool:
        """Return whether a trace is listed, as far as its line tells; the limit aside."""
        if self.tenant not in (None, summary.tenant) or (self.is_failed and not summary.error):
            return False
        text = searched_text(summary).lower()
        is_wanted = summary.is_asked_again or not self.is_asked_again
        return is_wanted and all(word in text for word in self.words.lower().split())


class TraceStore(Protocol):
    """Where traces are kept. All methods may block shortly; `add` may not."""

    def add(self, trace: Trace) -> None:
        """Keep a trace."""
        ...

    def find(self, id: str, tenant: str | None) -> Trace | None:
        """Return a trace of a tenant, or of any if that is None."""
        ...

    def search(self, query: TraceQuery) -> list[Summary]:
        """Return the matching traces, the newest first."""
        ...

    def close(self) -> None:
        """Write what is left, and close the file."""
        ...


def searched_text(summary: Summary) -> str:
    """Return the words that a search looks at."""
    names = (summary.id, summary.wire, summary.agent, summary.model, summary.upstream)
    return " ".join((*names, summary.plan, summary.tools, summary.error, *summary.calls))


# ---------------------------------------------------------------- in memory


class MemoryStore:
    """Keeps the newest traces of each tenant."""

    def __init__(self, entries: int, size: int) -> None:
        """Take the most traces of a tenant, and the most bytes of all traces of a tenant."""
        self._entries: Final = entries
        self._size: Final = size
        self._tenants: Final[dict[str, OrderedDict[str, tuple[Trace, int]]]] = {}
        self._sizes: Final[dict[str, int]] = {}
        self._lock: Final = Lock()
        """Turns end on the event loop, and searches run in a thread: neither may see half of a change."""

    def add(self, trace: Trace) -> None:
        """Keep a trace, and drop the oldest ones of its tenant over the limits."""
        size = _size_of(trace)
        if size > self._size:
            return
        with self._lock:
            kept = self._tenants.setdefault(trace.tenant, OrderedDict())
            kept[trace.id] = (trace, size)
            total = self._sizes.get(trace.tenant, 0) + size
            while len(kept) > self._entries or total > self._size:
                total -= kept.popitem(last=False)[1][1]
            self._sizes[trace.tenant] = total

    def find(self, id: str, tenant: str | None) -> Trace | None:
        """Return a trace."""
        with self._lock:
            found = (kept[id][0] for kept in self._of(tenant) if id in kept)
            return next(found, None)

    def search(self, query: TraceQuery) -> list[Summary]:
        """Return the matching traces."""
        with self._lock:
            traces = [trace for kept in self._of(query.tenant) for trace, _ in kept.values()]
        found = filter(query.matches, map(summary_of, traces))
        return sorted(found, key=lambda one: -one.time)[: query.limit]

    def all(self) -> list[Trace]:
        """Return all traces of all tenants, the oldest first."""
        with self._lock:
            traces = [trace for kept in self._tenants.values() for trace, _ in kept.values()]
        return sorted(traces, key=lambda one: one.time)

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def _of(self, tenant: str | None) -> Iterable[OrderedDict[str, tuple[Trace, int]]]:
        if tenant is None:
            return self._tenants.values()
        return (self._tenants[tenant],) if tenant in self._tenants else ()


def _size_of(trace: Trace) -> int:
    parts = chain(trace.answer, *(attempt.parts for attempt in trace.attempts))
    return _OVERHEAD + getsizeof(trace.body) + sum(getsizeof(part.text) for part in parts)


# ---------------------------------------------------------------- in a file

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS traces (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL, time REAL NOT NULL,
    summary BLOB NOT NULL, document BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS traces_by_time ON traces (time);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (labels, text, tokenize="unicode61 tokenchars '_-'");
"""
_BATCH: Final = 200
"""Traces that are written in one transaction."""
_MOST_WAITING: Final = 5000
"""Traces that wait to be written; further ones are dropped, and counted in the log."""
_DAY: Final = 86_400.0
_SWEEP_EVERY: Final = 2000
"""Traces that are written between two deletions of old ones."""


class FileStore:
    """Keeps traces in an SQLite file. A thread writes them, so that a turn never waits for the disk."""

    def __init__(self, file: Path, keep_days: float) -> None:
        """Open the file, or create it. Raises `BadConfig` if it is no database of traces or cannot be written."""
        self._keep: Final = keep_days * _DAY
        self._lock: Final = Lock()
        """Guards the connection: the thread writes, and requests read."""
        self._database: Final = _opened(file)
        self._waiting: Final[SimpleQueue[Trace | None]] = SimpleQueue()
        self._dropped = self._written = 0
        self._thread: Final = Thread(target=self._write_all, name="traces", daemon=True)
        self._thread.start()

    def add(self, trace: Trace) -> None:
        """Hand a trace to the thread that writes."""
        if self._waiting.qsize() < _MOST_WAITING:
            self._waiting.put(trace)
        else:
            self._dropped += 1

    def find(self, id: str, tenant: str | None) -> Trace | None:
        """Return a trace."""
        where, values = ("id = ?", (id,)) if tenant is None else ("id = ? AND tenant = ?", (id, tenant))
        rows = self._rows(f"SELECT document FROM traces WHERE {where}", values)  # noqa: S608 # one of two literals
        return msgspec.json.decode(zlib.decompress(rows[0][0]), type=Trace) if rows else None

    def search(self, query: TraceQuery) -> list[Summary]:
        """Return the matching traces."""
        # The index of words is in the order of the traces, so that the limit ends the search early.
        terms = [f'text : "{word.replace(chr(34), "")}"*' for word in query.words.split() if word.strip('"')]
        labels = _labels(query.tenant, is_failed=query.is_failed, is_asked_again=query.is_asked_again)
        terms += [f'labels : "{label}"' for label in labels]
        rows = self._rows(_MATCHING, (" AND ".join(terms), query.limit)) if terms else self._rows(_ALL, (query.limit,))
        return [msgspec.json.decode(row[0], type=Summary) for row in rows]

    def close(self) -> None:
        """Write what waits, and close the file."""
        self._waiting.put(None)
        self._thread.join()
        self._database.close()

    def _rows(self, sql: str, values: tuple[object, ...]) -> list[tuple[bytes]]:
        try:
            with self._lock:
                return self._database.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            _LOG.warning("the traces cannot be read: %s", error)
            return []

    def _write_all(self) -> None:
        is_open = True
        while is_open:
            batch, is_open = _next_batch(self._waiting)
            try:
                with self._lock:
                    self._write(batch)
            except (sqlite3.Error, msgspec.MsgspecError) as error:
                _LOG.warning("%d traces cannot be written: %s", len(batch), error)

    def _write(self, batch: list[Trace]) -> None:
        database = self._database
        with database:
            for trace in batch:
                summary = summary_of(trace)
                document = zlib.compress(msgspec.json.encode(trace), 1)
                row = (trace.id, trace.tenant, trace.time, msgspec.json.encode(summary), document)
                number = database.execute(_INSERT, row).lastrowid
                is_failed, is_asked_again = bool(summary.error), summary.is_asked_again
                labels = _labels(trace.tenant, is_failed=is_failed, is_asked_again=is_asked_again)
                words = (number, " ".join(labels), searched_text(summary))
                database.execute("INSERT INTO words (rowid, labels, text) VALUES (?, ?, ?)", words)
            if batch and self._written // _SWEEP_EVERY != (self._written + len(batch)) // _SWEEP_EVERY:
                self._sweep(batch[-1].time - self._keep)
        self._written += len(batch)

    def _sweep(self, before: float) -> None:
        """Delete old traces."""
        old = [row[0] for row in self._database.execute("SELECT number FROM traces WHERE time < ?", (before,))]
        self._database.executemany("DELETE FROM words WHERE rowid = ?", ((number,) for number in old))
        self._database.executemany("DELETE FROM traces WHERE number = ?", ((number,) for number in old))


_INSERT: Final = "INSERT OR REPLACE INTO traces (id, tenant, time, summary, document) VALUES (?, ?, ?, ?, ?)"
_ALL: Final = "SELECT summary FROM traces ORDER BY number DESC LIMIT ?"
_MATCHING: Final = (
    "SELECT summary FROM traces WHERE number IN "
    "(SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?) ORDER BY number DESC"
)


def _next_batch(waiting: "SimpleQueue[Trace | None]") -> tuple[list[Trace], bool]:
    """Wait for a trace; return it with those that wait behind it, and whether the store is still open."""
    batch: list[Trace] = []
    item = waiting.get()
    while item is not None:
        batch.append(item)
        if len(batch) >= _BATCH:
            return batch, True
        try:
            item = waiting.get_nowait()
        except Empty:
            return batch, True
    return batch, False


def _labels(tenant: str | None, *, is_failed: bool, is_asked_again: bool) -> list[str]:
    """Return what the index of words says of a trace besides its words.

    The name of a tenant is one word there, whatever characters it has, and never one of the other labels.
    """
    labels = [] if tenant is None else ["t" + tenant.encode().hex()]
    labels += ["failed"] if is_failed else []
    return [*labels, "again"] if is_asked_again else labels


def _opened(file: Path) -> sqlite3.Connection:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(file, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise _unusable(file, error) from None
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.executescript(_SCHEMA)
    except sqlite3.Error as error:
        database.close()
        raise _unusable(file, error) from None
    file.chmod(0o600)  # it holds what people wrote
    return database


def _unusable(file: Path, error: Exception) -> BadConfig:
    message = (
        f"traces.database: {file} cannot be used as a database of traces: {error}. Name another file, or remove it."
    )
    return BadConfig(message)
