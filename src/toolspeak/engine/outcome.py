"""What a turn came to, for the caller: more than the client's protocol can say."""

from dataclasses import dataclass
from enum import StrEnum

from toolspeak.engine.plan import Plan
from toolspeak.ir.complaint import Complaint
from toolspeak.ir.event import Event, Failed, Finished, Usage
from toolspeak.ir.failure import FailureKind
from toolspeak.ir.turn import Turn, fold

EMULATED = "tool calls emulated"
"""The warning that every emulated response carries (MODE-9)."""


class Kept(StrEnum):
    """What became of a constraint (CHK-8)."""

    UNASKED = "unasked"
    KEPT = "kept"
    IGNORED = "ignored"
    """An answer came that the constraint forbids."""
    REFUSED = "refused"
    """The upstream failed with it, and was asked without."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`turn` is the fold of all that was emitted; its usage is the sum over all upstream requests."""

    events: tuple[Event, ...]
    plan: Plan
    requests: int
    """Upstream requests that the turn took, hidden ones too."""
    warnings: tuple[str, ...] = ()
    refused: FailureKind | None = None
    """What the upstream would not do, so that another way was found."""
    complaints: tuple[Complaint, ...] = ()
    """Why attempted calls were not delivered, over all attempts."""
    constraint: Kept = Kept.UNASKED
    """Whether the upstream did as it was asked; the worst over all attempts."""
    native: int = 0
    """Calls that the upstream itself gave as calls."""
    rescued: int = 0
    """Calls that it leaked as text, or in an error, though it was sent the tools."""
    empty: int = 0
    """Answers in which there was nothing at all, though it was sent the tools."""
    echoed: bool = False
    """`refused` rests on words of the request, so it says nothing about the upstream (CAP-6)."""

    @property
    def turn(self) -> Turn:
        """Fold what was emitted; who streams does not need it."""
        return fold(self.events)

    @property
    def usage(self) -> Usage:
        """Return the tokens of all upstream requests."""
        last = self.events[-1] if self.events else None
        return last.usage if isinstance(last, Finished | Failed) else Usage()
