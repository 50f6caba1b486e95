"""Builds the gateway from its configuration and runs it on uvicorn, set up for long streams and many clients.

`connections.py` adds the limits that uvicorn lacks.
"""

import ctypes
import gc
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import uvicorn
from typing_extensions import override

from toolspeak import wires
from toolspeak.config.assemble import assemble, confirming_depths, depths, verdicts
from toolspeak.config.shape import Config
from toolspeak.gateway.access import Admission, HostPolicy, Keyring
from toolspeak.gateway.app import DisabledRuns, Gateway, RunsApi
from toolspeak.gateway.asgi import Asgi
from toolspeak.gateway.connections import Connections, HttpConnection
from toolspeak.gateway.overload import Overload
from toolspeak.gateway.request_reader import RequestReader
from toolspeak.gateway.response_store import ResponseStore
from toolspeak.gateway.routes import Routes
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.directory import Directory
from toolspeak.runtime.learned import SHARED
from toolspeak.runtime.offload import Offload
from toolspeak.runtime.prober import Prober
from toolspeak.runtime.transport import HttpTransport, Transport


def build(config: Config, clock: Clock = CLOCK, transport: Transport | None = None) -> Asgi:
    """Return the ASGI application; nothing is connected yet. It owns `transport` and closes it at shutdown."""
    transport = transport or HttpTransport()
    # SHARED, whatever keys there are: clients of a gateway do not trust each other, so none may change shared verdicts.
    directory = assemble(config, transport, SHARED, clock)
    reader = RequestReader(config.limits.request, Offload())
    gateway = Gateway(
        config,
        Routes(wires.apis()),
        directory,
        transport,
        Keyring(config.keys),
        HostPolicy(config),
        Admission(config.limits, clock),
        Overload(config.limits, clock),
        reader,
        Prober(depths(config), verdicts(config, clock), clock, confirming_depths(config), config.server.probe_requests),
        _runs(config, directory, reader, clock),
        ResponseStore(config.responses, clock),
        clock,
    )
    return Asgi(gateway, config.limits)


def _runs(config: Config, directory: Directory, reader: RequestReader, clock: Clock) -> RunsApi:
    if not config.offer.enabled:
        return DisabledRuns()
    from toolspeak.gateway.runs import RunsEndpoints  # noqa: PLC0415 # runs take long to import

    return RunsEndpoints(config, directory, reader, clock)


if sys.platform != "win32":
    import resource

_KEEP_ALIVE = 75
"""Seconds that an idle connection stays open, unless a new client needs its place (see `connections.py`)."""
_BACKLOG = 2048
_SOCKETS = 65_536
"""File descriptors that the process asks for."""
_MMAP_THRESHOLD = -3
"""`M_MMAP_THRESHOLD` of `<malloc.h>`."""


def run_server(app: Asgi, config: Config, ready: Callable[[str], None]) -> None:
    """Serve until a signal, then let open streams finish. `ready` is called with the URL of each listening socket."""
    _allow_sockets()
    _calm_collector()
    _return_large_blocks()
    with suppress(KeyboardInterrupt):  # uvicorn has shut down in order, and raises it again
        _Server(app, config, ready).run()


def _calm_collector() -> None:
    """Collect cycles less often: a stream creates none, and the modules loaded by now are never freed."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


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
    def __init__(self, app: Asgi, config: Config, ready: Callable[[str], None]) -> None:
        server = config.server
        super().__init__(
            uvicorn.Config(
                app,
                host=server.host,
                port=server.port,
                http=_connection_class(config),
                loop="asyncio" if sys.platform == "win32" else "uvloop",
                ws="none",  # no protocol that is served here uses websockets
                proxy_headers=False,  # any client can write X-Forwarded-For; only a key identifies a client
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                backlog=_BACKLOG,
                timeout_keep_alive=_KEEP_ALIVE,
                # After it uvicorn cancels the requests; `Gateway.handle` then ends open streams with an error frame.
                timeout_graceful_shutdown=int(server.shutdown),
            )
        )
        self._ready: Final = ready

    @override
    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        for server in self.servers:
            for socket in server.sockets:
                host, port = socket.getsockname()[:2]
                self._ready(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")


def _connection_class(config: Config) -> type[HttpConnection]:
    """Return the protocol class of one server. uvicorn creates the instances, so the limits are class attributes."""
    shared = {"limits": config.limits, "connections_open": Connections(config.limits)}
    return type("HttpConnection", (HttpConnection,), shared)
