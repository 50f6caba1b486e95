"""The configuration, whole and checked: one frozen value. `file.py` makes it from TOML and the environment."""

from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

import msgspec

from toolspeak.engine.agent import ROUNDS
from toolspeak.engine.plan import NOTHING_SAID, Settings
from toolspeak.engine.verdict import Depth
from toolspeak.facts.capability import NO_OVERRIDES, Overrides
from toolspeak.facts.model import UNKNOWN_MODEL, ModelFacts
from toolspeak.runtime.transport import DEFAULT_TIMEOUTS, Timeouts
from toolspeak.upstreams import Auth
from toolspeak.wires.limits import DEFAULT_LIMITS, RequestLimits

HOST, PORT = "127.0.0.1", 4141
MIB = 1 << 20
MCP_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Server:
    """Where the gateway listens. `hosts` and `origins` are accepted beside those of the own address."""

    host: str = HOST
    port: int = PORT
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    keep_alive: float = 15.0
    """Seconds of silence in a stream after which the client is told that we are still here."""
    shutdown: float = 60.0
    """Seconds that open streams get to finish."""
    probe: Depth | None = None
    """How far models are probed in the background; None: full near by, a look elsewhere, where it costs money."""
    probe_requests: int = 300
    """Requests that probes may send to one upstream in an hour; 0: none. A full probe takes up to 15."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the gateway accepts from clients (SAFE-7)."""

    body_bytes: int = 32 * MIB
    header_bytes: int = 32 * 1024
    header_seconds: float = 10.0
    body_idle_seconds: float = 30.0
    concurrent: int = 2000
    """Requests at one time, of all clients together."""
    connections: int = 8192
    """Open connections; fewer if the limit of open files leaves room for fewer."""
    connections_per_address: int = 4096
    """Open connections of one IP address, and at most half of all. Behind a proxy all clients share one address."""
    request: RequestLimits = DEFAULT_LIMITS
    """What one request may contain."""
    memory_bytes: int = 2 << 30
    """Resident memory above which new requests are refused."""
    buffered_bytes: int = 256 * MIB
    """Large bodies held at one time: what each has above its first 64 KiB. A tenant may hold half of it."""
    loop_delay_seconds: float = 0.25
    """How late the event loop may be before a busy gateway refuses new requests."""


@dataclass(frozen=True, slots=True)
class Durable:
    """Where runs are kept, and for how long."""

    database: str = field(default="", repr=False)
    """The URL of a PostgreSQL or SQLite; empty: a SQLite file in `folder`. It may hold a password."""
    folder: Path | None = None
    """Where that file is; none if the user has no home."""
    lease: float = 10.0
    """Seconds without a sign of life after which a worker counts as dead."""
    keep: float = 30.0
    """Days that a run is kept after its end."""
    concurrent: int = 500
    """Runs that one worker works on at one time."""
    imports: tuple[str, ...] = ()
    """Functions (`module:attribute`, or globs) that runs may name as their tools at a worker."""
    unsafe_shell: bool = False
    """Commands run without a sandbox, with all rights of whoever works on runs."""
    disk_mib: int = 2048
    """MiB that one run may add to its folder, all its commands together."""


class Approval(StrEnum):
    """Who is asked before a tool changes something."""

    READ_ONLY = "read-only"
    ASK = "ask"
    AUTO = "auto"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Offer:
    """What of runs the gateway offers to clients: without `enabled`, nothing."""

    enabled: bool = False
    tools: tuple[str, ...] = ("files", "shell", "final_output")
    """All that a client may name; servers of tools and functions only if they are here."""
    folders: tuple[str, ...] = ()
    """Folders that clients may let runs work in; each run has one of its own otherwise."""
    approval: Approval = Approval.AUTO
    """The freest mode that clients may ask for."""
    rounds: int = ROUNDS
    live: int = 20
    """Runs of one tenant that may go on at one time."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """A server that has models. `key` never shows in its repr, logs or errors."""

    name: str
    url: str
    wire: str = "openai_chat"
    auth: Auth = Auth.BEARER
    key: str = field(default="", repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    timeouts: Timeouts = DEFAULT_TIMEOUTS
    retries: int = 2
    """Further tries when it fails before its first byte."""
    facts: ModelFacts = UNKNOWN_MODEL
    settings: Settings = NOTHING_SAID
    described: bool = False
    """The user says himself what it can do: no profile is heard beside that."""
    preset: str = ""


@dataclass(frozen=True, slots=True)
class Model:
    """A name that clients use: which model of which upstream it means."""

    name: str
    upstream: str
    model: str = ""
    """Its name there; empty if it is the same."""
    settings: Settings = NOTHING_SAID
    facts: ModelFacts = UNKNOWN_MODEL
    """Heard before the upstream's."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a tenant. `digest` is the SHA-256 of the key: the key itself is not kept."""

    tenant: str
    digest: bytes = field(repr=False)
    models: tuple[str, ...] = ()
    """Names or globs; empty means all."""
    requests_per_minute: int | None = None
    concurrent: int | None = None


@dataclass(frozen=True, slots=True)
class McpServer:
    """A command to start, or a URL to ask. Its environment and its headers may hold keys, and are never shown."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """All of it: the command inherits nothing else."""
    cwd: str = ""
    url: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    tools: tuple[str, ...] = ()
    """The tools that are wanted; empty means all."""
    trust: bool = False
    """What it says of its tools (that one only reads) is believed."""
    reads: tuple[str, ...] = ()
    """Tools that only read: the user's own word."""
    seconds: float = MCP_SECONDS
    """To be started and to answer a call."""
    sandbox: bool = True
    """The command runs in a sandbox or not at all; `False` is the user's explicit word to run it with all rights."""
    network: bool = False
    """The command may use the network of this machine, loopback included."""
    folders: tuple[str, ...] = ()
    """Full paths of folders that the command may read and change."""
    read: tuple[str, ...] = ()
    """Full paths of files and folders that it may read, besides those that it needs to start."""
    home: str = ""
    """A folder that is its HOME and is kept between starts; without one, HOME is in memory."""
    journal: str = ""
    """A folder that records that the command runs, so that what it leaves in its folders is found after a crash."""
    missing: tuple[str, ...] = ()
    """Variables that it was to get, and that are not set."""

    @property
    def place(self) -> str:
        """Return a digest of what is started or asked: what was approved of one command is not so of another."""
        return sha256(msgspec.json.encode((self.command, self.args, self.url))).hexdigest()


@dataclass(frozen=True, slots=True)
class Config:
    """Everything. Without keys, everybody who reaches the address may ask."""

    server: Server = Server()
    limits: Limits = Limits()
    upstreams: tuple[Upstream, ...] = ()
    models: tuple[Model, ...] = ()
    default: str = ""
    """The model for names that nobody knows: an alias, or `upstream:model`."""
    keys: tuple[Key, ...] = ()
    settings: Settings = NOTHING_SAID
    profiles: Path | None = None
    """The folder with what `doctor` has measured; none if that does not count."""
    redis: str = field(default="", repr=False)
    """The URL of the Redis that a fleet shares; empty: each process for itself. It may hold a password."""
    runs: Durable = Durable()
    offer: Offer = Offer()
    capabilities: Overrides = NO_OVERRIDES
    mcp: tuple[McpServer, ...] = ()
    """Servers whose tools runs may use."""
    approvals: Path | None = None
    """The folder with the definitions of their tools that a person has approved; without it, none is."""
    warnings: tuple[str, ...] = ()
    """Doubts about the file itself; `doubts` has those about the rest."""
