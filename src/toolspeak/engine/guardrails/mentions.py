"""Finds the mentions of a short text: numbers, names, quotations, and the words that carry its meaning.

>>> mentions('Play Maroon 5 for 20 minutes, then "Yellow"')
('Maroon', '5', '20', 'Yellow')

The rules and the lists of small words are those of English; `foreign_mentions.py` has those of other languages.
"""

import re
from collections.abc import Iterator, Sequence
from math import isclose
from typing import Final

from toolspeak.engine.guardrails.language import ENGLISH_SMALL_WORDS, LONGEST

_CALENDAR: Final = (
    "january february march april may june july august september october november december monday tuesday wednesday "
    "thursday friday saturday sunday am pm"
)
_DAYS: Final = frozenset(_CALENDAR.split())
_WORD = re.compile(r"[^\W\d_]{3,}")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NUMBER = re.compile(r"(?<![\w^.])\d+(?:,\d{3})*(?:\.\d+)?(?![\w^])")
_ITEM = re.compile(r"(?m)^\s*\d{1,2}[.)](?=\s)")
_SHORT = re.compile(r"\b[A-Z]{2,3}\b")
_DIGITS = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_CAPITAL = re.compile(r"[A-Z][\w'&-]*")
_INSIDE = re.compile(r"[a-z,;:] ")
_QUOTED = re.compile("(?<!\\w)['\"\u201c\u2018]([^'\"\u201c\u201d\u2018\u2019\n]{1,60})['\"\u201d\u2019](?!\\w)")
_NEXT = re.compile(r"\s*(?:,\s*(?:and\s+|or\s+)?|;\s*|&\s*|(?:and|or)\s+)([\w'-]+)")
_TOKEN = re.compile(r"[^\W\d_]{2,}|\d+")
_STEM: Final = 5
_MOST: Final = 0.6
_SCALES: Final = (1, 0.01, 100, 1000, 0.001, 1_000_000)
_PERCENT: Final = (1, 100)
_COUNTED: Final = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMBERS: Final = {word: float(number) for number, word in enumerate(_COUNTED.split())}


def meaning(text: str) -> frozenset[str]:
    """Return the stems of the words that carry meaning; names such as `getUserId` and `get_user_id` are split."""
    words = _WORD.findall(_HUMP.sub(" ", text[:LONGEST]).replace("_", " "))
    return frozenset(_stem(word.lower()) for word in words if word.lower() not in ENGLISH_SMALL_WORDS) - {""}


def mentions(text: str) -> tuple[str, ...]:
    """Return numbers, names and quotations as they are written, in their order.

    The numbers of list items ("1. …") are left out, and so are days and months: they are not values of their own.
    """
    text = _ITEM.sub("", text[:LONGEST])
    found = [(match.start(), match[0]) for match in _NUMBER.finditer(text)] + _names(text)
    found += [(match.start(), match[1]) for match in _QUOTED.finditer(text)]
    return tuple(dict.fromkeys(word for _, word in sorted(found) if word.lower() not in _DAYS | ENGLISH_SMALL_WORDS))


def beside(text: str, word: str) -> Iterator[str]:
    """Yield the word that follows another one in a list, such as Oslo after Bergen in "Bergen and Oslo"."""
    text = text[:LONGEST]
    at = text.lower().find(word.lower()) if word else -1
    following = _NEXT.match(text, at + len(word)) if at >= 0 else None
    if following is not None and following[1].lower() not in ENGLISH_SMALL_WORDS:
        yield following[1]


def is_mentioned(mention: str, text: str) -> bool:
    """Return whether a text has a mention: a number in any notation, a name in full or abbreviated."""
    if _NUMBER.fullmatch(mention):
        return is_number_mentioned(_value(mention), text, _PERCENT)
    return _bare(mention) in _bare(text) or any(
        _abbreviates(short, mention) for short in _SHORT.findall(text[:LONGEST])
    )


def is_mostly_mentioned(value: str, text: str) -> bool:
    """Return whether a value, or most of its words, is in a text."""
    if not _bare(value) or _bare(value) in _bare(text):
        return True
    words, others = _stems(value), _stems(text)
    return bool(words) and len(words & others) >= _MOST * len(words)


def is_number_mentioned(value: float, text: str, scales: Sequence[float] = _SCALES) -> bool:
    """Return whether a number is in a text, as digits or as a word, possibly in other units (5 % as 0.05)."""
    others = {_value(digits) for digits in _DIGITS.findall(text[:LONGEST])}
    others.update(_NUMBERS[word] for word in _TOKEN.findall(text[:LONGEST].lower()) if word in _NUMBERS)
    return any(isclose(abs(value), other * scale) for other in others for scale in scales)


def _names(text: str) -> list[tuple[int, str]]:
    """Return runs of capitalised words that do not begin a sentence, with their positions."""
    names: list[tuple[int, str]] = []
    end = -1
    for word in _CAPITAL.finditer(text):
        if names and end + 1 == word.start() and text[end] == " ":
            start, name = names[-1]
            names[-1] = (start, f"{name} {word[0]}")
        elif _INSIDE.match(text, max(0, word.start() - 2)):
            names.append((word.start(), word[0]))
        else:
            continue
        end = word.end()
    return names


def _abbreviates(short: str, name: str) -> bool:
    """Return whether capitals may be short for a name, as IL is for Illinois, PA for Pennsylvania, NY for New York."""
    words = name.upper().split()
    return short in ("".join(word[0] for word in words), words[0][: len(short)], words[0][0] + words[0][-1])


def _value(digits: str) -> float:
    return float(digits.replace(",", ""))


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text)).lower()


def _stems(text: str) -> frozenset[str]:
    return frozenset(_stem(word) for word in _TOKEN.findall(text[:LONGEST].lower()))


def _stem(word: str) -> str:
    """Return the beginning that a word shares with its other forms.

    "women" has the stem of "woman": without that, a right argument was dropped because of its plural.
    """
    word = f"{word[:-3]}man" if word.endswith("men") else word
    return word[:_STEM] if len(word) > _STEM else word.rstrip("s")
