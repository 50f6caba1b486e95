r"""JSON bodies: parsed as leniently as clients need and no more, read field by field, and written.

    fields = Fields({"role": "user", "content": 5, "cache_control": {...}}, key="messages[0]")
    fields.text("role")     -> "user"
    fields.text("content")  -> BadField: messages[0].content: expected a string, got a number (5)
    fields.left             -> {"cache_control": {...}}

Clients cut text in the middle of an emoji and send half of it as an escape (`"\ud83d"`). That is no reason to reject
30 KB of conversation: such halves become U+FFFD. Anything else that is not JSON is rejected, with its position.
"""

from __future__ import annotations

import re

import msgspec

from toolspeak.errors import BadField
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Vendor
from toolspeak.text.lines import BOM
from toolspeak.text.strict import without_surrogates

_DECODE = msgspec.json.Decoder().decode
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_ENCODE = msgspec.json.Encoder().encode
_ESCAPES = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def parse_body(body: bytes) -> Json:
    """Parse a JSON body. Raises `BadField` without a field if it is not JSON."""
    body = body.removeprefix(BOM)
    try:
        return _parse(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        whole = _ESCAPES.sub(_without_half, body.decode("utf-8", "replace").encode())
        if whole == body:
            raise BadField("", f"the body is not JSON: {error}") from None
    try:
        return _parse(whole)
    except msgspec.DecodeError as error:
        raise BadField("", f"the body is not JSON: {error}") from None


def parse_request(body: bytes) -> tuple[JsonObject, bytes]:
    """Parse a request, but leave its `tools` as bytes: agents send the same 30 KB every turn, which is cached."""
    try:
        members = _MEMBERS(body)
        tools = bytes(members.pop("tools", b"null"))
        return {key: _DECODE(value) for key, value in members.items()}, tools
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        value = parse_object(body)
        return value, dump_body(value.pop("tools", None))


def parse_object(body: bytes) -> JsonObject:
    """Parse a body that must be a JSON object."""
    value = parse_body(body)
    if not isinstance(value, dict):
        raise BadField("", f"the body must be a JSON object, not {kind_of(value)}")
    return value


def dump_body(value: Json) -> bytes:
    """Write compact JSON in one line; halves of surrogate pairs become U+FFFD."""
    return one_line(_encoded(value))


def dump_text(value: Json) -> str:
    """Write compact JSON as text, such as the arguments of a call."""
    return _encoded(value).decode()


def quote(text: str) -> bytes:
    """Write one JSON string: the hot path of every encoder."""
    return _ENCODE(text) if text.isascii() else one_line(_ENCODE(without_surrogates(text)))


def one_line(json: bytes) -> bytes:
    r"""Escape the characters that some clients take for line ends: U+0085, U+2028 and U+2029.

    They occur only inside strings of JSON, so that an escape means the same.
    """
    if json.isascii():
        return json
    if b"\xe2\x80" in json:
        json = json.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    return json.replace(b"\xc2\x85", b"\\u0085") if b"\xc2\x85" in json else json


def kind_of(value: Json) -> str:
    """Name the type of a value as JSON does, with its article."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"


def _parse(body: bytes) -> Json:
    try:
        value: Json = _DECODE(body)
    except RecursionError:
        raise BadField("", "the body is nested too deeply") from None
    return value


def _encoded(value: Json) -> bytes:
    try:
        try:
            return _ENCODE(value)
        except UnicodeEncodeError:
            return _ENCODE(_clean(value))
    except RecursionError:
        raise BadField("", "the body is nested too deeply") from None


def _without_half(escape: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if escape[1] else escape[0]


def _clean(value: Json) -> Json:
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {without_surrogates(key): _clean(item) for key, item in value.items()}
    return value


# ---------------------------------------------------------------- fields
#
# Fields are taken out by type; those that are left belong to the vendor and are kept for the way back. A missing field
# and one that is null are the same: None. A path is built only when an error needs it.

LONGEST_QUOTE = 60


class Fields:
    """One object of a body."""

    __slots__ = ("_key", "_parent", "left")

    def __init__(self, value: Json, parent: Fields | None = None, key: str = "") -> None:
        """Wrap `value`, found at `key` of `parent`. Taking fields changes it."""
        self._parent, self._key = parent, key
        if not isinstance(value, dict):
            raise BadField(self.path, _expected("an object", value))
        self.left: JsonObject = value

    @property
    def path(self) -> str:
        """The path of this object, such as `messages[0]`."""
        return self._key if self._parent is None else self._parent.where(self._key)

    def where(self, key: str) -> str:
        """Return the path of a field of this object."""
        path = self.path
        return f"{path}.{key}" if path else key

    def bad(self, key: str, accepted: str, value: Json) -> BadField:
        """Return the error for a field's value."""
        return BadField(self.where(key), _expected(accepted, value))

    def take(self, key: str) -> Json:
        """Take a field of any type."""
        return self.left.pop(key, None)

    def text(self, key: str) -> str | None:
        """Take a string."""
        value = self.left.pop(key, None)
        if value is None or isinstance(value, str):
            return value
        raise self.bad(key, "a string", value)

    def need_text(self, key: str) -> str:
        """Take a required string that is not empty."""
        value = self.text(key)
        if not value:
            raise BadField(self.where(key), "is required: a string that is not empty")
        return value

    def number(self, key: str) -> float | None:
        """Take a number."""
        value = self.left.pop(key, None)
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            return value
        raise self.bad(key, "a number", value)

    def integer(self, key: str) -> int | None:
        """Take an integer; 5.0 is one."""
        value = self.number(key)
        if value is not None and value != int(value):
            raise self.bad(key, "an integer", value)
        return None if value is None else int(value)

    def flag(self, key: str) -> bool | None:
        """Take a boolean."""
        value = self.left.pop(key, None)
        if value is None or isinstance(value, bool):
            return value
        raise self.bad(key, "a boolean", value)

    def json_object(self, key: str) -> JsonObject | None:
        """Take an object as it is, such as a schema."""
        value = self.left.pop(key, None)
        if value is None or isinstance(value, dict):
            return value
        raise self.bad(key, "an object", value)

    def array(self, key: str) -> list[Json] | None:
        """Take an array as it is."""
        value = self.left.pop(key, None)
        if value is None or isinstance(value, list):
            return value
        raise self.bad(key, "an array", value)

    def fields(self, key: str) -> Fields | None:
        """Take an object as `Fields`."""
        value = self.left.pop(key, None)
        return None if value is None else Fields(value, self, key)

    def each(self, key: str) -> list[Fields]:
        """Take an array of objects; a missing one is empty."""
        return [Fields(value, self, f"{key}[{index}]") for index, value in enumerate(self.array(key) or [])]

    def texts(self, key: str) -> tuple[str, ...]:
        """Take an array of strings, or one string."""
        value = self.left.pop(key, None)
        values = [value] if isinstance(value, str) else value
        if values is None:
            return ()
        if isinstance(values, list) and all(isinstance(item, str) for item in values):
            return tuple(str(item) for item in values)
        raise self.bad(key, "an array of strings", value)

    def put_back(self, key: str, inside: Fields | None) -> None:
        """Put the remaining fields of a taken object back."""
        if inside is not None and inside.left:
            self.left[key] = inside.left

    def vendor(self, wire: str) -> Vendor | None:
        """Return the remaining fields as those of `wire`; None if there are none."""
        return Vendor(wire, self.left) if self.left else None


def _expected(accepted: str, value: Json) -> str:
    if isinstance(value, list | dict) or value is None:
        return f"expected {accepted}, got {kind_of(value)}"
    shown = dump_text(value)
    shown = shown if len(shown) <= LONGEST_QUOTE else shown[:LONGEST_QUOTE] + "…"
    return f"expected {accepted}, got {kind_of(value)} ({shown})"
