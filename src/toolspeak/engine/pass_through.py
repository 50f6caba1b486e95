"""Passes an answer through as it is. A call that was cut is still not passed on as complete (P3)."""

from collections.abc import Iterable

from toolspeak.engine.answer import Answer
from toolspeak.engine.outbox import is_visible
from toolspeak.engine.trouble import MOST_CHARACTERS, TOO_LONG, Kind, Trouble, failure_of, size_of
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import ArgsDelta, CallEnded, CallStarted, Event, Failed, Finished, StopReason
from toolspeak.text.jsonspan import JsonSpan, Status


class PassThrough:
    """Reads one answer as `AnswerReader` does, and changes nothing in it."""

    def __init__(self, *, passes_calls: bool, needs_text: bool) -> None:
        """Pass calls, or drop them; with `needs_text` an empty answer is an error."""
        self._passes_calls, self._needs_text = passes_calls, needs_text
        self._arguments: dict[str, JsonSpan] = {}
        self._names: dict[str, str] = {}
        self._cut: list[Complaint] = []
        self._dropped = self._has_text = False
        self._size = 0
        self._last: Finished | Failed | None = None

    @property
    def over(self) -> bool:
        """Whether the answer has ended."""
        return self._last is not None

    @property
    def enough(self) -> bool:
        """Whether the answer is longer than the limit (P7)."""
        return self._size > MOST_CHARACTERS

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Take events of the upstream; return what passes."""
        out: list[Event] = []
        for event in events:
            self._size += size_of(event)
            if isinstance(event, Finished | Failed):
                self._last = event
            elif not isinstance(event, CallStarted | ArgsDelta | CallEnded) or self._lets_call(event):
                self._has_text = self._has_text or is_visible(event)
                out.append(event)
        return out

    def cut(self) -> list[Event]:
        """End the answer: it is too long."""
        return self.feed([Failed(TOO_LONG)])

    def answer(self) -> Answer:
        """Return how the answer ended: as a failure if it would be an empty success, or has a cut call (P3, P6)."""
        last = self._last or Finished(StopReason.END)
        if isinstance(last, Failed):
            return Answer(usage=last.usage, failure=last.failure)
        cut = (*self._cut, *(Complaint(Problem.TRUNCATED, self._names[id]) for id in self._arguments))
        if cut and last.stop is not StopReason.LENGTH:
            return Answer(usage=last.usage, failure=failure_of(Trouble(Kind.BAD_CALLS, cut)))
        if not self._has_text and (self._dropped or (self._needs_text and last.stop is StopReason.END)):
            return Answer(usage=last.usage, failure=failure_of(Trouble(Kind.EMPTY)))
        stop = StopReason.END if self._dropped and last.stop is StopReason.CALLS else last.stop
        return Answer(has_text=self._has_text, stop=stop, usage=last.usage, stop_sequence=last.stop_sequence)

    def _lets_call(self, event: CallStarted | ArgsDelta | CallEnded) -> bool:
        if not self._passes_calls:
            self._dropped = True
            return False
        if isinstance(event, CallStarted):
            self._arguments[event.id], self._names[event.id] = JsonSpan(), event.name
        elif isinstance(event, ArgsDelta):
            self._arguments[event.id].feed(event.json)
        elif self._arguments.pop(event.id).status is Status.OPEN:
            self._cut.append(Complaint(Problem.TRUNCATED, self._names[event.id]))
            return False
        return True
