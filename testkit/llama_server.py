"""llama.cpp's own HTTP server with a real model, as a child process on loopback.

    with LlamaServer("qwen2.5-coder-0.5b") as server:
        server.url          http://127.0.0.1:PORT; the OpenAI wire is below /v1

    python -m testkit.llama_server [NAME] [--port 8080]       until it is interrupted

It comes from a wheel, in its own virtual environment in the cache folder, and ends with the process that started it. It
has one slot, unless more are requested: a second request waits for the first. `program`, or `TOOLSPEAK_LLAMA_SERVER`,
names a `llama-server` to run instead: a server compiled for this machine (llama_build.py) reads prompts faster.
"""

import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from testkit.llama_models import DEFAULT, MODELS, cache_folder, path_of

PIN = "xllamacpp==2026.10.11549"
BINARY = "TOOLSPEAK_LLAMA_SERVER"
START_S = 120
STOP_S = 10
LOOK_S = 0.3
IDLE, WAITS_FOR_DISK = 3, 4
"""The places in the first line of /proc/stat."""
CONTEXT_TOKENS = 32_768
"""The context that the models were trained with; agents send long prompts."""

CHILD = """
import sys, xllamacpp
path, alias, port, context, slots, threads, remembers = sys.argv[1:]
params = xllamacpp.CommonParams()
params.model.path, params.model_alias = path, {alias}
params.hostnames, params.port = ["127.0.0.1"], int(port)
params.n_ctx, params.n_parallel, params.use_jinja = int(context) * int(slots), int(slots), True
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(threads)
params.cache_prompt = remembers == "True"
params.sampling.temp, params.sampling.seed = 0, 1  # for agents, which leave it to the server
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()  # it ends when the parent does
"""
RUN = """url=$1; shift; "$@" >&2 & echo "$url"; cat >/dev/null; kill $!; wait $!"""
"""It ends when the parent ends, as the other does."""


class LlamaServer:
    """A model served over HTTP, for the duration of a `with` block."""

    def __init__(  # noqa: PLR0913 # options of the server
        self,
        model: str = DEFAULT,
        *,
        port: int = 0,
        slots: int = 1,
        context: int = CONTEXT_TOKENS,
        remembers: bool = True,
        program: Path | None = None,
        log: Path | None = None,
    ) -> None:
        """Take any free port unless one is named; each slot has a context of this many tokens.

        A server that remembers the last prompt is quick with a longer one, but its answers are not reproducible: the
        sums are then computed in other parts, and near ties may change.
        """
        self.model = model
        self._port, self._slots, self._context, self._remembers = port, slots, context, remembers
        self._log = log or cache_folder() / f"{model}.log"
        self._program = os.environ.get(BINARY) or program
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    def __enter__(self) -> Self:
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                self._binary(str(self._program)) if self._program else self._wheel(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                process_group=0,  # Ctrl-C must reach only this process, which then ends the server
            )
        try:
            self.url = self._address(self._process)
            self._wait()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def get(self, path: str) -> tuple[int, Any]:
        """Request a page of the server itself."""
        split = urlsplit(self.url)
        connection = http.client.HTTPConnection(split.hostname or "", split.port, timeout=START_S)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"null")
        finally:
            connection.close()

    def cpu_seconds(self) -> float:
        """Return the CPU time that the server has used so far (Linux)."""
        group = str(self._process.pid if self._process else 0)
        ticks = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue  # the process has just ended
            if fields[2] == group:
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def _wheel(self) -> list[str]:
        counts = (self._port, self._context, self._slots, free_cores(), self._remembers)
        return [python(), "-c", CHILD, str(path_of(self.model)), self.model, *map(str, counts)]

    def _binary(self, program: str) -> list[str]:
        port = str(self._port or free_port())
        options = {
            "--model": str(path_of(self.model)),
            "--alias": self.model,
            "--host": "127.0.0.1",
            "--port": port,
            "--ctx-size": str(self._context * self._slots),
            "--parallel": str(self._slots),
            "--threads": str(free_cores()),
            "--temp": "0",
            "--seed": "1",
        }
        flags = ["--jinja"] if self._remembers else ["--jinja", "--no-cache-prompt"]
        words = [word for option in options.items() for word in option]
        return ["sh", "-c", RUN, "sh", f"http://127.0.0.1:{port}", program, *words, *flags]

    def _address(self, process: subprocess.Popen[str]) -> str:
        line = process.stdout.readline().strip() if process.stdout else ""
        if not line:
            raise RuntimeError(f"the server did not start; it said: {self._log.read_text()[-1000:]}")
        return line

    def _wait(self) -> None:
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            try:
                if self.get("/health")[0] == http.client.OK:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise RuntimeError(f"the server was not ready after {START_S} s; see {self._log}")

    def _stop(self) -> None:
        if self._process is None:
            return
        try:
            self._process.communicate(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        self._process = None


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def free_cores() -> int:
    """Return the number of threads to use: a thread that waits for its core makes all others wait at every step.

    The current use counts, not the load average, which includes a finished build for minutes.
    """
    before = _processor_ticks()
    time.sleep(LOOK_S)
    total, idle = (now - then for now, then in zip(_processor_ticks(), before, strict=True))
    return max(1, round((os.cpu_count() or 1) * (idle / total if total else 1)))


def _processor_ticks() -> tuple[int, int]:
    """Return how long all processors have run, and how much of it they were idle; nothing where there is no /proc."""
    try:
        first = Path("/proc/stat").read_text().partition("\n")[0]
    except OSError:
        return 0, 0
    ticks = [int(field) for field in first.split()[1:9]]  # the guest times, which follow, are already included in these
    return sum(ticks), ticks[IDLE] + ticks[WAITS_FOR_DISK]


def python() -> str:
    """Return the Python that has the server, made if it is not there."""
    folder = cache_folder() / PIN.replace("==", "-")
    found = folder / "bin" / "python"
    done = folder / "complete"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        install = [str(found), "-m", "pip", "install", "--quiet", "--only-binary=:all:", PIN]
        told = subprocess.run(install, check=False, capture_output=True, text=True)
        if told.returncode:
            raise SystemExit(f"{PIN} could not be installed: {told.stderr.strip()[-500:]}")
        done.touch()
    return str(found)


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default=DEFAULT, choices=MODELS)
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--program", type=Path, help="a llama-server to run instead of the one from the wheel")
    options = parser.parse_args()
    with LlamaServer(options.model, port=options.port, program=options.program) as server:
        print(f"{server.model} listens on {server.url}", flush=True)
        try:
            time.sleep(1e9)
        except KeyboardInterrupt:
            print("stopped")


if __name__ == "__main__":
    main()
