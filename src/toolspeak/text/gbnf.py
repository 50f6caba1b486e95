r"""Writes grammars in llama.cpp's notation (GBNF): named rules, literals, and free text up to a mark.

    rules = Rules()
    rules.define("root", free_text(rules, "<call>", 'rest-of-the-call'))
    rules.text           root ::= t0 …, and all rules that it needs

Names are numbered in order, and equal rules share one name. So the same input gives the same text, which servers cache:
compiling a grammar can take them seconds.
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
