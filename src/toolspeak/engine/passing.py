"""An answer that goes through as it is: but a call that was cut is not told as complete (P3)."""

from toolspeak.engine.trouble import MOST_CHARACTERS, Kind, Trouble, failure_of, size_of
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import ArgsDelta, CallEnded, CallStarted, Event, Failed, Finished, StopReason, Usage
from toolspeak.text.jsonspan import JsonSpan, Status


class Passing:
    """Looks at the events of one answer."""

    def __init__(self, *, calls: bool, needs_words: bool) -> None:
        """Let calls pass, or not; with `needs_words` the answer must not be empty."""
        self._calls, self._needs_words = calls, needs_words
        self._arguments: dict[str, JsonSpan] = {}
        self._names: dict[str, str] = {}
        self._cut: list[Complaint] = []
        self._dropped = False
        self._size = 0

    @property
    def too_long(self) -> bool:
        """Tell whether the answer is over the limit (P7)."""
        return self._size > MOST_CHARACTERS

    def lets(self, event: Event) -> bool:
        """Tell whether an event may pass."""
        self._size += size_of(event)
        if not isinstance(event, CallStarted | ArgsDelta | CallEnded):
            return True
        if not self._calls:
            self._dropped = True
            return False
        return self._is_whole(event)

    def last(self, event: Finished | Failed, usage: Usage, *, shown: bool) -> Finished | Failed:
        """Return the end of the answer: an error where it would be an empty success, or a cut call (P3, P6)."""
        if isinstance(event, Failed):
            return Failed(event.failure, usage)
        self._cut += [Complaint(Problem.TRUNCATED, self._names[id]) for id in self._arguments]  # never ended
        if self._cut and event.stop is not StopReason.LENGTH:
            return Failed(failure_of(Trouble(Kind.BAD_CALLS, tuple(self._cut))), usage)
        if not shown and (self._dropped or (self._needs_words and event.stop is StopReason.END)):
            return Failed(failure_of(Trouble(Kind.EMPTY)), usage)
        stop = StopReason.END if self._dropped and event.stop is StopReason.CALLS else event.stop
        return Finished(stop, usage, event.stop_sequence)

    def _is_whole(self, event: CallStarted | ArgsDelta | CallEnded) -> bool:
        if isinstance(event, CallStarted):
            self._arguments[event.id], self._names[event.id] = JsonSpan(), event.name
        elif isinstance(event, ArgsDelta):
            self._arguments[event.id].feed(event.json)
        elif self._arguments.pop(event.id).status is Status.OPEN:
            self._cut.append(Complaint(Problem.TRUNCATED, self._names[event.id]))
            return False
        return True
