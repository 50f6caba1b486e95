r"""Reads JSON that a model wrote: strictly first, then with repair, and never by guessing.

A fenced `{"city": "Oslo",}}` gives `{"city": "Oslo"}` and three fixes: markdown fence, trailing comma, surplus closer.

`Lenient` reads JSON as models write it, such as `{'city': "L'Aquila", on: True, dir: "C:\Dev",}`.

It accepts, each time with a recorded fix: single and smart quotes, Python's True, False and None, bare keys, trailing
commas, comments, escaped blanks between tokens, raw control characters and invalid escapes in strings (both kept as
they are), unescaped quotes inside of a string, and missing closers if the text's end was explicit. With `python=True`
the text is a Python literal: what Python allows is not a fix, tuples and triple quotes are read, and a quote always
ends its string. Nothing is evaluated: vLLM's parser for Qwen3-Coder called `eval` on model output (CVE-2025-9141).

It does not guess. No value is invented, completed or dropped; if a text can be read in two ways, it is refused. Lossy
repair is worse than an error, because the model can correct an error. Half of a surrogate pair is refused too: it is
not a character, and U+FFFD in its place would be one that the model did not write (P2).

If the text ends too early, the error's position is the text's length. Time is linear: no pattern backtracks, and no
lookahead goes past the next character that is not blank.
"""

import math
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NoReturn

import jiter

from toolspeak.errors import BadJson
from toolspeak.ir.complaint import Fix
from toolspeak.ir.json import Json
from toolspeak.text.strict import LIMITS, JsonLimits, parse

_MOST_FIXES: Final = 16  # of one kind: thousands of stray commas must not become thousands of fixes
_LONGEST_STEP: Final = 80  # characters of one step of a fix's path: a key may be megabytes long

_SMART: Final = "\u201c"
_QUOTES: Final = ('"', "'", _SMART)
_HALF: Final = "half of a surrogate pair is no character; write the whole character, or leave it out"
_JSON_BLANKS = re.compile(r"[ \t\r\n]++")
_NAME = re.compile(r"(?:[^\W\d]|\$)[\w$]*+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(\.[0-9]++)?+([eE][+-]?[0-9]++)?+(?![\w.+*-])")
_DIGIT = re.compile(r"[0-9]")
_CONTROL = re.compile(r"[\x00-\x1f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_JSON_WORDS: Final[dict[str, Json]] = {"true": True, "false": False, "null": None}
_PYTHON_WORDS: Final[dict[str, Json]] = {"True": True, "False": False, "None": None}
_WORDS: Final = _JSON_WORDS | _PYTHON_WORDS

_ANY_AFTER_STRING: Final = r"[ \t\r\n]*+(?:([,}\]:])|(//|/\*|#)|\Z)"
_AFTER_STRING = re.compile(_ANY_AFTER_STRING)
# The usual string in one match: it has nothing to decode, and the character after it shows that it has ended.
_PLAIN: Final = {
    False: re.compile(r'"([^"\\\x00-\x1f]*+)"(?=[ \t\r\n]*+(?:[,}\]:]|\Z))'),
    True: re.compile(r'"([^"\\\x00-\x1f]*+)"(?!")'),
}
_APOSTROPHE: Final = r"(?<=[^\W_])(?<!\\[bfnrt])'(?=[^\W_])"  # between two letters, and no escape's letter
# The text from the opening quote to the first quote that may end the string, and that quote.
_BODIES: Final = {
    '"': (re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL), '"'),
    "'": (re.compile(rf"(?:[^'\\]++|\\.|{_APOSTROPHE})*+", re.DOTALL), "'"),
    _SMART: (re.compile("(?:[^\u201c\u201d\\\\]++|\\\\.)*+", re.DOTALL), "\u201d"),
}
_PYTHON_BODIES: Final = {
    **_BODIES,
    "'": (re.compile(r"(?:[^'\\]++|\\.)*+", re.DOTALL), "'"),
    '"""': (re.compile(r'(?:[^"\\]++|\\.|"(?!""))*+', re.DOTALL), '"""'),
    "'''": (re.compile(r"(?:[^'\\]++|\\.|'(?!''))*+", re.DOTALL), "'''"),
}
# The text from the first quote that does not end its string to the one that does, and the quotes between them, which
# must come in pairs: `"she said "no" twice"` has one reading, an odd quote has two.
_INNER_BODIES: Final = {
    quote: (re.compile(rf"(?:[^{quote}\\]++|\\.|{quote}(?!{_ANY_AFTER_STRING}))*+", re.DOTALL), quote)
    for quote in "\"'"
}
_PAIRED_QUOTES: Final = {
    '"': re.compile(r'\\.|(")', re.DOTALL),
    "'": re.compile(rf"\\.|{_APOSTROPHE}|(')", re.DOTALL),
}
# Characters after a quote that show an expression ("a" + "b", "a" "b", "a".join(x), "a"[0], "a" if b) and not the
# beginning of a quotation in a text. Expressions are refused: to compute them would be to guess.
_AFTER_OPERAND = re.compile(r"""[\s+*%.\[('"=!?;)]""")

_JSON_ESCAPE: Final = r"""["'\\/bfnrt]|u[0-9a-fA-F]{4}"""
_PYTHON_ESCAPE: Final = _JSON_ESCAPE + r"|U(?:000[0-9a-fA-F]|0010)[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[0-7]{1,3}"
# In a Windows path such as `C:\new`, backslashes are literal; elsewhere `\n` is a line feed. One rule for the whole
# string cannot be right: to keep all backslashes collapses a file of code into one line as soon as it has an unescaped
# `\d` (openclaw #88940). So backslashes are literal only inside of a path that begins with a drive.
# A path goes up to a blank or a quote. `x:\n` before a blank or another escape is a line of code and not a path. Whole
# words are skipped, so that the colon in `note:\n` is not taken for that of a drive.
_DRIVE_PATH: Final = r"""([A-Za-z]:(?=\\)(?!\\[nrt](?:[\\\s"']|\Z))(?:[^\s"'\\]++|\\\\|\\(?!["']))*+)|\w++"""
_ESCAPE: Final = {
    False: re.compile(rf"\\(?:({_JSON_ESCAPE})|.)", re.DOTALL),
    True: re.compile(rf"\\(?:({_PYTHON_ESCAPE})|.)", re.DOTALL),
}
_ESCAPE_OR_PATH: Final = {
    python: re.compile(f"{pattern.pattern}|{_DRIVE_PATH}", re.DOTALL) for python, pattern in _ESCAPE.items()
}
_ESCAPED: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "/": "/", "\\": "\\", '"': '"', "'": "'"}


class Lenient:
    """Reads values from one text, from `pos` on, and collects `fixes`. After BadJson it cannot be used any more."""

    def __init__(
        self, text: str, pos: int = 0, limits: JsonLimits = LIMITS, *, python: bool = False, closed: bool = False
    ) -> None:
        """Read from `pos` on; `closed` says that the text's end is explicit, so that closers may be missing there."""
        if len(text) - pos > limits.size:
            raise BadJson(f"{len(text) - pos} characters, at most {limits.size} are read", pos + limits.size)
        self.pos = pos
        """The position at which reading continues; callers with a grammar of their own between values move it."""
        self.fixes: list[Fix] = []
        self._counts: dict[str, int] = {}
        self._limits, self._python, self._closed = limits, python, closed
        self._path: list[str | int | None] = []  # a step for each open container, None between its members
        self._after_comma = False
        self._text = text
        self._has_halves = not text.isascii() and _SURROGATE.search(text) is not None

    def value(self) -> Json:
        """Read one value, with blanks and comments before it; `pos` is then directly after the value."""
        return self._value(self._peek())

    def _value(self, char: str) -> Json:
        """Read one value that begins at `pos` with `char`."""
        if char in _QUOTES:
            return self._string(char)
        if char == "{":
            return self._object()
        if char == "[":
            return self._array("]")
        if char == "(" and self._python:
            return self._array(")")
        if char and char in "-0123456789":
            return self._number()
        return self._word()

    def _object(self) -> Json:
        self._open()
        members: dict[str, Json] = {}
        while char := self._another("}", first=not members):
            key = self._key(char)
            if key in members:
                self._refuse("the same key twice")
            self._path[-1] = key
            members[key] = self._value(self._peek())
        self._path.pop()
        return members

    def _array(self, closer: str) -> Json:
        self._open()
        items: list[Json] = []
        while char := self._another(closer, first=not items):
            self._path[-1] = len(items)
            items.append(self._value(char))
        if closer == ")" and len(items) == 1 and not self._after_comma:
            self._refuse("parentheses without a comma are no tuple")
        self._path.pop()
        return items

    def _open(self) -> None:
        if len(self._path) >= self._limits.depth:
            self._refuse(f"nested deeper than {self._limits.depth} levels")
        self._path.append(None)
        self.pos += 1

    def _another(self, closer: str, *, first: bool) -> str:
        """Skip the comma and blanks between members; return the next member's first character, empty at the end."""
        self._path[-1] = None
        char = self._peek()
        self._after_comma = char == "," and not first
        if self._after_comma:
            self.pos += 1
            char = self._peek()
        if char == closer:
            self.pos += 1
            if self._after_comma and not self._python:
                self._fix("trailing comma")
            return ""
        if first or self._after_comma:
            return char or self._refuse(f"expected a member or {closer!r}")
        return self._left_open(char, closer)

    def _left_open(self, char: str, closer: str) -> str:
        """Accept the text's end as the closer if that end was explicit; the value before it is complete."""
        if char or not self._closed or closer == ")":
            self._refuse(f"expected ',' or {closer!r}")
        self._fix("missing closer")
        return ""

    def _key(self, char: str) -> str:
        if char in _QUOTES:
            key = self._string(char, is_key=True)
        else:
            found = _NAME.match(self._text, self.pos)
            if found is None or found[0] in _WORDS:
                self._refuse("expected a key")
            key, self.pos = found[0], found.end()
            self._fix("bare key")
        if self._peek() != ":":
            self._refuse("expected ':' after a key")
        self.pos += 1
        return key

    def _number(self) -> Json:
        found = _NUMBER.match(self._text, self.pos)
        if found is None:
            self._refuse("expected a number in JSON's form")
        number, end = found[0], found.end()
        # `{"n": 12` may have been `123`: a number shows its end only by the character after it (P3).
        if self._path and end == len(self._text):
            self._refuse("a number at the end may have been cut", end)
        if len(number) > self._limits.digits and len(_DIGIT.findall(number)) > self._limits.digits:
            self._refuse(f"a number has more than {self._limits.digits} digits")
        self.pos = end
        try:
            return int(number) if found.lastindex is None else self._float(number)
        except ValueError:  # the interpreter is configured for fewer digits than our limit
            self._refuse("a number has too many digits")

    def _float(self, number: str) -> float:
        value = float(number)
        if math.isinf(value):
            self._refuse("a number is too large for a float")
        return value

    def _word(self) -> Json:
        found = _NAME.match(self._text, self.pos)
        if found is None or found[0] not in _WORDS:
            self._refuse("expected a value")
        if found[0] in (_JSON_WORDS if self._python else _PYTHON_WORDS):
            self._fix("json literal" if self._python else "python literal")
        self.pos = found.end()
        return _WORDS[found[0]]

    def _string(self, quote: str, *, is_key: bool = False) -> str:
        start = self.pos
        text = self._string_text(quote, is_key=is_key)
        if self._has_halves and _SURROGATE.search(text):
            self._refuse(_HALF, start)
        return text

    def _string_text(self, quote: str, *, is_key: bool) -> str:
        plain = _PLAIN[self._python].match(self._text, self.pos)
        if plain:
            self.pos = plain.end()
            return plain[1]
        if self._python and quote * 3 in _PYTHON_BODIES and self._text.startswith(quote * 3, self.pos):
            quote *= 3
        start = self.pos + len(quote)
        end = self._string_end(quote, start, is_key=is_key)
        raw = self._text[start:end]
        self._note_quotes(quote, raw)
        self.pos = end + len(quote)
        return self._unescaped(raw, multiline=len(quote) > 1)

    def _note_quotes(self, quote: str, raw: str) -> None:
        if quote == _SMART:
            self._fix("smart quotes")
        elif quote == "'" and not self._python:
            self._fix("single quotes")
            if "'" in raw.replace("\\'", ""):
                self._fix("unescaped quote")

    def _string_end(self, quote: str, start: int, *, is_key: bool) -> int:
        """Return the position of the quote that ends the string.

        In JSON, that is a quote before a comma, a colon, a closer or the end; any other quote is part of the text.
        """
        if self._python:
            return self._body_end(_PYTHON_BODIES[quote], start)
        end = self._body_end(_BODIES[quote], start)
        if quote == _SMART or _AFTER_STRING.match(self._text, end + 1):
            return end
        if is_key or _AFTER_OPERAND.match(self._text, end + 1):
            self._refuse("text after the end of a string", end + 1)
        return self._past_inner_quotes(quote, end)

    def _body_end(self, body_and_quote: tuple[re.Pattern[str], str], start: int) -> int:
        body, quote = body_and_quote
        found = body.match(self._text, start)
        end = found.end() if found else start
        return end if self._text.startswith(quote, end) else self._refuse("a string does not end", len(self._text))

    def _past_inner_quotes(self, quote: str, first: int) -> int:
        """Return the end of a string with unescaped quotes in it; refuse it if they allow another reading."""
        end = self._body_end(_INNER_BODIES[quote], first + 1)
        paired = 1 + _PAIRED_QUOTES[quote].findall(self._text, first + 1, end).count(quote)
        after = _AFTER_STRING.match(self._text, end + 1)
        in_array = bool(self._path) and isinstance(self._path[-1], int)
        if paired % 2 or after is None or after[2] or (in_array and after[1] == ","):
            self._refuse("unescaped quotes in a string can be read in two ways", end)
        self._fix("unescaped quote")
        return end

    def _unescaped(self, raw: str, *, multiline: bool) -> str:
        if not multiline and _CONTROL.search(raw):
            self._fix("control character")
        if "\\" not in raw:
            return raw
        try:  # most strings in a broken text are valid, and jiter is ten times faster
            text: str = jiter.from_json(f'"{raw}"'.encode(), cache_mode="none")
        except ValueError:
            return self._mended(raw)
        return text

    def _mended(self, raw: str) -> str:
        """Decode valid escapes and keep invalid ones. If there is an invalid one, paths on a drive are kept whole."""
        used = set(_ESCAPE[self._python].findall(raw))
        if "'" in used and not self._python:
            self._fix("escaped apostrophe")
        if "" not in used:
            return self._paired(_ESCAPE[self._python].sub(_decoded, raw))
        self._fix("invalid escape")
        return self._paired(_ESCAPE_OR_PATH[self._python].sub(_decoded_or_path, raw))

    def _paired(self, text: str) -> str:
        """Join surrogate pairs; refuse lone surrogates."""
        if not _SURROGATE.search(text):
            return text
        try:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            self._refuse(_HALF, self.pos - 1)  # before the end: more text would not help

    def _peek(self) -> str:
        """Skip blanks and comments; return the character after them, empty at the end."""
        while True:
            char = self._text[self.pos : self.pos + 1]
            if char == "#" or (char == "/" and not self._python):
                self._comment()
            elif char == "\\" and not self._python and self._text.startswith(("n", "r", "t"), self.pos + 1):
                self.pos += 2  # Qwen3.5 writes blanks between tokens as if inside a string
                self._fix("escaped blank")
            elif char > " ":
                return char
            elif blanks := _JSON_BLANKS.match(self._text, self.pos):
                self.pos = blanks.end()
            else:
                return char

    def _comment(self) -> None:
        """Skip a comment. A comment without an end is refused, because it may hide data."""
        block = self._text.startswith("/*", self.pos)
        if not block and not self._text.startswith(("//", "#"), self.pos):
            self._refuse("expected a comment after '/'")
        end = self._text.find("*/" if block else "\n", self.pos + 2 if block else self.pos)
        if end < 0:
            self._refuse("a comment does not end", len(self._text))
        if not self._python:
            self._fix("comment")
        self.pos = end + (2 if block else 1)

    def _fix(self, what: str) -> None:
        count = self._counts.get(what, 0)
        if count == _MOST_FIXES:
            return
        self._counts[what] = count + 1
        fix = Fix(what, "".join(map(_pointer_step, self._path)))
        if fix not in self.fixes:
            self.fixes.append(fix)

    def _refuse(self, why: str, at: int | None = None) -> NoReturn:
        position = self.pos if at is None else at
        raise BadJson(f"the text ends early: {why}" if position >= len(self._text) else why, position)


def _pointer_step(step: str | int | None) -> str:
    if step is None:
        return ""
    return "/" + str(step)[:_LONGEST_STEP].replace("~", "~0").replace("/", "~1")


def _decoded(found: re.Match[str]) -> str:
    code: str | None = found[1]
    if not code:
        return found[0]
    if code in _ESCAPED:
        return _ESCAPED[code]
    return chr(int(code[1:], 16) if code[0] in "uUx" else int(code, 8))


def _decoded_or_path(found: re.Match[str]) -> str:
    path: str | None = found[2]
    if not path:
        return _decoded(found)
    # A path in which every backslash is doubled was escaped correctly.
    return path if "\\" in path.replace("\\\\", "") else path.replace("\\\\", "\\")


_FENCE = re.compile(r"```[ \t]*+[\w+-]*+[ \t]*+\r?\n")
_SURPLUS = re.compile(r"[\s}\]]*+")
_LEADING = re.compile(r"[\s\ufeff]*+")
_BLANKS = " \t\r\n"
_MARK = "\ufeff"
_DOUBLED = "{{}}"


@dataclass(frozen=True, slots=True)
class Repaired:
    """A value, and the fixes that were needed to read it; none if the text was JSON."""

    value: Json
    fixes: tuple[Fix, ...] = ()


def repair(text: str, *, closed: bool, limits: JsonLimits = LIMITS) -> Repaired:
    """Read one JSON value; raises BadJson if that would need a guess.

    `closed` says that something outside of the value, such as a closing tag, marks the text's end. Only then may
    closing brackets be missing: without an explicit end the text may be truncated, and a truncated call must not run
    (P3).
    """
    with suppress(BadJson):
        return Repaired(parse(text, limits))
    start, end, fixes = _peel(text)
    if fixes:
        with suppress(BadJson):
            return Repaired(parse(text[start:end], limits), fixes)
    return _mend(text[:end], start, fixes, closed=closed, limits=limits)


def _mend(text: str, start: int, fixes: tuple[Fix, ...], *, closed: bool, limits: JsonLimits) -> Repaired:
    reader = Lenient(text, start, limits, closed=closed)
    value = reader.value()
    rest = _SURPLUS.match(text, reader.pos)
    if rest is None or rest.end() < len(text):
        raise BadJson("text after the value", rest.end() if rest else reader.pos)
    surplus = (Fix("surplus closer"),) if rest[0].strip() else ()
    return Repaired(value, (*fixes, *reader.fixes, *surplus))


def _peel(text: str) -> tuple[int, int, tuple[Fix, ...]]:
    """Return the value's span without a byte order mark, blanks that JSON does not know, a fence, doubled braces."""
    found = _LEADING.match(text)
    start = found.end() if found else 0
    end = max(start, len(text.rstrip()))
    around = text[:start] + text[end:]
    fixes = [Fix("byte order mark")] if _MARK in around else []
    if around.strip(_BLANKS + _MARK):
        fixes.append(Fix("blanks"))
    else:
        end = len(text)  # keep a blank at the end: it shows that the number before it is complete
    if inside := _inside_fence(text, start):
        (start, end), fixes = inside, [*fixes, Fix("markdown fence")]
    if inside := _inside_doubled(text, start, end):
        (start, end), fixes = inside, [*fixes, Fix("doubled braces")]
    return start, end, tuple(fixes)


def _inside_fence(text: str, start: int) -> tuple[int, int] | None:
    """Return the span between the two lines of a fence; None if there is no complete fence."""
    fence = _FENCE.match(text, start)
    if fence is None:
        return None
    last_line = text.rfind("\n", 0, len(text.rstrip())) + 1
    closes = last_line >= fence.end() and text[last_line:].strip() == "```"
    return (fence.end(), last_line) if closes else None


def _inside_doubled(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the span of an object in doubled braces; None if there is none.

    The chat template of Qwen2.5-Coder shows a call as `{{"name": …}}`, and the 1.5B model writes it so. No JSON value
    begins with two braces, so this is not a guess.
    """
    last = len(text[:end].rstrip())
    doubled = last - start > len(_DOUBLED) and text.startswith("{{", start) and text.endswith("}}", start, last)
    return (start + 1, last - 1) if doubled else None
