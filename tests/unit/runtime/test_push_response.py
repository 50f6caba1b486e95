"""Responses that are read over TLS, where the event loop has buffers and states of its own."""

import asyncio
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop

from toolspeak.runtime.outbound import Outbound
from toolspeak.runtime.push_transport import PushTransport
from toolspeak.runtime.transport import Response, TransportError

SIZE = 300_000
"""Bytes of a body: more than one read of the event loop, and few enough that the end is seen while nobody reads."""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a certificate of 127.0.0.1, with its key in the same file."""
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    subject = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
    command = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject)
    subprocess.run([*command, "-keyout", str(file), "-out", str(file)], check=True, capture_output=True)
    return file


@contextmanager
def answering(certificate: Path) -> Generator[str]:
    """Answer one request in a thread, and end the connection before the last byte of the body; gives the URL."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def serve() -> None:
        with listener.accept()[0] as plain, context.wrap_socket(plain, server_side=True) as connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (SIZE + 1) + b"x" * SIZE)
            connection.shutdown(socket.SHUT_WR)
            with suppress(OSError):
                connection.recv(1)  # until the other side is gone

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


async def read_and_leave(response: Response) -> None:
    """Read slowly, and close the response in the moment in which more of it arrives."""
    with suppress(TransportError):  # uvloop drops what has arrived before the end of a connection that is not read
        await asyncio.sleep(0.3)  # the end of the connection arrives while nothing is read
        await response.read()
        await response.read()
    response.close()


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_response_over_tls_is_closed_while_it_arrives(
    certificate: Path, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    said: list[dict[str, Any]] = []

    async def run(url: str) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
        transport = PushTransport({url: Outbound(ca_file=str(certificate))})
        try:
            await read_and_leave(await transport.send("GET", f"{url}/", (), b""))
            await asyncio.sleep(0.05)
        finally:
            await transport.close()
            await asyncio.sleep(0.05)

    with answering(certificate) as url, asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(asyncio.wait_for(run(url), 20))
    assert said == []
