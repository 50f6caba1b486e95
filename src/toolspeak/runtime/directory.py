"""Resolves a model name of a request to a model of an upstream.

    claude-sonnet     an alias of the configuration
    groq:llama-3.3    a model of the upstream `groq`; `groq/llama-3.3` is the same
    qwen2.5-coder     a model that an upstream lists
    anything else     the default; without one, the first model that the first upstream lists

Agents request names that are built into them (such as `gpt-5.5`), so an unknown name is not an error.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final, Protocol, TypeAlias

from toolspeak.engine.effects import Outcome
from toolspeak.engine.guard import choose_key
from toolspeak.engine.memory import memory_key
from toolspeak.engine.plan import DECISION_DIALECT, JSON_DIALECT, Plan, decide
from toolspeak.engine.prompt import untrusted_texts
from toolspeak.engine.readers import emulated_ids
from toolspeak.engine.settings import NOTHING_SAID, Settings
from toolspeak.engine.turn import take_turn
from toolspeak.facts.model import UNKNOWN_MODEL, Constrain, ModelFacts, Source, without_latest
from toolspeak.facts.strategy import NO_OVERRIDES, Overrides, facts_of
from toolspeak.ir.event import CallStarted, Event
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
"""Seconds until a list of models is read again: after a success, and after an error."""
_MOST_ROUTES, _LONGEST_NAME = 4096, 256
"""Bounds of the cached routes: clients choose the names."""


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
    """An upstream with the facts and settings that apply to all of its models."""

    name: str
    upstream: HttpUpstream
    facts: ModelFacts = UNKNOWN_MODEL
    settings: Settings = NOTHING_SAID
    learned: Learned = field(default_factory=Learned, compare=False, repr=False)
    profiles: Profiles = field(default=NO_PROFILES, compare=False, repr=False)
    providers: tuple[str, ...] = ()
    """Further names by which overrides may refer to it: its preset, its URL."""
    overrides: Overrides = NO_OVERRIDES

    def route(
        self, model: str, facts: ModelFacts = UNKNOWN_MODEL, settings: Settings = NOTHING_SAID, alias: str = ""
    ) -> "Route":
        """Return the route to one of its models. The model's own facts and settings override the upstream's."""
        known = facts.over(facts_of(model, self.facts, (self.name, *self.providers), self.overrides))
        described = bool(facts.said) or known.source is Source.SAID
        profiles = NO_PROFILES if described else self.profiles  # what the user states overrides what was measured
        upstream = self.upstream.with_quirks(known.quirks)
        return Route(self.name, upstream, model, known, settings.over(self.settings), alias, self.learned, profiles)


@dataclass(frozen=True, slots=True)
class Route:
    """A model of an upstream: its name there, its facts and its settings."""

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
    """The list that shows whether the model exists; None if the operator or the program has named it."""

    def of_tenant(self, tenant: str) -> "Route":
        """Return the same route for the turns of one tenant."""
        return self if tenant == self.tenant else replace(self, tenant=tenant)

    @property
    def is_real(self) -> bool:
        """Return whether the model is known to exist. Clients can invent names; nothing is learned about those."""
        return self.catalogue is None or self.catalogue.lists(self.model)

    async def confirm_real(self) -> bool:
        """Return whether the model exists, after reading the upstream's list again if it is old."""
        if not self.is_real and self.catalogue is not None:
            await self.catalogue.look()
        return self.is_real

    @property
    def measured(self) -> Measured:
        """Return the doctor's profile, if the server is still the one that was measured."""
        return self.profiles.heard(self.model, self.learned.verdict(self.model).fingerprint)

    @property
    def known(self) -> ModelFacts:
        """Return the facts, completed by the doctor's profile and by the current verdict."""
        return self._known(UNKNOWN_ORIGIN)

    def _known(self, origin: Origin) -> ModelFacts:
        return self.learned.facts(self.model, self.measured.facts(self.facts), origin)

    @property
    def identity(self) -> str:
        """Return the one name that permissions are checked against: the alias that led here, else `upstream:model`.

        A bare model name is never an identity. A client may write any name after `upstream:`, also that of an alias:
        with permission for the alias `fast`, a request for `up:fast` reached another upstream with the operator's key.
        """
        return self.alias or f"{self.place}:{self.model}"

    def plan(self, request: Request, asked: Settings = NOTHING_SAID) -> Plan:
        """Return the plan for a request. `asked` are the settings of the request, which override all others."""
        said, measured, known = asked.over(self.settings), self.measured, self._known(self._origin(request))
        heard = measured.under(said)
        if known.constraint is Constrain.OFF:  # the upstream refused constraints lately: a profile must not undo that
            heard = replace(heard, constraint=said.constraint)
        return measured.noted(self._keyed(decide(request, heard, known), request), said)

    def _keyed(self, plan: Plan, request: Request) -> Plan:
        """Return the plan with the key of the conversation, if its settings ask for keyed markers (SAFE-4)."""
        settings = plan.settings
        if not settings.keyed or settings.key or plan.dialect in (DECISION_DIALECT, JSON_DIALECT):
            return plan  # a decision, and an answer that is JSON as a whole, have no markers
        conversation = memory_key(request, self.tenant)
        key = choose_key(self.learned.secret, conversation, untrusted_texts(request))
        return replace(plan, settings=replace(settings, key=key))

    async def take(  # noqa: PLR0913 # a turn, and what its caller hears of it
        self,
        request: Request,
        plan: Plan,
        emit: EmitEvents,
        clock: Clock = CLOCK,
        prepare: Run = at_once,
        *,
        replanned: Callable[[Plan], None] | None = None,
    ) -> Outcome:
        """Run one turn, emit its events and return its outcome, which is also noted as evidence about the model.

        Constraints are written in the plan's form, whatever is learned while the turn runs. `prepare` decides where
        the work runs that takes time in proportion to the request. `replanned` is told when the turn goes on in another
        way than the plan says.
        """
        sent = request if request.model == self.model else replace(request, model=self.model)
        upstream = self.upstream
        if isinstance(upstream, HttpUpstream):
            upstream = upstream.constrained(plan.facts.quirks.constraint).encoding(prepare)
        remembered = self.learned.tool_memory.recall(sent, self.tenant)
        turn = take_turn(sent, plan, emulated_ids(clock.nanoseconds()), remembered)
        outcome = await drive(turn, upstream, emit, prepare, replanned)
        # Only a history with calls needs them. By now a client that streams has its answer.
        if any(isinstance(event, CallStarted) for event in outcome.events):
            self.learned.tool_memory.learn(sent, self.tenant)
        self.learned.note(self.model, outcome, self._origin(request), is_real=self.is_real)
        return outcome

    def _origin(self, request: Request) -> Origin:
        return Origin(self.tenant, request)


@dataclass(frozen=True, slots=True)
class Listed:
    """A model under the name by which the gateway lists it."""

    name: str
    route: Route


class Directory:
    """All models that clients can request. It needs at least one upstream."""

    def __init__(
        self,
        places: Sequence[ConfiguredUpstream],
        aliases: Mapping[str, Route] | None = None,
        default: str = "",
        clock: Clock = CLOCK,
    ) -> None:
        """Take the upstreams in the order of their priority, the aliases, and the model for unknown names."""
        self._places: Final = {place.name: _Lister(place, clock) for place in places}
        self._aliases: Final = dict(aliases or {})
        self._default: Final = default
        prefixes = [(f"{name}{mark}", lister) for name, lister in self._places.items() for mark in ":/"]
        self._prefixes: Final = sorted(prefixes, key=lambda each: -len(each[0]))
        """The longest first: `box:8000:` must be tried before `box:`."""

    async def find(self, name: str) -> Route:
        """Return the route for a name; for an unknown name, the route of the default. Never raises."""
        return self._named(name) or await self._listed(name) or await self._instead(name)

    async def exactly(self, name: str) -> Route:
        """Return the route for exactly this name. If no upstream lists it, the first upstream gets it unchanged."""
        found = self._named(name)
        # With one upstream its list cannot change the result, so a program does not wait for it.
        if found is None and len(self._places) > 1:
            found = await self._listed(name)
        return found or self._first().route(name)

    async def listing(self) -> list[Listed]:
        """Return the aliases and all models that upstreams list, each name once; an alias hides a model of its name."""
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
        """Return the route if an upstream lists the model. Lists are only read again if none of them has the name."""
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
    """Read the lists of all upstreams at once, and return the route of the first that has the model.

    Upstreams keep their priority: a later one is only used when all before it have answered without the model. The
    lists after the first match are cancelled, so that a slow upstream does not delay the request.
    """
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
    """The models of one upstream. Its list is read again when it is old; concurrent callers share one request."""

    def __init__(self, place: ConfiguredUpstream, clock: Clock) -> None:
        self._place: Final = place
        self._clock: Final = clock
        self._names: dict[str, str] = {}
        self._routes: Final[dict[str, Route]] = {}
        self._until = -inf
        self._lock: Final = asyncio.Lock()

    def route(self, model: str) -> Route:
        """Return the route to a model of this upstream. Routes are cached, because each request needs one."""
        found = self._routes.get(model) or replace(self._place.route(model), catalogue=self)
        if len(self._routes) < _MOST_ROUTES and len(model) <= _LONGEST_NAME:
            self._routes[model] = found
        return found

    @property
    def names(self) -> list[str]:
        """Return the listed names as the upstream spells them."""
        return list(dict.fromkeys(self._names.values()))

    def lists(self, model: str) -> bool:
        """Return whether the upstream listed the model, with or without `:latest`."""
        return model in self._names or without_latest(model) in self._names

    def route_of(self, name: str) -> Route | None:
        """Return the route under the name that the upstream spells, if it was listed."""
        found = self._names.get(name) or self._names.get(without_latest(name))
        return self.route(found) if found else None

    def is_old(self) -> bool:
        """Return whether it is time to read the list again."""
        return self._clock.monotonic() >= self._until

    async def look(self) -> None:
        """Read the list if it is old. Callers that arrive during the request wait for its result."""
        # The age is checked under the lock, so callers that waited find the list fresh. If the caller that sends the
        # request is cancelled, the next one that waits sends it again.
        async with self._lock:
            if self.is_old():
                await self._ask()

    async def _ask(self) -> None:
        fresh = _FRESH
        try:
            names = await list_models(self._place.upstream)
        except TransportError:  # keep the old names: a short outage must not turn known models into unknown ones
            names, fresh = list(self._names.values()), _FRESH_FAILURE
        # Ollama lists `m:latest`, and clients write `m`. A model whose name really is `m` overrides that.
        self._names = {without_latest(name): name for name in names} | {name: name for name in names}
        self._until = self._clock.monotonic() + fresh
