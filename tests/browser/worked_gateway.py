"""A gateway with a run that waits for approval, and a model that answers the playground."""

import json
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from testkit.scripted_upstream import SSE, Asked, listening
from testkit.vendor_answers import STREAMS, Answer
from tests.gateway.scene import config_of, serving, towards
from toolspeak.config.shape import Durable, Offer

TASK = "Write a haiku about tools into haiku.txt."
HAIKU = "Small tools in the dark,\nthe model reaches for them:\nan open bracket.\n"
LOOK = Answer("I look at what is there first.", calls=(("call_1", "list_files", {}),))
WRITE = Answer(
    "The folder is empty. I write the file.", calls=(("call_2", "write_file", {"path": "haiku.txt", "content": HAIKU}),)
)
TAGGED = 'I look it up.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo",}}\n</tool_call>'
FENCED = '```tool_call\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```'


async def _script(asked: Asked) -> None:
    sent = json.dumps(asked.json["messages"])
    if "list_files" in json.dumps(asked.json.get("tools", [])):
        answer = WRITE if "tool_call_id" in sent else LOOK
    else:
        answer = Answer(FENCED if "```tool_call" in sent else TAGGED)
    asked.head(200, SSE)
    await asked.chunk(STREAMS["openai_chat"](answer).encode())
    await asked.end()


@contextmanager
def worked_gateway() -> Generator[tuple[str, str]]:
    """Run the gateway; yield its address, and the id of the run."""
    with tempfile.TemporaryDirectory() as folder, listening(("qwen3-4b",)) as upstream:
        upstream.answers(_script)
        runs, offer = Durable(folder=Path(folder)), Offer(enabled=True, tools=("files",))
        with serving(config_of(towards(upstream), runs=runs, offer=offer)) as served:
            run: str = served.post("/v1/runs", {"task": TASK, "approval": "ask"}).json["id"]
            yield f"http://127.0.0.1:{served.port}", run
