"""Records the turns of the gateway, and answers `GET /traces` and `GET /traces/ID` (OBS-13).

A client of the gateway sees the traces of its own tenant only. What people and models write is kept by default only
where one person uses the gateway alone: on loopback, without keys. `content` under `[traces]` decides otherwise.
"""

import asyncio
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import parse_qs

import msgspec

from toolspeak.config.addresses import is_loopback
from toolspeak.config.shape import Config, Key
from toolspeak.engine.plan import Plan
from toolspeak.errors import BadField
from toolspeak.gateway.access_log import AccessEntry, mode_of
from toolspeak.gateway.exchange import Exchange, Refused
from toolspeak.gateway.peer_traces import Live, LiveTurn, TracePeers
from toolspeak.gateway.routes import Target
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.request import Request
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.directory import Route
from toolspeak.runtime.recorder import PlanWatch, TurnRecorder, TurnWatch
from toolspeak.runtime.turn_progress import TurnProgress
from toolspeak.runtime.upstream import HttpUpstream
from toolspeak.text.display import visible
from toolspeak.traces.store import MOST_LISTED, FileStore, MemoryStore, Summary, TraceQuery, TraceStore, summary_of
from toolspeak.traces.trace import StoredPlan, Trace, without_content

_NANO, _MICRO = 1e9, 1e6
_OVERLAP: Final = 100_000
"""Microseconds that a look at other workers goes back: a turn gets its number shortly before it is listed."""


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A turn before it runs, as far as its trace needs it."""

    wire: str
    path: str
    body: bytes
    request: Request
    route: Route
    plan: Plan
    progress: TurnProgress
    agent: str = ""
    """The `User-Agent` header."""
    parent: str = ""
    """The `traceparent` that the client sent: the span that the turn is a part of (OBS-15)."""


class SpanSink(Protocol):
    """Makes spans of turns: `gateway.spans.TurnSpans`. As a protocol, so that OpenTelemetry is loaded only if used."""

    def begin(self, turn: TurnRequest, entry: AccessEntry) -> str:
        """Return the `traceparent` of a turn that begins; empty if its span is made at its end, or not at all."""
        ...

    def end(self, trace: Trace, turn: TurnRequest, entry: AccessEntry) -> None:
        """Make the spans of a turn that has ended. The trace has its content."""
        ...

    def change(self, config: Config) -> None:
        """Follow a new configuration."""
        ...

    def close(self) -> None:
        """Send what is left; blocks for some seconds at most."""
        ...


@dataclass(frozen=True, slots=True)
class RunningTurn:
    """A turn that runs, for those who watch."""

    recorder: TurnRecorder

    @property
    def id(self) -> str:
        """The id of its trace."""
        return self.recorder.trace.id

    @property
    def phase(self) -> str:
        """What it does, in words."""
        return self.recorder.phase

    @property
    def state(self) -> tuple[str, int]:
        """What a list shows of it: its phase, and how often the upstream was asked."""
        return self.recorder.phase, len(self.recorder.trace.attempts)

    @property
    def summary(self) -> Summary:
        """Its line, as it is now."""
        return summary_of(self.recorder.trace, self.recorder.waits_for)


@dataclass(frozen=True, slots=True)
class LiveTurns:
    """The turns that run, and those that have ended with their numbers; of all workers."""

    running: Sequence[RunningTurn | LiveTurn]
    ended: Sequence[tuple[int, Summary]]


class TraceLog:
    """Keeps the traces of turns that run, and hands those that have ended to a store, and to the spans."""

    def __init__(
        self,
        store: TraceStore | None,
        config: Config,
        clock: Clock,
        spans: SpanSink | None = None,
        peers: TracePeers | None = None,
    ) -> None:
        """Without a store and without spans nothing is recorded. `peers` are the other workers of the gateway."""
        self._store: Final = store
        self._peers: Final = peers
        self._spans: Final = spans
        self._asked: Final[dict[str, TurnRequest]] = {}
        """The requests of running turns, for their spans."""
        self._clock: Final = clock
        self.has_content = has_content(config)
        """Whether what clients and models write is kept."""
        self._version: Final = version("toolspeak")
        self._running: Final[dict[str, TurnRecorder]] = {}
        self._ended: Final[deque[tuple[int, Summary]]] = deque(maxlen=MOST_LISTED)
        """The newest turns that have ended, numbered, for those who watch."""
        self._last_ended = 0
        if peers is not None:
            peers.serve(self)

    @property
    def ended_count(self) -> int:
        """The number of the newest turn that has ended. A turn that ends later has a higher one.

        Numbers count the turns since the start. Those of workers are microseconds of the machine, so that a page may go
        on at another worker than the one that it began with.
        """
        return self._last_ended if self._peers is None else self._microseconds()

    def _microseconds(self) -> int:
        return int(self._clock.monotonic() * _MICRO)

    def change(self, config: Config) -> None:
        """Follow a new configuration: with its first key, content is no longer kept unless the operator says so."""
        self.has_content = has_content(config)
        if self._spans is not None:
            self._spans.change(config)

    def begin(
        self, turn: TurnRequest, entry: AccessEntry, replanned: Callable[[Plan], None] = lambda _: None
    ) -> TurnWatch:
        """Return what watches the turn; `replanned` is told when it goes on in another way than its plan says."""
        turn.progress.traceparent = turn.parent
        if self._store is None and self._spans is None:
            return PlanWatch(replanned)
        route, request = turn.route, turn.request
        trace = Trace(
            entry.trace,
            self._clock.nanoseconds() / _NANO,
            entry.tenant,
            turn.wire,
            _kept_path(turn.path),
            turn.body.decode(errors="replace") if self.has_content else "",
            request.model,
            route.place,
            route.model,
            route.upstream.wire.name if isinstance(route.upstream, HttpUpstream) else turn.wire,
            request.stream,
            StoredPlan.of(turn.plan),
        )
        trace.version, trace.agent = self._version, _program(turn.agent)
        trace.tools = mode_of(turn.plan)
        recorder = TurnRecorder(trace, self._clock, entry.started, replanned, turn.progress)
        self._running[trace.id] = recorder
        if self._spans is not None:
            self._asked[trace.id] = turn
            turn.progress.traceparent = self._spans.begin(turn, entry) or turn.parent
        return recorder

    def end(self, entry: AccessEntry) -> None:
        """Keep the trace of a turn whose response has ended; without effect for other requests."""
        recorder = self._running.pop(entry.trace, None)
        if recorder is None:
            return
        if entry.outcome is not None:
            recorder.ended(entry.outcome)
        recorder.answered(entry.status, entry.failure)
        trace = recorder.trace
        trace.first = None if entry.first_byte is None else entry.first_byte - entry.started
        trace.tools = entry.mode or trace.tools
        asked = self._asked.pop(entry.trace, None)
        if self._spans is not None and asked is not None:
            self._spans.end(trace, asked, entry)
        if self._store is not None:
            self._last_ended = self._last_ended + 1 if self._peers is None else self._microseconds()
            self._ended.append((self._last_ended, summary_of(trace)))
            self._store.add(trace if self.has_content else without_content(trace))

    async def answer(self, exchange: Exchange, target: Target, key: Key, *, has_keys: bool) -> bytes:
        """Return the list of traces, or one trace, as JSON. Raises `Refused`, `BadField`."""
        store = self._store
        if store is None:
            raise Refused(Failure(FailureKind.NOT_FOUND, _DISABLED, 404))
        tenant = key.tenant if has_keys else None
        if target.name:
            return msgspec.json.encode(await self.find(target.name, tenant))
        query = _query(exchange.query, tenant)
        listed = await self.search(query)
        running: Sequence[RunningTurn | LiveTurn] = ()
        if not (query.words or query.is_failed):
            running = await self.running(tenant)
        return msgspec.json.encode({"running": [one.summary for one in running], "traces": listed})

    # ------------------------------------------------------------ for pages

    @property
    def is_enabled(self) -> bool:
        """Whether traces are kept at all."""
        return self._store is not None

    async def search(self, query: TraceQuery) -> list[Summary]:
        """Return the traces that match, the newest first. Raises `Refused` if traces are not kept."""
        if self._store is None:
            raise Refused(Failure(FailureKind.NOT_FOUND, _DISABLED, 404))
        return await asyncio.to_thread(self._search, self._store, query)

    def _search(self, store: TraceStore, query: TraceQuery) -> list[Summary]:
        found = store.search(query)
        if self._peers is None or not isinstance(store, MemoryStore):  # workers have one file
            return found
        return sorted((*found, *self._peers.search(query)), key=lambda one: -one.time)[: query.limit]

    async def live(self, tenant: str | None, since: int) -> LiveTurns:
        """Return the turns that run, of all workers, and those that ended after this number, the oldest first."""
        here = LiveTurns(self._running_here(tenant), self._ended_since(since))
        if self._peers is None:
            return here
        there = await asyncio.to_thread(self._peers.live, tenant, max(0, since - _OVERLAP))
        running = (*here.running, *(turn for one in there for turn in one.running))
        ended = (*here.ended, *(turn for one in there for turn in one.ended))
        return LiveTurns(running[:MOST_LISTED], sorted(ended, key=lambda one: one[0])[-MOST_LISTED:])

    def _ended_since(self, number: int) -> list[tuple[int, Summary]]:
        """Return the turns of this process that ended after this one, with their numbers, the oldest first."""
        return [one for one in tuple(self._ended) if one[0] > number]

    def is_running(self, id: str) -> bool:
        """Return whether the turn of a trace has not ended."""
        return id in self._running

    async def find(self, id: str, tenant: str | None) -> Trace:
        """Return a trace of a tenant, or of any for None; of a running turn too. Raises `Refused` (404)."""
        store = self._store
        if store is None:
            raise Refused(Failure(FailureKind.NOT_FOUND, _DISABLED, 404))
        found = self._find_running(id, tenant) or await asyncio.to_thread(store.find, id, tenant)
        if found is None and self._peers is not None:
            found = await asyncio.to_thread(self._peers.find, id, tenant)
        if found is None:
            message = f"there is no trace {id[:40]!r}: it is older than those that are kept, or of another tenant"
            raise Refused(Failure(FailureKind.NOT_FOUND, message, 404))
        return found

    def _find_running(self, id: str, tenant: str | None) -> Trace | None:
        running = self._running.get(id)
        if running is None or tenant not in (None, running.trace.tenant):
            return None
        return running.trace if self.has_content else without_content(running.trace)

    async def running(self, tenant: str | None) -> Sequence[RunningTurn | LiveTurn]:
        """Return the turns of a tenant that run now, or of all tenants for None; at most 200."""
        return (await self.live(tenant, self.ended_count)).running

    def _running_here(self, tenant: str | None) -> list[RunningTurn]:
        mine = (RunningTurn(one) for one in tuple(self._running.values()) if tenant in (None, one.trace.tenant))
        return [*islice(mine, MOST_LISTED)]

    # ------------------------------------------------------------ for other workers

    def find_here(self, id: str, tenant: str | None) -> Trace | None:
        """Return a trace that is in the memory of this worker."""
        found = self._find_running(id, tenant)
        return found or (self._store.find(id, tenant) if isinstance(self._store, MemoryStore) else None)

    def search_here(self, query: TraceQuery) -> list[Summary]:
        """Return the matching traces that are in the memory of this worker."""
        return self._store.search(query) if isinstance(self._store, MemoryStore) else []

    def live_here(self, tenant: str | None, since: int) -> Live:
        """Return the turns that run in this worker, and those that ended after this number."""
        running = [LiveTurn(one.summary, one.phase) for one in self._running_here(tenant)]
        return Live(running, [one for one in self._ended_since(since) if tenant in (None, one[1].tenant)])

    def adopt(self, traces: Sequence[Trace]) -> None:
        """Keep the traces of a worker that ends."""
        if isinstance(self._store, MemoryStore):
            for trace in traces:
                self._store.add(trace)

    def close(self) -> None:
        """Write what is left."""
        if self._spans is not None:
            self._spans.close()
        if self._peers is not None:
            self._peers.close(self._store.all() if isinstance(self._store, MemoryStore) else ())
        if self._store is not None:
            self._store.close()


_FORM: Final = "alt"
"""What of a query decides how a request is read: Google's name for the form of a stream."""


def _kept_path(path: str) -> str:
    """Return a path with only those words of its query that a replay needs: Google's clients send `?key=` there."""
    route, _, query = path.partition("?")
    kept = [option for option in query.split("&") if option.partition("=")[0].removeprefix("$") == _FORM]
    return f"{route}?{'&'.join(kept)}" if kept else route


_DISABLED: Final = "traces are not kept here: set enabled = true under [traces] in the configuration"
_LONGEST_AGENT: Final = 40
_FLAGS: Final = {"1": True, "true": True, "0": False, "false": False}


def _program(agent: str) -> str:
    """Return the first word of a `User-Agent`, which names the program."""
    return visible(agent[:_LONGEST_AGENT].partition(" ")[0])


def _query(text: str, tenant: str | None) -> TraceQuery:
    given = {name: values[-1] for name, values in parse_qs(text[:2000]).items()}
    limit = given.get("limit", "50")
    if not (limit.isascii() and limit.isdecimal() and 1 <= int(limit[:9]) <= MOST_LISTED):
        raise BadField("limit", f"{limit[:20]!r} is not a number from 1 to {MOST_LISTED}")
    failed = given.get("failed", "0")
    if failed not in _FLAGS:
        raise BadField("failed", f"{failed[:20]!r} is neither 1 nor 0")
    return TraceQuery(tenant, given.get("search", ""), _FLAGS[failed], limit=int(limit))


_PARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
"""A `traceparent` of version 00; a later one may look the same."""


def parent_of(exchange: Exchange) -> str:
    """Return the `traceparent` of a request; empty if there is none, or several, or one of another form."""
    sent = exchange.headers(b"traceparent")
    return sent[0] if len(sent) == 1 and _PARENT.fullmatch(sent[0]) else ""


def has_content(config: Config) -> bool:
    """Whether traces keep what clients and models write."""
    asked = config.traces.content
    return not config.needs_key and is_loopback(config.server.host) if asked is None else asked


def open_traces(
    config: Config, clock: Clock, spans: SpanSink | None = None, peers: TracePeers | None = None
) -> TraceLog:
    """Return the traces that the configuration asks for. Raises `BadConfig` if their file cannot be used."""
    settings = config.traces
    if not settings.enabled:
        return TraceLog(None, config, clock, spans)
    store: TraceStore = (
        FileStore(Path(settings.database).expanduser(), settings.keep_days)
        if settings.database
        else MemoryStore(settings.entries, settings.bytes)
    )
    return TraceLog(store, config, clock, spans, peers)
