"""The client for those who await.

async with AsyncClient("http://127.0.0.1:8080/v1") as client:
    answer = await client.chat("Is it cold in Oslo?", tools=[weather])
    async for event in client.stream("Is it cold in Oslo?", tools=[weather]):
        ...
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, Self

from toolspeak.client.answer import Answer
from toolspeak.client.said import AUTO, Offered, Said, choice_of, messages_of, tools_of
from toolspeak.config import Options, current, load
from toolspeak.config.assemble import assemble
from toolspeak.config.local import with_local
from toolspeak.config.shape import Config
from toolspeak.engine.outcome import Outcome
from toolspeak.engine.plan import NOTHING_SAID, Plan, Settings
from toolspeak.errors import UpstreamFailed
from toolspeak.facts.model import Support
from toolspeak.ir.event import Event, Failed
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import ToolChoice
from toolspeak.runtime.directory import Directory, Emit, Route
from toolspeak.runtime.transport import HttpTransport

_URL_MARK = "://"


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: the request, and what to do with it."""

    request: Request
    settings: Settings


class AsyncClient:
    """Asks models with tools, whether they have tool calling or not."""

    def __init__(self, upstream: str = "", *, model: str = "", key: str = "", config: Config | None = None) -> None:
        """Take a base URL, the name of a preset, or nothing: then the user's configuration, or a local server.

        `model` is the default one, `key` the upstream's. A `config` is taken as it is.
        """
        self._upstream, self._model, self._key = upstream, model, key
        self._config: Final = config
        self._transport: Final = HttpTransport()
        self._directory: Directory | None = None
        self._supports: Final[dict[str, Support]] = {}

    async def chat(  # noqa: PLR0913 # what a request has
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
        asked = self._asked(messages, tools, model, choice, sampling, settings)
        return _answered(await self._taken(asked, _keep))

    def stream(  # noqa: PLR0913 # what a request has
        self,
        messages: Said,
        tools: Offered = (),
        *,
        model: str = "",
        choice: str | ToolChoice = AUTO,
        sampling: Sampling = Sampling(),
        settings: Settings = NOTHING_SAID,
    ) -> "AsyncStream":
        """Take one turn and get its events as they come."""
        asked = self._asked(messages, tools, model, choice, sampling, settings)
        streamed = replace(asked, request=replace(asked.request, stream=True))
        return AsyncStream(lambda emit: self._taken(streamed, emit))

    async def plan(self, messages: Said, tools: Offered = (), *, model: str = "") -> Plan:
        """Say what would be done, without doing it."""
        asked = self._asked(messages, tools, model, AUTO, Sampling(), NOTHING_SAID)
        return (await self._route(asked.request.model)).plan(asked.request)

    async def models(self) -> list[str]:
        """Return the names of all models that can be asked for."""
        directory = await self._opened()
        return [listed.name for listed in await directory.listing()]

    def override(self, name: str, support: Support | str) -> None:
        """Say what an upstream (`groq`) or one of its models (`groq:llama-3.3`) does with tools, from now on."""
        self._supports[name] = Support(support)

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await self.close()

    def _asked(  # noqa: PLR0913, PLR0917 # as `chat`
        self,
        messages: Said,
        tools: Offered,
        model: str,
        choice: str | ToolChoice,
        sampling: Sampling,
        settings: Settings,
    ) -> Asked:
        offered = tools_of(tools)
        chosen = choice_of(choice, offered)
        return Asked(Request(model or self._model, messages_of(messages), offered, chosen, sampling), settings)

    async def _taken(self, asked: Asked, emit: Emit) -> Outcome:
        route = await self._route(asked.request.model)
        return await route.take(asked.request, route.plan(asked.request, asked.settings), emit)

    async def _route(self, model: str) -> Route:
        route = await (await self._opened()).find(model)
        support = self._supports.get(f"{route.place}:{route.model}", self._supports.get(route.place))
        return route if support is None else replace(route, facts=replace(route.facts, tools=support))

    async def _opened(self) -> Directory:
        if self._directory is None:
            config = await asyncio.to_thread(self._configured) if self._config is None else self._config
            self._directory = assemble(config, self._transport)
        return self._directory

    def _configured(self) -> Config:
        environ: Mapping[str, str] = current()
        is_url = _URL_MARK in self._upstream
        options = Options(
            upstream=self._upstream if is_url else None,
            preset=self._upstream if self._upstream and not is_url else None,
            model=self._model or None,
            upstream_key=self._key or None,
        )
        config = load(None, environ, options)
        return config if config.upstreams else with_local(config, options, environ)


class AsyncStream:
    """The events of one turn. When they are over, `answer` has the whole."""

    def __init__(self, take: Callable[[Emit], Coroutine[object, object, Outcome]]) -> None:
        """Take nothing yet: who asks for the first event does."""
        self._take: Final = take
        self._batches: Final[asyncio.Queue[Sequence[Event] | None]] = asyncio.Queue(1)  # the reader sets the pace
        self._task: asyncio.Task[Outcome] | None = None
        self._answer: Answer | None = None

    @property
    def answer(self) -> Answer:
        """Return the whole answer, once the events are over."""
        if self._answer is None:
            raise RuntimeError("the stream is not over yet: its answer comes with the last event")
        return self._answer

    async def batches(self) -> AsyncGenerator[Sequence[Event], None]:
        """Return the events in the batches in which they come; raises `UpstreamFailed` at a broken end."""
        self._task = asyncio.get_running_loop().create_task(self._run())
        try:
            while batch := await self._batches.get():
                if not isinstance(batch[-1], Failed):
                    yield batch
                elif len(batch) > 1:
                    yield batch[:-1]
            self._answer = _answered(await self._task)
        finally:
            self._task.cancel()

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Return the events one by one."""
        async for batch in self.batches():
            for event in batch:
                yield event

    async def _run(self) -> Outcome:
        try:
            return await self._take(self._batches.put)
        finally:
            await self._batches.put(None)


async def _keep(events: Sequence[Event]) -> None:
    """Leave the events in the outcome."""


def _answered(outcome: Outcome) -> Answer:
    last = outcome.events[-1] if outcome.events else None
    if isinstance(last, Failed):
        raise UpstreamFailed(last.failure.message, last.failure.kind, last.failure.status)
    return Answer(outcome)
