"""Declares the settings of a turn.

A new setting is a field of `Settings`, and its use as `plan.settings.NAME`. The file, its schema and its reference page
follow from the field; with `is_option`, so do its command-line option and its request header.

The command line reads these declarations for `--help`, so this module imports nothing that takes long to load.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import StrEnum
from operator import attrgetter
from typing import Final, get_args

from toolspeak.declaration import Declaration, declaration_of, setting
from toolspeak.facts.model import DEFAULT_DIALECT, Constrain

RETRIES = 2
"""How many times a model is asked again by default. Retries of failed connections are counted elsewhere (CHK-5)."""
MOST_RETRIES = 10
_SUITS = "what suits the model"


class Mode(StrEnum):
    """The setting: whether calls are emulated (MODE-1)."""

    OFF = "off"
    FALLBACK = "fallback"
    FORCE = "force"
    AUTO = "auto"


class Strategy(StrEnum):
    """How calls are emulated (MODE-7)."""

    INLINE = "inline"
    DECISION = "decision"


class Release(StrEnum):
    """When the client gets the answer (CHK-7)."""

    EAGER = "eager"
    CHECKED = "checked"
    BUFFERED = "buffered"


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one level: a request, a model, an upstream or all. None leaves one to the next level (MODE-1)."""

    mode: Mode | None = setting(
        None,
        "Whether calls are emulated: never (`off`), where a native answer has none (`fallback`), always (`force`), or "
        "where the upstream has no tools (`auto`).",
        fallback=Mode.AUTO,
        is_option=True,
    )
    chat: bool | None = setting(None, "Remove all tools from requests (MODE-6).", fallback=False)
    strategy: Strategy | None = setting(
        None,
        "How calls are emulated: inside the answer, or by a decision before it.",
        fallback=Strategy.INLINE,
        is_option=True,
        otherwise="`inline`, or what suits the model",
    )
    dialect: str | None = setting(
        None,
        "[Dialect](dialects.md) in which emulated calls are written.",
        fallback=DEFAULT_DIALECT,
        otherwise=_SUITS,
        form="dialect",
        is_option=True,
    )
    release: Release | None = setting(
        None,
        "When the client gets the answer: at once, calls after their check, or everything at its end (CHK-7).",
        fallback=Release.CHECKED,
        is_option=True,
    )
    retries: int | None = setting(
        None,
        "How many times a model is asked again for a call that cannot run.",
        least=0,
        most=MOST_RETRIES,
        fallback=RETRIES,
    )
    rescue: bool | None = setting(None, "Turn calls that a server with tools leaks as text into calls.", fallback=True)
    keep_system: bool | None = setting(
        None,
        "Keep the client's own instructions beside ours.",
        fallback=True,
        otherwise="`true` in the mode `auto`, else `false`",
    )
    few_shot: bool | None = setting(None, "Show the model an example of a call.", fallback=False, otherwise=_SUITS)
    answer_tool: bool | None = setting(None, "Let the model answer by a call, too.", fallback=False, otherwise=_SUITS)
    constraint: Constrain | None = setting(
        None,
        "[Constrained decoding](constraint.md) of emulated calls, where the server has it (CHK-8).",
        # Only retries: small models reason worse under a grammar.
        fallback=Constrain.RETRY,
        is_option=True,
        otherwise="what suits the model, else `retry`",
    )
    drop_unrelated_calls: bool | None = setting(
        None, "Drop calls that the user did not ask for, above all after a result (CHK-10).", fallback=False
    )
    request_missing_calls: bool | None = setting(
        None, "Ask for the calls that a request for several things still needs (CHK-12).", fallback=False
    )
    confirm_tool_fit: bool | None = setting(
        None,
        "Ask the model whether a tool can do the request if its call has a made-up value; buffers the answer (CHK-14).",
        fallback=False,
    )
    unfit_probability: float | None = setting(
        None,
        "With `confirm_tool_fit`: ask about each first call of an English request, and drop it if the model gives `no` "
        "at least this probability, where the server tells probabilities (CHK-14). 0 lets the word decide.",
        least=0,
        most=1,
        fallback=0.0,
    )
    keyed: bool | None = setting(
        None,
        "Write emulated calls of the strategy `inline` with a marker that only this conversation has (SAFE-4).",
        fallback=False,
    )
    mark_results: bool | None = setting(
        None,
        "After tool results in emulated requests, say that they are data, and repeat the user's words (SAFE-11).",
        fallback=False,
    )
    detailed_tools: int | None = setting(
        None,
        "The most tools that an emulated prompt describes, chosen by the request; it names the others (INL-11). 0 "
        "describes all.",
        least=0,
        fallback=0,
    )
    key: str | None = None
    """The key of keyed markers (SAFE-4). toolspeak makes it for each conversation: it is not in the file."""

    def over(self, other: "Settings") -> "Settings":
        """Return these settings, filled up with the other's where these are None."""
        if self is NOTHING_SAID or self is other:
            return other
        both = zip(_VALUES(self), _VALUES(other), strict=True)
        return Settings(*[weaker if own is None else own for own, weaker in both])


_VALUES: Final = attrgetter(*(field.name for field in fields(Settings)))
NOTHING_SAID = Settings()
DEFAULTS: Final = Settings(
    **{field.name: about.fallback for field in fields(Settings) if (about := declaration_of(field)) is not None}
)
"""The weakest level: the declared fallbacks."""


@dataclass(frozen=True, slots=True)
class TurnOption:
    """A setting of a turn that can be set for one command or one request."""

    name: str
    about: Declaration
    choices: tuple[str, ...]
    """Empty for a string."""


def _options() -> Iterator[TurnOption]:
    for field in fields(Settings):
        about = declaration_of(field)
        if about is not None and about.is_option:
            kind = get_args(field.type)[0]  # of `Mode | None`
            yield TurnOption(field.name, about, tuple(kind) if issubclass(kind, StrEnum) else ())


OPTIONS: Final = tuple(_options())
