"""Answers probes and Prometheus for a worker, on a port of its own.

GET /live       200 while the worker's event loop runs
GET /ready      200 while it holds its lease and claims runs, else 503
GET /metrics    its load, for an autoscaler: the loads of all workers of a cell add up to its running and waiting runs

There are no keys: bind it to an address that only the cluster reaches. It says nothing about a run or a tenant.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

from toolspeak.agent.durable.worker import Worker
from toolspeak.errors import BadConfig, RunsUnavailable

_TIMEOUT: Final = 5.0
"""Seconds for a whole request."""
_LINE: Final = 4096
_METRICS: Final = """\
# HELP toolspeak_worker_runs Runs that this worker works on.
# TYPE toolspeak_worker_runs gauge
toolspeak_worker_runs {running}
# HELP toolspeak_runs_waiting Runs that wait in the queue of this worker's cell.
# TYPE toolspeak_runs_waiting gauge
toolspeak_runs_waiting {waiting}
# HELP toolspeak_worker_load Runs that this worker works on, and its share of those that wait: scale by its average.
# TYPE toolspeak_worker_load gauge
toolspeak_worker_load {load:.2f}
"""


@asynccontextmanager
async def health_server(worker: Worker, address: str) -> AsyncGenerator[int]:
    """Serve at `HOST:PORT` and yield the port. Raises `BadConfig` if the address is malformed or taken."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise BadConfig(f"--health: {address[:80]!r} is not an address and a port such as 127.0.0.1:4142")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(TimeoutError, OSError, ValueError):  # ValueError: a line that is too long
                async with asyncio.timeout(_TIMEOUT):
                    await _answer(worker, reader, writer)
        finally:
            writer.close()

    try:
        server = await asyncio.start_server(answer, host.strip("[]"), int(port), limit=_LINE)
    except (OSError, OverflowError) as error:
        raise BadConfig(f"--health: {address} cannot be listened on: {error}") from None
    async with server:
        yield int(server.sockets[0].getsockname()[1])


async def _answer(worker: Worker, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    words = (await reader.readline()).split()
    while (await reader.readline()).strip():  # the headers
        pass
    status, body = await _response(worker, bytes(words[1]) if len(words) > 1 else b"")
    head = f"HTTP/1.1 {status}\r\ncontent-type: text/plain; version=0.0.4\r\ncontent-length: {len(body)}\r\n"
    writer.write(f"{head}connection: close\r\n\r\n{body}".encode())
    await writer.drain()


async def _response(worker: Worker, path: bytes) -> tuple[str, str]:
    match path:
        case b"/live":
            return "200 OK", "live\n"
        case b"/ready":
            return ("200 OK", "ready\n") if worker.is_ready else ("503 Service Unavailable", "not ready\n")
        case b"/metrics":
            try:
                waiting, load = await worker.load()
            except RunsUnavailable:
                return "503 Service Unavailable", "the database of runs does not respond\n"
            return "200 OK", _METRICS.format(running=worker.running, waiting=waiting, load=load)
        case _:
            return "404 Not Found", "there are /live, /ready and /metrics\n"
