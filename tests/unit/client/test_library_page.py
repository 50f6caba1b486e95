"""The blocks of docs/library.md run as they stand there, against a model server without tool calling."""

import json
import subprocess
import sys
from pathlib import Path

from testkit.loopback import Got, Out
from testkit.vendor_answers import Answer
from tests.unit.client.scene import CALL, COLD, served
from tests.unit.runtime.scene import say_stream, whole_of
from tools.snippets import python_lines

PAGE = Path(__file__).parents[3] / "docs" / "library.md"
PLACE = "//127.0.0.1:8080"


async def model(got: Got, out: Out) -> None:
    """Call the tool, until its result is there."""
    body = json.loads(got.body)
    said = json.dumps(body["messages"])
    answer = Answer(text=COLD if "degrees" in said else CALL)
    if body["model"] == "nobody-has-it":
        await out.whole(404, b'{"error": {"message": "the model does not exist"}}')
    elif body.get("stream"):
        await say_stream(out, "openai_chat", answer)
    else:
        await out.whole(200, whole_of("openai_chat", answer))


def test_the_blocks_of_the_page_run() -> None:
    lines = python_lines(PAGE.read_text(encoding="utf-8"))
    assert sum(line.startswith("assert ") for line in lines) > 10
    with served(*[model] * 20) as server:
        script = "\n".join(lines).replace(PLACE, f"//127.0.0.1:{server.port}")
        command = [sys.executable, "-W", "error", "-c", script]
        done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert COLD in done.stdout
    assert any(got.body and b'"tools"' in got.body for got in server.got)
