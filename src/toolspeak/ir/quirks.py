"""Demands of one upstream that its wire does not have; they are part of the facts about it."""

from dataclasses import dataclass
from enum import StrEnum

from toolspeak.declaration import setting
from toolspeak.ir.constraint import ConstraintForm

_PRESET = "the preset's"


class IdForm(StrEnum):
    """The form of call ids that an upstream accepts in a history (WIRE-6)."""

    ANY = "any"
    MISTRAL = "mistral"
    """Exactly nine letters and digits. Mistral rejects a history with any other id."""
    KIMI = "kimi"
    """`functions.NAME:N`, where N counts the calls of the conversation.

    Its own ids in the history raised the success of its calls from 1 of 10 to 12 of 12 (kimchi #1066).
    """


@dataclass(frozen=True, slots=True)
class Quirks:
    """The quirks of an upstream. The defaults suit the vendor of the wire; servers that imitate it may need others."""

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
