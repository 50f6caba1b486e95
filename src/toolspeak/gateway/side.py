"""What clients ask for beside turns: which models there are, how long a prompt is, whether anybody is here."""

from typing import Final
from urllib.parse import unquote

import msgspec

from toolspeak import wires
from toolspeak.config.shape import Key
from toolspeak.errors import BadField
from toolspeak.gateway.auth import is_permitted, permit
from toolspeak.gateway.exchange import Exchange, Refused
from toolspeak.gateway.request_reader import RequestReader
from toolspeak.gateway.routes import Target
from toolspeak.gateway.tokens import estimate
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import JsonObject
from toolspeak.runtime.directory import Directory, Route
from toolspeak.wires import ModelEntry, Operation

_HOME = "toolspeak is running\n"
_CONTEXT: Final = 131_072
"""Tokens that a model is said to take if that is not known."""
_dump = msgspec.json.Encoder().encode


async def body_of(
    exchange: Exchange, target: Target, directory: Directory, reader: RequestReader, key: Key
) -> bytes | str:
    """Answer; bytes are JSON, a string is text."""
    if target.what == Operation.HOME:
        return _HOME
    return _dump(await _value(exchange, target, directory, reader, key))


async def _value(
    exchange: Exchange, target: Target, directory: Directory, reader: RequestReader, key: Key
) -> JsonObject:
    match target.what:
        case Operation.HEALTH:
            return {"status": "ok"}
        case Operation.FIXED:
            return target.body or {}
        case Operation.MODELS:
            return wires.load(target.wire).encode_models(await _entries(directory, key))
        case Operation.MODEL:
            return await _model(exchange, target, directory, key)
        case Operation.COUNT:
            return await _count(exchange, target, directory, reader, key)
        case _:
            raise _missing(f"there is nothing at {exchange.method} {exchange.path[:200]}")


async def _entries(directory: Directory, key: Key) -> list[ModelEntry]:
    listed = await directory.listing()
    return [_entry(one.name, one.route) for one in listed if is_permitted(key, one.route)]


def _entry(name: str, route: Route) -> ModelEntry:
    """Describe a model, with what is known about its tools (OBS-4)."""
    mode, known = route.settings.mode, route.known
    tools: JsonObject = {"mode": mode.value if mode else "auto", "upstream_tools": known.tools.value}
    return ModelEntry(name, route.place, known.context_tokens or _CONTEXT, tools)


async def _model(exchange: Exchange, target: Target, directory: Directory, key: Key) -> JsonObject:
    """Tell about one model; a name that would be answered by another model has that model's facts."""
    name = unquote(target.name) if target.name else _shown_name(await exchange.body())
    route = await directory.find(name)
    permit(key, route)
    return wires.load(target.wire).encode_model(_entry(name, route))


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
    wire = wires.load(target.wire)
    body = wire.unwrap_count(await exchange.body())
    request, prepare = await reader.read(wire, body, exchange.path)
    permit(key, await directory.find(request.model))
    return wire.encode_count(await prepare(lambda: estimate(request)))


def _missing(message: str) -> Refused:
    return Refused(Failure(FailureKind.NOT_FOUND, message, 404))
