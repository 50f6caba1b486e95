"""uvicorn, made safe for slow and greedy clients: what it has no limit for is limited here."""

import asyncio
import sys
from collections.abc import Callable
from typing import Any, ClassVar, Final, cast

import uvicorn
from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from toolspeak.config.shape import Config, Limits
from toolspeak.gateway.asgi import Asgi

_KEEP_ALIVE = 75
_BACKLOG = 2048
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def serve(app: Asgi, config: Config, ready: Callable[[str], None]) -> None:
    """Serve until a signal; open streams may finish."""
    _Server(app, config, ready).run()


class _Server(uvicorn.Server):
    def __init__(self, app: Asgi, config: Config, ready: Callable[[str], None]) -> None:
        server = config.server
        super().__init__(
            uvicorn.Config(
                app,
                host=server.host,
                port=server.port,
                http=type("Guarded", (_Guarded,), {"limits": config.limits}),
                loop="asyncio" if sys.platform == "win32" else "uvloop",
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                backlog=_BACKLOG,
                timeout_keep_alive=_KEEP_ALIVE,
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


class _Guarded(HttpToolsProtocol):
    """uvicorn's protocol with limits for a request's head: its size, and how long it may take to come."""

    limits: ClassVar = Limits()
    _head_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _head_large = False

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast("asyncio.Transport", transport))
        self._await_head()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._head_came()
        super().connection_lost(exc)

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._head_timer is not None:
            self._head_bytes += len(data)
            if self._head_bytes > self.limits.header_bytes:
                self._refuse_head()

    @override
    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._head_timer is None:
            self._await_head()

    @override
    def on_headers_complete(self) -> None:
        self._head_came()
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > self.limits.header_bytes:
            self._head_large = True
            raise ValueError  # ends in send_400_response
        super().on_headers_complete()

    @override
    def send_400_response(self, msg: str) -> None:
        if self._head_large:
            self._refuse_head()
        else:
            super().send_400_response(msg)

    def _await_head(self) -> None:
        self._head_bytes = 0
        self._head_timer = self.loop.call_later(self.limits.header_seconds, self.transport.close)

    def _head_came(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse_head(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()
