"""ReAct: `Thought:`, `Action: f`, `Action Input: {…}`, then our `Observation:`; at the end `Final Answer:` (D39)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Label, Reasoning, Where, Wrapper
from toolspeak.dialects._lines import Labelled
from toolspeak.dialects._shared import RECOVERY

_ACTION = Wrapper(("Action:",), (), (Labelled("Action Input:"),), Where.LINE, single=True)
_THOUGHT = Reasoning("Thought:", (), stops=("\nAction:", "\nFinal Answer:", "\nObservation:", "\nThought:"))

DIALECT = Dialect(
    "react",
    Grammar((_ACTION,), result_lines=("Observation:",), reasoning=(_THOUGHT,), labels=(Label("Final Answer:"),))
    | RECOVERY,
)
