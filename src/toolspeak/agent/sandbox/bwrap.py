"""The bubblewrap backend: new namespaces, a minimal file system, one writable folder, and a system call filter.

/usr, /bin, /lib…    as on the host, read-only
/etc                 files of the dynamic loader, and two users
/tmp, /dev/shm       small tmpfs mounts
/proc, /dev          new instances
the folder           at its own path, writable; `.git` and the other protected paths in it are read-only
everything else      does not exist
"""

import platform
import shutil
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from toolspeak.agent.sandbox.guard_plan import Launch, prepare_guard, run_guarded
from toolspeak.agent.sandbox.processes import is_root
from toolspeak.agent.sandbox.resources import confined
from toolspeak.agent.sandbox.sandbox import MIB, Command, Ran, SandboxLimits, Service, Start
from toolspeak.agent.sandbox.seccomp import MACHINES, program
from toolspeak.errors import BadField
from toolspeak.ir.json import Json, JsonObject
from toolspeak.runtime.clock import CLOCK

NOBODY: Final = 65534
"""User and group id inside the sandbox. bubblewrap needs it: `--unshare-all` alone leaves uid 0 inside."""
STRANGER: Final = 0x7000_0007
"""User id on the host if toolspeak runs as root. The host's `nobody` is not used: other things may belong to it, such
as the reserved blocks of a disk."""
_NAME: Final = "bwrap"
_USERS: Final = {
    "/etc/passwd": f"root:x:0:0::/:/bin/sh\nnobody:x:{NOBODY}:{NOBODY}::/tmp:/bin/sh\n",
    "/etc/group": f"root:x:0:\nnogroup:x:{NOBODY}:\n",
}
_HOSTS: Final = {"/etc/hosts": "127.0.0.1 localhost\n"}
BOOT_ID: Final = "proc/sys/kernel/random/boot_id"
HIDDEN_FILES: Final = (
    *(
        "cmdline",
        "config.gz",
        "consoles",
        "crypto",
        "devices",
        "diskstats",
        "dma",
        "fb",
        "interrupts",
        "iomem",
        "ioports",
    ),
    *("kallsyms", "kcore", "key-users", "keys", "kmsg", "latency_stats", "locks", "mdstat", "misc", "modules", "mtrr"),
    *("partitions", "sched_debug", "slabinfo", "softirqs", "swaps", "timer_list", "timer_stats", "vmallocinfo"),
    *("sys/kernel/core_pattern", "sys/kernel/modprobe"),
)
"""Files of `/proc` that identify the machine or describe its hardware. The kernel's command line has names of disks and
sometimes passwords; `locks` lists files of all processes. They are empty inside, and the boot id is a random one."""
HIDDEN_FOLDERS: Final = ("acpi", "asound", "bus", "driver", "fs", "irq", "scsi", "sys/dev", "sysvipc", "tty")
_ETC: Final = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives")
_SYSTEM: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
GIT_ENV: Final = (("GIT_OPTIONAL_LOCKS", "0"),)
"""Without it, `git status` tries to rewrite the index, which is read-only."""
_TMP: Final = "/tmp"  # noqa: S108 # the path inside the sandbox
_ENV: Final = (
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("HOME", _TMP),
    ("LANG", "C.UTF-8"),
    ("TERM", "dumb"),
    *GIT_ENV,
)
_SHARED_MEMORY: Final = 16 * MIB
_PAGE: Final = 4096
_LIMITED: Final = '{ ulimit -p "$0" || ulimit -u "$0"; } 2>/dev/null || exit 125; exec /bin/sh -c "$1"'
"""Sets the process limit inside the user namespace, where no other processes count. dash has -p for it, bash has -u."""
_LIMITED_SERVICE: Final = '{ ulimit -p "$0" || ulimit -u "$0"; } 2>/dev/null || exit 125; exec "$@"'
_ADDRESSES: Final = 128 << 30
"""Address space of each process of a service, in bytes."""
_ETC_CLOCK: Final = ("localtime", "timezone")
_ETC_NETWORK: Final = ("hosts", "resolv.conf", "nsswitch.conf", "gai.conf", "ssl", "pki", "ca-certificates")
_TAKEN: Final = ("/usr", "/etc", "/proc", "/dev", "/sys", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/run")


class Bwrap:
    """Runs commands and services in bubblewrap."""

    def __init__(self, program: str) -> None:
        """Take the path of the `bwrap` program."""
        self._program: Final = program

    @property
    def name(self) -> str:
        """Return the display name."""
        return _NAME

    async def run(self, command: Command) -> Ran:
        """Run a command until it ends or is stopped. Raises `BadField` for a folder that must not be writable."""
        check_folder(command.folder)
        with confined(command.limits) as cgroups:
            plan = self._plan(
                cgroups,
                limits={**rlimits(command.limits, command.seconds)},
                binds=[[str(command.folder), True]],
                before=[*_before(command.env, command.limits)],
                after=[*_after(command)],
            )
            return await run_guarded(command, Launch("start_bwrap", plan, mounts=True))

    @asynccontextmanager
    async def prepare(self, service: Service) -> AsyncGenerator[Start]:
        """Prepare a service and keep its control groups while it runs. Raises `BadField` for an unsuitable folder."""
        for folder in service.writable:
            check_folder(folder)
        with confined(service.limits) as cgroups:
            plan = self._plan(
                cgroups,
                limits={**service_rlimits(service.limits)},
                binds=[[str(path), writable] for path, writable in visible_paths(service)],
                before=[*_before(service.env, service.limits), *_service_etc(service)],
                after=[*_after_service(service)],
            )
            if service.network:
                plan["files"] = {**_USERS, **_hidden_files()}
            async with prepare_guard(
                service.folders, service.journal, Launch("start_bwrap", plan, mounts=True)
            ) as start:
                yield start

    def _plan(
        self, cgroups: tuple[str, ...], limits: JsonObject, binds: list[Json], before: list[Json], after: list[Json]
    ) -> JsonObject:
        """Return the plan for `launch.start_bwrap`."""
        return {
            "bwrap": self._program,
            "user": STRANGER if is_root() else None,
            "cgroups": list(cgroups),
            "limits": limits,
            "files": {**_USERS, **_HOSTS, **_hidden_files()},
            "seccomp": program(platform.machine()).hex(),
            "binds": binds,
            "before": before,
            "after": after,
        }


def rlimits(limits: SandboxLimits, seconds: float) -> dict[str, int]:
    """Return the rlimits of each process of a command. `resources.py` watches the total."""
    return {
        # A core dump would be left in the folder of the user.
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": int(seconds) + 1,
        "RLIMIT_DATA": limits.memory,
        # Programs reserve more address space than they use, so this bound is wider than the one on data.
        "RLIMIT_AS": 4 * limits.memory,
        "RLIMIT_FSIZE": limits.file_size,
        "RLIMIT_NOFILE": limits.files,
    }


def service_rlimits(limits: SandboxLimits) -> dict[str, int]:
    """Return the rlimits of each process of a service.

    There is no limit on CPU time, since a service may run for weeks. Address space is bounded far above memory: V8 and
    WebAssembly reserve tens of gigabytes that they never touch, and node does not start without.
    """
    by_process = rlimits(limits, 0) | {"RLIMIT_AS": _ADDRESSES}
    del by_process["RLIMIT_CPU"]
    return by_process


def visible_paths(service: Service) -> list[tuple[Path, bool]]:
    """Return the paths of the host that a service sees, and whether each is writable. Deeper paths come later."""
    paths = dict.fromkeys(service.read, False) | dict.fromkeys(service.writable, True)
    return sorted(paths.items(), key=lambda each: len(each[0].parts))


def _before(env: tuple[tuple[str, str], ...], limits: SandboxLimits) -> Iterator[str]:
    # `--disable-userns`: in a nested user namespace a command would be root, and could mount. `--new-session`: without
    # its own session it could type into the terminal of the user (TIOCSTI). `--clearenv`: the environment of
    # toolspeak has keys.
    yield from ("--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL")
    yield from ("--uid", str(NOBODY), "--gid", str(NOBODY), "--hostname", "sandbox")
    yield from ("--die-with-parent", "--new-session", "--clearenv")
    for name, value in (*_ENV, *env):
        yield from ("--setenv", name, value)
    yield from ("--ro-bind", "/usr", "/usr")
    for name in _SYSTEM:
        yield from _same(Path("/", name))
    for name in _ETC:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    yield from ("--proc", "/proc", "--dev", "/dev")
    for name in HIDDEN_FOLDERS:
        if Path("/proc", name).is_dir():
            yield from ("--size", str(_PAGE), "--tmpfs", f"/proc/{name}", "--remount-ro", f"/proc/{name}")
    # `/dev` is a tmpfs without a size limit, so it becomes read-only once `/dev/shm` has its own.
    yield from ("--size", str(_SHARED_MEMORY), "--tmpfs", "/dev/shm", "--remount-ro", "/dev")  # noqa: S108 # inside
    yield from ("--size", str(limits.temporary), "--tmpfs", _TMP)


def _hidden_files() -> dict[str, Json]:
    """Return the files to mount over files of `/proc`, as far as this kernel has them."""
    hidden: dict[str, Json] = {f"/proc/{name}": "" for name in HIDDEN_FILES if Path("/proc", name).is_file()}
    if Path("/", BOOT_ID).is_file():
        digits = CLOCK.fresh_id() + CLOCK.fresh_id()
        hidden[f"/{BOOT_ID}"] = f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}\n"
    return hidden


def _same(path: Path) -> tuple[str, ...]:
    """Return the options that show a system folder as on the host, where it is usually a link into /usr."""
    if path.is_symlink():
        return ("--symlink", str(path.readlink()), str(path))
    return ("--ro-bind", str(path), str(path)) if path.is_dir() else ()


def _after(command: Command) -> Iterator[str]:
    # The root is a tmpfs without a size limit: a command could fill the memory with files in `/`.
    yield from ("--remount-ro", "/", "--chdir", str(command.folder))
    yield from ("--", "/bin/sh", "-c", _LIMITED, str(command.limits.processes), command.text)


def _service_etc(service: Service) -> Iterator[str]:
    if service.network:
        yield "--share-net"
    for name in (*_ETC_CLOCK, *(_ETC_NETWORK if service.network else ())):
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def _after_service(service: Service) -> Iterator[str]:
    yield from ("--remount-ro", "/", "--chdir", service.cwd or _TMP)
    yield from ("--", "/bin/sh", "-c", _LIMITED_SERVICE, str(service.limits.processes), *service.argv)


def check_folder(folder: Path) -> None:
    """Raise `BadField` for a folder that would expose the system, or the user's home with its keys."""
    if not folder.is_absolute() or not folder.is_dir() or folder.resolve() != folder:
        raise BadField("folder", f"{str(folder)!r} is not a folder's full path without links")
    if any(Path(taken).is_relative_to(folder) for taken in _TAKEN) or folder.parts[1] in {"proc", "dev", "sys"}:
        raise BadField("folder", f"{str(folder)!r} is part of the system; give a folder of its own")
    if Path.home().is_relative_to(folder):
        raise BadField("folder", f"{str(folder)!r} is your home, or holds it; give a folder in it")


def find_bwrap() -> Bwrap | str:
    """Return the backend, or the reason why it cannot be used."""
    if sys.platform != "linux":
        return "it needs Linux"
    if platform.machine() not in MACHINES:
        return f"its filter of system calls knows {' and '.join(MACHINES)}, not {platform.machine()}"
    where = shutil.which(_NAME)
    return (
        "it is not installed: apt install bubblewrap, or your system's word for it" if where is None else Bwrap(where)
    )
