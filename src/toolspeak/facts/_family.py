"""What a row of the table of families is."""

from dataclasses import dataclass

from toolspeak.facts.model import QUIRKS_IDS, ModelFacts
from toolspeak.ir.quirks import IdForm, Quirks


@dataclass(frozen=True, slots=True)
class Family:
    """Models that were trained alike. What is None is not said: a row that speaks of more models may say it."""

    name: str
    patterns: tuple[str, ...]
    """How its names begin, up to a hyphen or a dot; `*`, `?` and `[12]` as in file names."""
    examples: tuple[str, ...]
    why: str
    """One line: how this is known."""
    trained: str | None = None
    """The dialect that its own template asks for."""
    taught: str | None = None
    """The dialect that it is taught where calls are emulated; if only `trained` is said, the default one."""
    leaks_as: str | None = None
    calls_in_reasoning: bool | None = None
    context_tokens: int | None = None
    ids: IdForm | None = None

    @property
    def facts(self) -> ModelFacts:
        """Return what it says, and nothing else."""
        knows_dialect = self.trained is not None or self.taught is not None
        said = {
            "dialect": knows_dialect,
            "leaks_as": self.leaks_as is not None,
            "calls_in_reasoning": self.calls_in_reasoning is not None,
            QUIRKS_IDS: self.ids is not None,
        }
        return ModelFacts(
            dialect=self.taught or "",
            leaks_as=self.leaks_as or "",
            calls_in_reasoning=bool(self.calls_in_reasoning),
            context_tokens=self.context_tokens,
            quirks=Quirks(ids=self.ids or IdForm.ANY),
            said=frozenset(name for name, is_said in said.items() if is_said),
        )
