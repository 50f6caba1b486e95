"""Probes in the background: never on the path of a user's request, and once for all processes (CAP-4).

    with prober.serving(route):         a turn of somebody: the questions of a probe wait for a quiet moment
        ...
    prober.consider(route, request)     after it: is there something to find out about its model?
    await prober.close()

A request goes its way with what is known. If that is nothing, or old, the next ones know more. The same holds where
traffic contradicts what is known: clients can only ask for a probe, and its fixed questions decide (CAP-6).

Probes are bounded, since clients cause them: only models that the operator named or the upstream lists are probed (20
invented names once cost 162 upstream requests), and each upstream has a budget of requests per hour.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from toolspeak.engine.effects import AskOnce, Look, ProbeAnswer, ProbeProgram
from toolspeak.engine.look import look_at, stopped
from toolspeak.engine.plan import Mode
from toolspeak.engine.probe import probe_on
from toolspeak.engine.verdict import Depth, Verdict
from toolspeak.facts.model import Source, Support
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.event import Event
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.request import Request
from toolspeak.runtime.cache import Subject, Verdicts
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.directory import Route
from toolspeak.runtime.transport import TransportError
from toolspeak.runtime.upstream import HttpUpstream

_LOG: Final = logging.getLogger(__name__)
LIMIT: Final = 300.0
"""Seconds for a whole probe."""
_WAIT = 5.0
"""Seconds until it is looked again what another process has found."""
QUIET, PATIENCE = 1.0, 10.0
"""Seconds: that a server has rest from people before it is asked, and that a question waits for that at most."""
_STEP = 0.1
REQUESTS: Final = 300
"""Requests of probes to one upstream in an hour."""
_MOST = 4
"""Probes at one time: they take their servers' time from people."""
WINDOW: Final = 3600.0
"""Seconds that a budget is for."""
COSTS: Final = {Depth.OFF: 0, Depth.LOOK: 6, Depth.TOKENS: 9, Depth.FULL: 15}
"""Requests that a probe of this depth sends at most: six looks, three for tokens, six for calls."""
_LATE = Failure(FailureKind.TIMEOUT, f"the probe took more than {LIMIT:g} s", 504)


async def _at_once() -> None:
    """Wait for nobody."""


def _uncounted() -> None:
    """Count nothing."""


async def drive_probe(
    program: ProbeProgram,
    upstream: HttpUpstream,
    quiet: Callable[[], Awaitable[None]] = _at_once,
    count: Callable[[], None] = _uncounted,
) -> Verdict:
    """Do what a probe asks; each question waits for a quiet moment, and `count` is called for each request."""
    answer: ProbeAnswer = None
    try:
        while True:
            effect = program.send(answer)
            count()
            if isinstance(effect, Look):
                answer = await _looked(effect, upstream)
            else:
                await quiet()
                answer = await _asked(effect, upstream)
    except StopIteration as stop:
        verdict: Verdict = stop.value
        return verdict


async def _seen(model: str, upstream: HttpUpstream, count: Callable[[], None] = _uncounted) -> Verdict:
    """Look at a server; how it is told a constraint counts only on a wire that has words for it."""
    looked, wire = await drive_probe(look_at(model), upstream, count=count), upstream.wire
    has_words = wire.extensible or wire.name == looked.server
    return looked if has_words else replace(looked, constraint=ConstraintForm.NONE)


async def _looked(look: Look, upstream: HttpUpstream) -> bytes | Failure:
    try:
        return await upstream.get(look.path, look.body)
    except TransportError as broken:
        return broken.failure


async def _asked(ask: AskOnce, upstream: HttpUpstream) -> list[Event]:
    batches = upstream.open(ask.request)
    try:
        return [event async for batch in batches for event in batch]
    finally:
        await batches.aclose()


class _Budget:
    """Requests that probes may send to one upstream in each window. Monotonic, so that no clock change refills it."""

    def __init__(self, place: str, most: int, clock: Clock) -> None:
        self._place, self._most, self._clock = place, most, clock
        self._used = 0
        self._ends = -inf
        self._told = False

    def reserve(self, cost: int) -> bool:
        """Take the requests of a whole probe, or none of them; the first refusal of a window is logged."""
        now = self._clock.monotonic()
        if now >= self._ends:
            self._used, self._ends, self._told = 0, now + WINDOW, False
        if self._used + cost <= self._most:
            self._used += cost
            return True
        if not self._told:
            self._told = True
            said = (self._place, self._used, self._most, self._ends - now)
            _LOG.warning(
                "no more probes of upstream %s: %d of %d requests used; next in %.0f s ([server] probe_requests)", *said
            )
        return False

    def give_back(self, unused: int) -> None:
        """Give back the requests that a probe did not need."""
        self._used = max(0, self._used - unused)

    @property
    def rest(self) -> float:
        """Seconds until the next window."""
        return max(0.0, self._ends - self._clock.monotonic())


class Prober:
    """Finds out about models that were asked with tools."""

    def __init__(
        self,
        depths: Mapping[str, Depth],
        verdicts: Verdicts,
        clock: Clock = CLOCK,
        confirming: Mapping[str, Depth] | None = None,
        requests: int = REQUESTS,
    ) -> None:
        """Take how deep each upstream, by its name, may be probed, and where verdicts are kept.

        `confirming` are the depths for probes that traffic asks for; `requests` is the budget of each upstream.
        """
        self._depths: Final = depths
        self._confirming: Final = depths if confirming is None else confirming
        self._requests: Final = requests
        self._budgets: Final[dict[str, _Budget]] = {}
        self._verdicts: Final = verdicts
        self._clock: Final = clock
        self._inside: Final[Counter[str]] = Counter()
        """Turns of people under way, by upstream."""
        self._left: Final[dict[str, float]] = {}
        """When the last of them ended."""
        self._running: Final[dict[tuple[str, str], asyncio.Task[None]]] = {}

    @contextmanager
    def serving(self, route: Route) -> Generator[None, None, None]:
        """Mark a turn of somebody."""
        self._inside[route.place] += 1
        try:
            yield
        finally:
            self._inside[route.place] -= 1
            self._left[route.place] = self._clock.monotonic()

    def consider(self, route: Route, request: Request) -> None:
        """Start what is to be done about a model, if anything is."""
        depth, name = self._depths.get(route.place, Depth.OFF), (route.place, route.model)
        if depth is Depth.OFF or not request.tools or not _is_open(route, depth):
            return
        learned, upstream = route.learned, route.upstream
        if not isinstance(upstream, HttpUpstream) or name in self._running or len(self._running) >= _MOST:
            return
        moved = learned.take_moved(route.model)
        if moved or learned.is_due(route.model):
            task = asyncio.get_running_loop().create_task(self._attend(route, upstream, depth, moved))
            self._running[name] = task
            task.add_done_callback(lambda _: self._running.pop(name, None))

    async def probe(self, route: Route, upstream: HttpUpstream, depth: Depth = Depth.FULL) -> Verdict:
        """Probe a model now; what is found counts from the next request on."""
        subject = Subject(upstream.url, route.model)
        looked = await _seen(route.model, upstream)
        return await self._kept(route, subject, await self._measured(route, upstream, depth, looked))

    async def close(self) -> None:
        """Stop what is running, and close what is open."""
        tasks = tuple(self._running.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._verdicts.close()

    async def _attend(self, route: Route, upstream: HttpUpstream, depth: Depth, moved: Verdict | None) -> None:
        """Tell others what traffic has shown, and find out what is not known. Nobody waits for it."""
        subject = Subject(upstream.url, route.model)
        try:
            if moved is not None:
                await self._verdicts.keep(subject, moved)
            if route.learned.is_due(route.model) and await route.confirm_real():
                doubted = route.learned.take_doubt(route.model)
                deeper = self._confirming.get(route.place, depth) if doubted else depth
                await self._refresh(_Job(route, subject, upstream, deeper, doubted))
        except Exception:  # noqa: BLE001 # no request waits for this task, so its fault would be lost
            _LOG.exception("a fault in a probe of %s:%s", route.place, ascii(route.model))
            route.learned.later(route.model, LIMIT)

    async def _refresh(self, job: "_Job") -> None:
        if await self._found(job, job.subject):
            return
        route, budget = job.route, self._budget(job.route.place)
        if not budget.reserve(COSTS[job.depth]):
            route.learned.later(route.model, budget.rest)
            return
        token = await self._verdicts.claim(job.subject)
        if not token:
            budget.give_back(COSTS[job.depth])
            route.learned.later(route.model, _WAIT)
            return
        try:
            if not await self._found(job, job.subject):  # the previous holder of the claim may have kept one just now
                await self._renew(job)
        finally:
            budget.give_back(COSTS[job.depth] - job.requests)
            await self._verdicts.release(job.subject, token)

    async def _renew(self, job: "_Job") -> None:
        """Look at the server, which is free, and probe it unless this very one was probed before."""
        looked = await _seen(job.subject.model, job.upstream, job.count)
        same = job.subject.of(looked.fingerprint)
        if looked.fingerprint and await self._found(job, same):
            await self._verdicts.seen(same)
            return
        route = job.route
        found = await self._measured(route, job.upstream, job.depth, looked, job.count)
        verdict = await self._kept(route, job.subject, found, decides=job.doubted)
        said = (route.place, ascii(route.model), verdict.tools, verdict.confidence, verdict.server or "unknown")
        _LOG.info("probe route=%s:%s tools=%s confidence=%.2f server=%s", *said)

    def _budget(self, place: str) -> _Budget:
        return self._budgets.setdefault(place, _Budget(place, self._requests, self._clock))

    async def _found(self, job: "_Job", subject: Subject) -> bool:
        """Take over what another process has found, or this one before; not if that is in doubt."""
        found = None if job.doubted else await self._verdicts.find(subject)
        if found is None or not found.depth.reaches(job.depth):
            return False
        job.route.learned.keep(job.route.model, found, self._verdicts.check)
        return True

    async def _kept(self, route: Route, subject: Subject, verdict: Verdict, *, decides: bool = False) -> Verdict:
        merged = verdict if decides else route.learned.merged(route.model, verdict)
        route.learned.keep(route.model, merged, self._verdicts.check)
        await self._verdicts.keep(subject, merged)
        return merged

    async def _measured(
        self,
        route: Route,
        upstream: HttpUpstream,
        depth: Depth,
        looked: Verdict,
        count: Callable[[], None] = _uncounted,
    ) -> Verdict:
        program = probe_on(route.model, depth, looked)
        try:
            async with asyncio.timeout(LIMIT):
                return await drive_probe(program, upstream, lambda: self._quiet(route.place), count)
        except TimeoutError:
            return stopped(_LATE)

    async def _quiet(self, place: str) -> None:
        """Wait until nobody is being served there, but not for ever: a busy server can bear one question more."""
        end = self._clock.monotonic() + PATIENCE
        while (now := self._clock.monotonic()) < end:
            if not self._inside[place] and now - self._left.get(place, -inf) >= QUIET:
                return
            await self._clock.sleep(_STEP)


@dataclass(slots=True)
class _Job:
    """One look at a model."""

    route: Route
    subject: Subject
    upstream: HttpUpstream
    depth: Depth
    doubted: bool
    """Traffic contradicts what is known, so that stored verdicts do not count."""
    requests: int = 0

    def count(self) -> None:
        self.requests += 1


def _is_open(route: Route, depth: Depth) -> bool:
    """Return whether a plan would ask for what a probe finds: what the user has said is not measured.

    A look cannot tell more than a table which says that a vendor has tools.
    """
    settings, facts = route.settings, route.facts
    settled = facts.source is Source.SAID or (depth is Depth.LOOK and facts.tools is Support.NATIVE)
    return not settled and settings.mode in (None, Mode.AUTO) and not settings.chat
