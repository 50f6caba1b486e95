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

from toolspeak.agent.sandbox.disk import DiskBudget
from toolspeak.agent.sandbox.sandbox import MIB, Command, Ran, SandboxLimits
from toolspeak.agent.sandbox.seccomp import (
    CLONE,
    FALLOCATE,
    IOCTL,
    MACHINES,
    MISSING,
    MODES,
    OPENS,
    PERSONALITY,
    PLAIN,
    REFUSED,
    SOCKETS,
)

LIMITS = SandboxLimits(
    memory=192 * MIB,
    processes=48,
    files=256,
    file_size=24 * MIB,
    folder_growth=48 * MIB,
    folder_files=1000,
    temporary=8 * MIB,
    output=16 << 10,
    flood=8 * MIB,
)
NUMBERS = {
    **PLAIN,
    **REFUSED,
    **MISSING,
    **SOCKETS,
    **{name: row for name, (row, _) in (*OPENS.items(), *MODES.items())},
    "clone": CLONE,
    "ioctl": IOCTL,
    "personality": PERSONALITY,
    "fallocate": FALLOCATE,
    "io_setup": (206, 0),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "name_to_handle_at": (303, 264),
    "vmsplice": (278, 75),
}
"""Calls that scripts name, allowed and not: on x86_64 and on aarch64."""
JUDGED = (*SOCKETS, *OPENS, *MODES, "clone", "ioctl", "personality")
CONFIG = "[server]\nport = 8080\n"
GIT_CONFIG = "[core]\n\tbare = false\n"
HOST_ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "GIT_OPTIONAL_LOCKS": "0"}
_MOST_FOLDERS = 60
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
        self.budget = DiskBudget(LIMITS.folder_growth, LIMITS.folder_files)
        self._variable = f"KEY_{self.token}"
        os.environ[self._variable] = self.token
        self.sentinel = subprocess.Popen(["/bin/sleep", "600"], stdin=subprocess.DEVNULL, start_new_session=True)
        self.shm = ctypes.CDLL(None).shmget(self.shm_key, 4096, _SHM_EXCLUSIVE)
        self._fill()
        self._open = os.open(self.secret, os.O_RDONLY)
        os.set_inheritable(self._open, True)
        self.git_config = GIT_CONFIG
        self.journal = Path(tempfile.mkdtemp(prefix="journal-")).resolve()
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

    def prepare(self, text: str) -> None:
        """Do on the host what the person has done before the command."""
        subprocess.run(["/bin/sh", "-ec", text], cwd=self.folder, env=HOST_ENV, check=True, capture_output=True)
        config = self.folder / ".git/config"
        self.git_config = config.read_text() if config.is_file() else ""

    @property
    def pwned(self) -> Path:
        """The file that a command of the sandbox makes if a program on the host runs it."""
        return self.outside / "PWNED"

    def use_git(self, place: Path, *more: tuple[str, ...]) -> None:
        """Ask git on the host about a folder, as a person or an editor does."""
        for words in (("status",), ("diff",), *more):
            command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(command, cwd=place, env=HOST_ENV, capture_output=True, check=False, timeout=10)

    def git_folder(self, place: Path) -> str:
        """Return what git on the host takes for the repository of a folder."""
        if not place.is_dir():
            return ""
        words = ["git", "rev-parse", "--git-dir"]
        done = subprocess.run(words, cwd=place, env=HOST_ENV, capture_output=True, check=False, text=True, timeout=10)
        return done.stdout.strip()

    def use_folder(self) -> str:
        """Use git in every folder that the command has left; return where that ran the command's code."""
        self.use_git(self.folder, ("add", "-A"), ("status",), ("commit", "-m", "x", "--allow-empty"))
        for place in (self.folder, *map(Path, [root for root, _, _ in os.walk(self.folder)][:_MOST_FOLDERS])):
            if ".git" not in place.relative_to(self.folder).parts[:1]:
                self.use_git(place)
            if self.pwned.exists():
                return f"git on the host ran the command's code in {place.relative_to(self.folder)}"
        return ""

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
            **{f"nr_{name}": row[column] for name, row in NUMBERS.items()},
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
        return Command(text, self.folder, seconds, LIMITS, journal=self.journal, budget=self.budget)

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
            if (self.folder / ".git/config").exists() and (self.folder / ".git/config").read_text() != self.git_config:
                yield "git's configuration was changed"
            if any((self.folder / ".git/hooks").glob("*")) or (self.folder / ".git/commondir").exists():
                yield "git obeys something new"
        for name, status in self.entries():
            mode = status.st_mode
            if stat.S_ISREG(mode) and mode & 0o6000:
                yield f"{name} is a setuid file"
            if stat.S_ISBLK(mode) or stat.S_ISCHR(mode):
                yield f"{name} is a device"

    def entries(self) -> Iterator[tuple[str, os.stat_result]]:
        """Give all that lies in the folder, however long its path is and whatever its mode."""
        for _, folders, files, here in os.fwalk(self.folder):
            for name in (*folders, *files):
                status = os.stat(name, dir_fd=here, follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o400:
                    os.chmod(name, 0o700, dir_fd=here)
                yield name, status

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
        rmtree(self.journal, ignore_errors=True)
