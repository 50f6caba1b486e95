"""The sections of the file, each read into its value. Every field is optional; its default stands in `shape.py`."""

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from toolspeak import dialects
from toolspeak.config.addresses import (
    database_problem,
    host_name_problem,
    host_problem,
    origin_problem,
    redis_problem,
)
from toolspeak.config.environment import key_in
from toolspeak.config.problems import not_one_of
from toolspeak.config.shape import Approval, Durable, Key, Limits, Offer, Server
from toolspeak.config.table import Table, secret_problem
from toolspeak.engine.plan import Mode, Release, Settings, Strategy
from toolspeak.engine.verdict import Depth
from toolspeak.errors import UnknownName
from toolspeak.facts.capability import Capability, Override, Overrides, key_problem
from toolspeak.facts.model import Constrain, ModelFacts, Source, Support
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.quirks import IdForm, Quirks
from toolspeak.runtime.transport import Timeouts
from toolspeak.toolset.toolset import MOST_TOOLS
from toolspeak.wires.limits import RequestLimits

Value = TypeVar("Value", Server, Limits, RequestLimits, Durable, Offer, Timeouts, ModelFacts, Quirks)
MOST_RETRIES = 10
MOST_PORT = 65535
_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_DIGEST = re.compile(r"[0-9A-Fa-f]{64}")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")


def read_server(table: Table) -> Server:
    """Read `[server]`."""
    return changed(
        Server(),
        host=table.text("host", host_problem),
        port=table.integer("port", 0, MOST_PORT),
        hosts=table.texts("hosts", host_name_problem),
        origins=table.texts("origins", origin_problem),
        keep_alive=table.seconds("keep_alive"),
        shutdown=table.seconds("shutdown"),
        probe=table.choice("probe", Depth),
        probe_requests=table.integer("probe_requests", 0),
    )


def read_redis(table: Table) -> str:
    """Read `[redis]`; its URL may hold a password."""
    url = table.text("url", redis_problem) or ""
    table.problems.secrets += "@" in url
    return url


def read_runs(table: Table, folder: Path | None) -> Durable:
    """Read `[runs]`; its URL may hold a password."""
    url = table.text("database", database_problem)
    table.problems.secrets += "@" in (url or "")
    return changed(
        Durable(folder=folder),
        database=url,
        lease=table.seconds("lease"),
        keep=table.seconds("keep_days"),
        concurrent=table.integer("concurrent", 1),
        imports=table.texts("imports"),
        unsafe_shell=table.flag("unsafe_shell"),
        disk_mib=table.integer("disk_mib", 1),
    )


def read_offer(table: Table) -> Offer:
    """Read what `[runs]` says of clients."""
    return changed(
        Offer(),
        enabled=table.flag("enabled"),
        tools=table.texts("tools"),
        folders=table.texts("folders", _folder_problem),
        approval=table.choice("approval", Approval),
        rounds=table.integer("rounds", 1),
        live=table.integer("live", 1),
    )


def _folder_problem(folder: str) -> str | None:
    return None if Path(folder).is_absolute() else f"{folder!r} is not an absolute path"


def read_limits(table: Table) -> Limits:
    """Read `[limits]`."""
    return changed(
        Limits(),
        body_bytes=table.integer("body_bytes", 1),
        header_bytes=table.integer("header_bytes", 1),
        header_seconds=table.seconds("header_seconds"),
        body_idle_seconds=table.seconds("body_idle_seconds"),
        concurrent=table.integer("concurrent", 1),
        connections=table.integer("connections", 1),
        connections_per_address=table.integer("connections_per_address", 1),
        request=_read_request_limits(table),
        memory_bytes=table.integer("memory_bytes", 1),
        buffered_bytes=table.integer("buffered_bytes", 1),
        loop_delay_seconds=table.seconds("loop_delay_seconds"),
    )


def _read_request_limits(table: Table) -> RequestLimits:
    """Read what one request may contain; it is in the same table as the other limits."""
    return changed(
        RequestLimits(),
        json_values=table.integer("json_values", 1),
        json_escapes=table.integer("json_escapes", 1),
        messages=table.integer("messages", 1),
        parts=table.integer("parts", 1),
        text_characters=table.integer("text_characters", 1),
        tools=table.integer("tools", 1, MOST_TOOLS),
        tools_bytes=table.integer("tools_bytes", 1),
        schema_bytes=table.integer("schema_bytes", 1),
    )


def read_timeouts(table: Table) -> Timeouts:
    """Read `timeouts` of an upstream."""
    return changed(Timeouts(), **{field.name: table.seconds(field.name) for field in fields(Timeouts)})


def read_settings(table: Table) -> Settings:
    """Read `tools`: of all, of an upstream, of a model (MODE-1)."""
    return Settings(
        mode=table.choice("mode", Mode),
        chat=table.flag("chat"),
        strategy=table.choice("strategy", Strategy),
        dialect=table.text("dialect", _dialect_problem),
        release=table.choice("release", Release),
        retries=table.integer("retries", 0, MOST_RETRIES),
        rescue=table.flag("rescue"),
        keep_system=table.flag("keep_system"),
        few_shot=table.flag("few_shot"),
        drop_unrelated_calls=table.flag("drop_unrelated_calls"),
        drop_unmentioned_arguments=table.flag("drop_unmentioned_arguments"),
        request_missing_calls=table.flag("request_missing_calls"),
        accept_untaught_calls=table.flag("accept_untaught_calls"),
        confirm_tool_fit=table.flag("confirm_tool_fit"),
        answer_tool=table.flag("answer_tool"),
        constraint=table.choice("constraint", Constrain),
    )


def read_facts(table: Table, known: ModelFacts) -> ModelFacts:
    """Read `support` and `facts` of an upstream or a model, over what is known already."""
    inner = table.table("facts")
    dialect = inner.text("dialect", _dialect_problem)
    return heard(
        known,
        tools=table.choice("support", Support),
        dialect=dialect,
        leaks_as=dialect,
        decides=inner.flag("decides"),
        calls_in_reasoning=inner.flag("calls_in_reasoning"),
        starts_in_reasoning=inner.flag("starts_in_reasoning"),
        few_shot=inner.flag("few_shot"),
        answer_tool=inner.flag("answer_tool"),
        context_tokens=inner.integer("context_tokens", 1),
        constraint=inner.choice("constraint", Constrain),
    )


def read_quirks(table: Table, known: Quirks) -> Quirks:
    """Read `quirks` of an upstream."""
    return changed(
        known,
        ids=table.choice("ids", IdForm),
        null_content=table.flag("null_content"),
        image_results=table.flag("image_results"),
        reasoning_history=table.flag("reasoning_history"),
        constraint=table.choice("constraint", ConstraintForm),
    )


def read_capabilities(table: Table) -> Overrides:
    """Read `[capabilities]`: what providers and models can do, against the table of providers (CAP-1)."""
    rows: list[Override] = []
    for key in table.left:
        if problem := key_problem(key):
            table.bad(key, problem)
        if capability := table.choice(key, Capability):
            rows.append(Override(key, capability))
    return Overrides(tuple(rows))


def read_key(table: Table, environ: Mapping[str, str]) -> Key | None:
    """Read one of `[[keys]]`: the key itself is not kept."""
    if not {"key", "key_env", "sha256"} & {*table.left}:
        table.bad("key", "is missing: say key, key_env or sha256")
    key, digest = read_secret(table, environ, "sha256"), table.text("sha256", _digest_problem)
    tenant = table.need("tenant", "whose key it is", _tenant_problem)
    models = table.texts("models") or ()
    rate, most = table.integer("requests_per_minute", 1), table.integer("concurrent", 1)
    if not tenant or not (key or digest):
        return None
    return Key(tenant, bytes.fromhex(digest) if digest else digest_of(key), models, rate, most)


def read_secret(table: Table, environ: Mapping[str, str], *others: str) -> str:
    """Read `key`, or the variable that `key_env` names; nothing if neither is said."""
    said = [name for name in ("key", "key_env", *others) if name in table.left]
    if len(said) > 1:
        table.bad(said[0], f"stands beside {said[1]}: say one of the two")
    key, variable = table.secret("key"), table.text("key_env", lambda name: _variable_problem(name, environ))
    return key or key_in(environ, variable or "")


def digest_of(key: str) -> bytes:
    """Return what is kept of a key."""
    return sha256(key.encode()).digest()


def heard(known: ModelFacts, **said: Any) -> ModelFacts:  # noqa: ANN401 # the fields of the facts
    """Return the facts with what was said; that is remembered, for a default may be said as well."""
    names = {name for name, each in said.items() if each is not None}
    source = Source.SAID if "tools" in names else known.source
    return changed(known, **said, source=source, said=known.said | names)


def changed(value: Value, **said: Any) -> Value:  # noqa: ANN401 # the fields of five dataclasses
    """Return the value with what was said."""
    return replace(value, **{name: each for name, each in said.items() if each is not None})


def _dialect_problem(name: str) -> str | None:
    """Look for one dialect: to list them all takes long, and a file may have many models."""
    try:
        dialects.load(name)
    except UnknownName:
        return not_one_of(name, dialects.names())
    return None


def _tenant_problem(tenant: str) -> str | None:
    return None if _TENANT.fullmatch(tenant) else f"{tenant!r} is not 1 to 64 letters, digits and . _ @ -"


def _digest_problem(digest: str) -> str | None:
    return None if _DIGEST.fullmatch(digest) else "is not the SHA-256 of a key: 64 hexadecimal digits"


def _variable_problem(name: str, environ: Mapping[str, str]) -> str | None:
    """Speak of a variable; what does not look like the name of one may be a key, and is not shown."""
    if not _VARIABLE.fullmatch(name):
        return "is not the name of an environment variable, in capitals (its value is not shown)"
    if not key_in(environ, name):
        return f"the environment variable {name} is not set"
    problem = secret_problem(key_in(environ, name))
    return f"the environment variable {name} {problem}" if problem else None
