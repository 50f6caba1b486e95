"""Phrases that read like a translation, counted in src and docs. A person judges them: none fails the command.

The patterns find the beginning of a clause by its punctuation, so they miss some and catch some that are fine ("the
model behind the gateway" is left out, "whoever" in a quotation is not).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tools.house.tree import Tree

_BEGIN = r'(?:^\s*(?:#+|-|\*|\d+\.|r?"""|>|\|)?\s*|[.:;(|!?]\s+|"""|\*\*)'
"""The start of a line, a list item, a docstring, a table cell or a sentence."""
_JOINS = r"\b(?:and|but|or|for|of|to|by|if|than|tells|says|shows|with|because)\s+"

PHRASES = {
    "behind (for: after)": re.compile(r"\bbehind\b(?! \w+ (?:\w+ )?(?:gateway|proxy|proxies|server|balancer)\b)"),
    "stand, stands (for: is)": re.compile(r"\bstands?\b"),
    "nobody": re.compile(r"\bnobody\b", re.IGNORECASE),
    "somebody": re.compile(r"\bsomebody\b", re.IGNORECASE),
    "who, whoever (as a subject)": re.compile(
        rf"(?:{_BEGIN}|{_JOINS}|,\s+)who(?:ever)?\b(?!\s+(?:am|are) )", re.IGNORECASE
    ),
    "what … is (as a subject)": re.compile(
        rf"{_BEGIN}What\b[^.?!:]{{1,60}}?\b(?:is|are|has|goes|comes|must|may|can)\b(?![^.]*\?)"
    ),
    "Tell whether": re.compile(r"\bTell whether\b"),
    "Say …": re.compile(rf"{_BEGIN}Say\b(?!s)"),
}


@dataclass(frozen=True)
class Finding:
    """A line with a phrase."""

    phrase: str
    path: str
    line: int
    text: str


def find_phrases(tree: Tree) -> Iterator[Finding]:
    """Yield each line that has a phrase, once for each phrase that it has."""
    for path, text in tree.texts():
        for number, line in enumerate(text.splitlines(), start=1):
            for phrase, pattern in PHRASES.items():
                if pattern.search(line):
                    yield Finding(phrase, path, number, line.strip())


def count_phrases(findings: Sequence[Finding]) -> dict[str, int]:
    """Return the number of lines for each phrase, also for those that have none."""
    return {phrase: sum(finding.phrase == phrase for finding in findings) for phrase in PHRASES}
