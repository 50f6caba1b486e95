"""What a task may rely on while it waits for a `Wakeup`: it is resumed once for each wake, and never lost."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import pytest
import uvloop

from toolspeak.runtime.wakeup import Wakeup

Scenario: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
Run: TypeAlias = Callable[[Scenario], None]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Run a scenario in an event loop that takes every complaint for a failure."""

    def ran(scenario: Scenario) -> None:
        said: list[dict[str, Any]] = []

        async def heard() -> None:
            asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
            await asyncio.wait_for(scenario(), 10)

        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(heard())
        assert said == []

    return ran


class Waiting:
    """A task that counts how often it was resumed."""

    def __init__(self) -> None:
        self.wakeup = Wakeup(asyncio.get_running_loop())
        self.resumed = 0
        self.task = asyncio.create_task(self._wait())

    async def _wait(self) -> None:
        while True:
            await self.wakeup
            self.resumed += 1


async def outside(call: Callable[[], object]) -> None:
    """Call in a callback of the event loop, where no task runs, as a transport does with what arrives."""
    done = asyncio.Event()
    asyncio.get_running_loop().call_soon(lambda: (call(), done.set()))
    await done.wait()


async def ended(task: "asyncio.Task[None]") -> str:
    await asyncio.wait((task,))
    return "cancelled" if task.cancelled() else repr(task.exception())


def test_a_wake_outside_a_task_resumes_the_waiting_one_before_it_returns(run: Run) -> None:
    async def scenario() -> None:
        waiting = Waiting()
        await asyncio.sleep(0)
        seen: list[int] = []

        def thrice() -> None:
            for _ in range(3):
                waiting.wakeup.wake()
                seen.append(waiting.resumed)

        await outside(thrice)
        assert seen == [1, 2, 3]
        waiting.task.cancel()
        assert await ended(waiting.task) == "cancelled"

    run(scenario)


def test_a_wake_inside_a_task_resumes_the_waiting_one_in_the_next_pass(run: Run) -> None:
    async def scenario() -> None:
        waiting = Waiting()
        await asyncio.sleep(0)
        waiting.wakeup.wake()
        waiting.wakeup.wake()
        assert waiting.resumed == 0
        await asyncio.sleep(0)
        assert waiting.resumed == 1, "the second wake found nobody who waited"
        waiting.task.cancel()
        assert await ended(waiting.task) == "cancelled"

    run(scenario)


def test_a_wake_that_nobody_waits_for_is_forgotten(run: Run) -> None:
    async def scenario() -> None:
        waiting = Waiting()
        waiting.wakeup.wake()
        await asyncio.sleep(0)
        assert waiting.resumed == 0
        waiting.task.cancel()
        assert await ended(waiting.task) == "cancelled"

    run(scenario)


@pytest.mark.parametrize("order", ["wake, cancel", "cancel, wake", "cancel"])
@pytest.mark.parametrize("inside", [True, False], ids=["in a task", "in a callback"])
def test_a_cancellation_arrives_whatever_it_meets(run: Run, order: str, inside: bool) -> None:
    async def scenario() -> None:
        waiting = Waiting()
        await asyncio.sleep(0)
        calls: dict[str, Callable[[], object]] = {"wake": waiting.wakeup.wake, "cancel": waiting.task.cancel}
        both = [calls[name] for name in order.split(", ")]
        if inside:
            for call in both:
                call()
        else:
            await outside(lambda: [call() for call in both])
        assert await ended(waiting.task) == "cancelled"
        assert waiting.resumed == (order == "wake, cancel" and not inside)

    run(scenario)


def test_a_timeout_ends_one_wait_and_leaves_the_next_one_alone(run: Run) -> None:
    async def scenario() -> None:
        wakeup = Wakeup(asyncio.get_running_loop())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await wakeup
        asyncio.get_running_loop().call_later(0.01, wakeup.wake)
        await wakeup

    run(scenario)


def test_a_task_that_ends_in_a_wake_tells_those_that_wait_for_it(run: Run) -> None:
    async def scenario() -> None:
        wakeup = Wakeup(asyncio.get_running_loop())

        async def fails() -> None:
            await wakeup
            raise ValueError("over")

        task = asyncio.create_task(fails())
        await asyncio.sleep(0)
        await outside(wakeup.wake)
        assert await ended(task) == "ValueError('over')"

    run(scenario)


def test_two_tasks_cannot_wait_for_the_same_bytes(run: Run) -> None:
    async def scenario() -> None:
        waiting = Waiting()
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="another task waits"):
            await waiting.wakeup
        await outside(waiting.wakeup.wake)
        assert waiting.resumed == 1
        waiting.task.cancel()
        assert await ended(waiting.task) == "cancelled"

    run(scenario)
