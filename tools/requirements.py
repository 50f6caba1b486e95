"""Which tests prove which rule of docs/behaviour.md: a table, and an error if a rule that must be proven has no test.

A test proves a rule if its name has the rule's id in lower case without the dash (`…_mode7`, `…_p3`), or if its
docstring names it (`MODE-7`, `P3`). Where no test does, a file counts whose first lines name the rule.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from testkit.report import close

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "behaviour.md"
LISTED = ("0", "1", "2", "3", "4", "5", "6", "7", "8")
"""Sections whose rules are shown."""
PROVEN = ("1", "2", "3", "4", "7")
"""Sections of which every rule must have a test."""
PROVEN_TOO = (
    *("SAFE-1", "SAFE-2", "SAFE-3", "SAFE-4", "SAFE-5", "SAFE-6", "SAFE-7"),
    *("WIRE-1", "CAP-1", "CAP-2", "CAP-3", "CAP-4"),
)

_SECTION = re.compile(r"## (\d+)\.")
_ROW = re.compile(r"\| ([A-Z]+-?\d+) \|")
_ID = re.compile(r"\b(?:[A-Z]+-\d+|P\d)\b")


@dataclass(frozen=True)
class Rule:
    """One row of the page, and the tests that prove it."""

    id: str
    section: str
    tests: list[str] = field(default_factory=list[str])
    files: list[str] = field(default_factory=list[str])
    """Those whose first lines name the rule."""

    @property
    def proofs(self) -> list[str]:
        """Return the tests; without one, the files."""
        return self.tests or self.files

    @property
    def must_be_proven(self) -> bool:
        """Tell whether it is an error to have no test."""
        return self.section in PROVEN or self.id in PROVEN_TOO


def rules(page: str) -> dict[str, Rule]:
    """Read the rules of the listed sections, in order."""
    found: dict[str, Rule] = {}
    section = ""
    for line in page.splitlines():
        if line.startswith("## "):
            heading = _SECTION.match(line)
            section = heading[1] if heading else ""
        elif section in LISTED and (row := _ROW.match(line)):
            found[row[1]] = Rule(row[1], section)
    return found


def proofs(file: Path) -> Iterator[tuple[str, set[str]]]:
    """Yield each test of a file with the ids that it names, and last the file itself."""
    module = ast.parse(file.read_text(encoding="utf-8"))
    name = file.relative_to(ROOT).as_posix()
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield f"{name}::{node.name}", {*node.name.upper().split("_"), *_named(node)}
    yield name, _named(module)


def _named(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Module) -> set[str]:
    return {id.replace("-", "") for id in _ID.findall(ast.get_docstring(node) or "")}


def collected() -> dict[str, Rule]:
    """Read the page and all tests."""
    found = rules(PAGE.read_text(encoding="utf-8"))
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        for test, ids in proofs(file):
            for rule in found.values():
                if rule.id.replace("-", "") in ids:
                    (rule.tests if "::" in test else rule.files).append(test)
    return found


def main() -> None:
    """Print the table, what is missing, and the closing line."""
    found = collected()
    for rule in found.values():
        example = rule.proofs[0] if rule.proofs else "MISSING" if rule.must_be_proven else "-"
        print(f"{rule.id:8} {len(rule.proofs):4}  {example}")
    missing = [rule.id for rule in found.values() if rule.must_be_proven and not rule.proofs]
    later = [rule.id for rule in found.values() if not rule.must_be_proven and not rule.proofs]
    tests = len({test for rule in found.values() for test in rule.tests})
    close("requirements", ok=bool(found) and not missing, rules=len(found), tests=tests, missing=missing, later=later)


if __name__ == "__main__":
    main()
