"""Builds the directory of models, and the settings of probes, from a configuration."""

from collections.abc import Mapping
from dataclasses import replace

from toolspeak import upstreams, wires
from toolspeak.config.addresses import is_near, plain_url
from toolspeak.config.shape import Config, Model, UnknownModels, Upstream
from toolspeak.engine.verdict import Depth
from toolspeak.runtime.cache import Memory, Verdicts
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.directory import ConfiguredUpstream, Directory, Route
from toolspeak.runtime.escalation import EscalationLimit
from toolspeak.runtime.learned import OWNER, Learned, Quorum
from toolspeak.runtime.outbound import Outbound, origin_of
from toolspeak.runtime.profiles import NO_PROFILES, Profiles
from toolspeak.runtime.replica_client import UpstreamAddress
from toolspeak.runtime.replicas import ReplicaPool
from toolspeak.runtime.transport import Headers, UpstreamTransport
from toolspeak.runtime.upstream import HttpUpstream
from toolspeak.upstreams import Auth


def assemble(
    config: Config,
    transport: UpstreamTransport,
    quorum: Quorum = OWNER,
    clock: Clock = CLOCK,
    before: Directory | None = None,
) -> Directory:
    """Return the directory; nothing is connected yet. `quorum` is the evidence from traffic that changes a verdict.

    `before` is the directory before a reload: what it has learned about an upstream is kept if its URL is the same, and
    the health of its servers if all of them are.
    """

    def place(upstream: Upstream) -> ConfiguredUpstream:
        learned = before.learned(upstream.name, upstream.url) if before is not None else None
        pool = before.pool(upstream.name, upstream.urls) if before is not None else None
        return _place(upstream, config, transport, learned or Learned(clock, quorum), pool)

    places = {upstream.name: place(upstream) for upstream in config.upstreams}
    aliases = {model.name: _route(model, places[model.upstream]) for model in config.models}
    aliases = {model.name: _with_others(model, aliases, places) for model in config.models}
    is_strict = config.unknown_models is UnknownModels.STRICT
    return Directory(list(places.values()), aliases, config.default, clock, is_strict=is_strict)


def outbound_of(config: Config) -> dict[str, Outbound]:
    """Return how requests to each upstream leave this machine, by origin. Those without settings are left out."""
    found = {
        origin_of(url): outbound
        for each in config.upstreams
        for url, outbound in zip(each.urls, (each.outbound, *each.more_outbound), strict=False)
    }
    return {origin: each for origin, each in found.items() if each.proxy_url or each.tls is not True}


def depths(config: Config) -> dict[str, Depth]:
    """Return the depth of probes for each upstream; without a setting only a look at remote ones, which cost money."""
    said = config.server.probe
    return {each.name: said or (Depth.FULL if _is_near(each) else Depth.LOOK) for each in config.upstreams}


def _is_near(upstream: Upstream) -> bool:
    return all(is_near(url) for url in upstream.urls)


def confirming_depths(config: Config) -> dict[str, Depth]:
    """Return the depth of probes that start because traffic contradicts a verdict.

    Without a setting a remote upstream gets two requests of one token each: the refused requests that they prevent cost
    more. A depth that the operator has set applies here too.
    """
    said = config.server.probe
    return {each.name: said or (Depth.FULL if _is_near(each) else Depth.TOKENS) for each in config.upstreams}


def verdicts(config: Config, clock: Clock = CLOCK) -> Verdicts:
    """Return the store of verdicts: Redis if one is configured, else the process. Nothing is connected yet."""
    if not config.redis:
        return Memory(clock)
    from toolspeak.runtime.shared import Shared  # noqa: PLC0415 # needs the extra `toolspeak[redis]`

    return Shared(config.redis, clock)


def _place(
    upstream: Upstream, config: Config, transport: UpstreamTransport, learned: Learned, pool: ReplicaPool | None
) -> ConfiguredUpstream:
    address = UpstreamAddress(
        upstream.url,
        _headers(upstream),
        upstream.facts.quirks,
        upstream.timeouts,
        upstream.retries,
        # Values of presets (`anthropic-version: 2023-06-01`) are public. As secrets they would be redacted in errors.
        tuple(header for name in upstreams.names() for header in upstreams.load(name).headers),
        upstream.more_urls,
        upstream.pass_traceparent,
    )
    http = HttpUpstream(transport, wires.load(upstream.wire), address, pool=pool)
    return ConfiguredUpstream(
        upstream.name,
        http,
        upstream.facts,
        upstream.settings.over(config.settings),
        learned,
        profiles=NO_PROFILES if upstream.described else _profiles(upstream, config, learned),
        providers=(upstream.preset, upstream.url),
        overrides=config.capabilities,
    )


def _profiles(upstream: Upstream, config: Config, learned: Learned) -> Profiles:
    def server_of(model: str) -> str:
        return learned.verdict(model).server or upstream.preset

    return Profiles(config.profiles, plain_url(upstream.url), server_of=server_of)


def _route(model: Model, place: ConfiguredUpstream) -> Route:
    return place.route(model.model or model.name, model.facts, model.settings, model.name)


def _with_others(model: Model, aliases: Mapping[str, Route], places: Mapping[str, ConfiguredUpstream]) -> Route:
    """Return the route of an alias with the models that may answer for it."""
    others = tuple(_named(name, aliases, places) for name in model.fallback)
    stronger = _named(model.escalate_to, aliases, places) if model.escalate_to else None
    limit = EscalationLimit(model.escalations_per_minute)
    return replace(aliases[model.name], fallbacks=others, stronger=stronger, escalations=limit)


def _named(name: str, aliases: Mapping[str, Route], places: Mapping[str, ConfiguredUpstream]) -> Route:
    """Return the route of a name that the configuration has checked. The other models of an alias do not move on."""
    if name in aliases:
        return aliases[name]
    place = max((each for each in places if name.startswith((f"{each}:", f"{each}/"))), key=len)
    return places[place].route(name[len(place) + 1 :])


def _headers(upstream: Upstream) -> Headers:
    """Return the headers of all requests, with the key in the header that the upstream expects."""
    return (*upstream.headers, *key_headers(upstream.auth, upstream.key))


def key_headers(auth: Auth, key: str) -> Headers:
    """Return the header that carries a key; none without a key, or for an upstream that takes none."""
    match auth if key else Auth.NONE:
        case Auth.NONE:
            return ()
        case Auth.BEARER:
            return (("authorization", f"Bearer {key}"),)
        case Auth.X_API_KEY | Auth.X_GOOG_API_KEY | Auth.API_KEY as header:
            return ((header.value, key),)
