"""The steps of a durable run in a worker that shuts down (RUN-3); DBOS itself is tested in `tests/runs`."""

import asyncio
from collections.abc import Awaitable, Callable
from unittest.mock import Mock

import pytest

from toolspeak.agent.durable.lease import Lease
from toolspeak.agent.durable.step_store import DBOS, DbosStepStore, RunClaim
from toolspeak.agent.runs.steps import JSON, Stopped
from toolspeak.ir.json import Json


async def executed(options: object, body: Callable[[], Awaitable[str]]) -> str:
    """Execute a step as DBOS does that has no stored result of it."""
    del options
    return await body()


def test_a_worker_that_shuts_down_begins_no_step_but_a_call_whose_start_is_stored_run3(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its outcome would count as unknown: the model would be told that nobody knows whether it ran."""
    done: list[str] = []

    async def do() -> Json:
        done.append("done")
        return {"paid": True}

    async def test() -> None:
        claim = RunClaim("run", "token", Mock(spec=Lease, held=True))
        store = DbosStepStore(claim)
        assert await store.keep("turn", JSON, do) == {"paid": True}
        claim.drain(Stopped())
        with pytest.raises(Stopped):
            await store.keep("turn", JSON, do)
        assert len(done) == 1
        assert await store.keep("call", JSON, do, once=True) == {"paid": True}
        assert len(done) == 2

    monkeypatch.setattr(DBOS, "run_step_async", executed)
    asyncio.run(test())
