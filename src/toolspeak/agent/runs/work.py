"""Executes the effects of a run: one turn of the model, one tool call. Each is a step whose outcome may be stored."""

from collections.abc import Sequence
from dataclasses import dataclass

from toolspeak.agent.runs.events import ToolCallBegan, ToolCallEnded, TurnBegan, TurnEnded, Watch, Wrote, unwatched
from toolspeak.agent.tools.action import CallContext, ToolEffect
from toolspeak.agent.tools.approval import Ruling, rule_on
from toolspeak.agent.tools.toolbox import Toolbox
from toolspeak.config.shape import Approval
from toolspeak.engine.agent import TakeTurn, Task
from toolspeak.engine.settings import NOTHING_SAID, Settings
from toolspeak.errors import ToolspeakError
from toolspeak.ir.event import Event, ReasoningDelta, TextDelta
from toolspeak.ir.message import Call, Result, Text, result_text
from toolspeak.ir.turn import Turn
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.directory import Route

_REFUSED = "{name} was not run: {why}."
_UNKNOWN = (
    "The outcome of {name} is unknown: it was started, and then its run was interrupted. It may have done its work or "
    "not, and was not run again. Look before you repeat it."
)


@dataclass(frozen=True, slots=True)
class Work:
    """The model, tools and rules of one run. `run` is its id."""

    run: str
    task: Task
    route: Route
    toolbox: Toolbox
    settings: Settings = NOTHING_SAID
    approval: Approval = Approval.ASK
    watch: Watch = unwatched
    clock: Clock = CLOCK

    async def turn(self, effect: TakeTurn) -> Turn:
        """Take one turn of the model, and report its text as it streams."""
        began = self.clock.monotonic()
        await self.watch(TurnBegan(effect.round))

        async def emit(events: Sequence[Event]) -> None:
            for event in events:
                if isinstance(event, TextDelta | ReasoningDelta) and event.text:
                    await self.watch(Wrote(effect.round, event.text, isinstance(event, ReasoningDelta)))

        outcome = await self.route.take(effect.request, self.route.plan(effect.request, self.settings), emit)
        turn = outcome.turn
        await self.watch(TurnEnded(effect.round, turn.text, len(turn.calls), self.clock.monotonic() - began))
        return turn

    def ruling(self, call: Call) -> Ruling:
        """Return whether a call may run. A call of an unknown tool may: its result is an error for the model."""
        action = self.toolbox.action(call.name)
        return Ruling.YES if action is None else rule_on(self.approval, action)

    def effect(self, call: Call) -> ToolEffect:
        """Return a call's effect on the world; an unknown tool has none."""
        action = self.toolbox.action(call.name)
        return ToolEffect.READS if action is None else action.effect

    async def tool(self, round: int, index: int, call: Call) -> Result:  # noqa: A002 # the word of the house
        """Run one call, the `index`th of its round. Its idempotency key is `run:round:index`, equal in each attempt."""
        began = self.clock.monotonic()
        await self.watch(ToolCallBegan(round, call.id, call.name, call.arguments))
        result = await self.toolbox.run(call, CallContext(self.run, f"{self.run}:{round}:{index}"))
        await self.ended(round, result, self.clock.monotonic() - began)
        return result

    async def ended(self, round: int, result: Result, seconds: float = 0.0) -> None:  # noqa: A002 # as above
        """Report a result to the watchers."""
        text = result_text(result)
        await self.watch(ToolCallEnded(round, result.call_id, result.name, text, result.is_error, seconds))


def told(error: Exception) -> str:
    """Return why a run failed. Messages of toolspeak's own errors are complete; others get the name of their class."""
    return str(error) if isinstance(error, ToolspeakError) else f"{type(error).__name__}: {error}"


def refused(call: Call, why: str) -> Result:
    """Return the result of a call that was not allowed."""
    return Result(call.id, (Text(_REFUSED.format(name=call.name, why=why)),), call.name, is_error=True)


# A call with side effects is not repeated after a crash: running it twice could do its work twice. The model gets
# this error instead, and can look before it decides.
def unknown(call: Call) -> Result:
    """Return the result of a call that was started and whose outcome is lost (RUN-3)."""
    return Result(call.id, (Text(_UNKNOWN.format(name=call.name)),), call.name, is_error=True)
