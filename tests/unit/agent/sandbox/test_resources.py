"""The limit on memory: what a command hides while other programs free as much (RUN-5).

The processes are real; only the machine's memory is told, since no program can make another one free memory in step.
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolspeak.agent.sandbox import resources
from toolspeak.agent.sandbox.disk import DiskBudget, DiskMeter
from toolspeak.agent.sandbox.processes import ProcessTree
from toolspeak.agent.sandbox.resources import ResourceWatch
from toolspeak.agent.sandbox.sandbox import MIB, SandboxLimits

LIMITS = SandboxLimits(memory=192 * MIB)
HIDES = """
import os, socket, sys
ends = socket.socketpair()
fd = os.memfd_create("x")
socket.send_fds(ends[0], [b"x"], [fd])
os.close(fd)
"""
WAITS = "import sys\nprint('ready', flush=True)\nsys.stdin.read()\n"


class Machine:
    """The machine's memory, in MiB."""

    def __init__(self) -> None:
        self.available, self.shared = 8000, 1000

    def read(self) -> resources._MachineMemory:
        return resources._MachineMemory(16000 * MIB, self.available * MIB, self.shared * MIB)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(resources, "_machine_memory", made.read)
    return made


@pytest.fixture
def watch(request: pytest.FixtureRequest, tmp_path: Path, machine: Machine) -> Iterator[ResourceWatch]:
    del machine
    words = [sys.executable, "-c", request.param + WAITS]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        meter = DiskMeter(DiskBudget(1 << 40), (tmp_path,), LIMITS.file_size)
        yield ResourceWatch(ProcessTree(process.pid), LIMITS, meter)
        process.kill()


async def _look(watch: ResourceWatch, times: int) -> str:
    for _ in range(times):
        if why := await watch.breach():
            return why
    return ""


@pytest.mark.parametrize("watch", [HIDES], indirect=True)
def test_memory_that_others_free_hides_nothing_run5(watch: ResourceWatch, machine: Machine) -> None:
    async def attempt() -> str:
        for _ in range(12):  # the command takes 25 MiB, others free as much a moment later
            machine.available, machine.shared = machine.available - 25, machine.shared + 25
            await watch.pause()
            machine.available, machine.shared = machine.available + 25, machine.shared - 25
            await watch.pause()
        return await _look(watch, 3)

    assert asyncio.run(attempt()) == "it took more than 192 MiB of memory"


@pytest.mark.parametrize("watch", [HIDES], indirect=True)
def test_what_others_have_freed_again_is_not_the_commands_run5(watch: ResourceWatch, machine: Machine) -> None:
    async def attempt() -> str:
        machine.shared += 500
        await watch.pause()
        machine.shared = 100  # all shared memory of the machine is less than the command may have
        return await _look(watch, 10)

    assert asyncio.run(attempt()) == ""


@pytest.mark.parametrize("watch", [""], indirect=True)
def test_what_others_take_is_not_the_commands_run5(watch: ResourceWatch, machine: Machine) -> None:
    async def attempt() -> str:
        machine.available, machine.shared = machine.available - 500, machine.shared + 500
        return await _look(watch, 10)

    assert asyncio.run(attempt()) == ""
