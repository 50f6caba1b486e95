"""Dialects are found by name: ours by their module or their row of the table, others' by entry point."""

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from pkgutil import iter_modules

import pytest

import toolspeak
from testkit.foreign_dialects import dialect_source, install
from toolspeak import Tool, dialects
from toolspeak.dialects import table
from toolspeak.errors import UnknownName


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[str]:
    """Install the dialect `foreign`, and `broken`, which is none."""
    modules = {"foreign_dialect": dialect_source("foreign", "@@"), "broken_dialect": "DIALECT = 'not one'\n"}
    install(tmp_path, monkeypatch, modules, {"foreign": "foreign_dialect", "broken": "broken_dialect"})
    yield "foreign"
    dialects.load.cache_clear()


def test_every_dialect_is_found_by_the_name_of_its_module_or_row() -> None:
    for name in dialects.names():
        assert dialects.load(name).name == name


def test_one_dialect_is_loaded_without_the_others() -> None:
    """A row needs the table, but no module of a dialect that is written; a module needs neither."""
    code = "import sys; from toolspeak import dialects; dialects.load({!r}); print(*sys.modules)"
    for name, absent in (("hermes", ("table", "glm", "any")), ("phi", ("hermes", "glm", "any"))):
        done = subprocess.run([sys.executable, "-c", code.format(name)], capture_output=True, text=True, check=True)
        assert not {f"toolspeak.dialects.{other}" for other in absent} & set(done.stdout.split())


def test_no_name_is_both_a_module_and_a_row() -> None:
    """The module would hide the row."""
    modules = {module.name for module in iter_modules(dialects.__path__)}
    assert not modules & set(table.DIALECTS)


def test_a_dialect_from_outside_is_read_like_ours(foreign: str) -> None:
    assert foreign in dialects.names()
    turn = dialects.load(foreign).read('x @@call{"name": "now", "arguments": {}}@@end', [Tool("now")])
    assert [call.name for call in turn.calls] == ["now"]


def test_a_dialect_from_outside_must_be_one(foreign: str) -> None:
    del foreign
    with pytest.raises(UnknownName, match="DIALECT"):
        dialects.load("broken")


@pytest.mark.parametrize("name", ["nope", "_reader", "core", "table", "keyed", "a b", ""])
def test_an_unknown_dialect_is_named_with_those_that_are_known(name: str) -> None:
    with pytest.raises(UnknownName, match=r"is not one of .*hermes"):
        dialects.load(name)


def test_the_public_names_are_those_that_are_exported() -> None:
    for name in toolspeak.__all__:  # they are loaded when they are first asked for
        assert getattr(toolspeak, name) is not None
    public = {name for name in vars(toolspeak) if not name.startswith("_")}
    rooms = {module.name for module in iter_modules(toolspeak.__path__)}
    assert sorted(toolspeak.__all__) == toolspeak.__all__
    assert public - rooms - {"Final", "Sequence", "TYPE_CHECKING", "import_module"} == set(toolspeak.__all__) - rooms
    assert len(toolspeak.__all__) <= 130, "functions, exceptions, and the classes of their signatures; nothing else"
