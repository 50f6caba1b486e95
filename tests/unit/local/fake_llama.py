"""A program that acts as `llama-server` does, with whatever fault is asked for by `--fault NAME`.

none        healthy at once, answers with its process id; the first request with the word WAIT gets no answer, one with
            the word SLOWLY when the file MODEL.go is there
never       never healthy
dies        ends with status 3 before it is healthy
dies-soon   ends with status 4 soon after its start
deaf        ignores SIGTERM
flood       prints as fast as it can, for ever
family      starts a child of its own, whose process id it prints
slow        healthy after 1.5 s
mute        healthy for 0.5 s, then it accepts connections and answers nothing
busy        healthy for 0.5 s, then it answers nothing and computes, as a saturated server does
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

BORN = time.monotonic()
SLOW_S, SOON_S, MUTE_S = 1.5, 0.3, 0.5


def option(name: str, default: str = "") -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


FAULT = option("--fault", "none")
WAITED = Path(f"{option('--model', sys.argv[0])}.waited")
"""Made when a request waits: only the first one does."""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/v1/models":
            self.say(200, {"data": [{"id": option("--alias")}]})
            return
        if FAULT in {"mute", "busy"} and time.monotonic() - BORN > MUTE_S:
            while FAULT == "busy":
                hash("compute" * 1000)
            time.sleep(600)
        loading = FAULT == "never" or (FAULT == "slow" and time.monotonic() - BORN < SLOW_S)
        self.say(503 if loading else 200, {"status": "loading" if loading else "ok"})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if b"WAIT" in body and not WAITED.exists():
            WAITED.touch()
            time.sleep(600)
        if b"SLOWLY" in body:
            WAITED.with_suffix(".slowly").touch()
            while not WAITED.with_suffix(".go").exists():
                time.sleep(0.02)
        message = {"role": "assistant", "content": f"I am {os.getpid()}"}
        self.say(200, {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    def say(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # pyright: ignore[reportImplicitOverride]
        pass


def flood() -> None:
    while True:
        print("load_tensors: " + "." * 200)


def main() -> None:
    print("build: 1", flush=True)
    if FAULT == "dies":
        print("error: no such tensor\x1b[31m", file=sys.stderr, flush=True)
        sys.exit(3)
    if FAULT == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if FAULT == "flood":
        threading.Thread(target=flood, daemon=True).start()
    if FAULT == "family":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print(f"child {child.pid}", flush=True)
    if FAULT == "dies-soon":
        threading.Timer(SOON_S, os._exit, (4,)).start()
    ThreadingHTTPServer(("127.0.0.1", int(option("--port"))), Handler).serve_forever()


if __name__ == "__main__":
    main()
