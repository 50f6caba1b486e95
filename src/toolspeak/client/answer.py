"""What a client gets back."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from toolspeak.engine.outcome import Outcome
from toolspeak.engine.plan import Plan
from toolspeak.errors import BadField
from toolspeak.ir.complaint import Complaint
from toolspeak.ir.event import StopReason, Usage
from toolspeak.ir.message import Call, Message, Reasoning, Result, Role, Text
from toolspeak.ir.turn import Turn


@dataclass(frozen=True)
class Answer:
    """One turn of the model, and how it was got."""

    outcome: Outcome

    @cached_property
    def turn(self) -> Turn:
        """Return all parts, in the order in which the model wrote them."""
        return self.outcome.turn

    @property
    def text(self) -> str:
        """Return the visible text."""
        return self.turn.text

    @property
    def reasoning(self) -> str:
        """Return what the model thought."""
        return self.turn.reasoning

    @property
    def calls(self) -> tuple[Call, ...]:
        """Return the calls that may run."""
        return self.turn.calls

    @property
    def stop(self) -> StopReason:
        """Return why the model stopped."""
        return self.turn.stop or StopReason.END

    @property
    def usage(self) -> Usage:
        """Return the tokens of all upstream requests."""
        return self.outcome.usage

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what the caller should know, such as that calls were emulated."""
        return self.outcome.warnings

    @property
    def complaints(self) -> tuple[Complaint, ...]:
        """Return why attempted calls were not delivered."""
        return self.outcome.complaints

    @property
    def plan(self) -> Plan:
        """Return what was done, and why."""
        return self.outcome.plan

    @property
    def requests(self) -> int:
        """Return how many upstream requests it took."""
        return self.outcome.requests

    @property
    def message(self) -> Message:
        """Return the answer as a message, to go on with."""
        kept = tuple(part for part in self.turn.parts if isinstance(part, Text | Reasoning | Call))
        return Message(Role.ASSISTANT, kept)


def tool_result(call: Call, result: Any, *, is_error: bool = False) -> Message:  # noqa: ANN401 # what JSON can say
    """Return the message that answers a call; what is no text is written as JSON."""
    try:
        text = result if isinstance(result, str) else msgspec.json.encode(result).decode()
    except (TypeError, ValueError) as error:
        raise BadField("result", f"it cannot be written as JSON: {error}") from None
    return Message(Role.TOOL, (Result(call.id, (Text(text),), call.name, is_error),))
