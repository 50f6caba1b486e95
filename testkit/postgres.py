"""A temporary PostgreSQL for a test: on a free loopback port, removed at the end. fsync is on, as in production."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from testkit.meter import children

_PLACES = "/usr/lib/postgresql/*/bin/postgres"


@cache
def binaries() -> Path | None:
    """Return the folder of the newest installed PostgreSQL."""
    found = sorted(Path("/").glob(_PLACES.lstrip("/")), key=lambda path: float(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("postgres")
    return Path(on_path).resolve().parent if on_path else None


@dataclass(frozen=True)
class Postgres:
    """A PostgreSQL that a test may stop, freeze and start again; its data are kept."""

    url: str
    _data: Path
    _control: tuple[str, ...]
    _settings: str

    @property
    def is_running(self) -> bool:
        """Tell whether it was started and not stopped; a frozen server counts as running."""
        return (self._data / "data" / "postmaster.pid").exists()

    def start(self) -> None:
        """Start it if it is not running, and wait until it takes connections."""
        if self.is_running:
            return
        _run([*self._control, "-w", "-o", self._settings, "-l", str(self._data / "log"), "start"])

    def stop(self) -> None:
        """Stop it as a power failure would: connections break, and new ones are refused."""
        _run([*self._control, "-m", "immediate", "stop"])

    def freeze(self) -> None:
        """Suspend it: the kernel still accepts connections and data, but no answer comes."""
        for process in self._processes():
            os.kill(process, signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume it."""
        for process in self._processes():
            with suppress(ProcessLookupError):  # a child may end as soon as its parent resumes
                os.kill(process, signal.SIGCONT)

    def _processes(self) -> list[int]:
        """Return the postmaster, then its children, so that no new child is missed."""
        try:
            postmaster = int((self._data / "data" / "postmaster.pid").read_text().splitlines()[0])
        except FileNotFoundError:
            return []
        return [postmaster, *children(postmaster)]


@contextmanager
def postgres(connections: int = 200) -> Generator[str]:
    """Start a server; yield its URL."""
    with controlled_postgres(connections) as started:
        yield started.url


@contextmanager
def controlled_postgres(connections: int = 200, port: int = 0) -> Generator[Postgres]:
    """Start a server that the test controls, on this port or a free one; it is removed at the end in any state."""
    folder = binaries()
    if folder is None:
        raise FileNotFoundError(f"no PostgreSQL: {_PLACES} is missing, and there is none on the path")
    port = port or _free_port()
    data = Path(tempfile.mkdtemp(prefix="toolspeak-postgres-"))
    try:
        _own(data)
        _run([str(folder / "initdb"), "-D", str(data / "data"), "-U", "runs", "-A", "trust", "-E", "UTF8"])
        settings = f"-p {port} -h 127.0.0.1 -k {data} -c max_connections={connections}"
        control = (str(folder / "pg_ctl"), "-D", str(data / "data"))
        started = Postgres(f"postgresql://runs@127.0.0.1:{port}/postgres", data, control, settings)
        started.start()
        try:
            yield started
        finally:
            started.thaw()
            if started.is_running:
                started.stop()
    finally:
        shutil.rmtree(data, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        port: int = tried.getsockname()[1]
        return port


def _own(folder: Path) -> None:
    """PostgreSQL refuses to run as root: the folder becomes that of its own user."""
    if os.geteuid() == 0:
        shutil.chown(folder, _user(), None)


def _user() -> str:
    import pwd  # noqa: PLC0415 # not there on Windows

    names = {each.pw_name for each in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _run(command: list[str]) -> None:
    as_user = ["runuser", "-u", _user(), "--"] if os.geteuid() == 0 else []
    subprocess.run([*as_user, *command], check=True, cwd="/", stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
