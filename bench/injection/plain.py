"""The plain forms beside a client that has a system prompt of its own: the two become one message.

`seeds.py` puts its prompt before the client's as a second system message. With two of them Qwen2.5-Coder-0.5B repeats
the system prompt instead of acting, which would flatter all other forms.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace

from typing_extensions import override

from bench.accuracy.speak import PRESET, TIMEOUTS, Where
from toolspeak import wires
from toolspeak.ir.event import Event
from toolspeak.ir.message import Message, Role, Text
from toolspeak.ir.request import Request
from toolspeak.runtime.upstream import HttpUpstream, UpstreamAddress
from toolspeak.upstreams import load as load_preset


class _OneSystemMessage(HttpUpstream):
    """Joins the system messages of each request at its beginning."""

    @override
    def open(self, request: Request) -> AsyncGenerator[list[Event], None]:
        return super().open(joined(request))


def joined(request: Request) -> Request:
    """Return the request with all of its system messages in one, at the beginning."""
    system = [
        part.text
        for message in request.messages
        if message.role is Role.SYSTEM
        for part in message.parts
        if isinstance(part, Text)
    ]
    others = tuple(message for message in request.messages if message.role is not Role.SYSTEM)
    first = (Message(Role.SYSTEM, (Text("\n\n".join(system)),)),) if system else ()
    return replace(request, messages=(*first, *others))


@dataclass(frozen=True, slots=True)
class PlainWhere(Where):
    """The model, for a plain form."""

    @override
    def upstream(self) -> HttpUpstream:
        address = UpstreamAddress(f"{self.url}/v1", (), load_preset(PRESET).quirks, TIMEOUTS)
        return _OneSystemMessage(self.transport, wires.load("openai_chat"), address)
