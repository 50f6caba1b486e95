"""A copy of the tree in which mistakes are tried, one at a time: the working tree is never changed.

The copy has a `.venv` of its own that borrows the installed packages, so that processes which the tests start import
the copy as well. Its bytecode is checked by the hash of the source, so a file that changes twice in a second is read
anew.

Before a test file judges a mistake it runs once without: it must pass, and the run tells how long it takes and which
functions it reaches. A mistake is judged by the nearest test files that reach its function, as many as fit in the
budget. The time limit is a multiple of what they took, so an endless loop counts as found and a slow machine does not.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from threading import Lock

from tools.mutants.targets import Mutant
from tools.repo_rules import repository_files

PYTEST = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=no")
SLOWER = 4
"""How many times longer than without a mistake the tests may take."""
START_S = 20.0
"""On top of that, for the start of processes on a busy machine."""
LOOKED_AT = 12
"""How many of the nearest test files are asked whether they reach the mistake."""
RECORDER = Path(__file__).with_name("reached.py")


class Verdict(Enum):
    """What came of a mistake."""

    FAILED = "a test failed"
    TIMED_OUT = "the time limit was reached"
    SURVIVED = "all tests passed"
    UNTRIED = "no test file that passes without it is near"

    @property
    def killed(self) -> bool:
        """Return whether the tests noticed it."""
        return self in {Verdict.FAILED, Verdict.TIMED_OUT}


@dataclass(frozen=True)
class Tried:
    """A mistake after its trial."""

    mutant: Mutant
    verdict: Verdict
    tests: tuple[str, ...]
    reached: bool
    """Whether the tests are known to call the function with the mistake."""


@dataclass(frozen=True)
class Run:
    """A run of pytest."""

    passed: bool
    timed_out: bool
    seconds: float
    reached: frozenset[str] = frozenset()
    """Functions as `path:line`, and the paths alone; empty if they were not recorded."""


class Baselines:
    """Runs of test files without any mistake, one for each file, shared by all copies."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)

    def of(self, test: str, copy: "Copy") -> Run:
        """Return the run of a test file; the first copy that needs it makes it."""
        with self._locks[test]:
            if test not in self._runs:
                self._runs[test] = copy.run_clean(test)
            return self._runs[test]

    def broken(self) -> list[str]:
        """Return the test files that fail without any mistake."""
        return sorted(test for test, run in self._runs.items() if not run.passed)


class Copy:
    """One copy of the tree. A single thread may use it at a time."""

    def __init__(self, root: Path, folder: Path, baselines: Baselines, budget_s: float) -> None:
        """Copy what git tracks or would track; a trial uses test files that together take about `budget_s`."""
        self._folder = folder / "tree"
        self._records = folder / "reached"
        self._baselines = baselines
        self._budget_s = budget_s
        for file in repository_files(root):
            target = self._folder / file.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, target)
        self._python = _make_environment(self._folder)
        folders = [name for name in ("src", "testkit", "tests", "bench") if (self._folder / name).is_dir()]
        compiles = [self._python, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", *folders]
        subprocess.run(compiles, cwd=self._folder, check=True, stdout=subprocess.DEVNULL)

    def try_out(self, mutant: Mutant, near: Sequence[str]) -> Tried:
        """Make the mistake, run the nearest tests that reach it, and take it back."""
        known = {test: self._baselines.of(test, self) for test in self._worth_a_look(mutant, near)}
        passing = [test for test, run in known.items() if run.passed]
        reaching = [test for test in passing if mutant.function in known[test].reached]
        tests = self._affordable(reaching or passing, known)
        if not tests:
            return Tried(mutant, Verdict.UNTRIED, (), reached=False)
        limit_s = SLOWER * sum(known[test].seconds for test in tests) + START_S
        file = self._folder / mutant.path
        file.write_text(mutant.mutation.apply(mutant.source), encoding="utf-8")
        try:
            run = self._pytest(tests, limit_s)
        finally:
            file.write_text(mutant.source, encoding="utf-8")
        verdict = Verdict.TIMED_OUT if run.timed_out else Verdict.SURVIVED if run.passed else Verdict.FAILED
        return Tried(mutant, verdict, tuple(tests), reached=bool(reaching))

    def run_clean(self, test: str) -> Run:
        """Run a test file without a mistake and record what it reaches."""
        shutil.rmtree(self._records, ignore_errors=True)
        recording = {"MUTANTS_REACHED": str(self._records), "MUTANTS_ROOT": f"{self._folder}/"}
        run = self._pytest([test], 10 * self._budget_s, recording)
        functions = {line for file in self._records.glob("*.txt") for line in file.read_text("utf-8").splitlines()}
        files = {line.rpartition(":")[0] for line in functions}
        return Run(run.passed, run.timed_out, run.seconds, frozenset(functions | files))

    def _worth_a_look(self, mutant: Mutant, near: Sequence[str]) -> list[str]:
        """Return the nearest test files until those that reach the mistake fill the budget."""
        seconds = 0.0
        looked_at: list[str] = []
        for test in near[:LOOKED_AT]:
            looked_at.append(test)
            run = self._baselines.of(test, self)
            if run.passed and mutant.function in run.reached:
                seconds += run.seconds
            if seconds >= self._budget_s:
                break
        return looked_at

    def _affordable(self, tests: Sequence[str], known: dict[str, Run]) -> list[str]:
        """Return the first tests that fit in the budget, at least one."""
        chosen: list[str] = []
        seconds = 0.0
        for test in tests:
            seconds += known[test].seconds
            if chosen and seconds > self._budget_s:
                break
            chosen.append(test)
        return chosen

    def _pytest(self, tests: Sequence[str], limit_s: float, more: dict[str, str] | None = None) -> Run:
        environment = {**os.environ, "HYPOTHESIS_PROFILE": "quick", "PYTHONDONTWRITEBYTECODE": "1", **(more or {})}
        environment.pop("PYTHONPATH", None)
        started = time.monotonic()
        process = subprocess.Popen(
            [self._python, "-m", "pytest", *PYTEST, *tests],
            cwd=self._folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return Run(passed=False, timed_out=True, seconds=time.monotonic() - started)
        finally:
            _end(process)
        return Run(passed=status == 0, timed_out=False, seconds=time.monotonic() - started)


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
    shutil.copy(RECORDER, packages / "mutants_reached.py")
    # A plain line adds a folder without its own .pth files, so the editable install of the working tree stays out.
    paths = f"{folder / 'src'}\n{sysconfig.get_path('purelib')}\n"
    (packages / "copy.pth").write_text(f"{paths}import mutants_reached\n")
    return str(folder / ".venv" / "bin" / "python")
