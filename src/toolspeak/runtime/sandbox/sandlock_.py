"""Sandlock: Landlock and a filter of calls with a judge, for machines without user namespaces. The second choice."""

import json
import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from toolspeak.ir.json import Json
from toolspeak.runtime.sandbox import confine
from toolspeak.runtime.sandbox.bwrap import fit, rlimits
from toolspeak.runtime.sandbox.child import Start, carry
from toolspeak.runtime.sandbox.protected import restored, swept
from toolspeak.runtime.sandbox.rights import is_root
from toolspeak.runtime.sandbox.sandbox import Command, Ran

_NAME: Final = "sandlock"
_READABLE: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives"),
    *("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/proc"),
)


class Sandlock:
    """Confines commands with sandlock."""

    def __init__(self, package: str) -> None:
        """Take the folder that holds the package."""
        self._package: Final = package

    @property
    def name(self) -> str:
        """Return what people call it."""
        return _NAME

    async def run(self, command: Command) -> Ran:
        """Run a command; its `/tmp` is a folder that is removed afterwards."""
        fit(command.folder)
        temporary = mkdtemp(prefix="toolspeak-")
        try:
            with restored(command.folder), swept(command.folder):
                plan = json.dumps(self._plan(command, temporary)).encode()
                return await carry(Start((sys.executable, "-I", "-S", confine.__file__), plan), command)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def _plan(self, command: Command, temporary: str) -> dict[str, Json]:
        limits: dict[str, Json] = {**rlimits(command.limits, command.seconds)}
        env: dict[str, Json] = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb"}
        env |= {"HOME": temporary, "TMPDIR": temporary, **dict(command.env)}
        return {
            "parent": os.getpid(),
            "path": self._package,
            "limits": limits,
            "words": ["/bin/sh", "-c", command.text],
            "policy": {
                "fs_readable": [path for path in _READABLE if Path(path).exists()],
                "fs_writable": [str(command.folder), temporary, "/dev/null"],
                "max_memory": command.limits.memory,
                "max_processes": command.limits.processes,
                "max_open_files": command.limits.files,
                "clean_env": True,
                "env": env,
                "cwd": str(command.folder),
            },
        }


def found() -> Sandlock | str:
    """Return sandlock, or why it cannot be used."""
    if sys.platform != "linux":
        return "it needs Linux"
    if is_root():
        return "it leaves root root: run as an ordinary user"
    spec = find_spec(_NAME)
    if spec is None or spec.origin is None:
        return "it is not installed: pip install 'toolspeak[sandlock]'"
    return Sandlock(str(Path(spec.origin).parents[1]))
