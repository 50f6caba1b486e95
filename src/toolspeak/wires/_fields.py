"""The fields of a JSON object, taken out by type; what is left over is the vendor's.

    fields = Fields({"role": "user", "content": 5, "cache_control": {...}}, key="messages[0]")
    fields.text("role")     -> "user"
    fields.text("content")  -> BadField: messages[0].content: expected a string, got a number (5)
    fields.left             -> {"cache_control": {...}}

A missing field and one that is null are the same: None. A path is only written when it is needed.
"""

from __future__ import annotations

from toolspeak.errors import BadField
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.vendor import Vendor
from toolspeak.wires._body import dump_text, kind_of

LONGEST_QUOTE = 60


class Fields:
    """One object of a body."""

    __slots__ = ("_key", "_parent", "left")

    def __init__(self, value: Json, parent: Fields | None = None, key: str = "") -> None:
        """Take `value`, which stands under `key` of `parent`; taking fields out of it changes it."""
        self._parent, self._key = parent, key
        if not isinstance(value, dict):
            raise BadField(self.path, _expected("an object", value))
        self.left: JsonObject = value

    @property
    def path(self) -> str:
        """Return where this object stands."""
        return self._key if self._parent is None else self._parent.where(self._key)

    def where(self, key: str) -> str:
        """Return where a field of this object stands."""
        path = self.path
        return f"{path}.{key}" if path else key

    def bad(self, key: str, accepted: str, value: Json) -> BadField:
        """Complain of a field's value."""
        return BadField(self.where(key), _expected(accepted, value))

    def take(self, key: str) -> Json:
        """Take a field out, whatever it is."""
        return self.left.pop(key, None)

    def text(self, key: str) -> str | None:
        """Take a string."""
        value = self.left.pop(key, None)
        if value is None or isinstance(value, str):
            return value
        raise self.bad(key, "a string", value)

    def need_text(self, key: str) -> str:
        """Take a string that must be there and not be empty."""
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
        """Take an object to take fields out of."""
        value = self.left.pop(key, None)
        return None if value is None else Fields(value, self, key)

    def each(self, key: str) -> list[Fields]:
        """Take an array of objects; none is an empty one."""
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
        """Keep what is left of an object that was taken out."""
        if inside is not None and inside.left:
            self.left[key] = inside.left

    def vendor(self, wire: str) -> Vendor | None:
        """Give what is left to the wire that wrote it."""
        return Vendor(wire, self.left) if self.left else None


def _expected(accepted: str, value: Json) -> str:
    if isinstance(value, list | dict) or value is None:
        return f"expected {accepted}, got {kind_of(value)}"
    shown = dump_text(value)
    shown = shown if len(shown) <= LONGEST_QUOTE else shown[:LONGEST_QUOTE] + "…"
    return f"expected {accepted}, got {kind_of(value)} ({shown})"
