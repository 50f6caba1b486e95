"""Remembers the tools of a conversation, for its later requests that no longer have them (INL-4).

Clients send the whole history in each request, and its beginning does not change, so the beginning identifies the
conversation.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Final

from toolspeak.errors import BadJson
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call, Message, Role, Text
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.text.strict import parse
from toolspeak.toolset.memo import Memo
from toolspeak.toolset.toolset import ToolSet

_OFFERED: Final = Memo[tuple[Tool, ...]](8)
"""Few entries, because this cache does not measure the size of the tools that it keeps."""


def memory_key(request: Request, tenant: str = "") -> str:
    """Return the key of a conversation: a hash of the tenant, the model, and all text up to the first user message.

    The tenant is part of it so that no client can continue the conversation of another one (Open WebUI's
    CVE-2026-45349). Lengths are hashed too, so that two different splits of a text differ. Only text counts: vendors
    change other parts between turns.
    """
    # "replace": a lone surrogate in a client's text must not make the request fail.
    digest = sha256(f"{len(tenant)}:{tenant}\0{request.model}".encode("utf-8", "replace"))
    for message in _opening(request.messages):
        for part in message.parts:
            if isinstance(part, Text):
                digest.update(f"\0{message.role}\0{len(part.text)}\0{part.text}".encode("utf-8", "replace"))
    return digest.hexdigest()


class ToolMemory:
    """The tools of the latest conversations of each tenant, in this process. A tenant never gets those of another.

    Conversations and the bytes of their tools are bounded for each tenant, so one tenant cannot evict the tools of
    another; tenants are as many as the operator has made keys for.
    """

    def __init__(self, most: int = 256, most_bytes: int = 4 << 20) -> None:
        """Start empty; the oldest conversation of a tenant is dropped first (P7)."""
        self._most, self._most_bytes = most, most_bytes
        self._tenants: dict[str, OrderedDict[str, tuple[tuple[Tool, ...], int]]] = {}

    def learn(self, request: Request, tenant: str = "") -> None:
        """Remember the tools of a request as those of its conversation."""
        if not request.tools:
            return
        known = self._tenants.setdefault(tenant, OrderedDict())
        key = memory_key(request, tenant)
        tools, size = known.pop(key, ((), 0))
        if tools is not request.tools:  # wires read the same bytes into the same tuple, whose size is known
            size = ToolSet.size_of(request.tools)
        if size > self._most_bytes // 4:
            return
        known[key] = (request.tools, size)
        while len(known) > self._most or sum(taken for _, taken in known.values()) > self._most_bytes:
            known.popitem(last=False)

    def recall(self, request: Request, tenant: str = "") -> tuple[Tool, ...]:
        """Return the tools of the conversation, if the request has none and calls in its history.

        Two conversations may begin with the same words. The tools count only if all calls of the history are theirs.
        """
        known = self._tenants.get(tenant)
        called = set[str]() if request.tools else {call.name for call in _calls(request)}
        if known is None or not called:
            return ()
        tools, _ = known.get(memory_key(request, tenant), ((), 0))
        return _offered(replace(request, tools=tools)) if called <= {tool.name for tool in tools} else ()


def _calls(request: Request) -> Iterator[Call]:
    return (part for message in request.messages for part in message.parts if isinstance(part, Call))


def known_tools(request: Request, remembered: Iterable[Tool] = ()) -> tuple[Tool, ...]:
    """Return the tools that the model may call: the request's, else the remembered ones, else those it has called."""
    return _allowed(_offered(request) or tuple(remembered) or inferred_tools(request), request.choice.allowed)


def _offered(request: Request) -> tuple[Tool, ...]:
    """Return the offered tools; equal requests get the identical tuple, which is the key of other caches."""
    if not any(tool.deferred for tool in request.tools):
        return request.tools
    referred = request.referred()
    return _OFFERED.find(request.tools, referred) or _OFFERED.keep(request.tools, request.offered(), 0, referred)


def inferred_tools(request: Request) -> tuple[Tool, ...]:
    """Return tools made from the calls of a history: their names and the arguments that were used, without types."""
    seen: dict[str, dict[str, Json]] = {}
    for call in _calls(request):
        seen.setdefault(call.name, {}).update({key: {} for key in _keys(call.arguments)})
    return tuple(Tool(name, "", _schema(properties)) for name, properties in seen.items())


def _opening(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    first = next((i for i, message in enumerate(messages) if message.role is Role.USER), len(messages))
    return messages[: first + 1]


def _allowed(tools: tuple[Tool, ...], names: tuple[str, ...]) -> tuple[Tool, ...]:
    return tuple(tool for tool in tools if tool.name in names) if names else tools


def _keys(arguments: str) -> tuple[str, ...]:
    try:
        value = parse(arguments)
    except BadJson:
        return ()
    return tuple(value) if isinstance(value, dict) else ()


def _schema(properties: dict[str, Json]) -> JsonObject:
    return {"type": "object", "properties": properties}
