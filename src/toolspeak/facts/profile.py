"""The measured profile of one model at one endpoint: the form in which it does best with tools (CAP-5)."""

from dataclasses import dataclass, field
from typing import TypeAlias

from toolspeak.facts.model import Support
from toolspeak.ir.constraint import ConstraintForm

FORMAT = 1
Setting: TypeAlias = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Score:
    """The result of one form: right answers, tasks, calls where none was wanted, and a score from 0 to 1."""

    right: int
    asked: int
    spurious: int = 0
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Profile:
    """The winning form, and the scores of all. Overrides the built-in tables; overridden by user settings."""

    model: str
    endpoint: str
    form: str
    """The name of the winning form."""
    settings: dict[str, Setting] = field(default_factory=dict[str, Setting])
    """The settings of the winner, by the names of `Settings`. Unknown keys are ignored, so newer profiles load in older
    versions."""
    tools: Support | None = None
    """What the upstream does with tools, if a native form won."""
    scores: dict[str, Score] = field(default_factory=dict[str, Score])
    """The scores of all forms that were tried, by name."""
    verdict: str = ""
    """The result in words."""
    fingerprint: str = ""
    """The fingerprint of the measured server; empty if unknown. If the server at this endpoint has another one, the
    profile is void."""
    constraint: ConstraintForm = ConstraintForm.NONE
    """The form of constraints of that server. It is stored because a client that uses the profile may not probe."""
    date: str = ""
    version: str = ""
    """The version of toolspeak that measured."""
    format: int = FORMAT
