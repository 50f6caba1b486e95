"""Make attempts, and say of each whether the sandbox held it."""

import asyncio
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from shutil import which
from struct import pack

from typing_extensions import override

from tests.security.sandbox.row import Attempt
from tests.security.sandbox.scene import Scene
from toolspeak.agent.sandbox.bwrap import Bwrap, find_bwrap
from toolspeak.agent.sandbox.disk import DiskBudget
from toolspeak.agent.sandbox.process import Unconfined
from toolspeak.agent.sandbox.processes import UNKNOWN
from toolspeak.agent.sandbox.sandbox import MIB, Command, Ran, Sandbox
from toolspeak.agent.sandbox.sandlock import find_sandlock
from toolspeak.ir.json import Json, JsonObject

AT_ONCE = 4
_NOTHING = Ran(0, "")
_SETTLE = 20
_ALLOW_ALL = pack("=HBBI", 0x06, 0, 0, 0x7FFF0000)


@dataclass(frozen=True, slots=True)
class Held:
    """What came of an attempt: nothing, if `problem` is empty."""

    attempt: Attempt
    problem: str
    output: str
    seconds: float = 0.0


class Open(Bwrap):
    """Bubblewrap without its list of system calls, without what covers `/proc`, and without a budget: a control."""

    @override
    async def run(self, command: Command) -> Ran:
        """Run a command that may use as much as it likes."""
        limits = replace(command.limits, memory=4096 * MIB, processes=200)
        return await super().run(replace(command, limits=limits, budget=DiskBudget(UNKNOWN, UNKNOWN)))

    @override
    def _plan(
        self, cgroups: tuple[str, ...], limits: JsonObject, binds: list[Json], before: list[Json], after: list[Json]
    ) -> JsonObject:
        plan = super()._plan(cgroups, limits, binds, before, after)
        files = plan["files"]
        assert isinstance(files, dict)
        shown: JsonObject = {path: text for path, text in files.items() if not path.startswith("/proc")}
        return {**plan, "files": shown, "seccomp": _ALLOW_ALL.hex()}


def _open() -> Sandbox | str:
    found = find_bwrap()
    return found if isinstance(found, str) else Open(which("bwrap") or "")


def sandbox(name: str) -> Sandbox | str:
    """Return a sandbox by its name, or why it cannot be used."""
    return {"bwrap": find_bwrap, "sandlock": find_sandlock, "unsafe": Unconfined, "open": _open}[name]()


async def hold(confine: Sandbox, attempts: Iterable[Attempt], at_once: int = AT_ONCE) -> list[Held]:
    """Make attempts, a few at once; those on the disk one by one: what one deletes would hide what another writes."""
    turn, disk = asyncio.Semaphore(at_once), asyncio.Semaphore(1)

    async def one(attempt: Attempt) -> Held:
        async with disk if attempt.area == "disk" else turn:
            return await _held(confine, attempt)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(attempt)) for attempt in attempts]
    return [task.result() for task in tasks]


async def _held(confine: Sandbox, attempt: Attempt) -> Held:
    scene, began, tried = Scene(), time.monotonic(), False
    try:
        ran = _NOTHING
        if attempt.setup:
            await asyncio.to_thread(scene.prepare, attempt.setup)
        async with scene.services() as ports:
            for text in attempt.texts:
                words = scene.text(text, ports) + f" # {scene.token[:4]}"
                ran = await (_killed if attempt.kill else _ran)(confine, attempt, scene, words)
                tried = tried or ran.output.startswith("tried")
        problem = await _problem(attempt, scene, ran)
        if not tried:
            problem = f"it was not tried: {ran.output[:200]!r} {ran.killed}; {problem}"
        return Held(attempt, problem, ran.output, time.monotonic() - began)
    finally:
        await asyncio.to_thread(scene.close)  # tens of thousands of files: the loop has others to watch


async def _ran(confine: Sandbox, attempt: Attempt, scene: Scene, text: str) -> Ran:
    command = scene.command(text, attempt.seconds)
    if attempt.during:
        return await _used_meanwhile(confine, scene, command)
    if not attempt.cancel:
        return await confine.run(command)
    try:
        async with asyncio.timeout(attempt.cancel):
            await confine.run(command)
    except TimeoutError:
        return Ran(0, "tried")
    return Ran(1, "tried" if attempt.may_stop else "it ended before it was cancelled")


async def _used_meanwhile(confine: Sandbox, scene: Scene, command: Command) -> Ran:
    """Run a command while the person uses git at the top of the folder again and again."""
    running = asyncio.create_task(confine.run(command))
    while not running.done():
        await asyncio.to_thread(scene.use_git, scene.folder)
        await asyncio.sleep(0.02)
    return running.result()


async def _killed(confine: Sandbox, attempt: Attempt, scene: Scene, text: str) -> Ran:
    """Run a command in a toolspeak of its own, which is killed with SIGKILL when the command has made its attempt."""
    words = [confine.name, str(scene.folder), str(scene.journal), str(attempt.seconds), text]
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", _TOOLSPEAK, *words)
    for _ in range(_SETTLE * 20):
        if (scene.folder / "ready").exists() or process.returncode is not None:
            break
        await asyncio.sleep(0.02)
    ended = process.returncode is not None
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()
    for _ in range(_SETTLE * 20):  # the guard goes on without it
        if not any(b'"running"' in path.read_bytes() for path in scene.journal.glob("*.json")):
            break
        await asyncio.sleep(0.02)
    return Ran(0, "it ended by itself" if ended and not attempt.may_stop else "tried")


_TOOLSPEAK = """
import asyncio, sys
from pathlib import Path
from tests.security.sandbox.scene import LIMITS
from tests.security.sandbox.trial import sandbox
from toolspeak.agent.sandbox.sandbox import Command
name, folder, journal, seconds, text = sys.argv[1:]
asyncio.run(sandbox(name).run(Command(text, Path(folder), float(seconds), LIMITS, journal=Path(journal))))
"""


async def _problem(attempt: Attempt, scene: Scene, ran: Ran) -> str:
    for _ in range(_SETTLE):  # what is killed needs a moment to be gone
        if not scene.left():
            break
        await asyncio.sleep(0.05)
    found = await asyncio.to_thread(lambda: [*scene.problems(ran)])
    if attempt.check is not None and (said := await asyncio.to_thread(attempt.check, scene, ran)):
        found.append(said)
    return "; ".join(found)
