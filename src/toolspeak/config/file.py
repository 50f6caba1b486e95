"""Reads and checks the file `toolspeak.toml`. All problems in it are reported at once, each with its line."""

import os
import re
import stat
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from toolspeak import upstreams
from toolspeak.config.access import read_access
from toolspeak.config.addresses import same_url, url_problem
from toolspeak.config.declared import read_given, read_section
from toolspeak.config.environment import (
    approvals_folder,
    config_file,
    key_in,
    profiles_folder,
    renamed,
    state_folder,
)
from toolspeak.config.mcp import read_mcp
from toolspeak.config.options import NO_OPTIONS, Options
from toolspeak.config.overlay import is_named, resolves, unresolved, with_options
from toolspeak.config.problems import Problems, find_lines, not_one_of
from toolspeak.config.sections import (
    CellSection,
    KeySection,
    ModelSection,
    RedisSection,
    RunsSection,
    UpModelSection,
    UpstreamSection,
)
from toolspeak.config.shape import (
    DEFAULT_CELL,
    Access,
    Config,
    DashboardSettings,
    Durable,
    Key,
    Limits,
    Model,
    Otel,
    Responses,
    Server,
    Traces,
    UnknownModels,
    Up,
    UpModel,
    Upstream,
    digest_of,
)
from toolspeak.config.table import Table, secret_problem
from toolspeak.config.templates import register_template
from toolspeak.config.upstream import ANY, Headers, build_upstream
from toolspeak.engine.settings import Settings
from toolspeak.errors import BadConfig
from toolspeak.facts.model import UNKNOWN_MODEL, ModelFacts, Source, Support
from toolspeak.facts.strategy import Capability, Override, Overrides, key_problem
from toolspeak.ir.quirks import Quirks
from toolspeak.runtime.outbound import Outbound
from toolspeak.upstreams import Auth

LARGEST = 1 << 20
"""Bytes of the file."""
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
"""Permissions of users other than the owner."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OURS = ("connection", "content-encoding", "content-length", "content-type", "host", "transfer-encoding")
"""Headers that the wire and the HTTP client write: a configured one would contradict the body or the connection."""
_RESOLVED = ("preset", "url", "urls", "auth", "key", "key_env", "headers", "support", "facts", "quirks")
"""Settings of an upstream that depend on its preset or on the environment; the others are used as they are written."""
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
_SYNTAX = re.compile(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", re.DOTALL)


def load(path: str | Path | None, environ: Mapping[str, str], options: Options = NO_OPTIONS) -> Config:
    """Return the configuration: the file, if there is one, overridden by the environment and by the options.

    Raises `BadConfig` with the problems of all three, so that a user need not fix them one by one.
    """
    file = config_file(None if path is None else Path(path), environ)
    problems: list[str] = []
    config = Config(
        profiles=profiles_folder(environ),
        runs=Durable(folder=state_folder(environ)),
        access=Access(folder=state_folder(environ)),
        approvals=approvals_folder(environ),
    )
    try:
        config = config if file is None else _read(file, environ)
    except BadConfig as error:
        problems += error.problems
    try:
        config = with_options(config, options, environ)
    except BadConfig as error:
        problems += error.problems
    if problems:
        raise BadConfig(*problems)
    return replace(config, file=file, warnings=(*config.warnings, *renamed(environ)))


def parse_config(text: str, name: str, environ: Mapping[str, str], mode: int = 0) -> Config:
    """Return the configuration of a text, read as the file of that name with these permissions. Raises `BadConfig`.

    A file with keys that other users may open gives a warning, not an error.
    """
    try:
        document, lines = tomllib.loads(text), find_lines(text)
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(_syntax_error(name, text, str(error))) from None
    except RecursionError:  # tomllib parses nested arrays recursively
        raise BadConfig(f"{name}: is nested too deeply") from None
    # Reading notes problems and continues with None; unknown fields are found by `root.end`, when all known fields are
    # taken out; `problems.end` then raises everything at once. So no value of a bad file is ever used.
    problems = Problems(name, lines)
    root = Table(document, (), problems)
    config = _config(root, environ)
    root.end()
    problems.end()
    if problems.secrets and mode & _OTHERS and os.name == "posix":
        doubt = f"{name}: holds keys, and other users may open it (mode {stat.S_IMODE(mode):o}): chmod 600 {name}"
        return replace(config, warnings=(doubt,))
    return config


def _syntax_error(name: str, text: str, error: str) -> str:
    """Return the message of tomllib in our form, with the line in front: `toolspeak.toml:7: …`."""
    found = _SYNTAX.fullmatch(error)
    if found is None:
        return f"{name}: {error}"
    line: str | int = found[2] or text.rstrip().count("\n") + 1
    return f"{name}:{line}: {found[1]}"


def _read(file: Path, environ: Mapping[str, str]) -> Config:
    data, mode = b"", 0
    try:
        with file.open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode  # of the open file: the path could lead to another one by now
            data = opened.read(LARGEST + 1)
    except OSError as error:
        raise BadConfig(f"{file}: cannot be read: {error.strerror}; check its path, and TOOLSPEAK_CONFIG") from None
    if len(data) > LARGEST:
        raise BadConfig(f"{file}: is over {LARGEST} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadConfig(f"{file}:{line}: is not UTF-8") from None
    return parse_config(text, str(file), environ, mode)


def _config(root: Table, environ: Mapping[str, str]) -> Config:
    said = {name: _upstream(name, table, environ) for name, table in root.tables("upstreams").items()}
    runs = _runs(root.table("runs"))
    config = Config(
        server=read_section(root.table("server"), Server),
        limits=read_section(root.table("limits"), Limits),
        responses=read_section(root.table("responses"), Responses),
        traces=read_section(root.table("traces"), Traces),
        otel=read_section(root.table("otel"), Otel),
        dashboard=read_section(root.table("dashboard"), DashboardSettings),
        upstreams=tuple(said.values()),
        models=tuple(_model(name, table, said) for name, table in root.tables("models").items()),
        default=root.text("default") or "",
        unknown_models=root.choice("unknown_models", UnknownModels) or UnknownModels.FIRST,
        keys=_keys(root, environ),
        access=replace(read_access(root.table("access")), folder=state_folder(environ)),
        network=_network(root.table("network")),
        settings=read_section(root.table("tools"), Settings),
        profiles=None if root.flag("profiles") is False else profiles_folder(environ),
        redis=_redis(root.table("redis")),
        runs=replace(runs.durable, folder=state_folder(environ)),
        offer=runs.offer,
        up=_up(root.table("up")),
        capabilities=_capabilities(root.table("capabilities")),
        mcp=tuple(read_mcp(name, table, environ) for name, table in root.tables("mcp").items()),
        approvals=approvals_folder(environ),
    )
    _check_tls(root, config.server)
    for model in config.models:
        for index, name in enumerate(model.fallback):
            if problem := _other_model_problem(config, model, name):
                root.problems.add(("models", model.name, "fallback", index), problem)
        if model.escalate_to and (problem := _other_model_problem(config, model, model.escalate_to)):
            root.problems.add(("models", model.name, "escalate_to"), problem)
    if config.default and not resolves(config, config.default):
        root.bad("default", unresolved(config, config.default))
    return config


def _check_tls(root: Table, server: Server) -> None:
    """Note if the certificate and the key of the gateway cannot be used together."""
    tls = server.tls
    if root.problems.has_field(("server", "tls", "certificate")) and not tls.is_on:
        return  # its value is wrong, and noted
    if not tls.is_on:
        for name in (each for each in ("key", "client_ca") if getattr(tls, each)):
            root.problems.add(("server", "tls", name), "is given without certificate: give both")
        return
    try:
        tls.context()
    except BadConfig as error:
        setting, _, problem = str(error).partition(": ")
        root.problems.add(tuple(setting.split(".")), problem)


def _other_model_problem(config: Config, model: Model, name: str) -> str | None:
    """Return what is wrong with the name of a model that answers for another one."""
    if name == model.name:
        return "is the model itself: name another one"
    return None if is_named(config, name) else unresolved(config, name)


# ---------------------------------------------------------------- upstreams


def _upstream(name: str, table: Table, environ: Mapping[str, str]) -> Upstream:
    """Read one of `[upstreams]`. If it has problems, they are noted and the result is never used."""
    if not _NAME.fullmatch(name):
        table.problems.add(table.path, "an upstream's name is letters, digits and . _ -")
    preset, url, urls = _preset_and_urls(name, table)
    section = UpstreamSection(
        preset,
        url,
        urls,
        auth=_auth(table),
        key=_secret(table, environ),
        headers=dict(_headers(table)),
        **read_given(table, UpstreamSection, skip=_RESOLVED),
    )
    table.problems.secrets += "@" in section.outbound.proxy
    try:
        built = build_upstream(name, section, environ)
    except BadConfig as error:
        table.problems.add(table.path, str(error))
        built = Upstream(name, url)
    facts, quirks = _facts(table, built.facts), table.table("quirks")
    described = facts != built.facts
    names = facts.said | {f"quirks.{each}" for each in quirks.left}
    facts = replace(facts, quirks=replace(facts.quirks, **read_given(quirks, Quirks)), said=names)
    return replace(built, facts=facts, described=described)


def _preset_and_urls(name: str, table: Table) -> tuple[str, str, tuple[str, ...]]:
    """Return preset, `url` and `urls`. The preset is the one that is set, else the one of that name, else `compatible`.

    Of `url` and `urls` one is empty at least.
    """
    known, said = upstreams.names(), {*table.left}
    preset, url, urls = table.one_of("preset", known), table.text("url", url_problem) or "", _urls(table, said)
    if preset is None and "preset" in said:
        return ANY, url, urls
    preset = preset or (name if name in known else ANY)
    if not {"url", "urls"} & said and not upstreams.load(preset).url:
        preset_said = "preset" in said or name in known
        form = upstreams.load(preset).url_form
        none = f"is missing: it looks like {form}" if form else "is missing: this preset has none"
        missing = none if preset_said else f"is missing, and {not_one_of(name, known)}"
        table.bad("url", missing)
    return preset, url, urls


def _urls(table: Table, said: Collection[str]) -> tuple[str, ...]:
    """Read `urls`: at least one, each server once, and not beside `url`."""
    if "urls" not in said:
        table.texts("urls")
        return ()
    urls = table.texts("urls", url_problem) or ()
    if "url" in said:
        table.bad("urls", "is given together with url: remove one of the two")
        return ()
    if not urls:
        table.bad("urls", "is empty: name at least one server")
    for number, url in enumerate(urls):
        if any(same_url(url, other) for other in urls[:number]):
            table.problems.add((*table.path, "urls", number), "is there twice")
    return urls


def _auth(table: Table) -> Auth | None:
    """Read the kind of header. Messages do not show a wrong value, because people write the key there by mistake."""
    known = [each.value for each in Auth]
    value = table.text("auth", lambda value: None if value in known else f"is not one of {', '.join(known)}")
    return None if value is None else Auth(value)


def _headers(table: Table) -> Headers:
    """Read `headers`. Their values may be keys, so messages do not show them."""
    inner = table.table("headers")
    for name in inner.left:
        if not _HEADER.fullmatch(name):
            inner.bad(name, "is not the name of a header")
        elif name.lower() in _OURS:
            inner.bad(name, "is a header that is written for each request")
    return tuple((name.lower(), value) for name in inner.left if (value := inner.secret(name)) is not None)


# ---------------------------------------------------------------- models and keys


def _model(name: str, table: Table, known: Mapping[str, Upstream]) -> Model:
    """Read one of `[models]`. If there is only one upstream, `upstream` may be left out.

    An alias that begins with the name of an upstream (`groq:fast`) is refused: permissions could not distinguish it
    from a model of that upstream.
    """
    if owner := next((each for each in known if name.startswith((f"{each}:", f"{each}/"))), ""):
        table.problems.add(table.path, f"is how clients name a model of the upstream {owner!r}: choose another name")
    if len(known) == 1 and "upstream" not in table.left:
        upstream: str | None = next(iter(known))
    else:
        upstream = table.need("upstream", "whose model it is", lambda value: _unknown_upstream(value, known))
    return Model(
        name,
        upstream or "",
        table.text("model") or "",
        read_section(table.table("tools"), Settings),
        _facts(table, UNKNOWN_MODEL),
        **read_given(table, ModelSection, skip=("upstream", "model", "support", "tools", "facts")),
    )


def _unknown_upstream(name: str, known: Mapping[str, Upstream]) -> str | None:
    if name in known:
        return None
    if name in upstreams.names():
        return f"{name!r} is a preset, but no upstream yet: add [upstreams.{name}]"
    return not_one_of(name, [*known]) if known else f"{name!r} is no upstream: there is no [upstreams.{name}]"


def _keys(root: Table, environ: Mapping[str, str]) -> tuple[Key, ...]:
    """Read `[[keys]]`. Two tenants cannot have the same key: it would not be clear whose limits apply."""
    tenants: dict[bytes, str] = {}
    keys: list[Key] = []
    for table in root.rows("keys"):
        if (key := _key(table, environ)) is None:
            continue
        if tenants.setdefault(key.digest, key.tenant) != key.tenant:
            table.bad("tenant", f"has the same key as {tenants[key.digest]!r}")
        keys.append(key)
    return tuple(keys)


def _key(table: Table, environ: Mapping[str, str]) -> Key | None:
    """Read one of `[[keys]]`. The result has only the digest of the key."""
    if not {"key", "key_env", "sha256"} & {*table.left}:
        table.bad("key", "is missing: set key, key_env or sha256")
    key = _secret(table, environ, "sha256")
    if "tenant" not in table.left:
        table.bad("tenant", "is missing: whose key it is")
    given = read_given(table, KeySection, skip=("key", "key_env"))
    digest = given.pop("sha256", "")
    if "tenant" not in given or not (key or digest):
        return None
    return Key(digest=bytes.fromhex(digest) if digest else digest_of(key), **given)


def _secret(table: Table, environ: Mapping[str, str], *others: str) -> str:
    """Read `key`, or the value of the variable that `key_env` names; empty if neither is set."""
    given = [name for name in ("key", "key_env", *others) if name in table.left]
    if len(given) > 1:
        table.bad(given[0], f"is given together with {given[1]}: remove one of the two")
    key, variable = table.secret("key"), table.text("key_env", lambda name: _variable_problem(name, environ))
    return key or key_in(environ, variable or "")


def _variable_problem(name: str, environ: Mapping[str, str]) -> str | None:
    """Return what is wrong with `key_env`. A value that is no variable name may be a key, so it is not shown."""
    if not _VARIABLE.fullmatch(name):
        return "is not the name of an environment variable, in capitals (its value is not shown)"
    if not key_in(environ, name):
        return f"the environment variable {name} is not set"
    problem = secret_problem(key_in(environ, name))
    return f"the environment variable {name} {problem}" if problem else None


# ---------------------------------------------------------------- facts, runs, Redis


def _facts(table: Table, known: ModelFacts) -> ModelFacts:
    """Read `support` and `facts` of an upstream or a model, and lay them over the known facts.

    The facts record which fields were given: a field that is set to its default still overrides the built-in tables.
    """
    given = read_given(table.table("facts"), ModelFacts)
    if "dialect" in given:
        given["leaks_as"] = given["dialect"]
    if "response_template" in given:
        given["leaks_as"] = register_template(given["response_template"])
    if support := table.choice("support", Support):
        given |= {"tools": support, "source": Source.SAID}
    names = given.keys() - {"source"}
    return replace(known, **given, said=known.said | names)


def _capabilities(table: Table) -> Overrides:
    """Read `[capabilities]`, which overrides the built-in table of providers (CAP-1)."""
    rows: list[Override] = []
    for key in table.left:
        if problem := key_problem(key):
            table.bad(key, problem)
        if capability := table.choice(key, Capability):
            rows.append(Override(key, capability))
    return Overrides(tuple(rows))


def _network(table: Table) -> Outbound:
    network = read_section(table, Outbound)
    table.problems.secrets += "@" in network.proxy
    return network


def _redis(table: Table) -> str:
    url = read_section(table, RedisSection).url
    table.problems.secrets += "@" in url  # credentials in a URL count as a key that is written in the file
    return url


_CELL: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")


def _runs(table: Table) -> RunsSection:
    section = RunsSection(**read_given(table, RunsSection, skip=("cells",)))
    cells = tuple((name, _cell(name, inner)) for name, inner in table.tables("cells").items())
    table.problems.secrets += any("@" in url for url in (section.durable.database, *(url for _, url in cells)))
    return replace(section, durable=replace(section.durable, cells=cells))


def _cell(name: str, table: Table) -> str:
    if not _CELL.fullmatch(name) or name == DEFAULT_CELL:
        table.problems.add(table.path, f"{name!r} is not a name of up to 32 small letters, digits and -, or is taken")
    if "database" not in table.left:
        table.bad("database", "is missing: the URL of the cell's PostgreSQL")
    return read_section(table, CellSection).database


def _up(table: Table) -> Up:
    models = tuple(_up_model(name, inner) for name, inner in table.tables("models").items())
    return replace(read_section(table, Up), models=models)


def _up_model(name: str, table: Table) -> UpModel:
    if "model" not in table.left:
        table.bad("model", 'is missing: a GGUF file, a name of a local store, or "hf:ORG/REPO:QUANT"')
    section = read_section(table, UpModelSection)
    return UpModel(name, section.model, section.context, section.args)
