"""Does what the schedule says to the processes of the fleet, and measures how long each takes to recover."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from bench.fleet.checks import Span
from bench.fleet.load import KEYS
from bench.fleet.processes import WORKERS, Fleet, Member, answers
from bench.fleet.schedule import Fault, Kind
from bench.fleet.upstream import Mode

HOUR_S = 3600
PATIENCE_S = 60.0
"""After which a part counts as not recovered."""
REAPED_S = 0.2
"""Until a killed process is no longer listed as a child: a supervisor starts the next one later than that."""
SETTLE_S = 2.0
"""nginx does not ask a gateway that failed for so long (fail_timeout)."""
MODES = {Kind.UPSTREAM_HANGS: Mode.HANGS, Kind.UPSTREAM_LIES: Mode.LIES, Kind.UPSTREAM_SLOWS: Mode.SLOWS}
CUTTING = frozenset(
    {
        Kind.KILL_GATEWAY,
        Kind.KILL_SUPERVISOR,
        Kind.KILL_GATEWAY_WORKER,
        Kind.KILL_PROXY,
        Kind.STOP_GATEWAY_WORKER,
    }
)
"""Kinds that may break a client's connection: no process is left that could write an error."""


@dataclass(frozen=True)
class Event:
    """A fault that happened, in seconds since the load began. `recovered` is None if it did not within the patience."""

    fault: Fault
    began: float
    ended: float
    """When the cause was taken away; for a kill, when it happened."""
    recovered: float | None

    @property
    def recovery_s(self) -> float | None:
        return None if self.recovered is None else self.recovered - self.ended


def broken_spans(events: Sequence[Event]) -> list[Span]:
    """Return when clients' connections may have broken."""
    late = PATIENCE_S + SETTLE_S
    return [
        Span(event.began, event.ended + late if event.recovered is None else event.recovered + SETTLE_S)
        for event in events
        if event.fault.kind in CUTTING
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
        began = self.now()
        undo, is_well = await self._do(fault)
        await asyncio.sleep(max(fault.seconds, REAPED_S))
        await undo()
        ended = self.now() if fault.seconds else began
        recovered = await self._recovery(is_well)
        self.events.append(Event(fault, began, ended, recovered))

    async def _recovery(self, is_well: Callable[[], bool]) -> float | None:
        deadline = self.now() + PATIENCE_S
        while self.now() < deadline:
            if await asyncio.to_thread(is_well):
                return self.now()
            await asyncio.sleep(0.1)
        return None

    async def _do(self, fault: Fault) -> tuple[Callable[[], Awaitable[None]], Callable[[], bool]]:
        """Break something; return how to undo it, and how to see that all is well again."""
        fleet = self._fleet
        if fault.target == "redis":
            return await _break_redis(fleet, fault.kind), fleet.limits_are_shared
        if fault.target == "postgres":
            return await _break_postgres(fleet, fault.kind), answers(fleet.url("/v1/runs?limit=1"), KEYS["runs"])
        member = fleet.members[fault.target]
        return _break_member(fleet, member, fault), _well(member)


async def _nothing() -> None:
    """Undo a kill: the fleet starts the process again by itself."""


def _well(member: Member) -> Callable[[], bool]:
    """Make a check: the member is ready, with all its workers."""
    wanted = WORKERS if member.name.startswith("gateway") else 0
    return lambda: member.is_ready() and (not wanted or len(member.workers) >= wanted)


def _break_member(fleet: Fleet, member: Member, fault: Fault) -> Callable[[], Awaitable[None]]:
    match fault.kind:
        case Kind.KILL_SUPERVISOR:
            member.send(signal.SIGKILL, member.pids[:1])
        case Kind.KILL_GATEWAY_WORKER:
            member.send(signal.SIGKILL, _one(member.workers, fault.chance))
        case Kind.STOP_GATEWAY_WORKER:
            return _stop(member, _one(member.workers, fault.chance))
        case Kind.STOP_RUN_WORKER:
            return _stop(member, member.pids)
        case Kind.UPSTREAM_HANGS | Kind.UPSTREAM_LIES | Kind.UPSTREAM_SLOWS:
            fleet.mode(member.name, MODES[fault.kind])
            return _later(lambda: fleet.mode(member.name, Mode.RIGHT))
        case Kind.FULL_DISK:
            return _fill(fleet)
        case Kind.CLOCK_STEP:
            assert fleet.clock
            clock = fleet.clock
            clock.write_text(f"{'+' if fault.chance < 0.5 else '-'}{HOUR_S}\n")
            return _later(lambda: clock.write_text("+0\n"))
        case _:
            member.kill()
    return _nothing


def _later(action: Callable[[], object]) -> Callable[[], Awaitable[None]]:
    async def undo() -> None:
        action()

    return undo


def _one(pids: list[int], chance: float) -> list[int]:
    return [sorted(pids)[int(chance * len(pids))]] if pids else []


def _stop(member: Member, pids: list[int]) -> Callable[[], Awaitable[None]]:
    member.send(signal.SIGSTOP, pids)
    return _later(lambda: member.send(signal.SIGCONT, pids))


def _fill(fleet: Fleet) -> Callable[[], Awaitable[None]]:
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


async def _break_redis(fleet: Fleet, kind: Kind) -> Callable[[], Awaitable[None]]:
    if kind is Kind.STOP_REDIS:
        fleet.redis.hang()
        return _later(fleet.redis.go_on)
    fleet.redis.kill()
    return lambda: asyncio.to_thread(fleet.redis.start)


async def _break_postgres(fleet: Fleet, kind: Kind) -> Callable[[], Awaitable[None]]:
    if kind is Kind.STOP_POSTGRES:
        await asyncio.to_thread(fleet.postgres.freeze)
        return lambda: asyncio.to_thread(fleet.postgres.thaw)
    await asyncio.to_thread(fleet.postgres.stop)
    return lambda: asyncio.to_thread(fleet.postgres.start)
