"""Messages become contents: whose turn it is alternates, and the results of one turn stand in one content."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from toolspeak.ir.json import Json, JsonObject
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
from toolspeak.wires._arguments import object_text
from toolspeak.wires._body import parse
from toolspeak.wires._ids import calls_in
from toolspeak.wires._loose import inner
from toolspeak.wires._names import Names
from toolspeak.wires._vendor import is_own, own
from toolspeak.wires.gemini.words import NAME, NO_SIGNATURE

IMAGE_FOLLOWS: Final = "[image: it follows behind the results]"


class Contents:
    """Writes the messages of one request, whose calls and results are paired."""

    def __init__(self, messages: Sequence[Message], names: Names, *, same_wire: bool, nested: bool) -> None:
        """Take the messages; `nested` puts images that a tool gave inside its result, where they came from there."""
        self._messages = messages
        self._names = names
        self._same_wire = same_wire
        self._nested = nested or same_wire
        self._called = {call.id: call.name for call in calls_in(messages)}

    def system(self) -> JsonObject:
        """Write what the system says, all of it in one."""
        said = [message for message in self._messages if message.role is Role.SYSTEM]
        parts: list[Json] = [part for message in said for part in self._plain(message)]
        return {"systemInstruction": {"parts": parts, **own(said[0].vendor, NAME)}} if parts else {}

    def contents(self) -> list[Json]:
        """Write what the user, the model and the tools say."""
        spoken = [one for one in self._messages if one.role is not Role.SYSTEM and any(map(self._writes, one.parts))]
        contents: list[Json] = []
        for model, group in groupby(spoken, lambda message: message.role is Role.ASSISTANT):
            turn = list(group)
            parts = [part for message in turn for part in (self._model(message) if model else self._user(message))]
            contents.append({"role": "model" if model else "user", "parts": parts, **own(turn[0].vendor, NAME)})
        return contents

    def _user(self, message: Message) -> Iterator[Json]:
        """Write a user's or the tools' message, behind the results the images that do not stand in them."""
        yield from self._plain(message)
        for part in message.parts:
            if isinstance(part, Result) and not self._nested:
                yield from (_media(piece) for piece in part.content if isinstance(piece, Image))

    def _plain(self, message: Message) -> Iterator[Json]:
        for part in message.parts:
            if self._writes(part):
                yield self._part(part)

    def _model(self, message: Message) -> Iterator[Json]:
        """Write a model's message: a signature goes to the call right behind it, and to the first one in any case."""
        signature, called = "", False
        for part, behind in zip(message.parts, (*message.parts[1:], None), strict=False):
            if isinstance(part, Call):
                missing = "" if called or self._same_wire else NO_SIGNATURE
                yield self._call(part, signature or missing)
                signature, called = "", True
            elif isinstance(part, Reasoning) and isinstance(behind, Call) and not (self._same_wire and part.text):
                signature = part.signature
                if part.text:
                    yield {"text": part.text, "thought": True, **own(part.vendor, NAME)}
            elif self._writes(part):
                yield self._part(part)

    def _writes(self, part: Part) -> bool:
        """Return whether a part is written: Google's servers refuse empty ones, but take their own back."""
        if self._same_wire or not isinstance(part, Text | Reasoning):
            return True
        return bool(part.text or (isinstance(part, Reasoning) and part.signature))

    def _part(self, part: Part) -> JsonObject:
        match part:
            case Text(text, vendor):
                return {"text": text, **own(vendor, NAME)}
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
        said = own(call.vendor, NAME)
        args = parse(object_text(call.arguments).encode())
        function: JsonObject = {"id": call.id, "name": self._names.out(call.name), "args": args}
        body: JsonObject = {**said, "functionCall": {**function, **inner(said, "functionCall")}}
        return {**body, "thoughtSignature": signature} if signature else body

    def _result(self, result: Result) -> JsonObject:
        """Write a result: in the very object in which it came, if that came from this wire."""
        said = own(result.vendor, NAME)
        name = self._called.get(result.call_id) or result.name
        media = self._media_in(result)
        texts = [_words(piece) for piece in result.content if piece not in media]
        function: JsonObject = {
            "id": result.call_id,
            "name": self._names.out(name),
            "response": {"error" if result.is_error else "output": "\n".join(texts)},
            **inner(said, "functionResponse"),
        }
        if media:
            function["parts"] = [_media(piece) for piece in media]
        return {**said, "functionResponse": function}

    def _media_in(self, result: Result) -> list[Image | Opaque]:
        """List what stands in a result beside its text."""
        pieces = [piece for piece in result.content if isinstance(piece, Image | Opaque)]
        return [piece for piece in pieces if (self._nested if isinstance(piece, Image) else is_own(piece, NAME))]


def _words(piece: ResultPart) -> str:
    return IMAGE_FOLLOWS if isinstance(piece, Image) else part_text(piece)


def _thought(part: Reasoning) -> JsonObject:
    """Write a thought; a signature of nothing stands on an empty text, as Google's servers send it."""
    body: JsonObject = {"text": part.text, "thought": True} if part.text or not part.signature else {"text": ""}
    if part.signature:
        body["thoughtSignature"] = part.signature
    return {**body, **own(part.vendor, NAME)}


def _media(piece: Image | Opaque) -> JsonObject:
    if isinstance(piece, Opaque):
        return piece.vendor.fields
    said = own(piece.vendor, NAME)
    if piece.url:
        kind: JsonObject = {"mimeType": piece.media_type} if piece.media_type else {}
        return {"fileData": {"fileUri": piece.url, **kind}}
    data: JsonObject = {"mimeType": piece.media_type or "image/png", "data": piece.data}
    return {**said, "inlineData": {**data, **inner(said, "inlineData")}}
