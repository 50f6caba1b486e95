"""What the tests of tools share."""

import json
from collections.abc import Mapping

from toolspeak.agent.tools.action import Act, Action, CallContext, ToolEffect, ToolOutput, text_output
from toolspeak.agent.tools.functions import Runnable, actions_of
from toolspeak.agent.tools.toolbox import OUTPUT, Toolbox
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call, Result, Text
from toolspeak.ir.tool import Tool


def call(name: str, /, id: str = "call_1", **arguments: object) -> Call:
    """Write a call as a model would."""
    return Call(id, name, json.dumps(arguments))


def text_of(result: Result) -> str:
    """Return what the model reads."""
    return "\n".join(piece.text for piece in result.content if isinstance(piece, Text))


async def called(able: Runnable, arguments: Mapping[str, object] = {}, output: int = OUTPUT) -> Result:
    """Call a tool."""
    (action,) = actions_of((able,))
    return await Toolbox((action,), output).run(
        Call("call_1", action.name, json.dumps(arguments)), CallContext("run", "run:0:0")
    )


async def told(able: Runnable, **arguments: object) -> str:
    """Return what a tool says; it must not fail."""
    result = await called(able, arguments)
    assert not result.is_error, text_of(result)
    return text_of(result)


async def error_of(able: Runnable, **arguments: object) -> str:
    """Return what a tool complains about; it must fail."""
    result = await called(able, arguments)
    assert result.is_error, text_of(result)
    return text_of(result)


def plain(  # noqa: PLR0913 # as an Action has them
    name: str = "plain",
    *,
    act: Act | None = None,
    effect: ToolEffect = ToolEffect.ONCE,
    contained: bool = False,
    ends: bool = False,
    asks: bool = False,
) -> Action:
    """Make a tool by hand."""
    about = Tool(name, "", {"type": "object"})
    return Action(about, act or _done, effect, contained=contained, ends=ends, asks=asks)


async def _done(arguments: JsonObject, doing: CallContext) -> ToolOutput:
    del arguments, doing
    return text_output("done")
