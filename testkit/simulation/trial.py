"""One turn against a simulated model, network and client, generated from one number.

A seed is one scenario: any request, plan and pair of wires; a model that answers, calls, refuses, forges or echoes; a
network that cuts, breaks, repeats or falls silent; a client that may go away. Nothing waits, nothing is real, and the
same seed gives the same bytes. After each, the promises of `promises.py` must hold.
"""

import hashlib
import traceback
from dataclasses import dataclass
from random import Random
from typing import Final

from testkit.simulation.client import SimClient, run
from testkit.simulation.promises import Run, breaches, turn_of
from testkit.simulation.scenario import Scenario, make
from testkit.simulation.upstream import AsyncSimUpstream, Cancelled, Clock, SimUpstream
from toolspeak.engine.effects import Outcome
from toolspeak.engine.readers import emulated_ids
from toolspeak.engine.turn import take_turn
from toolspeak.runtime.drive import drive, drive_sync

TWICE: Final = 16
"""One seed in this many is run again and must give the same bytes."""


@dataclass(frozen=True)
class Result:
    """The result of one seed."""

    seed: int
    kind: str
    fault: str
    requests: int
    cancelled: bool
    digest: bytes
    wrong: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()

    def report(self) -> str:
        """Report the broken promises, the scenario, and how to reproduce it."""
        wrong = "\n".join(f"  BROKEN {breach[:1500]}" for breach in self.wrong)
        lines = "\n".join(f"    {line}" for line in self.lines)
        return f"seed {self.seed}:\n{wrong}\n{lines}\n    again: just simulate 1 --seed {self.seed}"


def simulate(seed: int) -> Result:
    """Run one seed; any exception is a breach."""
    dice = Random(seed)
    try:
        scenario = make(seed, dice)
    except Exception:  # noqa: BLE001 - a scenario that cannot be made is a finding like any other
        return Result(seed, "", "", 0, cancelled=False, digest=b"", wrong=(f"raised {traceback.format_exc()}",))
    clock = Clock(scenario.cancels_at)
    upstream, client = SimUpstream(scenario, dice, clock), SimClient(scenario, dice, clock)
    wrong: list[str] = []
    try:
        outcome = _driven(scenario, upstream, client, clock)
        wrong.extend(breaches(Run(scenario, upstream, client, outcome, turn_of(client))))
    except Exception:  # noqa: BLE001 - as above
        wrong.append(f"raised {traceback.format_exc()}")
    return _result(scenario, upstream, client, clock, tuple(wrong))


def _driven(scenario: Scenario, upstream: SimUpstream, client: SimClient, clock: Clock) -> Outcome | None:
    """Drive the turn to its end; None if the client goes away."""
    program = take_turn(scenario.request, scenario.plan, emulated_ids(scenario.seed), scenario.remembered)
    try:
        if scenario.asynchronous:
            return run(drive(program, AsyncSimUpstream(upstream), client.emit_async), clock)
        return drive_sync(program, upstream, client.emit)
    except Cancelled:
        return None


def _result(
    scenario: Scenario, upstream: SimUpstream, client: SimClient, clock: Clock, wrong: tuple[str, ...]
) -> Result:
    attempts = upstream.attempts
    body = b"" if client.error is None else client.error.body
    digest = hashlib.sha256(repr((client.events, client.data, body)).encode("utf-8", "replace")).digest()
    lines = (*scenario.lines(), *(line for one in attempts for line in one.lines())) if wrong else ()
    return Result(
        scenario.seed,
        attempts[0].said.kind if attempts else "",
        attempts[0].delivery.fault if attempts else "",
        len(attempts),
        clock.cancelled,
        digest,
        wrong,
        lines,
    )


def checked(seed: int) -> Result:
    """Run one seed, and some of them twice."""
    result = simulate(seed)
    if seed % TWICE == 0 and simulate(seed).digest != result.digest:
        wrong = (*result.wrong, "the same seed gave other bytes")
        return Result(seed, result.kind, result.fault, result.requests, result.cancelled, result.digest, wrong)
    return result
