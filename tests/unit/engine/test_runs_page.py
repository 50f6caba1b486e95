"""docs/runs.md: its blocks run (RUN-1, RUN-2)."""

import subprocess
import sys
from pathlib import Path

from tools.snippets import python_lines

PAGE = Path(__file__).parents[3] / "docs" / "runs.md"
LOOP = PAGE.read_text(encoding="utf-8").partition("\n## Durable runs")[0]
"""What needs a database is proven elsewhere."""


def test_the_blocks_of_the_page_run_run1_run2() -> None:
    lines = python_lines(LOOP)
    assert sum(line.startswith("assert ") for line in lines) > 3
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
