"""A server over the stdin and stdout of its own process.

It gets the environment that is named and nothing else, is in a process group of its own, and all of the group ends
with it. A line may be so long and no longer; what it writes to stderr is read, and only the end of it is kept.
"""

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from toolspeak.runtime.tools.mcp.plain import plainest
from toolspeak.runtime.tools.mcp.server import McpServer

LONGEST_LINE: Final = 8 << 20
MOST_JUNK: Final = 10_000
"""Lines that are no message; some servers greet."""
_LAST_WORDS: Final = 2048
_SHOWN_LINES: Final = 3
_SHOWN_WORDS: Final = 300
_PIECE: Final = 64 * 1024
_GRACE: Final = 1.0
_Incoming = MemoryObjectSendStream[SessionMessage | Exception]
_Outgoing = MemoryObjectReceiveStream[SessionMessage]


class Talk:
    """One process, spoken with. `why` tells why it ended, if we know it."""

    def __init__(self, server: McpServer, argv: Sequence[str], ended: asyncio.Event) -> None:
        """Start nothing yet; `ended` is set when it says nothing more."""
        self._server: Final = server
        self._argv: Final = argv
        self._words = b""
        self._ended: Final = ended
        self.over = False
        """It said nothing more, though we still listened."""
        self.why = ""

    @property
    def end(self) -> str:
        """Say to a person how it ended, with the last it wrote to stderr, made fit to be shown."""
        lines = self._words.decode("utf-8", "replace").strip().splitlines()
        words = plainest(" ".join(lines[-_SHOWN_LINES:]), _SHOWN_WORDS)
        return f"it ended{f' ({self.why})' if self.why else ''}{f'; its last words: {words}' if words else ''}"

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[TransportStreams]:
        """Start the process; raises `OSError` if it cannot be."""
        process = await asyncio.create_subprocess_exec(
            *self._argv,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=dict(self._server.env),
            cwd=self._server.cwd or None,
            limit=LONGEST_LINE,
            start_new_session=True,
        )
        try:
            async with self._streams(process) as streams:
                yield streams
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)

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
        junk = 0
        try:
            async with arrived:
                while junk < MOST_JUNK and (line := await self._line(process)):
                    try:
                        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                    except ValueError:
                        junk += 1
                        continue
                    await arrived.send(SessionMessage(message))
                self.over = True
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # nobody listens any more
        finally:
            if junk >= MOST_JUNK:
                self.why = f"it wrote {junk} lines that are no messages"
            self._ended.set()

    async def _line(self, process: Process) -> bytes:
        """Return a line; nothing at the end, or if the line has none."""
        if process.stdout is None:
            return b""
        try:
            return await process.stdout.readuntil(b"\n")
        except asyncio.LimitOverrunError:
            self.why = f"it wrote a line of over {LONGEST_LINE >> 20} MiB"
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        return b""

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


async def _end(process: Process) -> None:
    """Let a process end by itself, then end it, and whatever it has left behind."""
    if process.stdin is not None:
        process.stdin.close()
    for number in (None, signal.SIGTERM, signal.SIGKILL):
        if number is not None:
            _signal(process, number)
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                await _exited(process)
                break
    _signal(process, signal.SIGKILL)
    transport = getattr(process, "_transport", None)
    if transport is not None:  # a grandchild may hold the pipes open
        transport.close()


async def _exited(process: Process) -> None:
    """Wait for the exit itself: `wait` would wait for the pipes too."""
    while process.returncode is None:  # noqa: ASYNC110 # asyncio has no event for it
        await asyncio.sleep(0.01)


def _signal(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
