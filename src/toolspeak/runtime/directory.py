"""Which model of which upstream a name means.

    claude-sonnet     an alias of the configuration
    groq:llama-3.3    a model of the upstream `groq`; `groq/llama-3.3` is the same
    qwen2.5-coder     a model that an upstream lists
    anything else     the default; without one, the first model that the first upstream lists

Agents ask for names that are wired into them, so an unknown name is no error.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from toolspeak.engine.outcome import Outcome
from toolspeak.engine.plan import NOTHING_SAID, Plan, Settings, decide
from toolspeak.engine.turn import emulated_ids, take_turn
from toolspeak.facts.model import UNKNOWN_MODEL, ModelFacts
from toolspeak.ir.event import Event
from toolspeak.ir.request import Request
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.drive import AsyncUpstream, drive
from toolspeak.runtime.listing import list_models
from toolspeak.runtime.transport import Broken
from toolspeak.runtime.upstream import HttpUpstream

Emit: TypeAlias = Callable[[Sequence[Event]], Awaitable[None]]
_FRESH, _FRESH_FAILURE = 60.0, 10.0
_LATEST = ":latest"


@dataclass(frozen=True, slots=True)
class Place:
    """An upstream, and what holds for all of its models."""

    name: str
    upstream: HttpUpstream
    facts: ModelFacts = UNKNOWN_MODEL
    settings: Settings = NOTHING_SAID


@dataclass(frozen=True, slots=True)
class Route:
    """A model: where it is, its name there, what is known about it and set for it."""

    place: str
    upstream: AsyncUpstream
    model: str
    facts: ModelFacts = UNKNOWN_MODEL
    settings: Settings = NOTHING_SAID
    alias: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names that this model has here."""
        return (self.alias, self.model, f"{self.place}:{self.model}")

    def plan(self, request: Request, asked: Settings = NOTHING_SAID) -> Plan:
        """Decide what to do with a request."""
        return decide(request, asked.over(self.settings), self.facts)

    async def take(self, request: Request, plan: Plan, emit: Emit, clock: Clock = CLOCK) -> Outcome:
        """Run one turn."""
        sent = request if request.model == self.model else replace(request, model=self.model)
        return await drive(take_turn(sent, plan, emulated_ids(clock.nanoseconds())), self.upstream, emit)


@dataclass(frozen=True, slots=True)
class Listed:
    """A model as the gateway lists it."""

    name: str
    route: Route


class Directory:
    """All models that can be asked for. It needs at least one place."""

    def __init__(
        self,
        places: Sequence[Place],
        aliases: Mapping[str, Route] | None = None,
        default: str = "",
        clock: Clock = CLOCK,
    ) -> None:
        """Take the upstreams in the order in which they are asked, and what is known by name."""
        self._places: Final = {place.name: _Lister(place, clock) for place in places}
        self._aliases: Final = dict(aliases or {})
        self._default: Final = default

    async def find(self, name: str) -> Route:
        """Return the model that a name means."""
        return self._named(name) or await self._listed(name) or await self._instead(name)

    async def listing(self) -> list[Listed]:
        """Return all models that are known by name, each once."""
        listed = {name: Listed(name, route) for name, route in self._aliases.items()}
        for lister in self._places.values():
            for name in await lister.names():
                listed.setdefault(name, Listed(name, lister.route(name)))
        return list(listed.values())

    def _named(self, name: str) -> Route | None:
        for known in (name, name.removesuffix(_LATEST)):
            if known in self._aliases:
                return self._aliases[known]
        for separator in ":/":
            place, _, model = name.partition(separator)
            if model and place in self._places:
                return self._places[place].route(model)
        return None

    async def _listed(self, name: str) -> Route | None:
        for lister in self._places.values():
            if found := await lister.find(name):
                return lister.route(found)
        return None

    async def _instead(self, name: str) -> Route:
        if self._default and self._default != name:
            return self._named(self._default) or await self._listed(self._default) or self._first().route(self._default)
        names = await self._first().names()
        return self._first().route(names[0] if names else name)

    def _first(self) -> "_Lister":
        return next(iter(self._places.values()))


class _Lister:
    """An upstream's models, asked for now and then; many that wait ask once."""

    def __init__(self, place: Place, clock: Clock) -> None:
        self._place: Final = place
        self._clock: Final = clock
        self._names: dict[str, str] = {}
        self._until = 0.0
        self._lock: Final = asyncio.Lock()

    def route(self, model: str) -> Route:
        place = self._place
        return Route(place.name, place.upstream, model, place.facts, place.settings)

    async def find(self, name: str) -> str | None:
        """Return the name as the upstream writes it; what was listed once needs no new look."""
        if name not in self._names:
            await self._look()
        return self._names.get(name)

    async def names(self) -> list[str]:
        await self._look()
        return list(dict.fromkeys(self._names.values()))

    async def _look(self) -> None:
        if self._clock.monotonic() < self._until:
            return
        async with self._lock:
            if self._clock.monotonic() >= self._until:
                await self._ask()

    async def _ask(self) -> None:
        fresh = _FRESH
        try:
            names = await list_models(self._place.upstream)
        except Broken:
            names, fresh = list(self._names.values()), _FRESH_FAILURE
        self._names = {name.removesuffix(_LATEST): name for name in names} | {name: name for name in names}
        self._until = self._clock.monotonic() + fresh
