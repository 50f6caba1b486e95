"""Declares the settings that the command line and the environment can override.

Each field of `Options` names the setting of the file that it overrides. Its checks, its environment variable and its
command-line option follow from that.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, Final

import msgspec

from toolspeak import upstreams
from toolspeak.config.declared import Declared, value_problem, walk
from toolspeak.config.sections import ConfigFile
from toolspeak.engine.settings import Settings

_URL_MARK: Final = "://"
_TOOLS: Final = "tools."
PREFIX: Final = "TOOLSPEAK_"


@dataclass(frozen=True, slots=True)
class OptionTarget:
    """The setting of the file that an option overrides, and whether it has a variable and a command-line option."""

    path: str
    has_variable: bool = True
    has_flag: bool = True


def _overrides(path: str, *, variable: bool = True, flag: bool = True, secret: bool = False) -> Any:  # noqa: ANN401 # as `field`
    """Return a dataclass field with the default None (not given) and with its target."""
    return field(default=None, repr=not secret, metadata={"overrides": OptionTarget(path, variable, flag)})


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the command line, or variables of the environment; None means not given."""

    upstream: str | None = _overrides("upstreams.NAME.url")
    wire: str | None = _overrides("upstreams.NAME.wire")
    preset: str | None = _overrides("upstreams.NAME.preset", variable=False)
    model: str | None = _overrides("default")
    unknown_models: str | None = _overrides("unknown_models")
    key: str | None = _overrides("keys[].key", secret=True)
    upstream_key: str | None = _overrides("upstreams.NAME.key", flag=False, secret=True)
    host: str | None = _overrides("server.host")
    port: int | None = _overrides("server.port")
    workers: int | None = _overrides("server.workers")
    driver: str | None = _overrides("server.driver")
    mode: str | None = _overrides("tools.mode")
    chat: bool | None = _overrides("tools.chat", variable=False, flag=False)
    """In the environment people set it as the mode `chat` (MODE-6)."""
    dialect: str | None = _overrides("tools.dialect")
    strategy: str | None = _overrides("tools.strategy")
    release: str | None = _overrides("tools.release")
    constraint: str | None = _overrides("tools.constraint")
    profiles: bool | None = _overrides("profiles", flag=False)
    probe: str | None = _overrides("server.probe")
    log: str | None = _overrides("server.log")
    redis_url: str | None = _overrides("redis.url", flag=False, secret=True)
    runs_database: str | None = _overrides("runs.database", flag=False, secret=True)

    @property
    def names_upstream(self) -> bool:
        """Whether the options choose an upstream, by URL or by preset."""
        return self.upstream is not None or self.preset is not None

    @property
    def settings(self) -> Settings:
        """The settings of `[tools]` among the options."""
        paths = ((name, target.path) for name, target in overrides().items())
        given = {path.removeprefix(_TOOLS): getattr(self, name) for name, path in paths if path.startswith(_TOOLS)}
        return msgspec.convert({name: value for name, value in given.items() if value is not None}, Settings)

    def over(self, other: "Options") -> "Options":
        """Return these options, completed by the other's where these are None.

        Upstream, wire and key belong together: if these options choose an upstream, none of the other's three is used.
        Otherwise `--upstream URL` would send the key of TOOLSPEAK_UPSTREAM_KEY to another server than it is for.
        """
        if self.names_upstream and other.names_upstream:
            other = replace(other, upstream=None, preset=None, wire=None, upstream_key=None)
        said = {each.name: getattr(self, each.name) for each in fields(self)}
        return replace(other, **{name: value for name, value in said.items() if value is not None})


NO_OPTIONS = Options()


def flag(name: str) -> str:
    """Return the command-line option of a field: `--port` for `port`."""
    return "--" + name.replace("_", "-")


def variable(name: str) -> str:
    """Return the environment variable of a field: `TOOLSPEAK_PORT` for `port`."""
    return PREFIX + name.upper()


@cache
def overrides() -> dict[str, OptionTarget]:
    """Return the target of each option, by field name."""
    return {each.name: each.metadata["overrides"] for each in fields(Options)}


@cache
def settings_by_path() -> dict[str, Declared]:
    """Return all settings of the file, by path."""
    return {each.path: each for each in walk(ConfigFile)}


def option_problems(options: Options, label: Callable[[str], str] = flag) -> list[str]:
    """Return the problems of the options. `label` names an option in messages: `--port` or `TOOLSPEAK_PORT`."""
    return [f"{label(name)}: {problem}" for name, problem in _problems(options)]


def _problems(options: Options) -> Iterator[tuple[str, str]]:
    for name, override in overrides().items():
        value: Any = getattr(options, name)
        if value is None or isinstance(value, bool):
            continue
        problem = _preset_as_url(value) if name == "upstream" else None
        if problem := problem or value_problem(settings_by_path()[override.path], value):
            yield name, problem


def _preset_as_url(url: str) -> str | None:
    if url in upstreams.names() and _URL_MARK not in url:
        return f"{url!r} is not a URL but a preset: pass --preset {url}"
    return None
