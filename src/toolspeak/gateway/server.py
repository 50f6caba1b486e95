"""Builds the gateway from its configuration and runs it on uvicorn, set up for long streams and many clients.

`connections.py` adds the limits that uvicorn lacks.
"""

import asyncio
import ctypes
import errno
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from types import FrameType
from typing import Any, Final, cast

import uvicorn
from typing_extensions import override
from uvicorn.config import STARTUP_FAILURE

from toolspeak import wires
from toolspeak.config.assemble import assemble, confirming_depths, depths, outbound_of, verdicts
from toolspeak.config.shape import Config, Driver
from toolspeak.errors import BadConfig
from toolspeak.extras import require_extra
from toolspeak.gateway.access import HostPolicy, Keyring, TokenCheck
from toolspeak.gateway.admission import Admission, limits_of_models
from toolspeak.gateway.app import Gateway
from toolspeak.gateway.asgi import Asgi
from toolspeak.gateway.audit_log import AuditLog
from toolspeak.gateway.checkups import Checkups
from toolspeak.gateway.collector import Collector, freeze_loaded
from toolspeak.gateway.connections import Connections, HttpConnection
from toolspeak.gateway.file_watch import LOOK_EVERY
from toolspeak.gateway.idle_doctor import IdleDoctor
from toolspeak.gateway.key_store import audit_file, open_key_store
from toolspeak.gateway.limit_store import LimitStore, LocalLimits
from toolspeak.gateway.metrics import Metrics
from toolspeak.gateway.overload import Overload
from toolspeak.gateway.peer_traces import TracePeers
from toolspeak.gateway.push_connection import PushConnection
from toolspeak.gateway.readiness import Readiness
from toolspeak.gateway.reload import Reloader
from toolspeak.gateway.request_reader import RequestReader
from toolspeak.gateway.response_store import ResponseStore, SharedResponseStore
from toolspeak.gateway.routes import Routes
from toolspeak.gateway.run_turns import RunTurns
from toolspeak.gateway.runs_api import DisabledRuns, RunsApi
from toolspeak.gateway.sessions import Sessions, SharedSessions
from toolspeak.gateway.stored_keys import StoredKeys
from toolspeak.gateway.tally import LimitTally, ProcessTally
from toolspeak.gateway.tls import TlsCertificates
from toolspeak.gateway.trace_log import SpanSink, open_traces
from toolspeak.gateway.viewers import Viewers
from toolspeak.gateway.worker_share import WorkerLink, WorkerShare
from toolspeak.runtime.cache import Verdicts
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.directory import Directory
from toolspeak.runtime.learned import SHARED, Quorum
from toolspeak.runtime.local_store import LocalVerdicts
from toolspeak.runtime.offload import Offload
from toolspeak.runtime.prober import Prober
from toolspeak.runtime.push_transport import PushTransport
from toolspeak.runtime.transport import UpstreamTransport
from toolspeak.runtime.upstream_activity import UpstreamActivity

_LOG: Final = logging.getLogger(__name__)


def build(
    config: Config,
    clock: Clock = CLOCK,
    transport: UpstreamTransport | None = None,
    quorum: Quorum = SHARED,
    share: WorkerShare | None = None,
) -> Asgi:
    """Return the ASGI application; nothing is connected yet. It owns `transport` and closes it at shutdown.

    `quorum` is SHARED for a server, whatever keys there are: its clients do not trust each other, so none may change
    shared verdicts. `share` is what this process shares with the other workers of a gateway.
    """
    transport = transport or _transport(config)
    directory = assemble(config, transport, quorum, clock)
    reader = RequestReader(config.limits.request, Offload())
    audit = AuditLog(audit_file(config), clock)
    parts = _own_parts(config, clock, audit) if share is None else _shared_parts(config, clock, audit, share)
    traces, metrics = open_traces(config, clock, _spans(config, clock), parts.peers), parts.metrics
    checkups, activity = Checkups(clock), parts.activity
    gateway = Gateway(
        config,
        Routes(wires.apis()),
        directory,
        transport,
        Keyring(config.keys, _stored_keys(config, clock, audit), _tokens(config, clock, audit)),
        HostPolicy(config),
        parts.admission,
        Overload(config.limits, clock),
        Readiness(config, directory, clock),
        reader,
        _prober(config, parts, clock),
        _runs(config, directory, reader, RunTurns(traces, metrics, activity, clock), clock),
        parts.responses,
        traces,
        metrics,
        parts.sessions,
        Viewers(),
        checkups,
        IdleDoctor(config, checkups, activity, parts.verdicts, clock),
        clock,
    )
    return Asgi(gateway)


def _transport(config: Config) -> UpstreamTransport:
    """Return the client's side of the driver."""
    if config.server.driver is Driver.PUSH:
        return PushTransport(outbound_of(config))
    from toolspeak.runtime.http_transport import HttpTransport  # noqa: PLC0415 # the other driver needs no aiohttp

    return HttpTransport(outbound_of(config))


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of a gateway that keep something from one request to the next."""

    admission: Admission
    metrics: Metrics
    responses: ResponseStore
    sessions: Sessions
    verdicts: Verdicts
    activity: UpstreamActivity
    peers: TracePeers | None
    """The other workers, which have traces too."""


def _own_parts(config: Config, clock: Clock, audit: AuditLog) -> _Parts:
    """Return the parts of a gateway of one process, in its memory."""
    responses = ResponseStore(config.responses, clock)
    admission, activity = _admission(config, clock, audit, ProcessTally()), UpstreamActivity(clock)
    return _Parts(admission, Metrics(), responses, Sessions(clock), verdicts(config, clock), activity, None)


def _shared_parts(config: Config, clock: Clock, audit: AuditLog, share: WorkerShare) -> _Parts:
    """Return the parts of a worker: each worker finds what the others have kept. Redis has verdicts of a fleet."""
    store = share.open_store(clock)
    return _Parts(
        _admission(config, clock, audit, share.tally),
        Metrics(share.metrics),
        SharedResponseStore(config.responses, clock, store),
        SharedSessions(clock, store),
        verdicts(config, clock) if config.redis else LocalVerdicts(store, clock),
        share.activity(clock),
        share.peers,
    )


def _prober(config: Config, parts: _Parts, clock: Clock) -> Prober:
    confirming, requests = confirming_depths(config), config.server.probe_requests
    return Prober(depths(config), parts.verdicts, clock, confirming, requests, activity=parts.activity)


def _admission(config: Config, clock: Clock, audit: AuditLog, tally: LimitTally) -> Admission:
    """Return the limits: counted in Redis for a fleet, else in the tally."""
    store: LimitStore = LocalLimits(tally, clock)
    if config.redis:
        from toolspeak.gateway.fleet_limits import FleetLimits  # noqa: PLC0415 # needs the extra `toolspeak[redis]`

        store = FleetLimits(config.redis, LocalLimits(tally, clock), clock)
    return Admission(config.limits, clock, tally, store, models=limits_of_models(config), audit=audit)


def _stored_keys(config: Config, clock: Clock, audit: AuditLog) -> StoredKeys | None:
    store = open_key_store(config)
    return None if store is None else StoredKeys(store, audit, clock)


def _tokens(config: Config, clock: Clock, audit: AuditLog) -> TokenCheck | None:
    """Return what checks tokens; None if none are accepted. Raises `MissingExtra`."""
    if not config.access.jwt.is_configured:
        return None
    require_extra("jwt", "access.jwt")
    from toolspeak.gateway.identity_tokens import IdentityTokens  # noqa: PLC0415 # needs the extra `toolspeak[jwt]`
    from toolspeak.gateway.jwks import ProviderKeys  # noqa: PLC0415

    return IdentityTokens(config.access.jwt, ProviderKeys(config.access.jwt, clock), audit, clock)


_OTEL: Final = "opentelemetry.trace"


def _spans(config: Config, clock: Clock) -> SpanSink | None:
    """Return where spans go; None if there is neither an endpoint nor an SDK, which would have loaded the API."""
    if not config.otel.endpoint and _OTEL not in sys.modules:
        return None
    from toolspeak.gateway.spans import open_spans  # noqa: PLC0415 # the API takes 40 ms to import

    return open_spans(config, clock)


def _runs(config: Config, directory: Directory, reader: RequestReader, turns: RunTurns, clock: Clock) -> RunsApi:
    if not config.offer.enabled:
        return DisabledRuns()
    from toolspeak.gateway.runs import RunsEndpoints  # noqa: PLC0415 # runs take long to import

    return RunsEndpoints(config, directory, reader, turns, clock)


if sys.platform != "win32":
    import resource

_KEEP_ALIVE = 75
"""Seconds that an idle connection stays open, unless a new client needs its place (see `connections.py`)."""
BACKLOG: Final = 2048
"""Connections that may wait to be accepted."""
_SOCKETS = 65_536
"""File descriptors that the process asks for."""
_SIGNS: Final = 6
"""How often a worker gives a sign of life in the time after which it would be killed."""
LINGER: Final = 5
"""Seconds for which a worker that is being replaced keeps idle connections open."""
_TICK, _SILENT, _COUNTDOWN, _LAST_WORDS = 0.1, 0.3, 10.0, 3.0
"""Seconds of the drain: between two looks, before the first line, between two lines, and for the last error frames."""
_MMAP_THRESHOLD = -3
"""`M_MMAP_THRESHOLD` of `<malloc.h>`."""


def run_server(
    app: Asgi, config: Config, ready: Callable[[str], None], read: Callable[[], Config] | None = None
) -> None:
    """Serve until a signal, then let open streams finish. `ready` is called with the URL of each listening socket.

    `read` reads the configuration again, on SIGHUP; without it SIGHUP ends the server like SIGTERM.
    """
    _run(_Server(app, config, ready, read))


def run_worker(app: Asgi, config: Config, link: WorkerLink) -> None:
    """Serve as one of several workers, on the sockets of their supervisor, until a signal or until it is gone."""
    _run(_WorkerServer(app, config, link), link.sockets)


def _run(server: "_Server", sockets: list[socket.socket] | None = None) -> None:
    _allow_sockets()
    _return_large_blocks()
    freeze_loaded()
    server.collector = Collector(lambda: len(server.server_state.tasks), CLOCK)
    # uvicorn has shut down in order when it raises KeyboardInterrupt again.
    with server.collector.thresholds(), suppress(KeyboardInterrupt):
        server.run(sockets)


def _return_large_blocks() -> None:
    """Let glibc give blocks of a megabyte and more back to the system when they are freed.

    By default it raises that threshold to the largest block freed so far, up to 32 MB: after one large body the next
    ones came from the heap, which stayed at twice its size.
    """
    if sys.platform == "linux":
        with suppress(AttributeError):  # musl has no such function
            ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, 1 << 20)


def _allow_sockets() -> None:
    """Raise the limit of open files: a stream has two sockets, and the usual 1,024 are soon used up."""
    if sys.platform != "win32":
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        with suppress(ValueError, OSError):  # some systems report a hard limit that they do not grant
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, _SOCKETS) if most > 0 else _SOCKETS, most))


class _Server(uvicorn.Server):
    """uvicorn with a drain that a person can follow, and with reloads.

    The first SIGINT or SIGTERM stops new connections and waits for open requests. A second SIGINT (Ctrl-C again) ends
    them: each stream gets its protocol's error, and everything is closed in order. uvicorn would stop at once instead,
    with tracebacks of the requests and an open client session. A third one ends the process.
    """

    def __init__(
        self,
        app: Asgi,
        config: Config,
        ready: Callable[[str], None],
        read: Callable[[], Config] | None = None,
        *,
        warns: bool = True,
    ) -> None:
        server = config.server
        self._tls: Final = TlsCertificates(server.tls, CLOCK, warns=warns) if server.tls.is_on else None
        self._handshake_seconds: Final = config.limits.header_seconds
        self._connections_open: Final = Connections(config.limits)
        super().__init__(
            uvicorn.Config(
                app,
                host=server.host,
                port=server.port,
                http=_connection_class(app, config, self._connections_open),
                loop="asyncio" if sys.platform == "win32" else "uvloop",
                ws="none",  # no protocol that is served here uses websockets
                proxy_headers=False,  # any client can write X-Forwarded-For; only a key identifies a client
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                backlog=BACKLOG,
                timeout_keep_alive=_KEEP_ALIVE,
            )
        )
        self._app: Final = app
        self._ready: Final = ready
        self._patience: Final = server.shutdown
        self._drain_delay: Final = server.drain_delay
        self._delays = False
        """SIGTERM ends it: load balancers get time to notice. A person who presses Ctrl-C does not wait for them."""
        self._is_impatient = False
        """A second Ctrl-C: open requests are ended."""
        self._reloader: Final = Reloader(app, read, self._tls) if read is not None else None
        self._reloading: asyncio.Task[None] | None = None
        """Keeps a reference to the running reload."""
        self._watching: asyncio.Task[None] | None = None
        """Looks at files that may change."""
        self.collector: Collector | None = None
        """That of the process, where the process is this server's alone."""

    @override
    async def startup(self, sockets: Any = None) -> None:
        # Before the gateway prints that it listens: a script that reads the line may send SIGHUP at once, and kill it.
        if sys.platform != "win32" and threading.current_thread() is threading.main_thread():
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._hang_up)
        await super().startup([])  # uvicorn would give clients 60 s for a handshake, and holds no place for them
        if self.should_exit:  # the gateway could not start, or a signal came meanwhile
            return
        await self._listen(sockets)
        self._watching = asyncio.get_running_loop().create_task(self._watch_files())
        if self.collector is not None:
            self.collector.start()
        for server in self.servers:
            for listening in server.sockets:
                self._ready(url_of(listening, is_tls=self._tls is not None))

    async def _listen(self, sockets: "list[socket.socket] | None") -> None:
        """Accept connections from the sockets, else at the configured address; exit if that is taken."""
        options: dict[str, Any] = {"backlog": BACKLOG}
        if self._tls is not None:
            options |= {"ssl": self._tls.context, "ssl_handshake_timeout": self._handshake_seconds}
        listen = asyncio.get_running_loop().create_server
        try:
            if sockets is None:
                self.servers = [await listen(self._connection, self.config.host, self.config.port, **options)]
            else:
                self.servers = [await listen(self._connection, sock=each, **options) for each in sockets]
        except OSError as error:
            _LOG.error("%s", error)
            await self.lifespan.shutdown()
            sys.exit(STARTUP_FAILURE)

    def _connection(self) -> asyncio.Protocol:
        build_protocol = cast("type[HttpConnection]", self.config.http_protocol_class)
        return build_protocol(self.config, self.server_state, self.lifespan.state)

    def _hang_up(self) -> None:
        """Reload, or end if the terminal was closed: that sends SIGHUP too, and no one could stop the server then."""
        if self._reloader is None or terminal_is_gone():
            self.should_exit = True
        else:
            self._reloading = asyncio.get_running_loop().create_task(self._reloader.reload())

    async def _watch_files(self) -> None:
        while (self._reloader is not None or self._tls is not None) and not self.should_exit:
            if self._tls is not None:
                await self._tls.look()
            await asyncio.sleep(LOOK_EVERY)
            if self._reloader is not None:
                await self._reloader.look()

    @override
    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        del frame
        if self._is_impatient and sig == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.raise_signal(signal.SIGINT)
        self._is_impatient = self._is_impatient or (self.should_exit and sig == signal.SIGINT)
        self._delays = self._delays or sig == signal.SIGTERM
        self._app.gateway.readiness.is_draining = True  # uvicorn looks at the next only every tenth of a second
        self.should_exit = True

    @override
    async def shutdown(self, sockets: Any = None) -> None:
        del sockets
        if self._watching is not None:
            self._watching.cancel()
        if self.collector is not None:
            self.collector.stop()
        await self._leave_balancers()
        for server in self.servers:
            server.close()
        self._end_idle_connections()
        self._app.gateway.viewers.close()
        await self._drain()
        await self._end_requests()
        await self.lifespan.shutdown()

    async def _leave_balancers(self) -> None:
        """Accept connections for `server.drain_delay` seconds more, while `/ready` fails.

        Kubernetes sends SIGTERM while its services still send clients here; those would be refused.
        """
        if not self._delays or not self._drain_delay:
            return
        _LOG.info("ending: /ready answers 503, and connections are accepted for %g s more", self._drain_delay)
        loop = asyncio.get_running_loop()
        until = loop.time() + self._drain_delay
        while loop.time() < until and not self._is_impatient:  # noqa: ASYNC110 # a signal handler sets it
            await asyncio.sleep(_TICK)

    def _end_idle_connections(self) -> None:
        """Close idle connections; those with a request close after their response."""
        for connection in list(self.server_state.connections):
            connection.shutdown()

    async def _drain(self) -> None:
        """Wait until all requests are answered, for at most `server.shutdown` seconds; say so while it takes long.

        A request that comes meanwhile, on a connection that was kept open for it, has as many seconds.
        """
        now = asyncio.get_running_loop().time
        began, next_line = now(), now() + _SILENT
        while (self.server_state.tasks or self.server_state.connections) and not self._is_impatient:
            left = (self._connections_open.last_request or began) + self._patience - now()
            if left <= 0:
                return
            if now() >= next_line and self.server_state.tasks:
                next_line = now() + _COUNTDOWN
                said = _counted(len(self.server_state.tasks)), left
                _LOG.warning("%s open, waiting up to %.0f s; Ctrl-C again ends them", *said)
            await asyncio.sleep(min(_TICK, left))

    async def _end_requests(self) -> None:
        """Cancel the requests that are left; `Gateway.handle` ends each with an error of its client's protocol."""
        tasks = tuple(self.server_state.tasks)
        if tasks:
            _LOG.warning("%s ended before the answer was complete", _counted(len(tasks)))
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=_LAST_WORDS)
        for connection in list(self.server_state.connections):
            if connection.transport.get_write_buffer_size() == 0:
                connection.transport.close()
            else:  # its client reads nothing
                connection.transport.abort()


class _WorkerServer(_Server):
    """A worker. On SIGHUP it retires: it drains because a new worker has taken its place."""

    def __init__(self, app: Asgi, config: Config, link: WorkerLink) -> None:
        super().__init__(app, config, lambda _: None, warns=link.number == 1)  # one line for all workers
        self._link: Final = link
        self._sign_every: Final = config.server.worker_timeout / _SIGNS
        self._retires = False

    @override
    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        # The supervisor sends nothing, so its end of the connection is readable only when it has been killed.
        asyncio.get_running_loop().add_reader(self._link.control, self._end_alone)
        self._link.ready()
        self._live()

    def _live(self) -> None:
        """Tell the supervisor now and then that the event loop runs."""
        self._link.live()
        asyncio.get_running_loop().call_later(self._sign_every, self._live)

    def _end_alone(self) -> None:
        """Drain without a supervisor.

        As for a restart: the next supervisor listens on the same port soon, and a load balancer may send a request on
        a connection in the moment in which it is closed. nginx answered such requests with 502.
        """
        asyncio.get_running_loop().remove_reader(self._link.control)
        _LOG.error("the supervisor of this worker is gone: the worker ends")
        self._retires = self.should_exit = True

    @override
    def _hang_up(self) -> None:
        self._retires = self.should_exit = True
        self._link.share.peers.is_replaced = True

    @override
    def _end_idle_connections(self) -> None:
        if not self._retires:
            super()._end_idle_connections()
            return
        self._connections_open.is_retiring = True
        for connection in list(self.server_state.connections):
            cast("HttpConnection", connection).retire(LINGER)


def url_of(listening: socket.socket, *, is_tls: bool = False) -> str:
    """Return the URL of a listening socket."""
    host, port = listening.getsockname()[:2]
    scheme = "https" if is_tls else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _counted(requests: int) -> str:
    return "1 request is" if requests == 1 else f"{requests} requests are"


def terminal_is_gone() -> bool:
    """Return whether the process had a terminal and lost it."""
    try:
        os.tcgetpgrp(sys.__stderr__.fileno() if sys.__stderr__ is not None else 2)
    except OSError as error:
        return error.errno == errno.EIO
    return False


def _connection_class(app: Asgi, config: Config, connections_open: Connections) -> type[HttpConnection]:
    """Return the protocol class of one server. uvicorn creates the instances, so the limits are class attributes."""
    shared = {"limits": config.limits, "connections_open": connections_open}
    if config.server.driver is Driver.PUSH:
        return type("PushConnection", (PushConnection,), {**shared, "application": app})
    return type("HttpConnection", (HttpConnection,), shared)


@contextmanager
def background_server(app: Asgi, config: Config) -> Generator[str]:
    """Serve in a thread while the block runs, and give the URL. Signals stay with the caller.

    Raises `BadConfig` if the server does not start.
    """
    urls: SimpleQueue[str] = SimpleQueue()
    server = _Server(app, config, urls.put)
    thread = Thread(target=_serve_quietly, args=(server, urls), daemon=True, name="gateway")
    thread.start()
    try:
        if not (url := urls.get()):
            raise BadConfig(f"the gateway could not listen on {config.server.host}. Start it with `toolspeak serve`")
        yield url
    finally:
        server.should_exit = True
        thread.join()


def _serve_quietly(server: _Server, urls: "SimpleQueue[str]") -> None:
    try:
        with suppress(SystemExit):  # how uvicorn ends when it cannot start; it has logged why
            server.run()
    finally:
        urls.put("")
