"""The complete, checked configuration as one frozen value. `file.py` makes it from TOML and the environment."""

from dataclasses import dataclass, field, fields
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from toolspeak.config.server_tls import NO_SERVER_TLS, ServerTls
from toolspeak.declaration import setting
from toolspeak.engine.agent import ROUNDS
from toolspeak.engine.settings import NOTHING_SAID, Settings
from toolspeak.engine.verdict import Depth
from toolspeak.facts.model import UNKNOWN_MODEL, ModelFacts
from toolspeak.facts.strategy import NO_OVERRIDES, Overrides
from toolspeak.runtime.escalation import PER_MINUTE
from toolspeak.runtime.outbound import NO_OUTBOUND, Outbound
from toolspeak.runtime.transport import DEFAULT_TIMEOUTS, Timeouts
from toolspeak.upstreams import Auth
from toolspeak.wires.limits import DEFAULT_LIMITS, RequestLimits

HOST, PORT = "127.0.0.1", 4141
MIB = 1 << 20
MCP_SECONDS = 60.0
MOST_PORT = 65535
MOST_WORKERS = 256


class Approval(StrEnum):
    """When a person must approve a call that changes something.

    The order is from the strictest mode to the most permissive; the gateway compares modes by it.
    """

    READ_ONLY = "read-only"
    ASK = "ask"
    AUTO = "auto"
    OFF = "off"


class UnknownModels(StrEnum):
    """What happens to a request for a model that no upstream has."""

    FIRST = "first"
    STRICT = "strict"


class LogForm(StrEnum):
    """The form of the log's lines."""

    TEXT = "text"
    JSON = "json"


class Driver(StrEnum):
    """What carries bytes between clients and upstreams."""

    ASGI = "asgi"
    PUSH = "push"


class KeyPlace(StrEnum):
    """Where keys that are made by command are stored."""

    NONE = "none"
    FILE = "file"
    REDIS = "redis"


@dataclass(frozen=True, slots=True)
class Server:
    """`[server]`: where the gateway listens, and how it behaves there."""

    host: str = setting(
        HOST, "Address to listen on. An address that other machines can reach requires `[[keys]]`.", form="host"
    )
    port: int = setting(PORT, "Port to listen on; 0 picks a free one.", least=0, most=MOST_PORT)
    hosts: tuple[str, ...] = setting(
        (),
        "Host names that clients may send in the `Host` header, in addition to the gateway's address.",
        form="host_name",
    )
    origins: tuple[str, ...] = setting(
        (),
        "Origins of web pages that may send requests from a browser, in addition to the gateway's own origin.",
        form="origin",
    )
    keep_alive: float = setting(
        15.0, "Silence in a stream after which the gateway sends the client a keep-alive.", unit="seconds", above=0
    )
    shutdown: float = setting(60.0, "Time that open streams get to finish after SIGTERM.", unit="seconds", above=0)
    drain_delay: float = setting(
        0.0,
        "Time after SIGTERM in which `/ready` answers 503 while the gateway still accepts connections, so that a load "
        "balancer sends clients elsewhere before the gateway refuses them.",
        unit="seconds",
        least=0,
    )
    worker_timeout: float = setting(
        60.0, "Time without a heartbeat after which a worker is killed and replaced.", unit="seconds", above=0
    )
    workers: int = setting(
        1,
        "Number of [processes](scale.md#more-than-one-core) that answer requests on the port; 0 means one for each "
        "usable core.",
        least=0,
        most=MOST_WORKERS,
    )
    driver: Driver = setting(
        Driver.ASGI,
        "How bytes travel from the upstream to the client ([drivers](scale.md#drivers)): `asgi` uses uvicorn and "
        "aiohttp, `push` forwards each chunk in the call in which it arrives.",
    )
    reload_on_change: bool = setting(
        False,
        "Reload the configuration file when it changes, as on [SIGHUP](gateway.md#stopping-and-reloading): once it has "
        "been unchanged for a second, and only if it is valid.",
    )
    log: LogForm = setting(
        LogForm.TEXT, "Format of the [log](gateway.md#the-log): lines for people, or one JSON object on each line."
    )
    probe: Depth | None = setting(
        None,
        "How deeply the gateway [probes](probes.md) models in the background.",
        otherwise="`full` on this machine and its network, `look` elsewhere, where requests cost money",
    )
    probe_requests: int = setting(
        300, "Requests per hour that probes may send to one upstream. A full probe takes up to 15 requests.", least=0
    )
    doctor_when_idle: bool = setting(
        False,
        "Examine models with the [doctor](doctor.md#on-idle-capacity) while their upstream on this machine or its "
        "network is idle, and save a form that is better beyond chance.",
    )
    tls: ServerTls = setting(NO_SERVER_TLS, "The certificate that the gateway uses for HTTPS ([TLS](tls.md)).")


@dataclass(frozen=True, slots=True)
class Limits:
    """`[limits]`: what the gateway accepts from clients (SAFE-7)."""

    body_bytes: int = setting(32 * MIB, "Largest body of a request.", unit="bytes", least=1)
    header_bytes: int = setting(32 * 1024, "Largest head of a request.", unit="bytes", least=1)
    header_seconds: float = setting(
        10.0, "Time in which a client must send the head of its request.", unit="seconds", above=0
    )
    body_idle_seconds: float = setting(
        30.0,
        "Longest pause between two chunks of a body; the whole body may take ten times as long.",
        unit="seconds",
        above=0,
    )
    concurrent: int = setting(2000, "Concurrent requests, of all clients together.", least=1)
    connections: int = setting(
        8192, "Open connections; fewer if the limit of open files (`ulimit -n`) allows fewer.", least=1
    )
    connections_per_address: int = setting(
        4096,
        "Open connections of one IP address, at most half of all connections. Clients of one proxy share its address.",
        least=1,
    )
    request: RequestLimits = setting(DEFAULT_LIMITS, "What one request may contain.", is_inline=True)
    memory_bytes: int = setting(2 << 30, "Resident memory above which new requests get 503.", unit="bytes", least=1)
    buffered_bytes: int = setting(
        256 * MIB,
        "Size of the large bodies held at one time, excluding the first 64 KiB of each. One tenant may hold half of "
        "it.",
        unit="bytes",
        least=1,
    )
    loop_delay_seconds: float = setting(
        0.25, "Delay of the event loop above which a busy gateway answers 503.", unit="seconds", above=0
    )


@dataclass(frozen=True, slots=True)
class RateLimits:
    """Limits of a key or of a model (SAFE-7). With `[redis]` they hold over all gateways that share it."""

    requests_per_minute: int | None = setting(None, "Requests per minute.", otherwise="no limit", least=1)
    input_tokens_per_minute: int | None = setting(
        None, "Tokens per minute that models read, as counted by upstreams.", otherwise="no limit", least=1
    )
    output_tokens_per_minute: int | None = setting(
        None, "Tokens per minute that models write, as counted by upstreams.", otherwise="no limit", least=1
    )
    concurrent: int | None = setting(None, "Concurrent requests.", otherwise="no limit", least=1)

    def strictest(self, other: "RateLimits") -> "RateLimits":
        """Return the lower limit of each kind."""
        pairs = {one.name: (getattr(self, one.name), getattr(other, one.name)) for one in fields(self)}
        return RateLimits(
            **{name: min((each for each in pair if each is not None), default=None) for name, pair in pairs.items()}
        )


NO_RATE_LIMITS = RateLimits()


JWT_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
"""All of them verify with a public key. With HS256 in the list, the public key itself could sign a token."""


@dataclass(frozen=True, slots=True)
class TenantRule:
    """`[access.jwt.tenants.PATTERN]`: the models and limits of tenants whose names match."""

    pattern: str
    models: tuple[str, ...] = ()
    """As in `Key`."""
    limits: RateLimits = NO_RATE_LIMITS


@dataclass(frozen=True, slots=True)
class Jwt:
    """`[access.jwt]`: tokens of an identity provider, which clients may send instead of keys (SAFE-12)."""

    issuer: str = setting(
        "", "Issuer of the tokens, exactly as in their claim `iss`.", otherwise="none: tokens are not accepted"
    )
    audience: str = setting(
        "",
        "Name of this gateway at the provider, which the claim `aud` must contain.",
        otherwise="none; it is required",
    )
    jwks_url: str = setting("", "URL of the provider's public keys (JWKS).", otherwise="none", form="jwks_url")
    jwks_file: str = setting("", "File with the public keys, instead of `jwks_url`.", otherwise="none", form="file")
    algorithms: tuple[str, ...] = setting(("RS256", "ES256"), "Accepted signature algorithms.", form="jwt_algorithm")
    tenant_claim: str = setting("sub", "Claim that names the tenant. Users must not be able to change it.")
    models_claim: str = setting(
        "",
        "Claim that lists the models that the tenant may use: an array, or names separated by spaces. "
        "If it is set, the gateway rejects a token without the claim.",
        otherwise="none: the models of the tenant's pattern",
    )
    leeway: float = setting(
        30.0, "How far the clocks of the provider and the gateway may differ.", unit="seconds", least=0, most=600
    )
    refresh: float = setting(300.0, "Interval at which the gateway fetches the public keys.", unit="seconds", above=0)
    max_stale: float = setting(
        86_400.0, "How long the gateway uses fetched keys while it cannot fetch newer ones.", unit="seconds", above=0
    )
    tenants: tuple[TenantRule, ...] = ()
    """In the order of the file: the first one that matches counts. A tenant without any has all models and no limit."""
    outbound: Outbound = NO_OUTBOUND
    """The proxy and certificates of requests for the keys, resolved from `[network]` and the environment."""

    @property
    def is_configured(self) -> bool:
        """Whether tokens are accepted."""
        return bool(self.issuer)


@dataclass(frozen=True, slots=True)
class Access:
    """`[access]`: keys that `toolspeak keys` makes, tokens, and the audit log (SAFE-10)."""

    store: KeyPlace = setting(
        KeyPlace.NONE,
        "Where keys [made by command](keys.md#keys-without-a-restart) are stored: in a `file` on this machine, or in "
        "`redis` for a fleet. With either, every client needs a key.",
    )
    file: str = setting("", "File that stores the keys.", otherwise="`keys.json` in the state folder", form="path")
    audit: str = setting(
        "",
        "File of the [audit log](keys.md#the-audit-log).",
        otherwise="`audit.jsonl` in the state folder, if keys are stored or tokens accepted",
        form="path",
    )
    folder: Path | None = None
    """The state folder; None if the user has no home directory."""
    jwt: Jwt = Jwt()


@dataclass(frozen=True, slots=True)
class Responses:
    """`[responses]`: responses of the OpenAI Responses API that are kept for `previous_response_id` (WIRE-8)."""

    entries: int = setting(1000, "Responses kept for each tenant; 0 keeps none.", least=0)
    bytes: int = setting(64 * MIB, "Total size of the conversations kept for each tenant.", unit="bytes", least=1)
    seconds: float = setting(21_600.0, "How long a response is kept.", unit="seconds", above=0)


@dataclass(frozen=True, slots=True)
class Traces:
    """`[traces]`: what is kept of each turn, for `toolspeak trace` and `/traces` (OBS-13)."""

    enabled: bool = setting(True, "Keep a trace of each turn.")
    content: bool | None = setting(
        None,
        "Keep what clients and models write. Without it, a trace has only names, counts and times.",
        otherwise="`true` on a loopback address without `[[keys]]`, else `false`",
    )
    entries: int = setting(200, "Traces kept in memory for each tenant.", least=1)
    bytes: int = setting(8 * MIB, "Total size of the traces kept in memory for each tenant.", unit="bytes", least=1)
    database: str = setting(
        "", "SQLite file in which traces are kept instead of in memory.", otherwise="none: in memory", form="path"
    )
    keep_days: float = setting(30.0, "How long the file keeps a trace.", unit="days", above=0)


@dataclass(frozen=True, slots=True)
class Otel:
    """`[otel]`: spans of turns for a collector (OBS-15). An endpoint needs `toolspeak[otel]`."""

    endpoint: str = setting(
        "",
        "OTLP/HTTP address of a collector, such as `http://127.0.0.1:4318`; `/v1/traces` is appended. "
        "`OTEL_EXPORTER_OTLP_HEADERS` sets the headers.",
        otherwise="none: spans are created only if the process has set up an OpenTelemetry SDK itself",
        form="collector",
    )
    old_names: bool = setting(False, "Also add renamed attributes under their old names, such as `gen_ai.system`.")
    content: bool = setting(False, "Add what clients and models write, up to 16 KiB in each attribute.")


@dataclass(frozen=True, slots=True)
class DashboardSettings:
    """`[dashboard]`: the pages below `/ui` (OBS-16)."""

    enabled: bool = setting(True, "Serve the dashboard at `/ui`. With `[[keys]]`, it asks for a key.")


DEFAULT_CELL: Final = "default"
"""The name of the cell of `runs.database`."""


@dataclass(frozen=True, slots=True)
class Durable:
    """`[runs]`: where runs are stored, for how long, and how workers run them."""

    database: str = setting(
        "",
        "URL of a PostgreSQL or SQLite database. It may contain a password.",
        otherwise="`runs.sqlite` in the state folder",
        form="database",
        is_secret=True,
    )
    folder: Path | None = None
    """The folder of the SQLite file; None if the user has no home directory."""
    cells: tuple[tuple[str, str], ...] = ()
    """The names and URLs of `[runs.cells]`, beside `database`, which is the default cell."""
    cell: str = ""
    """The name of the cell whose database this is; empty: the default cell."""
    lease: float = setting(
        10.0,
        "Time without a heartbeat after which a worker counts as dead and other workers take over its runs.",
        unit="seconds",
        above=0,
    )
    keep: float = setting(30.0, "How long a run is kept after it ends.", unit="days", above=0, name="keep_days")
    concurrent: int = setting(500, "Concurrent runs of one worker.", least=1)
    concurrent_per_tenant: int | None = setting(
        None, "Concurrent runs of one tenant, on all workers together.", otherwise="no limit", least=1
    )
    imports: tuple[str, ...] = setting(
        (), "Functions (`module:attribute`, or globs) that runs on a worker may name as tools."
    )
    unsafe_shell: bool = setting(
        False, "Run commands without a [sandbox](sandbox.md), with all permissions of the worker's user."
    )
    disk_mib: int = setting(
        2048, "Disk space that all commands of one run together may add to its folder.", unit="MiB", least=1
    )


@dataclass(frozen=True, slots=True)
class Offer:
    """`[runs]`: which runs clients of the gateway may start."""

    enabled: bool = setting(False, "Offer `/v1/runs` to clients.")
    tools: tuple[str, ...] = setting(
        ("files", "shell", "final_output"), "Tools that clients may name; also `mcp:NAME` and `module:attribute`."
    )
    folders: tuple[str, ...] = setting(
        (),
        "Folders in which clients may let runs work: exactly these folders. Every other run gets its own folder.",
        form="folder",
    )
    approval: Approval = setting(Approval.AUTO, "The most permissive approval mode that clients may request.")
    rounds: int = setting(ROUNDS, "Maximum number of rounds of one run.", least=1)
    live: int = setting(20, "Maximum number of unfinished runs of one tenant.", least=1)


@dataclass(frozen=True, slots=True)
class UpModel:
    """A model that `toolspeak up` serves: a file, a name of a local store, or `hf:ORG/REPO:QUANT`."""

    name: str
    model: str
    context: int | None = None
    args: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Up:
    """`[up]`: the models of `toolspeak up`."""

    loaded: int = setting(1, "Number of models that are loaded at one time.", least=1)
    idle: float | None = setting(
        None,
        "Time without a request after which a model is unloaded; 0 means never.",
        unit="seconds",
        otherwise="600 with several models; a single one stays loaded",
        least=0,
    )
    models: tuple[UpModel, ...] = ()


@dataclass(frozen=True, slots=True)
class Upstream:
    """A server that has models. Its key and headers are never in its repr, in logs or in errors."""

    name: str
    url: str
    wire: str = "openai_chat"
    auth: Auth = Auth.BEARER
    key: str = field(default="", repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    timeouts: Timeouts = DEFAULT_TIMEOUTS
    retries: int = 2
    """Further attempts after a request that failed before its first byte."""
    facts: ModelFacts = UNKNOWN_MODEL
    settings: Settings = NOTHING_SAID
    outbound: Outbound = NO_OUTBOUND
    described: bool = False
    """The user has set facts about it, so profiles of the doctor are not used."""
    preset: str = ""
    more_urls: tuple[str, ...] = ()
    """Further servers with the same models and the same key (POOL-1)."""
    more_outbound: tuple[Outbound, ...] = ()
    """How requests to each of these leave this machine; empty until it is resolved."""
    pass_traceparent: bool = False
    """Its requests carry the `traceparent` of their turn (OPS-3)."""
    expose_metrics: bool = False
    """Clients of the gateway may read its servers' own metrics (OPS-4)."""

    @property
    def urls(self) -> tuple[str, ...]:
        """The URLs of all its servers, `url` first."""
        return (self.url, *self.more_urls)


@dataclass(frozen=True, slots=True)
class Model:
    """An alias: a name that clients may use for a model of an upstream."""

    name: str
    upstream: str
    model: str = ""
    """The name at the upstream; empty if it is the same."""
    settings: Settings = NOTHING_SAID
    facts: ModelFacts = UNKNOWN_MODEL
    """Overrides the facts of the upstream."""
    fallback: tuple[str, ...] = ()
    """Models that answer if this one cannot: aliases, or `upstream:model` (POOL-5)."""
    escalate_to: str = ""
    """The model that is asked for calls which this one gets wrong (POOL-6)."""
    escalations_per_minute: int = PER_MINUTE
    limits: RateLimits = NO_RATE_LIMITS
    """Of all clients together."""


@dataclass(frozen=True, slots=True)
class McpServer:
    """An MCP server: a command or a URL. Its environment and headers may contain keys, and are never shown."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """The whole environment of the command: it inherits nothing else."""
    cwd: str = ""
    url: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    tools: tuple[str, ...] = ()
    """The tools to use; empty means all."""
    trust: bool = False
    """Believe the server's annotations of its tools, such as `readOnlyHint`. They decide what needs approval."""
    reads: tuple[str, ...] = ()
    """Tools that only read, according to the user."""
    seconds: float = MCP_SECONDS
    """Timeout in seconds, for the start and for each call."""
    sandbox: bool = True
    """The command runs in a sandbox or not at all. With False, which only the user can set, it runs with all rights."""
    network: bool = False
    """The command may use the network of this machine, loopback included."""
    folders: tuple[str, ...] = ()
    """Full paths of folders that the command may read and change."""
    read: tuple[str, ...] = ()
    """Full paths of files and folders that it may read, besides those that it needs to start."""
    home: str = ""
    """The folder that is its HOME and is kept between starts; if empty, HOME is in memory."""
    journal: str = ""
    """The folder that records that the command runs, so that after a crash its folders can be checked."""
    missing: tuple[str, ...] = ()
    """Variables that the configuration names and that are not set."""

    @property
    def place(self) -> str:
        """Return a digest of the command or URL. Approvals are stored under it: a changed command needs a new one."""
        return sha256(msgspec.json.encode((self.command, self.args, self.url))).hexdigest()


TOKEN_ID = "jwt:"
"""Begins `Key.id` of a token; the tenant follows."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a tenant. `digest` is the SHA-256 of the key; the key itself is not stored."""

    tenant: str
    digest: bytes = field(repr=False)
    models: tuple[str, ...] = ()
    """Names or globs of routes (`Route.identity`); empty means all."""
    limits: RateLimits = NO_RATE_LIMITS
    """All keys of a tenant count together."""
    id: str = ""
    """The name of a made key, `jwt:TENANT` for a token; empty for a key of the configuration."""

    @property
    def label(self) -> str:
        """By which the audit log names it."""
        return self.id or f"configured:{self.tenant}"

    @property
    def is_token(self) -> bool:
        """Whether the client sent a token of an identity provider."""
        return self.id.startswith(TOKEN_ID)


def digest_of(key: str) -> bytes:
    """Return the digest by which a key is recognized."""
    return sha256(key.encode()).digest()


@dataclass(frozen=True, slots=True)
class Config:
    """The whole configuration. Without keys, every client that reaches the address may send requests."""

    server: Server = Server()
    limits: Limits = Limits()
    responses: Responses = Responses()
    traces: Traces = Traces()
    otel: Otel = Otel()
    dashboard: DashboardSettings = DashboardSettings()
    upstreams: tuple[Upstream, ...] = ()
    models: tuple[Model, ...] = ()
    default: str = ""
    """The model for names that no upstream has: an alias, or `upstream:model`."""
    unknown_models: UnknownModels = UnknownModels.FIRST
    keys: tuple[Key, ...] = ()
    access: Access = Access()
    network: Outbound = NO_OUTBOUND
    """The proxy and certificates of upstreams that say nothing else."""
    settings: Settings = NOTHING_SAID
    profiles: Path | None = None
    """The folder of the doctor's profiles; None if they are not used."""
    redis: str = field(default="", repr=False)
    """The URL of the Redis that a fleet shares; empty if each process works alone. It may contain a password."""
    runs: Durable = Durable()
    offer: Offer = Offer()
    up: Up = Up()
    capabilities: Overrides = NO_OVERRIDES
    mcp: tuple[McpServer, ...] = ()
    """Servers whose tools runs may use."""
    approvals: Path | None = None
    """The folder of approved tool definitions of MCP servers; without it, none is approved."""
    file: Path | None = field(default=None, compare=False)
    """The file that it was read from; None without one."""
    warnings: tuple[str, ...] = ()
    """Warnings about the file itself; `overlay.doubts` adds those about the settings."""

    @property
    def needs_key(self) -> bool:
        """Whether clients need a key or a token: keys are configured or stored (maybe none yet), or tokens accepted."""
        return bool(self.keys) or self.access.store is not KeyPlace.NONE or self.access.jwt.is_configured
