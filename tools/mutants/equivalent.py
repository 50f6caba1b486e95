"""Mistakes without an effect that a test could notice, each with its reason. They are not tried."""

from dataclasses import dataclass

from tools.mutants.targets import Mutant


@dataclass(frozen=True)
class Equivalent:
    """A change of a file that changes no behaviour."""

    path: str
    """The end of the file's path; folders may move."""
    change: str
    """As `Mutation.describe` writes it."""
    reason: str
    occurrence: int = 0
    """Which one, if the file has the same text several times (as `Mutant.occurrence`)."""

    def is_it(self, mutant: Mutant) -> bool:
        """Return whether this is that mistake."""
        same = mutant.mutation.describe(mutant.source) == self.change and mutant.occurrence == self.occurrence
        return same and mutant.path.endswith(self.path)


EQUIVALENT: tuple[Equivalent, ...] = (
    Equivalent(
        "engine/guard.py",
        "10  ->  11",
        "_LARGE says when the texts of `Echo` are normalised, at once or at the first question, not what it answers",
    ),
    Equivalent(
        "engine/guard.py",
        "10  ->  11",
        "_PIECE is how much is split at a time; blanks are removed on both sides of a cut, so no cut shows",
        occurrence=1,
    ),
    Equivalent(
        "agent/sandbox/folder_guard.py",
        'return ""  ->  pass',
        "`begin` returns None then, and its caller asks only whether there is a reason",
    ),
    Equivalent(
        "agent/sandbox/folder_guard.py",
        'return ""  ->  pass',
        "`_unprotectable` returns None then, and its caller asks only whether there is a reason",
        occurrence=1,
    ),
    Equivalent(
        "agent/sandbox/seccomp.py",
        "\"fchmod\"  ->  ''",
        "the keys of MODES name the calls for readers; only their numbers are used",
    ),
    Equivalent(
        "agent/sandbox/quarantine.py",
        "return None  ->  pass",
        "the loop of `Mask.make` tries again, finds the same filled folder, and returns None after its last try",
        occurrence=1,
    ),
    Equivalent(
        "toolset/toolset.py",
        "has_floats(value) and self._wants_integers  ->  (self._wants_integers)",
        "a valid value without floats is coerced to itself: `is_ready` only saves the time",
    ),
)
