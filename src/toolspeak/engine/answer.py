"""One answer of an upstream after it has been read: immutable, and judged as a whole (CHK-4)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from toolspeak.engine.guardrails.guardrail import AskModel
from toolspeak.engine.trouble import Kind, Trouble, must_call
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import CallRejected, StopReason, Usage
from toolspeak.ir.failure import Failure
from toolspeak.ir.message import Call
from toolspeak.ir.tool import ToolChoice


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """What a reader made of one answer. `failure` means that it broke off: then no call of it may run."""

    calls: tuple[Call, ...] = ()
    """The calls that may run, without those that left while they grew."""
    streamed: int = 0
    """How many calls left while they grew (CHK-7)."""
    repeats: tuple[Call, ...] = ()
    """Calls that were answered just now. They are held: a small model often repeats itself and does not mean it."""
    attempted: tuple[tuple[Call, Complaint | None], ...] = ()
    """All native calls, and what is wrong with them. A history that has one of them must have all."""
    rejected: tuple[CallRejected, ...] = ()
    """The calls that must not run, with the model's text."""
    set_aside: tuple[Complaint, ...] = ()
    """Calls that a guardrail dropped (CHK-10, CHK-13, CHK-14)."""
    questions: tuple[AskModel, ...] = ()
    """What guardrails want to ask the model before the calls leave, once for each tool."""
    said: str = ""
    """All text of the model, as it wrote it."""
    repeated_text: str = ""
    """The text of the first of `repeats`."""
    has_text: bool = False
    """Some visible text is not blank."""
    is_only_calls: bool = False
    """The visible text was the calls, in a form that no dialect reads: it is not shown."""
    left_open: bool = False
    """A call has begun to leave, and did not become complete. It must not be taken for complete (P3)."""
    stop: StopReason = StopReason.END
    stop_sequence: str = ""
    usage: Usage = Usage()
    failure: Failure | None = None

    @property
    def call_count(self) -> int:
        """How many calls may run."""
        return len(self.calls) + self.streamed

    @property
    def complaints(self) -> tuple[Complaint, ...]:
        """What is wrong with the calls that must not run."""
        return tuple(one.complaint for one in self.rejected)

    @property
    def quoted(self) -> str:
        """What a correction quotes. Of a call in a loop that is the first round only, or the model continues it."""
        said, again = self.said, self.repeated_text
        second = said.find(again, said.find(again) + len(again)) if again else -1
        return said[:second] if second >= 0 else said

    @property
    def stop_reason(self) -> StopReason:
        """Why the turn ends, for the client: CALLS with calls to run, and never without one."""
        if self.call_count and not self.left_open and self.stop is not StopReason.FILTER:
            return StopReason.CALLS
        return StopReason.END if self.stop is StopReason.CALLS else self.stop

    @property
    def is_cut(self) -> bool:
        """Whether every call that must not run was cut off: then the length limit was reached, whatever `stop` says."""
        return bool(self.rejected) and all(one.complaint.problem is Problem.TRUNCATED for one in self.rejected)

    def with_repeats(self) -> "ReadAnswer":
        """Take the repeated calls as meant."""
        return replace(self, calls=(*self.calls, *self.repeats), repeats=()) if self.repeats else self

    def with_calls(self, calls: Iterable[Call]) -> "ReadAnswer":
        """Add calls that came in a later answer (CHK-12)."""
        return replace(self, calls=(*self.calls, *calls))

    def without_tool(self, complaint: Complaint) -> "ReadAnswer":
        """Set aside the calls of the tool that a complaint names (CHK-14)."""
        calls = tuple(call for call in self.calls if call.name != complaint.name)
        return replace(self, calls=calls, set_aside=(*self.set_aside, complaint))

    def trouble(self, choice: ToolChoice, *, refused: bool) -> Trouble | None:
        """Return why the answer cannot be used as it is; `refused`: its text says "I have no tools" (CHK-6)."""
        if self.call_count:
            return None
        if self.repeats:
            return Trouble(Kind.REPEATED)
        if self.set_aside:
            return Trouble(Kind.UNRELATED, self.set_aside)
        if self.rejected:
            return Trouble(Kind.BAD_CALLS, self.complaints)
        if must_call(choice):
            return Trouble(Kind.NO_CALL)
        if refused:
            return Trouble(Kind.REFUSED)
        if self.stop_sequence:
            return None  # the client itself asked for the end there
        if not self.has_text and self.stop not in (StopReason.FILTER, StopReason.LENGTH):
            return Trouble(Kind.EMPTY)
        return None
