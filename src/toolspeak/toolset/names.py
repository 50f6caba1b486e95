"""Finds the tool that a name means: `functions.read_file`, `ReadFile` and `read-file` all mean `read_file` (CHK-2).

The steps go from exact to loose, and each one counts only if it finds exactly one tool. There is no edit distance and
no synonym: `delete_files` must never become `delete_file`. At a similarity of 70 %, which hermes-agent accepts (#701),
the two are one tool.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from toolspeak.ir.complaint import Fix, Problem

LONGEST_NAME: Final = 256

_SPECIAL_TOKEN = "<|"  # harmony models write names such as `find_bus<|channel|>commentary`
# `functions.` is the namespace of harmony and Kimi, `default_api` that of Gemma and Gemini.
_NAMESPACES = tuple(
    word + separator for word in ("functions", "function", "tools", "tool", "default_api") for separator in "./:"
)
_SEPARATORS = str.maketrans("", "", "_-./: ")
_SUFFIX_MARK = "__"


@dataclass(frozen=True, slots=True)
class Match:
    """The tool that a name means, with the fixes that led to it; or the problem, with the possible tools."""

    tool: str | None
    fixes: tuple[Fix, ...] = ()
    problem: Problem | None = None
    candidates: tuple[str, ...] = ()


UNKNOWN: Final = Match(None, problem=Problem.UNKNOWN_TOOL)


class NameIndex:
    """An index of names. Names that differ only in case and separators share a key."""

    def __init__(self, names: Iterable[str]) -> None:
        """Index the names; results are in their order."""
        self.names = tuple(names)
        self._exact = frozenset(self.names)
        self._folded: dict[str, tuple[str, ...]] = {}
        self._suffixes: dict[str, tuple[str, ...]] = {}
        for name in self.names:
            _add(self._folded, _fold(name), name)
            for suffix in _suffixes(name):
                _add(self._suffixes, _fold(suffix), name)

    def __contains__(self, name: str) -> bool:
        return name in self._exact

    def folded(self, name: str) -> tuple[str, ...]:
        """Return the names that differ from this one at most in case and separators."""
        return self._folded.get(_fold(name), ())

    def ending(self, name: str) -> tuple[str, ...]:
        """Return the names that end with this one after a `__`: `mcp__files__read` ends with `read`."""
        return self._suffixes.get(_fold(name), ())


def find_name(name: str, names: NameIndex, *, counters: bool = False) -> Match:
    """Find the tool that a name means; `counters` allows a trailing `:0`, as in Kimi's `functions.read:0`."""
    if name in names:
        return Match(name)
    if len(name) > LONGEST_NAME:
        return UNKNOWN
    # Three passes, each over all spellings: an exact match of any spelling wins over every folded match, and that wins
    # over a match of the end of a name.
    spellings = list(_spellings(name, counters=counters))
    for what, spelling in spellings:
        if spelling in names:
            return Match(spelling, (Fix(what),))
    for _, spelling in spellings:
        for bare in _without_tool(spelling):
            if found := names.folded(bare):
                return _only(found, "name: case and separators")
    for _, spelling in spellings:
        if found := names.ending(spelling):
            return _only(found, "name: prefix added")
    return UNKNOWN


def _only(found: tuple[str, ...], what: str) -> Match:
    first, *others = found
    # Two tools that differ only in case: the model is asked, because to pick one of them would be a guess.
    if others:
        return Match(None, problem=Problem.AMBIGUOUS, candidates=found)
    return Match(first, (Fix(what),))


def _spellings(name: str, *, counters: bool) -> Iterator[tuple[str, str]]:
    """Yield the name without special tokens, then without its counter, then without each namespace."""
    name = name.partition(_SPECIAL_TOKEN)[0].strip()
    yield "name: special token cut", name
    head, colon, count = name.rpartition(":")
    if counters and colon and count.isascii() and count.isdigit():
        name = head
        yield "name: counter cut", name
    while name.casefold().startswith(_NAMESPACES):
        name = name[len(next(space for space in _NAMESPACES if name.casefold().startswith(space))) :]
        yield "name: namespace stripped", name


def _without_tool(name: str) -> Iterator[str]:
    """Yield the name, then the name without each trailing `_tool` or `Tool`; in `multitool` it is part of the word."""
    yield name
    while name.endswith("Tool") or (name[-4:].casefold() == "tool" and name[-5:-4] in {"_", "-", ".", " "}):
        name = name[:-4].rstrip("_-. ")
        yield name


def _fold(name: str) -> str:
    return name.casefold().translate(_SEPARATORS)


def _suffixes(name: str) -> list[str]:
    pieces = name.split(_SUFFIX_MARK)
    return [_SUFFIX_MARK.join(pieces[start:]) for start in range(1, len(pieces))]


def _add(index: dict[str, tuple[str, ...]], key: str, name: str) -> None:
    if key and name not in index.get(key, ()):
        index[key] = (*index.get(key, ()), name)
