"""`just mutants`: which mistakes are made, which tests judge them, and that the working tree is never changed."""

import ast
import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tools.mutants.__main__ import ROOT, known, saved, summary
from tools.mutants.copies import Copy
from tools.mutants.coverage import Coverage, Recorded, importers, numbered_blocks, read_coverage, record_tests
from tools.mutants.equivalent import EQUIVALENT
from tools.mutants.mutations import KINDS, mutations
from tools.mutants.reached import blocks, lines_of
from tools.mutants.targets import ROOMS, SAFETY, Mutant, choose, room_files
from tools.mutants.trial import Tried, Verdict, chosen, try_out

SAFE = '''"""Adds."""


def is_small(n: int) -> bool:
    """Tell."""
    small = n < 3
    return small


def unused() -> int:
    return 1
'''
TEST = "from toolspeak.toolset.small import is_small\n\n\ndef test_small() -> None:\n    assert is_small(1)\n"


def made(source: str, kind: str) -> set[str]:
    """Return what becomes of a source, for each mistake of a kind."""
    return {one.apply(source) for one in mutations(source) if one.kind == kind and one.is_valid(source)}


@pytest.mark.parametrize(
    ("kind", "source", "changed"),
    [
        ("comparison", "x = a < b", {"x = (a <= b)"}),
        ("comparison", "x = a is b in c", {"x = (a is not b in c)", "x = (a is b not in c)"}),
        ("boolean", "x = a and b", {"x = (a or b)", "x = (a)", "x = (b)"}),
        ("boolean", "x = a or b or c", {"x = (a and b and c)", "x = (b or c)", "x = (a or c)", "x = (a or b)"}),
        ("constant", "x = 1", {"x = 2"}),
        ("constant", "x = [True, 'ä', '', None]", {"x = [False, 'ä', '', None]", "x = [True, '', '', None]"}),
        ("not", "x = not a", {"x = (a)"}),
        (
            "branch",
            "if a:\n    b()\nelif c:\n    d()",
            {"if not (a):\n    b()\nelif c:\n    d()", "if a:\n    b()\nelif not (c):\n    d()"},
        ),
        ("branch", "x = a if b else c", {"x = (c if b else a)"}),
        ("statement", "f()\na.b = 1\nc = 2", {"pass\na.b = 1\nc = 2", "f()\npass\nc = 2"}),
        (
            "early return",
            "def f():\n    a()\n    b()",
            {"def f():\n    return\n    a()\n    b()", "def f():\n    a()\n    return\n    b()"},
        ),
        (
            "early return",
            "def f() -> bool:\n    a()",
            {"def f() -> bool:\n    return True\n    a()", "def f() -> bool:\n    return False\n    a()"},
        ),
    ],
)
def test_the_mistakes_of_each_kind(kind: str, source: str, changed: set[str]) -> None:
    found = made(source, kind)
    assert changed <= found
    assert found == changed or kind == "constant"


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring."""\n',
        'T = TypeVar("T")\n',
        "def f(a: Literal['x']) -> Literal['y']: ...\n",
        "@dataclass(frozen=True)\nclass A: ...\n",
        "Name: TypeAlias = 'str | None'\n",
        "raise ValueError('a message')\n",
        "x = f'{a} and 1'\n",
    ],
)
def test_what_no_test_can_notice_is_left_alone(source: str) -> None:
    assert made(source, "constant") == set()


def test_places_after_letters_of_several_bytes_are_right() -> None:
    assert made("x = '｜ä'; y = a < b\n", "comparison") == {"x = '｜ä'; y = (a <= b)\n"}


def test_a_description_is_one_line() -> None:
    (one,) = (found for found in mutations("x = (a and\n  b)") if found.new == "(a or b)")
    assert one.describe("x = (a and\n  b)") == "a and b  ->  (a or b)"


def test_every_room_has_files_and_none_is_in_two() -> None:
    rooms = room_files(ROOT)
    files = [file for found in rooms.values() for file in found]
    assert list(rooms) == list(ROOMS)
    assert len(files) == len(set(files))
    assert any("sandbox" in file for file in rooms[SAFETY])
    assert not any("sandbox/" in file for file in rooms["agent"])


def test_the_safety_rules_are_where_they_are_looked_for() -> None:
    files = " ".join(room_files(ROOT, SAFETY)[SAFETY])
    assert all(name in files for name in ("guard.py", "/sandbox/", "access.py", "failure_echo.py"))


def test_a_package_that_is_not_there_is_an_error() -> None:
    with pytest.raises(LookupError, match="'nowhere'"):
        room_files(ROOT, "nowhere")


def test_one_seed_chooses_the_same_mistakes_and_all_are_python() -> None:
    first, again, other = (choose(ROOT, 30, seed, "toolset") for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert len({mutant.describe() for mutant in first}) > 25
    assert {mutant.mutation.kind for mutant in first} <= set(KINDS)
    for mutant in first:
        compile(mutant.mutation.apply(mutant.source), mutant.path, "exec")


def write_files(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.fixture
def small_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "repository"
    files = {
        "src/toolspeak/__init__.py": "",
        "src/toolspeak/toolset/__init__.py": "",
        "src/toolspeak/toolset/small.py": SAFE,
        "tests/conftest.py": "",
        "tests/test_small.py": TEST,
        "tests/test_broken.py": "def test_broken() -> None:\n    assert False\n",
        "pyproject.toml": '[tool.pytest.ini_options]\naddopts = ["--import-mode=importlib"]\n',
    }
    write_files(root, files)
    del monkeypatch
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


def coverage_of(root: Path, folder: Path) -> Coverage:
    numbered = numbered_blocks(root)
    recorded = (json.loads(line) for line in record_tests(Copy(root, folder), numbered, 0))
    return Coverage(
        numbered,
        [Recorded(one["test"], one["seconds"], one["passed"], frozenset(one["blocks"])) for one in recorded],
    )


def test_a_block_is_what_runs_as_a_whole() -> None:
    source = "def f(x):\n    if x:\n        a()\n    else:\n        b()\n\n    def g():\n        c()\n    return g\n"
    assert sorted(map(lines_of, blocks(ast.parse(source)))) == [(2, 9), (3, 3), (5, 5), (8, 8)]


def test_mistakes_are_tried_in_a_copy(small_repository: Path, tmp_path: Path) -> None:
    coverage = coverage_of(small_repository, tmp_path / "recorded")
    assert coverage.failed == ["tests/test_broken.py::test_broken"]
    copy = Copy(small_repository, tmp_path / "copy")
    path = "src/toolspeak/toolset/small.py"
    wanted = {"(n <= 3)": Verdict.SURVIVED, "return False\n    ": Verdict.FAILED, "2": Verdict.UNTRIED}
    tried = {
        one.new: try_out(Mutant("toolset", path, one, SAFE), copy, coverage, 30)
        for one in mutations(SAFE)
        if one.new in wanted
    }
    assert {new: found.verdict for new, found in tried.items()} == wanted
    assert tried["(n <= 3)"].tests == ("tests/test_small.py::test_small",)
    assert (small_repository / path).read_text() == SAFE
    assert (tmp_path / "copy" / "tree" / path).read_text() == SAFE


def test_an_endless_loop_is_found_by_the_time_limit(
    small_repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.mutants.trial.START_S", 3)
    source = "def is_small(n: int) -> bool:\n    while n > 9:\n        pass\n    return n < 3\n"
    path = "src/toolspeak/toolset/small.py"
    (small_repository / path).write_text(source)
    (one,) = (found for found in mutations(source) if found.new == "(n >= 9)")
    test = small_repository / "tests" / "test_small.py"
    test.write_text(TEST.replace("is_small(1)", "not is_small(9)"))
    coverage = coverage_of(small_repository, tmp_path / "recorded")
    copy = Copy(small_repository, tmp_path / "copy")
    assert try_out(Mutant("toolset", path, one, source), copy, coverage, 30).verdict is Verdict.TIMED_OUT


def test_what_processes_of_the_tests_run_is_recorded(small_repository: Path, tmp_path: Path) -> None:
    code = "from toolspeak.toolset.small import is_small; assert is_small(1)"
    run_it = f"subprocess.run([sys.executable, '-c', {code!r}], check=True)"
    test = f"import subprocess\nimport sys\n\n\ndef test_it() -> None:\n    {run_it}\n"
    (small_repository / "tests" / "test_process.py").write_text(test)
    coverage = coverage_of(small_repository, tmp_path / "recorded")
    path = "src/toolspeak/toolset/small.py"
    assert {found.file for found in coverage.tests_for(path, 6)} == {"tests/test_process.py", "tests/test_small.py"}
    assert coverage.tests_for(path, 11) == []


def test_what_an_isolated_process_runs_is_recorded(small_repository: Path, tmp_path: Path) -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); from toolspeak.toolset.small import is_small; is_small(1)"
    run_it = f"subprocess.run([sys.executable, '-I', '-S', '-c', {code!r}, 'src'], check=True, env={{}})"
    test = f"import subprocess\nimport sys\n\n\ndef test_it() -> None:\n    {run_it}\n"
    (small_repository / "tests" / "test_process.py").write_text(test)
    coverage = coverage_of(small_repository, tmp_path / "recorded")
    found = {found.file for found in coverage.tests_for("src/toolspeak/toolset/small.py", 6)}
    assert found == {"tests/test_process.py", "tests/test_small.py"}, "the guard of the sandbox is such a process"


def test_a_changed_test_file_is_recorded_alone(small_repository: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    before = read_coverage(small_repository, kept, 0)
    marked = {file: file.read_text().replace('"seconds": ', '"seconds": 1') for file in kept.rglob("*.jsonl")}
    for file, text in marked.items():
        file.write_text(text)
    broken = small_repository / "tests" / "test_broken.py"
    broken.write_text(broken.read_text().replace("False", "True"))
    after = {found.test: found for found in read_coverage(small_repository, kept, 0).recorded}
    assert before.failed == ["tests/test_broken.py::test_broken"]
    assert after["tests/test_broken.py::test_broken"].passed
    assert after["tests/test_small.py::test_small"].seconds >= 10, "from what is kept"


def test_some_cases_of_each_test_are_chosen() -> None:
    tests = [Recorded(f"t.py::{name}", seconds, True, frozenset()) for name, seconds in (("a[1]", 1), ("a[2]", 2))]
    tests += [Recorded(f"t.py::{name}", 3, True, frozenset()) for name in ("b", "c")]
    assert [found.test for found in chosen(tests, "s.py", 7)] == ["t.py::a[1]", "t.py::b", "t.py::c"]
    assert [found.test for found in chosen(tests[2:], "s.py", 1)] == ["t.py::b"], "at least one"


def test_the_tests_of_a_module_come_before_quicker_ones() -> None:
    files = ("tests/contract/test_all.py", "tests/unit/engine/test_plan.py", "tests/unit/toolset/test_names.py")
    tests = [Recorded(f"{file}::test_it", seconds, True, frozenset()) for seconds, file in enumerate(files)]
    order = [found.file for found in chosen(tests, "src/toolspeak/toolset/names.py", 9)]
    assert order == ["tests/unit/toolset/test_names.py", *files[:2]]


def test_a_case_that_names_what_is_changed_comes_first() -> None:
    tests = [Recorded(f"t.py::test_it[{case}]", 1, True, frozenset()) for case in ("api_base", "azure_endpoint")]
    assert [found.test for found in chosen(tests, "s.py", 1, "azure_endpoint")] == ["t.py::test_it[azure_endpoint]"]


def test_a_table_is_judged_by_the_tests_of_the_files_that_import_it(small_repository: Path) -> None:
    table = small_repository / "src/toolspeak/toolset/table.py"
    table.write_text("NAMES = ('a', 'b')\n")
    user = small_repository / "src/toolspeak/toolset/user.py"
    user.write_text("from toolspeak.toolset.table import NAMES\n\n\ndef names() -> int:\n    return len(NAMES)\n")
    numbered = numbered_blocks(small_repository)
    (place,) = (number for number, block in enumerate(numbered) if block.path.endswith("user.py"))
    test = Recorded("tests/test_user.py::test_it", 1, True, frozenset({place}))
    path = "src/toolspeak/toolset/table.py"
    assert Coverage(numbered, [test], importers(small_repository)).tests_for(path, 1) == [test]
    assert Coverage(numbered, [test]).tests_for(path, 1) == []


def test_the_nearest_files_are_asked_before_all_others(
    small_repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.mutants.trial.FIRST_FILES", 1)
    ran = tmp_path / "ran"
    late = f"from pathlib import Path\n\n\ndef test_late() -> None:\n    Path({str(ran)!r}).touch()\n"
    (small_repository / "tests" / "test_late.py").write_text(late)
    path = "src/toolspeak/toolset/small.py"
    (block,) = (number for number, each in enumerate(numbered_blocks(small_repository)) if each.first == 5)
    tests = [Recorded(f"tests/test_{name}.py::test_{name}", 1, True, frozenset({block})) for name in ("small", "late")]
    coverage, copy = Coverage(numbered_blocks(small_repository), tests), Copy(small_repository, tmp_path / "copy")
    made = {one.new: Mutant("toolset", path, one, SAFE) for one in mutations(SAFE)}
    assert try_out(made["return False\n    "], copy, coverage, 30).verdict is Verdict.FAILED
    assert not ran.exists()
    assert try_out(made["(n <= 3)"], copy, coverage, 30).verdict is Verdict.SURVIVED
    assert ran.exists()


def test_every_equivalent_mistake_is_one_of_the_code() -> None:
    every = {one.path: choose(ROOT, 10**6, 1, one.path) for one in EQUIVALENT}
    assert [one for one in EQUIVALENT if sum(map(one.is_it, every[one.path])) != 1] == []


def test_results_are_kept_until_the_file_changes(tmp_path: Path) -> None:
    source = "x = 1\n"
    mutant = Mutant(SAFETY, "src/toolspeak/engine/guard.py", mutations(source)[0], source)
    tried = [Tried(mutant, Verdict.FAILED)]
    (tmp_path / "result.json").write_text(saved(tried, 1))
    assert known([mutant], tmp_path / "result.json") == tried
    assert known([replace(mutant, source=source + "y = 2\n")], tmp_path / "result.json") == []
    assert known([mutant], tmp_path / "none.json") == []


def test_the_result_counts_what_lives_apart_for_the_safety_rules() -> None:
    mutant = Mutant(SAFETY, "src/toolspeak/engine/guard.py", mutations("x = 1\n")[0], "x = 1\n")
    verdicts = (Verdict.FAILED, Verdict.TIMED_OUT, Verdict.SURVIVED, Verdict.UNTRIED)
    tried = [Tried(mutant, verdict) for verdict in verdicts]
    assert summary(tried) == {
        "killed": 2,
        "tried": 4,
        "rate": 0.5,
        "safety_alive": 2,
        "rooms": {SAFETY: {"killed": 2, "tried": 4}},
    }
    assert saved(tried, 1).count('"place": "src/toolspeak/engine/guard.py:1"') == 2
