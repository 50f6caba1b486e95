"""Takes the turns of runs that this process executes: each has a trace, a line of the log, and its metrics (OBS-13).

No client sends a request for such a turn, so its trace has the request that a client of the default protocol would have
sent. With it the turn can be replayed as any other. Workers of a database of runs keep no traces.
"""

import asyncio
from typing import Final

from toolspeak import wires
from toolspeak.engine.effects import Outcome
from toolspeak.engine.plan import Plan
from toolspeak.engine.settings import NOTHING_SAID
from toolspeak.gateway.access_log import AccessEntry, Fault
from toolspeak.gateway.metrics import RUN_TURN, Metrics
from toolspeak.gateway.trace_log import TraceLog, TurnRequest
from toolspeak.ir.quirks import Quirks
from toolspeak.ir.request import Request
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.directory import EmitEvents, Route
from toolspeak.runtime.fallback import FallbackTurn
from toolspeak.runtime.turn_progress import TurnProgress
from toolspeak.runtime.upstream_activity import UpstreamActivity

_PATH: Final = "/v1/chat/completions"
_OK: Final = 200
_BAD_GATEWAY: Final = 502


class RunTurns:
    """Records what the turns of runs do."""

    def __init__(self, traces: TraceLog, metrics: Metrics, activity: UpstreamActivity, clock: Clock) -> None:
        """Take where turns are recorded."""
        self._traces: Final = traces
        self._metrics: Final = metrics
        self._activity: Final = activity
        self._clock: Final = clock

    async def take(self, run: str, route: Route, request: Request, plan: Plan, emit: EmitEvents) -> Outcome:
        """Take one turn of a run. Implements `agent.runs.steps.TakeRecorded`."""
        progress = TurnProgress()
        wire, clock = wires.load(wires.DEFAULT), self._clock
        entry = AccessEntry(clock.fresh_id(), "POST", f"/v1/runs/{run}", "run", wire.name, clock.monotonic())
        entry.tenant, entry.model, entry.plan, entry.progress = route.tenant, request.model, plan, progress
        entry.goes_to(route)
        body = wire.encode_request(request, Quirks()).body if self._traces.has_content else b""
        turn = TurnRequest(wire.name, _PATH, body, request, route, plan, progress, f"run/{run}")
        watch = self._traces.begin(turn, entry)
        self._metrics.begin(RUN_TURN)

        async def take(route: Route, plan: Plan, emit: EmitEvents) -> Outcome:
            with self._activity.serving(route.place):
                return await route.take(request, plan, emit, clock, watch=watch, progress=progress)

        def moved(route: Route, plan: Plan, why: str) -> None:
            entry.falls_back(route, plan, why)
            watch.moved(route.place, route.model, plan)

        try:
            entry.outcome = await FallbackTurn(route, request, NOTHING_SAID, take, moved).run(plan, emit)
        except asyncio.CancelledError:  # the run was cancelled, or the gateway shuts down
            entry.fail(Fault.HUNG_UP)
            raise
        except Exception:
            entry.fail(Fault.GATEWAY)
            raise
        else:
            return entry.outcome
        finally:
            self._end(entry)

    def _end(self, entry: AccessEntry) -> None:
        failure = entry.outcome.turn.failure if entry.outcome is not None else None
        status = 0 if entry.outcome is None else _OK if failure is None else failure.status or _BAD_GATEWAY
        entry.end(status, self._clock.monotonic())
        self._metrics.end(entry, RUN_TURN)
        self._traces.end(entry)
