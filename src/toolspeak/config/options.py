"""Settings from the command line and the environment, besides the file.

Each field of `Options` names the setting of the file that it overrides. Its checks, its environment variable and its
option follow from that.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, Final

from toolspeak import upstreams
from toolspeak.config.declared import Declared, value_problem, walk
from toolspeak.config.sections import ConfigFile
from toolspeak.engine.plan import Mode, Release, Settings, Strategy
from toolspeak.facts.model import Constrain

_URL_MARK: Final = "://"
PREFIX: Final = "TOOLSPEAK_"


@dataclass(frozen=True, slots=True)
class OptionTarget:
    """Which setting of the file an option overrides, and where people can write it."""

    path: str
    has_variable: bool = True
    has_flag: bool = True


def _overrides(path: str, *, variable: bool = True, flag: bool = True, secret: bool = False) -> Any:  # noqa: ANN401 # as `field`
    """Return the default of an option: None, which is not given."""
    return field(default=None, repr=not secret, metadata={"overrides": OptionTarget(path, variable, flag)})


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the command line, or variables of the environment; None was not given."""

    upstream: str | None = _overrides("upstreams.NAME.url")
    wire: str | None = _overrides("upstreams.NAME.wire")
    preset: str | None = _overrides("upstreams.NAME.preset", variable=False)
    model: str | None = _overrides("default")
    key: str | None = _overrides("keys[].key", secret=True)
    upstream_key: str | None = _overrides("upstreams.NAME.key", flag=False, secret=True)
    host: str | None = _overrides("server.host")
    port: int | None = _overrides("server.port")
    mode: str | None = _overrides("tools.mode")
    chat: bool | None = _overrides("tools.chat", variable=False, flag=False)
    """In the environment and on the command line it is the mode `chat`."""
    dialect: str | None = _overrides("tools.dialect")
    strategy: str | None = _overrides("tools.strategy")
    release: str | None = _overrides("tools.release")
    constraint: str | None = _overrides("tools.constraint")
    profiles: bool | None = _overrides("profiles", flag=False)
    probe: str | None = _overrides("server.probe")
    redis_url: str | None = _overrides("redis.url", flag=False, secret=True)
    runs_database: str | None = _overrides("runs.database", flag=False, secret=True)

    @property
    def names_upstream(self) -> bool:
        """Whether an upstream is named."""
        return self.upstream is not None or self.preset is not None

    @property
    def settings(self) -> Settings:
        """The settings of tools."""
        return Settings(
            mode=Mode(self.mode) if self.mode else None,
            chat=self.chat,
            strategy=Strategy(self.strategy) if self.strategy else None,
            dialect=self.dialect,
            release=Release(self.release) if self.release else None,
            constraint=Constrain(self.constraint) if self.constraint else None,
        )

    def over(self, other: "Options") -> "Options":
        """Return these, filled up with the other's where these are None.

        The other's upstream, its wire and its key belong together: if these name an upstream, none of them is taken.
        """
        if self.names_upstream and other.names_upstream:
            other = replace(other, upstream=None, preset=None, wire=None, upstream_key=None)
        said = {each.name: getattr(self, each.name) for each in fields(self)}
        return replace(other, **{name: value for name, value in said.items() if value is not None})


NO_OPTIONS = Options()


def flag(name: str) -> str:
    """Return how an option is written on the command line."""
    return "--" + name.replace("_", "-")


def variable(name: str) -> str:
    """Return the environment variable of an option."""
    return PREFIX + name.upper()


@cache
def overrides() -> dict[str, OptionTarget]:
    """Return the setting that each option overrides."""
    return {each.name: each.metadata["overrides"] for each in fields(Options)}


@cache
def settings_by_path() -> dict[str, Declared]:
    """Return all settings of the file by their paths."""
    return {each.path: each for each in walk(ConfigFile)}


def option_problems(options: Options, label: Callable[[str], str] = flag) -> list[str]:
    """Return what is wrong with them; `label` is how an option is called there."""
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
        return f"{url!r} is not a URL but a preset: say --preset {url}"
    return None
