"""The blocks of docs/tools.md run as they stand there."""

import subprocess
import sys
from pathlib import Path

from tools.snippets import python_lines

PAGE = Path(__file__).parents[4] / "docs" / "tools.md"


def test_the_blocks_of_the_page_run() -> None:
    lines = python_lines(PAGE.read_text(encoding="utf-8"))
    assert sum(line.startswith("assert ") for line in lines) >= 8
    command = [sys.executable, "-W", "error", "-c", "\n".join(lines)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stderr) == (0, "")
