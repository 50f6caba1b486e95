"""The words of refusals, per language, and how they are written down.

    let world: internet|files (on|in)
    soft: sorry|unfortunately
    open: i (don't|do not) have
    claim: (don't|do not) have access & {world}

`(a|b|)` stands for each of its alternatives, `{world}` for what `let` said, `a & b` for both in any order. An indented
line goes on with the one above. In languages with spaces a phrase starts where a word starts and may end inside one, so
that stems do; `_` is a blank. Case and accents do not matter, hyphens are blanks, typographic apostrophes are straight.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from toolspeak.engine import _refusal_latin as latin
from toolspeak.engine import _refusal_scripts as scripts

JOINS = frozenset({"or", "nor", "o", "ou", "oder", "noch", "ni", "или", "ни", "lub", "ani", "of", "veya", "أو", "या"})
"""Words that go on with a list after a comma."""


@dataclass(frozen=True, slots=True)
class Words:
    """What a refusal is made of, in one language.

    A sentence may be a refusal if it starts with an opener, after any number of softeners. It is one if a claim is in
    one of its clauses, or an `across` (a claim or a request) anywhere in it. A bare claim ("I have no tools") does not
    count beside a purpose ("tools for sending mail"): that is an honest limit. A veto says: no refusal, whatever else.
    """

    softeners: tuple[str, ...]
    openers: tuple[str, ...]
    claims: tuple[str, ...]
    bare: tuple[str, ...]
    purposes: tuple[str, ...]
    across: tuple[str, ...]
    vetoes: tuple[str, ...]
    spaced: bool


@cache
def languages() -> tuple[Words, ...]:
    """Return the words of all languages."""
    spaced = (
        latin.ENGLISH,
        latin.SPANISH,
        latin.PORTUGUESE,
        latin.ITALIAN,
        latin.FRENCH,
        latin.GERMAN,
        latin.TURKISH,
        latin.POLISH,
        latin.DUTCH,
        scripts.RUSSIAN,
        scripts.KOREAN,
        scripts.ARABIC,
        scripts.HINDI,
    )
    unspaced = (scripts.CHINESE, scripts.JAPANESE)
    return (*(_words(text, spaced=True) for text in spaced), *(_words(text, spaced=False) for text in unspaced))


def _words(text: str, *, spaced: bool) -> Words:
    named: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    for key, body in _entries(text):
        kind, _, name = key.partition(" ")
        if name:
            named[name] = body.format_map(named)
        else:
            found.setdefault(kind, []).append(body.format_map(named))
    kinds = ("soft", "open", "claim", "bare", "purpose", "across", "veto")
    softeners, openers, claims, bare, purposes, across, vetoes = (tuple(found[kind]) for kind in kinds)
    return Words(softeners, openers, claims, bare, purposes, across, vetoes, spaced)


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Join the indented lines to what they go on with."""
    for line in text.replace("\n  ", "").strip().split("\n"):
        key, _, body = line.partition(": ")
        yield key, body
