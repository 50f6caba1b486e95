"""llama.cpp's own HTTP server with a real model, as a child process on loopback.

    with LlamaServer("qwen2.5-coder-0.5b") as server:
        server.url          http://127.0.0.1:PORT; the OpenAI wire is below /v1

    python -m tests.live.server [NAME] [--port 8080]       until it is interrupted

It comes from a wheel, in a virtual environment of its own in the cache folder, and ends with the process that started
it. One slot: a second request waits for the first.
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from tests.live.models import DEFAULT, MODELS, cache_folder, path_of

PIN = "xllamacpp==2026.10.11549"
START_S = 120
STOP_S = 10
CONTEXT_TOKENS = 32_768
"""What the models were trained with; agents send long prompts."""

CHILD = """
import sys, xllamacpp
path, alias, port, context, threads, remembers = sys.argv[1:]
params = xllamacpp.CommonParams()
params.model.path, params.model_alias = path, {alias}
params.hostnames, params.port = ["127.0.0.1"], int(port)
params.n_ctx, params.n_parallel, params.use_jinja = int(context), 1, True
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(threads)
params.cache_prompt = remembers == "True"
params.sampling.temp, params.sampling.seed = 0, 1  # for agents, which leave it to the server
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()  # it ends when the parent does
"""


class LlamaServer:
    """A model behind an HTTP server, from `with` to its end."""

    def __init__(self, model: str = DEFAULT, *, port: int = 0, remembers: bool = True, log: Path | None = None) -> None:
        """Take any free port unless one is named.

        A server that remembers the last prompt is quick with a longer one, but says the same twice only by chance: the
        sums are then done in other pieces, and near ties fall the other way.
        """
        self.model = model
        self._port, self._remembers = port, remembers
        self._log = log or cache_folder() / f"{model}.log"
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    def __enter__(self) -> Self:
        path = str(path_of(self.model))
        counts = (self._port, CONTEXT_TOKENS, free_cores(), self._remembers)
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [python(), "-c", CHILD, path, self.model, *map(str, counts)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
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
        """Ask for a page of the server's own."""
        split = urlsplit(self.url)
        connection = http.client.HTTPConnection(split.hostname or "", split.port, timeout=START_S)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"null")
        finally:
            connection.close()

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


def free_cores() -> int:
    """Return how many threads are wise: one that must wait for its core makes all the others wait at every step."""
    return max(1, (os.cpu_count() or 1) - round(os.getloadavg()[0]))


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
    options = parser.parse_args()
    with LlamaServer(options.model, port=options.port) as server:
        print(f"{server.model} listens on {server.url}", flush=True)
        try:
            time.sleep(1e9)
        except KeyboardInterrupt:
            print("stopped")


if __name__ == "__main__":
    main()
