"""Mistakes that make no difference that a test could notice, each with its reason. They are not tried."""

from dataclasses import dataclass

from tools.mutants.targets import Mutant


@dataclass(frozen=True)
class Equivalent:
    """A change of a file that changes no behaviour."""

    path: str
    """How the file's path ends; folders may move."""
    change: str
    """As `Mutation.describe` writes it."""
    reason: str

    def is_it(self, mutant: Mutant) -> bool:
        """Return whether this is that mistake."""
        return mutant.path.endswith(self.path) and mutant.mutation.describe(mutant.source) == self.change


EQUIVALENT: tuple[Equivalent, ...] = ()
