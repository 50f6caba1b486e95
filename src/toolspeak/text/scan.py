"""Searches for many literal markers at once, in a text that arrives in chunks.

`Markers.match(text, pos, final=False)` returns the literal at one position, `""` if the text ends before that can be
decided (the reader must hold it back), or None. `search` does the same from a position onwards. The longest literal
wins.

A search for each marker in the whole buffer after each chunk is quadratic: 200 KB in chunks of 8 bytes took 8.8
seconds. So readers search only new text, and hold back only the start of a possible marker (P8).
"""

import re
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import NamedTuple

Trie = dict[str, "Trie"]
END = ""  # the key of a node at which a literal ends


class Hit(NamedTuple):
    """A marker and its position; with an empty literal, the text from there on must be held back."""

    start: int
    literal: str


class Markers:
    """A set of literals, compiled to one trie-shaped pattern: one pass, no backtracking beyond a literal's length."""

    def __init__(self, literals: Iterable[str], *, ignore_case: bool = False) -> None:
        """Compile the literals. With `ignore_case`, ASCII letters match in either case, and hits are in lower case."""
        self._ignore_case = ignore_case
        self.literals = frozenset(self._fold(literal) for literal in literals if literal)
        self._longer = self.literals & {text[:end] for text in self.literals for end in range(1, len(text))}
        self._partial = self._compile(partial=True)

    @cached_property
    def _whole(self) -> re.Pattern[str]:
        return self._compile(partial=False)

    def _compile(self, *, partial: bool) -> re.Pattern[str]:
        flags = (re.IGNORECASE | re.ASCII) if self._ignore_case else re.NOFLAG
        return re.compile(_pattern(trie_of(self.literals), partial=partial) or r"(?!)", flags)

    @cached_property
    def begins(self) -> Callable[[str], re.Match[str] | None]:
        """Search for what may begin a literal: its first two characters, or the first at the end of the text.

        This is fast, and most chunks have none. By the first character alone, every apostrophe would be one.
        """
        pairs: dict[str, set[str]] = {}
        for literal in self.literals:
            first, second = literal[0], literal[1:2]
            for char in (first, first.upper()):
                pairs.setdefault(char, set()).update((second, second.upper()))
        branches = [re.escape(first) + _second(seconds) for first, seconds in sorted(pairs.items())]
        return re.compile("|".join(branches) or r"(?!)").search

    def match(self, text: str, pos: int, *, final: bool = False) -> str | None:
        """Return the literal at `pos`, `""` if more text is needed to decide, None if there is none."""
        found = (self._whole if final else self._partial).match(text, pos)
        return None if found is None else self._name(found, len(text), final=final)

    def search(self, text: str, pos: int, *, final: bool = False) -> Hit | None:
        """Return the first literal at or after `pos`, or the position from which text must be held back."""
        found = (self._whole if final else self._partial).search(text, pos)
        return None if found is None else Hit(found.start(), self._name(found, len(text), final=final))

    def _name(self, found: re.Match[str], length: int, *, final: bool) -> str:
        literal = self._fold(found.group())
        open_ended = not final and found.end() == length and literal in self._longer
        return literal if literal in self.literals and not open_ended else ""

    def _fold(self, text: str) -> str:
        return folded(text) if self._ignore_case else text


def folded(text: str) -> str:
    """Return the text with its ASCII letters in lower case."""
    # str.lower() changes the length of some non-ASCII texts, and positions in the folded text must stay valid.
    return text.lower() if text.isascii() else "".join(char.lower() if char.isascii() else char for char in text)


def trie_of(literals: Iterable[str]) -> Trie:
    """Return a trie of literals; a node at which one ends has the key `END`."""
    root: Trie = {}
    for literal in literals:
        node = root
        for char in literal:
            node = node.setdefault(char, {})
        node[END] = {}
    return root


def _second(seconds: set[str]) -> str:
    """Return the pattern of a second character; an empty one stands for a literal of one character."""
    return "" if "" in seconds else f"(?:[{re.escape(''.join(sorted(seconds)))}]|\\Z)"


def _pattern(node: Trie, *, partial: bool, root: bool = True) -> str:
    branches = [re.escape(char) + _pattern(child, partial=partial, root=False) for char, child in node.items() if char]
    if not branches:
        return ""
    if END in node:
        branches.append("")  # the shorter literal, if no longer one continues it
    elif partial and not root:
        branches.append(r"\Z")
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"
