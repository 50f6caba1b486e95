"""Finds the end of a JSON value while the text arrives in chunks.

A pushdown automaton over the value's structure. It skips strings, because a marker inside of one is data: a document
that described a truncation bug was itself truncated by that bug (q27 #31). It matches brackets, and reports the first
character that cannot be JSON at once, so that a reader does not wait for an end that cannot come.

It accepts what `repair.py` can repair in place: single quotes, bare keys, trailing commas, and doubled
braces around an object. Each character is read once. Parsing the whole buffer again for each chunk is quadratic.
"""

import re
from enum import Enum, auto
from typing import Final, NamedTuple

_PLAIN: Final = {'"': re.compile(r'[^"\\]*'), "'": re.compile(r"[^'\\]*")}
QUOTES: Final = frozenset(_PLAIN)
_NEAR: Final = 64
"""Characters in which a pattern searches. Code has an escape in each line; `str.find` is faster in longer runs only."""
_WINDOW: Final = 1024
"""Characters in which `str.find` searches: without a limit, each escape would search for the end of a long string."""


class Quoted:
    """The state inside of a string. The owner sets `quote` after the opening quote; after the closing one it is empty.

    A backslash at the end of a chunk is remembered, so that an escaped quote in the next one does not end the string.
    """

    def __init__(self) -> None:
        """Start outside of any string."""
        self.quote = ""
        self._escaped = False

    def skip(self, text: str, pos: int) -> int:
        """Skip the string's text from `pos` on, with its closing quote if that is there; return the new position."""
        if self._escaped:
            self._escaped = False
            return pos + 1
        near = pos + _NEAR
        found = _PLAIN[self.quote].match(text, pos, near)
        pos = found.end() if found else pos
        if pos == near:
            pos = _end_of_plain(text, pos, self.quote)
        if pos == len(text):
            return pos
        if text[pos] == "\\":
            self._escaped = True
        else:
            self.quote = ""
        return pos + 1


def _end_of_plain(text: str, pos: int, quote: str) -> int:
    """Return the position of the first quote or backslash from `pos` on, or the end of the text."""
    for start in range(pos, len(text), _WINDOW):
        closing = text.find(quote, start, start + _WINDOW)
        escape = text.find("\\", start, start + _WINDOW if closing < 0 else closing)
        if max(escape, closing) >= 0:
            return closing if escape < 0 else escape
    return len(text)


MAX_DEPTH = 64
MAX_BLANKS = 2_000
"""Blanks in a row. Small models fall into whitespace: 23 % of one server's calls ran to the token limit in it."""

_BLANKS: Final = " \t\r\n"
_BLANK = re.compile(rf"[{_BLANKS}]*")
_SCALAR = re.compile(r"[\w.+\-]*")


class SpanStatus(Enum):
    """The status of the value."""

    OPEN = auto()
    DONE = auto()
    BROKEN = auto()
    RUNAWAY = auto()
    """There are more blanks in a row than `MAX_BLANKS`: the model has lost its way."""


class Member(NamedTuple):
    """A key of the outermost object and its value, as offsets from the start of the JSON value."""

    key: tuple[int, int]
    value: tuple[int, int]


class _Want(Enum):
    """What the automaton expects next."""

    VALUE = auto()
    VALUE_OR_END = auto()
    KEY_OR_END = auto()
    COLON = auto()
    COMMA_OR_END = auto()
    SECOND_END = auto()
    """The second of two doubled closing braces."""


_VALUE_WANTED = (_Want.VALUE, _Want.VALUE_OR_END)
_CLOSES = {"}": "{", "]": "["}


class JsonSpan:
    """Finds the end of one value. Feed it the text from the value's first character on, until `status` is not OPEN."""

    def __init__(self, max_depth: int = MAX_DEPTH, max_blanks: int = MAX_BLANKS) -> None:
        """Start before the value's first character."""
        self.status = SpanStatus.OPEN
        self.members: list[Member] = []
        self._max_depth, self._max_blanks = max_depth, max_blanks
        self._stack: list[str] = []
        self._doubled = False
        self._want = _Want.VALUE
        self._quoted = Quoted()
        self._scalar = False
        self._blanks = 0
        self._offset = 0  # of the current feed's text[0], from the value's start
        self._token = 0  # offset where the current token (at depth 1) started
        self._key = (0, 0)
        self._first_start = 0
        self.first_key: tuple[int, int] | None = None
        """The span of the first key in any object of the value, as soon as that key is complete."""

    @property
    def length(self) -> int:
        """The number of characters that were read."""
        return self._offset

    @property
    def open_member(self) -> tuple[tuple[int, int], int] | None:
        """The key of the outermost object whose value is an object or an array that is open, and where that begins."""
        return (self._key, self._token) if len(self._stack) > 1 and self._stack[0] == "{" else None

    def feed(self, text: str, pos: int = 0) -> int:
        """Read `text` from `pos` on, set `status`, and return the position after the last character of the value."""
        self._offset -= pos
        end = pos
        while end < len(text) and self.status is SpanStatus.OPEN:
            end = self._step(text, end)
        self._offset += end
        return end

    def _step(self, text: str, pos: int) -> int:
        if self._quoted.quote:
            return self._string(text, pos)
        if self._scalar:
            return self._rest_of_scalar(text, pos)
        if text[pos] in _BLANKS:
            pos = self._skip_blanks(text, pos)
            if pos == len(text) or self.status is not SpanStatus.OPEN:
                return pos
        self._blanks = 0
        return self._structure(text, pos)

    def _skip_blanks(self, text: str, pos: int) -> int:
        found = _BLANK.match(text, pos)
        end = min(found.end() if found else pos, pos + self._max_blanks + 1 - self._blanks)
        self._blanks += end - pos
        if self._blanks > self._max_blanks:
            self.status = SpanStatus.RUNAWAY
        elif end < len(text):
            self._blanks = 0
        return end

    def _string(self, text: str, pos: int) -> int:
        pos = self._quoted.skip(text, pos)
        if not self._quoted.quote:
            self._ended(pos)
        return pos

    def _rest_of_scalar(self, text: str, pos: int) -> int:
        found = _SCALAR.match(text, pos)
        end = found.end() if found else pos
        if end < len(text):
            self._scalar = False
            self._ended(end)
        return end

    def _structure(self, text: str, pos: int) -> int:
        char = text[pos]
        if char in "{[":
            return self._open(char, pos)
        if char in "}]":
            return self._close(char, pos)
        if char == ",":
            return self._comma(pos)
        if char == ":" and self._want is _Want.COLON:
            self._want = _Want.VALUE
            return pos + 1
        return self._begin_token(char, pos)

    def _open(self, char: str, pos: int) -> int:
        # `{{` at the very beginning: no JSON has it, and the template of Qwen2.5-Coder shows calls so.
        if char == "{" and self._offset + pos == 1 and self._stack == ["{"]:
            self._doubled = True
            return pos + 1
        if self._want not in _VALUE_WANTED or len(self._stack) >= self._max_depth:
            return self._break(pos)
        if len(self._stack) == 1:
            self._token = self._offset + pos
        self._stack.append(char)
        self._want = _Want.KEY_OR_END if char == "{" else _Want.VALUE_OR_END
        return pos + 1

    def _close(self, char: str, pos: int) -> int:
        if self._want is _Want.SECOND_END and char == "}":
            self.status = SpanStatus.DONE
            return pos + 1
        unfinished = self._want in (_Want.VALUE, _Want.COLON)
        if unfinished or not self._stack or self._stack[-1] != _CLOSES[char]:
            return self._break(pos)
        self._stack.pop()
        self._value_ended(pos + 1)
        return pos + 1

    def _comma(self, pos: int) -> int:
        if self._want is not _Want.COMMA_OR_END:
            return self._break(pos)
        self._want = _Want.KEY_OR_END if self._stack[-1] == "{" else _Want.VALUE_OR_END
        return pos + 1

    def _begin_token(self, char: str, pos: int) -> int:
        if self._want not in (*_VALUE_WANTED, _Want.KEY_OR_END) or not self._stack:
            return self._break(pos)
        if len(self._stack) == 1:
            self._token = self._offset + pos
        if self.first_key is None and self._want is _Want.KEY_OR_END:
            self._first_start = self._offset + pos
        if char in QUOTES:
            self._quoted.quote = char
        elif char.isalnum() or char in "-_":
            self._scalar = True
        else:
            return self._break(pos)
        return pos + 1

    def _ended(self, pos: int) -> None:
        if self._want is _Want.KEY_OR_END:
            self._want = _Want.COLON
            if self.first_key is None:
                self.first_key = (self._first_start, self._offset + pos)
            if len(self._stack) == 1:
                self._key = (self._token, self._offset + pos)
        else:
            self._value_ended(pos)

    def _value_ended(self, pos: int) -> None:
        self._want = _Want.COMMA_OR_END
        if not self._stack and self._doubled:
            self._want = _Want.SECOND_END
        elif not self._stack:
            self.status = SpanStatus.DONE
        elif len(self._stack) == 1 and self._stack[0] == "{":
            self.members.append(Member(self._key, (self._token, self._offset + pos)))

    def _break(self, pos: int) -> int:
        self.status = SpanStatus.BROKEN
        return pos
