"""Declares the settings of a turn. `plan.py` decides by them.

The command line is to read these declarations for `--help`, so this module imports nothing that takes long to load.
"""

from dataclasses import dataclass, fields, replace
from enum import StrEnum

from toolspeak.declaration import setting
from toolspeak.facts.model import Constrain

RETRIES = 2
"""How many times a model is asked again by default. Retries of failed connections are counted elsewhere (CHK-5)."""
MOST_RETRIES = 10
_NO = "`false`"
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
        otherwise="`auto`",
    )
    chat: bool | None = setting(None, "Remove all tools from requests (MODE-6).", otherwise=_NO)
    strategy: Strategy | None = setting(
        None,
        "How calls are emulated: inside the answer, or by a decision before it.",
        otherwise="`inline`, or what suits the model",
    )
    dialect: str | None = setting(
        None,
        "[Dialect](dialects.md) in which emulated calls are written.",
        otherwise="what suits the model",
        form="dialect",
    )
    release: Release | None = setting(
        None,
        "When the client gets the answer: at once, calls after their check, or everything at its end (CHK-7).",
        otherwise="`checked`",
    )
    retries: int | None = setting(
        None,
        "How many times a model is asked again for a call that cannot run.",
        least=0,
        most=MOST_RETRIES,
        otherwise=str(RETRIES),
    )
    rescue: bool | None = setting(
        None, "Turn calls that a server with tools leaks as text into calls.", otherwise="`true`"
    )
    keep_system: bool | None = setting(
        None, "Keep the client's own instructions beside ours.", otherwise="`true` in the mode `auto`, else `false`"
    )
    few_shot: bool | None = setting(None, "Show the model an example of a call.", otherwise=_SUITS)
    answer_tool: bool | None = setting(None, "Let the model answer by a call, too.", otherwise=_SUITS)
    constraint: Constrain | None = setting(
        None,
        "[Constrained decoding](constraint.md) of emulated calls, where the server has it (CHK-8).",
        otherwise="what suits the model, else `retry`",
    )
    drop_unrelated_calls: bool | None = setting(
        None, "Drop calls whose tool has nothing to do with the conversation (CHK-10).", otherwise=_NO
    )
    drop_unmentioned_arguments: bool | None = setting(
        None, "Drop optional arguments whose value the conversation does not mention (CHK-11).", otherwise=_NO
    )
    request_missing_calls: bool | None = setting(
        None, "Ask for the calls that a request for several things still needs (CHK-12).", otherwise=_NO
    )
    accept_untaught_calls: bool | None = setting(
        None, "Accept, or ask for, calls that no dialect reads; the answer is buffered (CHK-13).", otherwise=_NO
    )
    confirm_tool_fit: bool | None = setting(
        None,
        "Ask the model whether each tool that it calls can do the request; the answer is buffered (CHK-14).",
        otherwise=_NO,
    )
    key: str | None = None
    """The key of keyed markers (SAFE-4). toolspeak makes it: it is not in the file."""

    def over(self, other: "Settings") -> "Settings":
        """Return these settings, filled up with the other's where these are None."""
        if self is NOTHING_SAID or self is other:
            return other
        said = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(other, **{name: value for name, value in said.items() if value is not None})


NOTHING_SAID = Settings()
