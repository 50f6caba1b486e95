"""`--share N` leaves out cases of long tables and nothing else."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from testkit.share import SHORT_TABLE, function_of, shared

ROOT = Path(__file__).parents[2]
LONG = [f"tests/test_a.py::test_long[{number}]" for number in range(400)]


def test_of_a_long_table_about_one_case_in_n_is_kept() -> None:
    assert 70 < len(shared(LONG, 4)) < 130


def test_another_function_with_the_same_cases_has_another_share() -> None:
    other = [test.replace("test_long", "test_other") for test in LONG]
    cases = {test.replace("test_other", "test_long") for test in shared(other, 4)}
    assert cases != shared(LONG, 4)
    assert len(cases | shared(LONG, 4)) > 150


def test_the_share_does_not_depend_on_what_else_is_collected() -> None:
    assert shared([*LONG, "tests/test_b.py::test_plain"], 4) == shared(LONG, 4) | {"tests/test_b.py::test_plain"}
    assert shared(LONG[::2], 4) == shared(LONG, 4) & set(LONG[::2])


@pytest.mark.parametrize("share", [2, 4, 1000, 10**9])
def test_each_function_keeps_a_case(share: int) -> None:
    tests = [f"tests/test_a.py::test_{name}[{number}]" for name in "abcdefgh" for number in range(SHORT_TABLE + 1)]
    assert {function_of(test) for test in shared(tests, share)} == {function_of(test) for test in tests}


@pytest.mark.parametrize("count", [1, 2, SHORT_TABLE])
def test_a_short_table_is_kept_whole(count: int) -> None:
    assert shared(LONG[:count], 10**9) == set(LONG[:count])


def test_a_share_of_one_is_everything() -> None:
    assert shared(LONG, 1) == set(LONG)


def test_pytest_runs_the_share_and_tells_how_many_it_left_out() -> None:
    words = [
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "--collect-only",
        "tests/unit/text/test_lenient.py",
    ]
    whole, part = (
        subprocess.run([sys.executable, *words, *more], check=True, capture_output=True, text=True, cwd=ROOT).stdout
        for more in ([], ["--share", "4"])
    )
    ids = [line for line in whole.splitlines() if "::" in line]
    kept = [line for line in part.splitlines() if "::" in line]
    assert kept == [test for test in ids if test in shared(ids, 4)]
    assert f"{len(kept)}/{len(ids)} tests collected ({len(ids) - len(kept)} deselected)" in part


def test_the_recipe_for_other_pythons_names_what_exists() -> None:
    """An `--ignore` of a file that was renamed does nothing, and pytest does not say so."""
    recipes = (ROOT / "justfile").read_text(encoding="utf-8")
    found = re.findall(r"^(on_31\w+) := ((?:.*\\\n)*.*)$", recipes, re.MULTILINE)
    assert [name for name, _ in found] == ["on_313", "on_311_only"]
    paths = [path for _, paths in found for path in re.findall(r"[\w/.]*tests/?[\w/.]*", paths)]
    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / path).exists()] == []
