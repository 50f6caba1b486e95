"""A request for one turn."""

from dataclasses import dataclass, field

from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Message
from toolspeak.ir.tool import AUTO, Tool, ToolChoice


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to generate; None leaves it to the upstream."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """What a client wants. `extra` keeps, per wire, the vendor fields that have no word here."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    choice: ToolChoice = AUTO
    sampling: Sampling = Sampling()
    stream: bool = False
    output_schema: JsonObject | None = None
    extra: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
