"""ReAct: `Thought:`, `Action: f`, `Action Input: {…}`, then our `Observation:`; at the end `Final Answer:` (D39).

Thought: I need the weather.
Action: get_weather
Action Input: {"city": "Oslo"}
"""

from collections.abc import Sequence

from toolspeak.dialects.core.dialect import Dialect
from toolspeak.dialects.core.grammar import Label, MarkupGrammar, OpenerPosition, ReasoningMarks, Wrapper
from toolspeak.dialects.core.markup import RECOVERY
from toolspeak.dialects.core.named_json import Labelled
from toolspeak.dialects.core.writer import Contract, Writer, arguments_line, result_as_text
from toolspeak.ir.message import Call, Result
from toolspeak.toolset.toolset import ToolSet

_ACTION = Wrapper(("Action:",), (), (Labelled("Action Input:"),), OpenerPosition.LINE, single=True)
_THOUGHT = ReasoningMarks("Thought:", (), stops=("\nAction:", "\nFinal Answer:", "\nObservation:", "\nThought:"))


def _write_calls(calls: Sequence[Call], tools: ToolSet) -> str:
    del tools
    return "\n".join(f"Action: {call.name}\nAction Input: {arguments_line(call)}" for call in calls)


def _write_result(result: Result) -> str:
    return f"Observation: {result_as_text(result)}"


_WRITER = Writer(
    Contract(
        how="Think, act, and look at what came of it. To act, write these three lines:",
        example='Thought: <why>\nAction: <tool name>\nAction Input: {"<argument>": "<value>"}',
        rules=("Take one action at a time.", "The input is a JSON object on one line."),
        manners=(
            "After the input, stop and wait: the next message begins with `Observation:`. Never write that yourself.",
            "When you know enough, or no tool helps, write `Final Answer:` and your answer.",
        ),
    ),
    _write_calls,
    _write_result,
    stop=("\nObservation:",),
)

DIALECT = Dialect(
    "react",
    MarkupGrammar((_ACTION,), result_lines=("Observation:",), reasoning=(_THOUGHT,), labels=(Label("Final Answer:"),))
    | RECOVERY,
    _WRITER,
)
