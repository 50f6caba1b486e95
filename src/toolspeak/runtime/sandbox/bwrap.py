"""Bubblewrap: namespaces of everything, nothing of the host but its programs and one folder, and a filter of calls.

/usr, /bin, /lib…    as outside, read-only
/etc                 what the loader needs, and two users
/tmp, /dev/shm       memory, small
/proc, /dev          new ones
the folder           under its own name, writable; what git and we obey in it, read-only
all else             is not there
"""

import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from toolspeak.errors import BadField
from toolspeak.ir.json import Json
from toolspeak.runtime.sandbox import launch
from toolspeak.runtime.sandbox.cgroup import confined
from toolspeak.runtime.sandbox.child import Start, carry
from toolspeak.runtime.sandbox.protected import swept
from toolspeak.runtime.sandbox.rights import is_root
from toolspeak.runtime.sandbox.sandbox import MIB, Command, Limits, Ran
from toolspeak.runtime.sandbox.seccomp import MACHINES, program

NOBODY: Final = 65534
"""Whom commands take themselves for."""
STRANGER: Final = 0x7000_0007
"""Who they are to the host where we are root: nobody's number has friends, such as a disk's reserved blocks."""
_NAME: Final = "bwrap"
_FILES: Final = {
    "/etc/passwd": f"root:x:0:0::/:/bin/sh\nnobody:x:{NOBODY}:{NOBODY}::/tmp:/bin/sh\n",
    "/etc/group": f"root:x:0:\nnogroup:x:{NOBODY}:\n",
    "/etc/hosts": "127.0.0.1 localhost\n",
}
_ETC: Final = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives")
_SYSTEM: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_TMP: Final = "/tmp"  # noqa: S108 # the one inside
_ENV: Final = (("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", _TMP), ("LANG", "C.UTF-8"), ("TERM", "dumb"))
_SHARED_MEMORY: Final = 16 * MIB
_LIMITED: Final = '{ ulimit -p "$0" || ulimit -u "$0"; } 2>/dev/null || exit 125; exec /bin/sh -c "$1"'
"""Processes are counted from within, where nobody else's count; dash says -p, bash says -u."""
_TAKEN: Final = ("/usr", "/etc", "/proc", "/dev", "/sys", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/run")


class Bwrap:
    """Confines commands with bubblewrap."""

    def __init__(self, program: str) -> None:
        """Take where bubblewrap is."""
        self._program: Final = program

    @property
    def name(self) -> str:
        """Return what people call it."""
        return _NAME

    async def run(self, command: Command) -> Ran:
        """Run a command."""
        fit(command.folder)
        with confined(command.limits) as cgroups, swept(command.folder):
            plan = json.dumps(self._plan(command, cgroups)).encode()
            return await carry(Start((sys.executable, "-I", "-S", launch.__file__), plan), command)

    def _plan(self, command: Command, cgroups: tuple[str, ...]) -> dict[str, Json]:
        """Say what the launcher must do."""
        limits: dict[str, Json] = {**rlimits(command.limits, command.seconds)}
        return {
            "parent": os.getpid(),
            "bwrap": self._program,
            "folder": str(command.folder),
            "user": STRANGER if is_root() else None,
            "cgroups": list(cgroups),
            "limits": limits,
            "files": {**_FILES},
            "seccomp": program(platform.machine()).hex(),
            "before": [*_before(command)],
            "after": [*_after(command)],
        }


def rlimits(limits: Limits, seconds: float) -> dict[str, int]:
    """Return the limits of each process; together they are watched."""
    return {
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": int(seconds) + 1,
        "RLIMIT_DATA": limits.memory,
        "RLIMIT_AS": 4 * limits.memory,
        "RLIMIT_FSIZE": limits.file_size,
        "RLIMIT_NOFILE": limits.files,
    }


def _before(command: Command) -> Iterator[str]:
    yield from ("--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL")
    yield from ("--uid", str(NOBODY), "--gid", str(NOBODY), "--hostname", "sandbox")
    yield from ("--die-with-parent", "--new-session", "--clearenv")
    for name, value in (*_ENV, *command.env):
        yield from ("--setenv", name, value)
    yield from ("--ro-bind", "/usr", "/usr")
    for name in _SYSTEM:
        yield from _same(Path("/", name))
    for name in _ETC:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    yield from ("--proc", "/proc", "--dev", "/dev")
    yield from ("--size", str(_SHARED_MEMORY), "--tmpfs", "/dev/shm", "--remount-ro", "/dev")  # noqa: S108 # inside
    yield from ("--size", str(command.limits.temporary), "--tmpfs", _TMP)


def _same(path: Path) -> tuple[str, ...]:
    """Show a folder of the system as it is outside: today mostly a link into /usr."""
    if path.is_symlink():
        return ("--symlink", str(path.readlink()), str(path))
    return ("--ro-bind", str(path), str(path)) if path.is_dir() else ()


def _after(command: Command) -> Iterator[str]:
    yield from ("--remount-ro", "/", "--chdir", str(command.folder))
    yield from ("--", "/bin/sh", "-c", _LIMITED, str(command.limits.processes), command.text)


def fit(folder: Path) -> None:
    """Refuse a folder that would open the whole system, or the user's home with its keys."""
    if not folder.is_absolute() or not folder.is_dir() or folder.resolve() != folder:
        raise BadField("folder", f"{str(folder)!r} is not a folder's full path without links")
    if any(Path(taken).is_relative_to(folder) for taken in _TAKEN) or folder.parts[1] in {"proc", "dev", "sys"}:
        raise BadField("folder", f"{str(folder)!r} is part of the system; give a folder of its own")
    if Path.home().is_relative_to(folder):
        raise BadField("folder", f"{str(folder)!r} is your home, or holds it; give a folder in it")


def found() -> Bwrap | str:
    """Return bubblewrap, or why it cannot be used."""
    if sys.platform != "linux":
        return "it needs Linux"
    if platform.machine() not in MACHINES:
        return f"its filter of system calls knows {' and '.join(MACHINES)}, not {platform.machine()}"
    where = shutil.which(_NAME)
    return (
        "it is not installed: apt install bubblewrap, or your system's word for it" if where is None else Bwrap(where)
    )
