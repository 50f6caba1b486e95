"""A PostgreSQL of our own for a test: fresh, on a free loopback port, gone in the end. It has fsync on, as in life."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

_PLACES = "/usr/lib/postgresql/*/bin/postgres"


@cache
def binaries() -> Path | None:
    """Return the folder of the newest PostgreSQL that is here."""
    found = sorted(Path("/").glob(_PLACES.lstrip("/")), key=lambda path: float(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("postgres")
    return Path(on_path).resolve().parent if on_path else None


@contextmanager
def postgres(connections: int = 200) -> Generator[str]:
    """Start one; give its URL."""
    folder = binaries()
    if folder is None:
        raise FileNotFoundError(f"no PostgreSQL: {_PLACES} is missing, and there is none on the path")
    port = _free_port()
    data = Path(tempfile.mkdtemp(prefix="toolspeak-postgres-"))
    try:
        _own(data)
        _run([str(folder / "initdb"), "-D", str(data / "data"), "-U", "runs", "-A", "trust", "-E", "UTF8"])
        settings = f"-p {port} -h 127.0.0.1 -k {data} -c max_connections={connections}"
        control = [str(folder / "pg_ctl"), "-D", str(data / "data")]
        _run([*control, "-w", "-o", settings, "-l", str(data / "log"), "start"])
        try:
            yield f"postgresql://runs@127.0.0.1:{port}/postgres"
        finally:
            _run([*control, "-m", "immediate", "stop"])
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
