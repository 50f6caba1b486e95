"""uvicorn, made safe for slow and greedy clients: what it has no limit for is limited here."""

import asyncio
import gc
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar, Final, cast

import httptools
import uvicorn
from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from toolspeak.config.shape import Config, Limits
from toolspeak.gateway.asgi import Asgi

if sys.platform != "win32":
    import resource

_KEEP_ALIVE = 75
_BACKLOG = 2048
_SOCKETS = 65_536
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_LINE, _BETWEEN = len("  HTTP/1.1\r\n\r\n"), len(": \r\n")


def serve(app: Asgi, config: Config, ready: Callable[[str], None]) -> None:
    """Serve until a signal; open streams may finish."""
    _allow_sockets()
    _calm_collector()
    with suppress(KeyboardInterrupt):  # uvicorn has ended in peace, and raises it again
        _Server(app, config, ready).run()


def _calm_collector() -> None:
    """Look for cycles less often: what a stream makes has none, and what is loaded by now stays."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def _allow_sockets() -> None:
    """Raise the limit of open files: a stream has two sockets, and the usual 1,024 are soon used up."""
    if sys.platform != "win32":
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        with suppress(ValueError, OSError):  # some systems promise more than they give
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, _SOCKETS) if most > 0 else _SOCKETS, most))


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
                proxy_headers=False,  # who asks is told by a key, never by a header that anybody can write
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
    patience: ClassVar = 300.0
    """Seconds in which a client must take something of its answer."""
    _head_timer: asyncio.TimerHandle | None = None
    _rest_timer: asyncio.TimerHandle | None = None
    _stall_timer: asyncio.TimerHandle | None = None
    _unread = 0
    """Bytes since the parser told of something; it keeps those of a header, in front of a body or behind it."""
    _head_large = False

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast("asyncio.Transport", transport))
        self._await_head()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._head_timer, self._rest_timer, self._stall_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    @override
    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self._unread += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._stay(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self.send_400_response("this is no HTTP/1.1 request for a path")
        if self._unread > self.limits.header_bytes:
            self._refuse_head()

    @override
    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._head_timer is None:
            self._await_head()

    @override
    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head_timer is not None:  # what stands behind the body is no header: it could show a key, or a host
            super().on_header(name, value)

    @override
    def on_headers_complete(self) -> None:
        self._unread = 0
        self._head_large = self._head_bytes() > self.limits.header_bytes
        if self._head_large or not self.url.startswith(b"/"):  # a URL with a host is for proxies
            raise ValueError  # ends in send_400_response
        if not self.parser.should_upgrade():
            self._head_came()
            super().on_headers_complete()

    @override
    def on_body(self, body: bytes) -> None:
        self._unread = 0
        super().on_body(body)

    @override
    def on_message_complete(self) -> None:
        self._unread = 0
        self._rest_came()
        if not self.parser.should_upgrade():
            super().on_message_complete()

    @override
    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete and self.cycle.more_body:  # refused before all had come: that may take a while
            self._rest_timer = self.loop.call_later(self.limits.header_seconds, self.transport.close)

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall_timer = self.loop.call_later(self.patience, self.transport.abort)

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stall_timer is not None:
            self._stall_timer.cancel()

    @override
    def send_400_response(self, msg: str) -> None:
        if self._head_large:
            self._refuse_head()
        else:
            super().send_400_response(msg)

    def _stay(self, rest: bytes) -> None:
        """Read a request again without its wish to upgrade: the parser takes what follows for another protocol."""
        lines = [b"%b %b HTTP/1.1" % (self.parser.get_method(), self.url)]
        lines += [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(b"\r\n".join((*lines, b"", rest)))

    def _head_bytes(self) -> int:
        line = len(self.parser.get_method()) + len(self.url) + _LINE
        return line + sum(len(name) + len(value) + _BETWEEN for name, value in self.headers)

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self.limits.header_seconds, self.transport.close)

    def _head_came(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _rest_came(self) -> None:
        if self._rest_timer is not None:
            self._rest_timer.cancel()
            self._rest_timer = None

    def _refuse_head(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()
