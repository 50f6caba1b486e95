"""The connection to one server, which may die, and its tools as actions.

    async with open_actions(server, ApprovalStore(folder)) as actions:
        toolbox = Toolbox(actions)

call ──▶ alive? ──no──▶ wait, start, list tools again ──▶ same definition? ──yes──▶ tools/call
                                                                       └──no──▶ an error; the tool is not run

The next call restarts a server that died. The server must then offer the same definition: otherwise it could change a
tool after its approval by exiting. A call that was in flight when the server died is an error, and is never sent again,
because its outcome is unknown.

One task owns all objects of the SDK: its cancel scopes must be exited in the task that entered them, and calls come
from any task.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Final, TypeAlias, cast

import httpx2
from mcp import MCPError, types
from mcp.client._transport import TransportStreams

from toolspeak.agent.mcp.approval_store import ApprovalStore
from toolspeak.agent.mcp.confinement import hint, sandbox_for, service_of
from toolspeak.agent.mcp.definition import Definition, effect_of, plain_line, tool_of
from toolspeak.agent.mcp.server_transport import StdioTransport, open_http_transport
from toolspeak.agent.mcp.session import InvalidToolResult, Session, list_tools, tool_output
from toolspeak.agent.sandbox.disk import DiskBudget
from toolspeak.agent.sandbox.sandbox import Sandbox
from toolspeak.agent.tools.action import Action, CallContext, ToolOutput, text_output
from toolspeak.config.shape import McpServer
from toolspeak.errors import BadField, BadSchema, McpFailed
from toolspeak.ir.json import JsonObject
from toolspeak.runtime.clock import CLOCK, Clock

FindSandbox: TypeAlias = Callable[[McpServer], Awaitable[Sandbox]]
"""Returns the sandbox for the command of a server. Raises `McpFailed` if the command must not run here."""
FIRST_WAIT: Final = 0.2
LONGEST_WAIT: Final = 10.0
_LONGEST_MESSAGE: Final = 1000
_CLOSING: Final = 8.0
_DIED: Final = (
    "The server {name} died while the call ran{why}. It may have done its work or not; the next call starts it again."
)
_SLOW: Final = "The server {name} gave no answer within {seconds:g} seconds. It may still be at it."
_CHANGED: Final = "{tool} of {name} is not what was approved any more, and was not run: `toolspeak mcp tools {name}`"
_ODD: Final = "The server {name} answered with something that is no result of a tool: {why}"


class ServerConnection:
    """Calls the tools of one server. Call `start` first, and `close` at the end."""

    def __init__(
        self,
        server: McpServer,
        sandbox: FindSandbox = sandbox_for,
        clock: Clock = CLOCK,
        *,
        budget: DiskBudget | None = None,
    ) -> None:
        """Create a connection that is not started."""
        self.server: Final = server
        self._sandbox: Final = sandbox
        self._clock: Final = clock
        self._budget = budget
        self._starting: Final = asyncio.Lock()
        self._owner: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        self._talk: StdioTransport | None = None
        self._session: Session | None = None
        self._lost: BaseException | None = None
        self._falls = 0
        self._stale = False
        self.definitions: dict[str, Definition] = {}
        """The tool definitions that the server listed last."""

    async def start(self) -> None:
        """Start or connect to the server, and list its tools. Raises `McpFailed`."""
        self._ended, self._lost, self._talk = asyncio.Event(), None, None
        ready: asyncio.Future[Session] = asyncio.get_running_loop().create_future()
        self._owner = asyncio.get_running_loop().create_task(self._own_session(ready))
        try:
            async with asyncio.timeout(self.server.seconds):
                self._session = await asyncio.shield(ready)
        except BaseException as error:
            self._owner.cancel()  # it may be waiting for an answer that never comes
            await self.close()
            if isinstance(error, TimeoutError):
                slow = f"{self.server.name}: it did not start in {self.server.seconds:g} seconds"
                raise McpFailed(slow + hint(self.server)) from None
            raise

    async def close(self) -> None:
        """End the session, and the server's process."""
        self._session = None
        self._ended.set()
        if self._owner is None:
            return
        done, _ = await asyncio.wait((self._owner,), timeout=_CLOSING)
        if not done:
            self._owner.cancel()
            await asyncio.wait((self._owner,))
        self._owner = None

    async def call(self, name: str, digest: str, arguments: JsonObject) -> ToolOutput:
        """Call a tool, if its definition still has this digest. Raises `McpFailed` if it has not.

        The call is sent a second time only if the first one cannot have reached the server.
        """
        for again in (True, False):
            session = await self._alive(name, digest)
            try:
                result = await session.call_tool(name, arguments)
            except MCPError as error:
                if await self._was_sent(error) or not again:
                    return await self._failed(error)
                continue
            except InvalidToolResult as error:
                return tool_output(error.result, plain_line(str(error), _LONGEST_MESSAGE))
            except (ValueError, RuntimeError) as error:  # the SDK raises these for responses that break the protocol
                return self._odd(error)
            self._falls = 0
            return tool_output(result)
        raise AssertionError

    async def _alive(self, name: str, digest: str) -> Session:
        """Return a live session in which the tool still has the approved definition. Restarts the server if needed.

        The lock ensures that of several parallel calls only one restarts the server.
        """
        async with self._starting:
            if not self._is_alive:
                await self._again()
            if self._session is None:
                raise McpFailed(f"{self.server.name}: it is closed")
            if self._stale:
                self._stale = False
                self.definitions = await list_tools(self._session, self.server)
            session = self._session
        known = self.definitions.get(name)
        if known is None or known.digest != digest:
            raise McpFailed(_CHANGED.format(tool=name, name=self.server.name))
        return session

    @property
    def _is_alive(self) -> bool:
        running = self._owner is not None and not self._owner.done()
        return running and self._session is not None and not self._ended.is_set()

    async def _again(self) -> None:
        """Restart a server that died, after a pause that doubles with each death in a row."""
        await self.close()
        await self._clock.sleep(min(FIRST_WAIT * 2**self._falls, LONGEST_WAIT))
        self._falls += 1
        await self.start()

    async def _was_sent(self, error: MCPError) -> bool:
        """Return whether a failed call may have reached the server. Ends the session if it cannot be used any more."""
        if _session_is_gone(error):
            self._ended.set()
            return False
        if error.code != types.CONNECTION_CLOSED:
            return True
        self._ended.set()
        if self._owner is not None:
            await asyncio.wait((self._owner,), timeout=_CLOSING)
        return not isinstance(self._lost, httpx2.ConnectError)

    async def _failed(self, error: MCPError) -> ToolOutput:
        name = self.server.name
        if error.code == types.CONNECTION_CLOSED:
            why = self._talk.why if self._talk is not None else ""
            return text_output(_DIED.format(name=name, why=f" ({why})" if why else ""), is_error=True)
        if error.code == types.REQUEST_TIMEOUT:
            return text_output(_SLOW.format(name=name, seconds=self.server.seconds), is_error=True)
        return text_output(plain_line(error.message, _LONGEST_MESSAGE), is_error=True)

    def _odd(self, error: Exception) -> ToolOutput:
        why = plain_line(str(error), _LONGEST_MESSAGE)
        return text_output(_ODD.format(name=self.server.name, why=why), is_error=True)

    # ---------------------------------------------------------------- the keeper

    async def _own_session(self, ready: asyncio.Future[Session]) -> None:
        """Own the session until the server or the connection ends."""
        try:
            async with await self._streams() as streams, Session(streams, self.server.seconds, self._heard) as session:
                await _greet(session)
                self.definitions = await list_tools(session, self.server)
                ready.set_result(session)
                await self._ended.wait()
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 # the SDK's tasks can fail in any way
            self._lost = _root(error)
            if not ready.done():
                ready.set_exception(McpFailed(f"{self.server.name}: {self._reason(self._lost)}"))
        finally:
            self._ended.set()

    async def _streams(self) -> AbstractAsyncContextManager[TransportStreams]:
        if self.server.url:
            return open_http_transport(self.server)
        service = service_of(self.server)
        # One budget for all starts: otherwise a server that was stopped over its budget gets a new one by restarting.
        self._budget = self._budget or DiskBudget(service.limits.folder_growth, service.limits.folder_files)
        self._talk = StdioTransport(
            await self._sandbox(self.server), replace(service, budget=self._budget), self._ended
        )
        return self._talk.opened()

    async def _heard(self, message: object) -> None:
        # Only a mark: the next call lists the tools again, under the lock.
        self._stale |= isinstance(message, types.ToolListChangedNotification)

    def _reason(self, error: BaseException) -> str:
        """Return why the server cannot be used, for a person."""
        if isinstance(error, McpFailed | BadField):
            return str(error)
        if isinstance(error, httpx2.ConnectError):
            return f"nothing answers at {self.server.url}"
        if self._talk is not None and self._talk.over:
            return self._talk.end + hint(self.server)
        return plain_line(f"{type(error).__name__}: {error}", _LONGEST_MESSAGE)


async def _greet(session: Session) -> None:
    """Agree on a version of the protocol: the stateless one (2026-07-28) if possible, else by a handshake.

    A server that starts slowly may process the first request late, and then reject the handshake: it is asked again.
    """
    try:
        await session.discover()
    except (MCPError, ValueError, RuntimeError):
        try:
            await session.initialize()
        except MCPError as error:
            if error.code != types.UNSUPPORTED_PROTOCOL_VERSION:
                raise
            await session.discover()


def _session_is_gone(error: MCPError) -> bool:
    """Return whether an HTTP server does not know the session: it was restarted, and has not run the call."""
    refused = error.code in (types.INVALID_REQUEST, -32000, -32001)
    return refused and "session" in error.message.lower()


def _root(error: BaseException) -> BaseException:
    """Return the first error of nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


# ---------------------------------------------------------------- actions


_TRIES: Final = 3
"""A call may have to restart the server and list its tools before it is sent, so it gets three times the seconds."""
_LEFT_OUT: Final = "the tool %s of the server %s is left out: %s"
_NOT_SEEN: Final = "nobody has approved it as it is now; see `toolspeak mcp tools {name}`"
_UNSET: Final = "the server %s was to get %s from the environment, where it is not set"
_LONGEST_NAME: Final = 80
_LOG: Final = logging.getLogger(__name__)

# The SDK logs messages of servers, with a traceback for each one that it does not understand: 50,000 notifications
# made 14 MB in the log of a gateway. The errors of calls contain what a person needs.
for _name in ("mcp", "client"):
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)


@asynccontextmanager
async def open_actions(
    server: McpServer, approved: ApprovalStore, sandbox: FindSandbox = sandbox_for, *, budget: DiskBudget | None = None
) -> AsyncGenerator[Sequence[Action]]:
    """Start or connect to a server, and yield its approved tools. Raises `McpFailed`.

    `budget` is the disk budget of its command, over all restarts.
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
