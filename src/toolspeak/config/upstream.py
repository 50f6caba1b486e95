"""What somebody said of an upstream, together with its preset, becomes the upstream.

Three may say it: the file, the environment, the command line. What they leave out is the preset's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from toolspeak import upstreams
from toolspeak.config.addresses import same_server, same_url
from toolspeak.config.environment import key_in
from toolspeak.config.shape import Upstream
from toolspeak.config.table import secret_problem
from toolspeak.engine.plan import NOTHING_SAID, Settings
from toolspeak.errors import BadConfig
from toolspeak.facts.model import ModelFacts, Source
from toolspeak.runtime.transport import DEFAULT_TIMEOUTS, Timeouts
from toolspeak.upstreams import Auth, Preset

ANY = "compatible"
"""The preset of servers that nobody knows."""
RETRIES = 2
Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Said:
    """An upstream in somebody's words; what is empty or None was not said."""

    name: str
    preset: str = ""
    url: str = ""
    wire: str = ""
    auth: Auth | None = None
    key: str = field(default="", repr=False)
    headers: Headers = field(default=(), repr=False)
    retries: int = RETRIES
    timeouts: Timeouts = DEFAULT_TIMEOUTS
    settings: Settings = NOTHING_SAID


def preset_of(url: str) -> str:
    """Return the preset that has this URL; without one, that of any server."""
    presets = ((name, upstreams.load(name)) for name in upstreams.names())
    return next((name for name, preset in presets if preset.url and same_url(preset.url, url)), ANY)


def build(said: Said, environ: Mapping[str, str]) -> Upstream:
    """Make the upstream. It must have a URL, here or in its preset."""
    preset = upstreams.load(said.preset or ANY)
    url = (said.url or preset.url).rstrip("/")
    built = Upstream(
        name=said.name,
        url=url,
        wire=preset.wire,
        auth=preset.auth,
        key=said.key or _usual_key(preset, url, environ),
        headers=preset.headers,
        timeouts=said.timeouts,
        retries=said.retries,
        facts=ModelFacts(tools=preset.tools, quirks=preset.quirks, source=Source.TABLE),
        settings=said.settings,
        preset=said.preset or ANY,
    )
    built = with_wire(built, said.wire or preset.wire)
    return replace(built, auth=said.auth or built.auth, headers=merged(built.headers, said.headers))


def with_wire(upstream: Upstream, wire: str) -> Upstream:
    """Speak another wire, with the headers that are usual there."""
    if wire == upstream.wire:
        return upstream
    old, new = _home(upstream.wire), _home(wire)
    kept = tuple(header for header in upstream.headers if header not in old.headers)
    return replace(upstream, wire=wire, auth=new.auth, headers=merged(new.headers, kept))


def _home(wire: str) -> Preset:
    """Return the vendor of a wire, whose headers are usual there."""
    return upstreams.load(wire if wire in upstreams.names() else ANY)


def merged(headers: Headers, others: Headers) -> Headers:
    """Return the headers of both; of two with the same name, the other's."""
    return tuple({name.lower(): (name.lower(), value) for name, value in (*headers, *others)}.values())


def _usual_key(preset: Preset, url: str, environ: Mapping[str, str]) -> str:
    """Return the key that the preset's variable holds. A vendor's key goes to that vendor only (SAFE-6)."""
    key = key_in(environ, preset.key_env) if same_server(preset.url, url) else ""
    if key and (problem := secret_problem(key)):
        raise BadConfig(f"{preset.key_env}: {problem}")
    return key
