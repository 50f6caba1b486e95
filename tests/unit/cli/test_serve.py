"""`toolspeak serve`: it says where it listens, ends in order, and says in one line why it cannot start (SAFE-6)."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from testkit.scripted_model import Scripted, text
from toolspeak.cli import main
from toolspeak.config import local

NOBODY = "http://127.0.0.1:9/v1"
KEY = "0123456789abcdef0123456789abcdef"
OPENER = build_opener(ProxyHandler({}))
LISTENS = "toolspeak listens on "


def status_of(*args: str) -> object:
    with pytest.raises(SystemExit) as ended:
        main(["serve", *args])
    return ended.value.code


@contextmanager
def served(*args: str) -> Generator[tuple[subprocess.Popen[str], str], None, None]:
    """Run it, and give its URL."""
    command = [sys.executable, "-m", "toolspeak", "serve", *args]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8") as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            assert line.startswith(LISTENS), line
            yield process, line.removeprefix(LISTENS).strip()
        finally:
            process.kill()


def asked(url: str, body: dict[str, Any] | None = None, key: str = "") -> dict[str, Any]:
    headers = {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}
    data = json.dumps(body).encode() if body else None
    with OPENER.open(Request(url, data, headers), timeout=30) as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_order(upstream: Scripted, number: signal.Signals) -> None:
    with served("--upstream", upstream.url, "--port", "0") as (process, url):
        assert [model["id"] for model in asked(f"{url}/v1/models")["data"]] == ["tiny", "large"]
        process.send_signal(number)
        assert process.wait(timeout=30) == 0
        assert process.stderr is not None
        rest = process.stderr.read()
    assert "Traceback" not in rest
    assert "ERROR" not in rest


def test_it_says_how_to_reach_it_and_port_0_takes_a_free_one() -> None:
    with served("--upstream", NOBODY, "--port", "0") as (process, url):
        assert url.startswith("http://127.0.0.1:")
        assert int(url.rpartition(":")[2]) > 0
        assert process.stderr is not None
        lines = [process.stderr.readline().split() for _ in range(6)]
    assert lines == [
        ["upstream", "127.0.0.1:9", NOBODY, "(openai_chat)"],
        ["OpenAI", f"OPENAI_BASE_URL={url}/v1"],
        ["Anthropic", f"ANTHROPIC_BASE_URL={url}"],
        ["Gemini", f"GOOGLE_GEMINI_BASE_URL={url}"],
        ["Ollama", f"OLLAMA_HOST={url}"],
        ["dashboard", f"{url}/ui"],
    ]


def test_quiet_says_only_where_it_listens(upstream: Scripted) -> None:
    with served("--upstream", upstream.url, "--port", "0", "--quiet") as (process, url):
        asked(f"{url}/v1/models")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_options_reach_the_model(upstream: Scripted) -> None:
    """The model, the mode, the dialect and the key of the command line are those of the request."""
    upstream.says(text('```tool_call\n{"name": "now", "arguments": {}}\n```'))
    args = ("--model", "large", "--mode", "force", "--dialect", "fenced", "--key", KEY)
    tools = [{"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}]
    body = {"model": "gpt-5.5", "messages": [{"role": "user", "content": "What time is it?"}], "tools": tools}
    with served("--upstream", upstream.url, "--port", "0", *args) as (_, url):
        found = asked(f"{url}/v1/chat/completions", body, KEY)
    assert found["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "now"
    assert upstream.bodies[0]["model"] == "large"
    assert "tools" not in upstream.bodies[0]


def test_the_file_says_the_rest(upstream: Scripted, tmp_path: Path) -> None:
    file = tmp_path / "test.toml"
    file.write_text(f'[server]\nport = 0\n[upstreams.box]\nurl = "{upstream.url}"\n[models.fast]\nmodel = "large"\n')
    with served("--config", str(file)) as (_, url):
        assert [model["id"] for model in asked(f"{url}/v1/models")["data"]] == ["fast", "tiny", "large"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])  # noqa: S104 - it is refused
def test_a_public_address_without_a_key_is_refused(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("--upstream", NOBODY, "--host", host, "--port", "0") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"toolspeak: server.host: {host!r} can be reached from other machines")
    assert "--key KEY" in captured.err
    assert captured.err.count("\n") == 1


def test_a_public_address_with_a_key_is_served() -> None:
    with served("--upstream", NOBODY, "--host", "0.0.0.0", "--port", "0", "--key", KEY) as (process, url):  # noqa: S104
        assert process.stderr is not None
        shown = [process.stderr.readline() for _ in range(5)]
        assert not any("0.0.0.0" in line for line in shown), "it is no address that a client can use"  # noqa: S104 - it is only searched for
        port = url.rpartition(":")[2]
        with OPENER.open(f"http://127.0.0.1:{port}/health", timeout=30) as answer:
            assert answer.status == 200


def test_an_address_that_is_taken_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert status_of("--upstream", NOBODY, "--port", str(port)) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"toolspeak: cannot listen on 127.0.0.1:{port}: Address already in use. Pass another --port")
    assert said.count("\n") == 1


def test_a_host_that_does_not_exist_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("--upstream", NOBODY, "--host", "nowhere.invalid", "--key", KEY) == 2
    said = capsys.readouterr().err
    assert said.startswith("toolspeak: cannot listen on nowhere.invalid:4141: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--port", "99999"), "--port: 99999 is not an integer from 0 to 65535"),
        (("--mode", "forced"), "--mode: 'forced' is not one of off, fallback, force, auto; did you mean 'force'?"),
        (("--wire", "opnai_chat"), "--wire: 'opnai_chat' is not one of "),
        (("--dialect", "klingon"), "--dialect: 'klingon' is not one of any, "),
        (("--preset", "grok"), "--preset: 'grok' is not one of "),
        (("--host", "no host"), "--host: 'no host' is not an address"),
        (("--upstream", "ollama"), "--upstream: 'ollama' is not a URL but a preset: pass --preset ollama"),
        (("--model", ""), "--model: is empty"),
    ],
)
def test_a_wrong_option_is_named(args: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("--upstream", NOBODY, *args) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"toolspeak: {said}")
    assert captured.err.count("\n") == 1


def test_a_port_must_be_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("--port", "http") == 2
    first, hint = capsys.readouterr().err.splitlines()
    assert first == "toolspeak: Invalid value for '--port': 'http' is not a valid integer."
    assert hint == "Try 'toolspeak serve --help'."


def test_a_file_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("--config", str(tmp_path / "none.toml")) == 2
    said = capsys.readouterr().err
    assert said.startswith("toolspeak: ")
    assert "none.toml" in said
    assert said.count("\n") == 1


def test_nothing_found_says_where_it_looked_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(local, "local_places", Mock(return_value=["http://127.0.0.1:9"]))
    assert status_of() == 2
    said = capsys.readouterr().err
    assert said.startswith("toolspeak: no upstream is configured, and no model server answers at http://127.0.0.1:9: ")
    assert "--upstream URL or --preset NAME" in said
    assert "toolspeak up MODEL.gguf" in said
    assert said.count("\n") == 1


def test_a_key_on_the_way_is_never_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("--upstream", f"http://user:{KEY}@127.0.0.1:9/v1") == 2
    assert KEY not in capsys.readouterr().err
