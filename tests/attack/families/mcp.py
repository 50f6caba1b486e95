"""A hostile MCP server over stdio, used by real runs: what it reads, writes, reaches, kills and leaves behind."""

import os
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

from testkit.meter import resident_mb
from testkit.scripted_upstream import Asked, listening
from testkit.vendor_answers import Answer
from tests.attack.arena import Arena, Gateway, Stage, bearer
from tests.attack.model import COLD, speaks

HELD_BEFORE = False
SECRET, ENVIRONMENT = "canary-home-41ce", "canary-environment-8d02"
SCRIPT = Path(__file__).resolve().parents[1] / "hostile_mcp.py"
NAMES = (
    *("echo", "read_home", "write_outside", "connect", "parent_environment", "all_environments", "read_configuration"),
    *("approve_itself", "leave_a_process", "endless_line", "endless_stderr", "notifications", "strange_answers"),
    *("forged_calls", "silent", "die", "kill_parent"),
)
PATIENCE_S = 12.0
CONFIG = """
[runs]
enabled = true
tools = ["mcp:hostile", "files"]
approval = "off"
[mcp.hostile]
command = "/usr/bin/python3"
args = ["-I", "SERVER/hostile_mcp.py", "PORT", "OUTSIDE"]
cwd = "SERVER"
seconds = 8.0
"""


class _Listener:
    """Notes whether a connection came."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            self._socket.accept()[0].close()
            self.connections += 1


async def _use(asked: Asked) -> None:
    """Be a model that calls the tool that its task names, once."""
    messages = asked.json["messages"]
    name = next((name for name in NAMES if f"Use {name}." in str(messages)), "")
    if not name or any(message["role"] == "tool" for message in messages):
        await COLD(asked)
    else:
        await speaks(Answer(calls=(("call_1", f"hostile__{name}", {}),)))(asked)


def attack(arena: Arena) -> None:
    listener, server = _Listener(), arena.fresh_folder()
    shutil.copy(SCRIPT, server / SCRIPT.name)
    with listening(("good",)) as upstream:
        upstream.answers(_use)
        for mode in ("auto",) if arena.brief else ("auto", "force"):
            folder = arena.fresh_folder()
            words = {"SERVER": str(server), "PORT": str(listener.port), "OUTSIDE": str(folder)}
            config = arena.config(upstream.port, CONFIG)
            for name, value in words.items():
                config = config.replace(name, value)
            config = config.replace("retries = 0\n", f'retries = 0\n[upstreams.up.tools]\nmode = "{mode}"\n', 1)
            _prepare(arena, folder, config)
            with arena.gateway(config, folder=folder, env={"SECRET": ENVIRONMENT}) as gateway:
                for number, name in enumerate(NAMES[:8] if arena.quick else NAMES):
                    if number == 1:  # the first run has loaded the MCP client: that memory is no harm of an attack
                        gateway.before_mb = resident_mb(gateway.pid)
                    _try(Stage(arena, gateway, upstream), listener, folder, name, mode)


def _prepare(arena: Arena, folder: Path, config: str) -> None:
    """Approve the server's tools, as its owner would who does not know what they do."""
    env = arena.environ(folder)
    (folder / "home" / "secret").write_text(SECRET)
    file = folder / "toolspeak.toml"
    file.write_text(config)
    file.chmod(0o600)
    arena.own(file, folder / "home" / "secret")
    words = arena.target.words(arena.who, "mcp", "tools", "hostile", "--approve", "--config", str(file), env=env)
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("TOOLSPEAK", "PYTHON"))}
    done = subprocess.run(words, cwd=folder, env=environ, check=False, capture_output=True, timeout=60)
    if done.returncode:
        raise RuntimeError(f"the tools could not be approved: {(done.stdout + done.stderr)[-500:]!r}")


def _try(stage: Stage, listener: _Listener, folder: Path, name: str, mode: str) -> None:
    stage.upstream.asked.clear()
    connections = listener.connections
    with stage.arena.attempt(stage.gateway, f"{name}, mode {mode}") as attempt:
        body = {"task": f"Use {name}.", "tools": ["mcp:hostile"], "model": "up:good", "approval": "off"}
        reply = stage.gateway.ask("POST", "/v1/runs", body, bearer())
        if reply.status == 201:
            _wait(stage.gateway, reply.json["id"])
        if name == "leave_a_process":
            time.sleep(3.5)
        sent = b"".join(asked.body for asked in stage.upstream.asked)
        found = {
            "the file in the home folder": SECRET.encode() in sent,
            "the gateway's environment": ENVIRONMENT.encode() in sent,
            "the configuration with its keys": b"sk-attacker" in sent or b"sk-upstream" in sent,
            "a file was written outside": (folder / "written").exists(),
            "its own approval was written": (folder / "state/toolspeak/mcp/forged.json").exists(),
            "a connection was made": listener.connections > connections,
            "a process outlived its server": (folder / "survived").exists(),
            "a forged call was run": b"forged" in sent and b"hostile__write_file" in sent,
        }
        for effect, holds in found.items():
            if holds:
                attempt.got(effect)
        if name == "echo" and b"a harmless answer" not in sent:
            raise AssertionError(f"the control does not work: {reply.status} {reply.body[:300]!r} {sent[-300:]!r}")
    for path in ("written", "survived", "state/toolspeak/mcp/forged.json"):
        (folder / path).unlink(missing_ok=True)


def _wait(gateway: Gateway, id: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        reply = gateway.ask("GET", f"/v1/runs/{id}", None, bearer(), seconds=5)
        if reply.status != 200 or reply.json["status"] not in ("running", "waiting"):
            return
        time.sleep(0.1)
    gateway.ask("POST", f"/v1/runs/{id}/cancel", {}, bearer(), seconds=5)
