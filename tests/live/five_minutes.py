"""`just five-minutes`: docs/first-call.md as it is written, in an empty environment that gets only the wheel, timed.

    python -m tests.live.five_minutes WHEEL

First the way without a server: a real model of 0.5 GB, run by `toolspeak up`, must make the call. Then `serve`
must find each of the four servers of the page on its usual port. Those are played by a script: the page's promise is
that toolspeak finds them, and a model that calls is the first part's proof.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from typing_extensions import override

from testkit.llama_models import path_of
from testkit.report import close
from tests.live.gateway import LISTENS, STOP_S
from tests.quickstart.model import CALL, Model
from toolspeak.runtime.tether import tethered

PAGE = Path(__file__).parents[2] / "docs" / "first-call.md"
MODEL = "qwen2.5-coder-0.5b"
PORT = 4141
BASH = shutil.which("bash") or "/bin/bash"
READY_S = 180.0
ASK_S = 240.0
WHOLE_S = 300.0
"""What the title of the page says."""


class Vllm(Model):
    """The script of the quick start under another name."""

    server_version = "uvicorn"
    owner = "vllm"

    @override
    def do_GET(self) -> None:
        self._whole({"object": "list", "data": [{"id": "small-model", "object": "model", "owned_by": self.owner}]})


class LmStudio(Vllm):
    owner = "organization_owner"


class Ollama(Model):
    """The same on Ollama's protocol: it has no tools, and its model writes a call as text."""

    server_version = "ollama"

    @override
    def do_GET(self) -> None:
        answers: dict[str, object] = {
            "/api/version": {"version": "0.13.0"},
            "/api/tags": {"models": [{"name": "small-model", "model": "small-model"}]},
        }
        found = answers.get(self.path)
        self._whole(found or {"error": "not found"}, 200 if found else 404)

    @override
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if request.get("tools"):
            self._whole({"error": "small-model does not support tools"}, 400)
        elif self.path == "/api/chat":
            message = {"role": "assistant", "content": CALL}
            self._whole(
                {"model": "small-model", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": True}
            )
        else:
            self._whole({"error": "not found"}, 404)


SERVERS = {"Ollama": (Ollama, 11434), "llama.cpp": (Model, 8080), "vLLM": (Vllm, 8000), "LM Studio": (LmStudio, 1234)}


def shell_lines(heading: str) -> list[str]:
    """Return the first shell block below a heading of the page, line by line; continued lines are joined."""
    text = PAGE.read_text(encoding="utf-8").partition(f"# {heading}\n")[2]
    found = re.search(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert found, heading
    return re.split(r"\n(?! )", found[1].rstrip().replace("\\\n", "\\\n "))


def environment(folder: Path, wheel: Path) -> dict[str, str]:
    """Return an environment in which pip installs the wheel, and no setting of this machine counts."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    links = folder / "wheels"  # not a constraint with an address: pip does not apply one to a name with an extra
    links.mkdir()
    (links / wheel.name).symlink_to(wheel.resolve())
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TOOLSPEAK_", "PYTHON", "XDG_"))}
    path = f"{folder / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**kept, "PATH": path, "HOME": str(folder), "PIP_FIND_LINKS": str(links)}


def run(command: str, folder: Path, environ: Mapping[str, str], limit_s: float = READY_S) -> str:
    """Run a command of the page to its end; return its output."""
    done = subprocess.run(
        [BASH, "-c", command],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        timeout=limit_s,
        check=True,
    )
    return done.stdout


@contextmanager
def serving(command: str, folder: Path, environ: Mapping[str, str]) -> Generator[str]:
    """Run a command of the page that goes on, until the block ends; give what it printed when it was ready."""
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            tethered([BASH, "-c", f"exec {command}"]),
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    try:
        until = time.monotonic() + READY_S
        while not LISTENS.search(log.read_text()):
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"{command} is not ready; it said: {log.read_text()[-1500:]}")
            time.sleep(0.05)
        time.sleep(0.1)  # the lines after the first
        yield log.read_text()
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def is_call(answer: str) -> bool:
    """Tell whether an answer, headers and body, has the call that the page promises."""
    head, _, body = answer.replace("\r\n", "\n").partition("\n\n")
    print(head, body, sep="\n", flush=True)
    choice = json.loads(body)["choices"][0]
    [call] = choice["message"]["tool_calls"]
    arguments = json.loads(call["function"]["arguments"])
    named = call["function"]["name"] == "get_weather" and set(arguments) == {"city"} and "Oslo" in arguments["city"]
    return named and choice["finish_reason"] == "tool_calls" and "x-toolspeak-plan: " in head


def ask(folder: Path, environ: Mapping[str, str]) -> bool:
    [command] = shell_lines("3. Ask for a call")
    return is_call(run(command, folder, environ, ASK_S))


def with_a_real_model(folder: Path, environ: Mapping[str, str]) -> tuple[bool, dict[str, float]]:
    """Follow the page without a server; return whether the model called, and the seconds of each step."""
    model, install, up = path_of(MODEL), *shell_lines("No server yet")
    (folder / f"{MODEL}.gguf").symlink_to(model)
    marks = [time.monotonic()]
    run(install, folder, environ)
    marks.append(time.monotonic())
    with serving(up, folder, environ):
        marks.append(time.monotonic())
        called = ask(folder, environ)
        marks.append(time.monotonic())
    steps = zip(("install", "start", "call"), marks, marks[1:], strict=False)
    return called, {name: round(end - start, 1) for name, start, end in steps}


def is_found(name: str, folder: Path, environ: Mapping[str, str]) -> bool:
    """Tell whether `toolspeak serve`, as the page has it, finds a server and brings its call."""
    kind, port = SERVERS[name]
    _, serve = shell_lines("2. Start toolspeak")
    with ThreadingHTTPServer(("127.0.0.1", port), kind) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            with serving(serve, folder, environ) as said:
                return f"http://127.0.0.1:{port}" in said and ask(folder, environ)
        finally:
            server.shutdown()
            thread.join()


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def main(wheel: Path) -> None:
    """Try all of it."""
    if taken := [port for port in (PORT, *(port for _, port in SERVERS.values())) if not is_free(port)]:
        sys.exit(f"the page uses these ports, and something listens there: {taken}. Stop it, and run this again.")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        environ = environment(folder, wheel)
        called, seconds = with_a_real_model(folder, environ)
        found = {name: is_found(name, folder, environ) for name in SERVERS}
    whole = round(sum(seconds.values()), 1)
    ok = called and all(found.values()) and whole < WHOLE_S
    close("five-minutes", ok=ok, model=MODEL, called=called, seconds=seconds, whole_s=whole, servers=found)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
