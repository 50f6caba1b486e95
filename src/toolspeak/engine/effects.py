"""The effects that a turn or a probe yields to its driver, which performs them and sends the results back.

    program = take_turn(...)
    Open(request)      send it upstream                      answered with None
    Pull(events)       emit these, then wait for more        answered with the events of one read, at least one
    Close()            stop reading the answer               answered with None
    Emit(events)       hand events to the client, in order   answered with None
    Escalate(why)      ask a stronger model                  answered with the events of its turn, or with None

The last event of an answer is one Finished or Failed; the driver turns every transport error into that Failed. Effects
carry batches of events, so that a turn costs per read and not per token.

A probe yields other effects:

    Look(path, body)   fetch a page of the server            answered with its bytes, or with a Failure
    AskOnce(request)   one request, read to its end          answered with all its events

Programs do no I/O, so the same turn runs in the gateway, in the library, and in the simulation, which drives it with
thousands of seeds.

A turn returns its `Outcome`: its events, and all that the client's protocol has no field for.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TypeAlias

from msgspec import Struct

from toolspeak.engine.plan import Plan
from toolspeak.engine.text_lane import TextLane
from toolspeak.engine.verdict import Verdict
from toolspeak.ir.complaint import Complaint
from toolspeak.ir.event import CallRejected, Event, Failed, Finished, Usage
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.request import Request
from toolspeak.ir.turn import Turn, fold

EMULATED = "tool calls emulated"
"""The warning that every emulated response carries (MODE-9)."""

QUESTION = "question"
"""The `tactic` of requests by which guardrails ask the model."""


class Kept(StrEnum):
    """What became of a constraint (CHK-8). The order matters: later members are worse."""

    UNASKED = "unasked"
    KEPT = "kept"
    IGNORED = "ignored"
    """The upstream accepted the constraint and returned an answer that it forbids."""
    REFUSED = "refused"
    """The upstream failed with the constraint, and the request was sent again without it."""


class Escalated(StrEnum):
    """What became of the wish to ask a stronger model (POOL-6)."""

    NO = "no"
    ANSWERED = "answered"
    """The client got the stronger model's answer."""
    FAILED = "failed"
    """It failed too, or its answer was no better."""
    DENIED = "denied"
    """The limit was reached."""


@dataclass(frozen=True)
class Outcome:
    """The result of a turn. `turn` is the fold of all emitted events; its usage sums up all upstream requests."""

    events: tuple[Event, ...]
    """The emitted events; pieces of one text, or of one call, are joined."""
    plan: Plan
    requests: int
    """The number of upstream requests, hidden ones included."""
    warnings: tuple[str, ...] = ()
    refused: FailureKind | None = None
    """The error after which the turn tried another tactic."""
    complaints: tuple[Complaint, ...] = ()
    """Why attempted calls were not delivered, over all attempts."""
    constraint: Kept = Kept.UNASKED
    """What became of constraints; the worst over all attempts."""
    rejected: tuple[CallRejected, ...] = ()
    """The calls that the model wrote and that must not run, over all attempts."""
    native: int = 0
    """Calls that the upstream returned as calls."""
    rescued: int = 0
    """Calls that the upstream, which was sent the tools, returned as text or quoted in an error."""
    empty: int = 0
    """Empty answers of the upstream although it was sent the tools."""
    echoed: bool = False
    """Whether `refused` was read from words of the request itself; then it proves nothing about the upstream (CAP-6).

    An upstream may quote a client's field in its error. A `user` field of "this does not support tools" once made the
    gateway emulate the calls of all clients for ten minutes.
    """
    denied: bool = False
    """Whether the model said that it has no tools, though they were sent to an upstream of unknown support (CAP-7)."""
    unseen: bool = False
    """Whether the upstream counted fewer tokens than the tools that were sent to it need: it dropped them (CAP-7)."""
    written: str = ""
    """The dialect in which the model wrote the calls of an emulated turn, taught or not (INL-9); empty if unknown."""
    escalated: Escalated = Escalated.NO
    replanned: Plan | None = None
    """The plan as it was carried out, if the turn ended on another tactic than it began with."""

    @property
    def taken(self) -> Plan:
        """The plan as it was carried out; its reason names the tactics that were tried."""
        return self.replanned or self.plan

    @cached_property
    def turn(self) -> Turn:
        """The emitted events as a turn. It is folded when it is first needed."""
        return fold(self.events)

    @property
    def usage(self) -> Usage:
        """The tokens of all upstream requests."""
        last = self.events[-1] if self.events else None
        return last.usage if isinstance(last, Finished | Failed) else Usage()


# One effect is made for each read of each stream. They hold no cycles, so the garbage collector need not look at them.
class Open(Struct, frozen=True, gc=False):
    """Send a request; the driver closes an answer that is still open first."""

    request: Request
    plan: Plan | None = None
    """The plan as it is carried out from here on; None if it is the one that the turn began with."""
    tactic: str = ""
    """The tactic that sends the request (`tactics.Name`), or `question` for one of a guardrail; traces show it."""
    why: str = ""
    """Why the turn sends another request; empty for its first. Traces show it."""


class Pull(Struct, frozen=True, gc=False):
    """Hand events to the client, as Emit does, then wait for more of the answer.

    Both are one effect because they are the most frequent pair: it saves one step of the generator for each chunk.
    """

    events: Sequence[Event] = ()
    lane: TextLane | None = None
    """Tells plain text: a driver may hand it to the client and wait on, without a step of the turn."""


class Close(Struct, frozen=True, gc=False):
    """Stop the answer; the driver closes the upstream connection."""


class Emit(Struct, frozen=True, gc=False):
    """Hand events to the client; they are never taken back."""

    events: Sequence[Event]


class Escalate(Struct, frozen=True, gc=False):
    """Let a stronger model take the same turn, hidden from the client.

    The reply is all events of that turn, which end with Finished or Failed; None if the driver has no stronger model or
    its limit is reached. The driver closes an answer that is still open first.
    """

    why: str
    """What is wrong with the calls."""


CLOSE = Close()
TurnEffect: TypeAlias = Open | Pull | Close | Emit | Escalate
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
