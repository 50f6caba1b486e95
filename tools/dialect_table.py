"""Writes docs/dialects.md from the dialects themselves; with `--check`, fails if the page is stale."""

import sys
from importlib import import_module
from pathlib import Path

from toolspeak import dialects

PAGE = Path(__file__).parent.parent / "docs" / "dialects.md"
HEAD = """# Dialects

A dialect is a text form of a tool call. toolspeak reads all of these. *Writes* says whether it can also teach the
dialect to a model: put the tools in a prompt, and write calls and results as the model should see them.

A dialect that is written is a module of its own, `src/toolspeak/dialects/<name>.py`; the others are rows of
`src/toolspeak/dialects/table.py`. To add one, see [your first dialect](first-dialect.md).

Numbers such as D24 are those of the samples in `testkit/golden/samples.jsonl`. `just docs` generates this page from the
dialects.

| dialect | writes | what it looks like |
| --- | --- | --- |
"""
TAIL = """
`keyed` is made for one conversation by its key (`toolspeak.dialects.keyed`): only markers with that key are calls.

From outside, the entry point group `toolspeak.dialects` adds more: each a `Dialect`, or a module with a `DIALECT`. See
[plugins](plugins.md).
"""


def row(name: str) -> str:
    """Return the row of one dialect."""
    dialect = dialects.load(name)
    summary = dialect.summary or (import_module(f"toolspeak.dialects.{name}").__doc__ or "").split("\n", 1)[0]
    writes = "yes" if dialect.writer is not None else ""
    return f"| {name} | {writes} | {summary.replace('|', chr(92) + '|')} |\n"


def page() -> str:
    """Return the whole page."""
    return HEAD + "".join(row(name) for name in dialects.names()) + TAIL


def main() -> None:
    """Write or check."""
    if "--check" not in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        sys.exit(f"{PAGE.name} is stale: run `just docs`")


if __name__ == "__main__":
    main()
