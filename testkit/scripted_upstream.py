"""A scripted upstream on a real socket: it answers, drips, hangs or disconnects.

    with listening() as upstream:
        upstream.answers(say(STREAMS["openai_chat"](Answer("Hi")).encode(), SSE))
        ...
        upstream.turns[0].headers

It implements only the HTTP that it needs, so that it can break it at any byte. It runs in its own thread.
"""

import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

JSON, SSE, NDJSON = "application/json", "text/event-stream", "application/x-ndjson"
STREAM_TYPE = {"ollama": NDJSON}
ENDINGS = {
    "/chat/completions": "openai_chat",
    "/responses": "openai_responses",
    "/messages": "anthropic",
    "enerateContent": "gemini",
    "/api/chat": "ollama",
}
Pairs: TypeAlias = Sequence[tuple[str, str]]


@dataclass
class Asked:
    """One received request, and the methods that answer it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    at: float = field(default_factory=time.monotonic)
    hung_up: threading.Event = field(default_factory=threading.Event)
    """The client closed the connection before the answer was complete."""
    hung_up_at: float = 0.0
    done: threading.Event = field(default_factory=threading.Event)

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body)

    @property
    def wire(self) -> str:
        path = self.path.partition("?")[0]
        return next((wire for ending, wire in ENDINGS.items() if path.endswith(ending)), "")

    def head(self, status: int = 200, media_type: str = SSE, headers: Pairs = (), length: int | None = None) -> None:
        """Send the head of an answer; without a length it comes in chunks."""
        size = ("transfer-encoding", "chunked") if length is None else ("content-length", str(length))
        lines = [f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in (*headers, size))]
        if media_type:
            lines.append(f"content-type: {media_type}")
        self.writer.write("\r\n".join([*lines, "", ""]).encode())

    async def chunk(self, data: bytes) -> None:
        """Send a chunk of a chunked answer."""
        self.writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await self.writer.drain()

    async def end(self) -> None:
        """End a chunked answer."""
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    async def whole(self, status: int, body: bytes, media_type: str = JSON, headers: Pairs = ()) -> None:
        """Send all of an answer."""
        self.head(status, media_type, headers, len(body))
        self.writer.write(body)
        await self.writer.drain()

    def reset(self) -> None:
        """Reset the connection as a crash would."""
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def left(self) -> None:
        """Record that the client is gone."""
        if not self.hung_up.is_set():
            self.hung_up_at = time.monotonic()
            self.hung_up.set()

    def close(self) -> None:
        """Close the connection normally, even in the middle of an answer."""
        self.writer.close()


Script: TypeAlias = Callable[[Asked], Awaitable[None]]


def say(data: bytes, media_type: str = SSE, status: int = 200, headers: Pairs = ()) -> Script:
    """Make a script that sends a body in a few chunks."""

    async def script(asked: Asked) -> None:
        asked.head(status, media_type, headers)
        for start in range(0, len(data), 700):
            await asked.chunk(data[start : start + 700])
        await asked.end()

    return script


def refuse(status: int, body: object, headers: Pairs = ()) -> Script:
    """Make a script that answers with an error."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda asked: asked.whole(status, data, JSON, headers)


async def hang(asked: Asked) -> None:
    """Never answer."""
    del asked
    await asyncio.sleep(3600)


class ScriptedUpstream:
    """Records requests and answers them by script, except requests for the list of models."""

    def __init__(self, models: Sequence[str] = ("m",)) -> None:
        self.models = tuple(models)
        self.asked: list[Asked] = []
        self.listings: list[Asked] = []
        self.port = 0
        self._scripts: list[Script] = []
        self._loop = asyncio.new_event_loop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def answers(self, *scripts: Script) -> None:
        """Answer with one script after the other; the last one stays. Earlier requests are forgotten."""
        self._scripts = list(scripts)
        self.asked.clear()
        self.listings.clear()

    def wait_for(self, count: int, seconds: float = 10.0) -> list[Asked]:
        """Wait until this many requests for turns have come."""
        end = time.monotonic() + seconds
        while len(self.asked) < count:
            assert time.monotonic() < end, f"{len(self.asked)} requests came, not {count}"
            time.sleep(0.005)
        return self.asked

    # ---------------------------------------------------------------- the thread

    def run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve(ready))
        self._loop.close()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)

    async def _serve(self, ready: threading.Event) -> None:
        self._over = asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=2048)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._over.wait()
        server.close()
        # All tasks of the loop, again and again: a connection that was accepted just now has a task that has not begun.
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while asked := await self._request(reader, writer):
                await self._answer(asked)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            with suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Asked | None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        except asyncio.IncompleteReadError:
            return None
        method, path, _ = head[0].split(" ", 2)
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        return Asked(method, path, headers, body, reader, writer)

    async def _answer(self, asked: Asked) -> None:
        if asked.method == "GET" and asked.path != "/metrics":
            self.listings.append(asked)
            await self._list(asked)
            return
        self.asked.append(asked)
        script = self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]
        watch = self._loop.create_task(_watch(asked))
        try:
            await script(asked)
        except OSError:
            asked.left()
            raise
        finally:
            watch.cancel()
            asked.done.set()

    async def _list(self, asked: Asked) -> None:
        if asked.path.startswith("/api/"):
            body: object = {"models": [{"name": name} for name in self.models]}
        elif "pageSize" in asked.path:
            body = {"models": [{"name": f"models/{name}"} for name in self.models]}
        else:
            body = {"data": [{"id": name} for name in self.models]}
        await asked.whole(200, json.dumps(body).encode())


async def _watch(asked: Asked) -> None:
    """Wait until the client is gone; reading would consume the next request."""
    while not asked.reader.at_eof() and asked.reader.exception() is None:  # noqa: ASYNC110 # there is no event for it
        await asyncio.sleep(0.005)
    asked.left()


@contextmanager
def listening(models: Sequence[str] = ("m",)) -> Generator[ScriptedUpstream]:
    """Run an upstream."""
    upstream = ScriptedUpstream(models)
    ready = threading.Event()
    thread = threading.Thread(target=upstream.run, args=(ready,), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield upstream
    finally:
        upstream.stop()
        thread.join(10)
        assert not thread.is_alive()
