"""What was measured about one model behind one endpoint: the form in which it does best with tools (CAP-5)."""

from dataclasses import dataclass, field
from typing import TypeAlias

from toolspeak.facts.model import Support
from toolspeak.ir.constraint import ConstraintForm

FORMAT = 1
Setting: TypeAlias = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Score:
    """How one form did: tasks right of those asked, calls where none was wanted, and the score from 0 to 1."""

    right: int
    asked: int
    spurious: int = 0
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Profile:
    """The winner, and how all did. It goes before tables, and behind whatever the user says."""

    model: str
    endpoint: str
    form: str
    """The name of the winning form."""
    settings: dict[str, Setting] = field(default_factory=dict[str, Setting])
    """What the winner wants, by the names of `Settings`; names that nobody knows are left out, so it may grow."""
    tools: Support | None = None
    """What the upstream does with tools, if that is what won."""
    scores: dict[str, Score] = field(default_factory=dict[str, Score])
    """Of all forms that were tried, by name."""
    verdict: str = ""
    """In words."""
    fingerprint: str = ""
    """Of the server that was measured; empty if it tells none. Another one there makes the profile void."""
    constraint: ConstraintForm = ConstraintForm.NONE
    """In which form that server was told what an answer must look like."""
    date: str = ""
    version: str = ""
    """Of toolspeak."""
    format: int = FORMAT
