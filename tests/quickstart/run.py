"""The README, tried as it is written in an environment that has nothing but the wheel.

    python -m tests.quickstart.run VENV

A model server without tool calling runs where llama.cpp runs by default. `toolspeak serve` with nothing said must find
it, and with `--upstream` take it; a client of each protocol must get a call; and the Python blocks must run.
"""

import contextlib
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator, Sequence
from pathlib import Path

from tools.snippets import python_lines

ROOT = Path(__file__).parents[2]
MODEL_PORT, PORT = 8080, 4141
GATEWAY = f"http://127.0.0.1:{PORT}"
UPSTREAM = f"http://127.0.0.1:{MODEL_PORT}/v1"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION = {"name": "get_weather", "description": "Weather now", "parameters": SCHEMA}
ASKED = [{"role": "user", "content": "Is it cold in Oslo?"}]
REQUESTS = {
    "/v1/chat/completions": {"model": "gpt", "messages": ASKED, "tools": [{"type": "function", "function": FUNCTION}]},
    "/v1/responses": {"model": "gpt", "input": "Is it cold in Oslo?", "tools": [{"type": "function", **FUNCTION}]},
    "/v1/messages": {
        "model": "claude",
        "max_tokens": 99,
        "messages": ASKED,
        "tools": [{"name": "get_weather", "input_schema": SCHEMA}],
    },
    "/v1beta/models/gemini:generateContent": {
        "contents": [{"role": "user", "parts": [{"text": "Is it cold in Oslo?"}]}],
        "tools": [{"functionDeclarations": [FUNCTION]}],
    },
    "/api/chat": {
        "model": "llama",
        "messages": ASKED,
        "stream": False,
        "tools": [{"type": "function", "function": FUNCTION}],
    },
}


def main(venv: Path) -> int:
    with running([sys.executable, str(ROOT / "tests/quickstart/model.py"), str(MODEL_PORT)], f"{UPSTREAM}/models"):
        for options in ([], ["--upstream", UPSTREAM]):
            started = time.monotonic()
            with running([str(venv / "bin/toolspeak"), "serve", "--quiet", *options], f"{GATEWAY}/health"):
                print(f"toolspeak serve {' '.join(options)}: ready after {time.monotonic() - started:.2f} s")
                for path, body in REQUESTS.items():
                    check(path, body)
        script = "\n".join(python_lines((ROOT / "README.md").read_text(encoding="utf-8")))
        done = subprocess.run(
            [str(venv / "bin/python"), "-I", "-c", script], stdout=subprocess.PIPE, text=True, check=True
        )
        assert 'get_weather {"city": "Oslo"}' in done.stdout, done.stdout
        assert all(piece in done.stdout for piece in (" -4 °", "Finished(stop=")), done.stdout
    print("the quick start works as written, from the wheel")
    return 0


def check(path: str, body: object) -> None:
    """Every protocol must bring the call."""
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(GATEWAY + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        text = answer.read().decode()
    assert "get_weather" in text, f"{path}: {text}"
    assert "Oslo" in text, f"{path}: {text}"


@contextlib.contextmanager
def running(command: Sequence[str], url: str) -> Generator[None]:
    """Run a server until the block ends."""
    with subprocess.Popen(command) as process:
        try:
            await_answer(url, process)
            yield
        finally:
            process.terminate()


def await_answer(url: str, process: "subprocess.Popen[bytes]") -> None:
    for _ in range(200):
        assert process.poll() is None, f"{process.args} ended with {process.returncode}"
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.05)
    raise AssertionError(f"{url} does not answer")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
