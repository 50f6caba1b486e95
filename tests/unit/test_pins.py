"""Every dependency has an upper bound, and every extra can be installed with hashes (docs/dependencies.md)."""

import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PINS = ROOT / "requirements"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
RUNTIME: list[str] = PROJECT["project"]["dependencies"]
GROUPS = [entry for group in PROJECT["dependency-groups"].values() for entry in group if isinstance(entry, str)]
ALL = [*RUNTIME, *chain.from_iterable(EXTRAS.values()), *GROUPS, *PROJECT["build-system"]["requires"]]
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_PIN = re.compile(r"^([a-z0-9.-]+)==([^ ;\\]+)[^\n]*\\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE)


def name_of(entry: str) -> str:
    """Return a requirement's package as pins spell it."""
    found = _NAME.match(entry)
    assert found
    return re.sub(r"[._-]+", "-", found[0]).lower()


def pinned(file: Path) -> dict[str, str]:
    """Return the packages of a file with their versions; every line of it must belong to a pin with hashes."""
    text = file.read_text(encoding="utf-8")
    rest = [line for line in _PIN.sub("", text).splitlines() if line.strip() and not line.strip().startswith("#")]
    assert rest == []
    return {name: version for name, version, _ in _PIN.findall(text)}


@pytest.mark.parametrize("entry", ALL)
def test_every_dependency_has_an_upper_bound(entry: str) -> None:
    assert re.search(r"<\d|==\d", entry.partition(";")[0])


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_every_extra_is_pinned_with_hashes(extra: str) -> None:
    found = pinned(PINS / "extras" / f"{extra}.txt")
    assert {name_of(entry) for entry in (*RUNTIME, *EXTRAS[extra])} <= set(found)
    together = pinned(PINS / "extras" / "all.txt")
    assert found.items() <= together.items(), "extras can be installed side by side only if they agree on versions"


def test_the_pins_of_all_extras_agree_with_those_without_extras() -> None:
    assert pinned(PINS / "runtime.txt").items() <= pinned(PINS / "extras" / "all.txt").items()


def test_no_extra_is_left_out_of_the_recipe_that_pins() -> None:
    recipe = re.search(r'^extras := "([^"]+)"$', (ROOT / "justfile").read_text(encoding="utf-8"), re.MULTILINE)
    assert recipe
    assert set(recipe[1].split()) == set(EXTRAS)


@pytest.mark.parametrize("file", sorted(PINS.rglob("*.txt")), ids=lambda file: file.stem)
def test_pins_name_no_address(file: Path) -> None:
    assert "://" not in file.read_text(encoding="utf-8")
    assert pinned(file)


def test_the_wheel_and_the_source_archive_carry_the_pins() -> None:
    targets = PROJECT["tool"]["hatch"]["build"]["targets"]
    assert targets["wheel"]["shared-data"]["requirements/extras"] == "share/toolspeak/requirements/extras"
    assert {"/requirements", "/SECURITY.md"} <= set(targets["sdist"]["include"])
