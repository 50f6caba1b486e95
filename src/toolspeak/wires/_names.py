"""Names of tools that a wire does not allow, and the aliases that it does.

    mcp.files:read  ->  mcp_files_read_1f0c9a3e   (openai: letters, digits, `_` and `-`, at most 64)

The alias depends on the name alone, so that it stays the same over all turns of a conversation.
"""

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

_LEGAL = re.compile(r"[A-Za-z0-9_-]+")
_LETTER_FIRST = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_DIGITS = 8


class Names:
    """Maps the names of one request to those of its upstream, and back."""

    def __init__(self, names: Iterable[str], longest: int, *, letter_first: bool = False) -> None:
        """Take the names of all tools; `longest` is how many characters the wire allows."""
        self._longest: Final = longest
        self._legal: Final = _LETTER_FIRST if letter_first else _LEGAL
        self._back: dict[str, str] = {}
        self._given: Final = frozenset(names)
        self.known: Final = frozenset(self.out(name) for name in self._given)
        """The tools' names as the upstream knows them."""

    def out(self, name: str) -> str:
        """Return the name for the upstream."""
        if len(name) <= self._longest and self._legal.fullmatch(name):
            return name
        digits = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        stem = _ILLEGAL.sub("_", name)
        stem = stem if self._legal.match(stem) else f"_{stem}"
        alias = f"{stem[: self._longest - _DIGITS - 1]}_{digits[:_DIGITS]}"
        while alias in self._given:  # somebody means it: take other digits
            digits = digits[1:]
            alias = f"{stem[: self._longest - _DIGITS - 1]}_{digits[:_DIGITS]}"
        self._back[alias] = name
        return alias

    def back(self, name: str) -> str:
        """Return the name as the request has it."""
        return self._back.get(name, name)
