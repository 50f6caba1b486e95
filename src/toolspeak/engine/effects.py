"""What a turn asks of its driver. A program yields effects, and gets their answers sent back.

    program = take_turn(...)
    Open(request)      send it upstream                      answered with None
    Pull(events)       hand these over, then wait for more   answered with the events of one read, at least one
    Close()            stop reading: nothing more is wanted  answered with None
    Emit(events)       hand over to the client, in order     answered with None

The last event that a Pull gives is one Finished or Failed; whatever goes wrong below becomes that Failed. Effects carry
batches, so that a turn costs per read and not per token.

A probe asks for other things:

    Look(path, body)   fetch a page of the server            answered with its bytes, or with a Failure
    Ask(request)       one request, read to its end          answered with all its events
"""

from collections.abc import Generator, Sequence
from typing import TypeAlias

from msgspec import Struct

from toolspeak.engine.outcome import Outcome
from toolspeak.engine.verdict import Verdict
from toolspeak.ir.event import Event
from toolspeak.ir.failure import Failure
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
TurnEffect: TypeAlias = Open | Pull | Close | Emit
EffectReply: TypeAlias = list[Event] | None
TurnProgram: TypeAlias = Generator[TurnEffect, EffectReply, Outcome]
"""A whole turn."""
Step: TypeAlias = Generator[TurnEffect, EffectReply, None]
"""A part of one."""


class Look(Struct, frozen=True, gc=False):
    """Fetch something small. A path with a slash in front is one of the server, else it follows the base URL."""

    path: str
    body: bytes = b""
    """JSON to be posted; without it the page is got."""


class AskOnce(Struct, frozen=True, gc=False):
    """Send a request, and read its answer to the end."""

    request: Request


ProbeEffect: TypeAlias = Look | AskOnce
ProbeAnswer: TypeAlias = bytes | Failure | list[Event] | None
ProbeProgram: TypeAlias = Generator[ProbeEffect, ProbeAnswer, Verdict]
"""A whole probe."""
