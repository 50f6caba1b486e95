"""A dialect and a wire of another package, found by their entry points: no file of toolspeak names them.

`tests/plugin_package` is built to a wheel, which is unpacked on the path of gateways that are processes of their own.
"""

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from testkit.protocols import answering, question
from testkit.scripted_upstream import ScriptedUpstream, listening
from testkit.vendor_answers import Answer
from tests.gateway.scene import Reply
from tests.gateway.served_process import ServedProcess, served_process
from tools.snippets import python_lines

PACKAGE = Path(__file__).parent.parent / "plugin_package"
PAGE = Path(__file__).parent.parent.parent / "docs" / "plugins.md"
LEAK = Answer('Let me look. ((psst {"name": "get_weather", "arguments": {"city": "Oslo"}} psst))')
TOOLS = [{"name": "get_weather", "schema": {"type": "object", "properties": {"city": {"type": "string"}}}}]
ASK: dict[str, Any] = {"model": "m", "lines": [{"user": "How is the weather?"}], "tools": TOOLS}
BUILD = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"

pytestmark = pytest.mark.timeout(180)  # it starts two gateways as processes


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the package as pip would, and unpack its wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-c", BUILD, str(folder)]
    name = subprocess.run(command, cwd=PACKAGE, check=True, capture_output=True, text=True).stdout.split()[-1]
    with zipfile.ZipFile(folder / name) as wheel:
        wheel.extractall(folder / "site")
    return folder / "site"


@pytest.fixture(scope="module")
def upstream() -> Generator[ScriptedUpstream]:
    """Run a server with tools of its own that leaks the calls of its model as text."""
    with listening() as upstream:
        yield upstream


@pytest.fixture(autouse=True)
def _leaks(upstream: ScriptedUpstream) -> None:
    upstream.answers(answering(LEAK))


@pytest.fixture(scope="module")
def gateway(
    path: Path, upstream: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory
) -> Generator[ServedProcess]:
    with served_process(
        tmp_path_factory.mktemp("one"), _config(upstream.url, "openai_chat"), environ=_on(path)
    ) as served:
        yield served


@pytest.fixture(scope="module")
def behind(path: Path, gateway: ServedProcess, tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedProcess]:
    """Run a gateway whose upstream is the other one, on the foreign wire."""
    config = _config(f"http://127.0.0.1:{gateway.port}", "parley")
    with served_process(tmp_path_factory.mktemp("two"), config, environ=_on(path)) as served:
        yield served


def _on(path: Path) -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(path), os.environ.get("PYTHONPATH", ""))))}


def _config(url: str, wire: str) -> str:
    server, place = '[server]\nprobe = "off"\n', f'[upstreams.up]\nurl = "{url}"\nwire = "{wire}"\nsupport = "native"\n'
    return f'{server}\n{place}auth = "none"\n'


def _lines(reply: Reply) -> list[dict[str, Any]]:
    assert reply.status == 200, reply
    return [json.loads(line) for line in reply.body.splitlines() if line]


def _calls(lines: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    return [(line["call"]["name"], json.loads(line["call"]["arguments"])) for line in lines if "call" in line]


OSLO = [("get_weather", {"city": "Oslo"})]


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_that_leaks_in_a_foreign_dialect_is_rescued(gateway: ServedProcess, *, stream: bool) -> None:
    asked = question("openai_chat", stream=stream)
    reply = gateway.ask("POST", asked.path, asked.body)
    assert reply.status == 200, reply
    assert b"psst" not in reply.body
    if not stream:
        (choice,) = reply.json["choices"]
        (call,) = choice["message"]["tool_calls"]
        assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == OSLO[0]
        assert choice["message"]["content"].strip() == "Let me look."
    else:
        assert b'"get_weather"' in reply.body


def test_a_foreign_wire_is_served_on_its_own_route(gateway: ServedProcess, upstream: ScriptedUpstream) -> None:
    reply = gateway.ask("POST", "/parley/talk", ASK)
    assert _calls(reply.json["answer"]) == OSLO
    assert upstream.asked[0].json["tools"][0]["function"]["name"] == "get_weather"
    assert reply.headers["parley-id"] == "req_" + reply.headers["x-toolspeak-trace"]


def test_a_foreign_wire_streams_with_its_own_media_type(gateway: ServedProcess) -> None:
    reply = gateway.ask("POST", "/v1/parley/talk", {**ASK, "stream": True})
    lines = _lines(reply)
    assert _calls(lines) == OSLO
    assert lines[-1] == {"end": "calls"}
    assert reply.headers["content-type"] == "application/parley"


def test_a_foreign_wire_lists_counts_and_refuses_in_its_own_form(gateway: ServedProcess) -> None:
    assert gateway.ask("GET", "/parley/speakers").json == {"speakers": ["m"]}
    assert gateway.ask("GET", "/parley/speakers/m").json == {"speaker": "m"}
    assert gateway.ask("GET", "/parley").json == {"parley": 1}
    assert gateway.ask("POST", "/parley/count", ASK).json["tokens"] > 5
    bad, nothing = gateway.ask("POST", "/parley/talk", {}), gateway.ask("GET", "/parley/nothing")
    assert (bad.status, "no parley" in bad.json["error"]) == (400, True)
    assert (nothing.status, "nothing at" in nothing.json["error"]) == (404, True)


def test_a_path_that_several_wires_have_belongs_to_the_one_that_recognizes_its_client(gateway: ServedProcess) -> None:
    assert gateway.ask("GET", "/v1/models").json["object"] == "list"
    assert gateway.ask("GET", "/v1/models?parley=1").json == {"speakers": ["m"]}


@pytest.mark.parametrize("stream", [False, True])
def test_a_foreign_wire_can_be_that_of_an_upstream(behind: ServedProcess, *, stream: bool) -> None:
    assert [model["id"] for model in behind.ask("GET", "/v1/models").json["data"]] == ["m"]
    asked = question("anthropic", stream=stream)
    reply = behind.ask("POST", asked.path, asked.body)
    assert reply.status == 200, reply
    assert b'"get_weather"' in reply.body
    assert b"Oslo" in reply.body
    assert b"psst" not in reply.body


def test_what_the_page_shows_runs() -> None:
    script = "\n".join(python_lines(PAGE.read_text(encoding="utf-8")))
    subprocess.run([sys.executable, "-c", script], check=True)
