"""The loop governor: a run that goes in circles is told so, then stopped (RUN-7).

    look({"at": "door"}) -> "shut"                      first and second time: nothing
    look({ "at":"door" }) -> "shut"                     third: the result, and a nudge behind it
    look({"at": "door"}) -> "shut"                      fourth: the run is to be summed up

It counts over the whole run, whatever comes between, so that circles of several calls are seen too. A call whose result
changes is no circle: who waits for something asks again and again.
"""

from collections import Counter
from dataclasses import replace
from typing import Final, TypeAlias

import msgspec

from toolspeak.errors import BadJson
from toolspeak.ir.message import Call, Image, Result, ResultPart, Text, part_text
from toolspeak.text.strict import parse

REPEATS: Final = 3
_NUDGE = (
    "{name} was called with these arguments {count} times, and gave the same result each time. It will not change: do "
    "something else, or say what you have found."
)
_Key: TypeAlias = tuple[str, bytes, tuple[str, ...]]


class Governor:
    """Counts the rounds in which a call gave a result."""

    def __init__(self, repeats: int = REPEATS) -> None:
        """Nudge at so many times the same."""
        self._repeats: Final = repeats
        self._counts: Final[Counter[_Key]] = Counter()
        self.circles = False
        """A nudge has not helped."""

    def seen(self, calls: tuple[Call, ...], results: tuple[Result, ...]) -> tuple[Result, ...]:
        """Take a round's calls and results; return the results, with a nudge where one is due."""
        keys = [_key(call, result) for call, result in zip(calls, results, strict=True)]
        self._counts.update(set(keys))  # twice in one round is once: no nudge could have helped in between
        self.circles = self.circles or any(self._counts[key] > self._repeats for key in keys)
        return tuple(self._nudged(result, key) for result, key in zip(results, keys, strict=True))

    def _nudged(self, result: Result, key: _Key) -> Result:
        count = self._counts[key]
        if count < self._repeats:
            return result
        return replace(result, content=(*result.content, Text(_NUDGE.format(count=count, name=key[0]))))


def _key(call: Call, result: Result) -> _Key:
    return call.name, _canonical(call.arguments), tuple(map(_seen, result.content))


def _canonical(arguments: str) -> bytes:
    """Write arguments so that blanks and the order of keys make no difference."""
    try:
        return msgspec.json.encode(parse(arguments or "{}"), order="sorted")
    except BadJson:
        return arguments.encode("utf-8", "surrogatepass")


def _seen(piece: ResultPart) -> str:
    """Return what makes a piece of a result different from others: two pictures are not the same."""
    return piece.data or piece.url if isinstance(piece, Image) else part_text(piece)
