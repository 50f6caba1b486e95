"""The figures of a tree, each next to its target.

A comment counts if it can hold a reason: lines that only draw a rule and suppressions of a checker do not count. An
import statement counts with all its lines. Functions are measured without their decorators, as the rules of the
repository do.
"""

import io
import re
import statistics
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from tools.house.layers import arrows_up
from tools.house.names import repeated_names
from tools.house.tree import Tree
from tools.imports import Module
from tools.repo_rules import function_lengths

_NO_REASON = re.compile(r"#[\s\-=#]*$|#\s*-{4}|#\s*(?:noqa|type:|pyright:|pragma:|ruff:|mypy:|fmt:)|#!")


@dataclass(frozen=True)
class Figures:
    """The figures of one tree."""

    files: int
    lines: int
    median_file: float
    one_importer: int
    comments: Fraction
    """Per 100 lines."""
    repeated_names: int
    function_median: float
    function_p90: float
    function_longest: int
    import_lines: Fraction
    """Per 100 lines."""
    cycles: int
    arrows_up: int

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Yield name, value and target of each row."""
        yield "files in src", f"{self.files}", "at most 300"
        yield "lines in src", f"{self.lines}", "at most 40000"
        yield "median file, lines", f"{self.median_file:g}", "110 or more"
        yield "modules with one importer", f"{self.one_importer}", "at most 60"
        yield "comments per 100 lines", f"{float(self.comments):.1f}", "4 or more"
        yield "public names defined twice", f"{self.repeated_names}", "0"
        yield "function lines, median", f"{self.function_median:g}", "5 to 30"
        yield "function lines, p90", f"{self.function_p90:g}", "at most 30"
        yield "function lines, longest", f"{self.function_longest}", "-"
        yield "import lines, %", f"{float(self.import_lines):.1f}", "-"
        yield "import cycles", f"{self.cycles}", "0"
        yield "imports up", f"{self.arrows_up}", "0"


def measure(tree: Tree) -> Figures:
    """Measure a tree."""
    modules = list(tree.modules.values())
    lengths = [length for module in modules for _, _, length in function_lengths(module.source)]
    lines = sum(module.lines for module in modules)
    return Figures(
        files=len(modules),
        lines=lines,
        median_file=statistics.median(module.lines for module in modules),
        one_importer=sum(len(found) == 1 for found in tree.importers.values()),
        comments=Fraction(100 * sum(map(comments, modules)), lines),
        repeated_names=len(repeated_names(tree)),
        function_median=statistics.median(lengths),
        function_p90=statistics.quantiles(lengths, n=10)[-1],
        function_longest=max(lengths),
        import_lines=Fraction(100 * sum(map(import_lines, modules)), lines),
        cycles=len(tree.cycles),
        arrows_up=len(arrows_up(tree)),
    )


def comments(module: Module) -> int:
    """Count the comments that can hold a reason."""
    if "#" not in module.source:
        return 0
    tokens = tokenize.generate_tokens(io.StringIO(module.source).readline)
    return sum(token.type == tokenize.COMMENT and not _NO_REASON.match(token.string) for token in tokens)


def import_lines(module: Module) -> int:
    """Count the lines of the import statements."""
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in module.imports)
