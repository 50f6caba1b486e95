"""Writes the tables of docs/metrics.md from those of the code; with `--check`, only checks whether it is up to date.

Each table is between `<!-- NAME -->` and `<!-- end -->`; the text around it is written by hand.
"""

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from toolspeak.gateway.metric_table import LABELS, METRICS
from toolspeak.gateway.span_names import SPAN_ATTRIBUTES

PAGE = Path(__file__).parent.parent / "docs" / "metrics.md"
TABLE = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(*rows: Iterable[str]) -> str:
    """Write a table; the first row is its head."""
    head, *others = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *others))


def metrics() -> str:
    """Write the metrics."""
    rows = [(f"`{one.name}`", one.type.value, _codes(one.labels), one.help) for one in METRICS]
    return table(("name", "type", "labels", "meaning"), *rows)


def labels() -> str:
    """Write the labels."""
    return table(("label", "values"), *((f"`{name}`", values) for name, values in LABELS.items()))


def spans() -> str:
    """Write the attributes of spans."""
    rows = [(f"`{one.name}`", ", ".join(one.spans), one.help, _codes((one.old,))) for one in SPAN_ATTRIBUTES]
    return table(("attribute", "of", "value", "old name"), *rows)


def _codes(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words if word)


TABLES = {"metrics": metrics, "labels": labels, "spans": spans}


def fresh(page: str) -> str:
    """Return the page with its tables as they are now."""
    return TABLE.sub(lambda found: found[1] + TABLES[found[2]]() + found[3], page)


def main() -> None:
    """Write or check."""
    page = PAGE.read_text(encoding="utf-8")
    if "--check" not in sys.argv:
        PAGE.write_text(fresh(page), encoding="utf-8")
    elif page != fresh(page):
        sys.exit(f"{PAGE.name} is stale: run `just docs`")


if __name__ == "__main__":
    main()
