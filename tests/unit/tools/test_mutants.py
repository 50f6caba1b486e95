"""`just mutants`: which mistakes are made, which tests judge them, and that the working tree is never changed."""

import subprocess
from pathlib import Path

import pytest

from tools.mutants.__main__ import ROOT, saved, summary
from tools.mutants.mutations import KINDS, enclosing_function, mutations
from tools.mutants.nearest import DISCOVERED, read_tests
from tools.mutants.targets import ROOMS, SAFETY, Mutant, choose, room_files
from tools.mutants.trial import Baselines, Copy, Tried, Verdict

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


def test_the_function_around_a_line() -> None:
    source = "x = 1\n@wraps\ndef f():\n    def g():\n        pass\n    return g\n"
    assert [enclosing_function(source, line) for line in (1, 3, 5, 6)] == [None, 2, 4, 2]


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


def test_the_nearest_tests_come_by_name_then_by_imports(tmp_path: Path) -> None:
    files = {
        **{f"src/{package.replace('.', '/')}/__init__.py": "def load(): ..." for package in DISCOVERED},
        "src/toolspeak/dialects/hermes.py": "",
        "src/toolspeak/engine/turn.py": "import toolspeak.engine._gate",
        "src/toolspeak/engine/_gate.py": "",
        "tests/scene.py": "import toolspeak.engine.turn",
        "tests/engine/test_modes.py": "from tests import scene",
        "tests/contract/test_all.py": "from toolspeak.dialects import load",
        "tests/test_direct.py": "import toolspeak.engine._gate",
        "tests/cli/test_gate.py": "",
        "tests/test_other.py": "",
    }
    write_files(tmp_path, files)
    tests = read_tests(tmp_path)
    wanted = ["tests/cli/test_gate.py", "tests/engine/test_modes.py", "tests/test_direct.py"]
    assert tests.nearest("src/toolspeak/engine/_gate.py") == wanted
    assert tests.nearest("src/toolspeak/dialects/hermes.py") == ["tests/contract/test_all.py"]


@pytest.mark.parametrize("package", DISCOVERED)
def test_packages_that_load_modules_by_name_are_there(package: str) -> None:
    assert (ROOT / "src" / package.replace(".", "/") / "__init__.py").is_file()


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
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take longer to load than these tests to run
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


def test_mistakes_are_tried_in_a_copy(small_repository: Path, tmp_path: Path) -> None:
    baselines = Baselines()
    copy = Copy(small_repository, tmp_path / "copy", baselines, 30)
    path = "src/toolspeak/toolset/small.py"
    near = ["tests/test_broken.py", "tests/test_small.py"]
    wanted = {"(n <= 3)": Verdict.SURVIVED, "return False\n    ": Verdict.FAILED, "2": Verdict.SURVIVED}
    tried = {
        one.new: copy.try_out(Mutant("toolset", path, one, SAFE), near) for one in mutations(SAFE) if one.new in wanted
    }
    assert {new: found.verdict for new, found in tried.items()} == wanted
    assert {new: found.reached for new, found in tried.items()} == {
        "(n <= 3)": True,
        "return False\n    ": True,
        "2": False,
    }
    assert tried["2"].tests == ("tests/test_small.py",)
    assert baselines.broken() == ["tests/test_broken.py"]
    alone = copy.try_out(Mutant("toolset", path, mutations(SAFE)[0], SAFE), near[:1])
    assert (alone.verdict, alone.tests) == (Verdict.UNTRIED, ())
    assert (small_repository / path).read_text() == SAFE
    assert (tmp_path / "copy" / "tree" / path).read_text() == SAFE


def test_an_endless_loop_is_found_by_the_time_limit(
    small_repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.mutants.trial.START_S", 0.5)
    monkeypatch.setattr("tools.mutants.trial.SLOWER", 1)
    source = "def is_small(n: int) -> bool:\n    while n > 9:\n        pass\n    return n < 3\n"
    path = "src/toolspeak/toolset/small.py"
    (small_repository / path).write_text(source)
    (one,) = (found for found in mutations(source) if found.new == "(n >= 9)")
    test = small_repository / "tests" / "test_small.py"
    test.write_text(TEST.replace("is_small(1)", "not is_small(9)"))
    copy = Copy(small_repository, tmp_path / "copy", Baselines(), 30)
    assert copy.try_out(Mutant("toolset", path, one, source), ["tests/test_small.py"]).verdict is Verdict.TIMED_OUT


def test_what_processes_of_the_tests_call_is_recorded(small_repository: Path, tmp_path: Path) -> None:
    code = "from toolspeak.toolset.small import is_small; assert is_small(1)"
    run_it = f"subprocess.run([sys.executable, '-c', {code!r}], check=True)"
    test = f"import subprocess\nimport sys\n\n\ndef test_it() -> None:\n    {run_it}\n"
    (small_repository / "tests" / "test_process.py").write_text(test)
    copy = Copy(small_repository, tmp_path / "copy", Baselines(), 30)
    run = copy.run_clean("tests/test_process.py")
    assert run.passed
    assert "src/toolspeak/toolset/small.py:4" in run.reached
    assert "src/toolspeak/toolset/small.py:10" not in run.reached


def test_the_result_counts_only_what_was_tried() -> None:
    mutant = Mutant(SAFETY, "src/toolspeak/engine/guard.py", mutations("x = 1\n")[0], "x = 1\n")
    verdicts = (Verdict.FAILED, Verdict.TIMED_OUT, Verdict.SURVIVED, Verdict.UNTRIED)
    tried = [Tried(mutant, verdict, (), reached=True) for verdict in verdicts]
    assert summary(tried) == {
        "killed": 2,
        "tried": 3,
        "untried": 1,
        "rate": 0.667,
        "rooms": {SAFETY: {"killed": 2, "tried": 3}},
    }
    assert saved(tried, 1, "").count('"place": "src/toolspeak/engine/guard.py:1"') == 2
