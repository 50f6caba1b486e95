"""The result of an examination: the winner, a verdict in a few sentences, and the profile to save."""

from dataclasses import dataclass
from typing import Final

from toolspeak.doctor.call_forms import NATIVE
from toolspeak.doctor.tournament import Tally
from toolspeak.engine.settings import Settings, Strategy
from toolspeak.facts.model import UNKNOWN_MODEL, Constrain, ModelFacts, Profile, Score, Support
from toolspeak.runtime.profiles import settings_said

ENOUGH: Final = 0.4
"""The lowest score with which a model is usable with tools. A model that never calls scores a quarter."""
GOOD: Final = 0.75
"""The lowest score that the verdict calls good."""
_HELP: Final = (
    "Take a larger model, or one that was trained to follow instructions; check that its server uses the model's own "
    "chat template; offer fewer tools."
)


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """All forms that were tried with one model, the winner first."""

    model: str
    endpoint: str
    tallies: tuple[Tally, ...]
    seconds: float = 0.0
    facts: ModelFacts = UNKNOWN_MODEL
    """The facts that were known before the first task."""

    @property
    def winner(self) -> Tally:
        """The form that did best."""
        return self.tallies[0]

    @property
    def bare(self) -> Tally | None:
        """The result of the bare server, if it was tried."""
        return next((tally for tally in self.tallies if tally.form is NATIVE), None)

    @property
    def helped(self) -> bool:
        """Whether the model is usable with tools."""
        return self.winner.score >= ENOUGH and self.winner.called > 0

    @property
    def worth_keeping(self) -> bool:
        """Whether the winner made a right call. A profile of a form that never calls would only disable tools."""
        return self.winner.called > 0

    @property
    def verdict(self) -> str:
        """The verdict for people, in a few sentences."""
        won, name = self.winner, self.model or "the model"
        right = f"{won.right} of {won.asked} tasks right"
        if not self.worth_keeping:
            return f"{name}: it makes no right call in any of the {len(self.tallies)} forms that were tried. {_HELP}"
        if not self.helped:
            return f"{name}: no form makes it call tools reliably. The best is {won.form.name}: {right}. {_HELP}"
        return f"{name}: {self._server()}{self._does()}: {right}{self._compared()}."

    def profile(self, date: str, version: str, fingerprint: str = "") -> Profile:
        """Return the profile to save."""
        form, scores = self.winner.form, {tally.form.name: _score(tally) for tally in self.tallies}
        return Profile(
            self.model,
            self.endpoint,
            form.name,
            settings_said(form.profile),
            form.tools,
            scores,
            self.verdict,
            fingerprint,
            self.facts.quirks.constraint,
            date,
            version,
        )

    def _server(self) -> str:
        """Describe what the bare server does with tools, if another form wins."""
        bare = self.bare
        if bare is None:
            return "its server has no tools. " if self.facts.tools is Support.NONE else ""
        if self.winner.form is NATIVE:
            return ""
        if all(mark.failed for mark in bare.marks.values()):
            return "its server refuses tools. "
        rescued = next((tally for tally in self.tallies if tally.form.tools is Support.LEAKS), None)
        if rescued is not None and _called_by(rescued, bare.asked) > _called_by(bare, rescued.asked):
            return "its server shows its calls as text. "
        return "" if bare.called else "its server returns no right call. "

    def _does(self) -> str:
        form = self.winner.form
        if form is NATIVE:
            return "its server's own tool calls do best" + ("" if self.winner.score >= GOOD else ", if not well")
        more = f", with {' and '.join(_beside(form.settings))}" if _beside(form.settings) else ""
        if form.is_native:
            return f"toolspeak makes calls of what its server returns{more}"
        if form.settings.strategy is Strategy.DECISION:
            return f"toolspeak now asks it for a decision first{more}"
        if form.settings.constraint is Constrain.JSON:
            return f"toolspeak now has it answer in JSON{more}"
        return f"toolspeak now speaks {form.settings.dialect} to it{more}"

    def _compared(self) -> str:
        bare = self.bare
        if bare is None or bare is self.winner:
            return ""
        of = "" if bare.asked == self.winner.asked else f" of {bare.asked}"
        return f" (natively {bare.right}{of})"


def _beside(settings: Settings) -> list[str]:
    """Return the extras of a form besides its dialect."""
    has = {
        "an example": settings.few_shot,
        "an answer tool": settings.answer_tool,
        "a grammar": settings.constraint is Constrain.TEXT,
        "guardrails": settings.drop_unrelated_calls,
    }
    return [word for word, on in has.items() if on]


def _score(tally: Tally) -> Score:
    return Score(tally.right, tally.asked, tally.spurious, round(tally.score, 3))


def _called_by(tally: Tally, most: int) -> int:
    """Count the right calls among the first `most` tasks, to compare forms that got different numbers of tasks."""
    return sum(tally.marks[task.name].right for task in tally.tasks[:most] if task.wants_calls)
