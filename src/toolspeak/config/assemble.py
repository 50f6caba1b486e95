"""A configuration becomes the directory of models that it describes."""

from toolspeak import wires
from toolspeak.config.addresses import plain_url
from toolspeak.config.shape import Config, Model, Upstream
from toolspeak.runtime.directory import Directory, Place, Route
from toolspeak.runtime.profiles import NO_PROFILES, Profiles
from toolspeak.runtime.transport import Headers, Transport
from toolspeak.runtime.upstream import Address, HttpUpstream
from toolspeak.upstreams import Auth


def assemble(config: Config, transport: Transport) -> Directory:
    """Make the directory; nothing is connected yet."""
    places = {upstream.name: _place(upstream, config, transport) for upstream in config.upstreams}
    aliases = {model.name: _route(model, places[model.upstream]) for model in config.models}
    return Directory(list(places.values()), aliases, config.default)


def _place(upstream: Upstream, config: Config, transport: Transport) -> Place:
    address = Address(upstream.url, _headers(upstream), upstream.facts.quirks, upstream.waits, upstream.retries)
    http = HttpUpstream(transport, wires.load(upstream.wire), address)
    return Place(
        upstream.name,
        http,
        upstream.facts,
        upstream.settings.over(config.settings),
        profiles=NO_PROFILES if upstream.described else Profiles(config.profiles, plain_url(upstream.url)),
        providers=(upstream.preset, upstream.url),
        overrides=config.capabilities,
    )


def _route(model: Model, place: Place) -> Route:
    return place.route(model.model or model.name, model.facts, model.settings, model.name)


def _headers(upstream: Upstream) -> Headers:
    """Write the headers that carry the key."""
    match upstream.auth if upstream.key else Auth.NONE:
        case Auth.NONE:
            return upstream.headers
        case Auth.BEARER:
            return (*upstream.headers, ("authorization", f"Bearer {upstream.key}"))
        case Auth.X_API_KEY | Auth.X_GOOG_API_KEY as header:
            return (*upstream.headers, (header.value, upstream.key))
