"""JSON, read strictly, and checked access to it. Anything unexpected raises a GrammarError that names the place."""

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import NoReturn, cast

from testkit.grammar.seen import GrammarError


@dataclass(frozen=True, slots=True)
class Obj:
    """A JSON object and its place."""

    fields: dict[str, object]
    where: str

    def at(self, key: str) -> str:
        """Name the place of a field."""
        return f"{self.where}.{key}"

    def has(self, key: str) -> bool:
        """Tell whether the key is there, and not null."""
        return self.fields.get(key) is not None

    def value(self, key: str) -> object:
        """Return a field that must be there; it may be null."""
        expect(key in self.fields, f"{self.at(key)} is missing")
        return self.fields[key]

    def obj(self, key: str) -> "Obj":
        """Return a field that must be an object."""
        return obj(self.value(key), self.at(key))

    def objs(self, key: str) -> list["Obj"]:
        """Return a field that must be an array of objects."""
        return [obj(item, f"{self.at(key)}[{index}]") for index, item in enumerate(self.items(key))]

    def items(self, key: str) -> list[object]:
        """Return a field that must be an array."""
        return items(self.value(key), self.at(key))

    def text(self, key: str) -> str:
        """Return a field that must be a string."""
        return text(self.value(key), self.at(key))

    def word(self, key: str) -> str:
        """Return a field that must be a string with something in it."""
        found = self.text(key)
        expect(found != "", f"{self.at(key)} is empty")
        return found

    def number(self, key: str) -> int:
        """Return a field that must be a count."""
        return number(self.value(key), self.at(key))

    def flag(self, key: str) -> bool:
        """Return a field that must be true or false."""
        found = self.value(key)
        if not isinstance(found, bool):
            refuse(f"{self.at(key)} is {found!r}, not a boolean")
        return found

    def null(self, key: str) -> None:
        """Expect a field that is there and null."""
        expect(self.value(key) is None, f"{self.at(key)} is {self.fields[key]!r}, not null")

    def one_of(self, key: str, allowed: Collection[str]) -> str:
        """Return a field that must be one of these words."""
        found = self.text(key)
        expect(found in allowed, f"{self.at(key)} is {found!r}, not one of {sorted(allowed)}")
        return found

    def only(self, *keys: str) -> None:
        """Expect no other keys than these."""
        strange = sorted(self.fields.keys() - set(keys))
        expect(not strange, f"{self.where} has the unknown keys {strange}")

    def without(self, *keys: str) -> None:
        """Expect none of these keys."""
        wrong = sorted(self.fields.keys() & set(keys))
        expect(not wrong, f"{self.where} must not have the keys {wrong}")

    def ident(self, key: str, prefix: str = "", limit: int = 64) -> str:
        """Return a field that must be an id that every client keeps as it is."""
        found = self.text(key)
        fits = re.fullmatch(rf"{prefix}[A-Za-z0-9_-]+", found) is not None and len(found) <= limit
        expect(fits, f"{self.at(key)} is {found!r}, not an id with the prefix {prefix!r} of at most {limit} characters")
        return found


def refuse(message: str) -> NoReturn:
    """Refuse the bytes."""
    raise GrammarError(message)


def expect(holds: bool, message: str) -> None:
    """Refuse the bytes unless this holds."""
    if not holds:
        refuse(message)


def obj(value: object, where: str) -> Obj:
    """Return a JSON object."""
    if not isinstance(value, dict):
        refuse(f"{where} is {value!r:.80}, not an object")
    return Obj(cast("dict[str, object]", value), where)


def items(value: object, where: str) -> list[object]:
    """Return a JSON array."""
    if not isinstance(value, list):
        refuse(f"{where} is {value!r:.80}, not an array")
    return cast("list[object]", value)


def text(value: object, where: str) -> str:
    """Return a string."""
    if not isinstance(value, str):
        refuse(f"{where} is {value!r:.80}, not a string")
    return value


def number(value: object, where: str) -> int:
    """Return a count."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        refuse(f"{where} is {value!r:.80}, not a count")
    return value


def fresh(found: str, known: set[str], where: str) -> str:
    """Return an id that is new, and record it."""
    expect(found not in known, f"{where}: {found!r} was used before")
    known.add(found)
    return found


def parse(source: str, where: str) -> object:
    """Read JSON as the strictest client does: no double keys, no NaN, no half of a surrogate pair."""
    try:
        value: object = json.loads(source, object_pairs_hook=_once, parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        refuse(f"{where} is not JSON ({error}): {source!r:.200}")
    return value


def json_object(source: str, where: str) -> dict[str, object]:
    """Read the text of a JSON object, such as the arguments of a call."""
    return obj(parse(source, where), where).fields


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key comes twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
