r"""Patterns of a `response_template`, read as data.

A template comes from a model's repository, and its patterns are regular expressions of any cost. They never run: a
small subset is translated into literals, blanks and runs of characters, which become expressions of our own with a
bound on every repeat. Everything else is refused.

    \s*<tool_call>\s*<function=(?P<name>[^>\n]+)>      BLANKS "<tool_call>" BLANKS "<function=" CharRun("name") ">"
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class CharRun:
    """Characters of some class, as many as there are; `group` is its name, if it has one."""

    group: str = ""
    is_any: bool = False
    """The class has all characters, markup too, as `.*?`."""
    is_blank: bool = False
    is_needed: bool = False
    """Blanks of which there must be one."""


BLANKS: Final = CharRun(is_blank=True)
"""Blanks, or none."""
_SOME_BLANKS: Final = CharRun(is_blank=True, is_needed=True)
Piece: TypeAlias = str | CharRun
Sequence: TypeAlias = tuple[Piece, ...]

_MAX_PATTERN: Final = 2_000
_MAX_DEPTH: Final = 8
_MAX_ALTERNATIVES: Final = 32
_MAX_RUNS: Final = 4
_MAX_BLANKS: Final = 64
_MAX_NAME: Final = 128
_MAX_KEY: Final = 256
_BLANK_CLASS: Final = re.compile(r"\\s|\[(?:\\[snrt]| )+\]")
_CLASS: Final = re.compile(r"\\[wWdDsS]|\.|\[(?:\\.|[^\]\\])+\]")
_REPEAT: Final = re.compile(r"[*+]\??|\{\d{1,4},?\d{0,4}\}\??")
_RUN: Final = re.compile(rf"(?:(?:{_CLASS.pattern})(?:{_REPEAT.pattern})?){{1,4}}")
_ANY: Final = re.compile(r"(?:\.|\[\\s\\S\]|\[\\S\\s\])[*+]\??")
_GROUP: Final = re.compile(r"\(\?P<(\w{1,32})>")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}


class UnreadPattern(ValueError):
    """A pattern is not in the subset; the message has the part that is not."""


def alternatives(pattern: str) -> tuple[Sequence, ...]:
    """Return what a pattern matches: sequences of pieces, in order and each once.

    Lookaheads and ends of text match nothing, so their sequences may be empty. Raises UnreadPattern.
    """
    if len(pattern) > _MAX_PATTERN:
        raise UnreadPattern(f"is {len(pattern)} characters long, and {_MAX_PATTERN} are the limit")
    parser = _Parser(pattern)
    found = parser.branches(0)
    if parser.pos < len(pattern):
        raise UnreadPattern(f"has {pattern[parser.pos :]!r} without an opening parenthesis")
    sequences = tuple(dict.fromkeys(_joined(sequence) for sequence in found))
    if any(sum(isinstance(piece, CharRun) and not piece.is_blank for piece in one) > _MAX_RUNS for one in sequences):
        raise UnreadPattern(f"has more than {_MAX_RUNS} runs of characters")
    return sequences


def without_blanks(sequence: Sequence) -> Sequence:
    """Return a sequence without the blanks at its ends."""
    pieces = list(sequence)
    while pieces and _is_blank(pieces[0]):
        pieces.pop(0)
    while pieces and _is_blank(pieces[-1]):
        pieces.pop()
    if pieces and isinstance(pieces[0], str):
        pieces[0] = pieces[0].lstrip()
    if pieces and isinstance(pieces[-1], str):
        pieces[-1] = pieces[-1].rstrip()
    return tuple(pieces)


def expression(sequence: Sequence) -> str:
    """Return a regular expression of ours for a sequence: every repeat is bounded, and none is inside another.

    A run ends before the first character of the literal after it. So there is one way to match, except that a name may
    go on after `:` or `.`: `functions.a:b:0`.
    """
    parts: list[str] = []
    for index, piece in enumerate(sequence):
        if isinstance(piece, str):
            parts.append(re.escape(piece))
        elif piece.is_blank:
            parts.append(rf"\s{{{int(piece.is_needed)},{_MAX_BLANKS}}}")
        else:
            after = next((later[0] for later in sequence[index + 1 :] if isinstance(later, str)), "")
            stop = "" if after in ":._-" else re.escape(after)
            inside = (
                rf"[^\n<>{stop}]{{1,{_MAX_KEY}}}" if piece.group == "key" else rf"[^\s<>{{}}{stop}]{{0,{_MAX_NAME}}}"
            )
            parts.append(f"(?P<{piece.group}>{inside})" if piece.group else inside)
    return "".join(parts)


def longest(sequence: Sequence) -> int:
    """Return how many characters `expression` matches at most."""
    return sum(len(piece) if isinstance(piece, str) else max(_MAX_BLANKS, _MAX_KEY) for piece in sequence)


def example_text(sequence: Sequence, groups: dict[str, str]) -> str:
    """Write a text that a sequence matches; runs without a name become `0`."""
    return "".join(
        piece if isinstance(piece, str) else " " * piece.is_needed if piece.is_blank else groups.get(piece.group, "0")
        for piece in sequence
    )


def _is_blank(piece: Piece) -> bool:
    return not piece.strip() if isinstance(piece, str) else piece.is_blank


def _joined(sequence: Iterable[Piece]) -> Sequence:
    pieces: list[Piece] = []
    for piece in sequence:
        last = pieces[-1] if pieces else None
        if isinstance(piece, str) and isinstance(last, str):
            pieces[-1] = last + piece
        elif not (piece == last == BLANKS):
            pieces.append(piece)
    return tuple(pieces)


class _Parser:
    """Reads a pattern from left to right; a part gives its alternatives."""

    def __init__(self, pattern: str) -> None:
        self._pattern, self.pos = pattern, 0

    def branches(self, depth: int) -> list[Sequence]:
        """Read alternatives up to the end, or to the parenthesis that closes them."""
        if depth > _MAX_DEPTH:
            raise UnreadPattern(f"has groups nested deeper than {_MAX_DEPTH}")
        found = self._sequence(depth)
        while self._next("|"):
            found = self._bounded([*found, *self._sequence(depth)])
        return found

    def _sequence(self, depth: int) -> list[Sequence]:
        found: list[Sequence] = [()]
        while self.pos < len(self._pattern) and self._pattern[self.pos] not in "|)":
            part = self._part(depth)
            found = self._bounded([(*before, *after) for before, after in product(found, part)])
        return found

    def _bounded(self, found: list[Sequence]) -> list[Sequence]:
        if len(found) > _MAX_ALTERNATIVES:
            raise UnreadPattern(f"has more than {_MAX_ALTERNATIVES} alternatives")
        return found

    def _next(self, literal: str) -> bool:
        if not self._pattern.startswith(literal, self.pos):
            return False
        self.pos += len(literal)
        return True

    def _matched(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._pattern, self.pos)
        self.pos = found.end() if found else self.pos
        return found.group() if found else ""

    def _part(self, depth: int) -> list[Sequence]:
        start = self.pos
        if named := _GROUP.match(self._pattern, self.pos):
            self.pos = named.end()
            return [(self._run(named.group(1), start),)]
        if self._next("(?=") or self._next("(?:"):
            looks_ahead = self._pattern[start + 2] == "="
            inner = self.branches(depth + 1)
            self._close(start)
            return [()] if looks_ahead else self._optional(inner, start)
        if self._next("$") or self._next(r"\Z"):
            return [()]
        if self._matched(_BLANK_CLASS):
            return [(self._blanks(),)]
        if self._matched(_CLASS):
            if not self._matched(_REPEAT):
                raise self._unread(start)
            return [(CharRun(is_any=_ANY.fullmatch(self._pattern[start : self.pos]) is not None),)]
        return self._optional([(self._literal(start),)], start)

    def _blanks(self) -> CharRun:
        repeat = self._matched(_REPEAT) or ("?" if self._next("?") else "")
        return BLANKS if repeat.startswith(("*", "?", "{")) else _SOME_BLANKS

    def _run(self, group: str, start: int) -> CharRun:
        """Read the inside of a named group: one run of characters."""
        inside = self._matched(_RUN)
        if not inside:
            raise self._unread(start)
        self._close(start)
        return CharRun(group, is_any=_ANY.fullmatch(inside) is not None)

    def _literal(self, start: int) -> str:
        char = self._pattern[self.pos]
        if char in "(^*+?{[.$":
            raise self._unread(start)
        self.pos += 1
        if char != "\\":
            return char
        escaped = self._pattern[self.pos : self.pos + 1]
        if not escaped or (escaped.isalnum() and escaped not in _ESCAPES):
            raise self._unread(start)
        self.pos += 1
        return _ESCAPES.get(escaped, escaped)

    def _optional(self, part: list[Sequence], start: int) -> list[Sequence]:
        """Read what may follow a literal or a group: only `?`, or a repeat of blanks."""
        is_blank = all(_is_blank(piece) for sequence in part for piece in sequence)
        if is_blank and _REPEAT.match(self._pattern, self.pos):
            return [(self._blanks(),)]
        if self._next("?"):
            return self._bounded([*part, ()])
        if _REPEAT.match(self._pattern, self.pos):
            raise self._unread(start)
        return part

    def _close(self, start: int) -> None:
        if not self._next(")"):
            raise self._unread(start)

    def _unread(self, start: int) -> UnreadPattern:
        return UnreadPattern(f"has {self._pattern[start : start + 40]!r}, which toolspeak does not translate")
