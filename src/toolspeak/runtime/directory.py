"""Which model of which upstream a name means.

    claude-sonnet     an alias of the configuration
    groq:llama-3.3    a model of the upstream `groq`; `groq/llama-3.3` is the same
    qwen2.5-coder     a model that an upstream lists
    anything else     the default; without one, the first model that the first upstream lists

Agents ask for names that are wired into them, so an unknown name is no error.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final, Protocol, TypeAlias

from toolspeak.engine.outcome import Outcome
from toolspeak.engine.plan import NOTHING_SAID, Plan, Settings, decide
from toolspeak.engine.readers import emulated_ids
from toolspeak.engine.turn import take_turn
from toolspeak.facts.capability import NO_OVERRIDES, Overrides
from toolspeak.facts.model import UNKNOWN_MODEL, Constrain, ModelFacts, Source, without_latest
from toolspeak.facts.strategy import facts_of
from toolspeak.ir.event import Event
from toolspeak.ir.request import Request
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.drive import AsyncUpstream, drive
from toolspeak.runtime.learned import UNKNOWN_ORIGIN, Learned, Origin
from toolspeak.runtime.offload import Run, at_once
from toolspeak.runtime.profiles import NO_PROFILES, Measured, Profiles
from toolspeak.runtime.transport import TransportError
from toolspeak.runtime.upstream import HttpUpstream, list_models

EmitEvents: TypeAlias = Callable[[Sequence[Event]], Awaitable[None]]
_FRESH, _FRESH_FAILURE = 60.0, 10.0
_MOST_ROUTES, _LONGEST_NAME = 4096, 256


class Catalogue(Protocol):
    """The models that one upstream lists."""

    def lists(self, model: str) -> bool:
        """Return whether the model was in the list when it was read last."""
        ...

    async def look(self) -> None:
        """Read the list, unless that was done just now; errors are treated as an unchanged list."""
        ...


@dataclass(frozen=True, slots=True)
class ConfiguredUpstream:
    """An upstream, and what holds for all of its models."""

    name: str
    upstream: HttpUpstream
    facts: ModelFacts = UNKNOWN_MODEL
    settings: Settings = NOTHING_SAID
    learned: Learned = field(default_factory=Learned, compare=False, repr=False)
    profiles: Profiles = field(default=NO_PROFILES, compare=False, repr=False)
    providers: tuple[str, ...] = ()
    """Further names under which overrides may speak of it: its preset, its URL."""
    overrides: Overrides = NO_OVERRIDES

    def route(
        self, model: str, facts: ModelFacts = UNKNOWN_MODEL, settings: Settings = NOTHING_SAID, alias: str = ""
    ) -> "Route":
        """Return one of its models; these facts and settings are the model's own, and heard first."""
        known = facts.over(facts_of(model, self.facts, (self.name, *self.providers), self.overrides))
        described = bool(facts.said) or known.source is Source.SAID
        profiles = NO_PROFILES if described else self.profiles  # who describes a model is heard before who measures it
        upstream = self.upstream.with_quirks(known.quirks)
        return Route(self.name, upstream, model, known, settings.over(self.settings), alias, self.learned, profiles)


@dataclass(frozen=True, slots=True)
class Route:
    """A model: where it is, its name there, what is known about it and set for it."""

    place: str
    upstream: AsyncUpstream
    model: str
    facts: ModelFacts = UNKNOWN_MODEL
    settings: Settings = NOTHING_SAID
    alias: str = ""
    learned: Learned = field(default_factory=Learned, compare=False, repr=False)
    profiles: Profiles = field(default=NO_PROFILES, compare=False, repr=False)
    tenant: str = ""
    """The tenant whose turns use this route; empty without keys."""
    catalogue: Catalogue | None = field(default=None, compare=False, repr=False)
    """Where to find out whether the model exists; None if the operator or the program has named it."""

    def of_tenant(self, tenant: str) -> "Route":
        """Return the same model for the turns of one tenant."""
        return self if tenant == self.tenant else replace(self, tenant=tenant)

    @property
    def is_real(self) -> bool:
        """Return whether the model is known to exist: clients can invent names, and facts about those are no use."""
        return self.catalogue is None or self.catalogue.lists(self.model)

    async def confirm_real(self) -> bool:
        """Return the same after a look at the upstream's list, if that is old."""
        if not self.is_real and self.catalogue is not None:
            await self.catalogue.look()
        return self.is_real

    @property
    def measured(self) -> Measured:
        """Return what the doctor has measured, as long as the server is the same."""
        return self.profiles.heard(self.model, self.learned.verdict(self.model).fingerprint)

    @property
    def known(self) -> ModelFacts:
        """Return the facts, with what was measured and what traffic has shown."""
        return self._known(UNKNOWN_ORIGIN)

    def _known(self, origin: Origin) -> ModelFacts:
        return self.learned.facts(self.model, self.measured.facts(self.facts), origin)

    @property
    def identity(self) -> str:
        """Return the one name by which permissions know this route: the alias that led to it, else `upstream:model`.

        A bare model name is never an identity: a client may write any name after `upstream:`, also that of an alias,
        and would so have the permission of the alias for another upstream's model.
        """
        return self.alias or f"{self.place}:{self.model}"

    def plan(self, request: Request, asked: Settings = NOTHING_SAID) -> Plan:
        """Decide what to do with a request."""
        said, measured, known = asked.over(self.settings), self.measured, self._known(self._origin(request))
        heard = measured.under(said)
        if known.constraint is Constrain.OFF:  # what traffic has switched off, a profile does not switch on
            heard = replace(heard, constraint=said.constraint)
        return measured.noted(decide(request, heard, known), said)

    async def take(
        self, request: Request, plan: Plan, emit: EmitEvents, clock: Clock = CLOCK, prepare: Run = at_once
    ) -> Outcome:
        """Run one turn. The wire writes constraints in the plan's form, whatever is learned while the turn runs.

        `prepare` says where the work runs that takes time in proportion to the request.
        """
        sent = request if request.model == self.model else replace(request, model=self.model)
        upstream = self.upstream
        if isinstance(upstream, HttpUpstream):
            upstream = upstream.constrained(plan.form).encoding(prepare)
        outcome = await drive(take_turn(sent, plan, emulated_ids(clock.nanoseconds())), upstream, emit, prepare)
        self.learned.note(self.model, outcome, self._origin(request), is_real=self.is_real)
        return outcome

    def _origin(self, request: Request) -> Origin:
        return Origin(self.tenant, request)


@dataclass(frozen=True, slots=True)
class Listed:
    """A model as the gateway lists it."""

    name: str
    route: Route


class Directory:
    """All models that can be asked for. It needs at least one place."""

    def __init__(
        self,
        places: Sequence[ConfiguredUpstream],
        aliases: Mapping[str, Route] | None = None,
        default: str = "",
        clock: Clock = CLOCK,
    ) -> None:
        """Take the upstreams in the order in which they are asked, and what is known by name."""
        self._places: Final = {place.name: _Lister(place, clock) for place in places}
        self._aliases: Final = dict(aliases or {})
        self._default: Final = default
        prefixes = [(f"{name}{mark}", lister) for name, lister in self._places.items() for mark in ":/"]
        self._prefixes: Final = sorted(prefixes, key=lambda each: -len(each[0]))
        """The longest first: `box:8000:` goes before `box:`."""

    async def find(self, name: str) -> Route:
        """Return the model that a name means."""
        return self._named(name) or await self._listed(name) or await self._instead(name)

    async def exactly(self, name: str) -> Route:
        """Return the model of that name and no other: what nobody lists is asked for as it is."""
        found = self._named(name)
        if found is None and len(self._places) > 1:
            found = await self._listed(name)
        return found or self._first().route(name)

    async def listing(self) -> list[Listed]:
        """Return all models that are known by name, each once."""
        async with asyncio.TaskGroup() as group:
            for lister in self._places.values():
                group.create_task(lister.look())
        listed = {name: Listed(name, route) for name, route in self._aliases.items()}
        for lister in self._places.values():
            for name in lister.names:
                listed.setdefault(name, Listed(name, lister.route(name)))
        return list(listed.values())

    def _named(self, name: str) -> Route | None:
        for known in (name, without_latest(name)):
            if known in self._aliases:
                return self._aliases[known]
        for prefix, lister in self._prefixes:
            if name.startswith(prefix) and name != prefix:
                return lister.route(name.removeprefix(prefix))
        return None

    async def _listed(self, name: str) -> Route | None:
        """Return the model if an upstream lists it; what was listed once needs no new look."""
        for lister in self._places.values():
            if found := lister.route_of(name):
                return found
        old = [lister for lister in self._places.values() if lister.is_old()]
        return await _looked_up(name, old) if old else None

    async def _instead(self, name: str) -> Route:
        first = self._first()
        if default := self._default:
            found = self._named(default) or await self._listed(default) or first.route(default)
            return replace(found, catalogue=None)  # the operator has named it
        return first.route(first.names[0] if first.names else name)

    def _first(self) -> "_Lister":
        return next(iter(self._places.values()))


async def _looked_up(name: str, listers: "Sequence[_Lister]") -> Route | None:
    """Look at all at once; the first that lists the model has it, and need not wait for the others."""
    found: Route | None = None
    async with asyncio.TaskGroup() as group:
        looks = [(lister, group.create_task(lister.look())) for lister in listers]
        for lister, look in looks:
            if found is None:
                await look
                found = lister.route_of(name)
            else:
                look.cancel()
    return found


class _Lister:
    """An upstream's models, asked for now and then; many that wait ask once."""

    def __init__(self, place: ConfiguredUpstream, clock: Clock) -> None:
        self._place: Final = place
        self._clock: Final = clock
        self._names: dict[str, str] = {}
        self._routes: Final[dict[str, Route]] = {}
        self._until = -inf
        self._lock: Final = asyncio.Lock()

    def route(self, model: str) -> Route:
        """Return a model of this upstream; it is asked for with each request, and put together once."""
        found = self._routes.get(model) or replace(self._place.route(model), catalogue=self)
        if len(self._routes) < _MOST_ROUTES and len(model) <= _LONGEST_NAME:
            self._routes[model] = found
        return found

    @property
    def names(self) -> list[str]:
        """Return the names as the upstream writes them."""
        return list(dict.fromkeys(self._names.values()))

    def lists(self, model: str) -> bool:
        """Return whether the upstream listed the model."""
        return model in self._names or without_latest(model) in self._names

    def route_of(self, name: str) -> Route | None:
        """Return the model, under the name that the upstream writes, if it was listed."""
        found = self._names.get(name) or self._names.get(without_latest(name))
        return self.route(found) if found else None

    def is_old(self) -> bool:
        """Return whether it is time for a new look."""
        return self._clock.monotonic() >= self._until

    async def look(self) -> None:
        """Ask the upstream; who comes while somebody asks waits for that answer."""
        async with self._lock:
            if self.is_old():
                await self._ask()

    async def _ask(self) -> None:
        fresh = _FRESH
        try:
            names = await list_models(self._place.upstream)
        except TransportError:
            names, fresh = list(self._names.values()), _FRESH_FAILURE
        self._names = {without_latest(name): name for name in names} | {name: name for name in names}
        self._until = self._clock.monotonic() + fresh
