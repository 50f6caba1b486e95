"""The proxy of LiteLLM, with the config.yaml of the page; the openai SDK is its client."""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import openai
import rows
from rows import MODEL, OPENAI_TOOL, QUESTION, raised

sys.path.insert(0, str(rows.ROOT))
from testkit.scripted_upstream import ScriptedUpstream, listening, refuse
from tests.hosts.model import call, plain_server

PAGE = rows.ROOT / "docs" / "litellm.md"
HOST = "LiteLLM proxy"
PACKAGES = ("litellm", "openai")
FORCED = "forced"
START_S = 120
QUIET = {"LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true", "LITELLM_LOG": "ERROR"}


def settings(upstream: str) -> str:
    """Return the config.yaml of the page, and its model once more under another name, with the headers of the page."""
    written = rows.at_address(rows.lines(HOST, PAGE, "yaml"), upstream)
    before, models, after = re.split(r"^(  - model_name: .*?\n)$", written, maxsplit=1, flags=re.DOTALL | re.MULTILINE)
    second = models.replace(f"model_name: {MODEL}\n", f"model_name: {FORCED}\n")
    assert second != models
    return f"{before}{models}{second}{rows.lines('Choose the model server', PAGE, 'yaml')}{after}"


@contextmanager
def proxy(upstream: str) -> Iterator[str]:
    """Run the real proxy as a process of its own; yield its base URL."""
    with socket.socket() as free, TemporaryDirectory() as folder:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        config = Path(folder) / "config.yaml"
        config.write_text(settings(upstream), encoding="utf-8")
        program = Path(sys.executable).with_name("litellm")
        command = [str(program), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
        log = Path(folder) / "log"
        with log.open("wb") as said:
            process = subprocess.Popen(command, cwd=folder, env=os.environ | QUIET, stdout=said, stderr=said)
        try:
            wait_for(f"http://127.0.0.1:{port}/health/liveliness", process, log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            process.wait(30)


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the proxy answers."""
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    sys.exit(f"the proxy does not answer: {log.read_text()[-2000:]}")


def whole(client, messages):
    return client.chat.completions.create(model=MODEL, messages=messages, tools=[OPENAI_TOOL]).choices[0].message


def streamed(client, messages):
    with client.chat.completions.stream(model=MODEL, messages=messages, tools=[OPENAI_TOOL]) as stream:
        for _ in stream:
            pass
        return stream.get_final_completion().choices[0].message


def rounds(ask):
    """Return two rounds with the tool."""

    def work(host, weather):
        messages = [{"role": "user", "content": QUESTION}]
        for _ in range(2):
            message = ask(host.client, messages)
            messages.append(json.loads(message.model_dump_json(include={"role", "content", "tool_calls"})))
            for each in message.tool_calls or ():
                messages.append({"role": "tool", "tool_call_id": each.id, "content": weather(each.function.arguments)})
        return message.content

    return work


def refused(ask, client, status, words):
    """Return a check: the SDK gets this status, and words that say what happened."""

    def work():
        error = raised(lambda: ask(client, [{"role": "user", "content": QUESTION}]))
        assert error.status_code == status, error
        assert words in str(error), error

    return work


def main():
    with listening((MODEL,)) as upstream, proxy(upstream.url) as base:
        client = openai.OpenAI(base_url=base, api_key="sk-of-the-proxy", max_retries=0)
        upstream.answers(plain_server())
        modes = {"whole": rounds(whole), "streamed": rounds(streamed)}
        rows.run(HOST, PACKAGES, modes, lambda _: SimpleNamespace(client=client))
        rows.check(HOST, PACKAGES, {"settings of one model": lambda: check_headers(upstream, client)})
        faults(upstream, client)


def check_headers(upstream: ScriptedUpstream, client: openai.OpenAI) -> None:
    """Check that the headers of a model arrive: the model is taught the dialect that they name."""
    for model, taught in ((MODEL, "```tool_call"), (FORCED, "<tool_call>")):
        upstream.answers(plain_server())
        asked = [{"role": "user", "content": QUESTION}]
        client.chat.completions.create(model=model, messages=asked, tools=[OPENAI_TOOL])
        assert taught in json.dumps(upstream.wait_for(1)[-1].json["messages"]), model


def faults(upstream: ScriptedUpstream, client: openai.OpenAI) -> None:
    for name, script, status, words in (
        ("upstream answers 429", refuse(429, {"error": {"message": "slow down"}}), 429, "slow down"),
        ("upstream answers 500", refuse(500, {"error": {"message": "no memory"}}), 500, "no memory"),
        ("no right call", plain_server(lambda _: call("get_weather", town="Oslo")), 502, "cannot be used"),
    ):
        for mode, ask in (("whole", whole), ("streamed", streamed)):
            upstream.answers(script)
            rows.check(HOST, PACKAGES, {f"{name}, {mode}": refused(ask, client, status, words)})


main()
