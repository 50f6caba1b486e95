"""Answers the endpoints besides turns: health, the list of models, one model, and the token count of a prompt."""

from typing import Final
from urllib.parse import unquote

import msgspec

from toolspeak import wires
from toolspeak.config.shape import Key
from toolspeak.errors import BadField, NotStored
from toolspeak.gateway.access import is_permitted, permit
from toolspeak.gateway.exchange import Exchange, Refused
from toolspeak.gateway.request_reader import RequestReader
from toolspeak.gateway.response_store import ResponseStore
from toolspeak.gateway.routes import Target
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call, Image, Message, Reasoning, Result, Text
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.runtime.directory import Directory, Route
from toolspeak.text.strict import dump
from toolspeak.wires import ModelEntry, Operation

_HOME = "toolspeak is running\n"
_CONTEXT: Final = 131_072
"""The context length that is reported for a model if it is unknown: clients compact their history by it."""
_BYTES_PER_TOKEN, _TOKENS_PER_MESSAGE, _TOKENS_PER_IMAGE = 4, 4, 800
"""Of the estimate of tokens."""
_encode = msgspec.json.Encoder().encode


async def body_of(
    exchange: Exchange, target: Target, directory: Directory, reader: RequestReader, key: Key
) -> bytes | str:
    """Return the body of the response: bytes are JSON, a string is plain text. Raises `Refused`, `BadField`."""
    if target.what == Operation.HOME:
        return _HOME
    return _encode(await _value(exchange, target, directory, reader, key))


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


def stored_response(method: str, id: str, store: ResponseStore, key: Key) -> bytes:
    """Return a stored response, or delete it and say so. Raises `NotStored`."""
    found = store.finder(key.tenant)(unquote(id))
    if found is None:
        raise NotStored("", f"Response with id '{id[:100]}' not found.", "response_not_found")
    if method != "DELETE":
        return found.answer
    store.drop(key.tenant, unquote(id))
    return _encode({"id": unquote(id), "object": "response", "deleted": True})


async def _entries(directory: Directory, key: Key) -> list[ModelEntry]:
    listed = await directory.listing()
    # A tenant does not learn the names of models that its key may not use.
    return [_entry(one.name, one.route) for one in listed if is_permitted(key, one.route)]


def _entry(name: str, route: Route) -> ModelEntry:
    """Describe a model, with its mode and the known support for tools (OBS-4)."""
    mode, known = route.settings.mode, route.known
    tools: JsonObject = {"mode": mode.value if mode else "auto", "upstream_tools": known.tools.value}
    return ModelEntry(name, route.place, known.context_tokens or _CONTEXT, tools)


async def _model(exchange: Exchange, target: Target, directory: Directory, key: Key) -> JsonObject:
    """Describe one model. A name that is routed to another model gets that model's facts."""
    name = unquote(target.name) if target.name else _shown_name(await exchange.body())
    route = await directory.find(name)
    permit(key, route)
    return wires.load(target.wire).encode_model(_entry(name, route))


class _Show(msgspec.Struct):
    """The body of Ollama's `POST /api/show`; `name` is the field that older clients send."""

    model: str = ""
    name: str = ""


def _shown_name(body: bytes) -> str:
    try:
        shown = msgspec.json.decode(body, type=_Show)
    except msgspec.MsgspecError as error:
        raise BadField("model", str(error)) from None
    if not (shown.model or shown.name):
        raise BadField("model", "it is missing: it names the model to show")
    return shown.model or shown.name


async def _count(
    exchange: Exchange, target: Target, directory: Directory, reader: RequestReader, key: Key
) -> JsonObject:
    wire = wires.load(target.wire)
    body = wire.unwrap_count(await exchange.body())
    request, prepare = await reader.read(wire, body, exchange.path)
    permit(key, await directory.find(request.model))
    return wire.encode_count(await prepare(lambda: estimate_tokens(request)))


def _missing(message: str) -> Refused:
    return Refused(Failure(FailureKind.NOT_FOUND, message, 404))


# ---------------------------------------------------------------- tokens


def estimate_tokens(request: Request) -> int:
    """Estimate the tokens of a request: four bytes of UTF-8 each, and a constant for each message and image.

    No tokenizer fits every model, and clients ask only to know when to compact their history.
    """
    size = sum(_message_bytes(message) for message in request.messages)
    size += sum(_tool_bytes(tool) for tool in request.offered())
    images = sum(_images(message) for message in request.messages)
    overhead = _TOKENS_PER_MESSAGE * len(request.messages) + _TOKENS_PER_IMAGE * images
    return max(1, size // _BYTES_PER_TOKEN + overhead)


def _message_bytes(message: Message) -> int:
    size = 0
    for part in message.parts:
        match part:
            case Text(text) | Reasoning(text):
                size += _bytes(text)
            case Call():
                size += _bytes(part.name) + _bytes(part.arguments)
            case Result():
                size += sum(_bytes(piece.text) for piece in part.content if isinstance(piece, Text))
            case _:
                pass
    return size


def _images(message: Message) -> int:
    inner = [piece for part in message.parts if isinstance(part, Result) for piece in part.content]
    return sum(isinstance(part, Image) for part in (*message.parts, *inner))


def _tool_bytes(tool: Tool) -> int:
    return _bytes(tool.name) + _bytes(tool.description) + len(dump(tool.parameters))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
