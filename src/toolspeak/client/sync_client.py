"""The client without `await`: an `AsyncClient` in a thread with its own event loop.

with Client("http://127.0.0.1:8080/v1") as client:
    answer = client.chat("Is it cold in Oslo?", tools=[weather])
    for event in client.stream("Is it cold in Oslo?", tools=[weather]):
        ...
"""

import weakref
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self, Unpack

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
from toolspeak.facts.model import Support
from toolspeak.facts.strategy import NO_OVERRIDES, Capability, Overrides
from toolspeak.ir.event import Event
from toolspeak.ir.message import Call
from toolspeak.runtime.drive import AsyncUpstream
from toolspeak.runtime.loop_thread import LoopThread
from toolspeak.runtime.transport import Timeouts


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
        # It must not refer to the client itself, which would then never be collected.
        weakref.finalize(self, self._thread.stop).atexit = False

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
        self._thread.close()

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

    def __init__(self, client: Client, thread: LoopThread, stream: AsyncStream) -> None:
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
