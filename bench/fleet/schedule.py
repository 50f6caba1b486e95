"""Which part of the fleet breaks when, and for how long: a pure function of the seed."""

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

CALM = 0.08
"""Share of the time at the beginning, and at the end, in which no fault begins or lasts."""
SLOWEST_S, FASTEST_S = 20.0, 3.5
"""Bounds of the mean time between the beginnings of two faults."""
FAULTS = 60
"""Faults of a run, if these bounds allow that many."""


class Kind(StrEnum):
    """A kind of fault."""

    KILL_GATEWAY = "kill-gateway"
    """`kill -9` of a supervisor and its workers: a node dies."""
    KILL_SUPERVISOR = "kill-supervisor"
    KILL_GATEWAY_WORKER = "kill-gateway-worker"
    KILL_RUN_WORKER = "kill-run-worker"
    KILL_UPSTREAM = "kill-upstream"
    KILL_PROXY = "kill-proxy"
    STOP_GATEWAY_WORKER = "stop-gateway-worker"
    """SIGSTOP, then SIGCONT."""
    STOP_GATEWAY = "stop-gateway"
    """The same, of a supervisor and its workers."""
    STOP_UPSTREAM = "stop-upstream"
    STOP_PROXY = "stop-proxy"
    STOP_RUN_WORKER = "stop-run-worker"
    """SIGSTOP, mostly for longer than its lease, then SIGCONT."""
    STOP_REDIS = "stop-redis"
    STOP_POSTGRES = "stop-postgres"
    RESTART_REDIS = "restart-redis"
    """`kill -9`; it starts again, empty."""
    RESTART_POSTGRES = "restart-postgres"
    """An immediate shutdown, as a power failure; it starts again with its data."""
    UPSTREAM_HANGS = "upstream-hangs"
    UPSTREAM_LIES = "upstream-lies"
    """Answers that are no answers: broken JSON, an end without an end, a page, a reset."""
    UPSTREAM_SLOWS = "upstream-slows"
    FULL_DISK = "full-disk"
    CLOCK_STEP = "clock-step"
    """The wall clock of one process jumps by an hour, and back."""
    RELOAD = "reload"
    """No fault: a gateway gets a changed configuration and SIGHUP, and replaces its workers one by one."""


class Part(StrEnum):
    """The kinds of processes of the fleet."""

    GATEWAY = "gateway"
    RUN_WORKER = "run-worker"
    UPSTREAM = "upstream"
    PROXY = "proxy"
    REDIS = "redis"
    POSTGRES = "postgres"


@dataclass(frozen=True)
class Nature:
    """What a kind of fault hits, and for how many seconds; 0: it is over at once."""

    part: Part
    shortest_s: float = 0.0
    longest_s: float = 0.0


NATURES: Mapping[Kind, tuple[Nature, ...]] = {
    Kind.KILL_GATEWAY: (Nature(Part.GATEWAY),),
    Kind.KILL_SUPERVISOR: (Nature(Part.GATEWAY),),
    Kind.KILL_GATEWAY_WORKER: (Nature(Part.GATEWAY),),
    Kind.KILL_RUN_WORKER: (Nature(Part.RUN_WORKER),),
    Kind.KILL_UPSTREAM: (Nature(Part.UPSTREAM),),
    Kind.KILL_PROXY: (Nature(Part.PROXY),),
    Kind.STOP_GATEWAY_WORKER: (Nature(Part.GATEWAY, 1.0, 6.0),),
    Kind.STOP_GATEWAY: (Nature(Part.GATEWAY, 1.0, 6.0),),
    Kind.STOP_UPSTREAM: (Nature(Part.UPSTREAM, 3.0, 12.0),),
    Kind.STOP_PROXY: (Nature(Part.PROXY, 1.0, 4.0),),
    Kind.STOP_RUN_WORKER: (Nature(Part.RUN_WORKER, 2.0, 12.0),),
    Kind.STOP_REDIS: (Nature(Part.REDIS, 1.0, 5.0),),
    Kind.STOP_POSTGRES: (Nature(Part.POSTGRES, 1.0, 8.0),),
    Kind.RESTART_REDIS: (Nature(Part.REDIS, 0.5, 5.0),),
    Kind.RESTART_POSTGRES: (Nature(Part.POSTGRES, 0.5, 5.0),),
    Kind.UPSTREAM_HANGS: (Nature(Part.UPSTREAM, 3.0, 12.0),),
    Kind.UPSTREAM_LIES: (Nature(Part.UPSTREAM, 3.0, 12.0),),
    Kind.UPSTREAM_SLOWS: (Nature(Part.UPSTREAM, 3.0, 12.0),),
    Kind.FULL_DISK: (Nature(Part.GATEWAY, 3.0, 12.0),),
    Kind.CLOCK_STEP: (Nature(Part.GATEWAY, 2.0, 8.0),),
    Kind.RELOAD: (Nature(Part.GATEWAY),),
}


@dataclass(frozen=True)
class Fault:
    """One fault: `at` is in seconds since the load began; `chance` decides which worker of a gateway, and where to."""

    at: float
    kind: Kind
    target: str
    seconds: float
    chance: float

    @property
    def ends(self) -> float:
        return self.at + self.seconds


Targets = Mapping[Kind, Sequence[str]]
"""The members of the fleet that a kind can hit; a kind without any is left out."""


def schedule(seed: int, seconds: float, targets: Targets) -> tuple[Fault, ...]:
    """Return the faults of a run, in their order.

    Kinds come in shuffled rounds: none is repeated before all others have come. Faults of different targets may
    overlap; a target has one at a time. All are over before the last part of the time, in which the fleet must recover.
    """
    chance = random.Random(seed)
    every = min(max(seconds / FAULTS, FASTEST_S), SLOWEST_S)
    end = seconds * (1 - CALM)
    kinds = _rounds(chance, [kind for kind in Kind if targets.get(kind)])
    faults: list[Fault] = []
    at = seconds * CALM
    for kind in kinds:
        fault = _fault(chance, kind, at, targets[kind], faults)
        if fault.at >= end:
            break
        if fault.ends <= end:
            faults.append(fault)
        at += every * chance.uniform(0.5, 1.5)
    return tuple(sorted(faults, key=lambda fault: fault.at))


def _rounds(chance: random.Random, kinds: Collection[Kind]) -> Iterator[Kind]:
    """Yield the kinds forever, each round in a new order."""
    while kinds:
        yield from chance.sample(list(kinds), len(kinds))


def _fault(chance: random.Random, kind: Kind, at: float, targets: Sequence[str], before: Sequence[Fault]) -> Fault:
    """Choose a target that is well at that time; if none is, wait for the first that is."""
    free_at = {target: max([at, *(fault.ends for fault in before if fault.target == target)]) for target in targets}
    first = min(free_at.values())
    target = chance.choice([name for name, free in free_at.items() if free == first])
    nature = next(each for each in NATURES[kind] if target.startswith(each.part))
    seconds = chance.uniform(nature.shortest_s, nature.longest_s)
    return Fault(round(first, 2), kind, target, round(seconds, 2), chance.random())
