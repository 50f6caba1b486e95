"""Installs dialects of a third-party package for the duration of one test."""

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from toolspeak import dialects

METADATA = "Metadata-Version: 2.1\nName: foreign\nVersion: 1.0\n"


def dialect_source(name: str, literal: str, more: str = "") -> str:
    """Write a module with a dialect of JSON between `{literal}call` and `{literal}end`."""
    grammar = f'MarkupGrammar((Wrapper(("{literal}call",), ("{literal}end",), (JSON,)),))'
    imports = "from toolspeak.dialects import JSON, Dialect, MarkupGrammar, Wrapper\n"
    return f'{imports}DIALECT = Dialect("{name}", {grammar}{more})\n'


def install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, modules: Mapping[str, str], entries: Mapping[str, str]
) -> None:
    """Put a package into the folder and the folder on the path; `entries` are names of dialects and their modules."""
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source)
    info = folder / "foreign-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    lines = "".join(f"{name} = {module}\n" for name, module in entries.items())
    (info / "entry_points.txt").write_text(f"[toolspeak.dialects]\n{lines}")
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    for name in modules:  # another test may have imported its own package of that name
        monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.invalidate_caches()
    dialects.load.cache_clear()
