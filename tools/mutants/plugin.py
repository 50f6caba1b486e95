"""A pytest plugin for a copy: it runs only the requested tests, and records what each one reaches.

With `MUTANTS_TESTS` (a file with a test in each line) pytest runs only these. With `MUTANTS_RECORD` (a folder) it
writes a line for each test, with the numbers of the blocks that it ran, in processes that it started too:

    {"test": "tests/unit/text/test_cut.py::test_it", "seconds": 0.1, "passed": true, "blocks": [17, 18]}
"""

import json
import os
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

_FAILED: set[str] = set()


def pytest_configure() -> None:
    """Give this process and its children a separate folder: xdist runs several at once."""
    if "MUTANTS_RECORD" in os.environ:
        folder = Path(os.environ["MUTANTS_REACHED"])
        own = folder / str(os.getpid())
        own.mkdir(exist_ok=True)
        (folder / f"{os.getpid()}.reached").rename(own / f"{os.getpid()}.reached")
        os.environ["MUTANTS_REACHED"] = str(own)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the requested tests."""
    if "MUTANTS_TESTS" in os.environ:
        wanted = set(Path(os.environ["MUTANTS_TESTS"]).read_text("utf-8").splitlines())
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in wanted])
        items[:] = [item for item in items if item.nodeid in wanted]


def pytest_collection_finish() -> None:
    """Forget the blocks that ran while the tests were imported: they belong to no test."""
    if "MUTANTS_RECORD" in os.environ:
        taken(Path(os.environ["MUTANTS_REACHED"]))


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, None]:
    """Record what a test reaches."""
    began = time.perf_counter()
    yield
    if "MUTANTS_RECORD" in os.environ:
        found = sorted(taken(Path(os.environ["MUTANTS_REACHED"])))
        seconds = round(time.perf_counter() - began, 3)
        line = {"test": item.nodeid, "seconds": seconds, "passed": item.nodeid not in _FAILED, "blocks": found}
        with Path(os.environ["MUTANTS_RECORD"], f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record failures; a skipped test shows nothing either."""
    if report.outcome != "passed":
        _FAILED.add(report.nodeid)


def taken(folder: Path) -> set[int]:
    """Read and clear the bytes of all processes; files of those that have ended are deleted."""
    found: set[int] = set()
    for file in folder.glob("*.reached"):
        data = file.read_bytes()
        if any(data):
            found.update(place for place, byte in enumerate(data) if byte)
        if not Path("/proc", file.stem).exists():
            file.unlink()
        elif any(data):
            with file.open("r+b") as opened:
                opened.write(bytes(len(data)))
    return found
