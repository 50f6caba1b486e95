"""Builds an upstream from its section of the file, or from options, and from its preset."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from toolspeak import upstreams
from toolspeak.config.addresses import same_server, same_url
from toolspeak.config.environment import key_in
from toolspeak.config.sections import UpstreamSection
from toolspeak.config.shape import Upstream
from toolspeak.config.table import secret_problem
from toolspeak.errors import BadConfig
from toolspeak.facts.model import ModelFacts, Source
from toolspeak.upstreams import Preset

ANY = "compatible"
"""The preset of servers that have no preset of their own."""
Headers = tuple[tuple[str, str], ...]


def preset_of(url: str) -> str:
    """Return the preset that has this URL, else `compatible`."""
    presets = ((name, upstreams.load(name)) for name in upstreams.names())
    return next((name for name, preset in presets if preset.url and same_url(preset.url, url)), ANY)


def build_upstream(name: str, section: UpstreamSection, environ: Mapping[str, str]) -> Upstream:
    """Return the upstream of a section, completed by its preset. Either of them must have a URL. Raises `BadConfig`."""
    preset = upstreams.load(section.preset or ANY)
    url, *others = (each.rstrip("/") for each in section.urls or (section.url or preset.url,))
    built = Upstream(
        name=name,
        url=url,
        wire=preset.wire,
        auth=preset.auth,
        key=section.key or _preset_key(preset, (url, *others), environ),
        headers=preset.headers,
        timeouts=section.timeouts,
        retries=section.retries,
        facts=ModelFacts(tools=preset.tools, quirks=preset.quirks, source=Source.TABLE),
        settings=section.settings,
        outbound=section.outbound,
        preset=section.preset or ANY,
        more_urls=tuple(others),
        pass_traceparent=section.pass_traceparent,
        expose_metrics=section.expose_metrics,
    )
    built = with_wire(built, section.wire or preset.wire)
    headers = merge_headers(built.headers, tuple((section.headers or {}).items()))
    return replace(built, auth=section.auth or built.auth, headers=headers)


def with_wire(upstream: Upstream, wire: str) -> Upstream:
    """Return the upstream with another wire, and with the key header and other headers that this wire usually needs."""
    if wire == upstream.wire:
        return upstream
    old, new = _home(upstream.wire), _home(wire)
    # Headers of the old wire (`anthropic-version`) go; those of the user stay.
    kept = tuple(header for header in upstream.headers if header not in old.headers)
    return replace(upstream, wire=wire, auth=new.auth, headers=merge_headers(new.headers, kept))


def _home(wire: str) -> Preset:
    """Return the preset of the wire's vendor, which has the wire's usual headers; else `compatible`."""
    return upstreams.load(wire if wire in upstreams.names() else ANY)


def merge_headers(headers: Headers, others: Headers) -> Headers:
    """Return the headers of both; of two with the same name, the one of `others`."""
    return tuple({name.lower(): (name.lower(), value) for name, value in (*headers, *others)}.values())


def _preset_key(preset: Preset, urls: Iterable[str], environ: Mapping[str, str]) -> str:
    """Return the key in the preset's variable, if all URLs are the vendor's own. Raises `BadConfig`.

    A vendor's key is sent to that vendor only (SAFE-6): `preset = "openai"` with the URL of another server must not
    send OPENAI_API_KEY there.
    """
    key = key_in(environ, preset.key_env) if all(same_server(preset.url, url) for url in urls) else ""
    if key and (problem := secret_problem(key)):
        raise BadConfig(f"{preset.key_env}: {problem}")
    return key
