"""What is said on the command line, or in the environment, beside the file."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace

from toolspeak import dialects, upstreams, wires
from toolspeak.config.addresses import database_problem, host_problem, redis_problem, url_problem
from toolspeak.config.problems import not_one_of
from toolspeak.config.table import secret_problem
from toolspeak.engine.plan import Mode, Release, Settings, Strategy
from toolspeak.engine.verdict import Depth
from toolspeak.facts.model import Constrain

MOST_PORT = 65535
_URL_MARK = "://"


@dataclass(frozen=True, slots=True)
class Options:
    """None was not said."""

    upstream: str | None = None
    """A base URL."""
    wire: str | None = None
    preset: str | None = None
    model: str | None = None
    """The default model."""
    key: str | None = field(default=None, repr=False)
    """That clients must show."""
    upstream_key: str | None = field(default=None, repr=False)
    host: str | None = None
    port: int | None = None
    mode: str | None = None
    chat: bool | None = None
    dialect: str | None = None
    strategy: str | None = None
    release: str | None = None
    constraint: str | None = None
    profiles: bool | None = None
    """Whether what `doctor` has measured counts."""
    probe: str | None = None
    redis_url: str | None = field(default=None, repr=False)
    runs_database: str | None = field(default=None, repr=False)

    @property
    def names_upstream(self) -> bool:
        """Return whether it says which upstream."""
        return self.upstream is not None or self.preset is not None

    @property
    def settings(self) -> Settings:
        """What it says about tools."""
        return Settings(
            mode=Mode(self.mode) if self.mode else None,
            chat=self.chat,
            strategy=Strategy(self.strategy) if self.strategy else None,
            dialect=self.dialect,
            release=Release(self.release) if self.release else None,
            constraint=Constrain(self.constraint) if self.constraint else None,
        )

    def over(self, other: "Options") -> "Options":
        """Return these, and the other's where these say nothing.

        The other's upstream, its wire and its key belong together: who names an upstream gets none of them.
        """
        if self.names_upstream and other.names_upstream:
            other = replace(other, upstream=None, preset=None, wire=None, upstream_key=None)
        said = {each.name: getattr(self, each.name) for each in fields(self)}
        return replace(other, **{name: value for name, value in said.items() if value is not None})


NO_OPTIONS = Options()


def flag(name: str) -> str:
    """Return how an option is written on the command line."""
    return "--" + name.replace("_", "-")


def option_problems(options: Options, label: Callable[[str], str] = flag) -> list[str]:
    """Return what is wrong with them; `label` is how an option is called there."""
    return [f"{label(name)}: {problem}" for name, problem in _problems(options)]


def _problems(options: Options) -> Iterator[tuple[str, str]]:
    checks: dict[str, Callable[[str], str | None]] = {
        "upstream": _upstream_problem,
        "host": host_problem,
        "key": secret_problem,
        "upstream_key": secret_problem,
        "wire": _among(wires.names),
        "preset": _among(upstreams.names),
        "dialect": _among(dialects.names),
        "mode": _among(lambda: [each.value for each in Mode]),
        "strategy": _among(lambda: [each.value for each in Strategy]),
        "release": _among(lambda: [each.value for each in Release]),
        "constraint": _among(lambda: [each.value for each in Constrain]),
        "probe": _among(lambda: [each.value for each in Depth]),
        "redis_url": redis_problem,
        "runs_database": database_problem,
    }
    for name, check in checks.items():
        value: str | None = getattr(options, name)
        if value is not None and (problem := check(value)):
            yield name, problem
    if options.port is not None and not 0 <= options.port <= MOST_PORT:
        yield "port", f"{options.port} is not an integer from 0 to {MOST_PORT}"
    if options.model == "":
        yield "model", "is empty"


def _among(names: Callable[[], Sequence[str]]) -> Callable[[str], str | None]:
    return lambda value: None if value in names() else not_one_of(value, names())


def _upstream_problem(url: str) -> str | None:
    if url in upstreams.names() and _URL_MARK not in url:
        return f"{url!r} is not a URL but a preset: say --preset {url}"
    return url_problem(url)
