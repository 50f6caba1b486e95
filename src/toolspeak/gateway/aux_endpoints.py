"""Answers the endpoints besides turns: health, the list of models, one model, and the token count of a prompt."""

from urllib.parse import unquote

import msgspec

from toolspeak import wires
from toolspeak.config.shape import Key
from toolspeak.errors import BadField, NotStored
from toolspeak.gateway.access import find_route, is_permitted
from toolspeak.gateway.exchange import UNKNOWN_URL, Exchange, Refused
from toolspeak.gateway.request_reader import RequestReader
from toolspeak.gateway.response_store import ResponseStore
from toolspeak.gateway.routes import Target
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import JsonObject
from toolspeak.runtime.directory import Directory, Route
from toolspeak.runtime.upstream import HttpUpstream
from toolspeak.traces.audit import estimate_tokens
from toolspeak.wires import ModelEntry, Operation

_HOME = "toolspeak is running\n"
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
            message = f"there is nothing at {exchange.method} {exchange.path[:200]}"
            raise Refused(Failure(FailureKind.NOT_FOUND, message, 404, code=UNKNOWN_URL))


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
    if not listed and (problem := directory.silence()):  # an empty list would look like an upstream without models (P6)
        raise Refused(Failure(FailureKind.TRANSIENT, problem, 503))
    # A tenant does not learn the names of models that its key may not use.
    return [_entry(one.name, one.route) for one in listed if is_permitted(key, one.route)]


def _entry(name: str, route: Route) -> ModelEntry:
    """Describe a model, with its mode and the known support for tools (OBS-4), and whether it is loaded (UP-5)."""
    mode, known = route.settings.mode, route.known
    tools: JsonObject = {"mode": mode.value if mode else "auto", "upstream_tools": known.tools.value}
    if isinstance(route.upstream, HttpUpstream) and (state := route.upstream.model_state):
        tools["state"] = state
    return ModelEntry(name, route.place, known.context_tokens or None, tools)


async def _model(exchange: Exchange, target: Target, directory: Directory, key: Key) -> JsonObject:
    """Describe one model. A name that is routed to another model gets that model's facts."""
    name = unquote(target.name) if target.name else _shown_name(await exchange.body())
    route = await find_route(directory, name, key)
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
    await find_route(directory, request.model, key)
    return wire.encode_count(await prepare(lambda: estimate_tokens(request)))
