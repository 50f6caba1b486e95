"""A spec becomes work: its model is found, its tools are made ready."""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

import msgspec

from toolspeak.config.mcp import mcp_tools
from toolspeak.config.shape import Config
from toolspeak.engine.agent import Task
from toolspeak.engine.journal import compact_from
from toolspeak.engine.plan import Settings
from toolspeak.errors import BadField
from toolspeak.ir.message import Message, Role, Text
from toolspeak.ir.request import Request
from toolspeak.ir.round import expand
from toolspeak.runs.spec import Spec
from toolspeak.runs.watch import Watch, unwatched
from toolspeak.runs.work import Work
from toolspeak.runtime.directory import Directory
from toolspeak.runtime.tools.action import Action, Workplace
from toolspeak.runtime.tools.mcp.approved import Approved, AskTool, nobody_approves
from toolspeak.runtime.tools.toolbox import Toolbox

BUILT_IN: Final = {
    "files": "toolspeak.runtime.tools.files",
    "shell": "toolspeak.runtime.tools.shell",
    "final_output": "toolspeak.runtime.tools.final",
}
"""Each module has `actions(workplace)`, and is loaded when a run wants it."""
MCP: Final = "mcp:"
"""Before the name of a server of the configuration."""


@asynccontextmanager
async def outfit(  # noqa: PLR0913 # a run needs them all
    id: str,
    spec: Spec,
    config: Config,
    directory: Directory,
    watch: Watch = unwatched,
    *,
    ask_tool: AskTool = nobody_approves,
) -> AsyncGenerator[Work]:
    """Make everything ready for a run, and close it in the end; `ask_tool` asks about tools of MCP servers."""
    async with AsyncExitStack() as stack:
        workplace = _workplace(spec)
        approved = Approved(config.approvals, ask_tool)
        toolbox = Toolbox(
            [action for name in spec.tools for action in await _actions(name, workplace, config, stack, approved)]
        )
        route = await (directory.exactly(spec.model) if spec.model else directory.find(""))
        task = Task(_request(spec, route.model, toolbox), spec.rounds, toolbox.ending)
        settings = msgspec.convert(spec.settings, Settings)
        yield Work(id, task, route, toolbox, settings, spec.approval, watch)


def _workplace(spec: Spec) -> Workplace:
    return Workplace(Path(spec.folder or mkdtemp(prefix="toolspeak-")).resolve())


def _request(spec: Spec, model: str, toolbox: Toolbox) -> Request:
    system = (Message(Role.SYSTEM, (Text(spec.system),)),) if spec.system else ()
    before = expand(compact_from(each) for each in spec.history)
    return Request(model, (*system, *before, Message(Role.USER, (Text(spec.task),))), toolbox.tools, stream=True)


async def _actions(
    name: str, workplace: Workplace, config: Config, stack: AsyncExitStack, approved: Approved
) -> Sequence[Action]:
    if name in BUILT_IN:
        make: Callable[[Workplace], Sequence[Action]] = import_module(BUILT_IN[name]).actions
        return make(workplace)
    if name.startswith(MCP):
        return await stack.enter_async_context(mcp_tools(config.mcp, name.removeprefix(MCP), approved))
    raise BadField("tools", f"{name!r} is not one of {', '.join(_known())}")


def _known() -> Iterator[str]:
    yield from BUILT_IN
    yield f"{MCP}NAME"
    yield "module:attribute"
