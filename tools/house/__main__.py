"""Print the shape of the source before and after, and fail if a rule is broken.

`python -m tools.house` compares the working tree with a commit (`--before REV`). `--report` prints the same and
always exits with 0; `--phrases` prints each line that has a listed phrase, not only their number.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from subprocess import CalledProcessError

from tools.house.figures import measure
from tools.house.phrases import Finding, count_phrases, find_phrases
from tools.house.returns import trace_request
from tools.house.rules import breaches
from tools.house.tree import Tree, committed

ROOT = Path(__file__).resolve().parent.parent.parent
BEFORE = "25e14b3"
"""The commit before the second design of the house."""
Row = tuple[str, str, str, str]
"""Name, before, after, target."""


def figure_rows(before: Tree, after: Tree) -> list[Row]:
    """Return the rows of the table."""
    pairs = zip(measure(before).rows(), measure(after).rows(), strict=True)
    rows = [(name, old, new, wanted) for (name, old, wanted), (_, new, _) in pairs]
    old_trace, new_trace = trace_request(before.root), trace_request(after.root)
    for key, name, wanted in (
        ("returns", "returns on the way of a request", "at most 50"),
        ("files", "files on it", "-"),
    ):
        rows.append((name, str(old_trace.get(key, "?")), str(new_trace.get(key, "?")), wanted))
    for trace in (old_trace, new_trace):
        if "error" in trace:
            print(f"the request could not be traced: {trace['error']} (see tools/house/returns.py)", file=sys.stderr)
    return rows


def phrase_rows(before: Sequence[Finding], after: Sequence[Finding]) -> list[Row]:
    """Return a row for each phrase."""
    old, new = count_phrases(before), count_phrases(after)
    return [(phrase, str(old[phrase]), str(new[phrase]), "few") for phrase in old]


def print_table(title: str, rows: Sequence[Row]) -> None:
    """Print rows in columns."""
    print(f"{title:34} {'before':>8} {'after':>8}  wanted")
    for name, old, new, wanted in rows:
        print(f"{name:34} {old:>8} {new:>8}  {wanted}")


def main() -> int:
    """Print the tables and every broken rule; return the exit status."""
    parser = argparse.ArgumentParser(prog="house", description=__doc__)
    parser.add_argument("--before", default=BEFORE, metavar="REV", help="the commit to compare with (%(default)s)")
    parser.add_argument("--report", action="store_true", help="exit with 0 also if a rule is broken")
    parser.add_argument("--phrases", action="store_true", help="print the lines that have a listed phrase")
    options = parser.parse_args()
    after = Tree(ROOT)
    found = list(find_phrases(after))
    try:
        with committed(ROOT, options.before) as before:
            print_table("figure", figure_rows(before, after))
            print()
            print_table("lines with a phrase", phrase_rows(list(find_phrases(before)), found))
    except CalledProcessError as error:
        parser.error(f"git has no commit {options.before!r}: {error.stderr.decode().strip()}")
    if options.phrases:
        print(*("", *(f"{hit.path}:{hit.line}: {hit.phrase}: {hit.text}" for hit in found)), sep="\n")
    broken = list(breaches(after))
    print(*("", *broken, f"house: {len(broken)} broken rules"), sep="\n")
    return 1 if broken and not options.report else 0


if __name__ == "__main__":
    sys.exit(main())
