r"""Our messages become the upstream's.

    system: A                               system:    A
    assistant: call 1, call 2               user:      "."                       (a conversation begins with its user)
    tool: result of 1, result of 2    ->    assistant: tool_use 1, tool_use 2
    user: B                                 user:      tool_result 1, tool_result 2, B, "<system>\nC\n</system>"
    system: C

Messages of one role behind each other are one. Blank texts and messages without content are refused by this vendor, so
that they are left out; a conversation of which nothing is left has one user message, ".". System messages later on keep
their place if they came on this wire, and are told by the user otherwise.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, cast

import msgspec

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
    ToolReference,
    part_text,
)
from toolspeak.ir.request import Request
from toolspeak.wires._arguments import object_text
from toolspeak.wires._loose import mapped
from toolspeak.wires._names import Names
from toolspeak.wires._vendor import is_own, own
from toolspeak.wires.anthropic.builtins import TOOLSET
from toolspeak.wires.anthropic.words import NAME, REDACTED, unsealed

NOTHING: Final = "."
"""What a user is made to say where somebody has to say something."""
SILENT_ERROR: Final = "The tool failed and said nothing."
UNSIGNED: Final = "reasoning without a signature"


@dataclass(slots=True)
class _Turn:
    """One message, as it grows."""

    role: str
    blocks: list[JsonObject]
    fields: JsonObject

    def body(self) -> JsonObject:
        """Write it, results first."""
        blocks = sorted(self.blocks, key=lambda block: block.get("type") != "tool_result")
        return {"role": self.role, "content": _short(blocks), **self.fields}


class MessageWriter:
    """Writes the messages of one request."""

    def __init__(self, request: Request, names: Names) -> None:
        """Take the request and the names of its tools."""
        self._names = names
        self._ours = NAME in request.extra
        self._deferred = (
            frozenset(tool.name for tool in request.tools if tool.deferred) if self._ours else frozenset[str]()
        )
        self.dropped: Final[set[str]] = set()
        """What could not be written."""

    def write(self, messages: tuple[Message, ...]) -> tuple[JsonObject, list[Json]]:
        """Write a history that is paired: the request's `system`, and its messages."""
        leading = tuple(takewhile(_is_system_field, messages))
        system = [block for message in leading for block in self._blocks(message.parts)]
        turns = self._turns(messages[len(leading) :])
        if not turns or (turns[0].role == "assistant" and not self._ours):
            turns.insert(0, _Turn("user", [_text(NOTHING)], {}))
        return {"system": _short(system)} if system else {}, [turn.body() for turn in turns]

    def alone(self, message: Message) -> list[JsonObject]:
        """Write a message by itself, beside none that it could be one with; none, if nothing of it can be said."""
        turn = self._turn(message)
        return [turn.body()] if turn.blocks else []

    def _turns(self, messages: Iterable[Message]) -> list[_Turn]:
        turns: list[_Turn] = []
        for message in messages:
            turn = self._turn(message)
            if not turn.blocks:
                continue
            if turns and turns[-1].role == turn.role and turn.role != "system":
                turns[-1].blocks += turn.blocks
                turns[-1].fields |= turn.fields
            else:
                turns.append(turn)
        return turns

    def _turn(self, message: Message) -> _Turn:
        blocks, fields = list(self._blocks(message.parts)), dict(own(message.vendor, NAME))
        if message.role is Role.ASSISTANT:
            return _Turn("assistant", blocks, fields)
        if message.role is Role.SYSTEM and self._ours:
            return _Turn("system", blocks, fields)
        if message.role is Role.SYSTEM:
            blocks = [_text(f"<system>\n{block.get('text', '')}\n</system>") for block in blocks]
        return _Turn("user", blocks, fields)

    def _blocks(self, parts: Iterable[Part]) -> Iterator[JsonObject]:
        for part in parts:
            block = self._block(part)
            if block is not None:
                yield block

    def _block(self, part: Part) -> JsonObject | None:
        match part:
            case Call():
                return self._call(part)
            case Result():
                return self._result(part)
            case Reasoning():
                return self._reasoning(part)
            case Text() | Image() | Opaque():
                return _content(part)

    def _reasoning(self, part: Reasoning) -> JsonObject | None:
        """Write a thought; the vendor refuses those that it has not signed."""
        if data := unsealed(part.signature):
            return {"type": REDACTED, "data": data, **own(part.vendor, NAME)}
        if part.signature:
            return {
                "type": "thinking",
                "thinking": part.text,
                "signature": part.signature,
                **own(part.vendor, NAME),
            }
        if part.text:
            self.dropped.add(UNSIGNED)
        return None

    def _call(self, call: Call) -> JsonObject:
        said = own(call.vendor, NAME)
        family = said.get(TOOLSET)
        name = self._names.out(call.name) if not family else call.name.removeprefix(f"{family}_")
        return {"type": "tool_use", "id": call.id, "name": name, "input": _object(call.arguments), **said}

    def _result(self, result: Result) -> JsonObject:
        body: JsonObject = {"type": "tool_result", "tool_use_id": result.call_id, "content": self._said(result)}
        if result.is_error:
            body |= {"is_error": True, "content": body["content"] or SILENT_ERROR}
        return body | own(result.vendor, NAME)

    def _said(self, result: Result) -> Json:
        match result.content:
            case (Text(text, None),):
                return text
            case _:
                return _short([block for block in map(self._piece, result.content) if block is not None])

    def _piece(self, piece: ResultPart) -> JsonObject | None:
        if not isinstance(piece, ToolReference):
            return _content(piece)
        if piece.name in self._deferred:
            return {"type": "tool_reference", "tool_name": self._names.out(piece.name), **own(piece.vendor, NAME)}
        return _text(part_text(piece))  # the vendor refuses references to tools that are not deferred


def _is_system_field(message: Message) -> bool:
    """Return whether a message belongs to the request's `system`, if only such ones come before it."""
    return message.role is Role.SYSTEM and "role" not in own(message.vendor, NAME)


def _content(part: Text | Image | Opaque) -> JsonObject | None:
    match part:
        case Text(text, vendor):
            return {**_text(text), **own(vendor, NAME)} if text.strip() else None
        case Image():
            return _image(part)
        case Opaque(vendor):
            return vendor.fields if is_own(part, NAME) else _text(part_text(part))


def _image(image: Image) -> JsonObject:
    said = dict(own(image.vendor, NAME))
    rest = said.pop("source", None)
    if image.data:
        source: JsonObject = {"type": "base64", "media_type": image.media_type or "image/png", "data": image.data}
    elif image.url.startswith(("http://", "https://")):
        source = {"type": "url", "url": image.url}
    else:
        return _text(part_text(image))
    return {"type": "image", "source": {**source, **mapped(rest)}, **said}


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _short(blocks: list[JsonObject]) -> Json:
    """Write content: one string, where it is no more than that."""
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"} and blocks[0]["type"] == "text":
        return blocks[0]["text"]
    return [*blocks] if blocks else ""


def _object(arguments: str) -> Json:
    """Return arguments as the object that they are the text of: to the byte, and without reading them once more."""
    return cast("Json", msgspec.Raw(object_text(arguments).encode()))
