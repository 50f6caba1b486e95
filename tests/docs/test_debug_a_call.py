"""The commands and the code of docs/debug-a-call.md do what the page shows."""

import os
import subprocess
import sys
from pathlib import Path

from tools.snippets import commands, python_lines

PAGE = (Path(__file__).parents[2] / "docs" / "debug-a-call.md").read_text(encoding="utf-8")


def test_the_commands_print_what_the_page_shows(tmp_path: Path) -> None:
    """One shell runs them all, in order, in an empty folder."""
    found = commands(PAGE)
    assert sum("explain" in command.text for command in found) >= 6
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}
    for command in found:
        done = subprocess.run(
            ["bash", "-c", command.text],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.stderr == "", command.text
        assert done.stdout == command.output, command.text


def test_the_python_of_the_page_runs() -> None:
    lines = python_lines(PAGE)
    assert sum(line.startswith("assert ") for line in lines) >= 3
    script = [sys.executable, "-W", "error", "-c", "\n".join(lines)]
    done = subprocess.run(script, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
