"""What every family of attacks uses: a real gateway process, the observer, and the count of attempts.

An attempt succeeds if the attacker gets what it must not get, or if others are hurt while it runs: `/health` or another
tenant's stream stalls, the log swells or holds a traceback, the process dies, its memory stays.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testkit.meter import resident_mb
from testkit.protocols import question
from testkit.scripted_upstream import ScriptedUpstream
from tests.attack import observer as observing
from tests.attack.target import USER, Target
from tests.gateway.scene import ENVIRON, Reply, Served
from tests.security.sandbox.ordinary import NOBODY

REPOSITORY = Path(__file__).resolve().parents[2]
HEALTH_P99_MS, GAP_MS, MEMORY_RATIO = 250.0, 500.0, 1.5
QUICK_SLACK = 2.0
"""For `--quick`, which CI runs on machines that are shared; the whole run holds the stated bounds."""
LOG_PER_REQUEST, LOG_FLOOR = 1_000, 20_000
"""Bytes of the log: for each request, and for the start, the warm-up and warnings that come once."""
STARTS_S, STOPS_S, QUIET_S = 30.0, 20.0, 0.1
ATTACKER, LIMITED, VICTIM = "sk-attacker-91c2", "sk-limited-40aa", "sk-victim-7be3"
KEYS = f"""
[[keys]]
tenant = "observer"
key = "{observing.KEY}"
[[keys]]
tenant = "attacker"
key = "{ATTACKER}"
[[keys]]
tenant = "victim"
key = "{VICTIM}"
[[keys]]
tenant = "limited"
key = "{LIMITED}"
models = ["fast"]
"""


def bearer(key: str = ATTACKER) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


@dataclass
class Attempt:
    """One attempt; it succeeded if it had any effect."""

    name: str
    effects: list[str] = field(default_factory=list[str])

    def got(self, effect: str) -> None:
        """Note what the attacker got."""
        self.effects.append(effect)


class Observer:
    """The observer's process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.attack.observer"],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.port = int(self._read()["port"])

    def tell(self, do: str, **more: object) -> dict[str, Any]:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"do": do, **more}) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


@dataclass
class Gateway:
    """A running `toolspeak serve`."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path
    observer: Observer | None
    client: Served
    requests: int = 0
    """How many were sent; each may cost the log a line."""
    read: int = 0
    """How far the log was read."""
    slack: float = 1.0
    """How far the bounds on stalls are widened."""
    before_mb: float = 0.0
    """Its memory after the warm-up."""
    abandoned: bool = False
    """It was hurt so much that it is replaced; the attempt that did it is counted."""

    @property
    def pid(self) -> int:
        return self.process.pid

    def ask(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None, seconds: float = 30.0
    ) -> Reply:
        """Ask on a connection of its own; status 0 means that the gateway gave no answer."""
        self.requests += 1
        try:
            return self.client.ask(method, path, body, headers, seconds)
        except (OSError, EOFError, ValueError) as error:
            return Reply(0, {}, repr(error).encode())
        except Exception as error:  # noqa: BLE001 # http.client's own errors have no common base
            return Reply(0, {}, repr(error).encode())

    def raw(self, data: bytes, seconds: float = 10.0, pieces: int = 1) -> bytes:
        """Send bytes, and read until the gateway closes, falls silent after its first bytes, or says nothing at all."""
        self.requests += 1
        connection = self.client.connect(seconds)
        self.client.opened.remove(connection)
        said = bytearray()
        try:
            step = max(1, -(-len(data) // pieces))
            for start in range(0, len(data), step):
                connection.sendall(data[start : start + step])
            while piece := connection.recv(65536):
                said += piece
                connection.settimeout(min(seconds, QUIET_S))
        except OSError:
            pass
        finally:
            connection.close()
        return bytes(said)

    def new_log(self) -> bytes:
        with self.log.open("rb") as file:
            file.seek(self.read)
            found = file.read()
        self.read += len(found)
        return found

    def mark(self) -> None:
        """Begin an interval."""
        self.new_log()
        if self.observer is not None:
            self.observer.tell("mark")

    def harm(self, requests: int) -> list[str]:
        """Return what the interval did to others."""
        self.requests += requests
        found = log_faults(self.new_log(), requests)
        if self.process.poll() is not None:
            found.append(f"the gateway ended with status {self.process.returncode}")
        elif self.observer is not None:
            found += stalls(self.observer.tell("mark"), self.slack)
        return found


def log_faults(log: bytes, requests: int) -> list[str]:
    """Judge the log of some requests."""
    most = LOG_FLOOR + LOG_PER_REQUEST * requests
    found = [f"{len(log)} bytes of log for {requests} requests"] if len(log) > most else []
    return [*found, "a traceback in the log"] if b"Traceback (most recent" in log else found


def stalls(figures: dict[str, Any], slack: float = 1.0) -> list[str]:
    """Judge an observer's figures; what the observer was late itself is not the gateway's. `slack` widens bounds."""
    found: list[str] = []
    if (p99 := figures["health_p99_ms"] - figures["own_lag_p99_ms"]) >= HEALTH_P99_MS * slack:
        found.append(f"/health p99 {p99:.0f} ms")
    if (gap := figures["gap_max_ms"] - figures["own_lag_max_ms"]) >= GAP_MS * slack:
        found.append(f"a gap of {gap:.0f} ms in another tenant's stream")
    return found


@dataclass
class Arena:
    """One family's pass, as root or as an ordinary user."""

    target: Target
    who: str
    quick: bool
    observer: Observer
    folder: Path
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    missed: list[str] = field(default_factory=list[str])
    """Bounds that did not hold over the whole of a gateway's life."""
    figures: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    notes: list[str] = field(default_factory=list[str])

    @property
    def brief(self) -> bool:
        """Tell whether long attacks are made in few variants: the second user repeats what the first has shown."""
        return self.quick or (self.who == USER and not os.geteuid())

    def record(self, name: str, *effects: str) -> None:
        """Count an attempt; an effect that is not empty is a success of the attacker."""
        self.attempts.append(Attempt(name, [effect for effect in effects if effect]))

    @contextmanager
    def attempt(self, gateway: Gateway, name: str, requests: int = 1) -> Generator[Attempt]:
        """Make an attempt of so many requests, and see what it does to others."""
        attempt = Attempt(name)
        gateway.mark()
        yield attempt
        attempt.effects += gateway.harm(requests)
        self.attempts.append(attempt)

    def config(self, upstream: int, more: str = "", keys: str = KEYS, server: str = "", head: str = "") -> str:
        """Write a configuration: the scripted upstream `up`, the observer's `steady`, the alias `fast`."""
        return f"""{head}
[server]
port = 0
probe = "off"
shutdown = 1.0
{server}
[upstreams.up]
url = "http://127.0.0.1:{upstream}/v1"
wire = "openai_chat"
key = "sk-upstream-7f3a"
retries = 0
[upstreams.steady]
url = "http://127.0.0.1:{self.observer.port}/v1"
wire = "openai_chat"
[models.fast]
upstream = "up"
model = "good"
{more}
{keys}
"""

    def own(self, *paths: Path) -> None:
        """Give folders and files to the user that runs the gateway."""
        for path in paths:
            if self.who == USER and not os.geteuid():
                os.chown(path, NOBODY, NOBODY)

    def environ(self, folder: Path, **more: str) -> dict[str, str]:
        """Return the environment of a process: its state and home are in its own folder."""
        for name in ("state", "home"):
            (folder / name).mkdir(exist_ok=True)
            self.own(folder / name)
        return {"XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder / "home"), **ENVIRON, **more}

    def fresh_folder(self) -> Path:
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        folder.chmod(0o755)
        self.own(folder)
        return folder

    @contextmanager
    def gateway(  # noqa: PLR0913 # each is a condition of some attack
        self,
        config: str,
        *,
        watched: bool = True,
        warm: Iterable[str] = ("openai_chat",),
        nofile: int = 0,
        env: dict[str, str] | None = None,
        folder: Path | None = None,
    ) -> Generator[Gateway]:
        """Run a gateway; hold its whole life against the bounds, unless it is not watched."""
        folder = folder or self.fresh_folder()
        running = self.start(config, folder, nofile=nofile, env=env or {})
        made = len(self.attempts)
        try:
            for wire in [*warm] * 5:
                asked = question(wire, model="fast")
                running.ask(asked.method, asked.path, asked.body, bearer(VICTIM))
            running.before_mb = resident_mb(running.pid)
            if watched:
                running.observer = self.observer
                self.observer.tell("watch", port=running.port)
            yield running
            if watched and not running.abandoned:
                self._judge(running, len(self.attempts) - made)
        finally:
            if running.observer is not None:
                self.figures.append(self.observer.tell("stop"))
            if running.abandoned:
                running.process.kill()
                running.process.wait()
            self.stop(running)

    def start(self, config: str, folder: Path, *, nofile: int = 0, env: dict[str, str] | None = None) -> Gateway:
        """Start a gateway, and wait until it listens."""
        file, log = folder / "toolspeak.toml", folder / "stderr"
        file.write_text(config)
        file.chmod(0o600)
        self.own(file)
        given = self.environ(folder, **(env or {}))
        words = self.target.words(self.who, "serve", "--config", str(file), env=given, nofile=nofile)
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("TOOLSPEAK", "PYTHON"))}
        with log.open("wb") as stderr:
            process = subprocess.Popen(words, cwd=folder, env=environ, stdout=subprocess.DEVNULL, stderr=stderr)
        end = time.monotonic() + STARTS_S
        while time.monotonic() < end and process.poll() is None:
            if found := re.search(rb"listens on http://[^ ]*:(\d+)", log.read_bytes()):
                port = int(found[1])
                served = Served(port, None, None)  # pyright: ignore[reportArgumentType] # only its client is used
                return Gateway(process, port, log, None, served, slack=QUICK_SLACK if self.quick else 1.0)
            time.sleep(0.02)
        process.kill()
        process.wait()
        raise RuntimeError(f"the gateway did not start: {log.read_text()[-2000:]}")

    def stop(self, gateway: Gateway) -> None:
        """End the gateway's process."""
        for connection in gateway.client.opened:
            connection.close()
        if gateway.process.poll() is None:
            gateway.process.send_signal(signal.SIGTERM)
            try:
                gateway.process.wait(STOPS_S)
            except subprocess.TimeoutExpired:
                self.notes.append(f"the gateway did not end within {STOPS_S:g} s of SIGTERM")
                gateway.process.kill()
                gateway.process.wait()

    def _judge(self, gateway: Gateway, made: int) -> None:
        figures = self.observer.tell("stop")
        gateway.observer = None
        before, after = gateway.before_mb, settled_mb(gateway)
        figures |= {"rss_before_mb": round(before, 1), "rss_after_mb": round(after, 1)}
        self.figures.append(figures)
        self.missed += stalls(figures, QUICK_SLACK if self.quick else 1.0)
        if after > MEMORY_RATIO * before:
            self.missed.append(f"memory {before:.0f} MB before, {after:.0f} MB after")
        if gateway.process.poll() is not None:
            self.missed.append(f"the gateway ended with status {gateway.process.returncode}")
        self.missed += log_faults(gateway.log.read_bytes(), max(made, gateway.requests))


def settled_mb(gateway: Gateway) -> float:
    """Return the memory after an attack; give the gateway some seconds to let go of it."""
    end = time.monotonic() + 4
    while gateway.process.poll() is None:
        now = resident_mb(gateway.pid)
        if now <= MEMORY_RATIO * gateway.before_mb or time.monotonic() > end:
            return now
        time.sleep(0.2)
    return 0.0


@dataclass(frozen=True)
class Stage:
    """A gateway under attack, and the upstream that is scripted for it."""

    arena: Arena
    gateway: Gateway
    upstream: ScriptedUpstream


@contextmanager
def attack_folder() -> Generator[Path]:
    """Make a folder that an ordinary user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="toolspeak-attack-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
