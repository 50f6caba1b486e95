"""A switch stops what is being done, once and for all; a cancellation from elsewhere stays one."""

import asyncio
from contextlib import suppress

import pytest

from toolspeak.agent.runs.steps import Stopped, StopSwitch


def test_what_is_stopped_raises_why_and_its_task_goes_on() -> None:
    async def test() -> None:
        switch = StopSwitch()

        async def worked() -> int:
            with pytest.raises(Stopped), switch.stoppable():
                await asyncio.sleep(3600)
            with pytest.raises(Stopped):
                switch.admit()
            task = asyncio.current_task()
            assert task is not None
            await asyncio.sleep(0)
            return task.cancelling()

        task = asyncio.create_task(worked())
        await asyncio.sleep(0)
        switch.stop(Stopped())
        switch.stop(Stopped())
        assert await task == 0

    asyncio.run(test())


def test_a_tool_that_catches_its_cancellation_leaves_no_trace() -> None:
    async def test() -> None:
        switch = StopSwitch()

        async def worked() -> int:
            with switch.stoppable(), suppress(asyncio.CancelledError):
                await asyncio.sleep(3600)
            task = asyncio.current_task()
            assert task is not None
            return task.cancelling()

        task = asyncio.create_task(worked())
        await asyncio.sleep(0)
        switch.stop(Stopped())
        assert await task == 0

    asyncio.run(test())


def test_draining_lets_a_step_end_but_not_a_wait_for_a_person() -> None:
    async def test() -> None:
        switch, end = StopSwitch(), asyncio.Event()

        async def step(*, waits: bool) -> str:
            with switch.stoppable(waits=waits):
                await end.wait()
                return "ended"

        runs, waits = asyncio.create_task(step(waits=False)), asyncio.create_task(step(waits=True))
        await asyncio.sleep(0)
        switch.drain(Stopped())
        with pytest.raises(Stopped):
            await waits
        with pytest.raises(Stopped):
            switch.admit()
        end.set()
        assert await runs == "ended"

    asyncio.run(test())


def test_a_cancellation_from_elsewhere_passes() -> None:
    async def test() -> None:
        switch = StopSwitch()

        async def step() -> None:
            with switch.stoppable():
                await asyncio.sleep(3600)

        task = asyncio.create_task(step())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(test())
