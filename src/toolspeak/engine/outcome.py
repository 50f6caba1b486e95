"""The outcome of a turn for the caller: its events, and all that the client's protocol has no field for."""

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
    """What became of a constraint (CHK-8). The order matters: later members are worse."""

    UNASKED = "unasked"
    KEPT = "kept"
    IGNORED = "ignored"
    """The upstream accepted the constraint and returned an answer that it forbids."""
    REFUSED = "refused"
    """The upstream failed with the constraint, and the request was sent again without it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a turn. `turn` is the fold of all emitted events; its usage sums up all upstream requests."""

    events: tuple[Event, ...]
    plan: Plan
    requests: int
    """The number of upstream requests, hidden ones included."""
    warnings: tuple[str, ...] = ()
    refused: FailureKind | None = None
    """The error after which the turn tried another tactic."""
    complaints: tuple[Complaint, ...] = ()
    """Why attempted calls were not delivered, over all attempts."""
    constraint: Kept = Kept.UNASKED
    """What became of constraints; the worst over all attempts."""
    native: int = 0
    """Calls that the upstream returned as calls."""
    rescued: int = 0
    """Calls that the upstream, which was sent the tools, returned as text or quoted in an error."""
    empty: int = 0
    """Empty answers of the upstream although it was sent the tools."""
    echoed: bool = False
    """Whether `refused` was read from words of the request itself; then it proves nothing about the upstream (CAP-6).

    An upstream may quote a client's field in its error. A `user` field of "this does not support tools" once made the
    gateway emulate the calls of all clients for ten minutes.
    """

    @property
    def turn(self) -> Turn:
        """The emitted events as a turn. It is computed on each access; a caller that streams does not need it."""
        return fold(self.events)

    @property
    def usage(self) -> Usage:
        """The tokens of all upstream requests."""
        last = self.events[-1] if self.events else None
        return last.usage if isinstance(last, Finished | Failed) else Usage()
