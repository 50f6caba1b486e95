"""Applies the schedule's faults to the processes of the fleet, and measures how long each takes to recover."""

import asyncio
import os
import signal
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from bench.fleet.checks import Span
from bench.fleet.deaths import Death, Delay, connections, longest_delay
from bench.fleet.load import KEYS
from bench.fleet.processes import PROXY, WORKERS, Fleet, Member, answers, metric
from bench.fleet.schedule import Fault, Kind
from bench.fleet.upstream import Mode

HOUR_S = 3600
PATIENCE_S = 60.0
"""Seconds after which a part counts as not recovered."""
COUNTED_S = 1.2
"""Seconds after a kill until the metrics of a gateway no longer count a dead worker: a page may be a second old. No
process is ready again earlier."""
ASKED = 8
"""New connections on which a gateway must accept a key, so that all of its workers are checked."""
SETTLE_S = 2.0
"""nginx does not try a failed gateway for this many seconds (fail_timeout)."""
KILLS = frozenset(
    {
        Kind.KILL_GATEWAY,
        Kind.KILL_SUPERVISOR,
        Kind.KILL_GATEWAY_WORKER,
        Kind.KILL_RUN_WORKER,
        Kind.KILL_UPSTREAM,
        Kind.KILL_PROXY,
    }
)
MODES = {Kind.UPSTREAM_HANGS: Mode.HANGS, Kind.UPSTREAM_LIES: Mode.LIES, Kind.UPSTREAM_SLOWS: Mode.SLOWS}
Undo = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Event:
    """A fault that happened, in seconds since the load began. `recovered` is None if it took over `PATIENCE_S`."""

    fault: Fault
    began: float
    ended: float
    """When it began to be put right; for a kill, when it happened."""
    recovered: float | None
    death: Death | None = None
    """Of a process that carried answers."""

    @property
    def recovery_s(self) -> float | None:
        return None if self.recovered is None else self.recovered - self.ended


def deaths(events: Sequence[Event]) -> list[Death]:
    """Return the deaths of all processes that carry answers."""
    return [event.death for event in events if event.death]


def with_delays(events: Iterable[Event], delays: Sequence[Delay]) -> list[Event]:
    """Return the events; their deaths have the delay of the clients' event loop."""
    return [
        replace(event, death=replace(event.death, delay=longest_delay(delays, event.death))) if event.death else event
        for event in events
    ]


def closed_spans(events: Sequence[Event]) -> list[Span]:
    """Return when the load balancer was down, so that clients could not connect."""
    return [
        Span(event.began, (event.recovered or event.ended + PATIENCE_S) + event.death.noticed_s)
        for event in events
        if event.fault.kind is Kind.KILL_PROXY and event.death
    ]


def apart_spans(events: Sequence[Event]) -> list[Span]:
    """Return when gateways may have counted limits for themselves, because Redis was away.

    Until two seconds after Redis is back a gateway may not have noticed; then it adds what it admitted meanwhile.
    """
    kinds = (Kind.RESTART_REDIS, Kind.STOP_REDIS)
    return [
        Span(event.began - 0.5, (event.recovered or event.ended + PATIENCE_S) + SETTLE_S)
        for event in events
        if event.fault.kind in kinds
    ]


class Saboteur:
    """Carries out faults, each in its own task."""

    def __init__(self, fleet: Fleet, began: float) -> None:
        self._fleet, self._began = fleet, began
        self._busy: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.events: list[Event] = []

    def now(self) -> float:
        return time.monotonic() - self._began

    async def play(self, faults: tuple[Fault, ...]) -> None:
        """Carry out all faults, each at its time, and wait for the recovery of each."""
        async with asyncio.TaskGroup() as group:
            for fault in faults:
                await asyncio.sleep(max(0.0, fault.at - self.now()))
                group.create_task(self._strike(fault))

    async def _strike(self, fault: Fault) -> None:
        """Break a part that is well, put it right again, and wait until it has recovered.

        A part that still recovers is not struck: it may have no process that a signal could hit.
        """
        is_well = _check(self._fleet, fault.target)
        async with self._busy[fault.target]:
            await self._recovery(is_well)
            began = self.now()
            undo, death = await self._do(fault)
            await asyncio.sleep(fault.seconds or (COUNTED_S if fault.kind in KILLS else 0.0))
            ended = self.now() if fault.seconds else began
            await undo()
            if fault.kind is Kind.RELOAD:
                is_well = _has_reloaded(self._fleet, fault)
            recovered = await self._recovery(is_well)
        self.events.append(Event(fault, began, ended, recovered, death))

    async def _recovery(self, is_well: Callable[[], bool]) -> float | None:
        deadline = self.now() + PATIENCE_S
        while self.now() < deadline:
            if await asyncio.to_thread(is_well):
                return self.now()
            await asyncio.sleep(0.1)
        return None

    async def _do(self, fault: Fault) -> tuple[Undo, Death | None]:
        """Break something; return how to undo it, and the death that may break off answers, if there is one."""
        if fault.target == "redis":
            return await _break_redis(self._fleet, fault.kind), None
        if fault.target == "postgres":
            return await _break_postgres(self._fleet, fault.kind), None
        member = self._fleet.members[fault.target]
        if fault.kind in KILLS:
            return _nothing, await asyncio.to_thread(self._kill, member, fault)
        return _break_member(self._fleet, member, fault), None

    def _kill(self, member: Member, fault: Fault) -> Death | None:
        """Send SIGKILL to processes. They are stopped first, so that the count of their connections is exact."""
        pids = _victims(member, fault)
        port = None if fault.kind is Kind.KILL_SUPERVISOR else self._fleet.port(member.name)
        member.send(signal.SIGSTOP, pids)
        carried = connections(port, pids if fault.kind is Kind.KILL_GATEWAY_WORKER else None) if port else 0
        at = self.now()
        member.kill(pids)
        address = "" if member.name == PROXY else f"127.0.0.1:{port}"
        return Death(address, at, self.now(), carried) if port else None


def _check(fleet: Fleet, target: str) -> Callable[[], bool]:
    """Make a check: a part of the fleet is well."""
    if target == "redis":
        return fleet.limits_are_shared
    if target == "postgres":
        return answers(fleet.url("/v1/runs?limit=1"), KEYS["runs"])
    member = fleet.members[target]
    if target in fleet.addresses.gateways:
        url = fleet.url("/metrics", target)
        return lambda: member.is_ready() and (metric(url, "toolspeak_workers") or 0) >= WORKERS
    return member.is_ready


def _has_reloaded(fleet: Fleet, fault: Fault) -> Callable[[], bool]:
    """Make a check: all workers of a gateway accept the new key of its configuration."""
    accepts = answers(fleet.url("/v1/models", fault.target), _new_key(fault))
    return lambda: all(accepts() for _ in range(ASKED))


def _new_key(fault: Fault) -> str:
    return f"sk-fleet-{fault.target}-{fault.at}"


def _victims(member: Member, fault: Fault) -> list[int]:
    """Return the processes that a kill hits, the first one first, so that nothing is started in between."""
    if fault.kind is Kind.KILL_SUPERVISOR:
        return member.pids[:1]
    return _one(member.workers, fault.chance) if fault.kind is Kind.KILL_GATEWAY_WORKER else member.pids


async def _nothing() -> None:
    """Undo a kill: the fleet starts the process again by itself."""


def _break_member(fleet: Fleet, member: Member, fault: Fault) -> Undo:
    match fault.kind:
        case Kind.STOP_GATEWAY_WORKER:
            return _stop(member, _one(member.workers, fault.chance))
        case Kind.UPSTREAM_HANGS | Kind.UPSTREAM_LIES | Kind.UPSTREAM_SLOWS:
            fleet.mode(member.name, MODES[fault.kind])
            return _later(lambda: fleet.mode(member.name, Mode.RIGHT))
        case Kind.RELOAD:
            fleet.add_key(member.name, _new_key(fault))
            member.send(signal.SIGHUP, member.pids[:1])
            return _nothing
        case Kind.FULL_DISK:
            return _fill(fleet)
        case Kind.CLOCK_STEP:
            assert fleet.clock
            clock = fleet.clock
            clock.write_text(f"{'+' if fault.chance < 0.5 else '-'}{HOUR_S}\n")
            return _later(lambda: clock.write_text("+0\n"))
        case _:
            return _stop(member, member.pids)


def _later(action: Callable[[], object]) -> Undo:
    async def undo() -> None:
        action()

    return undo


def _one(pids: list[int], chance: float) -> list[int]:
    return [sorted(pids)[int(chance * len(pids))]] if pids else []


def _stop(member: Member, pids: list[int]) -> Undo:
    member.send(signal.SIGSTOP, pids)
    return _later(lambda: member.send(signal.SIGCONT, pids))


def _fill(fleet: Fleet) -> Undo:
    """Fill the disk of a gateway to its last byte."""
    assert fleet.disk
    filler = fleet.disk / "filler"
    opened = os.open(filler, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with suppress(OSError):  # no space left on device
        for size in (1 << 20, 1 << 12, 1):
            with suppress(OSError):
                while os.write(opened, b"\0" * size):
                    pass
    os.close(opened)
    return _later(filler.unlink)


async def _break_redis(fleet: Fleet, kind: Kind) -> Undo:
    if kind is Kind.STOP_REDIS:
        fleet.redis.hang()
        return _later(fleet.redis.go_on)
    fleet.redis.kill()
    return lambda: asyncio.to_thread(fleet.redis.start)


async def _break_postgres(fleet: Fleet, kind: Kind) -> Undo:
    if kind is Kind.STOP_POSTGRES:
        await asyncio.to_thread(fleet.postgres.freeze)
        return lambda: asyncio.to_thread(fleet.postgres.thaw)
    await asyncio.to_thread(fleet.postgres.stop)
    return lambda: asyncio.to_thread(fleet.postgres.start)
