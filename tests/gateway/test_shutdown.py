"""The gateway ends when it is told to, lets streams finish, and does not start where strangers could reach it."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import pytest

from testkit.grammar import read_stream
from testkit.protocols import WIRES, error_faults, question
from testkit.scripted_upstream import Asked, hang, listening
from testkit.vendor_answers import STREAMS, Answer
from tests.gateway.scene import (
    ENVIRON,
    Served,
    config_of,
    head,
    key,
    read_all,
    read_reply,
    serving,
    soon,
    status_of,
    towards,
)
from toolspeak.config import check_public
from toolspeak.config.shape import Config, Durable, Server, Upstream
from toolspeak.errors import BadConfig
from toolspeak.gateway import runs
from toolspeak.gateway.asgi import AsgiMessage
from toolspeak.gateway.metrics import Metrics
from toolspeak.gateway.request_reader import RequestReader
from toolspeak.gateway.run_turns import RunTurns
from toolspeak.gateway.runs import RunsEndpoints
from toolspeak.gateway.server import build
from toolspeak.gateway.trace_log import open_traces
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.runtime import replica_client as runtime
from toolspeak.runtime.clock import CLOCK
from toolspeak.runtime.directory import Directory
from toolspeak.runtime.offload import Offload
from toolspeak.runtime.transport import DEFAULT_TIMEOUTS, Headers, Response, Timeouts, TransportError
from toolspeak.runtime.upstream_activity import UpstreamActivity

LONG = Answer("It is cold. " * 8)


async def drip(asked: Asked) -> None:
    """Take more than a second for the answer."""
    asked.head()
    for event in STREAMS["openai_chat"](LONG).encode().split(b"\n\n")[:-1]:
        await asked.chunk(event + b"\n\n")
        await asyncio.sleep(0.04)
    await asked.end()


@contextmanager
def started(*options: str) -> Generator[tuple[subprocess.Popen[str], int]]:
    """Run `toolspeak serve` as a person would."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TOOLSPEAK")}
    environ |= ENVIRON
    command = [sys.executable, "-m", "toolspeak", "serve", "--port", "0", *options]
    process = subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr
        found = re.search(r"listens on http://[^ ]*:(\d+)", process.stderr.readline())
        assert found
        yield process, int(found[1])
    finally:
        process.kill()
        process.communicate()


def refused(port: int) -> bool:
    """Tell whether nobody listens there any more."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except ConnectionRefusedError:
        return True
    return False


def test_a_signal_lets_a_stream_finish_and_takes_nobody_new() -> None:
    with listening() as upstream, started("--upstream", upstream.url) as (process, port):
        upstream.answers(drip)
        served = Served(port, None, None)  # pyright: ignore[reportArgumentType] # it is only asked
        resting = served.connect()
        resting.sendall(head("/health", "GET"))
        assert b"ok" in read_reply(resting)
        asked = question("anthropic", stream=True)
        bodies: list[bytes] = []
        client = threading.Thread(target=lambda: bodies.append(served.post(asked.path, asked.body).body))
        client.start()
        upstream.wait_for(1)
        time.sleep(0.2)
        process.terminate()
        assert soon(lambda: refused(port), 2)
        assert read_all(resting) == b"", "a connection that rests is closed at once"
        resting.close()
        assert process.poll() is None
        assert not bodies, "the stream goes on"
        client.join(20)
        found = read_stream("anthropic", bodies[0])
        assert (found.text, found.error) == (LONG.text, "")
        assert soon(lambda: process.poll() is not None, 5)
        assert process.returncode in (0, -signal.SIGTERM)


@pytest.mark.parametrize("wire", WIRES)
def test_what_does_not_finish_in_time_is_cut_and_told_so_p6(wire: str) -> None:
    """Its upstream's connection is closed too."""
    with listening() as upstream:
        upstream.answers(hang)
        with serving(config_of(towards(upstream), server=Server(shutdown=0.0))) as gateway:
            asked = question(wire)
            connection = gateway.connect()
            body = json.dumps(asked.body).encode()
            connection.sendall(head(asked.path, content_length=len(body)) + body)
            upstream.wait_for(1)
            gateway.opened.clear()
        said = read_all(connection)
        connection.close()
        assert upstream.asked[0].hung_up.wait(10)
    status = 529 if wire == "anthropic" else 503
    assert status_of(said) == status
    assert error_faults(wire, status, json.loads(said.partition(b"\r\n\r\n")[2])) == []
    assert b"x-should-retry: true" in said


@pytest.mark.parametrize("wire", WIRES)
def test_a_stream_that_does_not_finish_in_time_ends_with_its_protocols_error_p6(wire: str) -> None:
    """The connection was cut without a word: some clients take what they have for the whole answer."""

    async def begin(asked: Asked) -> None:
        asked.head()
        await asked.chunk(STREAMS["openai_chat"](LONG).encode()[:2000])
        await asyncio.sleep(3600)

    with listening() as upstream:
        upstream.answers(begin)
        with serving(config_of(towards(upstream), server=Server(shutdown=0.0))) as gateway:
            asked = question(wire, stream=True)
            connection = gateway.connect()
            body = json.dumps(asked.body).encode()
            connection.sendall(head(asked.path, content_length=len(body)) + body)
            said = bytearray()
            while b"It" not in said:
                said += connection.recv(65536)
            gateway.opened.clear()
        said += read_all(connection)
        connection.close()
        assert upstream.asked[0].hung_up.wait(10)
    assert said.endswith(b"0\r\n\r\n"), "the response has an end"
    chunks = bytes(said).partition(b"\r\n\r\n")[2]
    assert "shuts down" in read_stream(wire, unchunked(chunks)).error


def unchunked(data: bytes) -> bytes:
    body = b""
    while data:
        size, _, rest = data.partition(b"\r\n")
        body += rest[: int(size, 16)]
        data = rest[int(size, 16) + 2 :]
    return body


def exit_of(*options: str) -> tuple[int, str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TOOLSPEAK")}
    command = [sys.executable, "-m", "toolspeak", "serve", "--upstream", "http://127.0.0.1:1/v1", *options]
    ended = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=30, check=False)
    return ended.returncode, ended.stderr


EVERYWHERE = "0.0.0.0"  # noqa: S104 # that is what is tested
PUBLIC = (EVERYWHERE, "::", "192.0.2.7", "[::]", "localhost.evil.com", "127.0.0.1.nip.io", "fe80::1")


def test_a_public_address_without_a_key_is_refused_with_what_to_do_safe6() -> None:
    code, said = exit_of("--host", EVERYWHERE, "--port", "0")
    assert code not in (0, None)
    assert repr(EVERYWHERE) in said
    for way_out in ("--key", "TOOLSPEAK_KEY", "127.0.0.1"):
        assert way_out in said
    assert "Traceback" not in said
    for host in PUBLIC:
        with pytest.raises(BadConfig, match="--key"):
            check_public(Config(server=Server(host=host)))
        check_public(Config(server=Server(host=host), keys=(key("k"),)))
    for host in ("127.0.0.1", "::1", "[::1]", "localhost", "127.0.0.9"):
        check_public(Config(server=Server(host=host)))


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, said = exit_of("--port", str(taken.getsockname()[1]))
    assert code not in (0, None)
    assert "already in use" in said
    assert "Traceback" not in said


def test_with_a_key_any_address_is_good_and_an_interrupt_ends_in_peace_safe6() -> None:
    with listening() as upstream:
        options = ("--upstream", upstream.url, "--host", EVERYWHERE, "--key", "sk-gateway-1")
        with started(*options) as (process, port):
            served = Served(port, None, None)  # pyright: ignore[reportArgumentType] # it is only asked
            assert served.ask("GET", "/v1/models", None, {"host": "tools.example.com"}).status == 401
            headers = {"host": "tools.example.com", "x-api-key": "sk-gateway-1"}
            assert served.ask("GET", "/v1/models", None, headers).status == 200
            process.send_signal(signal.SIGINT)
            assert soon(lambda: process.poll() is not None, 5)
            assert process.returncode == 0


def test_it_starts_although_its_upstream_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "_SOON", 0.2)
    with socket.socket() as silent, listening() as upstream:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        began = time.monotonic()
        with serving(config_of(towards(upstream, url=url))) as gateway:
            assert time.monotonic() - began < 5
            assert gateway.ask("GET", "/health").status == 200
            assert gateway.ask("GET", "/v1/models").status == 503


class Unplugged:
    """A transport on which nothing is reached."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.is_closed = False

    async def send(
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: Timeouts = DEFAULT_TIMEOUTS
    ) -> Response:
        del method, headers, body, timeouts
        self.asked.append(url)
        raise TransportError(Failure(FailureKind.TRANSIENT, "unplugged"), connected=False)

    async def close(self) -> None:
        self.is_closed = True


def test_the_gateway_uses_the_transport_that_it_is_given_and_closes_it() -> None:
    transport, sent = Unplugged(), list[str]()
    app = build(config_of(Upstream("up", "http://127.0.0.1:9/v1")), transport=transport)

    async def receive() -> AsgiMessage:
        await asyncio.sleep(0.01)  # upstreams are looked at in the background
        return {}

    async def send(message: AsgiMessage) -> None:
        assert transport.is_closed is bool(sent)
        sent.append(str(message["type"]))

    asyncio.run(app({"type": "lifespan"}, receive, send))
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert transport.asked
    assert all(url.startswith("http://127.0.0.1:9/") for url in transport.asked)


def test_a_gateway_that_still_opens_its_store_of_runs_ends_run10(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = asyncio.Event()

    @asynccontextmanager
    async def hanging(config: Config, *, patience: float) -> AsyncGenerator[None]:
        del config, patience
        try:
            await asyncio.sleep(3600)
            yield
        finally:
            ended.set()

    async def open_and_close() -> None:
        config = Config(runs=Durable(database="postgresql://127.0.0.1:9/none"))
        reader = RequestReader(config.limits.request, Offload())
        turns = RunTurns(open_traces(config, CLOCK), Metrics(), UpstreamActivity(), CLOCK)
        endpoints = RunsEndpoints(config, Directory([], {}), reader, turns, CLOCK)
        await endpoints.open()
        assert not ended.is_set()
        await endpoints.close()
        assert ended.is_set()

    monkeypatch.setattr(runs, "open_durable_runs", hanging)
    monkeypatch.setattr(runs, "PATIENCE", 0.01)
    asyncio.run(open_and_close())
