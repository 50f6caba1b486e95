"""A copy of the tree in which mistakes are tried, one at a time: the working tree is never changed.

The copy has its own `.venv` that borrows the installed packages, so that processes which the tests start import the
copy as well. Its bytecode is checked by the hash of the source, so a file that changes twice in a second is read again.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.repo_rules import repository_files

PYTEST = ("-q", "-p", "no:cacheprovider", "--no-header", "--tb=no")
FOLDERS = ("src", "testkit", "tests", "bench")
INSIDE = {"reached.py": "mutants_reached.py", "plugin.py": "mutants_plugin.py"}
"""Files of this package that the copy's Python imports."""


@dataclass(frozen=True)
class Run:
    """A run of pytest."""

    status: int
    """Exit status of the process; meaningless if the time was up."""
    timed_out: bool
    seconds: float


class Copy:
    """One copy of the tree. A single thread may use it at a time."""

    def __init__(self, root: Path, folder: Path) -> None:
        """Copy what git tracks or would track."""
        self.tree = folder / "tree"
        for file in repository_files(root):
            target = self.tree / file.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, target)
        self._python = _make_environment(self.tree)
        there = [name for name in FOLDERS if (self.tree / name).is_dir()]
        compiles = [self._python, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", *there]
        subprocess.run(compiles, cwd=self.tree, check=True, stdout=subprocess.DEVNULL)

    def pytest(self, arguments: Sequence[str], limit_s: float, more: Mapping[str, str]) -> Run:
        """Run pytest in the copy, with few examples, and end every process that it leaves."""
        environment = {
            **os.environ,
            "HYPOTHESIS_PROFILE": "quick",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_PLUGINS": "mutants_plugin",
            **more,
        }
        environment.pop("PYTHONPATH", None)
        started = time.monotonic()
        process = subprocess.Popen(
            [self._python, "-m", "pytest", *PYTEST, *arguments],
            cwd=self.tree,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return Run(-1, timed_out=True, seconds=time.monotonic() - started)
        finally:
            _end(process)
        return Run(status, timed_out=False, seconds=time.monotonic() - started)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End pytest and the processes of its group, also those that a broken test left."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _make_environment(folder: Path) -> str:
    """Make `.venv` in the copy: installed packages from here, toolspeak from the copy. Return its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", ".venv"], cwd=folder, check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / ".venv" / "lib" / version / "site-packages"
    for name, inside in INSIDE.items():
        shutil.copy(Path(__file__).with_name(name), packages / inside)
    # A plain line adds a folder without its own .pth files, so the editable install of the working tree stays out.
    paths = f"{folder / 'src'}\n{sysconfig.get_path('purelib')}\n"
    (packages / "copy.pth").write_text(f"{paths}import mutants_reached\n")
    return str(folder / ".venv" / "bin" / "python")
