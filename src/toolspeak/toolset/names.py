"""Which tool a name means: `functions.read_file`, `ReadFile` and `read-file` are `read_file`, if only one tool can be.

Each step only where it has one answer, and never by edit distance or synonyms: `delete_files` is not `delete_file`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from toolspeak.ir.complaint import Problem
from toolspeak.ir.fix import Fix

LONGEST_NAME: Final = 256

_SPECIAL_TOKEN = "<|"
_NAMESPACES = tuple(
    word + separator for word in ("functions", "function", "tools", "tool", "default_api") for separator in "./:"
)
_SEPARATORS = str.maketrans("", "", "_-./: ")
_SUFFIX_MARK = "__"


@dataclass(frozen=True, slots=True)
class Match:
    """The tool that a name means and how it was found; or, without a tool, the problem and who it could have been."""

    tool: str | None
    fixes: tuple[Fix, ...] = ()
    problem: Problem | None = None
    candidates: tuple[str, ...] = ()


UNKNOWN: Final = Match(None, problem=Problem.UNKNOWN_TOOL)


class NameIndex:
    """Names made ready for search. Two names that differ only in case and separators share a key."""

    def __init__(self, names: Iterable[str]) -> None:
        """Index the names; the order is kept in what is found."""
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
        """List the names that differ at most in case and separators."""
        return self._folded.get(_fold(name), ())

    def ending(self, name: str) -> tuple[str, ...]:
        """List the names that end so after a `__`, as in `mcp__files__read`."""
        return self._suffixes.get(_fold(name), ())


def find_name(name: str, names: NameIndex, *, counters: bool = False) -> Match:
    """Find the tool that a name means; `counters` allows a trailing `:0`, as some dialects write it."""
    if name in names:
        return Match(name)
    if len(name) > LONGEST_NAME:
        return UNKNOWN
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
    if others:
        return Match(None, problem=Problem.AMBIGUOUS, candidates=found)
    return Match(first, (Fix(what),))


def _spellings(name: str, *, counters: bool) -> Iterator[tuple[str, str]]:
    """Take away, one after the other, what surely does not belong to a name."""
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
    """Take away, one after the other, a trailing `_tool` or `Tool`; in `multitool` it is part of the word."""
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
