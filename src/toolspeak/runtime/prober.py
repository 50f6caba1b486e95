"""Probes models in the background: never on the path of a user's request, and once for all processes (CAP-4).

    with prober.serving(route):         a user's turn runs: probe requests to this upstream wait for a quiet moment
        ...
    prober.consider(route, request)     after the turn: starts a probe of its model if one is due
    await prober.close()

A request is planned with the facts at hand. If there are none, or they are old, a probe starts after the turn and later
requests are planned with its verdict. The same holds if traffic contradicts a verdict: a client can only cause a probe,
and the probe's fixed questions decide (CAP-6).

Probes are bounded, because clients cause them: only models that the operator named or the upstream lists are probed (20
invented names once cost 162 upstream requests), and each upstream has a budget of requests per hour.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from toolspeak.engine.effects import AskOnce, Look, ProbeAnswer, ProbeProgram
from toolspeak.engine.look import look_at, stopped
from toolspeak.engine.probe import probe_on
from toolspeak.engine.settings import Mode
from toolspeak.engine.verdict import Depth, Verdict
from toolspeak.facts.model import Source, Support
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.event import Event
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.request import Request
from toolspeak.runtime.cache import Subject, Verdicts
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.directory import Route
from toolspeak.runtime.transport import IN_BACKGROUND, TransportError
from toolspeak.runtime.upstream import HttpUpstream
from toolspeak.runtime.upstream_activity import UpstreamActivity

_LOG: Final = logging.getLogger(__name__)
LIMIT: Final = 300.0
"""Seconds for a whole probe."""
_WAIT = 5.0
"""Seconds until a process checks again whether the one that holds the claim has stored a verdict."""
QUIET, PATIENCE = 1.0, 10.0
"""Seconds that an upstream must have been idle before a probe request, and the longest wait for that."""
_STEP = 0.1
"""Seconds between two checks for an idle upstream."""
REQUESTS: Final = 300
"""Default budget: probe requests to one upstream in an hour."""
_MOST = 4
"""Probes at one time: they take time of their servers from users."""
WINDOW: Final = 3600.0
"""Seconds of a budget's window."""
ASKED_REST: Final = 60.0
"""Seconds between two probes of one model that people ask for: one person must not use up the budget of all."""
COSTS: Final = {Depth.OFF: 0, Depth.LOOK: 6, Depth.TOKENS: 9, Depth.FULL: 15}
"""Requests that a probe of this depth sends at most: six looks, three for tokens, six for calls."""
_LATE = Failure(FailureKind.TIMEOUT, f"the probe took more than {LIMIT:g} s", 504)


async def _at_once() -> None:
    """Return without waiting for an idle upstream: the default outside the gateway, where no user is served."""


def _uncounted() -> None:
    """Do not count a request: `toolspeak doctor` and `client.probe` have no budget."""


async def drive_probe(
    program: ProbeProgram,
    upstream: HttpUpstream,
    quiet: Callable[[], Awaitable[None]] = _at_once,
    count: Callable[[], None] = _uncounted,
) -> Verdict:
    """Run a probe's program and return its verdict.

    A look (metadata, which costs no tokens) is sent at once. A question to the model first waits for `quiet`. `count`
    is called once for each request.
    """
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
    """Look at a server and return what its metadata shows.

    The form of constraints is kept only if the wire can express it: the wire accepts extra fields, or it is the
    server's own.
    """
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
    """The probe requests that one upstream may get in each window. Time is monotonic: a clock change refills nothing.

    A probe reserves its worst case before it starts and gives back the rest afterwards. Counting requests as they are
    sent would let parallel probes exceed the budget, or stop one in the middle.
    """

    def __init__(self, place: str, most: int, clock: Clock) -> None:
        self._place, self._most, self._clock = place, most, clock
        self._used = 0
        self._ends = -inf
        self._told = False

    def reserve(self, cost: int) -> bool:
        """Reserve the requests of a whole probe; return whether they fit. The first refusal of a window is logged."""
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

    def problem(self, cost: int) -> str:
        """Return why the requests of a whole probe do not fit; empty if they do. Nothing is reserved."""
        if self._clock.monotonic() >= self._ends or self._used + cost <= self._most:
            return ""
        return (
            f"probes of {self._place} have used {self._used} of their {self._most} requests of this hour "
            f"([server] probe_requests): try again in {self.rest / 60:.0f} min"
        )

    def change(self, most: int) -> None:
        """Allow another number of requests in each window."""
        self._most = most

    def give_back(self, unused: int) -> None:
        """Return reserved requests that a probe did not send."""
        self._used = max(0, self._used - unused)

    @property
    def rest(self) -> float:
        """Seconds until the next window."""
        return max(0.0, self._ends - self._clock.monotonic())


class Prober:
    """Probes models that clients use with tools."""

    def __init__(  # noqa: PLR0913 # the settings of probes, and what a gateway shares with them
        self,
        depths: Mapping[str, Depth],
        verdicts: Verdicts,
        clock: Clock = CLOCK,
        confirming: Mapping[str, Depth] | None = None,
        requests: int = REQUESTS,
        *,
        activity: UpstreamActivity | None = None,
    ) -> None:
        """Take the depth of probes for each upstream name, and the store of verdicts.

        `confirming` has the depths of probes that evidence from traffic causes, by default the same. `requests` is the
        budget of each upstream. `activity` counts users' turns, by default those of this prober's `serving` only.
        """
        self._depths = depths
        self._confirming = depths if confirming is None else confirming
        self._requests = requests
        self._budgets: Final[dict[str, _Budget]] = {}
        self._verdicts: Final = verdicts
        self._clock: Final = clock
        self._activity: Final = activity or UpstreamActivity(clock)
        self._running: Final[dict[tuple[str, str], asyncio.Task[None]]] = {}
        """Tasks by upstream and model. The dict also holds the only strong reference to each task: without one, the
        event loop may collect a task that still runs."""
        self._asked: Final[dict[tuple[str, str], float]] = {}
        """When people asked for a probe last, in monotonic seconds; only within `ASKED_REST`."""

    def change(self, depths: Mapping[str, Depth], confirming: Mapping[str, Depth], requests: int) -> None:
        """Use other depths and another budget from the next probe on. Budgets that are in use keep what was spent."""
        self._depths, self._confirming, self._requests = depths, confirming, requests
        for budget in self._budgets.values():
            budget.change(requests)

    def serving(self, route: Route) -> AbstractContextManager[None]:
        """Mark a user's turn as running, so that probe requests to the same upstream wait."""
        return self._activity.serving(route.place)

    def consider(self, route: Route, request: Request) -> None:
        """Start a background task if the model's verdict is due, doubted, or must be shared. Never waits."""
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

    def ask(self, route: Route) -> str:
        """Start a probe that a person asks for; return why none starts, empty if one runs now.

        The rules are those of every probe: the depth and the budget of its upstream, and one at a time for each model.
        But a stored verdict is not enough: the person wants to know how it is now. The model must be a listed one.
        """
        name, upstream = (route.place, route.model), route.upstream
        if name in self._running:
            return ""
        problem = self._problem(route)
        if problem or not isinstance(upstream, HttpUpstream):
            return problem or "this upstream cannot be probed"
        self._asked[name] = self._clock.monotonic()
        task = asyncio.get_running_loop().create_task(self._attend_person(route, upstream, self._depths[route.place]))
        self._running[name] = task
        task.add_done_callback(lambda _: self._running.pop(name, None))
        return ""

    def is_probing(self, route: Route) -> bool:
        """Return whether a probe of the model runs."""
        return (route.place, route.model) in self._running

    def _problem(self, route: Route) -> str:
        """Return why no probe may start that a person asks for; empty if one may."""
        depth, now = self._depths.get(route.place, Depth.OFF), self._clock.monotonic()
        if depth is Depth.OFF:
            return f'probes of {route.place} are off: set probe = "full" under [server] in the configuration'
        if not _is_open(route, depth):
            return "a probe would change nothing: the configuration or a table already says how tools are handled"
        for name in [name for name, at in self._asked.items() if now - at >= ASKED_REST]:
            del self._asked[name]
        if (at := self._asked.get((route.place, route.model))) is not None:
            return f"it was probed just now: try again in {ASKED_REST - (now - at):.0f} s"
        if len(self._running) >= _MOST:
            return f"{_MOST} probes run at this time: try again when one has ended"
        return self._budget(route.place).problem(COSTS[depth])

    async def _attend_person(self, route: Route, upstream: HttpUpstream, depth: Depth) -> None:
        """Probe because a person asks for it. Runs in a background task."""
        IN_BACKGROUND.set(True)  # in the context of this task only
        doubted, subject = route.learned.take_doubt(route.model), Subject(upstream.url, route.model)
        try:
            await self._refresh(_Job(route, subject, upstream, depth, doubted, is_asked=True))
        except Exception:  # noqa: BLE001 # no request awaits this task, so its error would be lost
            _LOG.exception("a fault in a probe of %s:%s", route.place, ascii(route.model))

    async def probe(self, route: Route, upstream: HttpUpstream, depth: Depth = Depth.FULL) -> Verdict:
        """Probe a model now, without a budget, and store the verdict. It applies from the next request on."""
        subject = Subject(upstream.url, route.model)
        looked = await _seen(route.model, upstream)
        return await self._kept(route, subject, await self._measured(route, upstream, depth, looked))

    async def close(self) -> None:
        """Cancel the running probes, wait for their end, and close the store of verdicts."""
        tasks = tuple(self._running.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._verdicts.close()

    async def _attend(self, route: Route, upstream: HttpUpstream, depth: Depth, moved: Verdict | None) -> None:
        """Share a verdict that traffic has moved, then probe if that is due. Runs in a background task."""
        IN_BACKGROUND.set(True)  # in the context of this task only
        subject = Subject(upstream.url, route.model)
        try:
            if moved is not None:
                await self._verdicts.keep(subject, moved)
            if route.learned.is_due(route.model) and await route.confirm_real():
                doubted = route.learned.take_doubt(route.model)
                deeper = self._confirming.get(route.place, depth) if doubted else depth
                await self._refresh(_Job(route, subject, upstream, deeper, doubted))
        except Exception:  # noqa: BLE001 # no request awaits this task, so its error would be lost
            _LOG.exception("a fault in a probe of %s:%s", route.place, ascii(route.model))
            route.learned.later(route.model, LIMIT)

    async def _refresh(self, job: "_Job") -> None:
        # The order matters: a stored verdict costs nothing, then the budget (local), then the claim (shared). A claim
        # that is taken without a budget would keep the other processes from probing.
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
            if not await self._found(job, job.subject):  # the previous holder may have stored one before it released
                await self._renew(job)
        finally:
            budget.give_back(COSTS[job.depth] - job.requests)
            await self._verdicts.release(job.subject, token)

    async def _renew(self, job: "_Job") -> None:
        """Look at the server, which costs no tokens, and probe it unless a server of this fingerprint has a verdict."""
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
        """Apply a stored verdict of sufficient depth, and return whether there was one.

        It is not used if traffic contradicts it, or if a person asks how it is now.
        """
        found = None if job.doubted or job.is_asked else await self._verdicts.find(subject)
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
        """Wait until the upstream has been idle for `QUIET` seconds, but at most `PATIENCE` seconds.

        A probe takes the server's time from users, so it waits for a pause. An upstream that is never idle gets the
        question anyway: one more short request does little harm there.
        """
        end = self._clock.monotonic() + PATIENCE
        while self._clock.monotonic() < end:
            if self._activity.idle_seconds(place) >= QUIET:
                return
            await self._clock.sleep(_STEP)


@dataclass(slots=True)
class _Job:
    """One refresh of a model's verdict."""

    route: Route
    subject: Subject
    upstream: HttpUpstream
    depth: Depth
    doubted: bool
    """Traffic contradicts the verdict, so stored verdicts are not used and the probe's result decides alone."""
    is_asked: bool = False
    """A person asks for it, so stored verdicts are not used."""
    requests: int = 0
    """Requests that were sent."""

    def count(self) -> None:
        self.requests += 1


def _is_open(route: Route, depth: Depth) -> bool:
    """Return whether a probe could change a plan. It could not if the user has set the support or the mode.

    A look adds nothing where a table already says that the vendor supports tools.
    """
    settings, facts = route.settings, route.facts
    settled = facts.source is Source.SAID or (depth is Depth.LOOK and facts.tools is Support.NATIVE)
    return not settled and settings.mode in (None, Mode.AUTO) and not settings.chat
