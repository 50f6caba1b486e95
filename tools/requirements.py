"""Which tests prove which rule of docs/behaviour.md: a table, and an error if a rule that must be proven has no test.

A test proves a rule if its name has the rule's id in lower case without the dash (`…_mode7`, `…_p3`), or if its
docstring names it (`MODE-7`, `P3`). Where no test does, a file counts whose first lines name the rule.

At least one of these tests must go through the product: a function can be right and have no caller. `tools/doors.py`
finds these tests. A rule that no user can meet there is marked in its row: `(pure: <reason>)`. A rule that is not
implemented yet is marked `(planned)`, and no test may claim to prove it.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from testkit.report import close
from tools.doors import Doors

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "behaviour.md"
LISTED = ("0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
"""Sections that have rules."""

_SECTION = re.compile(r"## (\d+)\.")
_ROW = re.compile(r"\| ([A-Z]+-?\d+) \|")
_PURE = re.compile(r"\(pure: [^)]+\)")
_PLANNED = re.compile(r"\(planned[:)]")
_ID = re.compile(r"\b(?:[A-Z]+-\d+|P\d)\b")


@dataclass(frozen=True)
class Rule:
    """One row of the page, and the tests that prove it."""

    id: str
    section: str
    is_pure: bool = False
    """The row says why no test can go through the product."""
    is_planned: bool = False
    """The row says that it is not there yet."""
    tests: list[str] = field(default_factory=list[str])
    files: list[str] = field(default_factory=list[str])
    """Those whose first lines name the rule."""
    through: list[str] = field(default_factory=list[str])
    """Tests that go through the product; without one that names the rule, those of the files that do."""

    @property
    def proofs(self) -> list[str]:
        """Return the tests; without one, the files."""
        return self.tests or self.files

    @property
    def must_be_proven(self) -> bool:
        """Return whether it is an error to have no test."""
        return not self.is_planned


@dataclass(frozen=True)
class Proof:
    """A test, or the file as a whole, with the ids that it names."""

    path: str
    test: str
    """Empty for the file."""
    ids: frozenset[str]
    through: bool
    """It goes through the product; of a file, one of its tests."""

    @property
    def name(self) -> str:
        """Return its pytest id."""
        return f"{self.path}::{self.test}" if self.test else self.path


def rules(page: str) -> dict[str, Rule]:
    """Read the rules of the listed sections, in order."""
    found: dict[str, Rule] = {}
    section = ""
    for line in page.splitlines():
        if line.startswith("## "):
            heading = _SECTION.match(line)
            section = heading[1] if heading else ""
        elif section in LISTED and (row := _ROW.match(line)):
            found[row[1]] = Rule(row[1], section, bool(_PURE.search(line)), bool(_PLANNED.search(line)))
    return found


def proofs(file: Path, doors: Doors) -> Iterator[Proof]:
    """Yield each test of a file with the ids that it names, and last the file itself."""
    module = ast.parse(file.read_text(encoding="utf-8"))
    path = file.relative_to(ROOT).as_posix()
    anyone = False
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            through = doors.reached_by(path, node.name)
            anyone = anyone or through
            yield Proof(path, node.name, frozenset({*node.name.upper().split("_"), *_named(node)}), through)
    yield Proof(path, "", frozenset(_named(module)), anyone)


def _named(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Module) -> set[str]:
    return {id.replace("-", "") for id in _ID.findall(ast.get_docstring(node) or "")}


def collected() -> dict[str, Rule]:
    """Read the page and all tests."""
    found = rules(PAGE.read_text(encoding="utf-8"))
    by_id = {rule.id.replace("-", ""): rule for rule in found.values()}
    doors = Doors(ROOT)
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        for proof in proofs(file, doors):
            for id in proof.ids & by_id.keys():
                (by_id[id].tests if proof.test else by_id[id].files).append(proof.name)
                if proof.through:
                    by_id[id].through.append(proof.name)
    return found


def main() -> None:
    """Print the table, what is missing, and the closing line."""
    found = collected()
    for rule in found.values():
        example = rule.proofs[0] if rule.proofs else "MISSING" if rule.must_be_proven else "-"
        way = rule.through[0] if rule.through else "pure" if rule.is_pure else "NONE" if rule.must_be_proven else "-"
        print(
            f"{rule.id:8} {len(rule.proofs):4} {len(rule.through):4}  {way if rule.through else f'{example} ({way})'}"
        )
    missing = [rule.id for rule in found.values() if rule.must_be_proven and not rule.proofs]
    unused = [rule.id for rule in found.values() if rule.must_be_proven and not (rule.through or rule.is_pure)]
    planned = [rule.id for rule in found.values() if rule.is_planned]
    early = [rule.id for rule in found.values() if rule.is_planned and rule.tests]
    tests = len({test for rule in found.values() for test in rule.tests})
    close(
        "requirements",
        ok=bool(found) and not (missing or unused or early),
        rules=len(found),
        tests=tests,
        missing=missing,
        not_through_the_product=unused,
        planned=planned,
        planned_with_a_test=early,
    )


if __name__ == "__main__":
    main()
