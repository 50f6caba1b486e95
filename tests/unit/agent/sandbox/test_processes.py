"""Holding the processes of a command still while its files are counted, and the files that they hold (RUN-5)."""

import mmap
import os
import subprocess
import tempfile
import time
from collections.abc import Callable

import pytest

from toolspeak.agent.sandbox import processes
from toolspeak.agent.sandbox.processes import ProcessTree, Stillness, held_files, link, read_proc, state, tree


def test_a_guard_is_not_held_still_so_that_it_can_end_the_rest_run5() -> None:
    """If toolspeak is killed while all is stopped, the guard must still receive the signal of that."""
    with subprocess.Popen(["/bin/sh", "-c", "sleep 60; :"]) as first:
        try:
            while len(tree(first.pid)) == 1:
                time.sleep(0.01)
            (child,) = tree(first.pid)[1:]
            with Stillness({ProcessTree(first.pid, is_guarded=True)}) as still:
                assert still.pids == (child,)
                assert still.held
                assert state(f"/proc/{child}") == "T"
                assert state(f"/proc/{first.pid}") != "T"
            with Stillness({ProcessTree(first.pid)}) as still:
                assert set(still.pids) == {first.pid, child}
                assert state(f"/proc/{first.pid}") == "T"
        finally:
            for pid in reversed(tree(first.pid)):
                subprocess.run(["kill", "-9", str(pid)], check=False)


def _memory() -> int:
    return os.memfd_create("held")


def _unlinked() -> int:
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


@pytest.mark.parametrize("made", [_memory, _unlinked])
def test_a_file_that_is_open_and_mapped_is_of_known_size_run5(
    monkeypatch: pytest.MonkeyPatch, made: Callable[[], int]
) -> None:
    """A user other than root cannot follow the links of mappings: without the descriptor the size would be unknown."""

    def stat(path: str) -> os.stat_result:
        if "/map_files/" in path:
            raise PermissionError
        return plain(path)

    plain = os.stat
    file = made()
    try:
        os.write(file, bytes(1 << 16))
        inode = os.fstat(file).st_ino
        with mmap.mmap(file, 1 << 16), monkeypatch.context() as patch:
            patch.setattr(processes.os, "stat", stat)
            held = held_files([os.getpid()])
    finally:
        os.close(file)
    sizes = held.memory if made is _memory else held.disk
    assert sizes[inode] >= 1 << 16
    assert str(inode) not in {number for _, number in (*held.mapped_memory, *held.mapped_disk)}


ROWS = "Num RefCount Protocol Flags Type St Inode Path\n0: 2 0 0 0001 {} 7 @x\n"


@pytest.mark.parametrize(
    ("network", "row", "expected"), [("new", "02", True), ("new", "03", False), ("own", "02", False)]
)
def test_a_connection_that_waits_in_the_commands_own_network_may_hold_files_run5(
    monkeypatch: pytest.MonkeyPatch, network: str, row: str, expected: bool
) -> None:
    """Connections in the network of the host are those of other programs."""
    place = "/proc/self/ns/net"
    with subprocess.Popen(["/bin/sleep", "60"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as child:
        try:
            nets = {place: link(place), f"/proc/{child.pid}/ns/net": link(place) if network == "own" else "net:[1]"}
            texts = {f"/proc/{child.pid}/net/unix": ROWS.format(row)}

            def linked(path: str) -> str:
                return nets.get(path) or link(path)

            def read(path: str) -> str:
                return texts.get(path) or read_proc(path)

            monkeypatch.setattr(processes, "link", linked)
            monkeypatch.setattr(processes, "read_proc", read)
            assert held_files([child.pid]).in_flight is expected
        finally:
            child.kill()
