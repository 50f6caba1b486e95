"""The result of an examination: whether a form is better than what the user has, in words and as a profile."""

from dataclasses import dataclass
from typing import Final

from toolspeak.doctor.call_forms import NO_PROFILE, DoctorForm
from toolspeak.doctor.tournament import Standing, Tally, TrialEnd
from toolspeak.engine.settings import Settings, Strategy
from toolspeak.facts.model import UNKNOWN_MODEL, Constrain, ModelFacts, Profile, Score
from toolspeak.runtime.profiles import settings_said

ENOUGH: Final = 0.4
"""The lowest score with which a model is usable with tools. A model that never calls scores an eighth."""
NOTHING_BETTER: Final = "nothing better beyond chance was found; nothing was changed"
_TINY: Final = 0.0001
_HELP: Final = (
    "Take a larger model, or one that was trained to follow instructions; check that its server uses the model's own "
    "chat template; offer fewer tools."
)


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """All forms that were tried with one model, and how they compare with what the user has today."""

    model: str
    endpoint: str
    standing: Standing
    seconds: float = 0.0
    facts: ModelFacts = UNKNOWN_MODEL
    """The facts that were known before the first task."""

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """The best form, today, then the others."""
        return self.standing.tallies

    @property
    def decided(self) -> bool:
        """Whether the trial has come to its end."""
        return self.standing.end is not TrialEnd.OPEN

    @property
    def winner(self) -> Tally | None:
        """The form that is better than today beyond chance, if there is one."""
        return self.standing.challenger if self.standing.end is TrialEnd.BETTER else None

    @property
    def helped(self) -> bool:
        """Whether the model is usable with tools, by the winner or by what the user has today."""
        best = self.winner or self.standing.today
        return best.score >= ENOUGH and best.called > 0

    @property
    def verdict(self) -> str:
        """The verdict for people, in a few sentences, with the figures that it rests on."""
        name, today = self.model or "the model", self.standing.today
        if self.winner is not None:
            now = f"{name}: {form_text(self.winner.form)}: {_right(self.winner)}, with what you had {_right(today)}."
            return f"{now} {self._compared()}"
        if not self.decided:
            return f"{name}: not decided yet. {self._so_far()}"
        if not any(tally.called for tally in self.tallies):
            return f"{name}: it makes no right call in any form; {NOTHING_BETTER}. {_HELP}"
        found = f"{name}: {NOTHING_BETTER}. What you have today: {_right(today)}."
        return " ".join(filter(None, (found, self._compared(), "" if self.helped else _HELP)))

    def profile(self, date: str, version: str, fingerprint: str = "") -> Profile:
        """Return the profile to save. Raises `ValueError` if there is no winner."""
        if self.winner is None:
            raise ValueError("there is no winner to save")
        form, scores = self.winner.form, {tally.form.name: _score(tally) for tally in self.tallies}
        return Profile(
            self.model,
            self.endpoint,
            form.name,
            settings_said(form.settings),
            form.tools,
            scores,
            self.verdict,
            fingerprint,
            self.facts.quirks.constraint,
            date,
            version,
        )

    def _compared(self) -> str:
        """Say how the best form compares with today, and what that would be worth by chance."""
        best, pair = self.standing.challenger, self.standing.comparison
        if best is None:
            return f"No form was ahead of it after {max(self.standing.today.asked, 1)} tasks."
        words = (
            f"Of {pair.tasks} tasks that only compare the two, {pair.better} came out right only with {best.form.name} "
            f"and {pair.worse} only with what you {'had' if self.winner else 'have'}: by chance that has a probability "
            f"of {_percent(pair.chance)}."
        )
        return (
            words
            if self.standing.end in (TrialEnd.BETTER, TrialEnd.CHANCE)
            else f"{words} Not kept: {self.standing.end}."
        )

    def _so_far(self) -> str:
        best = self.standing.challenger or next(iter(self.standing.others), None)
        known = f"What you have today: {_right(self.standing.today)}."
        return f"{known} The best other form so far is {best.form.name}: {_right(best)}." if best else known


def form_text(form: DoctorForm) -> str:
    """Say what toolspeak does in a form."""
    settings = form.settings
    more = f", with {' and '.join(_beside(settings))}" if _beside(settings) else ""
    if form is NO_PROFILE:
        return "it does better without its saved profile"
    if form.is_native:
        return f"toolspeak makes calls of what its server returns{more}"
    if settings.strategy is Strategy.DECISION:
        return f"toolspeak now asks it for a decision first{more}"
    if settings.constraint is Constrain.JSON:
        return f"toolspeak now has it answer in JSON{more}"
    return f"toolspeak now speaks {settings.dialect} to it{more}"


def _beside(settings: Settings) -> list[str]:
    """Return the extras of a form besides its dialect."""
    has = {
        "an example": settings.few_shot,
        "an answer tool": settings.answer_tool,
        "a grammar": settings.constraint is Constrain.TEXT,
        "guardrails": settings.request_missing_calls,
    }
    return [word for word, on in has.items() if on]


def _right(tally: Tally) -> str:
    return f"{tally.right} of {tally.asked} tasks right"


def _percent(share: float) -> str:
    """Return a probability for people: two digits, and a bound where it is tiny."""
    return "under 0.01 %" if share < _TINY else f"{share * 100:.2g} %"


def _score(tally: Tally) -> Score:
    return Score(tally.right, tally.asked, tally.spurious, round(tally.score, 3))
