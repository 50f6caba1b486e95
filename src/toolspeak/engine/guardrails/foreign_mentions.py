"""Finds mentions in texts that are not English, and compares values and tools with such texts.

    mentions      numbers and quotations in every language; names where a capital marks them; neighbours in a list
    values        a number that the text has neither as digits nor in words; a text in the letters of the conversation
                  of which hardly anything occurs in it
    tools         a description in the language of the conversation that shares no stem of a word with it

Everything here is more careful than its counterpart for English (`mentions.py`), which is measured. A value in other
letters than the conversation ("Tokyo"), or in plain Latin letters ("Munich" for "München"), may be a translation, and
counts as mentioned. Words are compared by their beginning, Chinese, Japanese and Korean by pairs of characters.
"""

import re
from collections.abc import Iterator
from math import isclose
from typing import Final
from unicodedata import normalize

from toolspeak.engine.guardrails.language import LONGEST, Language, language_of, script_of

_NUMBER = re.compile(r"(?<![A-Za-z\d.,^])\d++(?:[.,\u066b\u066c]\d++)*(?![A-Za-z\d^])")
_DIGITS = re.compile(r"\d++(?:[.,\u066b\u066c]\d++)*")
_SEPARATOR = re.compile(r"[.,\u066b\u066c]")
_ITEM = re.compile(r"(?m)^\s*\d{1,2}[.)](?=\s)")
_QUOTED = re.compile(
    '"([^"\n]{1,60})"|[\u201c\u201e]([^\u201c\u201d\n]{1,60})[\u201c\u201d]|\u00ab\\s?([^\u00bb\n]{1,60}?)\\s?\u00bb'
    "|[\u300c\u300e]([^\u300d\u300f\n]{1,60})[\u300d\u300f]"
)
_WORD = re.compile(r"[^\W\d_]+")
_LATIN_NAME = re.compile(r"[A-Z][A-Za-z'&-]++(?: [A-Z][A-Za-z'&-]++)*")
_INSIDE = re.compile(r"[^\W\d_A-Z][,;:]? $")
_PUNCTUATION: Final = r"[,;&\u060c\u061b\u3001\uff0c\uff1b]"
_QUESTIONS = re.compile(r"[?\u061f\uff1f][^?\u061f\uff1f]*[?\u061f\uff1f]|[;&\u061b\uff1b]")
_SENTENCE: Final = r"[,;.?!\u060c\u061b\u061f]\s+|[\u3001\u3002\uff0c\uff1b\uff1f\uff01]"
_SCALES: Final = (1, 0.01, 100, 1000, 0.001, 1_000_000)
_PERCENT: Final = (1, 100)
_STEM: Final = {"arabic": 3}
_STEM_ELSEWHERE: Final = 5
_SHORTEST_STEM: Final = 3
_LIKENESS: Final = 0.7
"""How much of a word's beginning must be the same: Praga and Prague, the cases of Russian."""
_HALF: Final = 0.5
_PAIR: Final = 2
_KANA_PAIR = re.compile("[\u3041-\u3096]{2}")
_ACCENTED = re.compile("[\u00c0-\u024f\u1e00-\u1eff]")
_SPELLINGS: Final = str.maketrans("\u0451\u0623\u0625\u0622", "\u0435\u0627\u0627\u0627")
_ARTICLE = re.compile("^(?:[\u0648\u0641\u0628\u0643\u0644]?\u0627\u0644|\u0644\u0644)(?=..)")
"""The article of Arabic, with the particle that may stick to it."""


# ---------------------------------------------------------------- requests for several things


def asks_for_several(text: str, language: Language) -> bool:
    """Return whether a request may ask for several things at once."""
    words = f"{language.joints}|{language.several}"
    pattern = rf"\b(?:{words})\b" if language.is_spaced else words
    return _QUESTIONS.search(text) is not None or re.search(pattern, text.lower()) is not None


def clause_ends(language: Language) -> re.Pattern[str]:
    """Return what is between the clauses of a request."""
    return re.compile(rf"(?i){_SENTENCE}|\s(?:{language.joints})\s" if language.is_spaced else _SENTENCE)


def foreign_mentions(text: str, language: Language) -> tuple[str, ...]:
    """Return numbers, quotations, and names that can be told, as they are written and in their order."""
    text = _ITEM.sub("", text[:LONGEST])
    found = [(match.start(), match[0]) for match in _NUMBER.finditer(text)]
    found += [(match.start(), next(filter(None, match.groups()))) for match in _QUOTED.finditer(text)]
    if language.script != "latin":
        found += [(match.start(), match[0]) for match in _LATIN_NAME.finditer(text)]
    if language.capitals_are_names:
        found += _names(text)
    return tuple(dict.fromkeys(word for _, word in sorted(found)))


def _names(text: str) -> Iterator[tuple[int, str]]:
    """Yield capitalised words that do not begin a sentence, with their positions."""
    for word in _WORD.finditer(text):
        if word[0][0].isupper() and _INSIDE.search(text, max(0, word.start() - 3), word.start()):
            yield word.start(), word[0]


def foreign_neighbours(text: str, word: str, language: Language) -> Iterator[str]:
    """Yield the item that follows another one in a list; where words cannot be told apart, its first two characters."""
    text = text[:LONGEST]
    at = text.lower().find(word.lower()) if word else -1
    if at < 0:
        return
    rest = text[at + len(word) :]
    if language.is_spaced:
        yield from _next_word(rest, language)
        return
    following = re.match(rf"(?:{language.joints}|{_PUNCTUATION})\s*([^\W\d_]{{2}})", rest)
    if following is not None and following[1] not in language.small:
        yield following[1]


def _next_word(rest: str, language: Language) -> Iterator[str]:
    """Yield the word after a comma or a joint and at most two small words, as Madrid in "und in Madrid"."""
    sticks = "\\s*" if language.script == "arabic" else "\\s+"  # "wa" sticks to the next word
    joint = re.match(rf"(?i)\w{{0,2}}(?:\s*{_PUNCTUATION}\s*|\s+(?:{language.joints}){sticks})", rest)
    words = _WORD.findall(rest[joint.end() :])[: _PAIR + 1] if joint else []
    following = next((word for word in words if word.lower() not in language.small), None)
    if following is not None:
        yield following


def is_foreign_mention_used(mention: str, used: str) -> bool:
    """Return whether values have a mention: a number in any notation, or a name in a similar spelling.

    A name counts as used if all values are in other letters: the model translates, and what it means cannot be told.
    """
    if _NUMBER.fullmatch(mention):
        return is_similar(mention, used)
    letters = [script_of(value) for value in used.splitlines() if _WORD.search(value)]
    return (bool(letters) and script_of(mention) not in letters) or is_similar(mention, used)


def is_similar(mention: str, used: str) -> bool:
    """Return whether values have a number, or a name with nearly the same beginning."""
    if _NUMBER.fullmatch(mention):
        return any(_has_number(value, used, _PERCENT) for value in _readings(mention))
    name = _folded(mention)
    return name[: max(_PAIR, round(_LIKENESS * len(name)))] in _folded(used)


# ---------------------------------------------------------------- values


def may_be_said(value: str | float, text: str, language: Language) -> bool:
    """Return whether a value may come from a text; False only if there is no trace of it."""
    if not isinstance(value, str):
        return _may_be_counted(value, text, language)
    if not _folded(value) or _folded(value) in _folded(text):
        return True
    if not _WORD.search(value):
        digits = [float(one) for one in re.findall(r"\d+", value)]
        return sum(_may_be_counted(one, text, language) for one in digits) >= _HALF * len(digits)
    if may_be_translated(value, language):
        return True
    if not language.is_spaced:
        return not _pairs(value, language).isdisjoint(_pairs(text, language))
    stems, others = _stems(value, language), _folded(text)
    return not stems or sum(stem in others for stem in stems) >= _HALF * len(stems)


def may_be_translated(value: str, language: Language) -> bool:
    """Return whether a value may be a translation of what the user said: it is in other letters, or in plain ones."""
    if language.script != "latin":
        return script_of(value) != language.script and not (language.script == "kana" and script_of(value) == "han")
    return value.isascii() and language_of(value) is not language


def _may_be_counted(value: float, text: str, language: Language) -> bool:
    if abs(value) in range(1, language.smallest_count + 1) or re.search(language.number_words, text[:LONGEST].lower()):
        return True
    return _has_number(value, text, _SCALES)


def _has_number(value: float, text: str, scales: tuple[float, ...]) -> bool:
    numbers = {reading for digits in _DIGITS.findall(text[:LONGEST]) for reading in _readings(digits)}
    return any(isclose(abs(value), number * scale) for number in numbers for scale in scales)


def _readings(digits: str) -> Iterator[float]:
    """Yield what digits may mean: 1.500 is one and a half in English, fifteen hundred in German; 5,10 may be a list."""
    parts = _SEPARATOR.split(digits)
    yield float("".join(parts))
    yield from map(float, parts)
    if len(parts) > 1:
        yield float(f"{''.join(parts[:-1])}.{parts[-1]}")


# ---------------------------------------------------------------- tools


def has_common_stem(description: str, text: str, language: Language) -> bool:
    """Return whether a tool's description and a text in the same language may be about the same."""
    if not language.is_spaced:
        return not _pairs(description, language).isdisjoint(_pairs(text, language))
    one, other = _content(description, language), _content(text, language)
    return _occurs(one, other, language) or _occurs(other, one, language)


def is_traceable(value: str | float, text: str, language: Language) -> bool:
    """Return whether a value has anything to do with a text; an empty text has nothing."""
    if not isinstance(value, str) or not _WORD.search(value):
        return value != "" and may_be_said(value, text, language)
    if script_of(value) != language.script or not language.is_spaced:
        return may_be_said(value, text, language)
    words = " ".join(map(_folded, _WORD.findall(text[:LONGEST])))
    return any(_folded(word)[:_SHORTEST_STEM] in words for word in _WORD.findall(value[:LONGEST]))


def _occurs(words: frozenset[str], others: frozenset[str], language: Language) -> bool:
    """Return whether the stem of a word is in another word; German writes compounds as one word."""
    size = _STEM.get(language.script, _STEM_ELSEWHERE)
    together = " ".join(others)
    return any(word[:size] in together for word in words)


def _content(text: str, language: Language) -> frozenset[str]:
    """Return the words that may carry meaning, without accents and case."""
    words = (word for word in _WORD.findall(text[:LONGEST]) if word.lower() not in language.small)
    folded = (_ARTICLE.sub("", _folded(word)) for word in words)
    return frozenset(word for word in folded if len(word) >= _SHORTEST_STEM)


def _stems(text: str, language: Language) -> frozenset[str]:
    size = _STEM.get(language.script, _STEM_ELSEWHERE)
    return frozenset(word[: min(size, max(_SHORTEST_STEM, len(word) - 1))] for word in _content(text, language))


def _pairs(text: str, language: Language) -> frozenset[str]:
    """Return all pairs of characters but those of grammar: hiragana, and those of the small words."""
    grammar = {pair for word in language.small for pair in _pairs_of(word)}
    pairs = (pair for word in _WORD.findall(text[:LONGEST].lower()) for pair in _pairs_of(word))
    return frozenset(pair for pair in pairs if pair not in grammar and not _KANA_PAIR.fullmatch(pair))


def _pairs_of(word: str) -> Iterator[str]:
    yield from (word[at : at + _PAIR] for at in range(len(word) - 1))


def _folded(text: str) -> str:
    """Return letters and digits in lower case, Latin letters without accents, and one spelling of yo and of alef."""
    letters = (letter for letter in text.lower().translate(_SPELLINGS) if letter.isalnum())
    return "".join(normalize("NFKD", letter)[0] if _ACCENTED.match(letter) else letter for letter in letters)
