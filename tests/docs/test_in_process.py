"""The page about hosts: `just hosts` executes each of its lines, and each host of `just hosts` has lines there."""

import ast
import re
from pathlib import Path

from tests.hosts.run import HERE, SCRIPTS
from tests.hosts.run import ROOT as HOSTS_ROOT
from toolspeak import TransportOptions

PAGE = (HOSTS_ROOT / "docs" / "in-process.md").read_text(encoding="utf-8")
EXPLAINED = {"Keys"}
"""Sections whose lines explain a setting; they have an address that no test has."""


def hosts_of(script: Path) -> set[str]:
    """Return the hosts that a script runs: the first arguments of `run`, or what a loop puts there."""
    tree = ast.parse(script.read_text(encoding="utf-8"))
    loops = {
        node.target.id: ast.literal_eval(node.iter)
        for node in tree.body
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name)
    }
    named: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "run":
            first = node.args[0]
            named |= set(loops[first.id]) if isinstance(first, ast.Name) else {str(ast.literal_eval(first))}
    return named


def test_the_lines_of_the_page_are_those_that_just_hosts_executes() -> None:
    sections = re.split(r"^#+ (.*)$", PAGE, flags=re.MULTILINE)[1:]
    written = {name for name, text in zip(sections[::2], sections[1::2], strict=True) if "```python\n" in text}
    scripts = {name for names in SCRIPTS.values() for name in names}
    executed = {host for name in scripts for host in hosts_of(HERE / "python" / f"{name}.py")}
    assert written - EXPLAINED == executed


def test_every_script_runs() -> None:
    scripts = {path.stem for path in (HERE / "python").glob("*.py")} - {"rows"}
    assert scripts == {name for names in SCRIPTS.values() for name in names}


def test_the_page_has_every_argument() -> None:
    rows = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert {"upstream", *TransportOptions.__annotations__} <= rows
