"""What a program needs to start, besides the system's own: itself, its interpreter, their packages.

~/.venv/bin/mcp-server-git        →  ~/.venv/{bin,lib,pyvenv.cfg}, ~/.pyenv/versions/3.12.7/{bin,lib}
node_modules/.bin/mcp-server-x    →  node_modules, and the prefix of the node on the PATH
~/.local/bin/mcp-server-time      →  the uv tool's virtual environment that the link leads to

Of a prefix only the folders that hold programs are taken: `~/.local/bin` and `~/.local/lib` hold packages, but
`~/.local/share` holds keyrings. A program without such a prefix is shown alone.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Every sandbox shows these."""
_PACKAGES: Final = "node_modules"
_VENV: Final = "pyvenv.cfg"
_PARTS: Final = ("bin", "lib", "lib64", _VENV)
_LONGEST_SHEBANG: Final = 512
_MOST_LINKS: Final = 16


def find_command(command: str, path: str, cwd: str = "") -> Path | None:
    """Return the full path of a command, found as a shell would: on the PATH, or relative to its folder."""
    if os.sep in command and not command.startswith(os.sep):
        command = os.path.join(cwd or os.getcwd(), command)  # noqa: PTH109, PTH118 # `..` must stay as it is
    found = shutil.which(command, path=path)
    return Path(found) if found else None


def program_paths(program: Path, args: Sequence[str], path: str) -> tuple[Path, ...]:
    """Return what must be readable for a program to start; its first argument that is a file counts as its script."""
    found = dict.fromkeys(_needs(program, path))
    script = next((Path(each) for each in args if not each.startswith("-")), None)
    if script is not None and script.is_absolute() and script.is_file():
        found |= dict.fromkeys(_needs(script, path))
    return tuple(each for each in found if not _is_system(each))


def _needs(program: Path, path: str) -> Iterator[Path]:
    """Give what a file needs: each step of its links, and its interpreter."""
    for step in _links(program):
        yield from _around(step)
    for interpreter in _interpreters(program, path):
        for step in _links(interpreter):
            yield from _around(step)


def _links(path: Path) -> Iterator[Path]:
    """Give a path, what it links to, and so on. Folders on the way are resolved, as binds must have no links."""
    for _ in range(_MOST_LINKS):
        path = path.parent.resolve() / path.name
        yield path
        if not path.is_symlink():
            return
        path = path.parent / path.readlink()


def _around(program: Path) -> Iterator[Path]:
    """Give the folders of packages that a program belongs to; without any, the program itself."""
    if _PACKAGES in program.parts:
        index = program.parts.index(_PACKAGES)
        yield Path(*program.parts[: index + 1])
        return
    prefix = program.parent.parent
    if program.parent.name != "bin" or prefix == Path.home() or not _is_prefix(prefix):
        yield program
        return
    yield from (part.resolve() for name in _PARTS if (part := prefix / name).exists())
    yield from _base(prefix / _VENV)


def _is_prefix(folder: Path) -> bool:
    """Return whether a folder is one that Python or node was installed to, or a virtual environment."""
    if (folder / _VENV).is_file() or (folder / "bin" / "node").exists() or (folder / "lib" / _PACKAGES).is_dir():
        return True
    return any((folder / "lib").glob("python3*"))


def _base(settings: Path) -> Iterator[Path]:
    """Give the installation that a virtual environment was made from: `home = /opt/python/bin`."""
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
    """Give what the first line of a script names: `#!/usr/bin/env node`, `#!/home/a/.venv/bin/python`."""
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
