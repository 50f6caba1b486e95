"""A form that is a machine of states: each consumes some text and may hand over to the next."""

from collections.abc import Callable
from typing import TypeAlias

from toolspeak.dialects._attempt import MORE, Outcome

State: TypeAlias = Callable[[str, int, bool], tuple[int, Outcome]]


class States:
    """Runs states until there is an outcome, or nothing more can be consumed."""

    def __init__(self, first: State) -> None:
        """Start in the first state."""
        self._state = first
        self._moved = False

    def feed(self, text: str, pos: int, *, final: bool) -> tuple[int, Outcome]:
        """Consume up to the end of the call."""
        while True:
            before, self._moved = pos, False
            pos, outcome = self._state(text, pos, final)
            if outcome is not MORE or (pos == before and not self._moved):
                return pos, outcome

    def _go(self, state: State) -> None:
        self._state, self._moved = state, True
