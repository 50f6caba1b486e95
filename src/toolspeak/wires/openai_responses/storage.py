"""Requests that build on stored responses: `previous_response_id`, and items of the type `item_reference`.

    {"previous_response_id": "resp_7f", "input": "And Bergen?"}
    {"input": [… the input and the output of resp_7f …, {"role": "user", "content": "And Bergen?"}]}

Everything here works on the JSON of items, and parses no more of it than it must: a conversation of megabytes is
continued by putting bytes together.
"""

from typing import Final

import msgspec

from toolspeak.errors import BadField, NotStored, UnknownPrevious
from toolspeak.ir.request import Request
from toolspeak.wires.openai_responses import NAME
from toolspeak.wires.openai_responses.answer_writer import ResponsesEncoder
from toolspeak.wires.shared.interface import EventEncoder, ExpandedRequest, FindResponse, StoredResponse
from toolspeak.wires.shared.json_body import dump_body, parse_object

_PREVIOUS: Final = "previous_response_id"
_REFERENCE: Final = "item_reference"
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_ITEMS: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_ENCODE: Final = msgspec.json.Encoder().encode
_NOTHING: Final = b"[]"


class _Head(msgspec.Struct):
    """The fields of an item by which a reference is recognized."""

    type: str | None = None
    id: str | None = None
    role: str | None = None

    @property
    def is_reference(self) -> bool:
        """OpenAI lets the type be left out."""
        return self.type == _REFERENCE or (self.type is None and self.role is None and bool(self.id))


_HEAD: Final = msgspec.json.Decoder(_Head).decode


def expand_request(body: bytes, find: FindResponse) -> ExpandedRequest:
    """Return the request with everything that it refers to in its place.

    Raises `NotStored` for an id that `find` does not know, and `BadField` for a body that is no request.
    """
    try:
        members = _MEMBERS(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        members = _MEMBERS(dump_body(parse_object(body)))
    own, previous = bytes(members.get("input", _NOTHING)), _text(members, _PREVIOUS)
    if own.lstrip()[:1] == b'"':
        own = _ENCODE([{"role": "user", "content": msgspec.Raw(own)}])
    if not previous and _REFERENCE.encode() not in body and b'"id"' not in own:
        return ExpandedRequest(body, "", own)
    before = _before(previous, find)
    resolved = _resolved(own, before, find)
    if not previous and resolved is None:
        return ExpandedRequest(body, "", own)
    items = _joined(before, own if resolved is None else resolved)
    members.pop(_PREVIOUS, None)
    return ExpandedRequest(_ENCODE({**members, "input": msgspec.Raw(items)}), previous, items)


def _before(previous: str, find: FindResponse) -> bytes:
    """Return the items of the conversation that a request continues."""
    if not previous:
        return _NOTHING
    found = find(previous)
    if found is None:
        raise UnknownPrevious(
            _PREVIOUS, f"Previous response with id '{previous[:100]}' not found.", "previous_response_not_found"
        )
    return found.items


def _resolved(items: bytes, before: bytes, find: FindResponse) -> bytes | None:
    """Return the items, each reference replaced by the item that it means; None if there is no reference."""
    try:
        own = _ITEMS(items)
    except msgspec.MsgspecError:
        raise BadField("input", "expected a string or an array of items") from None
    named = [(item, head.id or "" if (head := _head(item)) and head.is_reference else None) for item in own]
    if all(id is None for _, id in named):
        return None
    return _ENCODE([item if id is None else _referred(id, before, find) for item, id in named])


def _referred(id: str, before: bytes, find: FindResponse) -> msgspec.Raw:
    """Return the item of an id. The ids of items that toolspeak made contain that of their response."""
    made = find(f"resp_{id.split('_')[1]}") if id.count("_") > 1 else None
    for items in (before, made.items if made is not None else _NOTHING):
        for item in _ITEMS(items):
            head = _head(item)
            if head is not None and head.id == id and not head.is_reference:
                return item
    problem = f"Item with id '{id[:100]}' not found. Items are not persisted when `store` is set to false."
    raise NotStored("input", f"{problem} Send the item itself, or set `store` to true.", "item_not_found")


def _head(item: msgspec.Raw) -> _Head | None:
    try:
        return _HEAD(item)
    except msgspec.MsgspecError:
        return None


def _text(members: dict[str, msgspec.Raw], name: str) -> str:
    value: object = msgspec.json.decode(members[name]) if name in members else None
    if value is not None and not isinstance(value, str):
        raise BadField(name, "expected a string")
    return value or ""


def _joined(one: bytes, other: bytes) -> bytes:
    """Return two JSON arrays as one."""
    one, other = one.strip()[1:-1].strip(), other.strip()[1:-1].strip()
    return b"[" + one + (b"," if one and other else b"") + other + b"]"


def wants_storage(request: Request) -> bool:
    """Return whether the client wants the response stored; the API's default is yes."""
    return request.extra.get(NAME, {}).get("store") is not False


def conversation_after(items: bytes, answer: bytes) -> tuple[str, StoredResponse]:
    """Return the id of a response, and its conversation: the items of its request, then its own."""
    members = _MEMBERS(answer)
    id = msgspec.json.decode(members["id"], type=str)
    return id, StoredResponse(_joined(items, bytes(members["output"])), answer)


def final_response(encoder: EventEncoder) -> bytes:
    """Return the response that a stream ended with; empty if it has not ended."""
    return encoder.response if isinstance(encoder, ResponsesEncoder) else b""
