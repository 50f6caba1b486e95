"""Be an ordinary user: from root, in a process of its own.

What the tests need (this repository, its environment, the Python that made it) may lie in root's home, which nobody may
enter. So the process gets mounts of its own, in which only those folders show there. It is a program: root runs it with
the folders and the words of the command, and it becomes the command.
"""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

NOBODY = 65534
_NEW_MOUNTS = 0x20000


def as_nobody(repository: Path, words: list[str]) -> list[str]:
    """Return the words that run a command as nobody."""
    needed = [str(repository), sys.prefix, sys.base_prefix, str(Path(sys.prefix).resolve())]
    return [sys.executable, "-I", str(Path(__file__).resolve()), json.dumps(needed), *words]


def _closed(path: Path) -> Path | None:
    """Return the first folder on the way that others may not enter."""
    ways = reversed((path, *path.parents))
    return next((way for way in ways if way.is_dir() and not way.stat().st_mode & 0o001), None)


def _open(needed: list[Path]) -> None:
    """Show what is needed of each closed folder, and nothing else of it."""
    closed: dict[Path, list[Path]] = {}
    for path in needed:
        if shut := _closed(path):
            closed.setdefault(shut, []).append(path)
    for shut, paths in closed.items():
        stage = Path(tempfile.mkdtemp(prefix="stage-"))
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "stage", stage], check=True)
        for path in paths:
            place = stage / path.relative_to(shut)
            place.mkdir(parents=True, exist_ok=True)
            subprocess.run(["mount", "--bind", path, place], check=True)
        subprocess.run(["mount", "--move", stage, shut], check=True)
        stage.rmdir()


def main() -> None:
    """Become nobody, then the command."""
    needed, words = json.loads(sys.argv[1]), sys.argv[2:]
    if ctypes.CDLL(None).unshare(_NEW_MOUNTS):
        raise OSError("no mounts of our own")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    _open([Path(path) for path in dict.fromkeys(needed)])
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    os.chdir(needed[0])
    environ = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}
    environ["PYTHONPATH"] = f"{needed[0]}/src"
    os.execve(words[0], words, environ)  # noqa: S606 # that is the point


if __name__ == "__main__":
    main()
