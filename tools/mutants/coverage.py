"""Which tests run which block of src: one run of all tests in a copy, kept in `.mutants/` until the code changes.

A block is a part of a function that runs as a whole: its body, a branch, a loop, a handler. A mistake is judged by the
tests that run its block; outside of functions, by the tests that run anything in its file. A table of constants has no
block that a test could run: there the files that import it count.
"""

import ast
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

from tools.mutants.copies import Copy
from tools.mutants.reached import blocks, lines_of
from tools.repo_rules import repository_files

SOURCE = "src/toolspeak"
LEFT_OUT = ("tests/attack", "tests/live", "tests/clients", "tests/unit/tools", "tests/unit/test_pins.py")
"""They test the tests, or the tree around the code."""
LONGEST_RUN_S = 3600.0
FILES_AT_A_TIME = 20


@dataclass(frozen=True)
class Block:
    """Lines of a file."""

    path: str
    first: int
    last: int


@dataclass(frozen=True)
class Recorded:
    """A test, and the blocks that it runs."""

    test: str
    seconds: float
    passed: bool
    blocks: frozenset[int]

    @property
    def file(self) -> str:
        """Return the test's file."""
        return self.test.partition("::")[0]

    @property
    def function(self) -> str:
        """Return the test without its parameters."""
        return self.test.partition("[")[0]


class Coverage:
    """The recorded tests of a tree."""

    def __init__(
        self,
        numbered: Sequence[Block],
        recorded: Iterable[Recorded],
        importers: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> None:
        """Keep the tests that passed, and which files import a file."""
        self._blocks = numbered
        self._importers = importers
        self.recorded = list(recorded)
        self._tests: defaultdict[int, list[Recorded]] = defaultdict(list)
        for test in self.recorded:
            if test.passed:
                for number in test.blocks:
                    self._tests[number].append(test)

    @property
    def failed(self) -> list[str]:
        """Return the tests that fail without a mistake: they cannot judge any."""
        return sorted(test.test for test in self.recorded if not test.passed)

    def tests_for(self, path: str, line: int) -> list[Recorded]:
        """Return the tests that run a line's block, or anything of the file if the line is in no function."""
        of_file = [(number, block) for number, block in enumerate(self._blocks) if block.path == path]
        around = [(block.last - block.first, number) for number, block in of_file if block.first <= line <= block.last]
        numbers = [min(around)[1]] if around else [number for number, _ in of_file]
        if not around and not any(self._tests[number] for number in numbers):
            near = self._importers.get(path, ())
            numbers = [number for number, block in enumerate(self._blocks) if block.path in near]
        return list({test.test: test for number in numbers for test in self._tests[number]}.values())


def numbered_blocks(root: Path) -> list[Block]:
    """Return all blocks of src; a block's place in the list is its number."""
    found: list[Block] = []
    for path in _sources(root):
        tree = ast.parse((root / path).read_text(encoding="utf-8"))
        found.extend(Block(path, *lines_of(block)) for block in blocks(tree))
    return found


def _sources(root: Path) -> list[str]:
    return sorted(file.relative_to(root).as_posix() for file in (root / SOURCE).rglob("*.py"))


def fingerprint(root: Path) -> str:
    """Return a name for the code that every test may run: src, the kit of the tests, and their helpers."""
    found = sha256()
    for file in sorted(repository_files(root)):
        name = file.relative_to(root).as_posix()
        if name.startswith(("src/", "tests/", "testkit/")) and not file.name.startswith("test_"):
            found.update(name.encode() + file.read_bytes())
    return found.hexdigest()[:16]


def read_coverage(root: Path, kept: Path, jobs: int) -> Coverage:
    """Return the kept record for this code; run the tests of files without one, and keep the result.

    A changed test file is run alone: only a change of what every test may run needs all tests again. They run some
    files at a time, so a stopped run continues there.
    """
    numbered = numbered_blocks(root)
    folder = kept / fingerprint(root)
    files = {name: folder / f"{_named(root, name)}.jsonl" for name in _test_files(root)}
    missing = [name for name, file in files.items() if not file.exists()]
    if missing:
        print(f"running {len(missing)} test files once, to see which code each test runs", flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="mutants-") as temporary:
            copy = Copy(root, Path(temporary))
            for start in range(0, len(missing), FILES_AT_A_TIME):
                names = missing[start : start + FILES_AT_A_TIME]
                lines = list(record_tests(copy, numbered, jobs, names))
                for name in names:
                    found = [line for line in lines if _read(line).file == name]
                    files[name].write_text("".join(found), encoding="utf-8")
    recorded = (_read(line) for file in files.values() for line in file.read_text("utf-8").splitlines())
    return Coverage(numbered, recorded, importers(root))


def importers(root: Path) -> dict[str, set[str]]:
    """Return for each file of src the files of src that import a name from it."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in _sources(root):
        for node in ast.walk(ast.parse((root / path).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                found[f"src/{node.module.replace('.', '/')}.py"].add(path)
    return dict(found)


def _test_files(root: Path) -> list[str]:
    names = sorted(file.relative_to(root).as_posix() for file in (root / "tests").rglob("test_*.py"))
    return [name for name in names if not any(Path(name).is_relative_to(left) for left in LEFT_OUT)]


def _named(root: Path, name: str) -> str:
    """Return a name for a test file as it is."""
    return sha256(name.encode() + (root / name).read_bytes()).hexdigest()[:16]


def record_tests(copy: Copy, numbered: Sequence[Block], jobs: int, tests: Sequence[str] = ("tests",)) -> Iterator[str]:
    """Run tests in a copy; yield a line of JSON for each."""
    folder = copy.tree.parent
    firsts: dict[str, int] = {}
    for number, block in enumerate(numbered):
        firsts.setdefault(str(copy.tree / block.path), number)
    plan, record = folder / "plan.json", folder / "record"
    plan.write_text(json.dumps({"files": firsts, "size": len(numbered) + 1}))
    record.mkdir(exist_ok=True)
    settings: Mapping[str, str] = {
        "MUTANTS_PLAN": str(plan),
        "MUTANTS_REACHED": str(folder / "reached"),
        "MUTANTS_RECORD": str(record),
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),  # other code, so it is kept elsewhere
        "PYTHONDONTWRITEBYTECODE": "",
    }
    ignored = [f"--ignore={path}" for path in LEFT_OUT]
    copy.pytest(["-n", str(jobs), "--dist", "worksteal", *ignored, *tests], LONGEST_RUN_S, settings)
    for file in sorted(record.glob("*.jsonl")):
        yield from file.read_text("utf-8").splitlines(keepends=True)
        file.unlink()


def _read(line: str) -> Recorded:
    found = json.loads(line)
    return Recorded(found["test"], found["seconds"], found["passed"], frozenset(found["blocks"]))
