"""Parley: a conversation is a list of lines, and an answer is further lines.

    POST /parley/talk    {"model": "m", "lines": [{"user": "Hi"}], "tools": [{"name": "now"}], "stream": true}
    ->                   {"text": "He"}
                         {"text": "llo"}
                         {"call": {"id": "1", "name": "now", "arguments": "{}"}}
                         {"end": "calls"}

A whole answer is `{"answer": […]}` with the same lines, and an error is `{"error": "…"}`.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from toolspeak.errors import BadField
from toolspeak.ir.event import ArgsDelta, CallEnded, CallStarted, Event, Failed, Finished, StopReason, TextDelta
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call, Message, Result, Role, Text
from toolspeak.ir.quirks import Quirks
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import Turn, unfold
from toolspeak.wires import EncodedRequest, Endpoint, ErrorBody, HttpApi, ModelEntry, Operation, Stamp, Wire

_CUT: Final = Failure(FailureKind.DISCONNECTED, "the answer has no end", 502)


# ---------------------------------------------------------------- as the server


def decode_request(body: bytes, path: str) -> Request:
    del path
    try:
        said: dict[str, Any] = json.loads(body)
        messages = tuple(_message(*next(iter(line.items()))) for line in said["lines"])
        tools = tuple(Tool(tool["name"], parameters=tool.get("schema", {})) for tool in said.get("tools", ()))
        return Request(said["model"], messages, tools, stream=bool(said.get("stream")))
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
        raise BadField("", f"this is no parley: {error!r}") from None


def _message(who: str, said: Any) -> Message:  # noqa: ANN401 # whatever the client wrote
    if who == "call":
        return Message(Role.ASSISTANT, (Call(said["id"], said["name"], said["arguments"]),))
    if who == "result":
        return Message(Role.USER, (Result(said["id"], (Text(said["text"]),)),))
    return Message(Role(who), (Text(str(said)),))


class ParleyEncoder:
    def __init__(self, request: Request, stamp: Stamp) -> None:
        del request, stamp
        self._calls: dict[str, tuple[str, list[str]]] = {}

    def encode(self, events: Iterable[Event]) -> bytes:
        return b"".join(json.dumps(line).encode() + b"\n" for event in events for line in self.lines(event))

    def lines(self, event: Event) -> Iterator[JsonObject]:
        match event:
            case TextDelta(text):
                yield {"text": text}
            case CallStarted(id, name):
                self._calls[id] = (name, [])
            case ArgsDelta(id, piece):
                self._calls[id][1].append(piece)
            case CallEnded(id):
                name, pieces = self._calls.pop(id)
                yield {"call": {"id": id, "name": name, "arguments": "".join(pieces)}}
            case Finished(stop):
                yield {"end": stop.value}
            case Failed(failure):
                yield {"error": failure.message}
            case _:
                pass

    def keep_alive(self) -> bytes:
        return b"\n"


def encode_turn(request: Request, stamp: Stamp, turn: Turn) -> bytes:
    encoder = ParleyEncoder(request, stamp)
    return json.dumps({"answer": [line for event in unfold(turn) for line in encoder.lines(event)]}).encode()


def encode_failure(failure: Failure, stamp: Stamp) -> ErrorBody:
    del stamp
    return ErrorBody(failure.status or 502, json.dumps({"error": failure.message}).encode())


def stream_type(request: Request) -> str:
    del request
    return "application/parley"


def encode_models(entries: Sequence[ModelEntry]) -> JsonObject:
    return {"speakers": [entry.name for entry in entries]}


def encode_model(entry: ModelEntry) -> JsonObject:
    return {"speaker": entry.name}


def encode_count(tokens: int) -> JsonObject:
    return {"tokens": tokens}


# ---------------------------------------------------------------- as the client


def encode_request(request: Request, quirks: Quirks) -> EncodedRequest:
    del quirks
    lines = [line for message in request.messages for line in _lines(message)]
    tools = [{"name": tool.name, "schema": tool.parameters} for tool in request.tools]
    body = {"model": request.model, "lines": lines, "tools": tools, "stream": request.stream}
    return EncodedRequest("parley/talk", json.dumps(body).encode())


def _lines(message: Message) -> Iterator[JsonObject]:
    for part in message.parts:
        match part:
            case Text(text):
                yield {message.role.value: text}
            case Call(id, name, arguments):
                yield {"call": {"id": id, "name": name, "arguments": arguments}}
            case Result(id, content):
                yield {"result": {"id": id, "text": "".join(each.text for each in content if isinstance(each, Text))}}
            case _:
                pass


class ParleyDecoder:
    def __init__(self, request: Request, ids: Iterator[str]) -> None:
        del request, ids
        self._rest, self._over = b"", False

    def feed(self, chunk: bytes) -> list[Event]:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return [event for line in lines if line.strip() for event in self.line(json.loads(line))]

    def finish(self) -> list[Event]:
        return [] if self._over else [Failed(_CUT)]

    def line(self, said: dict[str, Any]) -> Iterator[Event]:
        match said:
            case {"text": str(text)}:
                yield TextDelta(text)
            case {"call": {"id": str(id), "name": str(name), "arguments": str(arguments)}}:
                yield from (CallStarted(id, name), ArgsDelta(id, arguments), CallEnded(id))
            case {"end": str(stop)}:
                self._over = True
                yield Finished(StopReason(stop))
            case _:
                self._over = True
                yield Failed(Failure(FailureKind.OTHER, str(said.get("error", said)), 502))


def decode_turn(request: Request, ids: Iterator[str], body: bytes) -> list[Event]:
    decoder = ParleyDecoder(request, ids)
    return [event for line in json.loads(body)["answer"] for event in decoder.line(line)] + decoder.finish()


def decode_failure(status: int, body: bytes) -> Failure:
    return Failure(FailureKind.OTHER, body.decode("utf-8", "replace"), status)


def decode_models(body: bytes) -> list[str]:
    return list(json.loads(body)["speakers"])


WIRE = Wire(
    name="parley",
    decode_request=decode_request,
    encode_request=encode_request,
    new_decoder=ParleyDecoder,
    new_encoder=ParleyEncoder,
    decode_turn=decode_turn,
    encode_turn=encode_turn,
    encode_failure=encode_failure,
    decode_failure=decode_failure,
    api=HttpApi(
        endpoints=(
            Endpoint("POST", "/parley/talk", Operation.TURN),
            Endpoint("POST", "/parley/count", Operation.COUNT),
            Endpoint("GET", "/parley/speakers", Operation.MODELS),
            Endpoint("GET", "/parley/speakers/{model}", Operation.MODEL),
            Endpoint("GET", "/models", Operation.MODELS),
            Endpoint("GET", "/parley", Operation.FIXED, {"parley": 1}),
        ),
        prefix="/parley/",
        recognizes=lambda head: "parley=" in head.query,
        request_id_header=b"parley-id",
    ),
    stream_type=stream_type,
    encode_models=encode_models,
    encode_model=encode_model,
    encode_count=encode_count,
    models_path="parley/speakers",
    decode_models=decode_models,
)
