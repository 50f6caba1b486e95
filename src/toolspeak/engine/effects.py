"""What a turn asks of its driver. A program yields effects, and gets their answers sent back.

    program = take_turn(...)
    Open(request)      send it upstream                      answered with None
    Pull(events)       hand these over, then wait for more   answered with the events of one read, at least one
    Close()            stop reading: nothing more is wanted  answered with None
    Emit(events)       hand over to the client, in order     answered with None

The last event that a Pull gives is one Finished or Failed; whatever goes wrong below becomes that Failed. Effects carry
batches, so that a turn costs per read and not per token.
"""

from collections.abc import Generator, Sequence
from typing import TypeAlias

from msgspec import Struct

from toolspeak.engine.outcome import Outcome
from toolspeak.ir.event import Event
from toolspeak.ir.request import Request


class Open(Struct, frozen=True, gc=False):
    """Send a request; an answer that is still open is closed first."""

    request: Request


class Pull(Struct, frozen=True, gc=False):
    """Hand events to the client, as Emit does, then wait for more of the answer: one step for what comes most."""

    events: Sequence[Event] = ()


class Close(Struct, frozen=True, gc=False):
    """Stop the answer."""


class Emit(Struct, frozen=True, gc=False):
    """Hand events to the client: what is emitted is never taken back."""

    events: Sequence[Event]


CLOSE = Close()
Effect: TypeAlias = Open | Pull | Close | Emit
Answer: TypeAlias = list[Event] | None
Program: TypeAlias = Generator[Effect, Answer, Outcome]
"""A whole turn."""
Step: TypeAlias = Generator[Effect, Answer, None]
"""A part of one."""
