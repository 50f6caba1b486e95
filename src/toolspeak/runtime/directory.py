"""Resolves a model name of a request to a model of an upstream.

    claude-sonnet     an alias of the configuration
    groq:llama-3.3    a model of the upstream `groq`; `groq/llama-3.3` is the same
    qwen2.5-coder     a model that an upstream lists
    anything else     the default; without one, the first model that the first upstream lists

Agents request names that are built into them (such as `gpt-5.5`), so by default an unknown name is not an error. A
strict directory raises `UnknownModel` for it, also for a name after `groq:` that `groq` does not list.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final, Protocol, TypeAlias

from toolspeak.engine.effects import Escalate, Escalated, Outcome
from toolspeak.engine.guard import choose_key
from toolspeak.engine.memory import memory_key
from toolspeak.engine.plan import DECISION_DIALECT, JSON_DIALECT, Plan, decide
from toolspeak.engine.prompt import untrusted_texts
from toolspeak.engine.readers import emulated_ids
from toolspeak.engine.settings import NOTHING_SAID, Settings
from toolspeak.engine.turn import take_turn
from toolspeak.errors import UnknownModel
from toolspeak.facts.model import UNKNOWN_MODEL, Constrain, ModelFacts, Source, Support, without_latest
from toolspeak.facts.strategy import NO_OVERRIDES, Overrides, facts_of
from toolspeak.ir.event import CallStarted, Event
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.request import Request
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.drive import AsyncUpstream, drive
from toolspeak.runtime.escalation import EscalatedWatch, EscalationLimit
from toolspeak.runtime.learned import UNKNOWN_ORIGIN, Learned, Origin
from toolspeak.runtime.offload import Run, at_once
from toolspeak.runtime.profile_watch import watched_turn
from toolspeak.runtime.profiles import NO_PROFILES, Measured, Profiles
from toolspeak.runtime.recorder import UNWATCHED, TurnWatch
from toolspeak.runtime.replicas import ReplicaPool
from toolspeak.runtime.text_shortcut import TextShortcut
from toolspeak.runtime.transport import TransportError
from toolspeak.runtime.turn_progress import TurnProgress
from toolspeak.runtime.upstream import HttpUpstream, ObservedUpstream, list_models

EmitEvents: TypeAlias = Callable[[Sequence[Event]], Awaitable[None]]
_FRESH, _FRESH_FAILURE = 60.0, 10.0
"""Seconds until a list of models is read again: after a success, and after an error."""
_ABSENT: Final = frozenset((FailureKind.DISCONNECTED, FailureKind.TIMEOUT, FailureKind.TRANSIENT))
"""Failures of a server that is not there, or not ready: llama.cpp answers 503 while it loads a model."""
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
    fallbacks: "tuple[Route, ...]" = field(default=(), compare=False, repr=False)
    """Other models that answer if this one cannot, see `fallback.py`."""
    stronger: "Route | None" = field(default=None, compare=False, repr=False)
    """The model that is asked for calls which this one gets wrong, see `escalation.py`."""
    escalations: EscalationLimit = field(default_factory=EscalationLimit, compare=False, repr=False)

    def of_tenant(self, tenant: str) -> "Route":
        """Return the same route for the turns of one tenant."""
        return self if tenant == self.tenant else replace(self, tenant=tenant)

    def sending_tools(self) -> "Route":
        """Return the same route as if it were known that the model has tools and leaks some calls as text.

        With the mode `auto`, tools are then sent and leaked calls rescued, whatever else is known about the model.
        """
        facts = self.facts.with_tools(Support.LEAKS, Source.SAID)
        return replace(self, facts=facts, profiles=NO_PROFILES, fallbacks=(), stronger=None)

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
        """Return the doctor's profile, if it is not suspended and the server is still the one that was measured."""
        return self.profiles.heard(self.model, self.learned.verdict(self.model).fingerprint, self.tenant)

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
        watch: TurnWatch = UNWATCHED,
        progress: TurnProgress | None = None,
        shortcut: TextShortcut | None = None,
    ) -> Outcome:
        """Run one turn, emit its events and return its outcome, which is also noted as evidence about the model.

        Constraints are written in the plan's form, whatever is learned while the turn runs. `prepare` decides where
        the work runs that takes time in proportion to the request. `watch` is told of all requests and answers;
        `progress` shows at any time what the turn waits for; `shortcut` carries plain text past it.
        """
        sent = request if request.model == self.model else replace(request, model=self.model)
        upstream = self.upstream
        if isinstance(upstream, HttpUpstream):
            upstream = upstream.constrained(plan.facts.quirks.constraint).encoding(prepare)
            upstream = upstream if progress is None else ObservedUpstream(upstream, progress, shortcut)
        remembered = self.learned.tool_memory.recall(sent, self.tenant)
        seed = clock.nanoseconds()
        watch.began(seed, remembered)
        stronger = self.stronger

        async def escalate(effect: Escalate) -> list[Event] | None:
            told = progress or TurnProgress()
            if stronger is None or not self.escalations.spend(clock.monotonic()):
                told.escalated = Escalated.DENIED
                return None
            told.escalated = Escalated.FAILED  # unless the outcome says otherwise
            route = stronger.of_tenant(self.tenant)
            noted = EscalatedWatch(watch, route.identity, effect.why)
            answered = await route.take(request, route.plan(request), _hide, clock, watch=noted, progress=progress)
            return list(answered.events)

        turn = take_turn(sent, plan, emulated_ids(seed), remembered, escalates=stronger is not None)
        outcome = await drive(turn, upstream, emit, prepare, watch, escalate=escalate, shortcut=shortcut)
        # Only a history with calls needs them. By now a client that streams has its answer.
        if any(isinstance(event, CallStarted) for event in outcome.events):
            self.learned.tool_memory.learn(sent, self.tenant)
        self.learned.note(self.model, outcome, self._origin(request), is_real=self.is_real)
        if self.learned.is_shared and self.is_real and self.profiles.on:
            seen = watched_turn(request, outcome, self.tenant)
            if seen is not None:
                self.profiles.note(self.model, seen, used=self.measured.profile is not None)
        return outcome

    def _origin(self, request: Request) -> Origin:
        return Origin(self.tenant, request)


async def _hide(events: Sequence[Event]) -> None:
    """Send nothing: the outcome has all events."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A model under the name by which the gateway lists it."""

    name: str
    route: Route


@dataclass(frozen=True, slots=True)
class UpstreamState:
    """Whether an upstream answers: `failure` is that of its last list of models, None if it was read."""

    name: str
    is_known: bool
    """The list was requested at least once."""
    failure: Failure | None

    @property
    def answers(self) -> bool:
        """Whether the server is there. One that refuses its list (401, 404) may still serve turns."""
        return self.is_known and (self.failure is None or self.failure.kind not in _ABSENT)


class Directory:
    """All models that clients can request. It needs at least one upstream."""

    def __init__(
        self,
        places: Sequence[ConfiguredUpstream],
        aliases: Mapping[str, Route] | None = None,
        default: str = "",
        clock: Clock = CLOCK,
        *,
        is_strict: bool = False,
    ) -> None:
        """Take the upstreams in the order of their priority, the aliases, and the model for unknown names."""
        self._is_strict = is_strict
        self._places = {place.name: _Lister(place, clock) for place in places}
        self._aliases = dict(aliases or {})
        self._default = default
        prefixes = [(f"{name}{mark}", lister) for name, lister in self._places.items() for mark in ":/"]
        self._prefixes = sorted(prefixes, key=lambda each: -len(each[0]))
        """The longest first: `box:8000:` must be tried before `box:`."""

    def adopt(self, other: "Directory") -> None:
        """Become the other directory: a reload. Routes that requests have found stay as they are."""
        self.__dict__ |= other.__dict__

    def learned(self, name: str, url: str) -> Learned | None:
        """Return what was learned about an upstream, if one of this name has this URL."""
        lister = self._places.get(name)
        return lister.learned if lister is not None and lister.url == url else None

    def pool(self, name: str, urls: tuple[str, ...]) -> ReplicaPool | None:
        """Return the servers of an upstream, if one of this name has exactly these."""
        lister = self._places.get(name)
        return lister.pool if lister is not None and lister.pool.urls == urls else None

    def upstream(self, name: str) -> HttpUpstream | None:
        """Return an upstream by its name; None if there is none."""
        lister = self._places.get(name)
        return None if lister is None else lister.upstream

    def pools(self) -> dict[str, ReplicaPool]:
        """Return the servers of each upstream, by its name."""
        return {name: lister.pool for name, lister in self._places.items()}

    async def find(self, name: str) -> Route:
        """Return the route for a name; for an unknown name, the route of the default. A strict one: `UnknownModel`."""
        found = self._named(name) or await self._listed(name)
        if found is not None and self._is_strict and not await self._confirms(found):
            found = None
        if found is None and name and self._is_strict:
            raise UnknownModel(f"there is no model {name[:_LONGEST_NAME]!r} here")
        return found or await self._instead(name)

    async def _confirms(self, route: Route) -> bool:
        """Return whether the model exists. An upstream that lists no models at all can confirm none, and is asked."""
        return await route.confirm_real() or not self._places[route.place].names

    async def look(self) -> list[UpstreamState]:
        """Read the lists of models that are old, and return which upstreams answer."""
        async with asyncio.TaskGroup() as group:
            for lister in self._places.values():
                group.create_task(lister.look())
        return self.states()

    def states(self) -> list[UpstreamState]:
        """Return which upstreams answered when they were asked last."""
        return [UpstreamState(name, lister.is_known, lister.failure) for name, lister in self._places.items()]

    def silence(self, *, partial: bool = False) -> str:
        """Return which upstreams do not answer, and why; empty if one answers, or with `partial` if all do."""
        silent = [state for state in self.states() if not state.answers]
        if not silent or (not partial and len(silent) < len(self._places)):
            return ""
        reasons = "; ".join(f"{state.name}: {state.failure.message}" for state in silent if state.failure is not None)
        who = "no upstream answers" if len(silent) == len(self._places) else "not all upstreams answer"
        return f"{who} ({reasons})" if reasons else who

    async def exactly(self, name: str) -> Route:
        """Return the route for exactly this name. If no upstream lists it, the first upstream gets it unchanged."""
        found = self._named(name)
        # With one upstream its list cannot change the result, so a program does not wait for it.
        if found is None and len(self._places) > 1:
            found = await self._listed(name)
        return found or self._first().route(name)

    async def listing(self) -> list[Listed]:
        """Return the aliases and all models that upstreams list, each name once; an alias hides a model of its name."""
        await self.look()
        listed = {name: Listed(name, route) for name, route in self._aliases.items()}
        for lister in self._places.values():
            for name in lister.names:
                listed.setdefault(name, Listed(name, lister.route(name)))
        return list(listed.values())

    def models(self) -> list[Listed]:
        """Return the aliases and every model of every upstream, as the lists were read last; see `look`.

        `listing` has each name once. Here a model whose name leads to another upstream is there as `upstream:model`.
        """
        found = [Listed(name, route) for name, route in self._aliases.items()]
        taken = set(self._aliases)
        for place, lister in self._places.items():
            for name in lister.names:
                found.append(Listed(f"{place}:{name}" if name in taken else name, lister.route(name)))
                taken.add(name)
        return found

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
        self.is_known = False
        """The list was requested at least once."""
        self.failure: Failure | None = None
        """Why it could not be read the last time."""
        self._lock: Final = asyncio.Lock()

    @property
    def learned(self) -> Learned:
        """What was learned about the upstream."""
        return self._place.learned

    @property
    def upstream(self) -> HttpUpstream:
        """The upstream itself."""
        return self._place.upstream

    @property
    def pool(self) -> ReplicaPool:
        """The servers of the upstream."""
        return self._place.upstream.pool

    @property
    def url(self) -> str:
        """The base URL of the upstream."""
        return self._place.upstream.url

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
        fresh, self.failure = _FRESH, None
        try:
            names = await list_models(self._place.upstream)
        except (
            TransportError
        ) as error:  # keep the old names: a short outage must not turn known models into unknown ones
            names, fresh, self.failure = list(self._names.values()), _FRESH_FAILURE, error.failure
        self.is_known = True
        # Ollama lists `m:latest`, and clients write `m`. A model whose name really is `m` overrides that.
        self._names = {without_latest(name): name for name in names} | {name: name for name in names}
        self._until = self._clock.monotonic() + fresh
