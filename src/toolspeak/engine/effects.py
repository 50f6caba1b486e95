"""The effects that a turn or a probe yields to its driver, which performs them and sends the results back.

    program = take_turn(...)
    Open(request)      send it upstream                      answered with None
    Pull(events)       emit these, then wait for more        answered with the events of one read, at least one
    Close()            stop reading the answer               answered with None
    Emit(events)       hand events to the client, in order   answered with None

The last event of an answer is one Finished or Failed; the driver turns every transport error into that Failed. Effects
carry batches of events, so that a turn costs per read and not per token.

A probe yields other effects:

    Look(path, body)   fetch a page of the server            answered with its bytes, or with a Failure
    AskOnce(request)   one request, read to its end          answered with all its events

Programs do no I/O, so the same turn runs in the gateway, in the library, and in the simulation, which drives it with
thousands of seeds.
"""

from collections.abc import Generator, Sequence
from typing import TypeAlias

from msgspec import Struct

from toolspeak.engine.outcome import Outcome
from toolspeak.engine.verdict import Verdict
from toolspeak.ir.event import Event
from toolspeak.ir.failure import Failure
from toolspeak.ir.request import Request


# One effect is made for each read of each stream. They hold no cycles, so the garbage collector need not look at them.
class Open(Struct, frozen=True, gc=False):
    """Send a request; the driver closes an answer that is still open first."""

    request: Request


class Pull(Struct, frozen=True, gc=False):
    """Hand events to the client, as Emit does, then wait for more of the answer.

    Both are one effect because they are the most frequent pair: it saves one step of the generator for each chunk.
    """

    events: Sequence[Event] = ()


class Close(Struct, frozen=True, gc=False):
    """Stop the answer; the driver closes the upstream connection."""


class Emit(Struct, frozen=True, gc=False):
    """Hand events to the client; they are never taken back."""

    events: Sequence[Event]


CLOSE = Close()
TurnEffect: TypeAlias = Open | Pull | Close | Emit
EffectReply: TypeAlias = list[Event] | None
TurnProgram: TypeAlias = Generator[TurnEffect, EffectReply, Outcome]
"""A whole turn."""
Step: TypeAlias = Generator[TurnEffect, EffectReply, None]
"""A part of a turn."""


class Look(Struct, frozen=True, gc=False):
    """Fetch a small page. A path with a leading slash is relative to the server, any other to the base URL."""

    path: str
    body: bytes = b""
    """JSON for a POST; if it is empty, the page is fetched by GET."""


class AskOnce(Struct, frozen=True, gc=False):
    """Send a request, and read its answer to the end."""

    request: Request


ProbeEffect: TypeAlias = Look | AskOnce
ProbeAnswer: TypeAlias = bytes | Failure | list[Event] | None
ProbeProgram: TypeAlias = Generator[ProbeEffect, ProbeAnswer, Verdict]
"""A whole probe."""
