"""The client for those who do not await: the same one, in a thread of its own.

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

from toolspeak.client.answer import Answer
from toolspeak.client.asynchronous import AsyncClient
from toolspeak.client.running import Able, RunWishes, asking, watching
from toolspeak.client.said import Offered, Said, Wishes
from toolspeak.client.streamed import AsyncStream
from toolspeak.client.thread import LoopThread
from toolspeak.config.shape import Config
from toolspeak.engine.agent import Ending
from toolspeak.engine.plan import NOTHING_SAID, Plan, Settings
from toolspeak.engine.verdict import Depth, Verdict
from toolspeak.facts.capability import NO_OVERRIDES, Capability, Overrides
from toolspeak.facts.model import Support
from toolspeak.ir.event import Event
from toolspeak.ir.message import Call
from toolspeak.runs.watch import RunEvent, unwatched
from toolspeak.runtime.drive import AsyncUpstream
from toolspeak.runtime.transport import Waits


class Client:
    """Asks models with tools, whether they have tool calling or not. It may be used from several threads."""

    def __init__(  # noqa: PLR0913 # as `AsyncClient`
        self,
        upstream: str | AsyncUpstream = "",
        *,
        model: str = "",
        key: str = "",
        wire: str = "",
        settings: Settings = NOTHING_SAID,
        waits: Waits | None = None,
        config: Config | str | Path | None = None,
        capabilities: Overrides | Mapping[str, Capability | str] = NO_OVERRIDES,
    ) -> None:
        """Take a base URL, the name of a preset, or nothing: then the user's configuration, or a local server.

        `model` is the default one, `key` the upstream's, `wire` its protocol, `config` a file or its content, and
        `capabilities` what providers and models can do (`{"ollama:llama3.2*": "openai"}`). Connect nothing yet. An
        upstream may also be an object, such as those of `toolspeak.testing`.
        """
        self._client: Final = AsyncClient(
            upstream,
            model=model,
            key=key,
            wire=wire,
            settings=settings,
            waits=waits,
            config=config,
            capabilities=capabilities,
        )
        self._thread: Final = LoopThread(self._client.close)
        self._finalizer: Final = weakref.finalize(self, self._thread.close)

    def chat(self, messages: Said, tools: Offered = (), **wishes: Unpack[Wishes]) -> Answer:
        """Take one turn; raises `UpstreamFailed` if there is no answer. The wishes are those of `Wishes`."""
        return self._thread.run(self._client.chat(messages, tools, **wishes))

    def stream(self, messages: Said, tools: Offered = (), **wishes: Unpack[Wishes]) -> "Stream":
        """Take one turn and get its events as they come. The wishes are those of `Wishes`."""
        return Stream(self, self._thread, self._client.stream(messages, tools, **wishes))

    def plan(self, messages: Said, tools: Offered = (), **wishes: Unpack[Wishes]) -> Plan:
        """Return what would be done, without doing it."""
        return self._thread.run(self._client.plan(messages, tools, **wishes))

    def run(
        self,
        task: Said,
        tools: Able = (),
        watch: Callable[[RunEvent], object] | None = None,
        ask: Callable[[Call], bool] | None = None,
        **wishes: Unpack[RunWishes],
    ) -> Ending:
        """Work on a task until it is done: turns and tools, round by round. How it ended is in what comes back.

        `tools` are functions, Actions, or names of our own tools; functions run in threads of their own. `watch` is
        told what happens, `ask` whether a call may run. The wishes are those of `RunWishes`.
        """
        seen = unwatched if watch is None else watching(watch)
        asked = None if ask is None else asking(ask)
        return self._thread.run(self._client.run(task, tools, seen, asked, **wishes))

    def models(self) -> list[str]:
        """Return the names of all models that can be asked for."""
        return self._thread.run(self._client.models())

    def probe(self, model: str = "", depth: Depth | str = Depth.FULL) -> Verdict:
        """Find out what a model really does with tools, by asking it; the requests that follow are planned by it.

        `look` costs nothing, `tokens` two requests of one token, `full` up to nine short ones.
        """
        return self._thread.run(self._client.probe(model, depth))

    def override(self, name: str, support: Support | Capability | str) -> None:
        """Declare what an upstream (`groq`, a URL) or one of its models (`groq:llama-3.3`) does with tools.

        `support` is `native`, `none`, `leaks`, `unknown`, or a class: `openai`, `advanced`. A model's name alone will
        do. What is said of a model is heard before what is said of its upstream.
        """
        self._client.override(name, support)

    def close(self) -> None:
        """Close all streams and connections, and end the thread; a client that nobody holds is closed by itself."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()


class Stream:
    """The events of one turn; when they are over, `answer` has the whole. Who leaves early closes the upstream."""

    def __init__(self, client: Client, thread: LoopThread, stream: AsyncStream) -> None:
        """Ask nothing yet: the first event does. The client lives as long as its streams."""
        self._client: Final = client
        self._thread: Final = thread
        self._stream: Final = stream

    @property
    def answer(self) -> Answer:
        """Return the whole answer, once the events are over."""
        return self._stream.answer

    def close(self) -> None:
        """Read no more; the upstream is closed when this returns."""
        self._thread.end(self._stream.close())

    def __iter__(self) -> Generator[Event, None, None]:
        """Return the events one by one."""
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
