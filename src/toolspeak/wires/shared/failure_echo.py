"""Tells whether the class of an upstream's error rests on words that the request supplied (CAP-6).

    sent      {"model": "m", "user": "this does not support tools", ...}
    error     400 invalid value for user: this does not support tools
    without   400 invalid value for user:                                  ->  invalid_request, so it was an echo

Many servers quote the field that they refuse. A client could therefore write the words that make a model look as if it
had no tools, for all tenants. Only the words that a rule has matched are compared with the request: that is enough to
decide, and bounds the work. Both sides are reduced to letters and digits without case, so that quoting, escaping,
line breaks and punctuation make no difference.
"""

import html
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import msgspec

from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import Json
from toolspeak.wires.shared.failure_rules import first_rule

LARGEST_REQUEST: Final = 256 * 1024
"""Bytes of a request that are searched. A longer one could contain anything, so its error always counts as an echo."""
_PIECE = 10
"""Letters and digits that a piece of text must share with the request to count as supplied by it."""
_SHORTEST_STRING = 4
"""A whole key or value of the request counts from this length on, where it is a whole word of the error."""
_MOST_PASSES = 8
_EVIDENCE: Final = frozenset((FailureKind.TOOLS_UNSUPPORTED,))
"""Only these classes are remembered beyond their turn."""
_OWN_WORDS: Final = frozenset(
    ("tool", "tools", "function", "functions", "toolchoice", "toolcalls", "functioncall", "parameters")
)
"""Words of the protocols, which are in every request with tools. As values that a client chooses they do count."""
_PROTOCOL_VALUES: Final = frozenset(("tool", "function"))
_NOT_ALNUM = re.compile(r"[\W_]+")
_ESCAPE = re.compile(r"\\u([0-9a-f]{4})|%([0-9a-f]{2})|\\[nrt]", re.IGNORECASE)
_BLANK = "\0"


def rests_on_echo(failure: Failure, path: str, body: bytes) -> bool:
    """Return whether a failure would be of another class without the words of the request at `path` with `body`.

    Failures of classes that are not remembered give False. The work is bounded by `LARGEST_REQUEST`.
    """
    if failure.kind not in _EVIDENCE:
        return False
    # When in doubt, the error counts as an echo: then it is remembered for its own conversation only.
    if len(body) > LARGEST_REQUEST:
        return True
    supplied, (status, text) = _supplied(path, body), failure.basis
    for _ in range(_MOST_PASSES):
        rule = first_rule(status, text)
        if rule is None or rule.kind is not failure.kind:
            return True
        found = rule.wording.search(text) if rule.wording else None
        if found is None:
            return False
        rest = supplied.blanked(text, found.start(), found.end())
        if rest == text:
            return False
        text = rest
    return True


@dataclass(frozen=True, slots=True)
class _Supplied:
    """The strings of a request, reduced to letters and digits."""

    long: str
    """All of them; a line break between two, so that no piece spans both."""
    short: frozenset[str]

    def blanked(self, text: str, start: int, end: int) -> str:
        """Return the text with the supplied pieces between `start` and `end` overwritten."""
        places = [index for index in range(start, end) if text[index].isalnum()]
        letters = "".join(text[index] for index in places)
        hit: set[int] = set()
        for at in range(len(letters) - _PIECE + 1):
            if letters[at : at + _PIECE] in self.long:
                hit.update(range(at, at + _PIECE))
        for first, last in _words(places):
            if letters[first:last] in self.short:
                hit.update(range(first, last))
        written = list(text)
        for at in hit:
            written[places[at]] = _BLANK
        return "".join(written)


def _words(places: list[int]) -> Iterator[tuple[int, int]]:
    """Yield runs of up to four words as positions in `places`."""
    starts = [0, *(at for at, (one, other) in enumerate(pairwise(places), 1) if other > one + 1), len(places)]
    for first, start in enumerate(starts[:-1]):
        for end in starts[first + 1 : first + 5]:
            if _SHORTEST_STRING <= end - start < _PIECE:
                yield start, end


def _supplied(path: str, body: bytes) -> _Supplied:
    try:
        sent: Json = msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError):
        sent = body.decode(errors="replace")
    keys: set[str] = set()
    values: set[str] = {path, *re.split(r"[/:?&=]", path)}
    pending: list[Json] = [sent]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            values.add(value)
        elif isinstance(value, dict):
            keys.update(value)
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
    reduced_keys = {form for key in keys for form in _forms(key)} - _OWN_WORDS
    reduced = reduced_keys | ({form for value in values for form in _forms(value)} - _PROTOCOL_VALUES)
    return _Supplied("\n".join(reduced), frozenset(form for form in reduced if len(form) < _PIECE))


def _forms(text: str) -> Iterator[str]:
    """Yield what is left of a string, as it is and as a server that decodes it would repeat it."""
    yield _reduced(text)
    if "\\" in text or "%" in text or "&" in text:
        yield _reduced(html.unescape(_ESCAPE.sub(_unescaped, text)))


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2]
    return chr(int(code, 16)) if code else " "


def _reduced(text: str) -> str:
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return _NOT_ALNUM.sub("", plain).lower()
