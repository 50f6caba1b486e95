"""The tool `final_output`, with which the model ends a run and gives its result (RUN-4)."""

from collections.abc import Sequence
from typing import Annotated

from toolspeak.agent.tools.action import Action, ToolEffect, Workplace
from toolspeak.agent.tools.functions import action_of, tool


@tool(effect=ToolEffect.READS, contained=True, ends=True)
def final_output(summary: Annotated[str, "What was done, what came of it, and what the user asked for"]) -> str:
    """End the task. Call it once, when everything is done; nothing can be done after it."""
    return summary


def actions(workplace: Workplace) -> Sequence[Action]:
    """Return the tool."""
    del workplace
    return (action_of(final_output),)
