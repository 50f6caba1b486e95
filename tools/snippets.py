"""Print the Python blocks of a Markdown file as one script, each on its own lines so that tracebacks fit."""

import sys
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


if __name__ == "__main__":
    print("\n".join(python_lines(Path(sys.argv[1]).read_text(encoding="utf-8"))))
