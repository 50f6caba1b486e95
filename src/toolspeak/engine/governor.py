"""The loop governor: a run that goes in circles is told so, then stopped (RUN-7).

The same call with the same result for the third time carries a nudge behind its result; if it comes once more, the run
is to be summed up.
"""

from collections import Counter
from dataclasses import replace
from typing import Final

from toolspeak.ir.message import Call, Result, Text, part_text

REPEATS: Final = 3
_NUDGE = (
    "This is the {count}. time that {name} was called with these arguments and gave this result. It will not change: "
    "do something else, or say what you have found."
)


class Governor:
    """Counts calls with their results."""

    def __init__(self, repeats: int = REPEATS) -> None:
        """Nudge at so many times the same."""
        self._repeats: Final = repeats
        self._counts: Final[Counter[tuple[str, str, str]]] = Counter()
        self.circles = False
        """A nudge has not helped."""

    def seen(self, calls: tuple[Call, ...], results: tuple[Result, ...]) -> tuple[Result, ...]:
        """Take a round's calls and results; return the results, with a nudge where one is due."""
        return tuple(self._seen(call, result) for call, result in zip(calls, results, strict=True))

    def _seen(self, call: Call, result: Result) -> Result:
        said = "\n".join(part_text(piece) for piece in result.content)
        key = (call.name, call.arguments, said)
        self._counts[key] += 1
        count = self._counts[key]
        self.circles |= count > self._repeats
        if count < self._repeats:
            return result
        return replace(result, content=(*result.content, Text(_NUDGE.format(count=count, name=call.name))))
