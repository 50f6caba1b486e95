"""What git on the host obeys in a work folder beyond its own `.git`: asked of git itself, before a command runs.

A repository may name scripts of its own folder (`core.hooksPath = .husky`, `include.path = ../.gitconfig`, a filter
`./tools/clean.sh`). A command that could write these would write what the person's next `git commit` runs.
"""

import asyncio
import os
import re
import shlex
import shutil
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from typing import Final, NamedTuple

_FOLDERS: Final = re.compile(r"(core\.hookspath|include\.path|includeif\..*\.path|core\.attributesfile)")
_COMMANDS: Final = re.compile(
    r"core\.(fsmonitor|sshcommand|editor|pager|askpass|gitproxy|alternaterefscommand)|sequence\.editor|diff\.external"
    r"|filter\..*|diff\..*\.(command|textconv)|merge\..*\.driver|gpg\..*|credential\..*|alias\..*|pager\..*"
    r"|(difftool|mergetool|browser|guitool|man|trailer|interactive|uploadpack|remote)\..*"
)
_GITLINK: Final = b"160000 "
_SECONDS: Final = 10.0
_SAFE: Final = ("-c", "safe.directory=*", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")


class GitPaths(NamedTuple):
    """Paths relative to the folder: files that git's settings name, and where submodules belong."""

    referenced: tuple[str, ...] = ()
    gitlinks: tuple[str, ...] = ()


async def git_paths(folder: Path) -> GitPaths:
    """Ask git; a folder without a repository, or a host without git, has none."""
    git = shutil.which("git")
    if git is None or not (folder / ".git").exists():
        return GitPaths()
    settings = await _output(git, folder, "config", "--includes", "--null", "--list")
    links = b""
    if (folder / ".gitmodules").exists() or (folder / ".git/modules").exists():
        links = await _output(git, folder, "ls-files", "--stage", "-z")
    pairs = (each.decode("utf-8", "surrogateescape").partition("\n") for each in settings.split(b"\0") if each)
    named = [path for name, _, value in pairs for path in _named(folder, name, value)]
    return GitPaths(
        tuple(dict.fromkeys(named)),
        tuple(os.fsdecode(each.partition(b"\t")[2]) for each in links.split(b"\0") if each.startswith(_GITLINK)),
    )


def _named(folder: Path, name: str, value: str) -> list[str]:
    """Return the paths in the folder that a setting names."""
    if _FOLDERS.fullmatch(name):
        words = [value]
    elif _COMMANDS.fullmatch(name):
        words = _words(value)
    else:
        return []
    found = list[str]()
    for word in words:
        for base in (folder, folder / ".git"):  # an included file is named as seen from the including one
            path = Path(os.path.normpath(base / Path(word).expanduser() if word.startswith("~") else base / word))
            inside = path.is_relative_to(folder) and path != folder and path.exists() and not path.is_symlink()
            if inside and path.relative_to(folder).parts[0] != ".git" and (words == [value] or path.is_file()):
                found.append(str(path.relative_to(folder)))
    return found


def _words(value: str) -> list[str]:
    try:
        return [word for part in shlex.split(value.lstrip("!")) for word in (part, part.rstrip(";"))]
    except ValueError:
        return value.split()


async def _output(git: str, folder: Path, *words: str) -> bytes:
    process = await asyncio.create_subprocess_exec(
        git, *_SAFE, "-C", str(folder), *words, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL
    )
    try:
        async with asyncio.timeout(_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        return b""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return output
