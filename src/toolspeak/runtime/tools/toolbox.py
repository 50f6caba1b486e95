"""All tools of a run, by name. Whatever a tool does, its call has one result, no longer than it may be."""

import asyncio
from collections.abc import Iterable
from typing import Final

import jiter

from toolspeak.errors import BadField
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call, Result, Text
from toolspeak.ir.tool import Tool
from toolspeak.runtime.tools.action import Action, Doing, Yield, said
from toolspeak.text.cut import cut

OUTPUT: Final = 4096
"""Bytes of a result's text; more is cut in the middle (RUN-4)."""


class Toolbox:
    """Runs calls. Two tools of one name are an error."""

    def __init__(self, actions: Iterable[Action], output: int = OUTPUT) -> None:
        """Take the tools, and how long a result may be."""
        self._actions: Final[dict[str, Action]] = {}
        self._output: Final = output
        for action in actions:
            if action.name in self._actions:
                raise BadField("tools", f"two tools are called {action.name!r}")
            self._actions[action.name] = action

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Return what the model is told."""
        return tuple(action.tool for action in self._actions.values())

    @property
    def ending(self) -> frozenset[str]:
        """Return the tools whose call ends a run."""
        return frozenset(action.name for action in self._actions.values() if action.ends)

    def action(self, name: str) -> Action | None:
        """Return the tool of that name."""
        return self._actions.get(name)

    async def run(self, call: Call, doing: Doing) -> Result:
        """Run a call. Only cancelling it raises."""
        yielded = await self._yield(call, doing)
        content = tuple(
            Text(cut(piece.text, self._output)) if isinstance(piece, Text) else piece for piece in yielded.content
        )
        return Result(call.id, content, call.name, yielded.is_error)

    async def _yield(self, call: Call, doing: Doing) -> Yield:
        action = self._actions.get(call.name)
        if action is None:
            return said(f"There is no tool {call.name!r}; there are: {', '.join(self._actions)}.", is_error=True)
        try:
            async with asyncio.timeout(action.seconds):
                return await action.act(_arguments(call), doing)
        except TimeoutError:
            return said(f"{call.name} was stopped after {action.seconds:g} seconds.", is_error=True)
        except Exception as error:  # noqa: BLE001 # a tool's failure is the model's to handle
            return said(f"{call.name} failed: {type(error).__name__}: {error}", is_error=True)


def _arguments(call: Call) -> JsonObject:
    read: Json = jiter.from_json(call.arguments.encode() or b"{}")
    if not isinstance(read, dict):
        raise BadField("arguments", f"{call.arguments[:80]!r} is not a JSON object")
    return read
