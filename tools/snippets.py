"""Reads the blocks of a Markdown file that tests execute: Python, and terminal sessions.

python tools/snippets.py PAGE     print its Python blocks as one script, each on its own lines so that tracebacks fit
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path


def python_lines(markdown: str) -> list[str]:
    """Keep the lines inside ```python fences and empty all others."""
    lines: list[str] = []
    inside = False
    for line in markdown.splitlines():
        if line.startswith("```"):
            inside = line == "```python"
            lines.append("")
        else:
            lines.append(line if inside else "")
    return lines


@dataclass(frozen=True)
class Command:
    """A command of a ```console block, with the output that the page shows."""

    text: str
    output: str


def commands(markdown: str) -> list[Command]:
    """Return the commands of all ```console blocks: lines after `$ `, a here-document with its lines up to `END`."""
    found: list[Command] = []
    for block in re.findall(r"^```console\n(.*?)^```$", markdown, re.DOTALL | re.MULTILINE):
        for piece in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            text, _, output = piece.partition("\n")
            if "<<'END'" in text:
                inside, _, output = output.partition("\nEND\n")
                text = f"{text}\n{inside}\nEND"
            found.append(Command(text, output))
    return found


if __name__ == "__main__":
    print("\n".join(python_lines(Path(sys.argv[1]).read_text(encoding="utf-8"))))
