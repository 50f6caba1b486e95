"""`just image-check`: run the image of `just image` with podman as docs/deploy.md does: read-only, no root.

    python -m tests.image.run [--save] IMAGE

A model server without tool calling runs beside it. The gateway in the container must be healthy and ready, bring a call
on every protocol, write nothing outside of its two folders, and let an open stream finish when it is stopped. `--save`
writes bench/results/image.json.

The container shares the network of the machine, so that it reaches the model server on loopback. podman's usual runtime
is crun; where that cannot work (crun refuses machines with both versions of cgroups), runc takes its place, and the
closing line says so.
"""

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from importlib.metadata import version
from typing import Any, Final

from testkit.report import close
from testkit.scripted_upstream import Asked, ScriptedUpstream, listening
from tests.quickstart.run import GATEWAY, MODEL_PORT, PORT, REQUESTS, ROOT, UPSTREAM, check, running
from tools.image.sbom import PLACE

RESULT: Final = ROOT / "bench" / "results" / "image.json"
NAME: Final = f"toolspeak-image-check-{os.getpid()}"
CONFINED: Final = (
    "--read-only",
    "--cap-drop",
    "all",
    "--security-opt",
    "no-new-privileges",
    "--tmpfs",
    "/tmp:mode=1777",  # noqa: S108 # the container's
)
# A volume, which gets the owner of the folder in the image; a tmpfs belongs to root.
STATE: Final = ("--volume", "/var/lib/toolspeak")
LOOK: Final = """
import json, os, pathlib, ssl, stat, zoneinfo
from importlib.metadata import distributions
def writable(path):
    try:
        pathlib.Path(path, "probe").write_text("")
    except OSError:
        return False
    return True
files = [path for path in pathlib.Path("/usr").rglob("*") if path.is_file() and not path.is_symlink()]
print(json.dumps({
    "user": [os.getuid(), os.getgid()],
    "capabilities": [line for line in open("/proc/self/status") if line.startswith("CapEff")][0].split()[1],
    "writable": [path for path in ("/", "/etc", "/usr", "/tmp", "/var/lib/toolspeak") if writable(path)],
    "setuid": [str(path) for path in files if path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)],
    "programs": sorted(path.name for each in ("*bin/*", "local/*bin/*") for path in pathlib.Path("/usr").glob(each)),
    "authorities": len(ssl.create_default_context().get_ca_certs()),
    "zone": str(zoneinfo.ZoneInfo("Europe/Oslo")),
    "distributions": sorted(each.metadata["Name"] + " " + each.version for each in distributions()),
}))
"""


class Podman:
    """podman with a runtime that works on this machine."""

    def __init__(self, image: str) -> None:
        self.image = image
        # podman raises both limits to its own defaults, which a process without CAP_SYS_RESOURCE may not do
        limits = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}
        bounds = {name: min(4096, resource.getrlimit(each)[1]) for name, each in limits.items()}
        self._limits = [option for name, bound in bounds.items() for option in ("--ulimit", f"{name}={bound}:{bound}")]
        works = [name for name in ("crun", "runc") if self._works(name)]
        if not works:
            sys.exit(
                "podman can run the image neither with crun nor with runc here: run `podman run --rm IMAGE --version`"
            )
        self.runtime = works[0]

    def _works(self, runtime: str) -> bool:
        command = ["podman", "--runtime", runtime, *self.run_options(), "--rm", self.image, "--version"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def run_options(self) -> list[str]:
        return ["run", "--network", "host", *CONFINED, *self._limits]

    def __call__(self, *arguments: str) -> str:
        command = ["podman", "--runtime", self.runtime, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, f"{' '.join(arguments)}: {done.stderr}"
        return done.stdout.strip()

    def python(self, script: str) -> dict[str, Any]:
        """Run a script with the image's Python, in a container as confined as the gateway's, and return its JSON."""
        run = (*self.run_options(), *STATE, "--rm", "--entrypoint", "/usr/bin/python3", self.image, "-c", script)
        found: dict[str, Any] = json.loads(self(*run))
        return found

    def start(self, upstream: str, *options: str) -> float:
        """Start the gateway, wait until it is ready, and return the seconds that it took."""
        variables = ("--env", f"TOOLSPEAK_UPSTREAM={upstream}")
        began = time.monotonic()
        self(*self.run_options(), *STATE, *variables, "--detach", "--name", NAME, self.image, "serve", *options)
        while time.monotonic() < began + 30:
            if status_of("/ready") == 200:
                return time.monotonic() - began
            time.sleep(0.02)
        raise AssertionError(f"the gateway is not ready: {self('logs', NAME)}")

    def remove(self) -> None:
        subprocess.run(["podman", "rm", "--force", "--volumes", "--time", "1", NAME], capture_output=True, check=False)


def status_of(path: str) -> int:
    try:
        with urllib.request.urlopen(GATEWAY + path, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def check_contents(podman: Podman) -> dict[str, Any]:
    """Check what a process in the container sees and may do, and that the bill of materials names what is there."""
    seen = podman.python(LOOK)
    assert seen["user"] == [65532, 65532], seen["user"]
    assert int(seen["capabilities"], 16) == 0, seen["capabilities"]
    assert seen["writable"] == ["/tmp", "/var/lib/toolspeak"], seen["writable"]  # noqa: S108
    assert seen["setuid"] == [], seen["setuid"]
    assert seen["programs"] == ["python3", "python3.13", "toolspeak"], seen["programs"]
    assert seen["authorities"] > 100, seen["authorities"]
    document = podman.python(f"print(open('/{PLACE}').read())")
    parts = [document["metadata"]["component"], *document["components"]]
    named = [f"{each['name']} {each['version']}" for each in parts if each["purl"].startswith("pkg:pypi/")]
    assert sorted(named) == seen["distributions"], set(named) ^ set(seen["distributions"])
    return {"components": len(parts), "programs": seen["programs"]}


def check_calls(podman: Podman, *options: str) -> float:
    """Check that every protocol brings a call, and that the image's own health check agrees."""
    try:
        seconds = podman.start(UPSTREAM, *options)
        assert (status_of("/health"), status_of("/ready")) == (200, 200)
        podman("healthcheck", "run", NAME)
        for path, body in REQUESTS.items():
            check(path, body)
        return seconds
    finally:
        podman.remove()


async def _drip(asked: Asked) -> None:
    """Write ten words in three seconds."""
    asked.head()
    for number in range(10):
        body = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        choice = {"index": 0, "delta": {"content": f"w{number} "}, "finish_reason": "stop" if number == 9 else None}
        await asked.chunk(f"data: {json.dumps({**body, 'choices': [choice]})}\n\n".encode())
        await asyncio.sleep(0.3)
    await asked.chunk(b"data: [DONE]\n\n")
    await asked.end()


def check_drain(podman: Podman, upstream: ScriptedUpstream) -> int:
    """Stop the container while a stream is open: the stream must finish. Return the container's exit status."""
    upstream.answers(_drip)
    heard: list[bytes] = []
    try:
        podman.start(f"{upstream.url}/v1", "--host", "127.0.0.1")
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "count"}]}
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(f"{GATEWAY}/v1/chat/completions", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            heard.append(answer.readline())
            stopping = threading.Thread(target=podman, args=("stop", "--time", "30", NAME))
            stopping.start()
            heard.append(answer.read())
            stopping.join()
        text = b"".join(heard)
        assert b"w9" in text, text
        assert b"[DONE]" in text, text
        return int(podman("inspect", "--format", "{{.State.ExitCode}}", NAME))
    finally:
        podman.remove()


def main() -> None:
    parser = argparse.ArgumentParser(prog="just image-check")
    parser.add_argument("--save", action="store_true", help="write bench/results/image.json")
    parser.add_argument("image", nargs="?", default=f"toolspeak:{version('toolspeak')}")
    options = parser.parse_args()
    podman = Podman(f"localhost/{options.image}")
    figures = check_contents(podman)
    with running([sys.executable, str(ROOT / "tests/quickstart/model.py"), str(MODEL_PORT)], f"{UPSTREAM}/models"):
        local = ("--host", "127.0.0.1", "--port", str(PORT))
        figures["ready_s"] = round(check_calls(podman, *local), 2)
        figures["ready_with_two_workers_s"] = round(check_calls(podman, *local, "--workers", "2"), 2)
    with listening() as upstream:
        figures["exit_status_after_drain"] = check_drain(podman, upstream)
    figures["bytes"] = int(podman("image", "inspect", "--format", "{{.Size}}", podman.image))
    figures["engine"] = f"podman with {podman.runtime}, network of the host"
    figures["protocols"] = len(REQUESTS)
    ok = figures["exit_status_after_drain"] == 0
    if options.save:
        RESULT.write_text(json.dumps({"ok": ok, **figures}, indent=2) + "\n", encoding="utf-8")
    close("image-check", ok=ok, **figures)


if __name__ == "__main__":
    main()
