"""docs/facts.md: its tables are those of the code, its blocks run and its rows are accepted."""

import re
import subprocess
import sys

from tools.facts_page import PAGE, fresh
from tools.snippets import python_lines
from toolspeak.config.file import parse_config

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_tables_are_fresh_cap1() -> None:
    assert fresh(TEXT) == TEXT
    assert "| hermes |" in TEXT
    assert fresh(TEXT.replace("| hermes |", "| hermit |")) == TEXT


def test_the_blocks_of_the_page_run_cap2() -> None:
    lines = python_lines(TEXT)
    assert sum(line.startswith("assert ") for line in lines) > 3
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_rows_of_the_page_are_accepted_cap1() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    assert len(parse_config(block, "t.toml", {}).capabilities.rows) == 3
