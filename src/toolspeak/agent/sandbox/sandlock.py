"""The sandlock backend: Landlock and a system call filter, for machines without user namespaces. The second choice.

Sandlock cannot mount, so protected files are not read-only: the guard keeps copies, stops a command that changes one,
and restores the content. It does not change the user either, so it is refused to root.
"""

import shutil
import sys
from collections.abc import AsyncGenerator, Generator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from toolspeak.agent.sandbox.bwrap import (
    BOOT_ID,
    GIT_ENV,
    HIDDEN_FILES,
    HIDDEN_FOLDERS,
    check_folder,
    rlimits,
    service_rlimits,
)
from toolspeak.agent.sandbox.guard_plan import Launch, prepare_guard, run_guarded
from toolspeak.agent.sandbox.processes import is_root
from toolspeak.agent.sandbox.sandbox import Command, Ran, SandboxLimits, Service, Start
from toolspeak.agent.sandbox.seccomp import REFUSED
from toolspeak.errors import MissingExtra
from toolspeak.ir.json import Json, JsonObject

_NAME: Final = "sandlock"
_READABLE: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives"),
    *("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/proc"),
)
_ETC_CLOCK: Final = ("/etc/localtime", "/etc/timezone")
_ETC_NETWORK: Final = ("/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/ssl", "/etc/pki")
_DENIED: Final = (f"/{BOOT_ID}", *(f"/proc/{name}" for name in (*HIDDEN_FILES, *HIDDEN_FOLDERS)))
_CALLS: Final = (*REFUSED, "fallocate", "io_setup", "io_submit", "semget", "mq_open", "name_to_handle_at", "vmsplice")
"""Calls to add to sandlock's own deny-list. That list can only be extended: calls it does not know reach the kernel."""


class Sandlock:
    """Runs commands and services in sandlock."""

    def __init__(self, package: str) -> None:
        """Take the folder that contains the `sandlock` package."""
        self._package: Final = package

    @property
    def name(self) -> str:
        """Return the display name."""
        return _NAME

    async def run(self, command: Command) -> Ran:
        """Run a command until it ends or is stopped. Its `/tmp` is a folder that is removed afterwards."""
        check_folder(command.folder)
        with _temporary() as temporary:
            folder = str(command.folder)
            plan = self._plan(
                ["/bin/sh", "-c", command.text],
                {**rlimits(command.limits, command.seconds)},
                _policy(command.limits, command.env, temporary, folder, [folder]),
            )
            return await run_guarded(command, Launch("start_sandlock", plan, mounts=False, temporary=temporary))

    @asynccontextmanager
    async def prepare(self, service: Service) -> AsyncGenerator[Start]:
        """Prepare a service. Protected files that it changes are restored when it ends. Raises `BadField`."""
        for folder in service.writable:
            check_folder(folder)
        with _temporary() as temporary:
            policy = _policy(
                service.limits, service.env, temporary, service.cwd or temporary, list(map(str, service.writable))
            )
            etc = _ETC_NETWORK if service.network else ()
            more = [*map(str, service.read), *_present((*_ETC_CLOCK, *etc))]
            policy["fs_readable"] = [*_present(_READABLE), *more]
            if service.network:
                policy |= {"net_allow": ["*:*"], "net_allow_bind": ["*"]}
            plan = self._plan([*service.argv], {**service_rlimits(service.limits)}, policy)
            launch = Launch("start_sandlock", plan, mounts=False, temporary=temporary)
            async with prepare_guard(service.folders, service.journal, launch) as start:
                yield start

    def _plan(self, words: list[Json], limits: JsonObject, policy: JsonObject) -> JsonObject:
        return {"path": self._package, "limits": limits, "words": words, "policy": policy}


@contextmanager
def _temporary() -> Generator[str]:
    """Create a folder for the program's own files, and remove it on exit. If toolspeak is killed, the guard does."""
    folder = mkdtemp(prefix="toolspeak-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _policy(
    limits: SandboxLimits, given: tuple[tuple[str, str], ...], temporary: str, cwd: str, folders: list[str]
) -> JsonObject:
    env: JsonObject = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb", **dict(GIT_ENV)}
    env |= {"HOME": temporary, "TMPDIR": temporary, **dict(given)}
    return {
        "fs_readable": [*_present(_READABLE)],
        "fs_denied": [*_present(_DENIED)],
        "extra_deny_syscalls": [*_CALLS],
        "fs_writable": [*folders, temporary, "/dev/null"],
        "max_memory": limits.memory,
        "max_processes": limits.processes,
        "max_open_files": limits.files,
        # The environment of toolspeak has keys.
        "clean_env": True,
        "env": env,
        "cwd": cwd,
    }


def _present(paths: Iterable[str]) -> Iterator[str]:
    return (path for path in paths if Path(path).exists())


def find_sandlock() -> Sandlock | str:
    """Return the backend, or the reason why it cannot be used."""
    if sys.platform != "linux":
        return "it needs Linux"
    # Limits on processes do not bind root, and a process that escaped would be root.
    if is_root():
        return "it leaves root root: run as an ordinary user"
    spec = find_spec(_NAME)
    if spec is None or spec.origin is None:
        return str(MissingExtra("it", "sandlock"))
    return Sandlock(str(Path(spec.origin).parents[1]))
