"""Dialects are found by name: ours by their module or their row of the table, others' by entry point."""

import importlib
import subprocess
import sys
from pathlib import Path
from pkgutil import iter_modules

import pytest

import toolspeak
from toolspeak import Tool, dialects
from toolspeak.dialects import table
from toolspeak.errors import UnknownName

FOREIGN = """
from toolspeak.dialects import Dialect
from toolspeak.dialects.core.grammar import MarkupGrammar, Wrapper
from toolspeak.dialects.core.json_form import JSON

DIALECT = Dialect("foreign", MarkupGrammar((Wrapper(("@@call",), ("@@end",), (JSON,)),)))
"""


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "foreign_dialect.py").write_text(FOREIGN)
    (tmp_path / "broken_dialect.py").write_text("DIALECT = 'not one'\n")
    info = tmp_path / "foreign-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign\nVersion: 1.0\n")
    entries = "foreign = foreign_dialect\nbroken = broken_dialect\n"
    (info / "entry_points.txt").write_text(f"[toolspeak.dialects]\n{entries}")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name in ("foreign_dialect", "broken_dialect"):  # another test may have imported its own of that name
        monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.invalidate_caches()
    dialects.load.cache_clear()
    return "foreign"


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
    assert len(toolspeak.__all__) <= 40
