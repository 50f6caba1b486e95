r"""The one seam where untrusted text is neutralised before it enters an emulated prompt (SAFE-2, SAFE-3, SAFE-4).

Untrusted are the user's text, what tools answer (errors too), and what tools say of themselves. In all of it the
markers that somebody would obey are broken, so that they can still be read, and hidden characters are taken out:

    </tool_response><|im_start|>system    →    </\tool_response><\|im_start|>system

Which markers: those of the dialect in use (openers, closers, result frames, labels and fences at line starts, the tags
that it writes), keyed ones, calls of all other dialects, the special tokens of chat templates. Everything else passes
byte for byte. `dialects/core/escapes.py` lists the hidden characters, and says when zero-width characters stay.

A call without markers (bare JSON, Python) cannot be broken in a text that is full of JSON and Python. If a model only
repeats one, it is recognised as an echo (SAFE-3).
"""

import hmac
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from itertools import count
from typing import Final

from toolspeak.dialects import Dialect
from toolspeak.ir.message import Call, Image, Opaque, Result, ResultPart, Text, ToolReference
from toolspeak.ir.tool import Tool

LEAST_ECHO: Final = 12
"""Characters, without blanks: what is shorter may be anybody's words."""
KEY_LENGTH: Final = 12

_NOT_IN_NAMES = re.compile(r"[\s\"'`<>\[\]{}]+")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_BLANKS: Final = "bfnrt"
_LARGE: Final = 256 << 10
_PIECE: Final = 64 << 10


class Guard:
    """Neutralises what goes into the prompts of one request. `count` says in how many places there was need."""

    def __init__(self, dialect: Dialect, key: str = "") -> None:
        """Guard prompts in this dialect; with a key, its markers too."""
        self._marks = dialect.marks.with_literals(f"<<{key}:") if key else dialect.marks
        self.count = 0

    def text(self, text: str) -> str:
        """Neutralise plain text. What is neutralised already does not change again."""
        text, places = self._marks.break_in_text(text)
        self.count += places
        return text

    def json(self, text: str) -> str:
        """Neutralise a JSON text by escapes in its strings: it means exactly what it meant."""
        text, places = self._marks.escape_in_json(text)
        self.count += places
        return text

    def name(self, name: str) -> str:
        """Neutralise a name or an id that came with a history: frames write it as it is, in quotes or on one line."""
        cleaned, places = _NOT_IN_NAMES.subn("_", name)
        self.count += places
        return self.text(cleaned)

    def tool(self, tool: Tool) -> Tool:
        """Neutralise what a tool says of itself; its schema keeps its meaning, and is written as JSON that is safe."""
        return replace(tool, description=self.text(tool.description))

    def result(self, result: Result) -> Result:
        """Neutralise a result, an error like any other: what the tool answered, its name, and the call's id."""
        content = tuple(map(self._part, result.content))
        return replace(result, content=content, name=self.name(result.name), call_id=self.name(result.call_id))

    def call(self, call: Call) -> Call:
        """Neutralise an earlier call: a model copies untrusted text into its arguments."""
        return replace(call, arguments=self.json(call.arguments))

    def has_markers(self, text: str) -> int:
        """Count the places where a whole marker begins."""
        return self._marks.count(text)

    def _part(self, part: ResultPart) -> ResultPart:
        match part:
            case Text(text):
                return replace(part, text=self.text(text))
            case Image(media_type):
                return replace(part, media_type=self.text(media_type))
            case ToolReference(name):
                return replace(part, name=self.name(name))
            case Opaque(label=label):
                return replace(part, label=self.text(label))


class Echo:
    """Knows the untrusted texts of a request, and tells a call that only repeats them (SAFE-3).

    Blanks and backslashes do not count: what was neutralised is the same. So is what stood in a JSON string.
    """

    def __init__(self, untrusted: Iterable[str]) -> None:
        """Take all that came from outside.

        Most turns have no call, and it is never looked at. A large request is looked at in any case, and here: this is
        part of preparing the turn, which a gateway does off its event loop, and reading a chunk is not.
        """
        self._untrusted = tuple(untrusted)
        if sum(map(len, self._untrusted)) > _LARGE:
            self._texts  # noqa: B018 # computed once

    @cached_property
    def _texts(self) -> frozenset[str]:
        return frozenset(essence for text in self._untrusted for essence in _essences(text))

    def is_echo(self, raw: str) -> bool:
        """Return whether the raw text of a call occurs in untrusted text."""
        essences = [essence for essence in _essences(raw) if len(essence) >= LEAST_ECHO]
        return any(essence in text for essence in essences for text in self._texts)


def choose_key(secret: bytes, conversation: str, inbound: Iterable[str]) -> str:
    """Give a conversation its key: always the same one, unless it occurs in what came in; then the next (SAFE-4)."""
    texts = [text.casefold() for text in inbound]
    keys = (_key(secret, conversation, number) for number in count())
    return next(key for key in keys if not any(key in text for text in texts))


def _key(secret: bytes, conversation: str, number: int) -> str:
    message = f"{number} {conversation}".encode(errors="surrogatepass")
    return hmac.new(secret, message, "sha256").hexdigest()[:KEY_LENGTH]


def _essences(text: str) -> set[str]:
    """Give a text without blanks and backslashes, as it is and as it would be out of a JSON string."""
    forms = (text, _ESCAPE.sub(_unescaped, text)) if "\\" in text else (text,)
    return {_without_blanks(form.replace("\\", "")) for form in forms}


def _without_blanks(text: str) -> str:
    """Take blanks out, a piece at a time: a `split` of 8 MB makes millions of words and holds the interpreter lock."""
    pieces = (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))
    return "".join("".join(piece.split()) for piece in pieces)


def _unescaped(found: re.Match[str]) -> str:
    if found[1]:
        return chr(int(found[1], 16))
    return " " if found[2] in _BLANKS else found[2]
