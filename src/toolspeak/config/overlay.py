"""Lays the command line and the environment over the file: command line > environment > file > default."""

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from toolspeak import upstreams
from toolspeak.config.addresses import reaches_this_machine_only, same_server, same_url, upstream_name
from toolspeak.config.environment import options_in
from toolspeak.config.options import NO_OPTIONS, Options, option_problems
from toolspeak.config.problems import did_you_mean
from toolspeak.config.proxies import with_jwks_outbound, with_outbound
from toolspeak.config.sections import UpstreamSection
from toolspeak.config.shape import Config, Driver, Key, LogForm, UnknownModels, Upstream, digest_of
from toolspeak.config.upstream import ANY, build_upstream, preset_of, with_wire
from toolspeak.engine.verdict import Depth
from toolspeak.errors import BadConfig

TENANT = "default"
"""The tenant of a key from `--key` or TOOLSPEAK_KEY."""
NOTHING: Mapping[str, str] = {}


def with_options(config: Config, options: Options = NO_OPTIONS, environ: Mapping[str, str] = NOTHING) -> Config:
    """Return the configuration, overridden by the options and the environment. Raises `BadConfig`.

    An upstream that the options name becomes the only one, and every model name is routed to it. While there is no
    upstream, `wire` and `upstream_key` have no effect: pass them again with the upstream that was found.
    """
    if problems := option_problems(options):
        raise BadConfig(*problems)
    said = options.over(options_in(environ))
    config = _with_upstream(config, said, environ)
    config = _with_settings(config, said)
    resolved = tuple(with_outbound(each, config.network, environ) for each in config.upstreams)
    access = with_jwks_outbound(config.access, config.network, environ)
    config = replace(config, upstreams=resolved, access=access)
    server = config.server
    probe = Depth(said.probe) if said.probe else server.probe
    port = server.port if said.port is None else said.port
    workers = server.workers if said.workers is None else said.workers
    log = LogForm(said.log) if said.log else server.log
    driver = Driver(said.driver) if said.driver else server.driver
    host = said.host or server.host
    server = replace(server, host=host, port=port, workers=workers, driver=driver, probe=probe, log=log)
    keys = (Key(TENANT, digest_of(said.key)),) if said.key else config.keys
    profiles = None if said.profiles is False else config.profiles
    redis, default = said.redis_url or config.redis, _default(config, said.model)
    unknown = UnknownModels(said.unknown_models) if said.unknown_models else config.unknown_models
    config = replace(config, unknown_models=unknown)
    runs = replace(config.runs, database=said.runs_database or config.runs.database)
    if runs.cells and not runs.database:
        raise BadConfig("runs.database: is missing: it is the default cell, to which [runs.cells] adds others")
    return replace(config, server=server, keys=keys, redis=redis, runs=runs, default=default, profiles=profiles)


def resolves(config: Config, name: str) -> bool:
    """Return whether a name determines its upstream."""
    return len(config.upstreams) <= 1 or is_named(config, name)


def unresolved(config: Config, name: str) -> str:
    """Return the message for a name that does not determine its upstream, with one that would."""
    names = [model.name for model in config.models]
    example = f"{config.upstreams[0].name}:{name}"
    meant = did_you_mean(name, names)
    return f"{name!r} is not one of [models], and does not name its upstream, such as {example!r}{meant}"


def doubts(config: Config) -> list[str]:
    """Return warnings: settings that are legal but probably a mistake, such as a key that is sent over http."""
    found = [*config.warnings]
    for upstream in config.upstreams:
        presets = (upstreams.load(name) for name in upstreams.names())
        variable = next((each.key_env for each in presets if each.key_env and same_server(each.url, upstream.url)), "")
        if variable and not upstream.key:
            found.append(f"upstream {upstream.name!r} has no key: set {variable}, or set key or key_env in the file")
        open_urls = (url for url in upstream.urls if url.startswith("http:") and not reaches_this_machine_only(url))
        if upstream.key and any(open_urls):
            by = " and its proxy" if upstream.outbound.proxy_url else ""
            found.append(f"upstream {upstream.name!r} gets its key over http, readable on the way{by}: use https")
    jwks_url = config.access.jwt.jwks_url
    if jwks_url.lower().startswith("http:") and not reaches_this_machine_only(jwks_url):
        found.append("access.jwt.jwks_url is http: keys that are replaced on the way accept forged tokens; use https")
    return found + _useless_patterns(config)


def _useless_patterns(config: Config) -> list[str]:
    """Return warnings for permissions of keys and tokens that match no route.

    Permissions are matched against an alias or `upstream:model`. A bare model name once matched too, so existing files
    may still have one.
    """
    aliases = [model.name for model in config.models]
    prefixes = [f"{upstream.name}:" for upstream in config.upstreams]
    permitted = [(f"the key of {key.tenant!r}", key.models) for key in config.keys]
    permitted += [(f"access.jwt.tenants.{rule.pattern!r}", rule.models) for rule in config.access.jwt.tenants]
    return [
        f"{who} permits {pattern!r}, which is not a name of [models]; "
        f"a model of an upstream is permitted as {prefixes[0] if prefixes else 'upstream:'}{pattern}"
        for who, models in permitted
        for pattern in models
        if ":" not in pattern and pattern != "*" and not any(fnmatchcase(name, pattern) for name in aliases)
    ]


def _with_upstream(config: Config, said: Options, environ: Mapping[str, str]) -> Config:
    if said.names_upstream:
        return _with_only(config, _changed(_known(config, said) or _built(said, environ), said))
    if not config.upstreams or (said.wire is None and said.upstream_key is None):
        return config
    if len(config.upstreams) > 1:
        names = ", ".join(each.name for each in config.upstreams)
        raise BadConfig(f"--wire, --upstream-key: there are several upstreams ({names}); pass --upstream URL with them")
    return replace(config, upstreams=tuple(_changed(each, said) for each in config.upstreams))


def _known(config: Config, said: Options) -> Upstream | None:
    """Return the upstream of the file that the options name, so that its settings are kept; None if there is none."""
    if said.upstream is None:
        return next((each for each in config.upstreams if each.name == said.preset), None)
    url = said.upstream
    return next((each for each in config.upstreams if any(same_url(one, url) for one in each.urls)), None)


def _built(said: Options, environ: Mapping[str, str]) -> Upstream:
    url = said.upstream or ""
    preset = said.preset or preset_of(url)
    if preset == ANY and not url:
        raise BadConfig(f"--preset: {ANY!r} has no URL of its own; pass --upstream URL")
    name = upstream_name(url) if preset == ANY else preset
    return build_upstream(name, UpstreamSection(preset, url), environ)


def _changed(upstream: Upstream, said: Options) -> Upstream:
    upstream = with_wire(upstream, said.wire or upstream.wire)
    return replace(upstream, key=said.upstream_key or upstream.key)


def _with_only(config: Config, chosen: Upstream) -> Config:
    """Return the configuration with one upstream, its models, and the default if that still exists."""
    models = tuple(model for model in config.models if model.upstream == chosen.name)
    only = replace(config, upstreams=(chosen,), models=models)
    # A default that belongs to another upstream would be sent to this one as a model name that it does not have.
    was_alone = [each.name for each in config.upstreams] == [chosen.name]
    return only if was_alone or is_named(only, config.default) else replace(only, default="")


def _with_settings(config: Config, said: Options) -> Config:
    """Lay the settings over the general ones and those of each upstream and model: an option applies to all of them.

    Otherwise a setting of a model in the file would override the command line, because the more specific one wins.
    """
    settings = said.settings
    return replace(
        config,
        settings=settings.over(config.settings),
        upstreams=tuple(replace(each, settings=settings.over(each.settings)) for each in config.upstreams),
        models=tuple(replace(each, settings=settings.over(each.settings)) for each in config.models),
    )


def _default(config: Config, model: str | None) -> str:
    if model is None:
        return config.default
    if not resolves(config, model):
        raise BadConfig(f"--model: {unresolved(config, model)}")
    return model


def is_named(config: Config, name: str) -> bool:
    """Return whether a name is an alias, or begins with the name of an upstream."""
    if any(model.name == name for model in config.models):
        return True
    return name.startswith(tuple(f"{each.name}{mark}" for each in config.upstreams for mark in ":/"))
