"""The gateway: identifies the client, admits its request and dispatches it.

Clients get every failure as an error of their own protocol.

The order of the checks is a security decision:

1. Host and Origin, before anything else, so that a page in a browser learns nothing.
2. `/health`, `/ready` and `/`, which need neither a key nor room: a load balancer must not take a busy gateway for a
   dead one.
3. The key, before anything is counted, so that clients without one cannot use up the limits of others.
   The dashboard below `/ui` comes here too: a session stands for a key, and only its login page and its static files
   need none.
4. Admission (counts and rates), then overload (memory, loop delay). `GET /health/load` and `GET /metrics`, of the
   gateway and of its upstreams, skip the second: an operator reads them during an overload.
5. The body, which is read only now: a refused client has cost a head, not 32 MB.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import msgspec

from toolspeak import wires
from toolspeak.config.shape import Config, Key
from toolspeak.engine.readers import warm
from toolspeak.errors import BadField, BadRequest, NotStored, TooLarge
from toolspeak.gateway import aux_endpoints, passthrough, routes, turns
from toolspeak.gateway.access import ANONYMOUS, HostPolicy, Keyring
from toolspeak.gateway.access_log import AccessEntry, Fault, fault_of
from toolspeak.gateway.admission import Admission, Ticket
from toolspeak.gateway.checkups import Checkups
from toolspeak.gateway.exchange import (
    Exchange,
    Gone,
    Headers,
    Refused,
    ResponseContext,
    TurnFailed,
    answer,
    new_context,
)
from toolspeak.gateway.idle_doctor import IdleDoctor
from toolspeak.gateway.metrics import METRICS_TYPE, Metrics
from toolspeak.gateway.overload import LoadFigures, Overload
from toolspeak.gateway.readiness import Readiness
from toolspeak.gateway.request_reader import RequestReader
from toolspeak.gateway.response_store import ResponseStore
from toolspeak.gateway.routes import Routes, Target
from toolspeak.gateway.runs_api import RunsApi
from toolspeak.gateway.sessions import Sessions
from toolspeak.gateway.trace_log import TraceLog
from toolspeak.gateway.turns import OwnTurn
from toolspeak.gateway.upstream_metrics import answer_metrics
from toolspeak.gateway.viewers import Viewers
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.directory import Directory
from toolspeak.runtime.prober import Prober
from toolspeak.runtime.transport import UpstreamTransport
from toolspeak.wires import Operation

_LOG: Final = logging.getLogger(__name__)
_JSON = b"application/json"
_WARM_AFTER = 0.2
"""Seconds after the start. A request that arrives at once does not have to share the processor with warming up."""


AnswerPage: TypeAlias = Callable[["Gateway", Exchange, Target, ResponseContext], Awaitable[None]]
"""`gateway.dashboard.answer_page`."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """Answers every exchange exactly once."""

    config: Config
    routes: Routes
    directory: Directory
    transport: UpstreamTransport
    keyring: Keyring
    hosts: HostPolicy
    admission: Admission
    overload: Overload
    readiness: Readiness
    reader: RequestReader
    prober: Prober
    runs: RunsApi
    responses: ResponseStore
    traces: TraceLog
    metrics: Metrics
    sessions: Sessions
    viewers: Viewers
    checkups: Checkups
    idle_doctor: IdleDoctor
    clock: Clock = CLOCK

    async def begin(self) -> None:
        """Start measuring, open the store of runs, and look at the upstreams in the background."""
        loop = asyncio.get_running_loop()
        loop.call_later(_WARM_AFTER, _warm_up, loop)
        self.overload.start()
        await self.keyring.start()
        self.metrics.watch(self.directory.pools)
        self.metrics.start(self._load, self.clock)
        await self.runs.open()
        self.readiness.start()
        self.idle_doctor.start()

    async def close(self) -> None:
        """Stop measuring, and close runs, the doctor, probes, threads and upstream connections."""
        # The transport is last: runs, the doctor and probes use it until they are cancelled.
        self.overload.stop()
        await self.readiness.stop()
        await self.runs.close()
        await self.idle_doctor.stop()
        await self.checkups.close()
        await self.metrics.stop(self._load())
        await self.prober.close()
        await self.admission.close()
        await self.keyring.stop()
        self.reader.offload.close()
        try:
            await asyncio.to_thread(self.traces.close)
        except RuntimeError:  # the interpreter exits, and starts no more threads: no one waits for this loop now
            self.traces.close()
        await self.transport.close()

    async def handle(self, exchange: Exchange, own: OwnTurn | None = None) -> AccessEntry:
        """Answer an exchange, and return its line of the log, with the outcome of a turn.

        Every error becomes a response of the client's protocol; none of them is raised. `own` is an exchange that a
        page of the dashboard makes: its key and its origin have been checked, and everything else is as for clients.
        """
        target = self.routes.find(exchange)
        response = new_context(exchange, target.wire, self.routes.request_id_header(target), self.clock)
        # A page loads several files and watches a stream: only its failures and its posts are news.
        is_page = target.what == routes.UI and exchange.method in _READS
        response.entry.is_check = is_page or target.what in routes.OPEN or target.what in _SCRAPED
        self.metrics.begin(target.what)
        try:
            await self._handled(exchange, target, response, own)
        finally:
            response.release()
            response.entry.end(exchange.status, self.clock.monotonic())
            self.metrics.end(response.entry, target.what)
            self.traces.end(response.entry)
        return response.entry

    async def _handled(
        self, exchange: Exchange, target: Target, response: ResponseContext, own: OwnTurn | None
    ) -> None:
        entry = response.entry
        try:
            if own is None:
                await self._answer(exchange, target, response)
            else:
                await self._admit(exchange, target, response, own.key, own)
        except asyncio.CancelledError:
            # The shutdown deadline. The client gets an error frame instead of a stream that just stops; the task ends
            # right after it, so the cancellation is not raised again.
            failure = Failure(FailureKind.TRANSIENT, "the gateway shuts down", 503)
            entry.fail(Fault.SHUTDOWN, failure)
            await self._fail(exchange, target, response, failure)
        except Gone:
            entry.fail(Fault.HUNG_UP)
        except TurnFailed as failed:
            entry.fail(Fault.UPSTREAM, failed.failure)
            await self._fail(exchange, target, response, failed.failure)
        except Refused as refused:
            entry.fail(fault_of(refused.failure), refused.failure)
            await self._fail(exchange, target, response, refused.failure)
        except BadRequest as error:
            field = error.field if isinstance(error, BadField) else ""
            code = error.code if isinstance(error, NotStored) else ""
            kind = FailureKind.TOO_LARGE if isinstance(error, TooLarge) else FailureKind.INVALID_REQUEST
            failure = Failure(kind, str(error), error.status, field, code=code)
            entry.fail(fault_of(failure), failure)
            await self._fail(exchange, target, response, failure)
        except Exception:  # noqa: BLE001 # the client gets a 500 of its protocol, the log the traceback
            _LOG.exception("trace=%s a fault of the gateway", response.trace)
            message = f"the gateway has a fault; its log knows more under trace {response.trace}"
            failure = Failure(FailureKind.OTHER, message, 500)
            entry.fail(Fault.GATEWAY, failure)
            await self._fail(exchange, target, response, failure)

    async def _answer(self, exchange: Exchange, target: Target, response: ResponseContext) -> None:
        origin = self.hosts.check(exchange)
        if origin:
            response.allow(origin)
        if exchange.method == "OPTIONS":
            await answer(exchange, 204, b"text/plain", b"", (*response.headers, *_PREFLIGHT))
            return
        if target.what in routes.OPEN:
            await self._dispatch(exchange, target, response, ANONYMOUS)
            return
        if target.what == routes.UI and self.config.dashboard.enabled:
            answer_page = await asyncio.to_thread(_load_dashboard)
            await answer_page(self, exchange, target, response)
            return
        await self._admit(exchange, target, response, await self.keyring.identify(exchange))

    async def _admit(
        self, exchange: Exchange, target: Target, response: ResponseContext, key: Key, own: OwnTurn | None = None
    ) -> None:
        exchange.tenant = response.entry.tenant = key.tenant
        is_free = exchange.method in _READS and target.what in routes.FREE
        async with self.admission.enter(key, is_free=is_free) as ticket:
            if target.what not in routes.FIGURES:
                self.overload.check(self.admission.inside)
            if target.what == Operation.TURN:
                await self._take_turn(exchange, target, response, ticket, key, own)
            elif target.what == Operation.FORWARD:
                forwarding = passthrough.Passthrough(self.directory, self.prober, self.reader)
                await forwarding.take(exchange, response, key, ticket)
            else:
                await self._dispatch(exchange, target, response, key)

    async def _take_turn(  # noqa: PLR0913, PLR0917 # what a turn is about
        self,
        exchange: Exchange,
        target: Target,
        response: ResponseContext,
        ticket: Ticket,
        key: Key,
        own: OwnTurn | None,
    ) -> None:
        parts = (self.directory, self.prober, self.reader, self.responses, self.traces)
        keep_alive = self.config.server.keep_alive if own is None else 0.0  # 0: the headers leave at once
        turn = turns.Turns(*parts, idle_doctor=self.idle_doctor, keep_alive=keep_alive, clock=self.clock)
        sends_tools = own is not None and own.sends_tools
        try:
            await turn.take(exchange, wires.load(target.wire), response, key, ticket, sends_tools=sends_tools)
        finally:
            if response.entry.progress is not None:
                ticket.spend(response.entry.progress.charge)

    async def _dispatch(self, exchange: Exchange, target: Target, response: ResponseContext, key: Key) -> None:
        if target.what == routes.READY:
            is_ready, body = await self.readiness.report(with_reasons=await self.keyring.knows(exchange))
            status = 200 if is_ready else 503
            await answer(exchange, status, _JSON, msgspec.json.encode(body), response.headers)
            return
        if target.what == routes.UPSTREAM_METRICS:
            await answer_metrics(exchange, response, target.name, self.config, self.directory)
            return
        if target.what in routes.FIGURES:
            await self._answer_figures(exchange, target, response)
            return
        if target.what == routes.TRACES:
            listed = await self.traces.answer(exchange, target, key, has_keys=self.config.needs_key)
            await answer(exchange, 200, _JSON, listed, response.headers)
            return
        if target.what == routes.RUNS:
            await self.runs.answer(exchange, target, response, key)
            return
        if target.what == Operation.RESPONSE:
            stored = aux_endpoints.stored_response(exchange.method, target.name, self.responses, key)
            await answer(exchange, 200, _JSON, stored, response.headers)
            return
        found = await aux_endpoints.body_of(exchange, target, self.directory, self.reader, key)
        if isinstance(found, str):
            await answer(exchange, 200, b"text/plain; charset=utf-8", found.encode(), response.headers)
        else:
            await answer(exchange, 200, _JSON, found, response.headers)

    def _load(self) -> LoadFigures:
        return self.overload.load(self.admission.inside, self.admission.figures)

    async def _answer_figures(self, exchange: Exchange, target: Target, response: ResponseContext) -> None:
        if target.what == routes.METRICS:
            load = replace(self._load(), requests=self.admission.inside - 1)  # without this request
            page = await self.metrics.page(load, self.clock)
            await answer(exchange, 200, METRICS_TYPE, page, response.headers)
            return
        report = self.overload.report(self.admission.inside)
        await answer(exchange, 200, _JSON, msgspec.json.encode(report), response.headers)

    async def _fail(self, exchange: Exchange, target: Target, response: ResponseContext, failure: Failure) -> None:
        error = wires.load(target.wire).encode_failure(failure, response.stamp)
        if response.started:
            await response.end_stream(failure)
            return
        headers: Headers = (*response.headers, *_advice(failure, error.status))
        await answer(exchange, error.status, _JSON, error.body, headers)


def _warm_up(loop: asyncio.AbstractEventLoop) -> None:
    """Build the tables of readers, refusals and families in a thread: the first turn must not wait for them."""
    with suppress(RuntimeError):  # a short program exits already, and starts no more threads
        _ = loop.run_in_executor(None, warm)


def _load_dashboard() -> AnswerPage:
    """Return what answers requests below /ui. It is loaded with the first page, in a thread, for it takes long."""
    from toolspeak.gateway.dashboard import answer_page  # noqa: PLC0415

    return answer_page


_READS: Final = ("GET", "HEAD")
_SCRAPED: Final = (routes.METRICS, routes.UPSTREAM_METRICS)
# `authorization` is listed by name, because in browsers `*` does not cover it.
_PREFLIGHT: Final = (
    (b"access-control-allow-methods", b"GET, POST, DELETE, OPTIONS"),
    (b"access-control-allow-headers", b"*, authorization"),
)


def _advice(failure: Failure, status: int) -> Headers:
    """Return the headers that tell SDKs whether to retry; without them they retry every 5xx.

    The kind of the failure decides, not the status. A database outage once answered 500 with `x-should-retry: false`,
    so that clients gave up on a request that would have worked seconds later.
    """
    again = (b"x-should-retry", b"true" if failure.kind.is_temporary else b"false")
    if failure.retry_after is None:
        return (again,) if status >= 500 else ()  # noqa: PLR2004 # the server's side
    return (again, (b"retry-after", b"%d" % max(1, round(failure.retry_after))))
