"""Speakers of the forms: each sends one question with its tools, and returns what a client would get."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from bench.accuracy.score import Delivered
from toolspeak import wires
from toolspeak.engine.effects import Outcome
from toolspeak.engine.settings import Settings
from toolspeak.facts.model import UNKNOWN_MODEL, Support
from toolspeak.ir.event import Event
from toolspeak.ir.message import Message
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import Turn
from toolspeak.runtime.directory import Route
from toolspeak.runtime.replica_client import UpstreamAddress
from toolspeak.runtime.transport import Timeouts, UpstreamTransport
from toolspeak.runtime.upstream import HttpUpstream
from toolspeak.upstreams import load as load_preset

TIMEOUTS = Timeouts(first_byte=1800.0, idle=1800.0, total=1800.0)
PRESET = "llamacpp"


@dataclass(frozen=True, slots=True)
class Said:
    """What a client got."""

    text: str = ""
    calls: tuple[Delivered, ...] = ()
    failure: str = ""


class Speaker(Protocol):
    """Sends questions in one form."""

    async def ask(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Said:
        """Send a question; a failure is an answer too."""
        ...


@dataclass(frozen=True, slots=True)
class Where:
    """The model, its address, and how it samples."""

    url: str
    """Includes the account; `/v1` is appended."""
    model: str
    sampling: Sampling
    transport: UpstreamTransport

    def upstream(self) -> HttpUpstream:
        """Return the server as the library sees it."""
        quirks = load_preset(PRESET).quirks
        return HttpUpstream(
            self.transport, wires.load("openai_chat"), UpstreamAddress(f"{self.url}/v1", (), quirks, TIMEOUTS)
        )

    def request(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> Request:
        """Write a request."""
        return Request(self.model, tuple(messages), tuple(tools), sampling=self.sampling)


@dataclass(frozen=True, slots=True)
class Ours:
    """The library with these settings; nothing is learned from task to task, and no profile is read."""

    where: Where
    settings: Settings
    tools: Support = Support.UNKNOWN
    stronger: "Ours | None" = None
    """The model to escalate to if calls stay wrong (`escalate_to`)."""

    async def ask(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Said:
        route, request = self.route(), self.where.request(messages, tools)
        return said(await route.take(request, route.plan(request), _keep))

    def route(self) -> Route:
        """Return the model as the library sees it."""
        facts = replace(UNKNOWN_MODEL, tools=self.tools, quirks=load_preset(PRESET).quirks)
        stronger = self.stronger.route() if self.stronger else None
        return Route(
            "lab", self.where.upstream(), self.where.model, facts=facts, settings=self.settings, stronger=stronger
        )


async def _keep(events: Sequence[Event]) -> None:
    """Leave the events in the outcome."""


def said(outcome: Outcome) -> Said:
    """Return what the client gets from a turn."""
    return said_turn(outcome.turn)


def said_turn(turn: Turn) -> Said:
    """Return the text and calls of a turn, or its failure."""
    if turn.failure is not None:
        return Said(failure=turn.failure.message or turn.failure.kind)
    return Said(turn.text, tuple(Delivered(call.name, call.arguments) for call in turn.calls))
