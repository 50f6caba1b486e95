r"""Tells the arguments of a call while the model writes them, as JSON text that is never taken back (CHK-7).

A form that knows the tool's name tells a `Growth` more of the arguments as soon as it is certain of that text:

    {"name": "f", "arguments": {"a": "x      StrictSource    {"a": "x
    <function=f><parameter=a>\nx             TextMembers     {"a":"x

The text that was told does not depend on the chunks. When the call is complete, all of its arguments have been told.
"""

import re
from collections.abc import Sequence
from typing import Protocol

from toolspeak.errors import BadJson
from toolspeak.text.strict import dump, without_surrogates
from toolspeak.toolset.check import TextArg, TextKind, stays_text, typed_argument
from toolspeak.toolset.toolset import ToolSet


class Growth:
    """Collects the arguments' JSON of the call that is being read."""

    __slots__ = ("_pieces", "name", "native_id")

    def __init__(self) -> None:
        """Start before the first call."""
        self.name = self.native_id = ""
        self._pieces: list[str] = []

    def begin(self, name: str, native_id: str = "") -> None:
        """Begin the arguments of a call."""
        self.name, self.native_id, self._pieces = name, native_id, []

    def add(self, json: str) -> None:
        """Add more of the arguments."""
        if json:
            self._pieces.append(json)

    def take(self) -> str:
        """Return what was added since the last time."""
        if not self._pieces:
            return ""
        json, self._pieces = "".join(self._pieces), []
        return json


# A string up to its end, or to something that strict JSON does not have there. `\u` is left to the last check.
_STRING = re.compile(r'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrtu])*+')
_KEPT_ESCAPES = '"\\/bfnrtu'


class StrictSource:
    r"""Tells JSON as the model writes it; raw control characters and unknown escapes in strings become strict JSON.

    Small models write files with raw newlines and regular expressions with `\d`. Both mean what `repair` reads there.
    Any other slip is told as it is, and the whole is no JSON then.
    """

    def __init__(self, growth: Growth) -> None:
        """Start before the value's first character."""
        self._growth = growth
        self._in_string = self._escapes = False

    def feed(self, text: str) -> None:
        """Tell more of the value."""
        text, pos = without_surrogates(text), 0
        while pos < len(text):
            if self._escapes:
                self._escapes = False
                self._growth.add(_escape(text[pos]))
                pos += 1
            elif self._in_string:
                pos = self._string(text, pos)
            else:
                quote = text.find('"', pos) + 1
                self._growth.add(text[pos : quote or len(text)])
                pos, self._in_string = quote or len(text), quote > 0

    def _string(self, text: str, pos: int) -> int:
        found = _STRING.match(text, pos)
        end = found.end() if found else pos
        self._growth.add(text[pos:end])
        char = text[end : end + 1]
        self._in_string, self._escapes = char != '"', char == "\\"
        self._growth.add(char if char == '"' else "" if self._escapes else dump(char)[1:-1])
        return end + 1


def _escape(char: str) -> str:
    if char in _KEPT_ESCAPES:
        return f"\\{char}"
    return char if char == "'" else f"\\\\{dump(char)[1:-1]}"


class GrowingValue(Protocol):
    """A value between tags while it is read."""

    @property
    def parts(self) -> Sequence[str]:
        """The text that is certainly part of the value, in pieces that are not empty; more are appended."""
        ...

    @property
    def may_be_rewritten(self) -> bool:
        """Whether the parts so far may change."""
        ...


_LONGEST_WORD = len("\nnull\n")
"""A text that is not longer may be `null`, which is no text for some schemas."""


class TextMembers:
    """Tells values that are text between tags as the members of a JSON object."""

    def __init__(self, growth: Growth, name: str, tools: ToolSet) -> None:
        """Begin the arguments of a call."""
        self._growth, self._name, self._tools = growth, name, tools
        self.told = 0
        """Members that are complete."""
        self._part = 0  # parts of the open member that were told
        self._is_open = self._is_cut = self._failed = False
        self._held = ""
        growth.begin(name)

    def grow(self, key: str, kind: TextKind, value: GrowingValue, *, is_laid_out: bool) -> None:
        """Tell the text of a value that is not complete, if it is certain that it will be that text."""
        if self._failed or value.may_be_rewritten:
            return
        if not self._is_open:
            is_long = sum(map(len, value.parts[: _LONGEST_WORD + 1])) > _LONGEST_WORD
            if not is_long or not stays_text(key, kind, self._name, self._tools):
                return
            self._is_open, self._part, self._held = True, 0, ""
            self._is_cut = is_laid_out and value.parts[0].startswith("\n")
            self._growth.add(f'{self._key(key)}"')
        self._growth.add(dump(self._more(value.parts))[1:-1])

    def complete(self, argument: TextArg, value: GrowingValue | None) -> None:
        """Tell the rest of a value that is complete, or all of it."""
        if self._is_open and value is not None:
            self._growth.add(f'{dump(self._more(value.parts))[1:-1]}"')
            self._is_open = False
        elif not self._failed:
            try:
                typed = dump(typed_argument(argument, self._name, self._tools)[0])
            except BadJson:
                self._failed = True  # the call is no good; what was told stays without its end
            else:
                self._growth.add(self._key(argument.key) + typed)
        self.told += 1

    def end(self) -> None:
        """Tell the end of the object."""
        if not self._failed:
            self._growth.add("}" if self.told else "{}")

    def _key(self, key: str) -> str:
        return f"{',' if self.told else '{'}{dump(key)}:"

    def _more(self, parts: Sequence[str]) -> str:
        """Return the text since the last time, without the lines of the template: its last newline is held back."""
        text = self._held + "".join(parts[self._part :])
        if self._is_cut and self._part == 0:
            text = text[1:]
        self._part, self._held = len(parts), ""
        if self._is_cut and text.endswith("\n"):
            text, self._held = text[:-1], "\n"
        return text
