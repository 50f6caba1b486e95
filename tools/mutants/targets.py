"""Which code is changed: the rooms, and in a room of their own the rules that keep users safe."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random

from tools.mutants.mutations import KINDS, Mutation, enclosing_function, mutations

PACKAGE = "src/toolspeak"
SAFETY = "safety"
ROOMS = {
    SAFETY: (
        "engine/guard.py",
        "runtime/sandbox",
        "agent/sandbox",
        "gateway/access.py",
        "wires/shared/failure_echo.py",
    ),
    "engine": ("engine",),
    "dialects": ("dialects",),
    "toolset": ("toolset",),
    "gateway": ("gateway",),
    "agent": ("agent", "runs", "runtime/tools"),
}
"""Files and folders below the package; a file belongs to the first room that names it. Some are there only before or
only after a move, but a room without any file is an error."""


@dataclass(frozen=True)
class Mutant:
    """A mistake in a file."""

    room: str
    path: str
    """From the root of the repository."""
    mutation: Mutation
    source: str
    """The whole file without the mistake."""

    @property
    def place(self) -> str:
        """Return file and line."""
        return f"{self.path}:{self.mutation.line}"

    @cached_property
    def function(self) -> str:
        """Return the function around it as `path:line`, or the path if it is outside of functions."""
        line = enclosing_function(self.source, self.mutation.line)
        return self.path if line is None else f"{self.path}:{line}"

    def describe(self) -> str:
        """Return the mistake in one line."""
        return f"{self.place}: {self.mutation.kind}: {self.mutation.describe(self.source)}"


def room_files(root: Path, only: str = "") -> dict[str, list[str]]:
    """Return the files of each room, or of one; `only` may also be a file or folder below the package.

    Raises `LookupError` if a room, or `only`, has no file.
    """
    taken: set[str] = set()
    found: dict[str, list[str]] = {}
    for room, parts in (ROOMS if not only or only in ROOMS else {only: (only,)}).items():
        files = sorted({file for part in parts for file in _python_files(root, part)} - taken)
        if not files:
            raise LookupError(f"no Python file in {PACKAGE} for {room!r}: {', '.join(parts)}")
        taken.update(files)
        found[room] = files
    return {only: found[only]} if only else found


def _python_files(root: Path, part: str) -> list[str]:
    base = root / PACKAGE / part
    files = [base] if base.is_file() else sorted(base.rglob("*.py"))
    return [file.relative_to(root).as_posix() for file in files]


def choose(root: Path, count: int, seed: int, only: str = "") -> list[Mutant]:
    """Choose mistakes: as many from each room, and in a room as many of each kind as it has places for.

    The same files, count and seed give the same mistakes. Fewer than `count` come back if there are no more.
    """
    random = Random(seed)
    rooms = {room: _decks(root, room, files, random) for room, files in room_files(root, only).items()}
    chosen: list[Mutant] = []
    while rooms and len(chosen) < count:
        for room, decks in list(rooms.items()):
            if not decks:
                del rooms[room]
            elif len(chosen) < count:
                kind = random.choice(list(decks))
                mutant = decks[kind].pop()
                if mutant.mutation.is_valid(mutant.source):
                    chosen.append(mutant)
                if not decks[kind]:
                    del decks[kind]
    return chosen


def _decks(root: Path, room: str, files: list[str], random: Random) -> dict[str, list[Mutant]]:
    """Return the mistakes of a room by kind, shuffled."""
    decks: dict[str, list[Mutant]] = {kind: [] for kind in KINDS}
    for path in files:
        source = (root / path).read_text(encoding="utf-8")
        for mutation in mutations(source):
            decks[mutation.kind].append(Mutant(room, path, mutation, source))
    for deck in decks.values():
        random.shuffle(deck)
    return {kind: deck for kind, deck in decks.items() if deck}
