"""Where a client asks: at an upstream that is named, at those of the configuration, or at a server on this machine."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

from toolspeak.config import Options, current, load
from toolspeak.config.local import with_local
from toolspeak.config.shape import Config
from toolspeak.errors import BadConfig
from toolspeak.facts.capability import NO_OVERRIDES, Overrides
from toolspeak.facts.merge import facts_of
from toolspeak.runtime.directory import Listed, Route
from toolspeak.runtime.drive import AsyncUpstream
from toolspeak.runtime.learned import Learned
from toolspeak.runtime.transport import Waits

_URL_MARKS = frozenset(":/.")
"""No preset has one; a URL that lacks its scheme is told so."""
_IN_PYTHON: Final = (
    ("say --upstream URL or --preset NAME", "name one"),
    ("say --preset ", "say "),
    ("say --upstream URL", "say the URL"),
    ("--upstream-key: ", "key: "),
    ("--upstream: ", "upstream: "),
    ("--preset: ", "upstream: "),
    ("--wire: ", "wire: "),
)
"""How the problems of options are called here."""


class Models(Protocol):
    """All models that can be asked for: a `Directory`, or less."""

    async def find(self, name: str) -> Route:
        """Return the model that a name means."""
        ...

    async def exactly(self, name: str) -> Route:
        """Return the model of that name and no other."""
        ...

    async def listing(self) -> Sequence[Listed]:
        """Return all models that are known by name."""
        ...


@dataclass(frozen=True, slots=True)
class Only:
    """Whatever the model is called, this upstream answers."""

    upstream: AsyncUpstream
    name: str = "upstream"
    learned: Learned = field(default_factory=Learned)
    overrides: Overrides = NO_OVERRIDES

    async def find(self, name: str) -> Route:
        """Return the model that a name means."""
        model = name.removeprefix(f"{self.name}:")
        facts = facts_of(model, providers=(self.name,), overrides=self.overrides)
        return Route(self.name, self.upstream, model, facts, learned=self.learned)

    exactly = find

    async def listing(self) -> Sequence[Listed]:
        """Return all models that are known by name: none."""
        return ()


@dataclass(frozen=True, slots=True)
class Where:
    """What the caller said."""

    upstream: str = ""
    wire: str = ""
    key: str = field(default="", repr=False)
    config: Config | Path | None = None
    waits: Waits | None = None
    capabilities: Overrides = NO_OVERRIDES

    def configured(self) -> Config:
        """Read the configuration; it may take a second to look for a local server. Raises `BadConfig`."""
        try:
            config = self._config()
        except BadConfig as error:
            raise BadConfig(*map(_in_python, error.problems)) from None
        config = replace(config, capabilities=self.capabilities.over(config.capabilities))
        if self.waits is None:
            return config
        return replace(config, upstreams=tuple(replace(each, waits=self.waits) for each in config.upstreams))

    def _config(self) -> Config:
        if isinstance(self.config, Config):
            if self.upstream or self.wire or self.key:
                raise BadConfig("config: it says the upstreams already; leave out upstream, wire and key, or config")
            return self.config
        environ = current()
        is_url = not _URL_MARKS.isdisjoint(self.upstream)
        options = Options(
            upstream=self.upstream if is_url else None,
            preset=self.upstream if self.upstream and not is_url else None,
            wire=self.wire or None,
            upstream_key=self.key or None,
        )
        config = load(self.config, environ, options)
        return config if config.upstreams else with_local(config, options, environ)


def _in_python(problem: str) -> str:
    for said, meant in _IN_PYTHON:
        problem = problem.replace(said, meant)
    return problem
