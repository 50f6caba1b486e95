"""What a stdio server may reach: its configuration becomes a `Service` for the sandbox that also confines the shell.

[mcp.notes]                       the server sees
command = "mcp-server-notes"      /usr, its program, its interpreter and packages, read-only
folders = ["~/notes"]             ~/notes, to change
read = ["/srv/dictionary"]        /srv/dictionary, read-only
network = false                   no network, no loopback; nothing else of the machine

A server is somebody else's program, and it takes part in what a model reads and does. Without a sandbox it could read
the keys of the user, call the gateway on loopback, and stay behind as a daemon.
"""

from dataclasses import replace
from pathlib import Path
from typing import Final

from toolspeak.agent.mcp.program import find_command, program_paths
from toolspeak.agent.sandbox.bwrap import check_folder
from toolspeak.agent.sandbox.find import find_sandbox
from toolspeak.agent.sandbox.sandbox import Sandbox, Service
from toolspeak.agent.sandbox.unconfined import Unconfined
from toolspeak.config.shape import McpServer
from toolspeak.errors import BadField, McpFailed

_PATH: Final = "PATH"
_USUAL_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_OFFLINE: Final = (("npm_config_offline", "true"), ("UV_OFFLINE", "1"))
"""Without a network, npx and uvx would try for minutes to reach a registry; so they take what their home holds, or say
at once what is missing."""
_DOWNLOADERS: Final = ("npx", "uvx", "bunx", "pnpx", "pipx", "uv", "npm", "pnpm", "yarn", "deno", "bun")


async def sandbox_for(server: McpServer) -> Sandbox:
    """Return what confines a server; raises `McpFailed` where no sandbox works, unless the user waives it."""
    if not server.sandbox:
        return Unconfined()
    found = await find_sandbox()
    if found.sandbox is None:
        waive = f"or set sandbox = false in [mcp.{server.name}] to let this server run with all your rights"
        raise McpFailed(f"it was not started: {found.refusal}; {waive}")
    return found.sandbox


def service_of(server: McpServer) -> Service:
    """Describe a server's process to the sandbox; raises `McpFailed` if something that it names is not there."""
    env = dict(server.env)
    path = env.get(_PATH, _USUAL_PATH)
    program = find_command(server.command, path, server.cwd)
    if program is None:
        raise McpFailed(f"the command {server.command!r} is not found on the PATH {path!r}")
    service = Service((str(program), *server.args), name=server.name, env=tuple(env.items()), cwd=server.cwd)
    if not server.sandbox:
        return service
    home = _home(server.home)
    folders = tuple(_folder(each) for each in server.folders)
    read = (*program_paths(program, server.args, path), *(_existing(each) for each in server.read))
    basics = {_PATH: path, **({"HOME": str(home)} if home else {}), **({} if server.network else dict(_OFFLINE))}
    env = basics | env
    return replace(
        service,
        folders=folders,
        home=home,
        read=read,
        network=server.network,
        env=tuple(env.items()),
        journal=Path(server.journal) if server.journal else None,
    )


def hint(server: McpServer) -> str:
    """Return what a server that did not start may miss in its sandbox, and what to write into the configuration."""
    if not server.command or not server.sandbox:
        return ""
    if Path(server.command).name in _DOWNLOADERS and not server.network:
        return (
            f". It runs in a sandbox without network, and {Path(server.command).name} may have to download it: set "
            f"network = true in [mcp.{server.name}]; once it has started, the network can be taken away again"
        )
    return (
        f". It runs in a sandbox: if it needs more files or the network, name them in [mcp.{server.name}]: "
        "read, folders, network"
    )


def _home(path: str) -> Path | None:
    if not path:
        return None
    home = Path(path)
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise McpFailed(f"its home {path!r} cannot be made: {error.strerror}") from None
    return home.resolve()


def _folder(path: str) -> Path:
    folder = _existing(path)
    try:
        check_folder(folder)
    except BadField as error:
        raise McpFailed(f"folders: {error}") from None
    return folder


def _existing(path: str) -> Path:
    """Return a path without links; raises `McpFailed` if it is not there, or would show the whole home."""
    try:
        found = Path(path).resolve(strict=True)
    except OSError as error:
        raise McpFailed(f"{path!r} of its folders and read: {error.strerror}") from None
    if Path.home().is_relative_to(found):
        raise McpFailed(f"{path!r} is your home, or holds it, with all your keys; name folders in it")
    return found
