"""What a turn waits for at this moment, so that a slow one can be explained while it is slow (OBS-7)."""

from dataclasses import dataclass

_BYTES_PER_TOKEN = 4


@dataclass(slots=True)
class TurnProgress:
    """The state of a turn's current upstream request. The upstream writes it, the gateway reads it now and then."""

    requests: int = 0
    """Upstream requests of this turn so far."""
    body_bytes: int = 0
    is_streamed: bool = True
    has_headers: bool = False
    pieces: int = 0
    """Events that have arrived. Servers send about one for each token."""
    pause: str = ""
    """Why the request is sent again after a pause; empty if it is not in one."""

    def sent(self, body_bytes: int, *, is_streamed: bool) -> None:
        """Note that a request is sent."""
        self.requests += 1
        self.body_bytes, self.is_streamed = body_bytes, is_streamed
        self.has_headers, self.pieces, self.pause = False, 0, ""

    def describe(self, upstream: str) -> str:
        """Return what the turn waits for, in words."""
        prompt = f"the prompt (about {self.body_bytes // _BYTES_PER_TOKEN} tokens)"
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
