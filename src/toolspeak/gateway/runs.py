"""Runs over HTTP: started, watched, stopped, taken up again. A tenant sees its own only.

POST /v1/runs                               begin one
GET  /v1/runs                               list them
GET  /v1/runs/ID                            one as it stands
GET  /v1/runs/ID/events                     what happens, as server-sent events; `Last-Event-ID` or `?after=` rejoins
POST /v1/runs/ID/cancel, /v1/runs/ID/resume
POST /v1/runs/ID/calls/CALL/approve         a person's word on a call

With a database in `[runs]` the gateway only writes down and reads: workers do the work. Without one it works here.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

import msgspec

from toolspeak.config.shape import Config, Key
from toolspeak.engine.agent import Status
from toolspeak.errors import UnknownRun
from toolspeak.gateway.auth import permit
from toolspeak.gateway.exchange import Exchange, Refused, answer
from toolspeak.gateway.marks import Marks
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
from toolspeak.runs.runs import Numbered, Runs, View, checked_id
from toolspeak.runs.shown import event_json, line_json, messages_json, view_json
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.directory import Directory

_JSON: Final = b"application/json"
_BUSY: Final = 5.0
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

    def __init__(self, config: Config, directory: Directory, clock: Clock) -> None:
        """Open nothing yet."""
        self._config: Final = config
        self._directory: Final = directory
        self._clock: Final = clock
        self._stack: Final = AsyncExitStack()
        self._runs: Runs | None = None

    async def open(self) -> None:
        """Open the keeper."""
        if self._config.runs.database:
            self._runs = await self._stack.enter_async_context(kept_runs(self._config))
        else:
            self._runs = runs_here(self._config, self._directory, self._config.offer.tools)
            self._stack.push_async_callback(self._runs.close)

    async def close(self) -> None:
        """Let go of all runs; those of a database go on elsewhere."""
        await self._stack.aclose()

    async def answer(self, exchange: Exchange, target: Target, marks: Marks, key: Key) -> None:
        """Do what a path and its method mean."""
        if self._runs is None:
            raise RuntimeError("the keeper of runs is not open")
        visit, method = _Visit(exchange, marks, key), "GET" if exchange.method == "HEAD" else exchange.method
        try:
            await self._answer(visit, self._runs, method, [unquote(each) for each in target.name.split("/")])
        except UnknownRun as error:
            raise _missing(str(error)) from None

    async def _answer(self, visit: _Visit, runs: Runs, method: str, path: list[str]) -> None:
        match (method, *path):
            case ("POST", ""):
                await self._begin(visit, runs)
            case ("GET", ""):
                await self._list(visit, runs)
            case ("GET", id):
                await self._show(visit, await _own(runs, id, visit.key))
            case ("GET", id, "events"):
                await self._events(visit, runs, await _own(runs, id, visit.key))
            case ("POST", id, "cancel" | "resume" as what):
                await _own(runs, id, visit.key)
                await (runs.cancel(id) if what == "cancel" else runs.resume(id))
                await visit.say(line_json((await runs.show(id)).line))
            case ("POST", id, "calls", call, "approve"):
                await _own(runs, id, visit.key)
                await self._approve(visit, runs, id, call)
            case _:
                raise _missing(f"there is nothing at {visit.exchange.method} {visit.exchange.path[:200]}")

    async def _begin(self, visit: _Visit, runs: Runs) -> None:
        asked = read_body(await visit.exchange.body(), AskedRun)
        spec = spec_of(asked, self._config.offer, visit.key.tenant)
        route = await (self._directory.exactly(spec.model) if spec.model else self._directory.find(""))
        permit(visit.key, route)
        if not spec.model and route.model:  # whoever works on it takes the model that was permitted
            spec = msgspec.structs.replace(spec, model=route.alias or f"{route.place}:{route.model}")
        if not asked.id or not await _is_there(runs, checked_id(asked.id)):
            await self._check_room(runs, visit.key)
        id = await runs.start(spec, asked.id)
        await visit.say(view_json(await _own(runs, id, visit.key)), 201)

    async def _check_room(self, runs: Runs, key: Key) -> None:
        most = self._config.offer.live
        live = 0
        for status in (Status.RUNNING, Status.WAITING):
            live += len(await runs.list(most, status, key.tenant))
        if live >= most:
            message = f"{live} runs go on already (runs.live)"
            raise Refused(Failure(FailureKind.RATE_LIMITED, message, 429, retry_after=_BUSY))

    async def _list(self, visit: _Visit, runs: Runs) -> None:
        query = query_of(visit.exchange)
        lines = await runs.list(limit_in(query), status_in(query), visit.key.tenant)
        await visit.say({"object": "list", "data": [line_json(line) for line in lines]})

    async def _show(self, visit: _Visit, view: View) -> None:
        form = query_of(visit.exchange).get("as")
        await visit.say(view_json(view) if form is None else messages_json(view, form))

    async def _approve(self, visit: _Visit, runs: Runs, id: str, call: str) -> None:
        word = read_body(await visit.exchange.body(), AskedWord)
        await runs.approve(id, call, allowed=word.allowed, reason=word.reason)
        await visit.say({"id": id, "call": call, "allowed": word.allowed})

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


async def _own(runs: Runs, id: str, key: Key) -> View:
    """Return a run of this tenant; another's is as unknown as one that there is not."""
    view = await _looked_up(runs, id)
    if view is None or key.tenant not in ("", view.line.tenant):
        raise UnknownRun(f"no run has the id {id[:80]!r}")
    return view


async def _is_there(runs: Runs, id: str) -> bool:
    return await _looked_up(runs, id) is not None


async def _looked_up(runs: Runs, id: str) -> View | None:
    try:
        return await runs.show(id)
    except UnknownRun:
        return None


def _missing(message: str) -> Refused:
    return Refused(Failure(FailureKind.NOT_FOUND, message, 404))
