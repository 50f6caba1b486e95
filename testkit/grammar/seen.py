"""What a client has seen of one response, the same on every wire.

`usage` is all input and output tokens: on the Anthropic wire the input that was read from or written
to a cache is added, on the Gemini wire the thoughts are added to the output.
"""

from dataclasses import dataclass, field


class GrammarError(Exception):
    """Bytes that a client of this wire would refuse, or lose; the message names the place."""


@dataclass(frozen=True, slots=True)
class SeenCall:
    """One call. `arguments` is the parsed object; for a custom (free-form) call it is the text."""

    id: str
    name: str
    arguments: object
    kind: str = "function"
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """One response.

    `stop` is the vendor's own word ("tool_calls", "end_turn", "STOP"); on the Responses wire the status, or the reason
    why it is incomplete ("max_output_tokens"). It is empty when an error ended the stream before any such word.
    `order` has "text", "reasoning" or "call" for each part in the order in which they began; neighbours of one kind
    other than calls are one part, and parts without any content are none.
    """

    text: str
    reasoning: str
    signatures: tuple[str, ...]
    calls: tuple[SeenCall, ...]
    stop: str
    error: str
    usage: tuple[int, int] | None
    order: tuple[str, ...]


@dataclass(slots=True)
class Notes:
    """What a machine has recorded so far."""

    texts: list[str] = field(default_factory=list[str])
    reasonings: list[str] = field(default_factory=list[str])
    signatures: list[str] = field(default_factory=list[str])
    calls: list[SeenCall] = field(default_factory=list[SeenCall])
    order: list[str] = field(default_factory=list[str])
    stop: str = ""
    error: str = ""
    usage: tuple[int, int] | None = None

    def text(self, piece: str) -> None:
        """Note visible text."""
        self.texts.append(piece)
        self._began("text", piece)

    def reasoning(self, piece: str, signature: str = "") -> None:
        """Note reasoning and its seal."""
        self.reasonings.append(piece)
        self.signature(signature)
        self._began("reasoning", piece or signature)

    def signature(self, value: str) -> None:
        """Note a seal; it may belong to a call."""
        if value:
            self.signatures.append(value)

    def call_began(self) -> None:
        """Note that a call began; its end may never come."""
        self.order.append("call")

    def call(self, call: SeenCall) -> None:
        """Note a complete call that began before."""
        self.calls.append(call)

    def seal(self) -> Seen:
        """Return all of it."""
        return Seen(
            text="".join(self.texts),
            reasoning="".join(self.reasonings),
            signatures=tuple(self.signatures),
            calls=tuple(self.calls),
            stop=self.stop,
            error=self.error,
            usage=self.usage,
            order=tuple(self.order),
        )

    def _began(self, kind: str, content: str) -> None:
        if content and self.order[-1:] != [kind]:
            self.order.append(kind)
