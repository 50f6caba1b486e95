"""What a trial came to, in words that a person understands."""

from dataclasses import dataclass
from typing import Final

from toolspeak.doctor.forms import NATIVE
from toolspeak.doctor.trial import Tally
from toolspeak.engine.plan import Settings, Strategy
from toolspeak.facts.model import UNKNOWN_MODEL, Constrain, ModelFacts, Support
from toolspeak.facts.profile import Profile, Score
from toolspeak.runtime.profiles import settings_said

ENOUGH: Final = 0.4
"""The least score with which a model can be used with tools: never to call gives a quarter."""
GOOD: Final = 0.75
_HELP: Final = (
    "Take a larger model, or one that was trained to follow instructions; check that its server uses the model's own "
    "chat template; offer fewer tools."
)


@dataclass(frozen=True, slots=True)
class Report:
    """A trial of one model: all forms that were tried, the winner first."""

    model: str
    endpoint: str
    tallies: tuple[Tally, ...]
    seconds: float = 0.0
    facts: ModelFacts = UNKNOWN_MODEL
    """What was known of it before."""

    @property
    def winner(self) -> Tally:
        """Return the form that did best."""
        return self.tallies[0]

    @property
    def bare(self) -> Tally | None:
        """Return how the server did alone, if that was tried."""
        return next((tally for tally in self.tallies if tally.form is NATIVE), None)

    @property
    def helped(self) -> bool:
        """Return whether the model can be used with tools."""
        return self.winner.score >= ENOUGH and self.winner.called > 0

    @property
    def worth_keeping(self) -> bool:
        """Return whether there is a winner at all."""
        return self.winner.called > 0

    @property
    def verdict(self) -> str:
        """Say it in a few sentences."""
        won, name = self.winner, self.model or "the model"
        right = f"{won.right} of {won.asked} tasks right"
        if not self.worth_keeping:
            return f"{name}: it makes no right call in any of the {len(self.tallies)} forms that were tried. {_HELP}"
        if not self.helped:
            return f"{name}: no form makes it call tools reliably. The best is {won.form.name}: {right}. {_HELP}"
        return f"{name}: {self._server()}{self._does()}: {right}{self._compared()}."

    def profile(self, date: str, version: str, fingerprint: str = "") -> Profile:
        """Return what is kept."""
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
        """Return what the server does with tools, where its own way does not win."""
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
    """Return what a form has beside its dialect."""
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
    """Count right calls among the first tasks, so that forms which got more of them can be compared."""
    return sum(tally.marks[task.name].right for task in tally.tasks[:most] if task.wants_calls)
