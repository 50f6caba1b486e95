"""What one upstream demands beyond its wire; the facts about it say so."""

from dataclasses import dataclass
from enum import StrEnum

from toolspeak.declaration import setting
from toolspeak.ir.constraint import ConstraintForm

_PRESET = "the preset's"


class IdForm(StrEnum):
    """Which ids of calls an upstream accepts in its history."""

    ANY = "any"
    MISTRAL = "mistral"
    """Exactly nine letters and digits."""
    KIMI = "kimi"
    """`functions.NAME:N`, N counting the calls of the conversation."""


@dataclass(frozen=True, slots=True)
class Quirks:
    """The defaults fit the vendor of the wire; servers that imitate it may need others."""

    ids: IdForm = setting(
        IdForm.ANY,
        "Form of the ids of calls that it accepts in a history.",
        otherwise="the preset's or the model family's",
    )
    null_content: bool = setting(
        True,
        "Send null for the text of a message that has only calls; some servers want the empty string.",
        otherwise=_PRESET,
    )
    image_results: bool = setting(
        False, "Send images in the result of a tool, where the wire itself forbids it.", otherwise=_PRESET
    )
    reasoning_history: bool = setting(
        True, "Send earlier reasoning back, where the wire itself has no field for it.", otherwise=_PRESET
    )
    constraint: ConstraintForm = setting(
        ConstraintForm.NONE, "Field for [constrained decoding](constraint.md) that it knows (CHK-8).", otherwise=_PRESET
    )


QUIRKS = Quirks()
