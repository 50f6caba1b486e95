r"""Grammars in the notation of llama.cpp: rules by name, literals, and free text that a mark ends.

    rules = Rules()
    rules.define("root", free_text(rules, "<call>", 'rest-of-the-call'))
    rules.text           root ::= t0 …, and all that it needs

Names are given in order, equal rules are one: the same input gives the same text, which servers may cache.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

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
"""Any JSON. Digits are bounded, because small models never stop writing some fractions."""
_NAME: Final = re.compile(r"(?<![\w\-])[a-z][\w\-]*")
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]')
_ESCAPED: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t", '"': r"\"", "\\": r"\\"}


def literal(text: str) -> str:
    """Write a text as it stands."""
    return '"' + "".join(_ESCAPED.get(char) or _plain(char) for char in text) + '"'


def _plain(char: str) -> str:
    return char if char.isprintable() else _coded(char)


def _coded(char: str) -> str:
    code = f"{ord(char):X}"
    letter, digits = next(each for each in (("x", 2), ("u", 4), ("U", 8)) if len(code) <= each[1])
    return f"\\{letter}{code:0>{digits}}"


def other_than(chars: str) -> str:
    """Write a character that is none of these."""
    return f"[^{''.join(char if char.isascii() and char.isalnum() else _coded(char) for char in chars)}]"


@dataclass
class Rules:
    """The rules of one grammar."""

    _bodies: dict[str, str] = field(default_factory=dict[str, str])
    _names: dict[str, str] = field(default_factory=dict[str, str])
    _size: int = 0

    @property
    def full(self) -> bool:
        """Return whether there is no room for more detail."""
        return len(self._bodies) >= MOST_RULES or self._size >= MOST_CHARACTERS

    @property
    def text(self) -> str:
        """The grammar."""
        return "\n".join(f"{name} ::= {body}" for name, body in self._bodies.items()) + "\n"

    def add(self, body: str) -> str:
        """Return the name of a rule with this body; a body that is a name is one already."""
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
        """Use a rule of plain JSON, and all that it needs."""
        if name not in self._bodies:
            self.define(name, _JSON[name])
            for needed in _NAME.findall(_QUOTED.sub("", _JSON[name])):
                self.json(needed)
        return name


def free_text(rules: Rules, mark: str, then: str, *, ends: bool = True, on_line: bool = False) -> str:
    """Describe any text that can only finish a mark by going on with `then`; `ends`: it may do without the mark.

    One rule for each part of the mark that may have been written: an automaton, as Knuth, Morris and Pratt draw it.
    With `on_line` the mark counts at the beginning of a line only.
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
    """Describe any text that can only begin with a mark by going on with `then`."""
    anything = rules.add(r"[^\x00]*")
    after = then
    for char in reversed(mark):
        after = rules.add(f"{literal(char)} {after} | {other_than(char)} {anything} | {NOTHING}")
    return after


def _next(mark: str, state: int, char: str) -> int:
    """Return how much of the mark has been written after one more character."""
    written = mark[:state] + char
    return next(size for size in range(len(written), -1, -1) if written.endswith(mark[:size]))
