"""Detects model servers on this machine by their responses, not by their ports.

GET /v1/models      {"data": [{"owned_by": "llamacpp"}]}    llama.cpp; vLLM and SGLang give their names there too
                    Server: llama.cpp                       also while it loads its model, or requires a key
GET /api/version    {"version": "0.13.0"}                   Ollama
GET /api/v0/models  {"data": [...]}                         LM Studio

A port proves nothing: many programs use 8000 and 8080. A server that is none of these gets no further request.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from toolspeak.runtime.transport import Timeouts, TransportError, UpstreamTransport

_TIMEOUTS = Timeouts(connect=0.3, first_byte=0.7, idle=0.7, total=1.0)
_LIMIT = 1.0
"""Seconds for all requests to one place."""
_MOST = 1 << 20
_OK = 200
# The last two are the placeholder that LM Studio sends as the owner.
_OWNERS = {
    "llamacpp": "llamacpp",
    "vllm": "vllm",
    "sglang": "sglang",
    "organization_owner": "lmstudio",
    "organization-owner": "lmstudio",
}
_LLAMACPP = "llama.cpp"
_OURS = "x-toolspeak-"
_NOT_FOR_CHAT = ("embedding", "embeddings")


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server that was found: its preset, its base URL, and the models that it lists."""

    preset: str
    url: str
    models: tuple[str, ...] = ()


async def find_local(transport: UpstreamTransport, places: Sequence[str]) -> LocalServer | None:
    """Look at all places (such as `http://127.0.0.1:8080`) at once. Return the first in this order with a server."""
    async with asyncio.TaskGroup() as group:
        looks = [group.create_task(_look(transport, place)) for place in places]
        found: LocalServer | None = None
        for look in looks:
            if found is None:
                found = await look
            else:
                look.cancel()
    return found


async def _look(transport: UpstreamTransport, place: str) -> LocalServer | None:
    try:
        # A silent server must not delay the start of toolspeak.
        async with asyncio.timeout(_LIMIT):
            return await _known(transport, place)
    except (TransportError, TimeoutError):
        return None


async def _known(transport: UpstreamTransport, place: str) -> LocalServer | None:
    listed, headers = await _ask(transport, f"{place}/v1/models")
    if any(name.lower().startswith(_OURS) for name in headers):
        return None  # another toolspeak gateway, which answers the requests of all kinds
    owner = next((_OWNERS[entry.owned_by] for entry in listed.data if entry.owned_by in _OWNERS), None)
    if headers.get("server") == _LLAMACPP:
        owner = "llamacpp"
    if owner:
        return LocalServer(owner, f"{place}/v1", listed.names)
    if (await _ask(transport, f"{place}/api/version"))[0].version:
        tags, _ = await _ask(transport, f"{place}/api/tags")
        return LocalServer("ollama", place, tags.names)
    studio, _ = await _ask(transport, f"{place}/api/v0/models")
    return LocalServer("lmstudio", f"{place}/v1", studio.names) if studio.data else None


class _Entry(msgspec.Struct):
    id: str = ""
    name: str = ""
    owned_by: str = ""
    type: str = ""


class _Answer(msgspec.Struct):
    data: list[_Entry] = []
    models: list[_Entry] = []
    version: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        fit = (entry for entry in self.data or self.models if entry.type not in _NOT_FOR_CHAT)
        return tuple(entry.id or entry.name for entry in fit)


async def _ask(transport: UpstreamTransport, url: str) -> tuple[_Answer, Mapping[str, str]]:
    """Return a server's response. It is empty for an error, or a body that is too long or not JSON of this form."""
    response = await transport.send("GET", url, (), b"", _TIMEOUTS)
    body = bytearray()
    try:
        # Any program may listen on these ports, so the size of its response is bounded.
        while len(body) <= _MOST and (chunk := await response.read()):
            body += chunk
    finally:
        response.close()
    try:
        answer = msgspec.json.decode(body, type=_Answer) if response.status == _OK else _Answer()
    except msgspec.MsgspecError:
        answer = _Answer()
    return answer, response.headers
