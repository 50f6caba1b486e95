"""The client without `await`: an `AsyncClient` in a thread with its own event loop.

with Client("http://127.0.0.1:8080/v1") as client:
    answer = client.chat("Is it cold in Oslo?", tools=[weather])
    for event in client.stream("Is it cold in Oslo?", tools=[weather]):
        ...
"""

import asyncio
import threading
import weakref
from collections.abc import Callable, Coroutine, Generator, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeAlias, TypeVar, Unpack

from toolspeak.agent.runs.events import RunEvent, unwatched
from toolspeak.client.answer import Answer, AsyncStream
from toolspeak.client.async_client import AsyncClient
from toolspeak.client.request import (
    ChatOptions,
    MessagesInput,
    RunnableTools,
    RunOptions,
    ToolsInput,
    async_ask,
    async_watch,
)
from toolspeak.config.shape import Config
from toolspeak.engine.agent import Ending
from toolspeak.engine.plan import Plan
from toolspeak.engine.settings import NOTHING_SAID, Settings
from toolspeak.engine.verdict import Depth, Verdict
from toolspeak.errors import ClientClosed
from toolspeak.facts.model import Support
from toolspeak.facts.strategy import NO_OVERRIDES, Capability, Overrides
from toolspeak.ir.event import Event
from toolspeak.ir.message import Call
from toolspeak.runtime.drive import AsyncUpstream
from toolspeak.runtime.transport import Timeouts

T = TypeVar("T")
Last: TypeAlias = Callable[[], Coroutine[object, object, None]]


class Client:
    """Sends requests with tools to models, whether they have tool calling or not. Several threads may use it."""

    def __init__(  # noqa: PLR0913 # as `AsyncClient`
        self,
        upstream: str | AsyncUpstream = "",
        *,
        model: str = "",
        key: str = "",
        wire: str = "",
        settings: Settings = NOTHING_SAID,
        timeouts: Timeouts | None = None,
        config: Config | str | Path | None = None,
        capabilities: Overrides | Mapping[str, Capability | str] = NO_OVERRIDES,
    ) -> None:
        """Take a base URL, the name of a preset, or nothing: then the user's configuration, or a local server.

        `model` is the default one, `key` the upstream's, `wire` its protocol, `config` a file or its content, and
        `capabilities` what providers and models can do (`{"ollama:llama3.2*": "openai"}`). Nothing is connected yet. An
        upstream may also be an object, such as those of `toolspeak.testing`.
        """
        self._client: Final = AsyncClient(
            upstream,
            model=model,
            key=key,
            wire=wire,
            settings=settings,
            timeouts=timeouts,
            config=config,
            capabilities=capabilities,
        )
        self._thread: Final = LoopThread(self._client.close)
        # Runs once: by `close`, when the client is garbage collected, or at the exit of the interpreter. It must not
        # refer to the client itself, which would then never be collected.
        self._finalizer: Final = weakref.finalize(self, self._thread.close)

    def chat(self, messages: MessagesInput, tools: ToolsInput = (), **options: Unpack[ChatOptions]) -> Answer:
        """Run one turn; raises `UpstreamFailed` if there is no answer. `options` are those of `ChatOptions`."""
        return self._thread.run(self._client.chat(messages, tools, **options))

    def stream(self, messages: MessagesInput, tools: ToolsInput = (), **options: Unpack[ChatOptions]) -> "Stream":
        """Run one turn and yield its events as they arrive. `options` are those of `ChatOptions`."""
        return Stream(self, self._thread, self._client.stream(messages, tools, **options))

    def plan(self, messages: MessagesInput, tools: ToolsInput = (), **options: Unpack[ChatOptions]) -> Plan:
        """Return how a turn would be run, without running it."""
        return self._thread.run(self._client.plan(messages, tools, **options))

    def run(
        self,
        task: MessagesInput,
        tools: RunnableTools = (),
        watch: Callable[[RunEvent], object] | None = None,
        ask: Callable[[Call], bool] | None = None,
        **options: Unpack[RunOptions],
    ) -> Ending:
        """Work on a task until it is done: turns and tools, round by round. Return how it ended.

        `tools` are functions, Actions, or names of built-in tools; functions run in threads of their own. `watch` gets
        every event, `ask` decides whether a call may run. `options` are those of `RunOptions`.
        """
        seen = unwatched if watch is None else async_watch(watch)
        asked = None if ask is None else async_ask(ask)
        return self._thread.run(self._client.run(task, tools, seen, asked, **options))

    def models(self) -> list[str]:
        """Return the names of all models."""
        return self._thread.run(self._client.models())

    def probe(self, model: str = "", depth: Depth | str = Depth.FULL) -> Verdict:
        """Measure what a model really does with tools, by test requests; later requests are planned by the result.

        `look` costs nothing, `tokens` two requests of one token, `full` up to nine short ones.
        """
        return self._thread.run(self._client.probe(model, depth))

    def override(self, name: str, support: Support | Capability | str) -> None:
        """Declare what an upstream (`groq`, a URL) or one of its models (`groq:llama-3.3`) does with tools.

        `support` is `native`, `none`, `leaks`, `unknown`, or a class: `openai`, `advanced`. A model's name alone will
        do. An override of a model wins over one of its upstream.
        """
        self._client.override(name, support)

    def close(self) -> None:
        """Close all streams and connections, and end the thread. Garbage collection of the client does the same."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()


class Stream:
    """The events of one turn, as they arrive; after the last one, `answer` is the whole.

    Leaving the loop early closes the upstream connection.
    """

    def __init__(self, client: Client, thread: "LoopThread", stream: AsyncStream) -> None:
        """Prepare a stream; reading its first event starts the turn."""
        self._client: Final = client  # keeps the client alive: its garbage collection would end the thread
        self._thread: Final = thread
        self._stream: Final = stream

    @property
    def answer(self) -> Answer:
        """The whole answer; raises `RuntimeError` before the last event."""
        return self._stream.answer

    def close(self) -> None:
        """Stop reading; the upstream connection is closed when this returns."""
        self._thread.end(self._stream.close())

    def __iter__(self) -> Generator[Event, None, None]:
        """Yield the events one by one."""
        try:
            while batch := self._thread.run(self._stream.batch()):
                yield from batch
        finally:
            self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()


# ---------------------------------------------------------------- the thread


class LoopThread:
    """A thread with an event loop, started by its first work; work may come from any thread.

    asyncio's objects belong to one loop, and callers without `await` have none. One thread serves all callers of a
    client, so that they share its connections.
    """

    def __init__(self, last: Last) -> None:
        """Prepare the thread, which starts with the first work and awaits `last` before it ends."""
        self._last: Final = last
        # Reentrant: the garbage collector may close a stream in a thread that holds the lock already.
        self._lock: Final = threading.RLock()
        self._running: _Running | None = None
        self._closed = False

    def run(self, work: Coroutine[object, object, T]) -> T:
        """Run work in the thread, wait for it and return its result. Raises `ClientClosed`, and exceptions of the work.

        If the waiting thread is interrupted, for example by Ctrl-C, the work is cancelled.
        """
        future = self._scheduled(work)
        try:
            return future.result()
        except CancelledError:
            raise ClientClosed("the client was closed while a caller waited for it") from None
        except BaseException:
            future.cancel()
            raise

    def end(self, work: Coroutine[object, object, None]) -> None:
        """Run cleanup work if the thread still exists, and wait for it.

        In the loop's own thread, where the garbage collector may run this too, it does not wait: that would deadlock.
        """
        running = self._running
        try:
            future = self._scheduled(work)
        except ClientClosed:
            return
        if running is None or running.thread is not threading.current_thread():
            future.result()

    def close(self) -> None:
        """Cancel all work and end the thread; may be called several times, and from any thread."""
        with self._lock:
            self._closed = True
            running, self._running = self._running, None
        if running is not None:
            running.loop.call_soon_threadsafe(running.stop.set)
            if running.thread is not threading.current_thread():
                running.thread.join()

    def _scheduled(self, work: Coroutine[object, object, T]) -> Future[T]:
        with self._lock:  # work scheduled before the end is finished or cancelled, never lost
            if self._closed:
                work.close()
                raise ClientClosed("the client is closed")
            if self._running is None:
                self._running = _Running(self._last)
            return asyncio.run_coroutine_threadsafe(work, self._running.loop)


@dataclass(eq=False)
class _Running:
    """The running thread and its loop. It is a daemon thread: a client that is never closed keeps no process alive."""

    last: Last
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._serve, name="toolspeak", daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        """Run the loop until `stop`, then close it.

        `asyncio.Runner` is not used: it starts a thread at its end, which is impossible while the process exits.
        """
        try:
            self.loop.run_until_complete(self._live())
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            self.loop.close()

    async def _live(self) -> None:
        await self.stop.wait()
        await self.last()
        # Callers wait for these tasks in other threads: without the cancellation they would wait forever.
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
