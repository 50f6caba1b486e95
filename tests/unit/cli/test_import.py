"""`import toolspeak` is cheap, and every public name is there when it is asked for."""

import ast
import inspect
import subprocess
import sys
from importlib import import_module

import pytest

import toolspeak


def test_every_public_name_has_a_home_and_every_home_is_public() -> None:
    homes = [name for names in toolspeak._HOMES.values() for name in names]
    assert sorted([*homes, "read"]) == sorted(toolspeak.__all__)


def test_type_checkers_are_told_what_is_true() -> None:
    block = next(node for node in ast.parse(inspect.getsource(toolspeak)).body if isinstance(node, ast.If))
    told = {(node.module, name.name) for node in block.body if isinstance(node, ast.ImportFrom) for name in node.names}
    assert told == {(home, name) for home, names in toolspeak._HOMES.items() for name in names}


@pytest.mark.parametrize("name", toolspeak.__all__)
def test_a_name_is_what_its_home_has(name: str) -> None:
    found = getattr(toolspeak, name)
    home = next((home for home, names in toolspeak._HOMES.items() if name in names), "toolspeak")
    assert found is getattr(import_module(home), name)


def test_a_star_brings_all() -> None:
    found: dict[str, object] = {}
    exec("from toolspeak import *", found)  # noqa: S102 - there is no other way to write a star in a function
    assert set(toolspeak.__all__) <= set(found)


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(AttributeError, match="module 'toolspeak' has no attribute 'raed'"):
        getattr(toolspeak, "raed")  # noqa: B009 - the type checker would see it
    assert "raed" not in dir(toolspeak)
    assert set(toolspeak.__all__) <= set(dir(toolspeak))


def test_importing_loads_nothing_of_ours() -> None:
    code = "import sys, toolspeak; print([name for name in sys.modules if name.startswith(('toolspeak.', 'msgspec'))])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
