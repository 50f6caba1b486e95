"""What clients ask for beside turns: which models there are, how long a prompt is, whether anybody is here."""

from typing import Final
from urllib.parse import unquote

import msgspec

from toolspeak import wires
from toolspeak.config.shape import Key
from toolspeak.errors import BadField
from toolspeak.gateway import lists
from toolspeak.gateway.auth import is_permitted, permit
from toolspeak.gateway.exchange import Exchange, Refused
from toolspeak.gateway.lists import Entry
from toolspeak.gateway.request_reader import RequestReader
from toolspeak.gateway.routes import COUNT, GEMINI, MODEL, MODELS, RESPONSES, Target
from toolspeak.gateway.tokens import estimate
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import JsonObject
from toolspeak.runtime.directory import Directory

OLLAMA_VERSION: Final = "0.20.0"
"""Clients of Ollama ask for a least version before they send tools."""
_HOME = "toolspeak is running\n"
_dump = msgspec.json.Encoder().encode


async def body_of(
    exchange: Exchange, target: Target, directory: Directory, reader: RequestReader, key: Key
) -> bytes | str:
    """Answer; bytes are JSON, a string is text."""
    if target.what == "home":
        return _HOME
    return _dump(await _value(exchange, target, directory, reader, key))


async def _value(
    exchange: Exchange, target: Target, directory: Directory, reader: RequestReader, key: Key
) -> JsonObject:
    match target.what:
        case "health":
            return {"status": "ok"}
        case "version":
            return {"version": OLLAMA_VERSION}
        case "ps":
            return {"models": []}
        case str() as what if what == MODELS:
            return lists.LISTS[target.wire](await _entries(directory, key))
        case str() as what if what == MODEL:
            return await _model(exchange, target, directory, key)
        case str() as what if what == COUNT:
            return await _count(exchange, target, directory, reader, key)
        case _:
            raise _missing(f"there is nothing at {exchange.method} {exchange.path[:200]}")


async def _entries(directory: Directory, key: Key) -> list[Entry]:
    listed = await directory.listing()
    return [Entry(one.name, one.route) for one in listed if is_permitted(key, one.route)]


async def _model(exchange: Exchange, target: Target, directory: Directory, key: Key) -> JsonObject:
    """Tell about one model; a name that would be answered by another model has that model's facts."""
    name = unquote(target.name) if target.name else _shown_name(await exchange.body())
    route = await directory.find(name)
    permit(key, route)
    return lists.ONE[target.wire](Entry(name, route))


class _Show(msgspec.Struct):
    model: str = ""
    name: str = ""


def _shown_name(body: bytes) -> str:
    try:
        asked = msgspec.json.decode(body, type=_Show)
    except msgspec.MsgspecError as error:
        raise BadField("model", str(error)) from None
    if not (asked.model or asked.name):
        raise BadField("model", "it is missing: it names the model to show")
    return asked.model or asked.name


async def _count(
    exchange: Exchange, target: Target, directory: Directory, reader: RequestReader, key: Key
) -> JsonObject:
    body = await exchange.body()
    if target.wire == GEMINI:
        body = _inner_request(body)
    request, prepare = await reader.read(wires.load(target.wire), body, exchange.path)
    permit(key, await directory.find(request.model))
    count = await prepare(lambda: estimate(request))
    match target.wire:
        case str() as wire if wire == GEMINI:
            return {"totalTokens": count}
        case str() as wire if wire == RESPONSES:
            return {"object": "response.input_tokens", "input_tokens": count}
        case _:
            return {"input_tokens": count}


class _Counted(msgspec.Struct):
    generateContentRequest: msgspec.Raw = msgspec.Raw()  # noqa: N815 # the vendor's name


def _inner_request(body: bytes) -> bytes:
    """Return the request that is counted: some clients wrap it."""
    try:
        inner = msgspec.json.decode(body, type=_Counted).generateContentRequest
    except msgspec.MsgspecError:
        return body
    return bytes(inner) or body


def _missing(message: str) -> Refused:
    return Refused(Failure(FailureKind.NOT_FOUND, message, 404))
