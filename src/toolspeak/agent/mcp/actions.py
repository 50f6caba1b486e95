"""The tools of a server, ready to run.

async with opened(server, Approved(folder)) as actions:
    toolbox = Toolbox(actions)
"""

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from toolspeak.agent.mcp.approved import ApprovalStore
from toolspeak.agent.mcp.confinement import sandbox_for
from toolspeak.agent.mcp.definition import Definition, effect_of, tool_of
from toolspeak.agent.mcp.line import FindSandbox, ServerConnection
from toolspeak.agent.sandbox.disk import DiskBudget
from toolspeak.agent.tools.action import Action, CallContext, ToolOutput
from toolspeak.config.shape import McpServer
from toolspeak.errors import BadSchema
from toolspeak.ir.json import JsonObject

_TRIES: Final = 3
"""A call may have to start the server again, and list its tools, before it is sent."""
_LEFT_OUT: Final = "the tool %s of the server %s is left out: %s"
_NOT_SEEN: Final = "nobody has approved it as it is now; see `toolspeak mcp tools {name}`"
_UNSET: Final = "the server %s was to get %s from the environment, where it is not set"
_LONGEST_NAME: Final = 80
_LOG: Final = logging.getLogger(__name__)

# The SDK logs what servers say, with a traceback for each message that it does not understand: 50,000 notifications
# were 14 MB in the log of a gateway. What matters of it is in the errors of calls.
for _name in ("mcp", "client"):
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)


@asynccontextmanager
async def open_actions(
    server: McpServer, approved: ApprovalStore, sandbox: FindSandbox = sandbox_for, *, budget: DiskBudget | None = None
) -> AsyncGenerator[Sequence[Action]]:
    """Start or reach a server and give the tools of it that may be used; raises `McpFailed`.

    `budget` is what a command may put on the disk, however often it is started.
    """
    for variable in server.missing:
        _LOG.warning(_UNSET, server.name, variable)
    line = ServerConnection(server, sandbox, budget=budget)
    await line.start()
    try:
        yield await _actions(line, approved)
    finally:
        await line.close()


async def _actions(line: ServerConnection, approved: ApprovalStore) -> Sequence[Action]:
    actions: dict[str, Action] = {}
    for definition in list(line.definitions.values()):
        try:
            action = _action(line, definition)
        except BadSchema as error:
            _leave_out(line, definition, str(error))
            continue
        if action.name in actions:
            _leave_out(line, definition, f"another of its tools is called {action.name} already")
        elif not await approved.allows(line.server, definition):
            _leave_out(line, definition, _NOT_SEEN.format(name=line.server.name))
        else:
            actions[action.name] = action
    return tuple(actions.values())


def _leave_out(line: ServerConnection, definition: Definition, why: str) -> None:
    _LOG.warning(_LEFT_OUT, ascii(definition.name[:_LONGEST_NAME]), line.server.name, why)


def _action(line: ServerConnection, definition: Definition) -> Action:
    digest = definition.digest

    async def act(arguments: JsonObject, context: CallContext) -> ToolOutput:
        del context
        return await line.call(definition.name, digest, arguments)

    tool = tool_of(line.server, definition)
    return Action(tool, act, effect_of(line.server, definition), seconds=line.server.seconds * _TRIES)
