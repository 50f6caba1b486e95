"""Calls one after the other, for protocols (and clients) that know only one open block.

    start a, args a, start b, args b, args a, end a, end b   ->   start a, args a, args a, end a, start b, args b, end b

The first open call streams on; what others say waits until it has ended.
"""

from collections import deque

from toolspeak.ir.event import ArgsDelta, CallEnded, CallStarted, Event, Failed, Finished


class Sequence:
    """Puts the events of one turn in sequence. In a turn that is, nothing ever waits."""

    def __init__(self) -> None:
        """Start with nothing open."""
        self._open = ""
        self._waiting: deque[list[Event]] = deque()
        self._of_call: dict[str, list[Event]] = {}

    def feed(self, event: Event) -> list[Event]:
        """Return the events that may leave now."""
        if not self._open and not isinstance(event, CallStarted):
            return [event]
        if isinstance(event, Finished | Failed):
            return [*self._all(), event]
        if isinstance(event, CallStarted):
            return self._started(event)
        if isinstance(event, ArgsDelta | CallEnded) and event.id == self._open:
            return [event, *self._next()] if isinstance(event, CallEnded) else [event]
        self._wait(event)
        return []

    def rest(self) -> list[Event]:
        """Give up what is open, and return what waits behind it, but no call that has not ended (P3)."""
        waiting, self._waiting = self._waiting, deque()
        self._open, self._of_call = "", {}
        return [event for some in waiting if not _goes_on(some) for event in some]

    def _started(self, event: CallStarted) -> list[Event]:
        if not self._open:
            self._open = event.id
            return [event]
        self._of_call[event.id] = [event]
        self._waiting.append(self._of_call[event.id])
        return []

    def _wait(self, event: Event) -> None:
        if isinstance(event, ArgsDelta | CallEnded):
            if event.id in self._of_call:
                self._of_call[event.id].append(event)
        else:
            self._waiting.append([event])

    def _next(self) -> list[Event]:
        """Let go what waits, up to the end of what has come of the next call that is still open."""
        self._open = ""
        out: list[Event] = []
        while self._waiting and not self._open:
            some = self._waiting.popleft()
            out += some
            first = some[0]
            if isinstance(first, CallStarted):
                del self._of_call[first.id]
                self._open = first.id if _goes_on(some) else ""
        return out

    def _all(self) -> list[Event]:
        out: list[Event] = []
        while self._open:
            out += self._next()
        return out


def _goes_on(some: list[Event]) -> bool:
    """Return whether these are the events of a call that has not ended."""
    return isinstance(some[0], CallStarted) and not isinstance(some[-1], CallEnded)
