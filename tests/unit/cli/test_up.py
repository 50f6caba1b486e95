"""`toolspeak up`: a model server is started, kept, put behind the gateway, and never left behind (RUN-6)."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from testkit.gguf import write_gguf
from testkit.meter import children
from toolspeak.cli import main
from toolspeak.local import program

FAKE = Path(__file__).parent.parent / "local" / "fake_llama.py"
OPENER = build_opener(ProxyHandler({}))
LONG = 30.0
NO_PACKAGE = dict[str, object]().get


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(write_gguf(tmp_path / "tiny-coder.gguf"))


@pytest.fixture
def binary(tmp_path: Path) -> str:
    path = tmp_path / "llama-server"
    path.write_text(f"#!{sys.executable}\n{FAKE.read_text()}")
    path.chmod(0o755)
    return str(path)


def status_of(*args: str) -> object:
    with pytest.raises(SystemExit) as ended:
        main(["up", *args])
    return ended.value.code


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@contextmanager
def upped(*args: str) -> Generator[tuple[subprocess.Popen[str], str], None, None]:
    """Run it, and give its URL."""
    command = [sys.executable, "-m", "toolspeak", "up", *args]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8") as process:
        assert process.stderr is not None
        try:
            assert process.stderr.readline().startswith("tiny-coder needs about 9.44 MB of memory with 32768 tokens")
            assert process.stderr.readline() == "llama-server loads tiny-coder (2 kB)\n"
            line = ""
            while not line.startswith("toolspeak listens on "):
                line = process.stderr.readline()
                assert line, "it has ended"
            yield process, line.split()[-1]
        finally:
            process.kill()


def asked(url: str, path: str = "/v1/chat/completions", says: str = "Who are you?") -> dict[str, Any]:
    body = {"model": "gpt-5.5", "messages": [{"role": "user", "content": says}]}
    data = json.dumps(body).encode() if path.endswith("completions") else None
    with OPENER.open(Request(url + path, data, {"content-type": "application/json"}), timeout=LONG) as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return found


def pid_behind(url: str, says: str = "Who are you?") -> int:
    """Return who answers: the false server says its own process id."""
    return int(asked(url, says=says)["choices"][0]["message"]["content"].split()[-1])


def eventually(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < end, "it has not happened"
        time.sleep(0.02)


def test_the_model_answers_through_the_gateway_under_its_files_name_run6(model: str, binary: str) -> None:
    with upped(model, "--llama-server", binary, "--port", "0") as (process, url):
        assert [each["id"] for each in asked(url, "/v1/models")["data"]] == ["tiny-coder"]
        child = pid_behind(url)
        assert lives(child)
        process.send_signal(signal.SIGTERM)
        assert process.wait(LONG) == 0
        assert process.stderr is not None
        rest = process.stderr.read()
    assert not lives(child)
    assert f"ANTHROPIC_BASE_URL={url}" in rest
    assert "Traceback" not in rest
    assert "ERROR" not in rest


def test_a_server_that_dies_is_started_again_and_the_next_request_works_run6(model: str, binary: str) -> None:
    with upped(model, "--llama-server", binary, "--port", "0") as (process, url):
        first = pid_behind(url)
        os.kill(first, signal.SIGKILL)
        second = pid_behind(url)
        assert second != first
        process.send_signal(signal.SIGINT)
        assert process.wait(LONG) == 0
        assert process.stderr is not None
        assert "the model's server failed after" in process.stderr.read()
    assert not lives(second)


def test_a_request_that_waits_for_its_answer_when_the_server_dies_is_sent_again(model: str, binary: str) -> None:
    with upped(model, "--llama-server", binary, "--port", "0") as (_, url), ThreadPoolExecutor(1) as pool:
        first = pid_behind(url)
        waits = pool.submit(pid_behind, url, "WAIT")
        eventually(Path(f"{model}.waited").exists)
        os.kill(first, signal.SIGKILL)
        assert waits.result(LONG) != first


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_it_loads_ends_both(model: str, binary: str, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "toolspeak", "up", model, "--llama-server", binary, "--port", "0"]
    with subprocess.Popen([*command, "--", "--fault", "never"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "of memory" in process.stderr.readline()
        assert process.stderr.readline() == "llama-server loads tiny-coder (2 kB)\n"
        eventually(lambda: bool(children(process.pid)))
        [child] = children(process.pid)
        process.send_signal(number)
        assert process.wait(LONG) == 130
        assert "Traceback" not in process.stderr.read()
    assert not lives(child)


def test_while_it_loads_again_for_long_clients_are_told_when_to_come(model: str, binary: str) -> None:
    """The second start is never healthy: it is a program that only sleeps."""
    with upped(model, "--llama-server", binary, "--port", "0") as (_, url):
        first = pid_behind(url)
        Path(binary).write_text(f"#!{sys.executable}\nimport time\ntime.sleep(600)\n")
        os.kill(first, signal.SIGKILL)
        began = time.monotonic()
        with pytest.raises(HTTPError) as failed:
            asked(url)
        told = failed.value
        assert (told.code, told.headers["retry-after"], told.headers["x-should-retry"]) == (503, "5", "true")
        assert "is loading again" in json.loads(told.read())["error"]["message"]
        assert time.monotonic() - began < LONG
        told.close()


def test_a_server_that_dies_again_and_again_ends_it_with_its_last_words(model: str, binary: str) -> None:
    with upped(model, "--llama-server", binary, "--port", "0", "--quiet", "--", "--fault", "dies-soon") as (process, _):
        assert process.wait(50) == 2
        assert process.stderr is not None
        lines = process.stderr.read().splitlines()
    assert lines[-2:] == [
        "  build: 1",
        "toolspeak: the model's server failed 5 times soon after its start: it ended with status 4",
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_nothing_is_left_when_it_is_killed_run6(model: str, binary: str) -> None:
    with upped(model, "--llama-server", binary, "--port", "0", "--", "--fault", "deaf") as (process, url):
        child = pid_behind(url)
        process.kill()
        process.wait(LONG)
    eventually(lambda: not lives(child))


def test_a_server_that_does_not_start_is_shown_with_its_last_words(
    model: str, binary: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(model, "--llama-server", binary, "--port", "0", "--", "--fault", "dies") == 2
    assert capsys.readouterr().err.splitlines()[1:] == [
        "llama-server loads tiny-coder (2 kB)",
        "  build: 1",
        "  error: no such tensor\\x1b[31m",
        "toolspeak: the model's server did not start: it ended with status 3",
    ]


def test_a_port_that_is_taken_is_said_before_the_model_is_loaded(
    model: str, binary: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert status_of(model, "--llama-server", binary, "--port", str(port)) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"toolspeak: cannot listen on 127.0.0.1:{port}: Address already in use. Pass another --port")
    assert said.count("\n") == 1


def test_what_cannot_be_run_is_one_line(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(program, "find_spec", NO_PACKAGE)
    (tmp_path / "page.gguf").write_text("<html>")
    for path, said in (
        (model, "nothing here can run a model: install llama.cpp"),
        (str(tmp_path / "none.gguf"), "none.gguf: No such file or directory"),
        (str(tmp_path / "page.gguf"), "it begins with b'<htm', and a GGUF file with b'GGUF'"),
    ):
        assert status_of(path) == 2
        shown = capsys.readouterr().err
        assert said in shown
        assert shown.count("\n") == 1
