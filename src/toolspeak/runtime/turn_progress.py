"""What a turn waits for at this moment, so that a slow one can be explained while it is slow (OBS-7).

It also knows for how long the turn has waited for its upstream, and how many tokens the answers had: metrics need both,
and no chunk of a stream pays for them.
"""

from dataclasses import dataclass

from toolspeak.ir.event import Event, Failed, Finished, Usage

BYTES_PER_TOKEN = 4


@dataclass(slots=True)
class TurnProgress:
    """The state of a turn's current upstream request. The upstream writes it, the gateway reads it now and then."""

    traceparent: str = ""
    """The W3C trace context of the turn, for upstreams that get it (OPS-3)."""
    requests: int = 0
    """Upstream requests of this turn so far."""
    body_bytes: int = 0
    is_streamed: bool = True
    has_headers: bool = False
    pieces: int = 0
    """Events that have arrived. Servers send about one for each token."""
    pause: str = ""
    """Why the request is sent again after a pause; empty if it is not in one."""
    escalated: str = ""
    """What became of the wish to ask a stronger model (`effects.Escalated`); empty if there was none."""
    opened: float = 0.0
    """When the current request was sent, in monotonic seconds."""
    ended: float | None = None
    """When the end of its answer was read, or the turn closed it; None while it is open."""
    waited: float = 0.0
    """Seconds for which the requests before the current one were open, and the current one if it has ended."""
    usage: Usage = Usage()
    """The tokens of all answers that have ended."""
    first_usage: Usage = Usage()
    """The tokens of the first one. The others are those of requests that the client does not see."""

    estimate: Usage = Usage()
    """The tokens of answers that have ended without a count, by their size."""

    @property
    def charge(self) -> Usage:
        """The tokens that limits count: as the upstream says, and by size where it does not.

        A client that hangs up before the end of an answer gets no count, and would have its tokens for nothing.
        """
        counted = self.usage.plus(self.estimate)
        return counted if self.ended is not None or not self.requests else counted.plus(self._by_size())

    def _by_size(self) -> Usage:
        return Usage(self.body_bytes // BYTES_PER_TOKEN, self.pieces)

    def sent(self, now: float, body_bytes: int, *, is_streamed: bool) -> None:
        """Note that a request is sent."""
        self.requests += 1
        self.opened, self.ended = now, None
        self.body_bytes, self.is_streamed = body_bytes, is_streamed
        self.has_headers, self.pieces, self.pause = False, 0, ""

    def end(self, now: float, last: Event | None = None) -> None:
        """Note the end of the current answer, and the tokens in its `last` event. Only the first end counts."""
        if self.ended is not None:
            return
        self.ended = now
        self.waited += now - self.opened
        if isinstance(last, (Finished, Failed)):  # a union is made anew for each turn
            if self.requests == 1:
                self.usage = self.first_usage = last.usage
            else:
                self.usage = self.usage.plus(last.usage)
        if self._is_uncounted(last):
            self.estimate = self.estimate.plus(self._by_size())

    def _is_uncounted(self, last: Event | None) -> bool:
        """Return whether an answer had tokens, and nobody says how many. A server that refuses a request reads none."""
        if isinstance(last, Failed) and not self.pieces:
            return False
        usage = last.usage if isinstance(last, (Finished, Failed)) else Usage()
        return not usage.input_tokens and not usage.output_tokens

    def waited_until(self, now: float) -> float:
        """Return for how many seconds requests to the upstream were open; one may be open still."""
        is_open = self.requests > 0 and self.ended is None
        return self.waited + (now - self.opened if is_open else 0.0)

    def describe(self, upstream: str) -> str:
        """Return what the turn waits for, in words."""
        prompt = f"the prompt (about {self.body_bytes // BYTES_PER_TOKEN} tokens)"
        if self.requests == 0:
            return "the request is still being prepared"
        if self.pause:
            return f"{upstream} did not take the request ({self.pause}); it is sent again"
        if self.pieces:
            return f"{upstream} has written about {self.pieces} tokens so far"
        if self.has_headers:
            return f"{upstream} is reading {prompt}"
        if not self.is_streamed:
            return f"{upstream} has not answered yet; it sends a whole answer, after reading {prompt}"
        return f"{upstream} has not answered yet; it may be loading the model or reading {prompt}"
