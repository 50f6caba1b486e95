"""The client's stop sequences, applied by us to visible text: upstream they could cut a call."""

from collections.abc import Iterable


class StopText:
    """Cuts visible text at the first stop sequence, however it is chunked."""

    def __init__(self, stops: Iterable[str]) -> None:
        """Take the sequences; empty ones stop nothing."""
        self._stops = tuple(filter(None, stops))
        self._hold = max(map(len, self._stops), default=1) - 1
        self._held = ""
        self.any = bool(self._stops)
        """There is something to stop at."""
        self.found = ""
        """The sequence that was found."""

    def feed(self, text: str) -> str:
        """Return the text that may be shown."""
        if not self._stops or self.found:
            return "" if self.found else text
        window = self._held + text
        ends = [(at, stop) for stop in self._stops if (at := window.find(stop)) >= 0]
        if ends:
            at, self.found = min(ends, key=lambda end: (end[0] + len(end[1]), end[0]))  # whichever is whole first
            self._held = ""
            return window[:at]
        keep = self._tail(window)
        self._held = window[len(window) - keep :]
        return window[: len(window) - keep]

    def finish(self) -> str:
        """Return what was held back: no sequence came."""
        held, self._held = self._held, ""
        return held

    def _tail(self, window: str) -> int:
        """Return how many characters at the end may be the start of a stop sequence."""
        for size in range(min(self._hold, len(window)), 0, -1):
            if any(stop.startswith(window[-size:]) for stop in self._stops):
                return size
        return 0
