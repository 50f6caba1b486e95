"""A real gateway on a free port of loopback, and plain clients: no SDK smooths over what comes back."""

import asyncio
import http.client
import json
import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from typing import Any, TypeVar

from typing_extensions import override

from testkit.scripted_upstream import ScriptedUpstream
from toolspeak.config.shape import Config, Driver, Key, Limits, RateLimits, Server, Upstream
from toolspeak.engine.verdict import Depth
from toolspeak.gateway.asgi import Asgi
from toolspeak.gateway.server import _Server, build
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.upstreams import Auth

T = TypeVar("T")
DRIVER = Driver(os.environ.get("TOOLSPEAK_TEST_DRIVER", Driver.ASGI))
"""The driver of all gateways here: each test holds for both."""
ENVIRON = {"TOOLSPEAK_DRIVER": DRIVER.value}
"""The same for a gateway that is a process of its own."""
UPSTREAM_KEY = "sk-upstream-7f3a"


def finished(coroutine: Coroutine[object, object, T]) -> T:
    """Run a coroutine that waits for nothing, without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("it waits")


def base_of(wire: str) -> str:
    """Return what stands in a base URL behind the port."""
    return {"ollama": "", "gemini": "/v1beta"}.get(wire, "/v1")


def key(text: str, tenant: str = "ours", **more: Any) -> Key:  # noqa: ANN401 -- whatever a key can have
    """Make a tenant's key; limits may be given by their names."""
    limits = {each.name: more.pop(each.name) for each in fields(RateLimits) if each.name in more}
    return Key(tenant, sha256(text.encode()).digest(), limits=RateLimits(**limits), **more)


def towards(upstream: ScriptedUpstream, wire: str = "openai_chat", **more: Any) -> Upstream:  # noqa: ANN401 -- as above
    """Describe an upstream of this wire."""
    plain = Upstream("up", f"http://127.0.0.1:{upstream.port}{base_of(wire)}", wire, Auth.BEARER, UPSTREAM_KEY)
    return replace(plain, **more)


def config_of(*upstreams: Upstream, server: Server | None = None, **more: Any) -> Config:  # noqa: ANN401 -- as above
    """Describe a gateway on a free port, which probes nobody unless it is told to."""
    server = replace(server or Server(), driver=DRIVER)
    # The clients and the upstreams of a test are threads of the gateway's process: on a busy machine they make its loop
    # late, and it would send their crowd away, as it should. What it does then is tested in test_overload.py.
    limits = replace(more.pop("limits", Limits()), loop_delay_seconds=60.0)
    server = replace(server, port=0, probe=server.probe or Depth.OFF)
    return Config(server=server, upstreams=upstreams, limits=limits, **more)


class _Served(_Server):
    """Our server; it ends when it is told to, and not at the next tick."""

    over: asyncio.Event

    @override
    async def main_loop(self) -> None:
        self.over = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        self.running.set()
        await self.over.wait()

    running: threading.Event
    loop: asyncio.AbstractEventLoop


@dataclass(frozen=True)
class Reply:
    """A whole answer of the gateway."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body)


@dataclass(frozen=True)
class Watched:
    """An answer with the time of each piece, in seconds since it was asked for; the first one is its head."""

    status: int
    headers: Mapping[str, str]
    pieces: list[tuple[float, bytes]]

    @property
    def body(self) -> bytes:
        return b"".join(piece for _, piece in self.pieces)

    @property
    def gaps(self) -> list[float]:
        """Return how long the client waited for each piece."""
        times = [at for at, _ in self.pieces]
        return [later - earlier for earlier, later in zip([0.0, *times], times, strict=False)]


@dataclass
class Served:
    """A gateway that runs."""

    port: int
    app: Asgi
    server: _Served
    opened: list[socket.socket] = field(default_factory=list[socket.socket])
    tls: ssl.SSLContext | None = None
    """What requests trust, and show, where the gateway speaks HTTPS."""

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        seconds: float = 20.0,
    ) -> Reply:
        """Send one request on a connection of its own, and read the whole answer."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        if self.tls is not None:
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=seconds, context=self.tls)
        try:
            connection.request(method, path, data, {"content-type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            return Reply(answer.status, lowered(answer), answer.read())
        finally:
            connection.close()

    def post(self, path: str, body: object, headers: Mapping[str, str] | None = None, seconds: float = 20.0) -> Reply:
        """Ask for a turn."""
        return self.ask("POST", path, body, headers, seconds)

    def watch(self, path: str, body: object, headers: Mapping[str, str] | None = None) -> "Watched":
        """Ask for a turn, and note when each piece of its answer came."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        began = time.monotonic()
        try:
            connection.request("POST", path, json.dumps(body).encode(), {**(headers or {})})
            answer = connection.getresponse()
            watched = Watched(answer.status, lowered(answer), [(time.monotonic() - began, b"")])
            while piece := answer.read1(65536):
                watched.pieces.append((time.monotonic() - began, piece))
            return watched
        finally:
            connection.close()

    def connect(self, seconds: float = 10.0) -> socket.socket:
        """Open a bare connection; it is closed with the gateway if not before."""
        connection = socket.create_connection(("127.0.0.1", self.port), seconds)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.opened.append(connection)
        return connection

    def raw(self, data: bytes, seconds: float = 10.0) -> bytes:
        """Send bytes as they are, and read until the gateway closes."""
        connection = self.connect(seconds)
        connection.sendall(data)
        return read_all(connection)

    @property
    def inside(self) -> int:
        """Return how many requests the gateway counts."""
        return self.app.gateway.admission._inside

    @property
    def tasks(self) -> int:
        """Return how many requests the server works on."""
        return len(self.server.server_state.tasks)


def lowered(answer: http.client.HTTPResponse) -> dict[str, str]:
    """Return the headers with lower-case names."""
    return {name.lower(): value for name, value in answer.getheaders()}


def read_all(connection: socket.socket) -> bytes:
    """Read until the other side closes, however it does it."""
    pieces: list[bytes] = []
    try:
        while piece := connection.recv(65536):
            pieces.append(piece)
    except ConnectionResetError:
        pass
    return b"".join(pieces)


def send_until_cut(connection: socket.socket, piece: bytes, most: int, pause: float = 0.0) -> int:
    """Send a piece again and again until the gateway hangs up; return how many bytes it took."""
    sent = 0
    while sent < most:
        try:
            sent += connection.send(piece)
        except OSError:
            return sent
        time.sleep(pause)
    raise AssertionError(f"{sent} bytes were taken")


def read_reply(connection: socket.socket) -> bytes:
    """Read one whole answer that tells its length."""
    said = bytearray()
    while b"\r\n\r\n" not in said:
        piece = connection.recv(65536)
        assert piece, f"it ends after {bytes(said)!r}"
        said += piece
    start, _, body = bytes(said).partition(b"\r\n\r\n")
    length = int(re.findall(rb"content-length: (\d+)", start)[0])
    while len(body) < length:
        body += connection.recv(65536)
    return start + b"\r\n\r\n" + body


def head(path: str = "/v1/chat/completions", method: str = "POST", host: str = "127.0.0.1", **headers: object) -> bytes:
    """Write the head of a request; `_` in a header's name is a dash."""
    lines = [f"{method} {path} HTTP/1.1", f"host: {host}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def status_of(data: bytes) -> int:
    """Return the status of the first answer in these bytes; 0 if there is none."""
    return int(data.split(b" ", 2)[1]) if data.startswith(b"HTTP/1.1 ") else 0


def soon(holds: Callable[[], bool], seconds: float = 1.0) -> bool:
    """Tell whether something comes true in time."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


@contextmanager
def serving(config: Config, clock: Clock = CLOCK) -> Generator[Served]:
    """Run a gateway in a thread."""
    app = build(config, clock)
    urls: list[str] = []
    server = _Served(app, config, urls.append)
    server.running = threading.Event()
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert server.running.wait(20), "the gateway did not start"
    served = Served(int(urls[0].rpartition(":")[2]), app, server)
    try:
        yield served
    finally:
        for connection in served.opened:
            connection.close()
        server.loop.call_soon_threadsafe(server.over.set)
        thread.join(20)
        assert not thread.is_alive(), "the gateway did not stop"
