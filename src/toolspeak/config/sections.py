"""Declares the tables of the file, as people write them.

If the settings of a table are used as they are written, the class that uses them declares them: `Server`, `Limits`,
`Settings`. The classes here are for tables that are resolved first: an upstream with its preset, a key with its
environment variable.

`ConfigFile` is the whole file. `file.py` reads it; the JSON Schema and the reference page are generated from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from toolspeak.config.shape import (
    MCP_SECONDS,
    NO_RATE_LIMITS,
    Access,
    DashboardSettings,
    Durable,
    Jwt,
    Limits,
    Offer,
    Otel,
    RateLimits,
    Responses,
    Server,
    Traces,
    UnknownModels,
    Up,
)
from toolspeak.declaration import setting
from toolspeak.engine.settings import NOTHING_SAID, Settings
from toolspeak.facts.model import UNKNOWN_MODEL, ModelFacts, Support
from toolspeak.facts.strategy import Capability
from toolspeak.ir.quirks import QUIRKS, Quirks
from toolspeak.runtime.escalation import PER_MINUTE
from toolspeak.runtime.outbound import NO_OUTBOUND, Outbound
from toolspeak.runtime.transport import DEFAULT_TIMEOUTS, Timeouts
from toolspeak.upstreams import Auth

RETRIES = 2
MOST_RETRIES = 10
_PRESETS = "the preset's"


@dataclass(frozen=True, slots=True)
class RedisSection:
    """`[redis]`: for several gateways that share what probes find; needs `toolspeak[redis]`."""

    url: str = setting(
        "",
        "URL of the Redis that the processes share. It may contain a password.",
        otherwise="none: each process probes for itself",
        form="redis",
        is_secret=True,
    )


@dataclass(frozen=True, slots=True)
class CellSection:
    """`[runs.cells.NAME]`: one more database of runs ([cells](runs.md#cells)). `runs.database` is the first."""

    database: str = setting(
        "",
        "URL of a PostgreSQL database. It may contain a password.",
        form="database",
        is_secret=True,
        is_required=True,
    )


@dataclass(frozen=True, slots=True)
class RunsSection:
    """`[runs]`: runs that clients of the gateway may start, and durable runs, which need `toolspeak[runs]`."""

    offer: Offer = setting(Offer(), "What clients may start.", is_inline=True)
    durable: Durable = setting(Durable(), "How runs are stored and worked on.", is_inline=True)
    cells: Mapping[str, CellSection] | None = setting(None, "More databases of runs, by name.", item="NAME")


@dataclass(frozen=True, slots=True)
class UpstreamSection:
    """`[upstreams.NAME]`: a server that has models. The name of a preset needs no other setting."""

    preset: str = setting(
        "",
        "Known server that provides the defaults.",
        otherwise="the preset of the same name, else `compatible`",
        form="preset",
    )
    url: str = setting("", "Base URL: everything before the wire's own paths.", otherwise=_PRESETS, form="url")
    urls: tuple[str, ...] = setting(
        (),
        "Base URLs of [several servers](upstreams.md#several-servers-for-a-model) with the same models, instead of "
        "`url`.",
        otherwise="only `url`",
        form="url",
    )
    wire: str = setting("", "API of the server.", otherwise=_PRESETS, form="wire")
    auth: Auth | None = setting(
        None, "Header that carries the key.", otherwise="the preset's, or that of the wire", is_secret=True
    )
    key: str = setting("", "API key of the server. Prefer `key_env`.", otherwise="none", is_secret=True)
    key_env: str = setting(
        "", "Environment variable that holds the key.", otherwise="the preset's variable", form="variable"
    )
    headers: Mapping[str, str] | None = setting(
        None,
        "Headers sent with each request. Values of 6 characters or more are redacted in errors.",
        otherwise=_PRESETS,
        is_secret=True,
    )
    outbound: Outbound = setting(NO_OUTBOUND, "Its proxy and its certificates.", is_inline=True)
    retries: int = setting(
        RETRIES, "Retries of a request that fails before its first byte.", least=0, most=MOST_RETRIES
    )
    pass_traceparent: bool = setting(
        False,
        "Send the [`traceparent`](metrics.md#spans) of each turn to the server, so that its spans belong to the same "
        "trace. Use it only for your own servers: it reveals which requests belong together.",
    )
    expose_metrics: bool = setting(
        False,
        "Serve the server's own `/metrics` at [`/upstreams/NAME/metrics`](metrics.md#metrics-of-model-servers), for "
        "endpoint pickers.",
    )
    support: Support | None = setting(
        None,
        "How the server handles tools: it returns calls, rejects tools, or leaks some calls as text.",
        otherwise=_PRESETS,
    )
    timeouts: Timeouts = setting(DEFAULT_TIMEOUTS, "Timeouts of each request.")
    settings: Settings = setting(
        NOTHING_SAID, "Settings as in `[tools]`, for the models of this upstream.", name="tools"
    )
    facts: ModelFacts = setting(UNKNOWN_MODEL, "Facts about all models of this upstream.")
    quirks: Quirks = setting(QUIRKS, "What this server requires beyond its wire.")


@dataclass(frozen=True, slots=True)
class ModelSection:
    """`[models.NAME]`: a name that clients may use for a model."""

    upstream: str = setting("", "Upstream that has the model.", otherwise="the only upstream, if there is only one")
    model: str = setting("", "Name of the model at the upstream.", otherwise="the same name")
    fallback: tuple[str, ...] = setting(
        (),
        "[Other models](upstreams.md#another-model) that answer if this model cannot: names of `[models]`, or "
        "`upstream:model`.",
    )
    escalate_to: str = setting(
        "",
        "[Stronger model](upstreams.md#a-stronger-model) that is asked for calls that this model gets wrong: a name of "
        "`[models]`, or `upstream:model`.",
        otherwise="none",
    )
    escalations_per_minute: int = setting(
        PER_MINUTE, "Turns per minute in which each worker may ask the stronger model.", least=1
    )
    support: Support | None = setting(
        None, "How its server handles tools for this model.", otherwise="that of the upstream"
    )
    settings: Settings = setting(NOTHING_SAID, "Settings as in `[tools]`, for this model.", name="tools")
    facts: ModelFacts = setting(
        UNKNOWN_MODEL, "Facts about this model, as in `[upstreams.NAME.facts]`; they override those of its upstream."
    )
    limits: RateLimits = setting(NO_RATE_LIMITS, "Limits of all clients together.", is_inline=True)


@dataclass(frozen=True, slots=True)
class KeySection:
    """`[[keys]]`: a key that clients may send. Without any, every client that reaches the address may send requests."""

    tenant: str = setting("", "Tenant that owns the key.", form="tenant", is_required=True)
    key: str = setting(
        "", "The key itself. One of `key`, `key_env` and `sha256` is required.", otherwise="none", is_secret=True
    )
    key_env: str = setting("", "Environment variable that holds the key.", otherwise="none", form="variable")
    sha256: str = setting(
        "", "SHA-256 of the key, so that the file does not contain the key.", otherwise="none", form="digest"
    )
    models: tuple[str, ...] = setting(
        (),
        "Models that the key may use: names of `[models]`, or `upstream:model`; `*` matches anything.",
        otherwise="all",
    )
    limits: RateLimits = setting(NO_RATE_LIMITS, "Its limits.", is_inline=True)


@dataclass(frozen=True, slots=True)
class TenantSection:
    """`[access.jwt.tenants.PATTERN]`: tenants whose names match, such as `team-*`. The first match counts."""

    models: tuple[str, ...] = setting(
        (),
        "Models that the tenants may use: names of `[models]`, or `upstream:model`; `*` matches anything.",
        otherwise="all",
    )
    limits: RateLimits = setting(NO_RATE_LIMITS, "The limits of each tenant.", is_inline=True)


@dataclass(frozen=True, slots=True)
class JwtSection:
    """`[access.jwt]`: [tokens](keys.md#tokens-of-your-identity-provider) of an identity provider; `toolspeak[jwt]`."""

    common: Jwt = setting(Jwt(), "Which tokens are accepted.", is_inline=True)
    tenants: Mapping[str, TenantSection] | None = setting(
        None, "Models and limits of tenants, by pattern.", item="PATTERN"
    )


@dataclass(frozen=True, slots=True)
class AccessSection:
    """`[access]`: keys that are made while gateways run, tokens, and the audit log."""

    common: Access = setting(Access(), "Where keys are stored.", is_inline=True)
    jwt: JwtSection = setting(
        JwtSection(),
        "[Tokens of your identity provider](keys.md#tokens-of-your-identity-provider), which clients may send instead "
        "of keys; requires `toolspeak[jwt]`.",
    )


@dataclass(frozen=True, slots=True)
class McpSection:
    """`[mcp.NAME]`: a server whose tools runs may use, a command or a URL ([MCP](mcp.md)); needs `toolspeak[mcp]`."""

    command: str = setting("", "Program to start.", otherwise="none")
    args: tuple[str, ...] = setting((), "Arguments of the program.")
    cwd: str = setting(
        "",
        "Folder in which the program starts. It must be a folder that the program may see.",
        otherwise="`/tmp` of its sandbox",
        form="path",
    )
    folders: tuple[str, ...] = setting((), "Folders that the program may read and change.", form="home_path")
    read: tuple[str, ...] = setting((), "Files and folders that the program may only read.", form="home_path")
    network: bool = setting(False, "Let the program use the network of this machine, including loopback.")
    sandbox: bool = setting(True, "Run the program in a sandbox; `false` runs it with all permissions of your user.")
    env: tuple[str, ...] = setting(
        (),
        "Environment variables that the program gets, in addition to `PATH` and `HOME`. It inherits no others.",
        form="variable",
    )
    set: Mapping[str, str] | None = setting(
        None, "Environment variables for the program, with their values.", is_secret=True
    )
    url: str = setting("", "URL of a server over HTTP.", otherwise="none", form="url")
    headers: Mapping[str, str] | None = setting(None, "Headers sent to that server.", is_secret=True)
    key_env: str = setting(
        "",
        "Environment variable whose value is sent to that server as a bearer token.",
        otherwise="none",
        form="variable",
    )
    tools: tuple[str, ...] = setting((), "Tools to use.", otherwise="all")
    reads: tuple[str, ...] = setting((), "Tools that only read.")
    trust: bool = setting(False, "Trust what the server declares about its tools.")
    seconds: float = setting(MCP_SECONDS, "Timeout for the start, and for each call.", unit="seconds", above=0)


@dataclass(frozen=True, slots=True)
class UpModelSection:
    """`[up.models.NAME]`: a model that `toolspeak up` serves under this name."""

    model: str = setting(
        "", "A GGUF file, a name in the store of Ollama or LM Studio, or `hf:ORG/REPO:QUANT`.", is_required=True
    )
    context: int | None = setting(None, "Context size.", unit="tokens", otherwise="that of `--context`", least=256)
    args: tuple[str, ...] = setting((), "Additional arguments of `llama-server` for this model.")


@dataclass(frozen=True, slots=True)
class UpSection:
    """`[up]`: the models that `toolspeak up` serves if the command names none ([up](up.md))."""

    common: Up = setting(Up(), "How models are loaded.", is_inline=True)
    models: Mapping[str, UpModelSection] | None = setting(None, "Models, by name.", item="NAME")


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """The whole file."""

    default: str = setting(
        "",
        "Model for names that no upstream has: a name of `[models]`, or `upstream:model`.",
        otherwise="the first model of the first upstream",
    )
    unknown_models: UnknownModels = setting(
        UnknownModels.FIRST,
        "What happens to a request for a model that no upstream has: `first` serves it with the default model, "
        "`strict` answers 404 with similar names.",
    )
    profiles: bool = setting(True, "Use the profiles that `toolspeak doctor` has saved.")
    server: Server = setting(Server(), "The gateway's address and behaviour.")
    limits: Limits = setting(Limits(), "What the gateway accepts from clients.")
    responses: Responses = setting(Responses(), "Stored responses, which OpenAI Responses clients continue by id.")
    traces: Traces = setting(Traces(), "What the gateway keeps of each turn, to explain it later.")
    otel: Otel = setting(Otel(), "OpenTelemetry spans of turns.")
    dashboard: DashboardSettings = setting(DashboardSettings(), "The pages that show turns in a browser.")
    keys: tuple[KeySection, ...] = setting((), "Keys of clients.")
    access: AccessSection = setting(AccessSection(), "Keys that are made while gateways run, and the audit log.")
    network: Outbound = setting(NO_OUTBOUND, "The proxy and the certificates of requests to upstreams.")
    tools: Settings = setting(NOTHING_SAID, "How tools are handled, for all models.")
    upstreams: Mapping[str, UpstreamSection] | None = setting(None, "Servers that have models.", item="NAME")
    models: Mapping[str, ModelSection] | None = setting(None, "Names for models.", item="NAME")
    capabilities: Mapping[str, Capability] | None = setting(
        None, "What providers, or models of them, can do. Overrides the built-in [facts](facts.md).", item="PATTERN"
    )
    runs: RunsSection = setting(RunsSection(), "Runs over HTTP, and durable runs.")
    mcp: Mapping[str, McpSection] | None = setting(None, "MCP servers.", item="NAME")
    redis: RedisSection = setting(RedisSection(), "A Redis that several gateways share.")
    up: UpSection = setting(UpSection(), "Models that `toolspeak up` runs on this machine.")
