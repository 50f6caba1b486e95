"""Probes in the background: never on the path of a user's request, and once for all processes (CAP-4).

    with prober.serving(route):         a turn of somebody: the questions of a probe wait for a quiet moment
        ...
    prober.consider(route, request)     after it: is there something to find out about its model?
    await prober.close()

A request goes its way with what is known. If that is nothing, or old, the next ones know more.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from typing import Final

from toolspeak.engine.effects import Ask, Look, ProbeAnswer, ProbeProgram
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
from toolspeak.runtime.transport import Broken
from toolspeak.runtime.upstream import HttpUpstream

_LOG: Final = logging.getLogger(__name__)
LIMIT: Final = 300.0
"""Seconds for a whole probe."""
_WAIT = 5.0
"""Seconds until it is looked again what another process has found."""
QUIET, PATIENCE = 1.0, 10.0
"""Seconds: that a server has rest from people before it is asked, and that a question waits for that at most."""
_STEP = 0.1
_EXTENDED: Final = "openai_chat"
"""The wire to which servers have added words of their own."""
_MOST = 4
"""Probes at one time: they take their servers' time from people."""
_LATE = Failure(FailureKind.TIMEOUT, f"the probe took more than {LIMIT:g} s", 504)


async def _at_once() -> None:
    """Wait for nobody."""


async def drive_probe(
    program: ProbeProgram, upstream: HttpUpstream, quiet: Callable[[], Awaitable[None]] = _at_once
) -> Verdict:
    """Do what a probe asks; each question waits for a quiet moment."""
    answer: ProbeAnswer = None
    try:
        while True:
            effect = program.send(answer)
            if isinstance(effect, Look):
                answer = await _looked(effect, upstream)
            else:
                await quiet()
                answer = await _asked(effect, upstream)
    except StopIteration as stop:
        verdict: Verdict = stop.value
        return verdict


async def _seen(model: str, upstream: HttpUpstream) -> Verdict:
    """Look at a server; how it is told a constraint counts only on a wire that has words for it."""
    looked, wire = await drive_probe(look_at(model), upstream), upstream.wire.name
    return looked if wire in (_EXTENDED, looked.server) else replace(looked, constraint=ConstraintForm.NONE)


async def _looked(look: Look, upstream: HttpUpstream) -> bytes | Failure:
    try:
        return await upstream.get(look.path, look.body)
    except Broken as broken:
        return broken.failure


async def _asked(ask: Ask, upstream: HttpUpstream) -> list[Event]:
    batches = upstream.open(ask.request)
    try:
        return [event async for batch in batches for event in batch]
    finally:
        await batches.aclose()


class Prober:
    """Finds out about models that were asked with tools."""

    def __init__(self, depths: Mapping[str, Depth], verdicts: Verdicts, clock: Clock = CLOCK) -> None:
        """Take how deep each upstream, by its name, may be probed, and where verdicts are kept."""
        self._depths: Final = depths
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
            if route.learned.is_due(route.model):
                await self._refresh(route, subject, upstream, depth)
        except Exception:  # noqa: BLE001 # nobody waits for it, so that nobody else would hear of it
            _LOG.exception("a fault in a probe of %s:%s", route.place, ascii(route.model))
            route.learned.later(route.model, LIMIT)

    async def _refresh(self, route: Route, subject: Subject, upstream: HttpUpstream, depth: Depth) -> None:
        if await self._found(route, subject, depth):
            return
        token = await self._verdicts.claim(subject)
        if not token:
            route.learned.later(route.model, _WAIT)
            return
        try:
            if not await self._found(route, subject, depth):  # who had the claim before us may have kept it just now
                await self._renew(route, subject, upstream, depth)
        finally:
            await self._verdicts.release(subject, token)

    async def _renew(self, route: Route, subject: Subject, upstream: HttpUpstream, depth: Depth) -> None:
        """Look at the server, which is free, and probe it unless this very one was probed before."""
        looked = await _seen(subject.model, upstream)
        same = subject.of(looked.fingerprint)
        if looked.fingerprint and await self._found(route, same, depth):
            await self._verdicts.seen(same)
            return
        verdict = await self._kept(route, subject, await self._measured(route, upstream, depth, looked))
        said = (route.place, ascii(route.model), verdict.tools, verdict.confidence, verdict.server or "unknown")
        _LOG.info("probe route=%s:%s tools=%s confidence=%.2f server=%s", *said)

    async def _found(self, route: Route, subject: Subject, depth: Depth) -> bool:
        """Take over what another process has found, or this one before."""
        found = await self._verdicts.find(subject)
        if found is None or not found.depth.reaches(depth):
            return False
        route.learned.keep(route.model, found, self._verdicts.check)
        return True

    async def _kept(self, route: Route, subject: Subject, verdict: Verdict) -> Verdict:
        merged = route.learned.merged(route.model, verdict)
        route.learned.keep(route.model, merged, self._verdicts.check)
        await self._verdicts.keep(subject, merged)
        return merged

    async def _measured(self, route: Route, upstream: HttpUpstream, depth: Depth, looked: Verdict) -> Verdict:
        program = probe_on(route.model, depth, looked)
        try:
            async with asyncio.timeout(LIMIT):
                return await drive_probe(program, upstream, lambda: self._quiet(route.place))
        except TimeoutError:
            return stopped(_LATE)

    async def _quiet(self, place: str) -> None:
        """Wait until nobody is being served there, but not for ever: a busy server can bear one question more."""
        end = self._clock.monotonic() + PATIENCE
        while (now := self._clock.monotonic()) < end:
            if not self._inside[place] and now - self._left.get(place, -inf) >= QUIET:
                return
            await self._clock.sleep(_STEP)


def _is_open(route: Route, depth: Depth) -> bool:
    """Tell whether a plan would ask for what a probe finds: what the user has said is not measured.

    A look cannot tell more than a table which says that a vendor has tools.
    """
    settings, facts = route.settings, route.facts
    settled = facts.source is Source.SAID or (depth is Depth.LOOK and facts.tools is Support.NATIVE)
    return not settled and settings.mode in (None, Mode.AUTO) and not settings.chat
