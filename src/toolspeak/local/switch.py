"""Decides which of several models is loaded when, without processes, threads or clocks.

    switch = Switch(["a", "b"], most=1, idle=600)
    switch.ask("a", ticket, now)        -> [Load("a")]
    switch.has_loaded("a", now)         -> [Grant(ticket)]

Each method takes an event with its time, and returns what to do about it. The rules (UP-3 to UP-6):

- At most `most` models have a place at one time: those that load, are loaded, or are being unloaded.
- A request for a loaded model is granted at once. If another model waits for a place, one loaded model has to yield: it
  gets no new request, finishes the answers that are open, and is unloaded. So none starves, however busy another is.
- Models get places in the order in which their oldest waiting requests came. A model that has been loaded answers all
  requests that waited for it, also those that came after requests for others: loading takes longer than answering.
- A model that fails to load gives its error to the requests that wait for it, and for `PAUSE` seconds to new ones:
  otherwise each of them would unload a model that works.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import Final, TypeAlias

PAUSE: Final = 15.0
"""Seconds after a failure in which a model is not loaded again."""


@dataclass(frozen=True, slots=True)
class Load:
    """Start to load a model; `has_loaded` or `has_failed` follows."""

    model: str


@dataclass(frozen=True, slots=True)
class Unload:
    """Unload a model that has no open answer; `has_unloaded` follows."""

    model: str
    why: str


@dataclass(frozen=True, slots=True)
class Grant:
    """Let a request go to its model; `done` follows."""

    ticket: Hashable


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer a request with an error."""

    ticket: Hashable
    why: str


SwitchAction: TypeAlias = Load | Unload | Grant | Refuse


class Place(StrEnum):
    """Where a model is; the value is what lists of models show."""

    UNLOADED = "unloaded"
    LOADING = "loading"
    LOADED = "loaded"
    UNLOADING = "unloading"
    FAILED = "failed"


_WITHOUT_PLACE: Final = (Place.UNLOADED, Place.FAILED)


@dataclass(slots=True)
class _Model:
    name: str
    place: Place = Place.UNLOADED
    open: set[Hashable] = field(default_factory=set[Hashable])
    """Requests that it answers now."""
    used: float = -inf
    """When a client's request was granted or done last."""
    yields: bool = False
    """It is loaded, and gets no new request, because another model waits for its place."""
    why: str = ""
    failed: float = -inf


class Switch:
    """The state of all models. Tickets are the callers' own; each is used for one request."""

    def __init__(self, models: Iterable[str], most: int, idle: float) -> None:
        """Begin with no model loaded. `idle` is in seconds; 0 keeps models until another needs their place."""
        self._models: Final = {name: _Model(name) for name in models}
        self._most: Final = most
        self._idle: Final = idle or inf
        self._waiting: Final[dict[Hashable, _Model]] = {}
        """Requests in the order in which they came."""

    # ---------------------------------------------------------------- requests

    def ask(self, model: str, ticket: Hashable, now: float) -> list[SwitchAction]:
        """Take a request of a client."""
        self._waiting[ticket] = self._models[model]
        return self._decide(now)

    def ask_if_loaded(self, model: str, ticket: Hashable) -> bool:
        """Take a request that may neither load a model nor keep it loaded. Return whether it is granted."""
        found = self._models[model]
        if found.place is not Place.LOADED or found.yields:
            return False
        found.open.add(ticket)
        return True

    def done(self, model: str, ticket: Hashable, now: float, *, counts: bool = True) -> list[SwitchAction]:
        """Note the end of an answer, or that the client of a waiting request has left.

        With `counts` False it does not count as use, as for requests that no client waits for.
        """
        found = self._models[model]
        self._waiting.pop(ticket, None)
        if ticket in found.open:
            found.open.discard(ticket)
            found.used = now if counts else found.used
        return self._decide(now)

    # ---------------------------------------------------------------- models

    def has_loaded(self, model: str, now: float) -> list[SwitchAction]:
        """Note that a model is ready."""
        found = self._models[model]
        found.place, found.used, found.why = Place.LOADED, now, ""
        return self._decide(now)

    def has_failed(self, model: str, why: str, now: float) -> list[SwitchAction]:
        """Note that a model cannot be loaded, or is lost; its process has ended."""
        found = self._models[model]
        found.place, found.yields, found.why, found.failed = Place.FAILED, False, why, now
        return self._decide(now)

    def has_unloaded(self, model: str, now: float) -> list[SwitchAction]:
        """Note that the process of a model has ended."""
        found = self._models[model]
        found.place, found.yields = Place.UNLOADED, False
        return self._decide(now)

    # ---------------------------------------------------------------- time

    def tick(self, now: float) -> list[SwitchAction]:
        """Unload the models that are idle for long enough."""
        return self._decide(now)

    def due(self) -> float:
        """Return when `tick` should be called next; infinity if nothing is idle."""
        return min((model.used + self._idle for model in self._idlers()), default=inf)

    def place(self, model: str) -> Place:
        """Return where a model is."""
        return self._models[model].place

    # ---------------------------------------------------------------- the decision

    def _decide(self, now: float) -> list[SwitchAction]:
        # Granted before it is known which model yields: a model that has just been loaded answers everything that
        # waited for it, even if another waits for its place already.
        actions: list[SwitchAction] = [*self._refusals(now), *self._grants()]
        wanting = self._wanting()
        free = self._most - sum(model.place not in _WITHOUT_PLACE for model in self._models.values())
        for model in wanting[: max(0, free)]:
            model.place = Place.LOADING
            actions.append(Load(model.name))
        leaving = sum(model.place is Place.UNLOADING for model in self._models.values())
        self._choose_yielding(max(0, len(wanting) - max(0, free) - leaving))
        actions += self._grants()  # to a model that need not yield any more
        return [*actions, *self._unloads(now)]

    def _refusals(self, now: float) -> Iterator[SwitchAction]:
        for ticket, model in list(self._waiting.items()):
            if model.place is Place.FAILED and now < model.failed + PAUSE:
                del self._waiting[ticket]
                yield Refuse(ticket, model.why)

    def _grants(self) -> list[SwitchAction]:
        ready = [ticket for ticket, model in self._waiting.items() if model.place is Place.LOADED and not model.yields]
        for ticket in ready:
            self._waiting.pop(ticket).open.add(ticket)
        return [Grant(ticket) for ticket in ready]

    def _wanting(self) -> list[_Model]:
        """Return the models that wait for a place, in the order of their oldest requests."""
        names = dict.fromkeys(model.name for model in self._waiting.values() if model.place in _WITHOUT_PLACE)
        return [self._models[name] for name in names]

    def _choose_yielding(self, count: int) -> None:
        """Choose the models that give up their place: those that yield already, then idle ones, the longest unused."""
        loaded = [model for model in self._models.values() if model.place is Place.LOADED]
        order = sorted(loaded, key=lambda model: (not model.yields, bool(model.open), model.used))
        for index, model in enumerate(order):
            model.yields = index < count

    def _unloads(self, now: float) -> Iterator[SwitchAction]:
        idle = [model for model in self._idlers() if now >= model.used + self._idle]
        for model in self._models.values():
            if model.place is Place.LOADED and not model.open and (model.yields or model in idle):
                model.place = Place.UNLOADING
                yield Unload(model.name, "another model needs its place" if model.yields else "it was idle")

    def _idlers(self) -> list[_Model]:
        return [model for model in self._models.values() if model.place is Place.LOADED and not model.open]
