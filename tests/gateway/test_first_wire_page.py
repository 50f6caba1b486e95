"""docs/first-wire.md: its blocks run, and its module is served once it is installed as the page says."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from testkit.protocols import answering
from testkit.scripted_upstream import listening
from testkit.vendor_answers import Answer
from tests.gateway.served_process import served_process
from tools.snippets import python_lines

PAGE = (Path(__file__).parents[2] / "docs" / "first-wire.md").read_text(encoding="utf-8")
MODULE = "\n".join(python_lines(PAGE))
TEXT = 'Let me look. <tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'
ASKED: dict[str, Any] = {
    "model": "m",
    "history": [{"from": "user", "text": "How is the weather in Oslo?"}],
    "tools": [{"name": "get_weather", "schema": {"type": "object"}}],
}
CALL = {"call": {"tool": "get_weather", "input": {"city": "Oslo"}}}


def test_the_blocks_of_the_page_run() -> None:
    assert sum(line.lstrip().startswith("assert ") for line in MODULE.splitlines()) >= 10
    script = [sys.executable, "-W", "error", "-c", MODULE]
    done = subprocess.run(script, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """Install the module with the entry point of the page's `pyproject.toml`, and return the environment."""
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    project = tomllib.loads(block)["project"]
    site = tmp_path / "site"
    info = site / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (site / f"{project['name']}.py").write_text(MODULE, encoding="utf-8")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = project["entry-points"]["toolspeak.wires"]
    lines = "".join(f"{name} = {target}\n" for name, target in points.items())
    (info / "entry_points.txt").write_text(f"[toolspeak.wires]\n{lines}")
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH", ""))))}


@pytest.mark.timeout(120)
def test_the_wire_of_the_page_is_served_streamed_and_whole(installed: dict[str, str], tmp_path: Path) -> None:
    with listening() as upstream:
        upstream.answers(answering(Answer(TEXT)))
        config = f'[server]\nprobe = "off"\n\n[upstreams.up]\nurl = "{upstream.url}"\nwire = "openai_chat"\n'
        with served_process(tmp_path, f'{config}auth = "none"\n', environ=installed) as gateway:
            whole = gateway.ask("POST", "/courier/ask", ASKED)
            upstream.answers(answering(Answer(TEXT)))
            streamed = gateway.ask("POST", "/courier/ask", {**ASKED, "stream": True})
            wrong = gateway.ask("POST", "/courier/ask", {})
    lines = [json.loads(line) for line in streamed.body.splitlines() if line]
    assert streamed.headers["content-type"] == "application/x-ndjson"
    for answer in (json.loads(whole.body), lines):
        assert [_without_id(line) for line in answer if "call" in line] == [CALL]
        assert answer[-1] == {"done": "calls"}
    assert (wrong.status, "Courier request" in wrong.json["error"]) == (400, True)


def _without_id(line: dict[str, Any]) -> dict[str, Any]:
    return {"call": {key: value for key, value in line["call"].items() if key != "id"}}
