"""The processes of `just fleet`: targets of faults, ports, and a member that is killed, stopped and started again."""

import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from bench.fleet import processes
from bench.fleet.configs import Addresses
from bench.fleet.processes import CLOCKS_OF, DISK_OF, Fleet, Member, is_alive, ports
from bench.fleet.schedule import Kind, schedule
from testkit.meter import read
from testkit.postgres import Postgres
from testkit.redis_server import RedisServer

NAMES = ("upstream-0", "upstream-1", "steady", "gateway-0", "gateway-1", "gateway-2", "run-worker-0", "run-worker-1")


def fleet(folder: Path, *, whole: bool = True) -> Fleet:
    addresses = Addresses(1, 2, 3, {}, {}, "", "")
    members = {name: Member(name, (), folder / name, lambda: True) for name in (*NAMES, "proxy")}
    nothing = cast("RedisServer", None), cast("Postgres", None)
    return Fleet(folder, addresses, members, *nothing, folder if whole else None, folder if whole else None)


def test_each_kind_of_fault_hits_the_processes_that_it_can_hit(tmp_path: Path) -> None:
    targets = fleet(tmp_path).targets()
    assert set(targets) == set(Kind)
    assert targets[Kind.KILL_SUPERVISOR] == ["gateway-0", "gateway-1", "gateway-2"]
    assert targets[Kind.STOP_RUN_WORKER] == ["run-worker-0", "run-worker-1"]
    assert targets[Kind.UPSTREAM_LIES] == ["upstream-0", "upstream-1"]
    assert (targets[Kind.KILL_PROXY], targets[Kind.RESTART_REDIS]) == (["proxy"], ["redis"])
    assert (list(targets[Kind.FULL_DISK]), list(targets[Kind.CLOCK_STEP])) == ([DISK_OF], list(CLOCKS_OF))
    assert all("steady" not in names for names in targets.values()), "it measures the limit"
    assert schedule(1, 600, targets)


def test_faults_that_this_machine_does_not_allow_are_left_out(tmp_path: Path) -> None:
    targets = fleet(tmp_path, whole=False).targets()
    assert not targets[Kind.FULL_DISK]
    assert not targets[Kind.CLOCK_STEP]


def test_ports_are_free_and_below_those_of_clients() -> None:
    found = list(ports(5))
    assert len(set(found)) == 5
    for port in found:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", port))
            assert port < 32768


def until(is_so: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 20
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


PARENT = "import os, time; print('begun', flush=True); os.fork(); time.sleep(600)"


def test_a_member_is_killed_with_its_children_and_started_again_after_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "RESTART_S", 0.2)
    member = Member("m", (sys.executable, "-c", PARENT), tmp_path / "log", lambda: True)
    member.start()
    try:
        assert until(lambda: len(member.workers) == 1)
        first, child = member.pids
        member.kill(member.pids)
        assert not is_alive(child)
        assert not member.restart_if_dead(), "not at once"
        assert until(member.restart_if_dead)
        assert member.pids[0] != first
        assert until(lambda: (tmp_path / "log").read_text()[member.logged :] == "begun\n")
    finally:
        member.kill(member.pids)


def test_a_member_that_is_stopped_goes_on(tmp_path: Path) -> None:
    member = Member("m", (sys.executable, "-c", "import time; time.sleep(600)"), tmp_path / "log", lambda: True)
    member.start()
    try:
        [pid] = member.pids
        member.send(signal.SIGSTOP, member.pids)
        assert until(lambda: state(pid) == "T")
        assert not member.restart_if_dead()
        member.send(signal.SIGCONT, [pid, 2**22 + 1])
        assert until(lambda: state(pid) != "T")
    finally:
        member.kill(member.pids)
    assert not is_alive(pid)


def state(pid: int) -> str:
    """Return the kernel's letter for a process, or nothing if it is gone."""
    return read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].strip()[:1]
