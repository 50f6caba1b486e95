"""The code that is changed: the rooms, and the safety rules as a separate room."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path

from tools.mutants.mutations import KINDS, Mutation, mutations

PACKAGE = "src/toolspeak"
SAFETY = "safety"
ROOMS = {
    SAFETY: (
        ("engine/guard.py",),
        ("agent/sandbox", "runtime/sandbox"),
        ("gateway/access.py", "gateway/auth.py"),
        ("wires/shared/failure_echo.py", "wires/_echo.py"),
    ),
    "engine": (("engine",),),
    "dialects": (("dialects",),),
    "toolset": (("toolset",),),
    "gateway": (("gateway",),),
    "agent": (("agent", "runs", "runtime/tools"),),
}
"""Files and folders below the package; a file belongs to the first room that names it. Of the places in a row at least
one must be there: some are there only before or only after a move."""


@dataclass(frozen=True)
class Mutant:
    """A mistake in a file."""

    room: str
    path: str
    """From the root of the repository."""
    mutation: Mutation
    source: str
    """The whole file without the mistake."""
    occurrence: int = 0
    """How many mistakes of the same text are before it in the file."""

    @property
    def place(self) -> str:
        """Return file and line."""
        return f"{self.path}:{self.mutation.line}"

    @cached_property
    def key(self) -> str:
        """Return a name that stays the same while the file does not change."""
        return sha256(f"{self._text}\n{self.source}".encode()).hexdigest()[:12]

    def rank(self, seed: int) -> str:
        """Return a place in the order of a seed; changes elsewhere in the file leave it as it is."""
        return sha256(f"{seed}\n{self._text}".encode()).hexdigest()

    @cached_property
    def _text(self) -> str:
        return f"{self.path}\n{self.mutation.kind}\n{self.mutation.describe(self.source)}\n{self.occurrence}"

    def describe(self) -> str:
        """Return the mistake in one line."""
        return f"{self.place}: {self.mutation.kind}: {self.mutation.describe(self.source)}"


def room_files(root: Path, only: str = "") -> dict[str, list[str]]:
    """Return the files of each room, or of one; `only` may also be a file or folder below the package.

    Raises `LookupError` if nothing is there for a row, or for `only`.
    """
    taken: set[str] = set()
    found: dict[str, list[str]] = {}
    for room, rows in (ROOMS if not only or only in ROOMS else {only: ((only,),)}).items():
        files: set[str] = set()
        for row in rows:
            there = {file for part in row for file in _python_files(root, part)}
            if not there:
                raise LookupError(f"no Python file in {PACKAGE} for {room!r}: {', '.join(row)}")
            files |= there
        found[room] = sorted(files - taken)
        taken |= files
    return {only: found[only]} if only else found


def _python_files(root: Path, part: str) -> list[str]:
    base = root / PACKAGE / part
    files = [base] if base.is_file() else sorted(base.rglob("*.py"))
    return [file.relative_to(root).as_posix() for file in files]


def choose(root: Path, count: int, seed: int, only: str = "") -> list[Mutant]:
    """Choose mistakes: as many from each room, and in a room as many of each kind as it has places for.

    The same files, count and seed give the same mistakes, and a change of one file leaves most others chosen. Fewer
    than `count` come back if there are no more.
    """
    decks = [_deck(root, room, files, seed) for room, files in room_files(root, only).items()]
    dealt = (mutant for row in zip_longest(*decks) for mutant in row if mutant is not None)
    return [mutant for mutant, _ in zip(dealt, range(count), strict=False)]


def _deck(root: Path, room: str, files: list[str], seed: int) -> Iterator[Mutant]:
    """Yield the mistakes of a room that are Python, alternating between the kinds."""
    kinds: dict[str, list[Mutant]] = {kind: [] for kind in KINDS}
    for path in files:
        source = (root / path).read_text(encoding="utf-8")
        seen: Counter[str] = Counter()
        for mutation in mutations(source):
            text = f"{mutation.kind} {mutation.describe(source)}"
            kinds[mutation.kind].append(Mutant(room, path, mutation, source, seen[text]))
            seen[text] += 1
    ordered = [sorted(deck, key=lambda mutant: mutant.rank(seed)) for deck in kinds.values()]
    for row in zip_longest(*ordered):
        yield from (mutant for mutant in row if mutant is not None and mutant.mutation.is_valid(mutant.source))
