"""Writes a request for a Gemini upstream: user and model contents alternate, and all results of a turn are in one."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from toolspeak.ir.json import Json, JsonObject, as_list, object_at
from toolspeak.ir.message import (
    Call,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Result,
    ResultPart,
    Role,
    Text,
    part_text,
)
from toolspeak.ir.quirks import Quirks
from toolspeak.ir.request import Request
from toolspeak.ir.tool import ChoiceMode, Tool
from toolspeak.wires.gemini import NAME
from toolspeak.wires.gemini.request_reader import write_path
from toolspeak.wires.shared.calls import history_calls, object_text, with_ids
from toolspeak.wires.shared.history import pair_history
from toolspeak.wires.shared.interface import EncodedRequest
from toolspeak.wires.shared.json_body import dump_body, parse_body
from toolspeak.wires.shared.request_parts import constraint_as_schema, foreign_fields, is_own, own_fields
from toolspeak.wires.shared.tools import ToolNames, write_tools_once

LONGEST_NAME: Final = 64
"""Newer models accept 128 characters; all accept 64."""

NO_SIGNATURE: Final = "skip_thought_signature_validator"
"""The signature for a call of another model: Gemini 3 rejects calls without one, and accepts this."""

_MODES: Final = {ChoiceMode.REQUIRED: "ANY", ChoiceMode.NAMED: "ANY", ChoiceMode.NONE: "NONE"}
_LEVELS: Final = {"xhigh": "HIGH", "max": "HIGH"}
_NO_THINKING: Final = "none"


def encode_request(request: Request, quirks: Quirks) -> EncodedRequest:
    """Write a request, and name what this wire cannot express."""
    request, unsaid = constraint_as_schema(request)
    names = names_of(request)
    extra = dict(request.extra.get(NAME, {}))
    extra.pop("alt", None)  # the client's own stream format; upstreams are always asked for server-sent events
    messages = with_ids(pair_history(request.messages), quirks.ids)
    writing = Contents(messages, names, same_wire=NAME in request.extra, nested=quirks.image_results)
    body: JsonObject = {
        **writing.system(),
        "contents": writing.contents(),
        **_tools(request, names, extra.pop("tools", None), object_at(extra, "toolConfig")),
        **_config(request, object_at(extra, "generationConfig")),
    }
    kept = {key: value for key, value in extra.items() if key not in ("toolConfig", "generationConfig")}
    path = write_path(request.model, stream=request.stream)
    return EncodedRequest(path, dump_body({**body, **kept}), (*foreign_fields(request, NAME), *unsaid))


def names_of(request: Request) -> ToolNames:
    """Return the map between the tools' names and the names that this wire allows."""
    return ToolNames.of(request.tools, LONGEST_NAME, letter_first=True)


def _config(request: Request, kept: JsonObject) -> JsonObject:
    sampling = request.sampling
    body: JsonObject = {
        "temperature": sampling.temperature,
        "topP": sampling.top_p,
        "topK": sampling.top_k,
        "maxOutputTokens": sampling.max_tokens,
        "stopSequences": list(sampling.stop) or None,
        "seed": sampling.seed,
        "presencePenalty": sampling.presence_penalty,
        "frequencyPenalty": sampling.frequency_penalty,
        "responseMimeType": None if request.output_schema is None else "application/json",
        "responseJsonSchema": request.output_schema or None,
        "thinkingConfig": {**object_at(kept, "thinkingConfig"), **_thinking(sampling.effort)} or None,
    }
    config = {**kept, **{key: value for key, value in body.items() if value is not None}}
    return {"generationConfig": config} if config else {}


def _thinking(effort: str | None) -> JsonObject:
    if effort is None:
        return {}
    if effort == _NO_THINKING:
        return {"thinkingBudget": 0}
    return {"thinkingLevel": _LEVELS.get(effort, effort.upper())}


# ---------------------------------------------------------------- tools


def _tools(request: Request, names: ToolNames, hosted: Json, config: JsonObject) -> JsonObject:
    same_wire = NAME in request.extra
    allowed = () if same_wire or request.choice.mode is ChoiceMode.REQUIRED else request.choice.allowed
    offered = request.offered()

    def write() -> list[Json]:
        return [_tool(tool, names) for tool in offered if not allowed or tool.name in allowed]

    is_whole = bool(offered) and offered is request.tools and not allowed
    functions: Json = write_tools_once(offered, NAME, write) if is_whole else write()
    tools: list[Json] = [{"functionDeclarations": functions}] if functions else []
    tools += as_list(hosted)
    calling = (
        _calling(request, names, object_at(config, "functionCallingConfig"), same_wire=same_wire) if functions else {}
    )
    kept = {key: value for key, value in config.items() if key != "functionCallingConfig"}
    config = {**kept, **({"functionCallingConfig": calling} if calling else {})}
    return {**({"tools": tools} if tools else {}), **({"toolConfig": config} if config else {})}


def _tool(tool: Tool, names: ToolNames) -> JsonObject:
    body: JsonObject = {"name": names.out(tool.name)}
    if tool.description:
        body["description"] = tool.description
    return {**body, "parametersJsonSchema": tool.parameters, **own_fields(tool.vendor, NAME)}


def _calling(request: Request, names: ToolNames, kept: JsonObject, *, same_wire: bool) -> JsonObject:
    """Write the tool choice. Arguments are never requested in pieces: only Vertex streams them, in another format."""
    choice = request.choice
    body = {key: value for key, value in kept.items() if key not in ("mode", "streamFunctionCallArguments")}
    if choice.mode is not ChoiceMode.AUTO:
        body["mode"] = _MODES[choice.mode]
    elif kept.get("mode") or (same_wire and choice.allowed):
        body["mode"] = kept.get("mode") or "AUTO"
    allowed = (choice.name,) if choice.mode is ChoiceMode.NAMED else choice.allowed
    if allowed and (same_wire or body.get("mode") == "ANY"):
        body["allowedFunctionNames"] = [names.out(name) for name in allowed]
    return body


# ---------------------------------------------------------------- contents

IMAGE_FOLLOWS: Final = "[image: it follows behind the results]"


class Contents:
    """Writes the messages of one request, in which each call has its result."""

    def __init__(self, messages: Sequence[Message], names: ToolNames, *, same_wire: bool, nested: bool) -> None:
        """Write `messages`; `nested` puts images of a result inside it instead of after it."""
        self._messages = messages
        self._names = names
        self._same_wire = same_wire
        self._nested = nested or same_wire
        self._called = {call.id: call.name for call in history_calls(messages)}

    def system(self) -> JsonObject:
        """Write all system messages as one instruction."""
        said = [message for message in self._messages if message.role is Role.SYSTEM]
        parts: list[Json] = [part for message in said for part in self._plain(message)]
        return {"systemInstruction": {"parts": parts, **own_fields(said[0].vendor, NAME)}} if parts else {}

    def contents(self) -> list[Json]:
        """Write the messages of user, model and tools."""
        spoken = [one for one in self._messages if one.role is not Role.SYSTEM and any(map(self._writes, one.parts))]
        contents: list[Json] = []
        for model, group in groupby(spoken, lambda message: message.role is Role.ASSISTANT):
            turn = list(group)
            parts = [part for message in turn for part in (self._model(message) if model else self._user(message))]
            contents.append({"role": "model" if model else "user", "parts": parts, **own_fields(turn[0].vendor, NAME)})
        return contents

    def _user(self, message: Message) -> Iterator[Json]:
        """Write a message of the user or of tools; images that are not nested follow the results."""
        yield from self._plain(message)
        for part in message.parts:
            if isinstance(part, Result) and not self._nested:
                yield from (_media(piece) for piece in part.content if isinstance(piece, Image))

    def _plain(self, message: Message) -> Iterator[Json]:
        for part in message.parts:
            if self._writes(part):
                yield self._part(part)

    def _model(self, message: Message) -> Iterator[Json]:
        """Write a model's message: a signature belongs to the call after it; the first call always gets one."""
        signature, called = "", False
        for part, after in zip(message.parts, (*message.parts[1:], None), strict=False):
            if isinstance(part, Call):
                missing = "" if called or self._same_wire else NO_SIGNATURE
                yield self._call(part, signature or missing)
                signature, called = "", True
            elif isinstance(part, Reasoning) and isinstance(after, Call) and not (self._same_wire and part.text):
                signature = part.signature
                if part.text:
                    yield {"text": part.text, "thought": True, **own_fields(part.vendor, NAME)}
            elif self._writes(part):
                yield self._part(part)

    def _writes(self, part: Part) -> bool:
        """Whether a part is written: Google's servers reject empty parts, but accept their own."""
        if self._same_wire or not isinstance(part, Text | Reasoning):
            return True
        return bool(part.text or (isinstance(part, Reasoning) and part.signature))

    def _part(self, part: Part) -> JsonObject:
        match part:
            case Text(text, vendor):
                return {"text": text, **own_fields(vendor, NAME)}
            case Reasoning():
                return _thought(part)
            case Image():
                return _media(part)
            case Call():
                return self._call(part, "")
            case Result():
                return self._result(part)
            case Opaque(vendor, label):
                return vendor.fields if is_own(part, NAME) else {"text": f"[{label} omitted]"}

    def _call(self, call: Call, signature: str) -> JsonObject:
        said = own_fields(call.vendor, NAME)
        args = parse_body(object_text(call.arguments).encode())
        function: JsonObject = {"id": call.id, "name": self._names.out(call.name), "args": args}
        body: JsonObject = {**said, "functionCall": {**function, **object_at(said, "functionCall")}}
        return {**body, "thoughtSignature": signature} if signature else body

    def _result(self, result: Result) -> JsonObject:
        """Write a result, in the object in which it came if it came on this wire."""
        said = own_fields(result.vendor, NAME)
        name = self._called.get(result.call_id) or result.name
        media = self._media_in(result)
        texts = [_words(piece) for piece in result.content if piece not in media]
        function: JsonObject = {
            "id": result.call_id,
            "name": self._names.out(name),
            "response": {"error" if result.is_error else "output": "\n".join(texts)},
            **object_at(said, "functionResponse"),
        }
        if media:
            function["parts"] = [_media(piece) for piece in media]
        return {**said, "functionResponse": function}

    def _media_in(self, result: Result) -> list[Image | Opaque]:
        """Return the media of a result that are written inside it."""
        pieces = [piece for piece in result.content if isinstance(piece, Image | Opaque)]
        return [piece for piece in pieces if (self._nested if isinstance(piece, Image) else is_own(piece, NAME))]


def _words(piece: ResultPart) -> str:
    return IMAGE_FOLLOWS if isinstance(piece, Image) else part_text(piece)


def _thought(part: Reasoning) -> JsonObject:
    """Write reasoning; a signature without text is written with an empty text, as Google's servers do."""
    body: JsonObject = {"text": part.text, "thought": True} if part.text or not part.signature else {"text": ""}
    if part.signature:
        body["thoughtSignature"] = part.signature
    return {**body, **own_fields(part.vendor, NAME)}


def _media(piece: Image | Opaque) -> JsonObject:
    if isinstance(piece, Opaque):
        return piece.vendor.fields
    said = own_fields(piece.vendor, NAME)
    if piece.url:
        kind: JsonObject = {"mimeType": piece.media_type} if piece.media_type else {}
        return {"fileData": {"fileUri": piece.url, **kind}}
    data: JsonObject = {"mimeType": piece.media_type or "image/png", "data": piece.data}
    return {**said, "inlineData": {**data, **object_at(said, "inlineData")}}
