"""The guard: a process around a confined command that keeps the work folder safe to use on the host.

toolspeak ─▶ guard ─▶ launcher (`launch.py`) ─▶ the command, or a service such as an MCP server

Before the command, the guard finds the paths that `protected.py` names, makes the masks, and tells the launcher what
to mount read-only. While the command runs, the guard stops it as soon as a forbidden name appears. After the command
has ended or was stopped, or toolspeak has died, the guard kills the remaining processes and renames forbidden files.
Its report is the journal entry, a file, so that the next start finds it if toolspeak is gone. `folder_guard.py` has
the part for one folder; a command has one folder, a service any number.

The plan comes through a descriptor: standard input, output and error belong to the confined program.

An attack in 2026 showed why toolspeak cannot do this in its own process: after `kill -9` of toolspeak, a
`.git/commondir` that the command had made stayed in the folder, and the person's next `git status` ran the commands
that it led to.

The guard is a program. It runs in its own interpreter (see `guard_plan.py`) that loads only the modules named here.
"""

import ctypes
import fcntl
import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from importlib import import_module
from typing import Any, Final, NoReturn

from toolspeak.agent.sandbox.folder_guard import FolderGuard
from toolspeak.agent.sandbox.quarantine import remove_tree

FAILED: Final = 125
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_PARENT_DEATH, _SUBREAPER = 1, 36
_KILLED: Final = 128 + signal.SIGKILL
_PAUSE: Final = 0.5
"""Seconds between two walks if the kernel has no inotify watches left; at least ten times the duration of a walk."""


def main() -> NoReturn:
    """Run the guard, and exit with the command's status. The last argument is the descriptor of the plan."""
    with open(int(sys.argv[-1]), encoding="utf-8") as file:  # noqa: PTH123 # a descriptor
        plan: dict[str, Any] = json.load(file)  # noqa: TID251 # our own data; msgspec cannot be imported here
    # As a subreaper, the guard becomes the parent of every process that loses its own. Without it, a daemon that a
    # command starts (double fork) would get init as its parent, and `end_all` would not find it.
    _LIBC.prctl(_SUBREAPER, 1, 0, 0, 0)
    waker, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, _wake)
    # SIGTERM and not SIGKILL: the guard must outlive toolspeak for as long as it takes to clean up the folder.
    _LIBC.prctl(_PARENT_DEATH, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != plan["parent"]:  # toolspeak died before the parent-death signal was set
        os._exit(FAILED)
    try:
        status = _Guard(plan, waker).run()
    except OSError as error:
        status = _fail(f"{error.strerror}: {error.filename or ''}")
    os._exit(status)


def _wake(number: int, frame: object) -> None:
    """Do nothing: `set_wakeup_fd` reports the signal, but without a handler the signal would end the process."""
    del number, frame


def _fail(why: str) -> int:
    os.write(2, f"the sandbox could not be made: {why}\n".encode(errors="replace"))
    return FAILED


class _Guard:
    def __init__(self, plan: dict[str, Any], waker: int) -> None:
        self._plan: Final = plan
        self._waker: Final = waker
        self._folders: Final = [
            FolderGuard(each["path"], each["referenced"], each["gitlinks"]) for each in plan["folders"]
        ]

    def run(self) -> int:
        lock = os.open(
            self._plan["journal"].removesuffix(".json") + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        fcntl.flock(lock, fcntl.LOCK_SH)  # held until the guard exits, so that `journal.recover` leaves the entry alone
        # The order matters. The entry is on disk before the first mask and before the command, so that a crash at any
        # later point finds the state of the folder from before the command.
        for folder in self._folders:
            if why := folder.begin(mounts=self._plan["mounts"]):
                return _fail(why)
        self._write({"state": "running", "guard": os.getpid(), "folders": [each.record() for each in self._folders]})
        for folder in self._folders:
            folder.mask()
        child = self._fork()
        try:
            status = self._wait(child)
        finally:
            end_all()
        self._settle()
        return status

    def _fork(self) -> int:
        us = os.getpid()
        child = os.fork()
        if child:
            return child
        try:
            # Without the handlers of the guard: they would swallow the signals of the child, and write into the pipe
            # that wakes the guard.
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            plan = self._plan["launch"] | {
                "parent": us,
                "pins": [path for each in self._folders for path in each.pins()],
                "readonly": [path for each in self._folders for path in each.readonly()],
            }
            launchers = import_module("toolspeak.agent.sandbox.launch")  # after the fork: only the child needs it
            getattr(launchers, self._plan["launcher"])(plan)
        except Exception as error:  # noqa: BLE001 # after any error the command must not run
            _fail(f"{type(error).__name__}: {error}")
        finally:
            os._exit(FAILED)

    def _wait(self, child: int) -> int:
        """Wait until the command has ended or must be stopped; return its status."""
        poll, look = self._poll(), 0.0
        while True:
            status = _ended(child)
            if status is not None:
                return status
            if os.getppid() != self._plan["parent"]:
                return _KILLED
            blind = [each for each in self._folders if each.watch.is_blind]
            poll.poll(_PAUSE * 1000 if blind else None)
            with suppress(BlockingIOError):
                if bytes((signal.SIGTERM,)) in os.read(self._waker, 4096):
                    return _KILLED
            if blind and (now := _seconds()) >= look:
                for each in blind:
                    each.look()
                # Walks take at most a tenth of the time, however large the folder is.
                look = _seconds() + 10 * (_seconds() - now)
            for each in self._folders:
                each.read()
            if self._stopped:
                return _KILLED

    def _poll(self) -> select.poll:
        poll = select.poll()
        poll.register(self._waker, select.POLLIN)
        for each in self._folders:
            if each.watch.descriptor >= 0:
                poll.register(each.watch.descriptor, select.POLLIN)
        return poll

    @property
    def _stopped(self) -> str:
        return next((each.stopped for each in self._folders if each.stopped), "")

    def _settle(self) -> None:
        notes = {each.path: each.settle() for each in self._folders}
        if temporary := self._plan.get("temporary"):
            remove_tree(temporary)
        # With toolspeak gone, an empty report has no reader. One with notes stays, for the next start.
        if os.getppid() != self._plan["parent"] and not any(notes.values()):
            with suppress(OSError):
                os.unlink(self._plan["journal"])  # noqa: PTH108 # pathlib takes longer to load than all this
            return
        folders = [{"folder": path, "notes": each} for path, each in notes.items()]
        self._write({"state": "ended", "stopped": self._stopped, "folders": folders})

    def _write(self, entry: dict[str, Any]) -> None:
        """Write the journal entry atomically, since the guard may be killed at any time."""
        path = self._plan["journal"]
        with open(f"{path}.new", "w", encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123 # as above
            json.dump(entry, file)
        os.replace(f"{path}.new", path)  # noqa: PTH105 # as above


def _seconds() -> float:
    return time.monotonic()  # noqa: TID251 # a separate process; nothing in it is replayed


def _ended(child: int) -> int | None:
    """Reap children that have ended. Return the status of the first child if it is among them, as a shell would."""
    status = None
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            if found[0] == child:
                status = os.waitstatus_to_exitcode(found[1])
    return None if status is None else status if status >= 0 else 128 - status


def end_all() -> None:
    """Kill all descendants until none is left: an orphan becomes a child of the guard, and is found next time."""
    while found := _children(os.getpid()):
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        select.select((), (), (), 0.001)  # a killed process needs a moment to disappear


def _children(pid: int) -> list[int]:
    found = list[int]()
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 # nothing that takes time to load
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:  # noqa: PTH123 # as above
                for child in map(int, file.read().split()):
                    found += [child, *_children(child)]
    return found
