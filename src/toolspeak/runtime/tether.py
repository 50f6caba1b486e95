"""A program that ends when its parent ends, whatever that died of.

    python tether.py PARENT PROGRAM ARGUMENT…

The system is asked for that here, in the child's own process, and keeps it when the program takes this one's place.
Only Linux has it. This file is run alone, so it imports nothing of ours.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PDEATHSIG = 1


def tethered(command: Sequence[str]) -> list[str]:
    """Return the command that runs another one tied to this process; where that cannot be, the other one."""
    if sys.platform != "linux":
        return [*command]
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def main(parent: str, *command: str) -> None:
    """Tie this process, then become the program."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != int(parent):
        sys.exit("the parent has ended already")
    try:
        os.execv(command[0], command)  # noqa: S606 # no shell is wanted
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    main(*sys.argv[1:])
