"""docs/first-dialect.md: its blocks run, and its golden case is read as it says."""

import json
import re
import subprocess
import sys
from pathlib import Path

from testkit.golden import CASES
from tools.snippets import python_lines
from toolspeak import Tool
from toolspeak.dialects import JSON, MarkupGrammar, Wrapper, table

TEXT = (Path(__file__).parents[3] / "docs" / "first-dialect.md").read_text(encoding="utf-8")


def test_the_blocks_of_the_page_run() -> None:
    lines = python_lines(TEXT)
    assert sum(line.startswith("assert ") for line in lines) > 8
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_golden_case_of_the_page_is_read_as_it_says() -> None:
    (block,) = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
    case = json.loads(block)
    head, first, *_ = (json.loads(line) for line in (CASES / "samples.jsonl").read_text("utf-8").splitlines())
    assert case.keys() == first.keys()
    tools = [Tool(tool["name"], parameters=tool["parameters"]) for tool in head["tools"]]
    tern = table.row("tern", "", MarkupGrammar((Wrapper(("[[tern]]",), ("[[/tern]]",), (JSON,)),)), rescues=True)
    turn = tern.read(case["text"], tools)
    assert [{"name": call.name, "arguments": json.loads(call.arguments)} for call in turn.calls] == case["calls"]
    assert turn.text.strip() == "Wait."


def test_every_name_that_the_page_tells_to_use_exists() -> None:
    used = set(re.findall(r"`(?:\w+=)?\(?\(?(NamedJson|PYTHON_LIST|PYTHON_CALL|Label|ReasoningMarks|XML)\b", TEXT))
    assert used <= set(dir(table))
    assert len(used) > 4
