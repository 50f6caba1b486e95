"""The contract between the reader and a form of call: what a form gets, what it returns, and its state machine.

The reader finds an opener and feeds the text after it to a `FormReader`. The form returns attempted calls, asks for
more text, or says that the text is something else (`NonCall`). Forms never see the rest of the message.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Protocol, TypeAlias

from toolspeak.dialects.core.growth import Growth
from toolspeak.text.scan import Markers
from toolspeak.toolset.check import Attempt
from toolspeak.toolset.toolset import ToolSet


class NonCall(Enum):
    """The outcomes of a block other than calls."""

    REFUSED = auto()
    """No call: the opener is text, and the text after it is read again."""
    TEXT = auto()
    """No call: all of it is text, and markers inside it mean nothing."""
    SHOWN = auto()
    """As TEXT, and the block goes on."""
    DEBRIS = auto()
    """Markup of the protocol."""
    THOUGHT = auto()
    """Reasoning."""
    THINKING = auto()
    """Markup after which reasoning begins."""
    ANSWER = auto()
    """Markup after which the text for the user begins: nothing in it is a call."""


BodyOutcome: TypeAlias = tuple[Attempt, ...] | NonCall | None
"""None asks for more text."""

MORE: Final = None
NO_ENDERS: Final = Markers(())


@dataclass(frozen=True, slots=True)
class Scope:
    """The knowledge of a form: the tools, whether its markup is unmistakable, and which markers end a broken body."""

    tools: ToolSet
    sure: bool = True
    enders: Markers = NO_ENDERS
    stop: tuple[str, ...] = ()
    """Stop sequences that were sent upstream: what they would have matched is missing from the text."""
    opening: Markers = NO_ENDERS
    """The openers among the enders."""
    results: Markers = NO_ENDERS
    """The beginnings of a tool result."""
    settles: bool = True
    """A call of tagged values waits for what follows it (`settle.py`)."""
    no_calls_is_answer: bool = False
    """An empty list of calls is an answer of this dialect, not a text."""
    growth: Growth | None = None
    """Takes the arguments of a call while they are written; None if only whole calls count."""


class FormReader(Protocol):
    """Reads one body of calls. `feed` consumes `text` from `pos` and returns where it stopped and what came of it."""

    def feed(self, text: str, pos: int, *, final: bool) -> tuple[int, BodyOutcome]:
        """Consume text; `final` means that no more will come."""
        ...


class BodyForm(Protocol):
    """A grammar: knows how its bodies start and makes a reader for one."""

    def starts(self, text: str, pos: int, scope: Scope, *, final: bool) -> bool | None:
        """Return whether a body starts at `pos`; None asks for more text."""
        ...

    def new(self, scope: Scope) -> FormReader:
        """Make a reader that is fed from the body's first character on."""
        ...


FormState: TypeAlias = Callable[[str, int, bool], tuple[int, BodyOutcome]]


class FormStates:
    """Runs states until there is an outcome, or nothing more can be consumed."""

    def __init__(self, first: FormState) -> None:
        """Start in the first state."""
        self._state = first
        self._moved = False

    def feed(self, text: str, pos: int, *, final: bool) -> tuple[int, BodyOutcome]:
        """Consume up to the end of the call."""
        while True:
            before, self._moved = pos, False
            pos, outcome = self._state(text, pos, final)
            if outcome is not MORE or (pos == before and not self._moved):
                return pos, outcome

    def _go(self, state: FormState) -> None:
        self._state, self._moved = state, True
