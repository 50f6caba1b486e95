"""The loop governor: detects runs that go in circles; the model gets a nudge first, then the run is ended (RUN-7).

    look({"at": "door"}) -> "shut"                      first and second time: nothing
    look({ "at":"door" }) -> "shut"                     third: a nudge follows the result
    look({"at": "door"}) -> "shut"                      fourth: the run is summed up

Without it, models go on: 220 identical calls in 25 minutes were reported (pi #9637). The governor counts over the whole
run, whatever comes between, so it sees circles of several calls too. It counts pairs of call and result, because a
call whose result changes is not a circle: polling is legal.
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
    """Counts in how many rounds a call had the same result."""

    def __init__(self, repeats: int = REPEATS) -> None:
        """Nudge when a call has had the same result in `repeats` rounds."""
        self._repeats: Final = repeats
        self._counts: Final[Counter[_Key]] = Counter()
        self.circles = False
        """Whether a call was repeated after its nudge."""

    def seen(self, calls: tuple[Call, ...], results: tuple[Result, ...]) -> tuple[Result, ...]:
        """Take a round's calls and their results; return the results, with a nudge where one is due."""
        keys = [_key(call, result) for call, result in zip(calls, results, strict=True)]
        # Two equal calls in one round count once: the model could not have reacted to a nudge between them.
        self._counts.update(set(keys))
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
    """Return arguments in a form that does not depend on blanks and the order of keys."""
    try:
        return msgspec.json.encode(parse(arguments or "{}"), order="sorted")
    except BadJson:
        return arguments.encode("utf-8", "surrogatepass")


def _seen(piece: ResultPart) -> str:
    """Return the content of a piece for comparison; images are compared by their data, not by their description."""
    return piece.data or piece.url if isinstance(piece, Image) else part_text(piece)
