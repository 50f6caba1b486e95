"""The client for those who do not await: the same one, in a thread of its own.

with Client("http://127.0.0.1:8080/v1") as client:
    answer = client.chat("Is it cold in Oslo?", tools=[weather])
    for event in client.stream("Is it cold in Oslo?", tools=[weather]):
        ...
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator, Sequence
from types import TracebackType
from typing import Final, Self, TypeVar

from toolspeak.client.answer import Answer
from toolspeak.client.asynchronous import AsyncClient, AsyncStream
from toolspeak.client.said import AUTO, Offered, Said
from toolspeak.config.shape import Config
from toolspeak.engine.plan import NOTHING_SAID, Plan, Settings
from toolspeak.facts.model import Support
from toolspeak.ir.event import Event
from toolspeak.ir.request import Sampling
from toolspeak.ir.tool import ToolChoice

T = TypeVar("T")


class Client:
    """Asks models with tools, whether they have tool calling or not. It may be used from several threads."""

    def __init__(self, upstream: str = "", *, model: str = "", key: str = "", config: Config | None = None) -> None:
        """Take a base URL, the name of a preset, or nothing: then the user's configuration, or a local server."""
        self._client: Final = AsyncClient(upstream, model=model, key=key, config=config)
        self._loop: Final = asyncio.new_event_loop()
        self._thread: Final = threading.Thread(target=self._loop.run_forever, name="toolspeak", daemon=True)
        self._thread.start()

    def chat(  # noqa: PLR0913 # what a request has
        self,
        messages: Said,
        tools: Offered = (),
        *,
        model: str = "",
        choice: str | ToolChoice = AUTO,
        sampling: Sampling = Sampling(),
        settings: Settings = NOTHING_SAID,
    ) -> Answer:
        """Take one turn; raises `UpstreamFailed` if there is no answer."""
        client = self._client
        return self._do(client.chat(messages, tools, model=model, choice=choice, sampling=sampling, settings=settings))

    def stream(  # noqa: PLR0913 # what a request has
        self,
        messages: Said,
        tools: Offered = (),
        *,
        model: str = "",
        choice: str | ToolChoice = AUTO,
        sampling: Sampling = Sampling(),
        settings: Settings = NOTHING_SAID,
    ) -> "Stream":
        """Take one turn and get its events as they come."""
        client = self._client
        return Stream(
            self._loop,
            client.stream(messages, tools, model=model, choice=choice, sampling=sampling, settings=settings),
        )

    def plan(self, messages: Said, tools: Offered = (), *, model: str = "") -> Plan:
        """Say what would be done, without doing it."""
        return self._do(self._client.plan(messages, tools, model=model))

    def models(self) -> list[str]:
        """Return the names of all models that can be asked for."""
        return self._do(self._client.models())

    def override(self, name: str, support: Support | str) -> None:
        """Say what an upstream (`groq`) or one of its models (`groq:llama-3.3`) does with tools, from now on."""
        self._client.override(name, support)

    def close(self) -> None:
        """Close all connections, and end the thread."""
        if self._loop.is_closed():
            return
        self._do(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def _do(self, work: Coroutine[object, object, T]) -> T:
        return _done(self._loop, work)


class Stream:
    """The events of one turn. When they are over, `answer` has the whole."""

    def __init__(self, loop: asyncio.AbstractEventLoop, stream: AsyncStream) -> None:
        """Ask nothing yet: the first event does."""
        self._loop: Final = loop
        self._stream: Final = stream

    @property
    def answer(self) -> Answer:
        """Return the whole answer, once the events are over."""
        return self._stream.answer

    def __iter__(self) -> Iterator[Event]:
        """Return the events one by one; leaving early closes the upstream."""
        batches = self._stream.batches()
        try:
            while batch := _done(self._loop, _next(batches)):
                yield from batch
        finally:
            _done(self._loop, batches.aclose())


async def _next(batches: AsyncGenerator[Sequence[Event], None]) -> Sequence[Event] | None:
    return await anext(batches, None)


def _done(loop: asyncio.AbstractEventLoop, work: Coroutine[object, object, T]) -> T:
    """Wait for work in the other thread; who is interrupted here stops it there."""
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise
