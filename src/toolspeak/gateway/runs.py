"""Serves runs over HTTP: start, watch, cancel, resume, approve. A tenant sees only its own runs.

POST /v1/runs                               start one
GET  /v1/runs                               list them
GET  /v1/runs/ID                            one with its messages
GET  /v1/runs/ID/events                     its events, as server-sent events; `Last-Event-ID` or `?after=` rejoins
POST /v1/runs/ID/cancel, /v1/runs/ID/resume
POST /v1/runs/ID/continue                   a new run with the next task, after the conversation of an ended one
POST /v1/runs/ID/calls/CALL/approve         a person's decision on a call

With a database in `[runs]` the gateway only stores and reads runs: workers run them. Without one they run here.
While the database is unreachable, all of these endpoints answer 503 within seconds, and the rest of the gateway works.

An ID is the tenant's own name for its run. Each request looks it up among the tenant's runs only, so another tenant's
id and an unused one give the same answer. When ids were global, a taken one answered 404 and a free one 201, which told
a tenant that another one uses it.

A run executes commands on this machine, so no request can extend its rights: its folder, its tools and what it may do
without approval are those of `[runs]`, or fewer.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, unquote

import msgspec

from toolspeak.agent.runs.provider import memory_runs, open_durable_runs
from toolspeak.agent.runs.runs import (
    NumberedEvent,
    Runs,
    RunSummary,
    RunView,
    Spec,
    continued,
    event_json,
    line_json,
    messages_json,
    misfit,
    read_described,
    view_json,
)
from toolspeak.agent.tools.toolbox import OUTPUT
from toolspeak.config.shape import Approval, Config, Key, Offer
from toolspeak.engine.agent import Status
from toolspeak.engine.journal import compact_from
from toolspeak.engine.settings import Settings
from toolspeak.errors import (
    BadConfig,
    BadField,
    CellUnavailable,
    RunsUnavailable,
    ToolspeakError,
    TooManyRuns,
    UnknownRun,
)
from toolspeak.gateway.access import permit
from toolspeak.gateway.exchange import Exchange, Refused, ResponseContext, answer, header
from toolspeak.gateway.request_reader import RequestReader
from toolspeak.gateway.routes import Target
from toolspeak.gateway.run_turns import RunTurns
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import JsonObject
from toolspeak.ir.request import Sampling
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.directory import Directory
from toolspeak.runtime.shared_attempt import SharedAttempt

LIMIT, MOST = 50, 1000
"""Length of a list of runs: by default, and at most."""
_MOST_OUTPUT: Final = 1 << 16
"""Largest `output` that a client may set."""
_MODES: Final = list(Approval)
"""From the strictest to the freest: the order of the enumeration decides what a client may ask for."""
T = TypeVar("T")


class RunRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a start: the fields of a spec, and an id.

    The id makes a start safe to repeat: after a timeout or a 503 the run may have been stored, and the same id starts
    only one run.
    """

    task: str
    id: str = ""
    model: str = ""
    system: str = ""
    tools: tuple[str, ...] | None = None
    folder: str = ""
    approval: Approval | None = None
    rounds: int | None = None
    output: int = OUTPUT
    history: tuple[dict[str, Any], ...] = ()
    settings: dict[str, Any] = {}
    sampling: dict[str, Any] = {}
    agent_prompt: bool = True


class ContinueRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a continuation: the next task, an id as in a start, and limits that differ from those of the run."""

    task: str
    id: str = ""
    approval: Approval | None = None
    rounds: int | None = None


class ApprovalRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a decision on a call."""

    allowed: bool
    reason: str = ""


def read_body(body: bytes, kind: type[T]) -> T:
    """Decode a body; raises `BadField` with the field that is wrong."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise misfit(error) from None


def spec_of(wanted: RunRequest, offer: Offer, tenant: str) -> Spec:
    """Return the spec of a run. Raises `BadField` for a field that is malformed or asks for more than is offered."""
    _checked_task(wanted.task)
    # Only checked here: the spec stores them as they were written, and the worker reads them again.
    read_described(Settings, wanted.settings, "settings")
    read_described(Sampling, wanted.sampling, "sampling")
    return Spec(
        wanted.task,
        wanted.model,
        wanted.system,
        _tools(wanted.tools, offer),
        _folder(wanted.folder, offer),
        _approval(wanted.approval, offer),
        _within("rounds", offer.rounds if wanted.rounds is None else wanted.rounds, offer.rounds),
        _within("output", wanted.output, _MOST_OUTPUT),
        _history(wanted.history),
        wanted.settings,
        wanted.sampling,
        tenant,
        wanted.agent_prompt,
    )


def continued_spec(view: RunView, wanted: ContinueRequest, offer: Offer) -> Spec:
    """Return the spec of a continuation. The offer may have shrunk since the run began, so it is applied again."""
    before = view.spec
    spec = continued(view, _checked_task(wanted.task))
    return msgspec.structs.replace(
        spec,
        tools=_tools(before.tools, offer),
        folder=_folder(before.folder, offer),
        approval=_approval(wanted.approval or before.approval, offer),
        rounds=_within("rounds", before.rounds if wanted.rounds is None else wanted.rounds, offer.rounds),
    )


def _checked_task(task: str) -> str:
    if not task.strip():
        raise BadField("task", "it is empty: it says what to do")
    return task


def _tools(wanted: tuple[str, ...] | None, offer: Offer) -> tuple[str, ...]:
    if wanted is None:
        return tuple(name for name in Spec("").tools if name in offer.tools)
    for name in wanted:
        if name not in offer.tools:
            raise BadField("tools", f"{name[:80]!r} is not offered; those that are: {', '.join(offer.tools) or 'none'}")
    return wanted


def _folder(wanted: str, offer: Offer) -> str:
    """Accept only a folder that is listed exactly: inside it, an earlier run may have made a symbolic link to `/`."""
    if wanted and wanted not in offer.folders:
        raise BadField("folder", f"{wanted[:80]!r} is not offered; leave it out for one of the run's own")
    return wanted


def _approval(wanted: Approval | None, offer: Offer) -> Approval:
    most = _MODES.index(offer.approval)
    level = min(_MODES.index(Approval.ASK), most) if wanted is None else _MODES.index(wanted)
    if level > most:
        raise BadField("approval", f"{wanted!s} is not offered; the modes that are: {', '.join(_MODES[: most + 1])}")
    return _MODES[level]


def _within(field: str, value: int, most: int) -> int:
    if 1 <= value <= most:
        return value
    raise BadField(field, f"{value} is not an integer from 1 to {most}")


def _history(rows: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
    try:
        for row in rows:
            compact_from(row)
    except (KeyError, TypeError, ValueError, msgspec.MsgspecError) as error:
        raise BadField("history", f"it is not made of messages as runs show them ({type(error).__name__})") from None
    return rows


# ---------------------------------------------------------------- queries


def query_of(exchange: Exchange) -> dict[str, str]:
    """Return the query parameters."""
    return dict(parse_qsl(exchange.query))


def limit_in(query: dict[str, str]) -> int:
    """Return the largest number of runs that a list may have. Raises `BadField`."""
    said = query.get("limit", str(LIMIT))
    if not said.isascii() or not said.isdecimal() or len(said) > len(str(MOST)):
        raise BadField("limit", f"{said[:40]!r} is not an integer from 1 to {MOST}")
    return _within("limit", int(said), MOST)


def status_in(query: dict[str, str]) -> Status | None:
    """Return the status by which a list is filtered; raises `BadField`."""
    said = query.get("status")
    if said is not None and said not in list(Status):
        raise BadField("status", f"{said[:40]!r} is not one of {', '.join(Status)}")
    return None if said is None else Status(said)


def after_in(exchange: Exchange) -> int:
    """Return the number of the last event that the client has; -1 means none. Raises `BadField`.

    `Last-Event-ID`, which a browser sends when it reconnects, overrides `?after=`: the URL still has the old number.
    """
    name, said = "Last-Event-ID", header(exchange, b"last-event-id")
    if not said:
        name, said = "after", query_of(exchange).get("after", "-1")
    digits = said.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) <= len("1000000000000"):
        return int(said)
    raise BadField(name, f"{said[:40]!r} is not the number of an event")


_JSON: Final = b"application/json"
_BUSY: Final = 5.0
"""Seconds of `Retry-After` if the tenant has too many runs, or the database is unreachable."""
PATIENCE: Final = 5.0
"""Seconds that a request waits for the database."""
_AWAY: Final = "the database of runs does not respond: try again in some seconds; runs that were started are not lost"
_LOG: Final = logging.getLogger(__name__)
_ALIVE: Final = b": keep-alive\n\n"
_dump = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class _RunsContext:
    """One request below /v1/runs, and the key of its client."""

    exchange: Exchange
    response: ResponseContext
    key: Key

    async def say(self, value: JsonObject, status: int = 200) -> None:
        """Send a JSON response."""
        await answer(self.exchange, status, _JSON, _dump(value), self.response.headers)


class RunsEndpoints:
    """Answers requests below /v1/runs."""

    def __init__(
        self, config: Config, directory: Directory, reader: RequestReader, turns: RunTurns, clock: Clock
    ) -> None:
        """Take what requests need; `open` opens the store. `turns` takes those of the runs that are executed here."""
        self._turns: Final = turns
        self._reader: Final = reader
        self._config: Final = config
        self._directory: Final = directory
        self._clock: Final = clock
        self._stack: Final = AsyncExitStack()
        self._opening: Final = SharedAttempt(self._open)
        self._is_away = False
        """The last request found the database unreachable; only changes are logged."""

    async def open(self) -> None:
        """Open the store of runs. If its database is unreachable, the gateway still starts, and requests try again."""
        try:
            await self._opened()
        except RunsUnavailable as error:
            self._note_away(error)

    async def close(self) -> None:
        """Close the store. Runs of a database continue on their workers."""
        await self._opening.cancel()
        await self._stack.aclose()

    async def answer(self, exchange: Exchange, target: Target, response: ResponseContext, key: Key) -> None:
        """Answer one request; raises `Refused`."""
        context, method = _RunsContext(exchange, response, key), "GET" if exchange.method == "HEAD" else exchange.method
        async with self.opened() as runs:
            await self._answer(context, runs, method, [unquote(each) for each in target.name.split("/")])

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Runs]:
        """Yield the store of runs, for a request to it. Its errors become `Refused`."""
        try:
            yield await self._opened()
        except UnknownRun as error:
            raise _missing(str(error)) from None
        except TooManyRuns as error:
            raise Refused(Failure(FailureKind.RATE_LIMITED, str(error), 429, retry_after=_BUSY)) from None
        except CellUnavailable as error:
            raise Refused(Failure(FailureKind.TRANSIENT, str(error), 503, retry_after=_BUSY)) from None
        except (RunsUnavailable, BadConfig) as error:  # BadConfig: after an outage another database may answer
            self._note_away(error)
            raise Refused(Failure(FailureKind.TRANSIENT, _AWAY, 503, retry_after=_BUSY)) from None
        self._note_back()

    async def _opened(self) -> Runs:
        """Return the store of runs, opening it if that has not succeeded yet. Raises `RunsUnavailable`.

        All waiting requests share one attempt. Each waits at most `PATIENCE` seconds: a database that hung once took
        the whole gateway with it.
        """
        try:
            return await self._opening.result(PATIENCE)
        except TimeoutError:
            raise RunsUnavailable(f"the database of runs did not respond within {PATIENCE:.0f} s") from None

    async def _open(self) -> Runs:
        if self._config.runs.database:
            return await self._stack.enter_async_context(open_durable_runs(self._config, patience=PATIENCE))
        runs = memory_runs(self._config, self._directory, self._config.offer.tools, self._turns.take)
        self._stack.push_async_callback(runs.close)
        return runs

    def _note_away(self, error: ToolspeakError) -> None:
        """Log that the database is unreachable: once, not for each request."""
        if not self._is_away:
            _LOG.warning("%s; requests for runs get 503 until it is back", error)
        self._is_away = True

    def _note_back(self) -> None:
        if self._is_away:
            _LOG.warning("the database of runs responds again")
        self._is_away = False

    async def _answer(self, context: _RunsContext, runs: Runs, method: str, path: list[str]) -> None:
        match (method, *path):
            case ("POST", ""):
                await self._begin(context, runs)
            case ("GET", ""):
                await self._list(context, runs)
            case ("GET", name):
                await self._show(context, await _own(runs, name, context.key))
            case ("GET", name, "events"):
                await self._events(context, runs, await _own(runs, name, context.key))
            case ("POST", name, "cancel"):
                id = await runs.find(name, context.key.tenant)
                await runs.cancel(id)
                await context.say(line_json(_as_named((await runs.show(id)).line)))
            case ("POST", name, "resume"):
                id = await self.resume(runs, name, context.key)
                await context.say(line_json(_as_named((await runs.show(id)).line)))
            case ("POST", name, "continue"):
                await self._continue(context, runs, await _own(runs, name, context.key))
            case ("POST", name, "calls", call, "approve"):
                await self._approve(context, runs, name, call)
            case _:
                raise _missing(f"there is nothing at {context.exchange.method} {context.exchange.path[:200]}")

    async def _begin(self, context: _RunsContext, runs: Runs) -> None:
        wanted, spec = await self._reader.read_json(
            await context.exchange.body(), lambda body: self._read(body, context.key.tenant)
        )
        await self._start(context, runs, spec, wanted.id)

    async def _continue(self, context: _RunsContext, runs: Runs, view: RunView) -> None:
        wanted = await self._reader.read_json(
            await context.exchange.body(), lambda body: read_body(body, ContinueRequest)
        )
        await self._start(context, runs, continued_spec(view, wanted, self._config.offer), wanted.id)

    async def _start(self, context: _RunsContext, runs: Runs, spec: Spec, id: str) -> None:
        """Start a run if the key permits its model and the tenant has room for it, and answer with it."""
        route = await (self._directory.exactly(spec.model) if spec.model else self._directory.find(""))
        permit(context.key, route)
        # The spec gets the identity of the route that was permitted. A worker that resolved the client's name again
        # could reach another model, because the lists of its upstreams may have changed.
        if route.model:
            spec = msgspec.structs.replace(spec, model=route.identity)
        # The store counts and inserts in one transaction. When the gateway counted first, 60 parallel starts under a
        # limit of 20 gave 60 runs.
        begun = await runs.start(spec, id, self._config.offer.live)
        await context.say(view_json(_view_as_named(await runs.show(begun))), 201)

    def _read(self, body: bytes, tenant: str) -> tuple[RunRequest, Spec]:
        wanted = read_body(body, RunRequest)
        return wanted, spec_of(wanted, self._config.offer, tenant)

    async def resume(self, runs: Runs, name: str, key: Key) -> str:
        """Resume a run by the rules of a start: the key must permit its model now, and the tenant must have room.

        Without the second rule, cancelling 20 runs, starting 20 and resuming 20 gave 40 live runs under a limit of 20.
        """
        view = await runs.show(await runs.find(name, key.tenant))
        model = view.spec.model
        permit(key, await (self._directory.exactly(model) if model else self._directory.find("")))
        await runs.resume(view.line.id, self._config.offer.live)
        return view.line.id

    async def _list(self, context: _RunsContext, runs: Runs) -> None:
        query = query_of(context.exchange)
        lines = await runs.list(limit_in(query), status_in(query), context.key.tenant)
        await context.say({"object": "list", "data": [line_json(_as_named(line)) for line in lines]})

    async def _show(self, context: _RunsContext, view: RunView) -> None:
        form = query_of(context.exchange).get("as")
        await context.say(view_json(_view_as_named(view)) if form is None else messages_json(view, form))

    async def _approve(self, context: _RunsContext, runs: Runs, name: str, call: str) -> None:
        id = await runs.find(name, context.key.tenant)
        word = read_body(await context.exchange.body(), ApprovalRequest)
        await runs.approve(id, call, allowed=word.allowed, reason=word.reason)
        await context.say({"id": name, "call": call, "allowed": word.allowed})

    async def _events(self, context: _RunsContext, runs: Runs, view: RunView) -> None:
        events = runs.events(view.line.id, after_in(context.exchange))
        first = await anext(events, None) if view.line.ended else None
        if context.exchange.method == "HEAD" or (view.line.ended and first is None):
            # The run has ended and the client has all its events. A browser reconnects after the end of a stream, and
            # stops only if it gets 204.
            await answer(context.exchange, 204, b"", b"", context.response.headers)
            return
        stream = _Stream(context, self._config.server.keep_alive, self._clock)
        await stream.start()
        await context.exchange.attended(stream.send(first, events), stream.beat)
        await context.exchange.write(b"", last=True)


class _Stream:
    """Sends the events of a run to a client."""

    def __init__(self, context: _RunsContext, keep_alive: float, clock: Clock) -> None:
        self._context: Final = context
        self._keep_alive: Final = keep_alive
        self._now: Final = clock.monotonic
        self._last = self._now()

    async def start(self) -> None:
        """Send the headers."""
        self._context.response.started = True
        head = ((b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))
        await self._context.exchange.start(200, (*head, *self._context.response.headers))

    async def send(self, first: NumberedEvent | None, events: AsyncIterator[NumberedEvent]) -> None:
        """Send the events until the run ends."""
        if first is not None:
            await self._write(_frame(first))
        async for each in events:
            await self._write(_frame(each))

    async def beat(self) -> float:
        """Send a comment after a long silence; return in how many seconds to check again."""
        silent = self._now() - self._last
        if silent < self._keep_alive:
            return self._keep_alive - silent
        await self._write(_ALIVE)
        return self._keep_alive

    async def _write(self, data: bytes) -> None:
        self._last = self._now()
        await self._context.exchange.write(data)


def _frame(each: NumberedEvent) -> bytes:
    written = event_json(each)
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (each.number, str(written["kind"]).encode(), _dump(written))


async def _own(runs: Runs, name: str, key: Key) -> RunView:
    """Return the tenant's run of this name. Raises `UnknownRun`."""
    return await runs.show(await runs.find(name, key.tenant))


def _as_named(line: RunSummary) -> RunSummary:
    """Return a run with the tenant's own name as its id: the stored id is internal."""
    return replace(line, id=line.name or line.id)


def _view_as_named(view: RunView) -> RunView:
    return replace(view, line=_as_named(view.line))


def _missing(message: str) -> Refused:
    return Refused(Failure(FailureKind.NOT_FOUND, message, 404))
