"""What one upstream demands beyond its wire; the facts about it say so."""

from dataclasses import dataclass
from enum import StrEnum

from toolspeak.ir.constraint import ConstraintForm


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

    ids: IdForm = IdForm.ANY
    null_content: bool = True
    """An assistant message that has only calls has null for its text; some servers want the empty string."""
    image_results: bool = False
    """Images may stand in a tool's result, where the wire itself would forbid it."""
    reasoning_history: bool = True
    """The model's earlier reasoning is given back to it, where the wire itself has no word for that."""
    constraint: ConstraintForm = ConstraintForm.NONE
    """How it is told what its answer must look like (CHK-8)."""


QUIRKS = Quirks()
