"""Converts the configuration of a stdio server into a `Service` for the sandbox, which also confines the shell.

[mcp.notes]                       the server sees
command = "mcp-server-notes"      /usr, its program, its interpreter and packages, read-only
folders = ["~/notes"]             ~/notes, to change
read = ["/srv/dictionary"]        /srv/dictionary, read-only
network = false                   no network, no loopback; nothing else of the machine

A server is a third party's program that takes part in what a model reads and does. Without a sandbox it could read the
user's keys, call the gateway on loopback, and leave a daemon running.

Besides the system's files, a program needs other files to start: itself, its interpreter, their packages.

~/.venv/bin/mcp-server-git        →  ~/.venv/{bin,lib,pyvenv.cfg}, ~/.pyenv/versions/3.12.7/{bin,lib}
node_modules/.bin/mcp-server-x    →  node_modules, and the prefix of the node on the PATH
~/.local/bin/mcp-server-time      →  the uv tool's virtual environment that the link leads to

Only the folders of a prefix that have programs are shown: `~/.local/bin` and `~/.local/lib` have packages, but
`~/.local/share` has keyrings. A program without such a prefix is shown alone.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from toolspeak.agent.sandbox.bwrap import check_folder
from toolspeak.agent.sandbox.process import Unconfined
from toolspeak.agent.sandbox.sandbox import Sandbox, Service
from toolspeak.agent.sandbox.selection import find_sandbox
from toolspeak.config.shape import McpServer
from toolspeak.errors import BadField, McpFailed

_PATH: Final = "PATH"
_USUAL_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_OFFLINE: Final = (("npm_config_offline", "true"), ("UV_OFFLINE", "1"))
"""For a server without network: npx and uvx would try for minutes to reach a registry. Offline, they use the packages
in the server's home, or report at once what is missing."""
_DOWNLOADERS: Final = ("npx", "uvx", "bunx", "pnpx", "pipx", "uv", "npm", "pnpm", "yarn", "deno", "bun")


async def sandbox_for(server: McpServer) -> Sandbox:
    """Return the sandbox of a server. Raises `McpFailed` if none works, unless the user has set `sandbox = false`."""
    if not server.sandbox:
        return Unconfined()
    found = await find_sandbox()
    if found.sandbox is None:
        waive = f"or set sandbox = false in [mcp.{server.name}] to let this server run with all your rights"
        raise McpFailed(f"it was not started: {found.refusal}; {waive}")
    return found.sandbox


def service_of(server: McpServer) -> Service:
    """Return the sandbox's description of a server's process. Raises `McpFailed` if a configured path is missing."""
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
    # In this order: variables that the user has configured override ours.
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
    """Return advice for a server that did not start: what its sandbox may lack, and the setting that adds it."""
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
    """Return a path without links. Raises `McpFailed` if it does not exist, or would expose the whole home."""
    try:
        found = Path(path).resolve(strict=True)
    except OSError as error:
        raise McpFailed(f"{path!r} of its folders and read: {error.strerror}") from None
    if Path.home().is_relative_to(found):
        raise McpFailed(f"{path!r} is your home, or holds it, with all your keys; name folders in it")
    return found


# ---------------------------------------------------------------- files that a program needs to start


_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Every sandbox shows these."""
_PACKAGES: Final = "node_modules"
_VENV: Final = "pyvenv.cfg"
_PARTS: Final = ("bin", "lib", "lib64", _VENV)
_LONGEST_SHEBANG: Final = 512
_MOST_LINKS: Final = 16


def find_command(command: str, path: str, cwd: str = "") -> Path | None:
    """Return the absolute path of a command, found as a shell would: on the PATH, or relative to its folder."""
    if os.sep in command and not command.startswith(os.sep):
        command = os.path.join(cwd or os.getcwd(), command)  # noqa: PTH109, PTH118 # `..` must stay as it is
    found = shutil.which(command, path=path)
    return Path(found) if found else None


def program_paths(program: Path, args: Sequence[str], path: str) -> tuple[Path, ...]:
    """Return the paths that a program needs to start. Its first argument counts as its script if it is a file."""
    found = dict.fromkeys(_needs(program, path))
    script = next((Path(each) for each in args if not each.startswith("-")), None)
    if script is not None and script.is_absolute() and script.is_file():
        found |= dict.fromkeys(_needs(script, path))
    return tuple(each for each in found if not _is_system(each))


def _needs(program: Path, path: str) -> Iterator[Path]:
    """Yield the paths that a file needs: those of each step of its links, and of its interpreter."""
    for step in _links(program):
        yield from _around(step)
    for interpreter in _interpreters(program, path):
        for step in _links(interpreter):
            yield from _around(step)


def _links(path: Path) -> Iterator[Path]:
    """Yield a path, its link target, and so on. Parent folders are resolved, since bind mounts must have no links."""
    for _ in range(_MOST_LINKS):
        path = path.parent.resolve() / path.name
        yield path
        if not path.is_symlink():
            return
        path = path.parent / path.readlink()


def _around(program: Path) -> Iterator[Path]:
    """Yield the package folders that a program belongs to; without any, the program itself."""
    if _PACKAGES in program.parts:
        index = program.parts.index(_PACKAGES)
        yield Path(*program.parts[: index + 1])
        return
    prefix = program.parent.parent
    # The prefix of `~/bin` is the home itself, whose other folders must not be shown.
    if program.parent.name != "bin" or prefix == Path.home() or not _is_prefix(prefix):
        yield program
        return
    yield from (part.resolve() for name in _PARTS if (part := prefix / name).exists())
    yield from _base(prefix / _VENV)


def _is_prefix(folder: Path) -> bool:
    """Return whether a folder is the prefix of a Python or node installation, or a virtual environment."""
    if (folder / _VENV).is_file() or (folder / "bin" / "node").exists() or (folder / "lib" / _PACKAGES).is_dir():
        return True
    return any((folder / "lib").glob("python3*"))


def _base(settings: Path) -> Iterator[Path]:
    """Yield the installation that a virtual environment was made from: `home = /opt/python/bin`."""
    try:
        lines = settings.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        name, _, value = line.partition("=")
        if name.strip() == "home" and (home := Path(value.strip())).is_absolute():
            prefix = home.resolve().parent
            yield from (part.resolve() for each in _PARTS if (part := prefix / each).exists())


def _interpreters(program: Path, path: str) -> Iterator[Path]:
    """Yield the interpreters of a script's first line: `#!/usr/bin/env node`, `#!/home/a/.venv/bin/python`."""
    try:
        with program.open("rb") as file:
            first = file.read(_LONGEST_SHEBANG).split(b"\n")[0]
    except OSError:
        return
    if not first.startswith(b"#!"):
        return
    words = os.fsdecode(first[2:]).split()
    named = [each for each in words if not each.startswith("-")]
    if not named:
        return
    yield Path(named[0])
    if Path(named[0]).name == "env" and len(named) > 1 and (found := shutil.which(named[1], path=path)):
        yield Path(found)


def _is_system(path: Path) -> bool:
    return any(path.is_relative_to(each) for each in _SYSTEM)
