"""When the client gets what (CHK-7).

    eager      as it comes; native calls as they grow
    checked    text as it comes, a call when it is whole and right
    buffered   all at the end

Text whose beginning may be a refusal ("I have no tools …") waits until that is sure, a few hundred characters at most:
it could not be taken back for the call that asking again brings.
"""

from collections.abc import Container, Sequence

from toolspeak.engine.plan import Release
from toolspeak.engine.refusal import RefusalWatch
from toolspeak.ir.event import ArgsDelta, CallEnded, CallStarted, Event, ReasoningDelta, TextDelta


class Gate:
    """Lets the events of one attempt out, or holds them."""

    def __init__(self, release: Release, *, watches: bool) -> None:
        """`watches`: tools are offered, so that a refusal can be asked again."""
        self._holds_all = release is Release.BUFFERED
        self._watch: RefusalWatch | None = RefusalWatch() if watches else None
        self._held: list[Event] = []
        self.refused = False

    def take(self, events: list[Event]) -> Sequence[Event]:
        """Return the events that may leave now."""
        if self._watch is None and not self._holds_all and not self._held:
            return events
        for event in events:
            if isinstance(event, TextDelta) and self._watch is not None and not self._watch.feed(event.text):
                self._decided(self._watch)
            self._held.append(event)
        return () if self._holds_all or self._watching else self.rest()

    def rest(self) -> tuple[Event, ...]:
        """Let out all that is held."""
        events, self._held = tuple(self._held), []
        return events

    @property
    def text(self) -> str:
        """The text that is held."""
        return "".join(event.text for event in self._held if isinstance(event, TextDelta))

    def finish(self) -> None:
        """Take the end of the attempt: what is held is a refusal, or is not."""
        if self._watch is not None:
            self._decided(self._watch)

    def without_text(self) -> None:
        """Forget the text that is held, and keep the calls."""
        self._held = [event for event in self._held if not isinstance(event, TextDelta | ReasoningDelta)]

    def without(self, ids: Container[str]) -> None:
        """Forget the calls of these ids."""
        parts = (CallStarted, ArgsDelta, CallEnded)
        self._held = [event for event in self._held if not (isinstance(event, parts) and event.id in ids)]

    @property
    def _watching(self) -> bool:
        """Hold only while text has come that may be a refusal."""
        return self._watch is not None and any(isinstance(event, TextDelta) for event in self._held)

    def _decided(self, watch: RefusalWatch) -> None:
        self.refused, self._watch = watch.verdict(), None
