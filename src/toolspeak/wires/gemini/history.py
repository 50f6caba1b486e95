"""The contents of a client's request become messages.

    {"role": "model", "parts": [{"text": "…", "thought": true}, {"functionCall": {…}, "thoughtSignature": "…"}]}
        ->  assistant: Reasoning("…"), Reasoning("", "…"), Call(…)
    {"role": "user", "parts": [{"functionResponse": {…}}, {"inlineData": {…}}]}
        ->  tool: Result(…)   user: Image(…)

Ids may be missing, and a result's name may be anything: calls and results are linked later, by their position.
"""

from collections.abc import Iterator
from functools import partial
from itertools import groupby
from typing import Final

from toolspeak.errors import BadField
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call, Image, Message, Opaque, Part, Reasoning, Result, ResultPart, Role, Text
from toolspeak.ir.vendor import Vendor
from toolspeak.wires._body import dump_text
from toolspeak.wires._fields import Fields
from toolspeak.wires.gemini.signatures import unwrapped
from toolspeak.wires.gemini.words import NAME, camel_at, camel_each

_ROLES: Final = {"": Role.USER, "user": Role.USER, "function": Role.USER, "model": Role.ASSISTANT}
_ANSWERS: Final = ("output", "error", "content", "result", "return_value")
"""Where clients put what a tool said."""


def read_contents(fields: Fields) -> Iterator[Message]:
    """Read the messages of a request."""
    for content in camel_each(fields, "contents"):
        role = _ROLES.get((content.text("role") or "").lower())
        if role is None:
            raise BadField(content.where("role"), "expected user or model")
        parts = list(read_parts(content))
        vendor = content.vendor(NAME)
        for who, group in groupby(parts, partial(_speaker, role)):
            yield Message(who, tuple(group), vendor)
            vendor = None


def read_parts(fields: Fields) -> Iterator[Part]:
    """Read the parts of one content."""
    for part in camel_each(fields, "parts"):
        yield from _part(part)


def _speaker(role: Role, part: Part) -> Role:
    if isinstance(part, Result):
        return Role.TOOL
    return Role.ASSISTANT if isinstance(part, Call) else role


def _part(fields: Fields) -> Iterator[Part]:
    if (call := camel_at(fields, "functionCall")) is not None:
        yield from _call(fields, call)
    elif (result := camel_at(fields, "functionResponse")) is not None:
        yield _result(fields, result)
    elif fields.left.get("text") is not None:
        yield _text(fields)
    else:
        yield _media(fields)


def _signature(fields: Fields) -> str:
    return unwrapped(fields.text("thoughtSignature") or "")


def _text(fields: Fields) -> Text | Reasoning:
    """Read text or a thought; a signature without text stands alone, one beside text goes along with it."""
    text, thought, signature = fields.text("text") or "", fields.flag("thought"), _signature(fields)
    if thought or (signature and not text):
        return Reasoning(text, signature, fields.vendor(NAME))
    if signature:
        fields.left["thoughtSignature"] = signature
    return Text(text, fields.vendor(NAME))


def _call(fields: Fields, inside: Fields) -> Iterator[Part]:
    """Read a call, and before it the signature that belongs to it."""
    if signature := _signature(fields):
        yield Reasoning("", signature)
    id, name, args = inside.text("id") or "", inside.need_text("name"), inside.json_object("args")
    yield Call(id, name, dump_text(args or {}), vendor=_vendor(fields, "functionCall", inside.left))


def _result(fields: Fields, inside: Fields) -> Result:
    """Read a result, and remember the very object in which it came."""
    id, name, response = inside.text("id") or "", inside.text("name") or "", inside.json_object("response") or {}
    content: list[ResultPart] = [*_answer(response), *map(_media, camel_each(inside, "parts"))]
    vendor = _vendor(fields, "functionResponse", {**inside.left, "response": response})
    return Result(id, tuple(content), name, is_error=bool(response.get("error")), vendor=vendor)


def _answer(response: JsonObject) -> list[Text]:
    """Find the text of a result; one that has more to it is the text of the whole object."""
    said = [key for key in response if key != "name" or "content" not in response]
    value = response[said[0]] if len(said) == 1 and said[0] in _ANSWERS else None
    if isinstance(value, str):
        return [Text(value)]
    return [Text(dump_text(response))] if response else []


def _media(fields: Fields) -> Image | Opaque:
    """Read an image; what else there may be in a part, only this wire can say."""
    body = dict(fields.left)
    inside = camel_at(fields, "inlineData")
    if inside is None:
        return Opaque(Vendor(NAME, body), next(iter(body), "part"))
    whole = dict(inside.left)
    kind, data = inside.text("mimeType") or "", inside.text("data") or ""
    if not kind.startswith("image/"):
        return Opaque(Vendor(NAME, {**body, "inlineData": whole}), kind or "inlineData")
    return Image(kind, data, vendor=_vendor(fields, "inlineData", inside.left))


def _vendor(fields: Fields, key: str, inside: JsonObject) -> Vendor | None:
    """Keep what is left of a part and of the object in it."""
    left: JsonObject = {**fields.left, key: inside} if inside else fields.left
    return Vendor(NAME, left) if left else None
