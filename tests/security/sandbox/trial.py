"""Make attempts, and say of each whether the sandbox held it."""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass

from tests.security.sandbox.attempts import Attempt
from tests.security.sandbox.scene import Scene
from toolspeak.runtime.sandbox.bwrap import found as found_bwrap
from toolspeak.runtime.sandbox.sandbox import Ran, Sandbox
from toolspeak.runtime.sandbox.sandlock_ import found as found_sandlock
from toolspeak.runtime.sandbox.unconfined import Unconfined

AT_ONCE = 4
_NOTHING = Ran(0, "")
_SETTLE = 20


@dataclass(frozen=True, slots=True)
class Held:
    """What came of an attempt: nothing, if `problem` is empty."""

    attempt: Attempt
    problem: str
    output: str
    seconds: float = 0.0


def sandbox(name: str) -> Sandbox | str:
    """Return a sandbox by its name, or why it cannot be used."""
    return {"bwrap": found_bwrap, "sandlock": found_sandlock, "unsafe": Unconfined}[name]()


async def hold(confine: Sandbox, attempts: Iterable[Attempt], at_once: int = AT_ONCE) -> list[Held]:
    """Make attempts, a few at once."""
    turn = asyncio.Semaphore(at_once)

    async def one(attempt: Attempt) -> Held:
        async with turn:
            return await _held(confine, attempt)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(attempt)) for attempt in attempts]
    return [task.result() for task in tasks]


async def _held(confine: Sandbox, attempt: Attempt) -> Held:
    scene, began = Scene(), time.monotonic()
    try:
        ran = _NOTHING
        async with scene.services() as ports:
            for text in attempt.texts:
                ran = await _ran(confine, attempt, scene, scene.text(text, ports) + f" # {scene.token[:4]}")
        return Held(attempt, await _problem(attempt, scene, ran), ran.output, time.monotonic() - began)
    finally:
        scene.close()


async def _ran(confine: Sandbox, attempt: Attempt, scene: Scene, text: str) -> Ran:
    command = scene.command(text, attempt.seconds)
    if not attempt.cancel:
        return await confine.run(command)
    try:
        async with asyncio.timeout(attempt.cancel):
            await confine.run(command)
    except TimeoutError:
        return Ran(0, "tried")
    return Ran(1, "it ended before it was cancelled")


async def _problem(attempt: Attempt, scene: Scene, ran: Ran) -> str:
    for _ in range(_SETTLE):  # what is killed needs a moment to be gone
        if not scene.left():
            break
        await asyncio.sleep(0.05)
    found = [*scene.problems(ran)]
    if not ran.output.startswith("tried"):
        found.append(f"it was not tried: {ran.output[:200]!r} {ran.killed}")
    if attempt.check is not None and (said := attempt.check(scene, ran)):
        found.append(said)
    return "; ".join(found)
