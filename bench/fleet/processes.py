"""The processes of the fleet: how each is started, killed, stopped, restarted, and when it is ready.

    clients → nginx → four gateways of two workers → three upstreams, directly (a pool of ours) and behind nginx
              runs: gateways → PostgreSQL ← two workers of runs → the same upstreams

A fourth upstream, which never breaks, answers the requests that measure the limit: nothing but the limit decides there.
A process that dies is started again after a pause, as systemd or a cluster would do it.
"""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.fleet.configs import Addresses, gateway_config, nginx_config
from bench.fleet.load import KEYS, STEADY
from bench.fleet.schedule import NATURES, Kind, Targets
from bench.fleet.upstream import Mode
from testkit.meter import children, read, tree
from testkit.postgres import Postgres, controlled_postgres
from testkit.redis_server import RedisServer

GATEWAYS, WORKERS, RUN_WORKERS, UPSTREAMS = 4, 2, 2, 3
RESTART_S = 1.0
"""Seconds between the death of a process and its next start."""
PATIENCE_S = 180.0
"""Seconds until all is ready; four gateways start at once, perhaps on a busy machine."""
DISK_MIB = 24
FAKE_TIME = "usr/lib/*/faketime/libfaketimeMT.so.1"
DISK_OF, CLOCKS_OF = "gateway-1", ("gateway-2",)
"""The gateways that get a full disk and a clock that jumps. A worker of runs gets neither: with libfaketime 0.9.10 the
threads in which DBOS waits for its database end, because `time.sleep` raises an error (EINVAL)."""
PROXY = "proxy"
"""The name of nginx; those of other members begin with their part."""
ROOT = Path(__file__).parents[2]
_FIRST_PORT, _LAST_PORT = 21_000, 32_000
"""Below the ports that the kernel gives to clients: a port that is free while its server is down stays free."""


def ports(count: int) -> Iterator[int]:
    """Yield free ports that no client will get."""
    found = 0
    for port in range(_FIRST_PORT + os.getpid() % 5000, _LAST_PORT):
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            found += 1
            yield port
        if found == count:
            return
    raise OSError(f"no {count} free ports from {_FIRST_PORT} to {_LAST_PORT}")


@dataclass
class Member:
    """A process that is started again when it dies. `is_ready` asks it once."""

    name: str
    command: Sequence[str]
    log: Path
    is_ready: Callable[[], bool]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    process: "subprocess.Popen[bytes] | None" = None
    died: float = 0.0
    logged: int = 0
    """Size of its log before its last start."""
    groups: list[int] = field(default_factory=list[int])
    """Process groups of all its starts: workers outlive a supervisor that is killed."""

    def start(self) -> None:
        """Start it in its own process group."""
        with self.log.open("ab") as log:
            self.logged = log.tell()
            self.process = subprocess.Popen(
                self.command, env={**os.environ, **self.environment}, cwd=ROOT, stdout=log, stderr=log, process_group=0
            )
        self.groups.append(self.process.pid)
        self.died = 0.0

    @property
    def pids(self) -> list[int]:
        """Return its processes, the first one first."""
        return list(tree(self.process.pid)) if self.process and self.process.poll() is None else []

    @property
    def workers(self) -> list[int]:
        return children(self.process.pid) if self.process else []

    def send(self, number: signal.Signals, pids: Sequence[int]) -> None:
        """Send a signal to some of its processes; one that is gone gets none."""
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self, pids: Sequence[int]) -> None:
        """Kill some of its processes, the first one first, and wait until the kernel has closed their sockets."""
        self.send(signal.SIGKILL, pids)
        while any(is_alive(pid) for pid in pids):
            time.sleep(0.005)
        if self.process and self.process.pid in pids:
            self.process.wait()

    def restart_if_dead(self) -> bool:
        """Start it again if it died some time ago."""
        if self.process is None or self.process.poll() is None:
            return False
        self.died = self.died or time.monotonic()
        if time.monotonic() - self.died < RESTART_S:
            return False
        self.start()
        return True


def is_alive(pid: int) -> bool:
    """Return whether a process still has its files and sockets: one that only waits for its parent has none."""
    return read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].strip()[:1] not in ("", "Z", "X")


def answers(url: str, key: str = "") -> Callable[[], bool]:
    """Make a check: GET gives 200."""

    def check() -> bool:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=2) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError, ValueError):
            return False

    return check


@dataclass
class Fleet:
    """All processes; `entrance` is the port for clients."""

    folder: Path
    addresses: Addresses
    members: dict[str, Member]
    redis: RedisServer
    postgres: Postgres
    disk: Path | None
    clock: Path | None
    restarts: int = 0

    @property
    def marks(self) -> Path:
        return self.folder / "marks"

    def url(self, path: str, member: str = "") -> str:
        """Return the address of a path at one gateway, or at the load balancer."""
        port = self.addresses.gateways[member] if member else self.addresses.entrance
        return f"http://127.0.0.1:{port}{path}"

    def port(self, member: str) -> int | None:
        """Return where a member takes the connections of clients; others have none."""
        return self.addresses.entrance if member == PROXY else self.addresses.gateways.get(member)

    def config(self, gateway: str) -> Path:
        """Return the configuration of a gateway."""
        return self.folder / f"{gateway if gateway == DISK_OF else 'toolspeak'}.toml"

    def audit(self, gateway: str) -> Path:
        """Return the audit log of a gateway."""
        return self.state(gateway) / "toolspeak" / "audit.jsonl"

    def state(self, gateway: str) -> Path:
        """Return the state folder of a gateway."""
        return self.disk if self.disk and gateway == DISK_OF else self.folder / gateway

    def add_key(self, gateway: str, key: str) -> None:
        """Change the configuration of a gateway: it has one more key."""
        config = self.config(gateway)
        new = config.with_suffix(".new")
        new.write_text(f'{config.read_text()}\n[[keys]]\ntenant = "reloaded"\nkey = "{key}"\n')
        new.chmod(0o600)
        new.replace(config)  # a gateway that starts now reads one or the other

    def mode(self, upstream: str, mode: Mode) -> None:
        """Set the mode of an upstream."""
        (self.folder / f"{upstream}.mode").write_text(mode)

    def targets(self) -> Targets:
        """Return what each kind of fault can hit here."""
        names = (*self.members, "redis", "postgres")
        hit: dict[Kind, Sequence[str]] = {
            kind: [name for nature in natures for name in names if name.startswith(nature.part)]
            for kind, natures in NATURES.items()
        }
        hit[Kind.FULL_DISK] = [DISK_OF] if self.disk else []
        hit[Kind.CLOCK_STEP] = CLOCKS_OF if self.clock else []
        return hit

    async def keep(self) -> None:
        """Start again what dies, until cancelled."""
        while True:
            for member in self.members.values():
                self.restarts += member.restart_if_dead()
            await asyncio.sleep(0.1)

    async def until_ready(self, *names: str) -> None:
        """Wait until members are ready. Raises `TimeoutError` with the end of the log of a member that is not ready."""
        for name in names or tuple(self.members):
            member = self.members[name]
            deadline = time.monotonic() + PATIENCE_S
            while not await asyncio.to_thread(member.is_ready):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{name} is not ready:\n{member.log.read_text()[-2000:]}")
                await asyncio.sleep(0.1)

    def limits_are_shared(self) -> bool:
        """Return whether every gateway that answers shares its limits through Redis again."""
        pages = [metric(self.url("/metrics", name), "toolspeak_limits_alone") for name in self.addresses.gateways]
        return all(value in (0.0, None) for value in pages)


def metric(url: str, name: str) -> float | None:
    """Return the sum of a metric, or None if the gateway does not answer."""
    asked = urllib.request.Request(url, headers={"authorization": f"Bearer {KEYS['streams']}"})
    try:
        with urllib.request.urlopen(asked, timeout=2) as answer:
            lines = answer.read().decode().splitlines()
    except (OSError, urllib.error.URLError, ValueError):
        return None
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


# ---------------------------------------------------------------- all of it


@contextmanager
def small_disk(place: Path) -> Generator[Path | None]:
    """Mount a separate small file system; None where we may not mount."""
    place.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=700", "tmpfs", str(place)],
        check=False,
        capture_output=True,
    ).returncode:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=False)


def clock_environment(offset: Path) -> dict[str, str]:
    """Return the variables of a process whose wall clock we can move; empty without libfaketime."""
    found = sorted(Path("/").glob(FAKE_TIME))
    if not found:
        return {}
    offset.write_text("+0\n")
    return {
        "LD_PRELOAD": str(found[0]),
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_DISABLE_SHM": "1",  # a killed process would leave its shared memory behind
    }


@contextmanager
def started(folder: Path, streams: int) -> Generator[Fleet]:
    """Start everything without waiting for it, and stop everything at the end of the block."""
    free = iter(list(ports(GATEWAYS + UPSTREAMS + 5)))
    with ExitStack() as stack:
        redis = RedisServer(folder, next(free))
        redis.start()
        stack.callback(redis.kill)
        postgres = stack.enter_context(controlled_postgres(400, next(free)))
        addresses = Addresses(
            *(next(free), next(free), next(free)),
            {f"upstream-{number}": next(free) for number in range(UPSTREAMS)},
            {f"gateway-{number}": next(free) for number in range(GATEWAYS)},
            *(redis.url, postgres.url),
        )
        disk = stack.enter_context(small_disk(folder / "disk"))
        fleet = Fleet(folder, addresses, {}, redis, postgres, disk, folder / "offset")
        _write_configs(fleet, streams)
        _add_members(fleet)
        stack.callback(_end, fleet)
        for member in fleet.members.values():
            member.start()
        yield fleet


def _write_configs(fleet: Fleet, streams: int) -> None:
    """Write the files of all; the gateway whose disk will be full keeps its traces there."""
    text = gateway_config(fleet.addresses, streams)
    traces = f'\n[traces]\ndatabase = "{fleet.disk}/traces.sqlite"\n' if fleet.disk else ""
    for config, more in ((fleet.folder / "toolspeak.toml", ""), (fleet.config(DISK_OF), traces)):
        config.write_text(more + text)
        config.chmod(0o600)  # it has keys
    (fleet.folder / "nginx.conf").write_text(nginx_config(fleet.folder, fleet.addresses))


def _add_members(fleet: Fleet) -> None:
    """Describe each process, in the order in which they start."""
    folder, config = fleet.folder, str(fleet.folder / "toolspeak.toml")
    fake = clock_environment(folder / "offset")
    fleet.clock = fleet.clock if fake else None
    python, ours = (sys.executable, "-m"), (sys.executable, "-m", "toolspeak")

    def add(name: str, command: Sequence[str], is_ready: Callable[[], bool], **environment: str) -> None:
        clock = fake if name in CLOCKS_OF else {}
        fleet.members[name] = Member(name, command, folder / f"{name}.log", is_ready, {**environment, **clock})

    for name, port in {**fleet.addresses.upstreams, STEADY: fleet.addresses.steady}.items():
        fleet.mode(name, Mode.RIGHT)
        upstream = (*python, "bench.fleet.upstream", str(port), str(folder / f"{name}.mode"))
        add(name, upstream, answers(f"http://127.0.0.1:{port}/v1/models"))
    for name, port in fleet.addresses.gateways.items():
        state = fleet.state(name)
        state.mkdir(exist_ok=True)
        gateway = (
            *ours,
            "serve",
            "--config",
            str(fleet.config(name)),
            "--port",
            str(port),
            "--workers",
            str(WORKERS),
            "--quiet",
        )
        add(name, gateway, answers(fleet.url("/ready", name)), XDG_STATE_HOME=str(state), TMPDIR=str(state))
    for name in (f"run-worker-{number}" for number in range(RUN_WORKERS)):
        ready = _says(fleet, name, b"toolspeak works on runs of")
        worker = (*ours, "worker", "--config", config, "--quiet")
        add(name, worker, ready, XDG_STATE_HOME=str(folder / name), FLEET_MARKS=str(fleet.marks))
    add(PROXY, (nginx(), "-c", str(folder / "nginx.conf"), "-p", str(folder)), answers(fleet.url("/live")))


def nginx() -> str:
    """Return where nginx is."""
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if not found:
        raise FileNotFoundError("nginx is not here: apt-get install nginx-light")
    return found


def _says(fleet: Fleet, name: str, words: bytes) -> Callable[[], bool]:
    """Make a check of a process without a port: its log has these words since its last start."""

    def check() -> bool:
        member = fleet.members[name]
        alive = member.process is not None and member.process.poll() is None
        return alive and words in member.log.read_bytes()[member.logged :]

    return check


def _end(fleet: Fleet) -> None:
    """End all members, in whatever state they are."""
    for member in fleet.members.values():
        member.send(signal.SIGCONT, member.pids)
        if member.process and member.process.poll() is None:
            member.process.terminate()
    deadline = time.monotonic() + 15
    for member in fleet.members.values():
        with suppress(subprocess.TimeoutExpired):
            if member.process:
                member.process.wait(max(0.1, deadline - time.monotonic()))
        member.kill(member.pids)
        for group in member.groups:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
