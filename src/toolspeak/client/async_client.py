"""The client with `await`.

async with AsyncClient("http://127.0.0.1:8080/v1") as client:
    answer = await client.chat("Is it cold in Oslo?", tools=[weather])
    async for event in client.stream("Is it cold in Oslo?", tools=[weather]):
        ...
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self, Unpack

from toolspeak.agent.runs.events import Watch, unwatched
from toolspeak.agent.runs.steps import AskPermission, Work, refuse, run_inline
from toolspeak.client.answer import Answer, AsyncStream, answer_from
from toolspeak.client.models import Models, ModelSource, SingleUpstream
from toolspeak.client.request import (
    ChatOptions,
    MessagesInput,
    RunnableTools,
    RunOptions,
    ToolsInput,
    build_request,
    build_toolbox,
    chat_options,
    read_approval,
    read_rounds,
    settings_from_options,
    with_history,
)
from toolspeak.config.assemble import assemble, outbound_of
from toolspeak.config.shape import Config
from toolspeak.engine.agent import Ending, Task
from toolspeak.engine.agent_prompt import agent_messages
from toolspeak.engine.effects import Outcome
from toolspeak.engine.plan import Plan
from toolspeak.engine.settings import NOTHING_SAID, Settings
from toolspeak.engine.verdict import Depth, Verdict
from toolspeak.errors import BadField, ClientClosed
from toolspeak.facts.model import Source, Support
from toolspeak.facts.strategy import NO_OVERRIDES, Capability, Overrides
from toolspeak.ir.event import Event
from toolspeak.ir.request import Request
from toolspeak.runtime.cache import Memory
from toolspeak.runtime.clock import CLOCK
from toolspeak.runtime.directory import EmitEvents, Route
from toolspeak.runtime.drive import AsyncUpstream
from toolspeak.runtime.http_transport import HttpTransport
from toolspeak.runtime.prober import Prober
from toolspeak.runtime.profiles import NO_PROFILES
from toolspeak.runtime.transport import Timeouts
from toolspeak.runtime.upstream import HttpUpstream


class AsyncClient:
    """Sends requests with tools to models, whether they have tool calling or not. It belongs to one event loop."""

    def __init__(  # noqa: PLR0913 # defaults of all requests
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
        self._model: Final = model
        self._settings: Final = settings
        path = Path(config) if isinstance(config, str) else config
        said = capabilities if isinstance(capabilities, Overrides) else Overrides.of(capabilities)
        self._source: Final = ModelSource(
            upstream if isinstance(upstream, str) else "", wire, key, path, timeouts, said
        )
        self._models: Models | None = None if isinstance(upstream, str) else SingleUpstream(upstream, overrides=said)
        self._transport: Final = HttpTransport()
        self._opening: Final = asyncio.Lock()
        self._streams: Final[set[AsyncStream]] = set()
        """Streams whose tasks run: `close` ends them."""
        self._supports: Final[dict[str, Support]] = {}
        """Overrides of `override`, by upstream or model."""
        self._closed = False

    async def chat(self, messages: MessagesInput, tools: ToolsInput = (), **options: Unpack[ChatOptions]) -> Answer:
        """Run one turn; raises `UpstreamFailed` if there is no answer. `options` are those of `ChatOptions`."""
        request = build_request(messages, tools, options)
        return answer_from(await self._taken(request, settings_from_options(options), _keep))

    def stream(self, messages: MessagesInput, tools: ToolsInput = (), **options: Unpack[ChatOptions]) -> AsyncStream:
        """Run one turn and yield its events as they arrive. `options` are those of `ChatOptions`."""
        request, settings = build_request(messages, tools, options, stream=True), settings_from_options(options)
        return AsyncStream(lambda emit: self._taken(request, settings, emit), self._streams)

    async def plan(self, messages: MessagesInput, tools: ToolsInput = (), **options: Unpack[ChatOptions]) -> Plan:
        """Return how a turn would be run, without running it."""
        request = build_request(messages, tools, options)
        return (await self._route(request)).plan(request, settings_from_options(options).over(self._settings))

    async def run(
        self,
        task: MessagesInput,
        tools: RunnableTools = (),
        watch: Watch = unwatched,
        ask: AskPermission | None = None,
        **options: Unpack[RunOptions],
    ) -> Ending:
        """Work on a task until it is done: turns and tools, round by round. Return how it ended.

        `tools` are functions, Actions, or names of built-in tools. `watch` gets every event, `ask` decides whether a
        call may run. `options` are those of `RunOptions`.
        """
        toolbox = build_toolbox(tools, options)
        plain = chat_options(options)
        request = build_request(with_history(task, options), toolbox.tools, plain, stream=True)
        asked = request.messages
        approval = read_approval(options, can_ask=ask is not None)
        settings = settings_from_options(plain).over(self._settings)
        if options.get("agent_prompt", True) and toolbox.tools:
            request = replace(request, messages=agent_messages(asked, toolbox.ending))
        begun = Task(request, read_rounds(options), toolbox.ending, toolbox.names)
        route = await self._route(request)
        work = Work(CLOCK.fresh_id(), begun, route, toolbox, settings, approval, watch)
        return replace(await run_inline(work, ask or refuse), before=asked)

    async def models(self) -> list[str]:
        """Return the names of all models."""
        return [listed.name for listed in await (await self._opened()).listing()]

    async def probe(self, model: str = "", depth: Depth | str = Depth.FULL) -> Verdict:
        """Measure what a model really does with tools, by test requests; later requests are planned by the result.

        `look` costs nothing, `tokens` two requests of one token, `full` up to nine short ones.
        """
        if depth not in list(Depth):
            raise BadField("depth", f"{depth!r} is not one of {', '.join(Depth)}")
        route = await self._route(Request(model, ()))
        if not isinstance(route.upstream, HttpUpstream):
            raise BadField("upstream", f"{route.place!r} is no server that can be probed")
        return await Prober({}, Memory()).probe(route, route.upstream, Depth(depth))

    def override(self, name: str, support: Support | Capability | str) -> None:
        """Declare what an upstream (`groq`, a URL) or one of its models (`groq:llama-3.3`) does with tools.

        `support` is `native`, `none`, `leaks`, `unknown`, or a class: `openai`, `advanced`. A model's name alone will
        do. An override of a model wins over one of its upstream.
        """
        known = {each.value: each for each in Support} | {each.value: each.support for each in Capability}
        if support not in known:
            raise BadField("support", f"{support!r} is not one of {', '.join(known)}")
        self._supports[name] = known[support]

    async def close(self) -> None:
        """Close all streams and connections."""
        self._closed = True
        for stream in tuple(self._streams):
            await stream.close()
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await self.close()

    async def _taken(self, request: Request, settings: Settings, emit: EmitEvents) -> Outcome:
        route = await self._route(request)
        return await route.take(request, route.plan(request, settings.over(self._settings)), emit)

    async def _route(self, request: Request) -> Route:
        """Return the route of a request. A name from the caller means exactly that model, never the default.

        A gateway routes unknown names to the default, because agents have names built in. A program that names a model
        means it, and must get an error if it does not exist.
        """
        models, name = await self._opened(), request.model or self._model
        route = await (models.exactly(name) if name else models.find(""))
        # From the most specific name to the least: the first override that matches decides.
        places = (route.place, self._source.upstream)
        known = (*(f"{place}:{route.model}" for place in places), route.alias, route.model, *places)
        support = next((self._supports[name] for name in known if name in self._supports), None)
        if support is None:
            return route
        return replace(route, facts=replace(route.facts, tools=support, source=Source.SAID), profiles=NO_PROFILES)

    async def _opened(self) -> Models:
        if self._closed:
            raise ClientClosed("the client is closed: make a new one")
        return self._models or await self._assembled()

    async def _assembled(self) -> Models:
        async with self._opening:  # concurrent first requests read the configuration once
            if self._models is None:
                # In a thread: reading may search for a local server with an event loop of its own.
                self._models = await asyncio.to_thread(self._read)
            return self._models

    def _read(self) -> Models:
        """Read the configuration, and build the directory of its models."""
        config = self._source.load_config()
        self._transport.outbound = outbound_of(config)
        return assemble(config, self._transport)


async def _keep(events: Sequence[Event]) -> None:
    """Send nothing: the outcome has all events."""
