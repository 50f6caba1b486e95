"""The process around a confined command. It keeps the work folder safe to use on the host, also if toolspeak is killed.

toolspeak ─▶ guard ─▶ launcher (`launch.py`) ─▶ the command, or a service such as an MCP server

Before the command: it finds what `protected.py` names, makes the masks, and says what the launcher must mount
read-only. While the command runs: it stops the command as soon as a forbidden name appears. When the command has
ended, was stopped, or toolspeak has died: it kills all that is left, and renames what must not be there. Its report is
the journal's entry, a file, so that it is found at the next start if toolspeak is not there to read it. What it does
about each folder is in `folder_guard.py`; a command has one folder, a service any number.

The plan comes by a descriptor: standard input, output and error belong to the program inside.

An attack in 2026 showed why this cannot be a step of toolspeak itself: `kill -9` of toolspeak left a `.git/commondir`
in the folder for ever, and the next `git status` of the person ran what it named.

It is a program, and runs in an interpreter of its own (see `guard_plan.py`) that loads only the modules named here.
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
"""Seconds between two looks if the kernel has no watches left; at least ten times what one look takes."""


def main() -> NoReturn:
    """Do what the plan says; the last argument is the descriptor that it is read from."""
    with open(int(sys.argv[-1]), encoding="utf-8") as file:  # noqa: PTH123 # a descriptor
        plan: dict[str, Any] = json.load(file)  # noqa: TID251 # ours, and nothing else can be imported here
    _LIBC.prctl(_SUBREAPER, 1, 0, 0, 0)
    waker, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, _wake)
    _LIBC.prctl(_PARENT_DEATH, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != plan["parent"]:  # it died before we were tied to it
        os._exit(FAILED)
    try:
        status = _Guard(plan, waker).run()
    except OSError as error:
        status = _fail(f"{error.strerror}: {error.filename or ''}")
    os._exit(status)


def _wake(number: int, frame: object) -> None:
    """Let `set_wakeup_fd` tell; without a handler the signal would end us."""
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
        fcntl.flock(lock, fcntl.LOCK_SH)  # until we end: see `journal.py`
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
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            plan = self._plan["launch"] | {
                "parent": us,
                "pins": [path for each in self._folders for path in each.pins()],
                "readonly": [path for each in self._folders for path in each.readonly()],
            }
            launchers = import_module("toolspeak.agent.sandbox.launch")  # after the fork: the guard itself needs none
            getattr(launchers, self._plan["launcher"])(plan)
        except Exception as error:  # noqa: BLE001 # whatever it is, the command does not run
            _fail(f"{type(error).__name__}: {error}")
        finally:
            os._exit(FAILED)

    def _wait(self, child: int) -> int:
        """Wait until the command has ended, or must be; return its status."""
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
        if os.getppid() != self._plan["parent"] and not any(notes.values()):
            with suppress(OSError):
                os.unlink(self._plan["journal"])  # noqa: PTH108 # pathlib takes longer to load than all this
            return
        folders = [{"folder": path, "notes": each} for path, each in notes.items()]
        self._write({"state": "ended", "stopped": self._stopped, "folders": folders})

    def _write(self, entry: dict[str, Any]) -> None:
        """Write the journal's entry: as a whole or not at all, since we may be killed."""
        path = self._plan["journal"]
        with open(f"{path}.new", "w", encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123 # as above
            json.dump(entry, file)
        os.replace(f"{path}.new", path)  # noqa: PTH105 # as above


def _seconds() -> float:
    return time.monotonic()  # noqa: TID251 # a process of its own; nothing in it is replayed


def _ended(child: int) -> int | None:
    """Collect children that have ended; return the status if the first is among them."""
    status = None
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            if found[0] == child:
                status = os.waitstatus_to_exitcode(found[1])
    return None if status is None else status if status >= 0 else 128 - status


def end_all() -> None:
    """Kill all that came from us, until there are none: whatever loses its parent becomes our child."""
    while found := _children(os.getpid()):
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        select.select((), (), (), 0.001)  # what was killed needs a moment to be gone


def _children(pid: int) -> list[int]:
    found = list[int]()
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 # nothing that takes time to load
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:  # noqa: PTH123 # as above
                for child in map(int, file.read().split()):
                    found += [child, *_children(child)]
    return found
