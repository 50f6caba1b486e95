"""Finds the models of a client: those of a given upstream, of the configuration, or of a server on this machine."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

from toolspeak.config import Options, current, load
from toolspeak.config.local import with_local
from toolspeak.config.shape import Config
from toolspeak.errors import BadConfig
from toolspeak.facts.strategy import NO_OVERRIDES, Overrides, facts_of
from toolspeak.runtime.directory import Listed, Route
from toolspeak.runtime.drive import AsyncUpstream
from toolspeak.runtime.learned import Learned
from toolspeak.runtime.transport import Timeouts

_URL_MARKS = frozenset(":/.")
"""Characters of a URL. No preset has one, so a URL without its scheme is reported as a bad URL, not as a bad preset."""
_IN_PYTHON: Final = (
    ("pass --upstream URL or --preset NAME", "name one"),
    ("pass --preset ", "pass "),
    ("pass --upstream URL", "pass the URL"),
    ("--upstream-key: ", "key: "),
    ("--upstream: ", "upstream: "),
    ("--preset: ", "upstream: "),
    ("--wire: ", "wire: "),
    ("check --config and ", "check config and "),
)
"""Names of command-line options in messages, and what a caller of Python types instead."""


class Models(Protocol):
    """Finds models by name: a `Directory`, or a `SingleUpstream`."""

    async def find(self, name: str) -> Route:
        """Return the route for a name; for an unknown one, that of the default model."""
        ...

    async def exactly(self, name: str) -> Route:
        """Return the route for exactly this name: it is never replaced by the default."""
        ...

    async def listing(self) -> Sequence[Listed]:
        """Return all models whose names are known."""
        ...


@dataclass(frozen=True, slots=True)
class SingleUpstream:
    """Sends every model name to one upstream."""

    upstream: AsyncUpstream
    name: str = "upstream"
    learned: Learned = field(default_factory=Learned)
    overrides: Overrides = NO_OVERRIDES

    async def find(self, name: str) -> Route:
        """Return the route to the model of that name, with or without the upstream's own name in front."""
        model = name.removeprefix(f"{self.name}:")
        facts = facts_of(model, providers=(self.name,), overrides=self.overrides)
        return Route(self.name, self.upstream, model, facts, learned=self.learned)

    exactly = find

    async def listing(self) -> Sequence[Listed]:
        """Return nothing: the upstream is an object without a list."""
        return ()


@dataclass(frozen=True, slots=True)
class ModelSource:
    """The arguments of a client that choose its upstream; the configuration is only read by `load_config`."""

    upstream: str = ""
    wire: str = ""
    key: str = field(default="", repr=False)
    config: Config | Path | None = None
    timeouts: Timeouts | None = None
    capabilities: Overrides = NO_OVERRIDES

    def load_config(self) -> Config:
        """Return the configuration. Raises `BadConfig`, in words that a caller of Python can act on.

        Without an upstream it searches for a local server, which may take a second and blocks the calling thread.
        """
        try:
            config = self._config()
        except BadConfig as error:
            raise BadConfig(*map(_in_python, error.problems)) from None
        config = replace(config, capabilities=self.capabilities.over(config.capabilities))
        if self.timeouts is None:
            return config
        return replace(config, upstreams=tuple(replace(each, timeouts=self.timeouts) for each in config.upstreams))

    def _config(self) -> Config:
        if isinstance(self.config, Config):
            if self.upstream or self.wire or self.key:
                raise BadConfig("config: it has the upstreams already; leave out upstream, wire and key, or config")
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
    # The configuration words its problems for the command line; a caller of Python has arguments instead of options.
    for said, meant in _IN_PYTHON:
        problem = problem.replace(said, meant)
    return problem
