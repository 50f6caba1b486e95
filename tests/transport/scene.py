"""Clients of httpx and httpx2, with and without `await`, behind one interface: each test runs with all four."""

import asyncio
import importlib
import json
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from testkit.scripted_upstream import Asked, Script, ScriptedUpstream, hang
from toolspeak import AsyncTransport, Transport

T = TypeVar("T")
LIBRARIES = ("httpx", "httpx2")
VENDOR = "https://api.openai.com/v1"
"""The base URL of an SDK that is not told another one."""
WAIT_S = 30.0


def body(*, stream: bool = True, content: str = "hi", **more: object) -> dict[str, Any]:
    return {"model": "m", "stream": stream, "messages": [{"role": "user", "content": content}], **more}


def delta(text: str) -> bytes:
    return b"data: %s\n\n" % json.dumps({"id": "x", "choices": [{"index": 0, "delta": {"content": text}}]}).encode()


END = b'data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def streamed(*texts: str) -> Script:
    async def script(asked: Asked) -> None:
        asked.head()
        for text in texts:
            await asked.chunk(delta(text))
        await asked.chunk(END)
        await asked.end()

    return script


async def says_and_hangs(asked: Asked) -> None:
    """Answer with one chunk, and leave the stream open."""
    asked.head()
    await asked.chunk(delta("first "))
    await hang(asked)


def text_of(data: bytes) -> str:
    """Return what a client shows of a stream."""
    lines = [line.removeprefix("data: ") for line in data.decode().splitlines() if line.startswith("data: {")]
    return "".join(choice["delta"].get("content") or "" for line in lines for choice in json.loads(line)["choices"])


class Reply(Protocol):
    """A response that is being read."""

    response: Any

    def chunk(self) -> bytes:
        """Return the next bytes; empty at the end."""
        ...

    def rest(self) -> bytes:
        """Return all that is left."""
        ...

    def close(self) -> None: ...


class HttpClient(Protocol):
    """A client of either library."""

    def open(self, sent: dict[str, Any], path: str = "/chat/completions", **more: Any) -> Reply:  # noqa: ANN401 -- as the library
        """Send a request, and return when its response has begun."""
        ...

    def close(self) -> None: ...


@dataclass
class _Reply:
    response: Any
    chunks: Iterator[bytes]

    def chunk(self) -> bytes:
        return next(self.chunks, b"")

    def rest(self) -> bytes:
        return b"".join(self.chunks)

    def close(self) -> None:
        self.response.close()


@dataclass
class PlainClient:
    """A client without `await`."""

    client: Any
    base: str = VENDOR

    def open(self, sent: dict[str, Any], path: str = "/chat/completions", **more: Any) -> _Reply:  # noqa: ANN401 -- as above
        timeout = more.pop("timeout", WAIT_S)
        request = self.client.build_request("POST", self.base + path, json=sent, timeout=timeout, **more)
        response = self.client.send(request, stream=True)
        return _Reply(response, response.iter_raw())

    def close(self) -> None:
        self.client.close()


class Loop:
    """An event loop that runs in a thread all the time, as that of a program does."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(WAIT_S + 10)

    def end(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(WAIT_S)
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()


@dataclass
class _AsyncReply:
    response: Any
    chunks: AsyncIterator[bytes]
    loop: Loop

    def chunk(self) -> bytes:
        return self.loop.run(_next(self.chunks))

    def rest(self) -> bytes:
        return self.loop.run(_all(self.chunks))

    def close(self) -> None:
        self.loop.run(self.response.aclose())


async def _next(chunks: AsyncIterator[bytes]) -> bytes:
    return await anext(chunks, b"")


async def _all(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


@dataclass
class AwaitedClient:
    """A client with `await`, in a loop of its own."""

    client: Any
    base: str = VENDOR
    loop: Loop = field(default_factory=Loop)

    def open(self, sent: dict[str, Any], path: str = "/chat/completions", **more: Any) -> _AsyncReply:  # noqa: ANN401 -- as above
        timeout = more.pop("timeout", WAIT_S)
        request = self.client.build_request("POST", self.base + path, json=sent, timeout=timeout, **more)
        response = self.loop.run(self.client.send(request, stream=True))
        return _AsyncReply(response, response.aiter_raw(), self.loop)

    def close(self) -> None:
        self.loop.run(self.client.aclose())

    def tasks(self) -> int:
        """Return how many tasks the loop has, without the one that counts."""
        return self.loop.run(_tasks())


async def _tasks() -> int:
    return len(asyncio.all_tasks()) - 1


OpenClient = Callable[..., Any]
"""Opens a client: `open_client(upstream, base=…, **options of the transport)`."""


@dataclass(frozen=True)
class Kind:
    """A library, with or without `await`."""

    library: str
    is_async: bool

    @property
    def module(self) -> Any:  # noqa: ANN401 -- either library
        return importlib.import_module(self.library)

    @property
    def name(self) -> str:
        return f"{self.library}-{'async' if self.is_async else 'sync'}"

    @contextmanager
    def client(self, upstream: ScriptedUpstream | str, base: str = VENDOR, **options: Any) -> Generator[Any]:  # noqa: ANN401 -- as the transport
        """Open a client, and close it."""
        url = upstream if isinstance(upstream, str) else upstream.url
        if self.is_async:
            client = AwaitedClient(self.module.AsyncClient(transport=AsyncTransport(url, **options)), base)
            try:
                yield client
                client.close()
            finally:
                client.loop.end()
        else:
            with self.module.Client(transport=Transport(url, **options)) as opened:
                yield PlainClient(opened, base)


KINDS = [Kind(library, is_async) for library in LIBRARIES for is_async in (False, True)]
