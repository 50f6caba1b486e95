r"""JSON bodies: bytes to values and back, as forgiving as clients need and no more.

Clients cut texts in the middle of an emoji and send half of it as an escape (`"\ud83d"`). That is no reason to refuse
30 KB of conversation: such halves become U+FFFD. Whatever else is not JSON is refused, with the place.
"""

import re

import msgspec

from toolspeak.errors import BadField
from toolspeak.ir.json import Json, JsonObject
from toolspeak.text.lines import BOM
from toolspeak.text.strict import without_surrogates

_DECODE = msgspec.json.Decoder().decode
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_ENCODE = msgspec.json.Encoder().encode
_ESCAPES = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def parse(body: bytes) -> Json:
    """Read a JSON body; what is none is BadField with no field."""
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
    """Read a request's body, but leave its `tools` as they came: agents send the same 30 KB every turn."""
    try:
        members = _MEMBERS(body)
        tools = bytes(members.pop("tools", b"null"))
        return {key: _DECODE(value) for key, value in members.items()}, tools
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        value = parse_object(body)
        return value, dump(value.pop("tools", None))


def parse_object(body: bytes) -> JsonObject:
    """Read a body that must be one JSON object."""
    value = parse(body)
    if not isinstance(value, dict):
        raise BadField("", f"the body must be a JSON object, not {kind_of(value)}")
    return value


def dump(value: Json) -> bytes:
    """Write compact JSON in one line; halves of surrogate pairs become U+FFFD."""
    return one_line(_encoded(value))


def dump_text(value: Json) -> str:
    """Write compact JSON as text, such as the arguments of a call."""
    return _encoded(value).decode()


def quoted(text: str) -> bytes:
    """Write one JSON string: the hot path of every encoder."""
    return _ENCODE(text) if text.isascii() else one_line(_ENCODE(without_surrogates(text)))


def one_line(json: bytes) -> bytes:
    r"""Escape the characters that some clients take for line ends: U+0085, U+2028 and U+2029.

    They can only stand inside strings of JSON, so that an escape means the same.
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
