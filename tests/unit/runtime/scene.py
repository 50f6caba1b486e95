"""What the tests of upstreams share: a request, answers as vendors write them, a clock that does not wait."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from typing_extensions import override

from testkit.loopback import Loopback, Out, Say
from testkit.vendor_answers import STREAMS, WHOLES, Answer
from toolspeak import wires
from toolspeak.ir.event import Event, Failed, Finished
from toolspeak.ir.failure import Failure
from toolspeak.ir.message import Message, Role, Text
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.http_transport import HttpTransport
from toolspeak.runtime.replica_client import RETRIES, UpstreamAddress
from toolspeak.runtime.transport import DEFAULT_TIMEOUTS, Timeouts
from toolspeak.runtime.upstream import HttpUpstream

CHAT = "openai_chat"
WIRES = tuple(STREAMS)
KEY = "canary-7f3a"
HEADERS = (("authorization", f"Bearer {KEY}"),)
STREAM_TYPES = {"ollama": "application/x-ndjson"}
SSE = "text/event-stream"
WEATHER = Tool(
    "get_weather",
    "Weather now",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
REQUEST = Request("m", (Message(Role.USER, (Text("Is it cold in Oslo?"),)),), (WEATHER,))
STREAMED = Request("m", REQUEST.messages, REQUEST.tools, stream=True)
COLD = Answer(text="It is cold, \N{SNOWFLAKE} indeed.")
CALL = Answer(text="Let me see.", calls=(("call_abc123", "get_weather", {"city": "Oslo"}),))


@dataclass
class Paced(Clock):
    """A clock of which all pauses are over at once, and kept."""

    pauses: list[float] = field(default_factory=list[float])
    luck: float = 0.0
    now: float = 1000.0

    @override
    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    @override
    def chance(self) -> float:
        return self.luck

    @override
    def monotonic(self) -> float:
        return self.now


def stream_of(wire: str, answer: Answer) -> bytes:
    return STREAMS[wire](answer).encode()


def whole_of(wire: str, answer: Answer) -> bytes:
    return json.dumps(WHOLES[wire](answer)).encode()


def stream_type(wire: str) -> str:
    return STREAM_TYPES.get(wire, SSE)


async def say_stream(out: Out, wire: str = CHAT, answer: Answer = COLD, size: int = 40) -> None:
    data = stream_of(wire, answer)
    pieces = (data[start : start + size] for start in range(0, len(data), size))
    await out.stream(*pieces, media=stream_type(wire))


@asynccontextmanager
async def upstream(  # noqa: PLR0913 - what an address has
    server: Loopback,
    wire: str = CHAT,
    *,
    clock: Clock | None = None,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
    retries: int = RETRIES,
    headers: Sequence[tuple[str, str]] = HEADERS,
    public: Sequence[tuple[str, str]] = (),
) -> AsyncGenerator[HttpUpstream]:
    transport = HttpTransport()
    address = UpstreamAddress(server.url, headers, timeouts=timeouts, retries=retries, public=public)
    try:
        yield HttpUpstream(transport, wires.load(wire), address, clock or Paced())
    finally:
        await transport.close()


async def answered(opened: HttpUpstream, request: Request = STREAMED) -> list[Event]:
    """Ask, as a driver does: not beyond the last event."""
    events: list[Event] = []
    batches = opened.open(request)
    try:
        async for batch in batches:
            events += batch
            if isinstance(batch[-1], Finished | Failed):
                break
    finally:
        await batches.aclose()
    assert [isinstance(event, Finished | Failed) for event in events].index(True) == len(events) - 1
    return events


async def asked(say: Say, request: Request = STREAMED, clock: Clock | None = None, retries: int = RETRIES) -> Failure:
    """Say how asking such a server fails."""
    async with Loopback(say) as server, upstream(server, clock=clock, retries=retries) as opened:
        last = (await answered(opened, request))[-1]
    assert isinstance(last, Failed)
    return last.failure
