"""Starts a program that the kernel kills when its parent ends, even if the parent was killed with SIGKILL.

    python tether.py PARENT PROGRAM ARGUMENT…

`PR_SET_PDEATHSIG` must be set by the child itself, and survives `exec`: this file sets it, then becomes the program. An
`atexit` handler or signal handler of the parent would not run after SIGKILL, and would leave the program for ever. Only
Linux has this option. The file is run alone, in an isolated interpreter, so it imports nothing of toolspeak.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PDEATHSIG = 1
"""`PR_SET_PDEATHSIG` of `<sys/prctl.h>`."""


def tethered(command: Sequence[str]) -> list[str]:
    """Return the command line that runs `command` tied to this process. Except on Linux it is `command` unchanged."""
    if sys.platform != "linux":
        return [*command]
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def main(parent: str, *command: str) -> None:
    """Tie this process to its parent, then become the program. Exits with a message if either fails."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    # The parent may have died before prctl: then no signal ever comes, and this process has another parent by now.
    if os.getppid() != int(parent):
        sys.exit("the parent has ended already")
    try:
        os.execv(command[0], command)  # noqa: S606 # a shell would have to quote the arguments again
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    main(*sys.argv[1:])
