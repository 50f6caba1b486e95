"""Admits requests: of all clients at one time, and by the limits of their key and of their model (SAFE-7).

The limits protect tenants from each other, so a refused request must cost nothing: the limits of a key are checked
before its body is read. The model is known only from the body. A request that the model has no room for is given back
to its key.

The workers of one gateway count together (`tally.py`), and with Redis all gateways that share it (`fleet_limits.py`).
`limits.concurrent` protects one gateway, and is counted there.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from typing import Final

from toolspeak.config.shape import NO_RATE_LIMITS, Config, Key, Limits, RateLimits
from toolspeak.gateway.audit_log import AuditLog
from toolspeak.gateway.exchange import Refused
from toolspeak.gateway.limit_store import FULL_WAIT, Demand, Denial, LimitStore, LocalLimits, Spent
from toolspeak.gateway.tally import LimitTally, Meter, ProcessTally
from toolspeak.ir.event import Usage
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.directory import Route

_WORDS: Final = {
    Meter.REQUESTS: ("requests", "requests_per_minute"),
    Meter.INPUT_TOKENS: ("input tokens", "input_tokens_per_minute"),
    Meter.OUTPUT_TOKENS: ("output tokens", "output_tokens_per_minute"),
}
KEY, MODEL = "key", "model"
"""What can have limits."""


@dataclass(frozen=True, slots=True)
class LimitFigures:
    """The figures of limits that `GET /metrics` has."""

    refused: Mapping[tuple[str, ...], int]
    """Requests refused so far, by whose limit it was (`key`, `model`) and by the limit."""
    is_alone: bool
    """Limits should be shared through Redis, which is away."""


NO_LIMIT_FIGURES: Final = LimitFigures({}, is_alone=False)


class Admission:
    """Counts the requests being answered, and what their keys and models spend."""

    def __init__(  # noqa: PLR0913 # what requests are counted in, and by which limits
        self,
        limits: Limits,
        clock: Clock,
        tally: LimitTally | None = None,
        store: LimitStore | None = None,
        *,
        models: Mapping[tuple[str, str], RateLimits] | None = None,
        audit: AuditLog | None = None,
    ) -> None:
        """Start with no request inside. Without a tally that workers share, this process counts alone.

        `models` are the limits of models, by upstream and name there.
        """
        self.limits = limits
        self.models = models or {}
        """A reload replaces both."""
        self._clock: Final = clock
        self._inside = 0
        self._tally: Final = ProcessTally() if tally is None else tally
        self._store: Final[LimitStore] = LocalLimits(self._tally, clock) if store is None else store
        self._audit: Final = AuditLog(None, clock) if audit is None else audit
        self._refused: Final[Counter[tuple[str, ...]]] = Counter()

    @property
    def inside(self) -> int:
        """The number of requests being answered by this process."""
        return self._inside

    @property
    def figures(self) -> LimitFigures:
        """The figures of limits."""
        # A series that begins at 0 shows its first increase in a query of rates.
        names = (each.name for each in fields(RateLimits))
        refused: dict[tuple[str, ...], int] = {
            (whose, name): self._refused[whose, name] for name in names for whose in (KEY, MODEL)
        }
        return LimitFigures(refused, self._store.is_alone)

    @asynccontextmanager
    async def enter(self, key: Key, *, is_free: bool = False) -> AsyncGenerator["Ticket"]:
        """Count one request while it is answered; raises `Refused` (429, with `Retry-After`) if there is no room.

        `is_free` is a request that no model works on, such as the list of models. It takes its place among the requests
        of the moment, and does not count against the rate: an agent that lists models must not lose turns by it.
        """
        # Nothing is awaited between check and count, and other workers wait, so two requests cannot take the last slot.
        with self._tally.lock():
            if (total := self._tally.total) >= self.limits.concurrent:
                raise _busy(f"the gateway already has {total} requests (limits.concurrent)", FULL_WAIT)
            self._tally.add_total(1)
        self._inside += 1
        ticket = Ticket(self, key)
        try:
            await self._take(ticket, KEY, Demand(f"key:{key.tenant}", key.limits, self._clock.fresh_id(), is_free))
            yield ticket
        finally:
            self._inside -= 1
            self._tally.add_total(-1)
            for demand in ticket.demands:
                self._store.end(demand, ticket.spent)

    async def enter_model(self, ticket: "Ticket", route: Route) -> None:
        """Count the request for its model too; raises `Refused` (429)."""
        # By its place, not by the name that the client wrote: an alias and `upstream:model` are one model.
        limits = self.models.get((route.place, route.model), NO_RATE_LIMITS)
        await self._take(ticket, MODEL, Demand(f"model:{route.place}:{route.model}", limits, self._clock.fresh_id()))

    async def close(self) -> None:
        """Give back what is open."""
        await self._store.close()
        self._audit.flush()

    async def _take(self, ticket: "Ticket", whose: str, demand: Demand) -> None:
        if demand.limits == NO_RATE_LIMITS:
            return
        if (denial := await self._store.take(demand)) is not None:
            ticket.spent = Spent(is_refunded=True)
            name, message = _explained(denial, whose, demand.limits, ticket.key)
            self._refused[whose, name] += 1
            self._audit.refused(ticket.key.label, ticket.key.tenant, f"limit of the {whose}: {name}")
            raise _busy(message, denial.wait)
        ticket.demands.append(demand)


class Ticket:
    """One request that is inside, and what it has spent."""

    def __init__(self, admission: Admission, key: Key) -> None:
        """Begin without a demand."""
        self.key: Final = key
        self._admission: Final = admission
        self.demands: Final[list[Demand]] = []
        self.spent = Spent()

    async def use(self, route: Route) -> None:
        """Take the model of a route; raises `Refused` (429) if the limits of the model leave no room."""
        await self._admission.enter_model(self, route)

    def spend(self, usage: Usage) -> None:
        """Count tokens, at the end of the request."""
        self.spent = Spent(usage.input_tokens, usage.output_tokens, self.spent.is_refunded)


def limits_of_models(config: Config) -> dict[tuple[str, str], RateLimits]:
    """Return the limits of `[models]`, by upstream and name there. Of two names for one model the lower limits hold."""
    found: dict[tuple[str, str], RateLimits] = {}
    for model in config.models:
        place = model.upstream, model.model or model.name
        found[place] = model.limits.strictest(found.get(place, NO_RATE_LIMITS))
    return {place: limits for place, limits in found.items() if limits != NO_RATE_LIMITS}


def _explained(denial: Denial, whose: str, limits: RateLimits, key: Key) -> tuple[str, str]:
    """Return the name of the limit, and a message for the client."""
    who, table = ("this key", "keys") if whose == KEY else ("this model", "models.NAME")
    if whose == KEY and key.is_token:
        who, table = "this tenant", "access.jwt.tenants.PATTERN"
    if denial.meter is None:
        name, said = "concurrent", f"already has {limits.concurrent} requests open"
    else:
        noun, name = _WORDS[denial.meter]
        verb = "send" if whose == KEY else "get"
        said = f"may {verb} {getattr(limits, name)} {noun} a minute"
    return name, f"{who} {said} ({table}.{name})"


def _busy(message: str, after: float) -> Refused:
    return Refused(Failure(FailureKind.RATE_LIMITED, message, 429, retry_after=after))
