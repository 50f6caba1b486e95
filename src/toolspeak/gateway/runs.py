"""Runs over HTTP: started, watched, stopped, taken up again. A tenant sees its own only.

POST /v1/runs                               begin one
GET  /v1/runs                               list them
GET  /v1/runs/ID                            one as it stands
GET  /v1/runs/ID/events                     what happens, as server-sent events; `Last-Event-ID` or `?after=` rejoins
POST /v1/runs/ID/cancel, /v1/runs/ID/resume
POST /v1/runs/ID/calls/CALL/approve         a person's word on a call

With a database in `[runs]` the gateway only writes down and reads: workers do the work. Without one it works here.
While the database is away, every one of these answers 503 within seconds, and the rest of the gateway goes on.

An ID is what the tenant calls its run. Each request looks it up among the tenant's own first, so another tenant's id
and one that no run has take the same way to the same answer.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote

import msgspec

from toolspeak.config.shape import Config, Key
from toolspeak.errors import BadConfig, RunsUnavailable, ToolspeakError, TooManyRuns, UnknownRun
from toolspeak.gateway.auth import permit
from toolspeak.gateway.exchange import Exchange, Refused, answer
from toolspeak.gateway.marks import Marks
from toolspeak.gateway.request_reader import RequestReader
from toolspeak.gateway.routes import Target
from toolspeak.gateway.runs_asked import (
    AskedRun,
    AskedWord,
    after_in,
    limit_in,
    query_of,
    read_body,
    spec_of,
    status_in,
)
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import JsonObject
from toolspeak.runs.opened import kept_runs, runs_here
from toolspeak.runs.runs import Line, Numbered, Runs, View
from toolspeak.runs.shown import event_json, line_json, messages_json, view_json
from toolspeak.runs.spec import Spec
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.directory import Directory

_JSON: Final = b"application/json"
_BUSY: Final = 5.0
"""Seconds after which a client should try again that has too many runs, or whose database is away."""
PATIENCE: Final = 5.0
"""Seconds that a request waits for a response of the database."""
_AWAY: Final = "the database of runs does not respond: try again in some seconds; runs that were started are not lost"
_LOG: Final = logging.getLogger(__name__)
_ALIVE: Final = b": keep-alive\n\n"
_dump = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class _Visit:
    """Who asks for what."""

    exchange: Exchange
    marks: Marks
    key: Key

    async def say(self, value: JsonObject, status: int = 200) -> None:
        await answer(self.exchange, status, _JSON, _dump(value), self.marks.headers)


class RunsDoor:
    """Answers what stands under /v1/runs."""

    def __init__(self, config: Config, directory: Directory, reader: RequestReader, clock: Clock) -> None:
        """Open nothing yet."""
        self._reader: Final = reader
        self._config: Final = config
        self._directory: Final = directory
        self._clock: Final = clock
        self._stack: Final = AsyncExitStack()
        self._opening: asyncio.Task[Runs] | None = None
        self._is_away = False

    async def open(self) -> None:
        """Open the store of runs. If its database is away, the gateway starts without it, and requests try again."""
        try:
            await self._opened()
        except RunsUnavailable as error:
            self._note_away(error)

    async def close(self) -> None:
        """Let go of all runs; those of a database go on elsewhere."""
        if self._opening is not None and not self._opening.done():
            self._opening.cancel()
            await asyncio.wait((self._opening,))
        await self._stack.aclose()

    async def answer(self, exchange: Exchange, target: Target, marks: Marks, key: Key) -> None:
        """Do what a path and its method mean."""
        visit, method = _Visit(exchange, marks, key), "GET" if exchange.method == "HEAD" else exchange.method
        try:
            runs = await self._opened()
            await self._answer(visit, runs, method, [unquote(each) for each in target.name.split("/")])
        except UnknownRun as error:
            raise _missing(str(error)) from None
        except TooManyRuns as error:
            raise Refused(Failure(FailureKind.RATE_LIMITED, str(error), 429, retry_after=_BUSY)) from None
        except (RunsUnavailable, BadConfig) as error:  # what came back may be another database than the one that went
            self._note_away(error)
            raise Refused(Failure(FailureKind.TRANSIENT, _AWAY, 503, retry_after=_BUSY)) from None
        self._note_back()

    async def _opened(self) -> Runs:
        """Return the store of runs; open it if that has not succeeded yet. One attempt serves all who wait for it."""
        opening = self._opening
        if opening is None or (opening.done() and opening.exception() is not None):
            self._opening = opening = asyncio.get_running_loop().create_task(self._open())
        done, _ = await asyncio.wait((opening,), timeout=PATIENCE)
        if not done:
            raise RunsUnavailable(f"the database of runs did not respond within {PATIENCE:.0f} s")
        return opening.result()

    async def _open(self) -> Runs:
        if self._config.runs.database:
            return await self._stack.enter_async_context(kept_runs(self._config, patience=PATIENCE))
        runs = runs_here(self._config, self._directory, self._config.offer.tools)
        self._stack.push_async_callback(runs.close)
        return runs

    def _note_away(self, error: ToolspeakError) -> None:
        """Log that the database went away: once, and not for each request that finds it so."""
        if not self._is_away:
            _LOG.warning("%s; requests for runs get 503 until it is back", error)
        self._is_away = True

    def _note_back(self) -> None:
        if self._is_away:
            _LOG.warning("the database of runs responds again")
        self._is_away = False

    async def _answer(self, visit: _Visit, runs: Runs, method: str, path: list[str]) -> None:
        match (method, *path):
            case ("POST", ""):
                await self._begin(visit, runs)
            case ("GET", ""):
                await self._list(visit, runs)
            case ("GET", name):
                await self._show(visit, await _own(runs, name, visit.key))
            case ("GET", name, "events"):
                await self._events(visit, runs, await _own(runs, name, visit.key))
            case ("POST", name, "cancel"):
                id = await runs.find(name, visit.key.tenant)
                await runs.cancel(id)
                await visit.say(line_json(_as_named((await runs.show(id)).line)))
            case ("POST", name, "resume"):
                id = await self._resume(visit, runs, name)
                await visit.say(line_json(_as_named((await runs.show(id)).line)))
            case ("POST", name, "calls", call, "approve"):
                await self._approve(visit, runs, name, call)
            case _:
                raise _missing(f"there is nothing at {visit.exchange.method} {visit.exchange.path[:200]}")

    async def _begin(self, visit: _Visit, runs: Runs) -> None:
        asked, spec = await self._reader.read_json(
            await visit.exchange.body(), lambda body: self._asked(body, visit.key.tenant)
        )
        route = await (self._directory.exactly(spec.model) if spec.model else self._directory.find(""))
        permit(visit.key, route)
        if route.model:  # the worker uses the model that was permitted here, whatever its upstreams list by then
            spec = msgspec.structs.replace(spec, model=route.identity)
        id = await runs.start(spec, asked.id, self._config.offer.live)
        await visit.say(view_json(_view_as_named(await runs.show(id))), 201)

    def _asked(self, body: bytes, tenant: str) -> tuple[AskedRun, Spec]:
        asked = read_body(body, AskedRun)
        return asked, spec_of(asked, self._config.offer, tenant)

    async def _resume(self, visit: _Visit, runs: Runs, name: str) -> str:
        """Resume a run by the rules of a start: this key may use its model now, and the tenant has room."""
        view = await runs.show(await runs.find(name, visit.key.tenant))
        model = view.spec.model
        permit(visit.key, await (self._directory.exactly(model) if model else self._directory.find("")))
        await runs.resume(view.line.id, self._config.offer.live)
        return view.line.id

    async def _list(self, visit: _Visit, runs: Runs) -> None:
        query = query_of(visit.exchange)
        lines = await runs.list(limit_in(query), status_in(query), visit.key.tenant)
        await visit.say({"object": "list", "data": [line_json(_as_named(line)) for line in lines]})

    async def _show(self, visit: _Visit, view: View) -> None:
        form = query_of(visit.exchange).get("as")
        await visit.say(view_json(_view_as_named(view)) if form is None else messages_json(view, form))

    async def _approve(self, visit: _Visit, runs: Runs, name: str, call: str) -> None:
        id = await runs.find(name, visit.key.tenant)
        word = read_body(await visit.exchange.body(), AskedWord)
        await runs.approve(id, call, allowed=word.allowed, reason=word.reason)
        await visit.say({"id": name, "call": call, "allowed": word.allowed})

    async def _events(self, visit: _Visit, runs: Runs, view: View) -> None:
        events = runs.events(view.line.id, after_in(visit.exchange))
        first = await anext(events, None) if view.line.ended else None
        if visit.exchange.method == "HEAD" or (view.line.ended and first is None):
            await answer(visit.exchange, 204, b"", b"", visit.marks.headers)  # a browser then asks no more
            return
        stream = _Stream(visit, self._config.server.keep_alive, self._clock)
        await stream.start()
        await visit.exchange.attended(stream.send(first, events), stream.beat)
        await visit.exchange.write(b"", last=True)


class _Stream:
    """Events on their way to a client."""

    def __init__(self, visit: _Visit, keep_alive: float, clock: Clock) -> None:
        self._visit: Final = visit
        self._keep_alive: Final = keep_alive
        self._now: Final = clock.monotonic
        self._last = self._now()

    async def start(self) -> None:
        self._visit.marks.started = True
        head = ((b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))
        await self._visit.exchange.start(200, (*head, *self._visit.marks.headers))

    async def send(self, first: Numbered | None, events: AsyncIterator[Numbered]) -> None:
        if first is not None:
            await self._write(_frame(first))
        async for each in events:
            await self._write(_frame(each))

    async def beat(self) -> float:
        silent = self._now() - self._last
        if silent < self._keep_alive:
            return self._keep_alive - silent
        await self._write(_ALIVE)
        return self._keep_alive

    async def _write(self, data: bytes) -> None:
        self._last = self._now()
        await self._visit.exchange.write(data)


def _frame(each: Numbered) -> bytes:
    written = event_json(each)
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (each.number, str(written["kind"]).encode(), _dump(written))


async def _own(runs: Runs, name: str, key: Key) -> View:
    """Return the run that this tenant knows by this name. Raises `UnknownRun`."""
    return await runs.show(await runs.find(name, key.tenant))


def _as_named(line: Line) -> Line:
    """Return a run as its tenant knows it: what is shown has the tenant's name for it in place of the id."""
    return replace(line, id=line.name or line.id)


def _view_as_named(view: View) -> View:
    return replace(view, line=_as_named(view.line))


def _missing(message: str) -> Refused:
    return Refused(Failure(FailureKind.NOT_FOUND, message, 404))
