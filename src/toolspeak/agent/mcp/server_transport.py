"""Transports to a server: stdin and stdout of its own process, or streamable HTTP. Both are bounded.

A process runs in a sandbox (`confinement.py`) with only the configured environment; every process that it starts ends
with it. The length of a line is limited. Its stderr is read all the time, since a full pipe would block the server, and
only the end of it is kept. An HTTP response has a maximum size and must not be compressed.
"""

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCNotification, jsonrpc_message_adapter
from typing_extensions import override

from toolspeak.agent.mcp.definition import plain_line
from toolspeak.agent.sandbox.process import RunningService, run_service, wait_until_exited
from toolspeak.agent.sandbox.sandbox import Sandbox, Service
from toolspeak.config.shape import McpServer

LONGEST_LINE: Final = 8 << 20
MOST_JUNK: Final = 10_000
"""Maximum number of lines that are not messages: some servers print a greeting."""
_LINES_AT_ONCE: Final = 50
_CHANGED: Final = "notifications/tools/list_changed"
"""The one notification that toolspeak uses. Others (logs, progress) are dropped here: the SDK's cost for each of them
would make a flood expensive."""
_LAST_WORDS: Final = 2048
_SHOWN_LINES: Final = 3
_SHOWN_WORDS: Final = 300
_PIECE: Final = 64 * 1024
_GRACE: Final = 1.0
_Incoming = MemoryObjectSendStream[SessionMessage | Exception]
_Outgoing = MemoryObjectReceiveStream[SessionMessage]


class StdioTransport:
    """The connection to one process.

    It replaces the SDK's own stdio transport, which has no limit for a line and takes quadratic time in its length.
    """

    def __init__(self, sandbox: Sandbox, service: Service, ended: asyncio.Event) -> None:
        """Start nothing yet. `ended` is set when the process closes its output."""
        self._sandbox: Final = sandbox
        self._service: Final = service
        self._words = b""
        self._buffer: Final = bytearray()
        self._host: RunningService | None = None
        self._why = ""
        self._ended: Final = ended
        self.over = False
        """Whether the process closed its output while we were still reading."""

    @property
    def why(self) -> str:
        """Return why it ended, if known: the sandbox stopped it, or it wrote something too large."""
        return (self._host.why if self._host is not None else "") or self._why

    @property
    def end(self) -> str:
        """Return how it ended, for a person, with the cleaned last lines of its stderr."""
        lines = self._words.decode("utf-8", "replace").strip().splitlines()
        words = plain_line(" ".join(lines[-_SHOWN_LINES:]), _SHOWN_WORDS)
        return f"it ended{f' ({self.why})' if self.why else ''}{f'; its last words: {words}' if words else ''}"

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[TransportStreams]:
        """Start the process, and end it on exit. Raises `OSError` or `BadField` if it cannot be started."""
        async with run_service(self._sandbox, self._service) as host:
            self._host = host
            try:
                async with self._streams(host.process) as streams:
                    yield streams
            finally:
                # Shielded: a cancelled run must still wait until the process is gone, or it would outlive the run.
                with anyio.CancelScope(shield=True):
                    await _end(host)

    @asynccontextmanager
    async def _streams(self, process: Process) -> AsyncGenerator[TransportStreams]:
        arrived, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, leaving = anyio.create_memory_object_stream[SessionMessage](0)
        async with arrived, incoming, outgoing, leaving, anyio.create_task_group() as group:
            group.start_soon(self._read, process, arrived)
            group.start_soon(self._write, process, leaving)
            group.start_soon(self._listen, process)
            try:
                yield incoming, outgoing
            finally:
                group.cancel_scope.cancel()

    async def _read(self, process: Process, arrived: _Incoming) -> None:
        junk = lines = 0
        try:
            async with arrived:
                while junk < MOST_JUNK and (line := await self._line(process)):
                    lines += 1
                    if lines % _LINES_AT_ONCE == 0:
                        await asyncio.sleep(0)  # lines in the buffer are read without a pause: let other tasks run
                    try:
                        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                    except ValueError:
                        junk += 1
                        continue
                    if not isinstance(message, JSONRPCNotification) or message.method == _CHANGED:
                        await arrived.send(SessionMessage(message))
                self.over = True
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
            pass  # the session has closed the stream
        finally:
            if junk >= MOST_JUNK:
                self._why = f"it wrote {junk} lines that are no messages"
            self._ended.set()

    async def _line(self, process: Process) -> bytes:
        """Return a line; empty at the end of the stream, or if the line is too long.

        This does not use `StreamReader.readline`: the errors that it raises keep its buffer alive, and a server that
        writes an endless line would hold 64 MB of our memory.
        """
        looked = 0
        while (end := self._buffer.find(b"\n", looked)) < 0:
            looked = len(self._buffer)
            if looked > LONGEST_LINE:
                self._why = f"it wrote a line of over {LONGEST_LINE >> 20} MiB"
                self._buffer.clear()
                return b""
            piece = await process.stdout.read(_PIECE) if process.stdout is not None else b""
            if not piece:
                return b""
            self._buffer.extend(piece)
        line = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        return line

    async def _write(self, process: Process, leaving: _Outgoing) -> None:
        if process.stdin is None:
            return
        try:
            async for each in leaving:
                body = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(body.encode() + b"\n")
                await process.stdin.drain()
        except (ConnectionError, RuntimeError):
            self._ended.set()

    async def _listen(self, process: Process) -> None:
        while process.stderr is not None and (piece := await process.stderr.read(_PIECE)):
            self._words = (self._words + piece)[-_LAST_WORDS:]


async def _end(host: RunningService) -> None:
    """Let the process exit by itself, then end it and every process it started. A sandbox does not forward SIGTERM."""
    process = host.process
    if process.stdin is not None:
        process.stdin.close()
    for number in (None,) if host.is_guarded else (None, signal.SIGTERM):
        if number is not None:
            _signal(process, number)
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                await wait_until_exited(process)
                break
    await host.end()
    transport = getattr(process, "_transport", None)
    if transport is not None:  # a grandchild may keep the pipes open
        transport.close()


def _signal(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


# ---------------------------------------------------------------- HTTP


LARGEST_ANSWER: Final = 8 << 20
_CONNECT: Final = 10.0
_EVENTS: Final = "text/event-stream"


@asynccontextmanager
async def open_http_transport(server: McpServer) -> AsyncGenerator[TransportStreams]:
    """Connect to a server over HTTP. Redirects are not followed, and proxies from the environment are not used."""
    waits = httpx2.Timeout(_CONNECT, read=max(server.seconds, _CONNECT) * 2)
    headers = {**dict(server.headers), "accept-encoding": "identity"}  # a small compressed response can be a huge one
    bounded = _Bounded(httpx2.AsyncHTTPTransport(trust_env=False))
    async with (
        httpx2.AsyncClient(headers=headers, timeout=waits, transport=bounded, trust_env=False) as client,
        streamable_http_client(server.url, http_client=client, max_sse_event_size=LARGEST_ANSWER) as streams,
    ):
        yield streams


class _Bounded(httpx2.AsyncBaseTransport):
    """Limits the size of responses. The SDK limits the size of events itself."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner: Final = inner

    @override
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.RemoteProtocolError("the answer is compressed, which was not asked for", request=request)
        if not response.headers.get("content-type", "").startswith(_EVENTS):
            response.stream = _BoundedStream(response.stream)
        return response

    @override
    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: object) -> None:
        if not isinstance(inner, httpx2.AsyncByteStream):
            raise TypeError(f"{type(inner).__name__} is no asynchronous stream")
        self._inner: Final = inner

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._inner:
            size += len(piece)
            if size > LARGEST_ANSWER:
                raise httpx2.StreamError(f"the answer is over {LARGEST_ANSWER >> 20} MiB")
            yield piece

    @override
    async def aclose(self) -> None:
        await self._inner.aclose()
