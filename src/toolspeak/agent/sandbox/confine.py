"""What runs sandlock, in a process that the guard has forked; it imports nothing of ours.

Sandlock has no process namespace, so that what a command leaves running would live on. The guard ends it: whatever
loses its parent becomes the guard's child.
"""

import ctypes
import os
import resource
import signal
import sys
from importlib import import_module
from typing import Any, Final, NoReturn

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_PARENT_DEATH: Final = 1
_FAILED: Final = 125


def main(plan: dict[str, Any]) -> NoReturn:
    """Do what the plan says."""
    _LIBC.prctl(_PARENT_DEATH, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != plan["parent"]:  # it died before we were tied to it
        os._exit(_FAILED)
    for name, most in plan["limits"].items():
        which = getattr(resource, name)
        hard = resource.getrlimit(which)[1]
        lower = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (lower, lower))
    status = _FAILED
    try:
        sys.path.append(plan["path"])
        status = import_module("sandlock").Sandbox(**plan["policy"]).run_interactive(plan["words"])
    except Exception as error:  # noqa: BLE001
        os.write(2, f"the sandbox could not be made: {error}\n".encode())
    os._exit(status & 0xFF)
