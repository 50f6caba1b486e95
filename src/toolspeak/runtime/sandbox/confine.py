"""The process around a command that sandlock confines: a program, not a module; it imports nothing of ours.

Sandlock has no process namespace, so that what a command leaves behind would live on. Here it cannot: whatever loses
its parent becomes this process's child, and this process ends none before all of them are ended; on a signal, when the
command is done, and when the one who started it dies.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import threading
from importlib import import_module
from typing import Any, Final

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_PARENT_DEATH, _SUBREAPER = 1, 36
_FAILED: Final = 125
_DONE: Final = signal.SIGUSR1


def main() -> None:
    """Do what standard input says."""
    plan: dict[str, Any] = json.load(sys.stdin)  # noqa: TID251 # ours, and nothing else can be imported here
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, _DONE})
    _LIBC.prctl(_SUBREAPER, 1, 0, 0, 0)
    _LIBC.prctl(_PARENT_DEATH, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != plan["parent"]:  # it died before we were tied to it
        os._exit(_FAILED)
    for name, most in plan["limits"].items():
        which = getattr(resource, name)
        hard = resource.getrlimit(which)[1]
        lower = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (lower, lower))
    status = [_FAILED]
    threading.Thread(target=_work, args=(plan, status), daemon=True).start()
    signal.sigwait({signal.SIGTERM, _DONE})
    _end_all()
    os._exit(status[0] & 0xFF)


def _work(plan: dict[str, Any], status: list[int]) -> None:
    try:
        sys.path.append(plan["path"])
        status[0] = import_module("sandlock").Sandbox(**plan["policy"]).run_interactive(plan["words"])
    except Exception as error:  # noqa: BLE001
        os.write(2, f"the sandbox could not be made: {error}\n".encode())
    finally:
        os.kill(os.getpid(), _DONE)


def _end_all() -> None:
    """Kill all that came from us, until there are none."""
    while found := _children(os.getpid()):
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return


def _children(pid: int) -> list[int]:
    found = list[int]()
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 # nothing that takes time to load
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:  # noqa: PTH123 # as above
                for child in map(int, file.read().split()):
                    found += [child, *_children(child)]
    except OSError:
        return found
    return found


if __name__ == "__main__":
    main()
