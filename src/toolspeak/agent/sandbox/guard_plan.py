"""Starts confined programs with the guard around them. Every backend uses this module.

The guard needs to know which files git on the host obeys outside `.git`. A repository's settings may name scripts in
its working tree (`core.hooksPath = .husky`, `include.path = ../.gitconfig`, a filter `./tools/clean.sh`). A command
that could write these could change the commands that the person's next `git commit` runs. So this module asks git
before each command.

The guard runs in its own interpreter, without the rest of toolspeak: its packages are empty modules that only have a
path, because importing the real `toolspeak` takes half a second.
"""

import asyncio
import json
import os
import re
import shlex
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from toolspeak.agent.sandbox import journal
from toolspeak.agent.sandbox.process import run_process
from toolspeak.agent.sandbox.sandbox import Command, Ran, Start
from toolspeak.ir.json import Json, JsonObject

_FOLDERS: Final = re.compile(r"(core\.hookspath|include\.path|includeif\..*\.path|core\.attributesfile)")
_COMMANDS: Final = re.compile(
    r"core\.(fsmonitor|sshcommand|editor|pager|askpass|gitproxy|alternaterefscommand)|sequence\.editor|diff\.external"
    r"|filter\..*|diff\..*\.(command|textconv)|merge\..*\.driver|gpg\..*|credential\..*|alias\..*|pager\..*"
    r"|(difftool|mergetool|browser|guitool|man|trailer|interactive|uploadpack|remote)\..*"
)
_GITLINK: Final = b"160000 "
_SECONDS: Final = 10.0
# These override the settings of a repository that this very command line reads: without them, git would run its
# `core.fsmonitor` and its hooks on the host.
_SAFE: Final = ("-c", "safe.directory=*", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")


class GitPaths(NamedTuple):
    """Paths relative to the folder: files that git's settings name, and the places of submodules."""

    referenced: tuple[str, ...] = ()
    gitlinks: tuple[str, ...] = ()


async def git_paths(folder: Path) -> GitPaths:
    """Ask git. The result is empty for a folder without a repository, or a host without git."""
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
    """Return the paths inside the folder that a setting names."""
    if _FOLDERS.fullmatch(name):
        words = [value]
    elif _COMMANDS.fullmatch(name):
        words = _words(value)
    else:
        return []
    found = list[str]()
    for word in words:
        for base in (folder, folder / ".git"):  # `include.path` is relative to the including file
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


# ---------------------------------------------------------------- the guard's interpreter


_START: Final = """
import sys
from types import ModuleType
name, path = "", sys.argv[1]
for part in ("toolspeak", "agent", "sandbox"):
    name, path = f"{name}.{part}".strip("."), f"{path}/{part}"
    package = sys.modules[name] = ModuleType(name)
    package.__path__ = [path]
from toolspeak.agent.sandbox.guard import main
main()
"""


def guard_words() -> tuple[str, ...]:
    """Return the command line of the guard. `-I -S`: no environment variables, no site packages, faster start."""
    return (sys.executable, "-I", "-S", "-c", _START, str(Path(__file__).parents[3]))


# ---------------------------------------------------------------- the plan


class Launch(NamedTuple):
    """The program that the guard starts: a function of `launch.py`, and its plan."""

    launcher: str
    plan: JsonObject
    mounts: bool
    """Whether the launcher can mount paths read-only. If not, the guard keeps copies, and restores changed files."""
    temporary: str = ""
    """A folder for the program's own files, which the guard removes."""


@asynccontextmanager
async def prepare_guard(folders: Sequence[Path], journal_folder: Path | None, launch: Launch) -> AsyncGenerator[Start]:
    """Yield the start of a guard for a program that can write to these folders. The caller removes its entry."""
    described: list[Json] = []
    for folder in _outermost(folders):
        paths = await git_paths(folder)
        described.append({"path": str(folder), "referenced": [*paths.referenced], "gitlinks": [*paths.gitlinks]})
    with journal.open_entry(journal_folder) as entry:
        plan: JsonObject = {
            "parent": os.getpid(),
            "folders": described,
            "journal": str(entry.path),
            "launcher": launch.launcher,
            "launch": launch.plan,
            "mounts": launch.mounts,
            "temporary": launch.temporary,
        }
        scratch = (Path(launch.temporary),) if launch.temporary else ()
        yield Start(guard_words(), json.dumps(plan).encode(), scratch=scratch, entry=entry)


async def run_guarded(command: Command, launch: Launch) -> Ran:
    """Run a command until it ends or is stopped. The result has notes about the files that it left in its folder."""
    left = await _left(command)
    async with prepare_guard((command.folder,), command.journal, launch) as start:
        entry, is_done = start.entry, False
        assert entry is not None  # noqa: S101 # it is guarded
        try:
            ran = await run_process(start, command)
            is_done = True
        finally:
            # Also after a cancellation. No result can carry the notes then: the entry stays for the next command or
            # start, or the notes are logged.
            reports = await asyncio.to_thread(entry.reports)
            if is_done or not any(each.notes for each in reports):
                entry.remove()
            elif command.journal is None:  # with a journal, the next command or the next start reports them
                journal.warn(reports)
    stopped = next((each.stopped for each in reports), "")
    notes = tuple(note for each in reports for note in each.notes)
    return replace(ran, killed=ran.killed or stopped, notes=(*left, *notes))


async def _left(command: Command) -> tuple[str, ...]:
    """Settle what was left by commands whose toolspeak was killed. Return the notes about this command's folder."""
    reports = await asyncio.to_thread(journal.recover, command.journal)
    journal.warn(each for each in reports if each.folder != command.folder)
    return tuple(note for each in reports if each.folder == command.folder for note in each.notes)


def _outermost(folders: Sequence[Path]) -> list[Path]:
    """Drop folders inside others: the walk of the outer one finds everything, once."""
    return [each for each in dict.fromkeys(folders) if not any(outer in each.parents for outer in folders)]
