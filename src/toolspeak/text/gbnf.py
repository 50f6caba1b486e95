r"""Writes grammars in llama.cpp's notation (GBNF): named rules, literals, and free text up to a mark.

    rules = Rules()
    rules.define("root", free_text(rules, "<call>", 'rest-of-the-call'))
    rules.text           root ::= t0 …, and all rules that it needs

Names are numbered in order, and equal rules share one name. So the same input gives the same text, which servers cache:
compiling a grammar can take them seconds.

`SchemaGrammar` translates a JSON Schema into a grammar of the values that it accepts:

    {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    → r0 ::= "{" "\"n\":" " "? integer "}"

Keywords that a grammar cannot express well (patterns, formats, large bounds) are left out: the grammar then accepts
more. In two points it is stricter: properties come in the schema's order, the required ones first, and only properties
that the schema names are allowed. Everything is bounded; beyond a bound a value may be any JSON. Optional properties
are chained, with one rule for each: llama.cpp is slow on patterns such as `x? x? x?`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from toolspeak.ir.json import Json, JsonObject, as_list, as_object
from toolspeak.text._places import TYPES, Places, look_up, type_of
from toolspeak.text.strict import dump

MOST_RULES: Final = 4_000
MOST_CHARACTERS: Final = 400_000
NOTHING: Final = '""'

_HEX: Final = "[0-9a-fA-F]"
_JSON: Final[Mapping[str, str]] = {
    "value": 'object | array | string | number | "true" | "false" | "null"',
    "object": '"{" (string ":" " "? value ("," " "? string ":" " "? value)*)? "}"',
    "array": '"[" (value ("," " "? value)*)? "]"',
    "string": r'"\"" char* "\""',
    "char": r'[^\x22\x5C\x00-\x1F\x7F] | "\\" escape',
    "escape": r'[\x22\x5C/bfnrt] | "u" unit',
    "unit": (
        f"[0-9a-cA-CefEF] {_HEX} {_HEX} {_HEX} | [dD] [0-7] {_HEX} {_HEX}"
        rf' | [dD] [89abAB] {_HEX} {_HEX} "\\u" [dD] [c-fC-F] {_HEX} {_HEX}'
    ),
    "number": 'integer ("." [0-9]{1,20})? ([eE] [-+]? [0-9]{1,2})?',
    "integer": '"-"? natural',
    "natural": '"0" | positive',
    "positive": "[1-9] [0-9]{0,19}",
}
"""Rules for any JSON. Digits are bounded, because small models never stop writing some fractions."""
_NAME: Final = re.compile(r"(?<![\w\-])[a-z][\w\-]*")
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]')
_ESCAPED: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t", '"': r"\"", "\\": r"\\"}


def literal(text: str) -> str:
    """Return the expression that matches exactly this text."""
    return '"' + "".join(_ESCAPED.get(char) or _plain(char) for char in text) + '"'


def _plain(char: str) -> str:
    return char if char.isprintable() else _coded(char)


def _coded(char: str) -> str:
    code = f"{ord(char):X}"
    letter, digits = next(each for each in (("x", 2), ("u", 4), ("U", 8)) if len(code) <= each[1])
    return f"\\{letter}{code:0>{digits}}"


def other_than(chars: str) -> str:
    """Return the expression for a character that is none of these."""
    return f"[^{''.join(char if char.isascii() and char.isalnum() else _coded(char) for char in chars)}]"


@dataclass
class Rules:
    """The rules of one grammar."""

    _bodies: dict[str, str] = field(default_factory=dict[str, str])
    _names: dict[str, str] = field(default_factory=dict[str, str])
    _size: int = 0

    @property
    def full(self) -> bool:
        """Whether the grammar is at a limit; then values may be any JSON. A grammar too deep kills llama.cpp."""
        return len(self._bodies) >= MOST_RULES or self._size >= MOST_CHARACTERS

    @property
    def text(self) -> str:
        """The grammar as text."""
        return "\n".join(f"{name} ::= {body}" for name, body in self._bodies.items()) + "\n"

    def add(self, body: str) -> str:
        """Return the name of a rule with this body; equal bodies share one rule, and a name is returned as it is."""
        if body in self._bodies:
            return body
        if body not in self._names:
            self._names[body] = self.reserve()
            self.define(self._names[body], body)
        return self._names[body]

    def reserve(self) -> str:
        """Return a name for a rule that is still to be defined."""
        name = f"r{len(self._bodies)}"
        self._bodies[name] = NOTHING
        return name

    def define(self, name: str, body: str) -> None:
        """Define a rule."""
        self._bodies[name] = body
        self._size += len(body)

    def json(self, name: str) -> str:
        """Define a rule of plain JSON with all rules that it needs; return its name."""
        if name not in self._bodies:
            self.define(name, _JSON[name])
            for needed in _NAME.findall(_QUOTED.sub("", _JSON[name])):
                self.json(needed)
        return name


def free_text(rules: Rules, mark: str, then: str, *, ends: bool = True, on_line: bool = False) -> str:
    """Return the rule of free text that must continue with `then` after the mark; with `ends`, it may end without one.

    There is one rule for each prefix of the mark that may have been written, as in the automaton of Knuth, Morris and
    Pratt. With `on_line`, the mark counts only at the beginning of a line.
    """
    mark, start = (f"\n{mark}", 1) if on_line else (mark, 0)
    states = [rules.reserve() for _ in mark]
    for state, name in enumerate(states):
        ways = {char: _next(mark, state, char) for char in dict.fromkeys(mark)}
        onward = {char: to for char, to in ways.items() if to}
        steps = [f"{literal(char)} {then if to == len(mark) else states[to]}" for char, to in onward.items()]
        others = f"{other_than(''.join(onward))} {states[0]}"
        rules.define(name, " | ".join((others, *steps, *((NOTHING,) if ends else ()))))
    return states[start]


def first_text(rules: Rules, mark: str, then: str) -> str:
    """Return the rule of free text that must continue with `then` if it begins with the mark."""
    anything = rules.add(r"[^\x00]*")
    after = then
    for char in reversed(mark):
        after = rules.add(f"{literal(char)} {after} | {other_than(char)} {anything} | {NOTHING}")
    return after


def _next(mark: str, state: int, char: str) -> int:
    """Return how many characters of the mark have been written after one more character."""
    written = mark[:state] + char
    return next(size for size in range(len(written), -1, -1) if written.endswith(mark[:size]))


# ---------------------------------------------------------------- grammars of schemas


COMMA: Final = '"," " "?'
DEEPEST: Final = 12
_MOST_CHOICES: Final = 512
_MOST_CHOICE_CHARACTERS: Final = 16_384
_MOST_PROPERTIES: Final = 128
_MOST_BRANCHES: Final = 32
_MOST_ALTERNATIONS: Final = 3
_LONGEST: Final = 64
"""The largest bound of a length or count that becomes part of the grammar."""
_WIDEST: Final = 64
"""The most integers of a range that are listed one by one."""

_SAYS_MORE: Final = ("$ref", "allOf", "anyOf", "oneOf", "patternProperties", "required")
_OBJECT: Final[JsonObject] = {"type": "object"}

Parts = Sequence[JsonObject]


class SchemaGrammar:
    """Adds rules for the values of one schema to a grammar."""

    def __init__(self, rules: Rules, root: JsonObject) -> None:
        """Take the rules to extend, and the schema; references in it are relative to it."""
        self._rules, self._root, self._places = rules, root, Places(root)
        # Rules by the identity of their subschema. None: the rule is being written. If it refers to itself, it gets its
        # name at that moment; a rule that does not is added at its end, so that equal bodies can share one rule.
        self._known: dict[int, str | None] = {}
        self._made: dict[tuple[str, *tuple[int, ...]], JsonObject] = {}

    def value(self) -> str:
        """Return the rule of the whole schema."""
        return self._at(self._root, 0)

    def arguments(self) -> str:
        """Return the rule of a tool's arguments: always an object, and an empty one if the schema names no property."""
        schema = self._root
        if not any(key in schema for key in _SAYS_MORE) and not schema.get("properties"):
            return self._rules.add(self._map([{"additionalProperties": False, **schema}], 0))
        return self._at(schema if "type" in schema else self._made_of("allOf", [_OBJECT, schema]), 0)

    def parameters(self, begin: tuple[str, str], end: str) -> str:
        """Return the rule of parameters in tags of their own: strings as plain text, other values as JSON."""
        found, required = self._places.properties(self._root), self._places.required(self._root)
        pairs = {
            key: f"{literal(begin[0] + key + begin[1])} {self._plain(self._made_of('allOf', schemas), end)}"
            for key, schemas in found.items()
        }
        first = [pair for key, pair in pairs.items() if key in required]
        return self._in_order(first, [pair for key, pair in pairs.items() if key not in required], "")

    def _plain(self, schema: JsonObject, end: str) -> str:
        """Return the rule of a parameter with its closing mark, which is the only end of a plain text."""
        branches = list(_branches(self._places, self._places.parts(schema), _MOST_ALTERNATIONS))
        types = [_types(branch) for branch in branches]
        choices = _choices(branches[0], types[0]) if len(branches) == 1 else None
        if choices is not None:
            texts = [choice if isinstance(choice, str) else dump(choice) for choice in choices]
            return f"{self._rules.add(' | '.join(map(literal, texts)))} {literal(end)}"
        if any(each is None or "string" in each for each in types):
            return free_text(self._rules, end, NOTHING, ends=False)
        return f"{self._at(schema, 1)} {literal(end)}"

    def _at(self, schema: Json, depth: int) -> str:
        """Return the rule of a subschema. A recursive one gets its name before its body is complete."""
        if not isinstance(schema, dict) or depth > DEEPEST or self._rules.full:
            return self._rules.json("value")
        key = self._key(schema)
        if key in self._known:
            known = self._known[key] or self._rules.reserve()
            self._known[key] = known
            return known
        self._known[key] = None
        body = self._body(schema, depth)
        reserved = self._known[key]
        if reserved is not None:
            self._rules.define(reserved, body)
            return reserved
        name = self._rules.add(body)
        self._known[key] = name
        return name

    def _key(self, schema: JsonObject) -> int:
        """Return the identity of a subschema; a bare reference has the identity of its target."""
        target = look_up(self._root, str(schema["$ref"])) if len(schema) == 1 and "$ref" in schema else None
        return id(target if isinstance(target, dict) else schema)

    def _body(self, schema: JsonObject, depth: int) -> str:
        branches = list(_branches(self._places, self._places.parts(schema), _MOST_ALTERNATIONS))
        if len(branches) > _MOST_BRANCHES:
            return self._rules.json("value")
        found = dict.fromkeys(way for branch in branches for way in self._ways(branch, depth))
        return " | ".join(found) or self._rules.json("value")

    def _ways(self, parts: Parts, depth: int) -> Iterator[str]:
        """Yield the expressions of values that match all these parts, one for each type."""
        types = _types(parts)
        choices = _choices(parts, types)
        if choices is not None:
            yield from map(_constant, choices)
            return
        if types is None:
            yield self._rules.json("value")
            return
        for kind in sorted(types - ({"integer"} if "number" in types else set())):
            match kind:
                case "object":
                    yield self._object(parts, depth)
                case "array":
                    yield self._array(parts, depth)
                case "string":
                    yield self._string(parts)
                case "integer":
                    yield self._integer(parts)
                case "number":
                    yield self._rules.json("number")
                case "boolean":
                    yield '"true" | "false"'
                case _:
                    yield '"null"'

    # ---------------------------------------------------------------- containers

    def _object(self, parts: Parts, depth: int) -> str:
        required = [name for part in parts for name in as_list(part.get("required")) if isinstance(name, str)]
        found: dict[str, list[Json]] = {}
        for part in parts:
            for key, schema in as_object(part.get("properties")).items():
                found.setdefault(key, []).append(schema)
        if not found and not required:
            return self._map(parts, depth)
        for name in required:
            found.setdefault(name, [])
        if len(found) > _MOST_PROPERTIES:
            return self._rules.json("object")
        pairs = {key: self._pair(key, schemas, depth) for key, schemas in found.items()}
        first = [pair for key, pair in pairs.items() if key in required]
        return '"{" ' + self._in_order(first, [pair for key, pair in pairs.items() if key not in required]) + '"}"'

    def _pair(self, key: str, schemas: list[Json], depth: int) -> str:
        schema: Json = schemas[0] if len(schemas) == 1 else self._made_of("allOf", schemas)
        return f'{literal(dump(key) + ":")} " "? {self._at(schema, depth + 1)}'

    def _in_order(self, first: list[str], others: list[str], comma: str = COMMA) -> str:
        """Return the required pairs, then the optional ones: one rule for each of them, not one for each subset."""
        rest, begin = "", ""
        for pair in reversed(others):
            begin = self._rules.add(f"{pair} {rest}| {begin}" if begin else pair)
            rest = f"({comma} {begin})? "
        if first:
            return f" {comma} ".join(first) + f" {rest}"
        return f"{begin}? " if begin else ""

    def _map(self, parts: Parts, depth: int) -> str:
        others = next((part["additionalProperties"] for part in parts if "additionalProperties" in part), True)
        if not isinstance(others, dict) or not others:
            return '"{" "}"' if others is False else self._rules.json("object")
        pair = self._rules.add(f'{self._rules.json("string")} ":" " "? {self._at(others, depth + 1)}')
        return f'"{{" ({pair} ({COMMA} {pair})*)? "}}"'

    def _array(self, parts: Parts, depth: int) -> str:
        first = [item for part in parts for item in as_list(part.get("prefixItems"))]
        rest = next((part["items"] for part in parts if "items" in part), True)
        schema = self._made_of("anyOf", [*first, rest]) if first else rest
        least, most = _count(parts, "minItems", max) or 0, _count(parts, "maxItems", min)
        if most == 0:
            return '"[" "]"'
        item = self._at(schema, depth + 1)
        more = f"({COMMA} {item}){_times(least - 1, None if most is None else most - 1)}"
        return f'"[" {item} {more} "]"' if least else f'"[" ({item} {more})? "]"'

    def _made_of(self, keyword: str, schemas: list[Json]) -> JsonObject:
        """Return a schema of several; the same ones give the identical object, because rules are cached by identity."""
        return self._made.setdefault((keyword, *map(id, schemas)), {keyword: schemas})

    # ---------------------------------------------------------------- scalars

    def _string(self, parts: Parts) -> str:
        least, most = _count(parts, "minLength", max) or 0, _count(parts, "maxLength", min)
        if not least and most is None:
            return self._rules.json("string")
        return rf'"\"" {self._rules.json("char")}{_times(least, most)} "\""'

    def _integer(self, parts: Parts) -> str:
        low, high = _bound(parts, "minimum", 1), _bound(parts, "maximum", -1)
        if low is not None and high is not None and 0 <= high - low < _WIDEST:
            return " | ".join(literal(str(number)) for number in range(low, high + 1))
        return self._rules.json("integer" if low is None or low < 0 else "positive" if low else "natural")


def _branches(places: Places, parts: Parts, left: int) -> Iterator[list[JsonObject]]:
    """Yield the alternatives of parts that all apply; each alternative is a list of parts that all apply."""
    for index, part in enumerate(parts):
        keyword = next((key for key in ("anyOf", "oneOf") if as_list(part.get(key))), None)
        if keyword is None or not left:
            continue
        others = [*parts[:index], {key: value for key, value in part.items() if key != keyword}, *parts[index + 1 :]]
        for branch in as_list(part[keyword])[: _MOST_BRANCHES + 1]:
            yield from _branches(places, [*others, *places.parts(branch)], left - 1)
        return
    yield list(parts)


def _types(parts: Parts) -> frozenset[str] | None:
    """Return the types that all parts allow; None for any type."""
    found: frozenset[str] | None = None
    for part in parts:
        named = part.get("type")
        names = {name for name in (named if isinstance(named, list) else [named]) if isinstance(name, str)} & TYPES
        if names:
            names |= {"integer"} if "number" in names else set()
            names |= {"null"} if part.get("nullable") is True else set()
            found = frozenset(names) if found is None else found & names
    return _hinted(parts) if found is None else found or None


def _hinted(parts: Parts) -> frozenset[str] | None:
    for part in parts:
        if isinstance(part.get("properties"), dict) or part.get("required"):
            return frozenset({"object"})
        if "items" in part or "prefixItems" in part:
            return frozenset({"array"})
    return None


def _choices(parts: Parts, types: frozenset[str] | None) -> list[Json] | None:
    """Return the values that enum or const allows; None without either, or if there are too many."""
    for part in parts:
        values = [part["const"]] if "const" in part else as_list(part.get("enum"))
        fitting = [value for value in values if types is None or type_of(value) in types or _is_whole(value)]
        if fitting and len(fitting) <= _MOST_CHOICES and len(dump(fitting)) <= _MOST_CHOICE_CHARACTERS:
            return fitting
    return None


def _constant(value: Json) -> str:
    """Return the expression of exactly this value, with optional blanks where JSON may have them."""
    match value:
        case dict():
            pairs = (f'{literal(dump(key) + ":")} " "? {_constant(inner)}' for key, inner in value.items())
            return f'"{{" {f" {COMMA} ".join(pairs)} "}}"'
        case list():
            return f'"[" {f" {COMMA} ".join(map(_constant, value))} "]"'
        case _:
            return literal(dump(value))


def _is_whole(value: Json) -> bool:
    return isinstance(value, float) and value.is_integer()


def _count(parts: Parts, keyword: str, chosen: Callable[[list[int]], int]) -> int | None:
    found = [count for part in parts if isinstance(count := part.get(keyword), int) and count <= _LONGEST]
    return chosen(found) if found else None


def _bound(parts: Parts, keyword: str, step: int) -> int | None:
    """Return the least or greatest integer that the parts allow; None without a bound."""
    found = [_whole(part.get(keyword), 0, step) for part in parts]
    found += [_whole(part.get(f"exclusive{keyword.capitalize()}"), step, step) for part in parts]
    bounds = [bound for bound in found if bound is not None]
    return (max(bounds) if step > 0 else min(bounds)) if bounds else None


def _whole(bound: Json, beyond: int, step: int) -> int | None:
    if isinstance(bound, bool) or not isinstance(bound, int | float):
        return None
    if isinstance(bound, int) or bound.is_integer():
        return int(bound) + beyond
    return int(bound // 1) + (1 if step > 0 else 0)


def _times(least: int, most: int | None) -> str:
    """Return the suffix for a number of repetitions."""
    if most is None:
        return f"{{{least},}}" if least > 0 else "*"
    return f"{{{max(least, 0)},{max(least, most, 0)}}}"
