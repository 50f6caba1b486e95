"""A request for one turn, independent of any wire."""

from dataclasses import dataclass, field

from toolspeak.ir.constraint import Constraint
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Message, Result, ToolReference
from toolspeak.ir.tool import AUTO, Tool, ToolChoice


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to generate; None leaves it to the upstream."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    effort: str | None = None
    """How much to reason, in the words of the vendors: none, minimal, low, medium, high, or a word of their own."""


@dataclass(frozen=True, slots=True)
class Request:
    """A client's request. `extra` keeps, per wire, the vendor fields that have no counterpart here.

    `output_schema` is the JSON Schema of the answer; an empty one asks for any JSON object. toolspeak itself sets
    `constraint`, the form of an emulated answer, and never beside `tools` or `output_schema` (CHK-8); and `top_tokens`,
    the number of likeliest first tokens whose probabilities it wants to know (CHK-14).
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    choice: ToolChoice = AUTO
    sampling: Sampling = Sampling()
    stream: bool = False
    output_schema: JsonObject | None = None
    constraint: Constraint | None = None
    extra: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    top_tokens: int = 0

    def offered(self) -> tuple[Tool, ...]:
        """Return the tools that the model may know: all but the deferred ones that no result has referred to."""
        if not any(tool.deferred for tool in self.tools):
            return self.tools
        referred = self.referred()
        return tuple(tool for tool in self.tools if not tool.deferred or tool.name in referred)

    def referred(self) -> frozenset[str]:
        """Return the names of the deferred tools that results have made available."""
        return frozenset(
            piece.name
            for message in self.messages
            for part in message.parts
            if isinstance(part, Result)
            for piece in part.content
            if isinstance(piece, ToolReference)
        )
