"""The language of a text, and the words of each language that guardrails look for.

>>> language_of("Wie wird morgen das Wetter in Oslo?").code
'de'

Guardrails were made for English. They also read ten other languages, with more care: in doubt they keep a call
(`foreign_mentions.py`). A text in any other language, or in none that can be told, has the language `OTHER`, and
guardrails that compare words leave it alone.

The script tells most languages apart; those in Latin letters are told by their small words. "in", "an", "me" and "a"
are words of several languages: until they were counted against each other, a German request was taken for English, and
right calls were dropped because an English description has no word in common with German words.

The words are in `data/languages.json`, one object for each language (`Language`).
"""

import re
from dataclasses import dataclass
from functools import cache, cached_property
from pkgutil import get_data
from typing import Final

import msgspec

LONGEST: Final = 4000
"""The most characters that are searched; a longer text is a document and not a request."""
_SMALL_WORDS: Final = (
    "a about above after all also an and any are as ask at based be been before between both but by calculate can "
    "certain compute could default determine did do does during each example fetch find following for format from "
    "function get give given had has have help her him his how i if in including information into is it its just know "
    "let like list long made make many may me more most much must my name need no not now number of off on one only "
    "optional or other our out over particular per please provide provided retrieve return returned returns search "
    "should show so some specific specified string such tell than that the their them then there these they this those "
    "through to two type under use used user using value values want was we were what when where whether which while "
    "who whom whose why will with within would you your"
)
ENGLISH_SMALL_WORDS: Final = frozenset(_SMALL_WORDS.split())
_COMMONEST: Final = "a an and are can do for from how i in is me my of on the to what with you"
_COMMON: Final = frozenset(_COMMONEST.split())
_LOOKALIKES: Final = "am come comment den die dos ha has hat here man mine once pas per plus pour sale son till van war"
_ENGLISH_TOO: Final = frozenset(_LOOKALIKES.split())
"""Words of English that are small words elsewhere, and tell nothing."""
_NEVER: Final = r"(?!)"


@dataclass(frozen=True)
class Language:
    """The words of a language. Fields other than the first four are patterns, matched against text in lower case."""

    code: str
    name: str = ""
    script: str = "latin"
    small_words: str = ""
    """Words without a meaning of their own; a language in Latin letters is told by them, too."""
    joints: str = _NEVER
    """Words between the items of a list."""
    several: str = _NEVER
    """Further words of a request for several things."""
    steps: str = _NEVER
    """A request in steps."""
    chained: str = _NEVER
    """A request in which one call needs the result of another."""
    number_words: str = _NEVER
    """A number in words, other than one: which numbers such a text means cannot be told."""
    no: str = _NEVER
    """The beginning of an answer that says no."""
    smallest_count: int = 1
    """Numbers up to this one may be meant without a word: by an article, or by the dual of Arabic."""
    capitals_are_names: bool = False
    """Whether a capital inside a sentence marks a name. German writes every noun with one."""
    is_read: bool = True
    """False for a language that is only known so that it is not taken for English."""

    @cached_property
    def small(self) -> frozenset[str]:
        """The small words."""
        return frozenset(self.small_words.split())

    @property
    def is_spaced(self) -> bool:
        """Whether spaces tell words apart. Korean has spaces, but its particles stick to the words."""
        return self.script not in _UNSPACED


ENGLISH: Final = Language("en", "English")
OTHER: Final = Language("", is_read=False)
"""A language that guardrails do not read, or a text whose language cannot be told."""
_UNSPACED: Final = ("han", "kana", "hangul")
_SCRIPTS: Final = (
    ("latin", 1, re.compile("[a-z\u00e0-\u024f\u1e00-\u1eff]")),
    ("cyrillic", 1, re.compile("[\u0430-\u04ff]")),
    ("arabic", 1, re.compile("[\u0620-\u064a\u066e-\u06d3]")),
    ("hangul", 2, re.compile("[\uac00-\ud7a3]")),
    ("kana", 2, re.compile("[\u3041-\u3096\u30a1-\u30fa]")),
    ("han", 2, re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")),
)
"""The scripts that are read: the name, how many letters of an alphabet a character is worth, the characters."""
_UNREAD_LETTERS: Final = {
    "cyrillic": re.compile("[\u0456\u0457\u0454\u0491\u0452\u045b\u0459\u045a\u045f\u0458]"),
    "arabic": re.compile("[\u067e\u0686\u0698\u06af\u06a9\u06cc\u06d2\u0679\u0688]"),
}
"""Letters of other languages in the same script: of Ukrainian and Serbian, of Persian and Urdu."""
_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[^\W\d_]+")
_ACCENTED = re.compile("\\A\\W*\\w*[\u00c0-\u024f]|\\b[a-z]*[\u00df-\u024f]")
"""A word with a letter that English lacks, and no capital unless it is the first."""
_MORE: Final = 2
_QUOTED = re.compile(
    '"[^"\n]{0,200}"|[\u201c\u201e][^\u201c\u201d\n]{0,200}[\u201c\u201d]|\u00ab[^\u00bb\n]{0,200}\u00bb'
    "|\u300c[^\u300d\n]{0,200}\u300d"
)
_ASCII = re.compile(r"[!-~]+")
_TECHNICAL = re.compile(r"[@/_\d]")
"""What addresses and names of programs have: they may be in any language, and so may quotations."""


@cache
def foreign_languages() -> tuple[Language, ...]:
    """Return the languages besides English, those that are read first."""
    data = get_data("toolspeak.engine", "data/languages.json") or b""
    return msgspec.json.decode(data, type=tuple[Language, ...])


def is_english(text: str) -> bool:
    """Return whether a text has one of the most common English words, and is not rather in another language."""
    words = re.findall(r"[a-z]+", text[:LONGEST].lower())
    return not _COMMON.isdisjoint(words) and foreign_language(text) is None


def language_of(text: str) -> Language:
    """Return English, the language that a text is in if guardrails read it, or `OTHER`."""
    return ENGLISH if is_english(text) else foreign_language(text) or OTHER


def foreign_language(text: str) -> Language | None:
    """Return the language of a text that is surely not English; None if it may be English."""
    said = _QUOTED.sub(" ", text[:LONGEST])
    plain = _ASCII.sub(lambda run: " " if _TECHNICAL.search(run[0]) else run[0], said)
    if not _LETTER.search(plain):
        return None
    script = script_of(plain)
    if script == "latin":
        return _latin_language(plain)
    if script in _UNREAD_LETTERS and _UNREAD_LETTERS[script].search(plain.lower()):
        return OTHER
    return next((language for language in foreign_languages() if language.script == script), OTHER)


def script_of(text: str) -> str:
    """Return the script that most of a text is in; an empty string if that is none which is read."""
    letters = "".join(_LETTER.findall(text[:LONGEST].lower()))
    counts = {name: len(pattern.findall(letters)) for name, _, pattern in _SCRIPTS}
    weights = {name: weight * counts[name] for name, weight, _ in _SCRIPTS}
    if counts["kana"]:
        weights["kana"] += weights.pop("han")  # Japanese is written in both, Chinese has no kana
    found = max(weights, key=weights.__getitem__)
    return found if weights[found] > len(letters) - sum(counts.values()) else ""


def _latin_language(text: str) -> Language | None:
    """Return the language that most small words of a text belong to; None if it may be English.

    Words of both languages do not count. A text with common English words needs two more signs of the other language
    than it has words that are English only: names have "la" and "di" in English, too. A letter such as the "ü" of
    "überweise" counts as two signs, but not in a name.
    """
    words = frozenset(_WORD.findall(text.lower())) - _ENGLISH_TOO
    latin = (language for language in foreign_languages() if language.script == "latin")
    found = max(latin, key=lambda language: len(words & language.small))
    signs = len(words & (found.small - ENGLISH_SMALL_WORDS)) + (_MORE if _ACCENTED.search(text) else 0)
    english = len(words & (ENGLISH_SMALL_WORDS - found.small))
    needed = english + _MORE if words & _COMMON else 1
    if signs < needed or len(words & found.small) + signs < _MORE:
        return None
    return found if found.is_read else OTHER
