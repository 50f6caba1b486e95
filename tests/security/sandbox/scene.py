"""What lies around a sandbox: things of the host that a command must not get at, and how they are after it.

Each attempt has a scene of its own, so that many can be made at once and none is blamed for another.
"""

import asyncio
import contextlib
import ctypes
import os
import platform
import re
import signal
import socket
import stat
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from shutil import rmtree

from toolspeak.runtime.sandbox.sandbox import MIB, Command, Limits, Ran
from toolspeak.runtime.sandbox.seccomp import MACHINES, MISSING, REFUSED

LIMITS = Limits(
    memory=192 * MIB,
    processes=48,
    files=256,
    file_size=24 * MIB,
    folder_growth=48 * MIB,
    temporary=8 * MIB,
    output=16 << 10,
    flood=8 * MIB,
)
CONFIG = "[server]\nport = 8080\n"
GIT_CONFIG = "[core]\n\tbare = false\n"
_numbers = count(1)
_SHM_EXCLUSIVE, _SHM_REMOVE = 0o3600, 0


class Scene:
    """A folder for the command, and secrets, services and processes outside it."""

    def __init__(self) -> None:
        number = next(_numbers)
        self.all = Path(tempfile.mkdtemp(prefix="sandbox-")).resolve()
        self.token = f"token{os.getpid()}x{number}x{os.urandom(4).hex()}"
        self.naps = 100_000_000 + (os.getpid() % 90_000) * 1000 + number
        """Seconds that only processes of this scene sleep."""
        self.folder, self.outside = self.all / "folder", self.all / "outside"
        self.secret = self.outside / "secret"
        self.callers: list[str] = []
        self._variable = f"KEY_{self.token}"
        os.environ[self._variable] = self.token
        self.sentinel = subprocess.Popen(["/bin/sleep", "600"], stdin=subprocess.DEVNULL, start_new_session=True)
        self.shm = ctypes.CDLL(None).shmget(self.shm_key, 4096, _SHM_EXCLUSIVE)
        self._fill()
        self._open = os.open(self.secret, os.O_RDONLY)
        os.set_inheritable(self._open, True)
        self._before = dict(self._state())

    @property
    def shm_key(self) -> int:
        return self.naps & 0x7FFFFFFF

    def _fill(self) -> None:
        self.folder.mkdir()
        self.outside.mkdir()
        self.secret.write_text(self.token)
        (self.outside / "config").write_text(self.token)
        (self.outside / "hooks").mkdir()
        (self.folder / "toolspeak.toml").write_text(CONFIG)
        (self.folder / "plain.txt").write_text("plain")
        git = self.folder / ".git"
        git.mkdir()
        for name in ("objects", "refs", "info"):
            (git / name).mkdir()
        (git / "HEAD").write_text("ref: refs/heads/main\n")
        (git / "config").write_text(GIT_CONFIG)

    def _state(self) -> Iterator[tuple[str, tuple[int, int, bytes]]]:
        for path in (*sorted(self.all.iterdir()), *sorted(self.outside.rglob("*"))):
            status = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
            yield str(path), (status.st_mode, status.st_nlink if content else 0, content)

    def text(self, template: str, ports: dict[str, int]) -> str:
        """Fill in what the scene knows."""
        column = MACHINES[platform.machine()].column
        values = {
            "folder": self.folder,
            "outside": self.outside,
            "secret": self.secret,
            "token": self.token,
            "naps": self.naps,
            "pid": self.sentinel.pid,
            "shm": self.shm_key,
            "abstract": f"abstract-{self.token}",
            **ports,
            **{f"nr_{name}": row[column] for name, row in {**REFUSED, **MISSING}.items()},
        }
        return re.sub(r"@(\w+)@", lambda found: str(values[found[1]]), template)

    @asynccontextmanager
    async def services(self) -> AsyncGenerator[dict[str, int]]:
        """Start what listens on the host: TCP, IPv6, UDP, unix sockets with a path and without."""

        async def called(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.callers.append("a connection")
            del reader
            writer.close()

        async with contextlib.AsyncExitStack() as stack:
            tcp = await stack.enter_async_context(await asyncio.start_server(called, "127.0.0.1", 0))
            unix = self.outside / "socket"
            await stack.enter_async_context(await asyncio.start_unix_server(called, unix))
            self._before = dict(self._state())
            await stack.enter_async_context(
                await asyncio.start_unix_server(called, f"\0abstract-{self.token}"),
            )
            ports = {"port": tcp.sockets[0].getsockname()[1]}
            if socket.has_ipv6:
                with contextlib.suppress(OSError):
                    tcp6 = await stack.enter_async_context(await asyncio.start_server(called, "::1", 0))
                    ports["port6"] = tcp6.sockets[0].getsockname()[1]
            udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            udp.bind(("127.0.0.1", 0))
            udp.setblocking(False)
            ports.setdefault("port6", ports["port"])
            ports["udp"] = udp.getsockname()[1]
            yield ports
            await asyncio.sleep(0.01)
            with contextlib.suppress(BlockingIOError):
                udp.recv(64)
                self.callers.append("a datagram")

    def command(self, text: str, seconds: float) -> Command:
        return Command(text, self.folder, seconds, LIMITS)

    def problems(self, ran: Ran) -> Iterator[str]:
        """Say what happened outside that must never happen, whatever was tried."""
        if self.token in ran.output:
            yield "the secret is in the output"
        if dict(self._state()) != self._before:
            yield "files outside the folder have changed"
        if self.callers:
            yield f"a service of the host got {', '.join(self.callers)}"
        if self.sentinel.poll() is not None:
            yield "a process of the host was ended"
        if left := self.left():
            yield f"processes are left: {left}"
        if any(char not in "\n\t\u3000" and not char.isprintable() for char in ran.output):
            yield "the output holds control characters"
        yield from self._folder_problems()

    def _folder_problems(self) -> Iterator[str]:
        own = self.folder / "toolspeak.toml"
        if not own.is_file() or own.read_text() != CONFIG:
            yield "our configuration was changed"
        if not (self.folder / ".git").is_symlink() and (self.folder / ".git").is_dir():
            if (self.folder / ".git/config").exists() and (self.folder / ".git/config").read_text() != GIT_CONFIG:
                yield "git's configuration was changed"
            if any((self.folder / ".git/hooks").glob("*")) or (self.folder / ".git/commondir").exists():
                yield "git obeys something new"
        for path in self.folder.rglob("*"):
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode) and mode & 0o6000:
                yield f"{path.name} is a setuid file"
            if stat.S_ISBLK(mode) or stat.S_ISCHR(mode):
                yield f"{path.name} is a device"

    def left(self) -> list[str]:
        """Return the command lines of processes that the command has left."""
        return [line.replace(b"\0", b" ").decode("utf-8", "replace")[:120] for line in self._pids().values()]

    def _pids(self) -> dict[int, bytes]:
        """Return the processes that nobody but the command can have started."""
        marks = (self.token.encode(), str(self.naps).encode())
        found = dict[int, bytes]()
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                line = (folder / "cmdline").read_bytes()
                if any(mark in line for mark in marks) and int(folder.name) != os.getpid():
                    found[int(folder.name)] = line
        return found

    def close(self) -> None:
        os.environ.pop(self._variable)
        os.close(self._open)
        self.sentinel.send_signal(signal.SIGKILL)
        self.sentinel.wait()
        for pid in self._pids():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if self.shm >= 0:
            ctypes.CDLL(None).shmctl(self.shm, _SHM_REMOVE, None)
        rmtree(self.all, ignore_errors=True)
