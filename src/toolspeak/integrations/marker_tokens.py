"""The markers of reasoning as tokens of one model: where a server shows its parsers tokens, and no text.

    tokens = MarkerTokens(load("hermes").grammar.reasoning, {"<think>": 7, "</think>": 8}, encode)
    tokens.is_open_after([1, 7, 2])       True
    tokens.is_open_after([1, 7, 2, 8])    False
    tokens.is_open_after([1, 2])          None

Most markers are one token. Some are several, such as `<|open|>`, `think`, `<|sep|>` of Kimi K3 and `<|channel>`,
`thought` of Gemma 4. A marker that a tokenizer cuts into smaller pieces than these is none of its model's: only text
that quotes it has these tokens.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from toolspeak.dialects.core.grammar import ReasoningMarks

_PART: Final = re.compile(r"<[^<>]*>|[^<]+")


@dataclass(frozen=True, slots=True)
class MarkerToken:
    """A marker, and the tokens that it is."""

    text: str
    ids: tuple[int, ...]
    opens: bool


@dataclass(frozen=True, slots=True)
class TokenSpan:
    """Where a marker begins and ends in a sequence of tokens."""

    start: int
    end: int
    opens: bool


class MarkerTokens:
    """The markers that are tokens of one model. Never changes."""

    def __init__(
        self,
        marks: Iterable[ReasoningMarks],
        vocab: Mapping[str, int],
        encode: Callable[[str], Sequence[int]] | None = None,
    ) -> None:
        """Look the markers up in a vocabulary; `encode` returns the tokens of a marker that is more than one."""
        texts = [(text, index == 0) for each in marks for index, text in enumerate((each.opener, *each.closers))]
        found = ((text, _ids(text, vocab, encode), opens) for text, opens in texts)
        self._markers = tuple(MarkerToken(text, ids, opens) for text, ids, opens in found if ids)
        self.reach = max((len(marker.ids) for marker in self._markers), default=1) - 1
        """How many tokens before its last one a marker may begin."""
        self._by_last: dict[int, list[MarkerToken]] = {}
        for marker in self._markers:
            self._by_last.setdefault(marker.ids[-1], []).append(marker)

    def first(self, *, opens: bool) -> MarkerToken | None:
        """Return the first of the dialect's markers that this model has."""
        return next((marker for marker in self._markers if marker.opens is opens), None)

    def find(self, ids: Sequence[int]) -> Iterator[TokenSpan]:
        """Yield the markers in a sequence, in order."""
        done = 0
        for end, token in enumerate(ids, 1):
            found = self._ending_at(ids, end, token)
            if found is not None and found.start >= done:
                done = found.end
                yield found

    def is_open_after(self, ids: Sequence[int]) -> bool | None:
        """Return whether the last marker in a sequence opens reasoning; None if there is no marker."""
        for end in range(len(ids), 0, -1):
            found = self._ending_at(ids, end, ids[end - 1])
            if found is not None:
                return found.opens
        return None

    def _ending_at(self, ids: Sequence[int], end: int, token: int) -> TokenSpan | None:
        for marker in self._by_last.get(token, ()):
            start = end - len(marker.ids)
            if start >= 0 and tuple(ids[start:end]) == marker.ids:
                return TokenSpan(start, end, marker.opens)
        return None


def _ids(text: str, vocab: Mapping[str, int], encode: Callable[[str], Sequence[int]] | None) -> tuple[int, ...]:
    """Return the tokens of a marker; none if it is no marker of this model."""
    if text in vocab:
        return (vocab[text],)
    parts = _PART.findall(text)
    if len(parts) == 1 or encode is None:
        return ()
    ids = tuple(encode(text))
    return ids if len(ids) <= len(parts) else ()
