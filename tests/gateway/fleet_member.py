"""A process of a fleet that admits requests under shared limits: `python -m tests.gateway.fleet_member URL JSON`.

It sends as many requests as it is told, each of which stays open if the plan holds them, and prints how many were
admitted as a line of JSON; then it waits to be killed.
"""

import asyncio
import json
import sys
from contextlib import AsyncExitStack

from toolspeak.config.shape import Key, Limits, RateLimits
from toolspeak.gateway.admission import Admission
from toolspeak.gateway.exchange import Refused
from toolspeak.gateway.fleet_limits import FleetLimits
from toolspeak.gateway.limit_store import LocalLimits
from toolspeak.gateway.tally import ProcessTally
from toolspeak.ir.event import Usage
from toolspeak.runtime.clock import CLOCK

PATIENT = 30.0
"""Seconds for one response of Redis. On a busy machine it takes longer than the gateway's own half second, which looks
like an outage, and each process counts alone."""


async def main(url: str, limits: dict[str, int], attempts: int, tokens: int, *, holds: bool) -> None:
    tally = ProcessTally()
    store = FleetLimits(url, LocalLimits(tally, CLOCK), CLOCK, timeout=PATIENT)
    admission = Admission(Limits(), CLOCK, tally, store)
    key, held = Key("anna", b"", limits=RateLimits(**limits)), AsyncExitStack()

    async def ask() -> bool:
        request = admission.enter(key)
        try:
            ticket = await request.__aenter__()
        except Refused:
            return False
        if holds:
            held.push_async_exit(request.__aexit__)
        else:
            ticket.spend(Usage(output_tokens=tokens))
            await request.__aexit__(None, None, None)
        return True

    admitted = 0
    for _ in range(attempts // 20):  # twenty at once, as clients do
        admitted += sum(await asyncio.gather(*(ask() for _ in range(20))))
        if tokens:
            await asyncio.sleep(0.01)
    print(json.dumps({"admitted": admitted}), flush=True)
    await asyncio.sleep(600)


if __name__ == "__main__":
    plan = json.loads(sys.argv[2])
    asyncio.run(
        main(sys.argv[1], plan["limits"], plan["attempts"], plan.get("tokens", 0), holds=plan.get("holds", False))
    )
