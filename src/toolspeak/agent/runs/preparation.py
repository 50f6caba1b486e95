"""Prepares a run: finds its model, opens its tools, and creates its folder."""

import re
from asyncio import to_thread
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from fnmatch import fnmatchcase
from functools import reduce
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Final, cast

from toolspeak.agent.mcp.approval_store import ApprovalStore, AskTool, approve_none
from toolspeak.agent.mcp.sdk import open_mcp_tools
from toolspeak.agent.runs.events import Watch, unwatched
from toolspeak.agent.runs.runs import Spec, read_described
from toolspeak.agent.runs.steps import TakeRecorded, Work, take_unrecorded
from toolspeak.agent.sandbox.disk import disk_budget
from toolspeak.agent.sandbox.journal import recover, warn
from toolspeak.agent.tools.action import Action, Workplace
from toolspeak.agent.tools.functions import Runnable, actions_of
from toolspeak.agent.tools.toolbox import Toolbox
from toolspeak.config.environment import current, journal_folder, workplaces_folder
from toolspeak.config.shape import MIB, Config
from toolspeak.engine.agent import Task
from toolspeak.engine.agent_prompt import agent_messages
from toolspeak.engine.journal import compact_from
from toolspeak.engine.settings import Settings
from toolspeak.errors import BadField
from toolspeak.ir.message import Message, Role, Text
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.round import expand
from toolspeak.runtime.directory import Directory

BUILT_IN: Final = {
    "files": "toolspeak.agent.tools.files",
    "shell": "toolspeak.agent.tools.shell",
    "final_output": "toolspeak.agent.tools.final",
}
"""Modules of the built-in tools. Each has `actions(workplace)`, and is imported when a run uses it."""
MCP: Final = "mcp:"
"""Prefix of the name of a configured MCP server."""
_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
"""Ids that can be the name of a folder. Others, which a client may have chosen, are hashed."""


@asynccontextmanager
async def prepare_run(  # noqa: PLR0913 # all that a run needs
    id: str,
    spec: Spec,
    config: Config,
    directory: Directory,
    watch: Watch = unwatched,
    *,
    imports: Sequence[str] = (),
    ask_tool: AskTool = approve_none,
    began: float | None = None,
    take: TakeRecorded = take_unrecorded,
) -> AsyncGenerator[Work]:
    """Open everything that a run needs, and close it on exit. Raises `BadField` for a spec that cannot be executed.

    `imports` are the names (or globs) of functions that may be imported: `*` if the spec is the user's own. A spec from
    a client must not decide what this process imports, so the default is nothing. `ask_tool` is called for tools of MCP
    servers that are not approved in their present form. `began` is when the run began, in seconds since 1970 (None:
    now): a worker that takes it over counts the files that the run has added since then.
    `take` takes the turns of the model.
    """
    async with AsyncExitStack() as stack:
        budget = disk_budget(config.runs.disk_mib * MIB, began)
        journal = journal_folder(current())
        warn(await to_thread(recover, journal))  # before this run, or a person, uses a folder with leftovers
        workplace = Workplace(folder_of(id, spec), spec.output, config.runs.unsafe_shell, journal, budget)
        approved = ApprovalStore(config.approvals, ask_tool)

        async def served(server: str) -> Sequence[Action]:
            # A separate budget: the initial content of the folders is counted once for each set of folders.
            own = disk_budget(config.runs.disk_mib * MIB, began)
            return await stack.enter_async_context(open_mcp_tools(config.mcp, server, approved, own))

        actions = [each for name in spec.tools for each in await _actions(name, workplace, imports, served)]
        toolbox = Toolbox(actions, spec.output)
        route = await (directory.exactly(spec.model) if spec.model else directory.find(""))
        route = route.of_tenant(spec.tenant)
        sampling = read_described(Sampling, spec.sampling, "sampling")
        messages = conversation(spec)
        if spec.agent_prompt and toolbox.tools:
            messages = agent_messages(messages, toolbox.ending)
        request = Request(route.model, messages, toolbox.tools, sampling=sampling, stream=True)
        task = Task(request, spec.rounds, toolbox.ending, toolbox.names)
        settings = read_described(Settings, spec.settings, "settings")
        yield Work(id, task, route, toolbox, settings, spec.approval, watch, take=take)


def folder_of(id: str, spec: Spec) -> Path:
    """Return a run's folder. Its own folder is named after its id, or after that of the first run that it continues."""
    if spec.folder:
        return _named(spec.folder)
    folder = own_folder(spec.folder_of or id)
    if folder is None:
        raise BadField("folder", "it is empty, and there is no home to keep one in; name a folder")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:  # without the path, since clients of the gateway see this message
        raise BadField("folder", f"the run's own folder cannot be created: {error.strerror or error}") from None
    return folder.resolve()


def own_folder(id: str) -> Path | None:
    """Return the path of a run's own folder, which may not exist; None if the user has no home."""
    kept = workplaces_folder(current())
    return kept / (id if _PLAIN_ID.fullmatch(id) else sha256(id.encode()).hexdigest()) if kept else None


def built_in_actions(name: str, workplace: Workplace) -> Sequence[Action]:
    """Return the built-in tools of a name. Raises `BadField` for an unknown one."""
    if name not in BUILT_IN:
        raise BadField("tools", f"{name!r} is not one of {', '.join(BUILT_IN)}")
    make: Callable[[Workplace], Sequence[Action]] = import_module(BUILT_IN[name]).actions
    return make(workplace)


def is_function(name: str) -> bool:
    """Return whether a name has the form `module:attribute`; both parts may have dots."""
    module, _, attribute = name.partition(":")
    parts = (*module.split("."), *attribute.split("."))
    return f"{module}:" != MCP and all(part.isidentifier() for part in parts)


def import_functions(name: str, allowed: Sequence[str]) -> Sequence[Action]:
    """Import a function, or a sequence of them, if its name is allowed or matches a glob. Raises `BadField`.

    The name is checked before the import, because importing a module executes it.
    """
    if not any(fnmatchcase(name, pattern) for pattern in allowed):
        raise BadField("tools", f"{name!r} may not be imported here; allowed: {', '.join(allowed) or 'nothing'}")
    module, _, attribute = name.partition(":")
    try:
        found: object = reduce(getattr, attribute.split("."), import_module(module))
    except (ImportError, AttributeError) as error:
        raise BadField("tools", f"{name!r} cannot be imported: {error}") from None
    return actions_of(cast("Iterable[Runnable]", found if isinstance(found, list | tuple) else (found,)))


def _named(folder: str) -> Path:
    path = Path(folder)
    if not path.is_absolute():
        raise BadField("folder", f"{folder!r} is not an absolute path; for each process it would be another folder")
    if not path.is_dir():
        raise BadField("folder", f"{folder!r} is not a folder")
    return path.resolve()


def conversation(spec: Spec) -> tuple[Message, ...]:
    """Return the messages before a run's first turn."""
    system = (Message(Role.SYSTEM, (Text(spec.system),)),) if spec.system else ()
    before = expand(compact_from(each) for each in spec.history)
    return (*system, *before, Message(Role.USER, (Text(spec.task),)))


async def _actions(
    name: str, workplace: Workplace, imports: Sequence[str], served: Callable[[str], Awaitable[Sequence[Action]]]
) -> Sequence[Action]:
    """Return the tools of one name; `served` opens those of an MCP server."""
    if name in BUILT_IN:
        return built_in_actions(name, workplace)
    if is_function(name):
        return import_functions(name, imports)
    if name.startswith(MCP):
        return await served(name.removeprefix(MCP))
    raise BadField("tools", f"{name!r} is not one of {', '.join(_known())}")


def _known() -> Iterator[str]:
    yield from BUILT_IN
    yield f"{MCP}NAME"
    yield "module:attribute"
