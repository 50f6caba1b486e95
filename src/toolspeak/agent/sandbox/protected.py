"""The table of names in a work folder that programs on the host obey, and the walk that finds them.

The rule: a name is in the table if a program on the host executes it, or a command written in it, although the person
did not ask that program to run the project's code. Entering the folder, opening it in an editor and asking git about
it are not such requests. `make`, `npm run` and `pytest` are, so a Makefile, a package.json and a conftest.py are
ordinary work and not in the table.

`.git` is refused and not repaired, because of an attack: a command made a repository in a subfolder, set
`core.fsmonitor` in its config and added it to the index as a submodule. `git status` at the top level of the host then
ran the command in that setting.

`guard.py` applies the table to commands, `agent/tools/folder.py` to the file tools. This module imports nothing else of
toolspeak: the guard's interpreter loads only the modules that it needs. The walk follows no link.
"""

import os
import stat
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

REFUSE: Final = "refuse"
"""Read-only if it exists. A new one cannot be created, or the command is stopped and the new one is renamed."""
KEEP: Final = "keep"
"""Read-only if it exists when the command starts. A new one is reported."""
REPORT: Final = "report"
"""Writable. A change is reported to the model and to the person."""

SUFFIX: Final = ".refused"
"""Appended to the name of a file that the guard has renamed."""


class ProtectionRule(NamedTuple):
    """The rule for a name. `reason` completes the sentence "this matters because …"."""

    action: str
    reason: str
    top: bool = False
    """The rule applies only at the top of the work folder; below it, the name is only reported."""


_GIT: Final = ProtectionRule(REFUSE, "git on the host runs commands that its configuration and its hooks name")
_OWN: Final = ProtectionRule(REFUSE, "it says what toolspeak may do")
_EDITOR: Final = ProtectionRule(REFUSE, "an editor on the host runs tasks and tools that it names", top=True)
_HOOKS: Final = ProtectionRule(KEEP, "git on the host runs it if it is set up as the folder of hooks", top=True)
_AGENT: Final = ProtectionRule(KEEP, "a coding agent on the host runs hooks and servers that it names", top=True)
_DRIVERS: Final = ProtectionRule(REPORT, "it selects filters that git on the host runs")
_SUBMODULES: Final = ProtectionRule(REPORT, "git on the host fetches repositories from the addresses in it")
_DIRENV: Final = ProtectionRule(REPORT, "direnv runs it on entering the folder, after `direnv allow`")
_VERSIONS: Final = ProtectionRule(
    REPORT, "mise or asdf installs tools and runs hooks that it names on entering the folder"
)
_COMMIT: Final = ProtectionRule(REPORT, "git on the host runs commands in it on commit, if its hook is installed")
_OPENED: Final = ProtectionRule(REPORT, "an editor or a debugger on the host runs commands in it on opening the folder")

RULES: Final[dict[str, ProtectionRule]] = {
    ".git": _GIT,
    "toolspeak.toml": _OWN,
    ".toolspeak": _OWN,
    ".vscode": _EDITOR,
    ".idea": _EDITOR,
    ".husky": _HOOKS,
    ".githooks": _HOOKS,
    ".claude": _AGENT,
    ".codex": _AGENT,
    ".cursor": _AGENT,
    ".gemini": _AGENT,
    ".mcp.json": _AGENT,
    ".zed": _AGENT,
    ".devcontainer": _OPENED,
    ".devcontainer.json": _OPENED,
    ".gitattributes": _DRIVERS,
    ".gitmodules": _SUBMODULES,
    ".envrc": _DIRENV,
    ".direnv": _DIRENV,
    ".autoenv.zsh": _DIRENV,
    ".tool-versions": _VERSIONS,
    ".mise": _VERSIONS,
    ".mise.toml": _VERSIONS,
    ".mise.local.toml": _VERSIONS,
    "mise.toml": _VERSIONS,
    "mise.local.toml": _VERSIONS,
    ".rtx.toml": _VERSIONS,
    ".pre-commit-config.yaml": _COMMIT,
    ".pre-commit-config.yml": _COMMIT,
    "lefthook.yml": _COMMIT,
    "lefthook.yaml": _COMMIT,
    ".lefthook.yml": _COMMIT,
    ".overcommit.yml": _COMMIT,
    ".exrc": _OPENED,
    ".vimrc": _OPENED,
    ".nvimrc": _OPENED,
    ".nvim.lua": _OPENED,
    ".lvimrc": _OPENED,
    ".dir-locals.el": _OPENED,
    ".dir-locals-2.el": _OPENED,
    ".gdbinit": _OPENED,
    ".lldbinit": _OPENED,
}
MASKED: Final = (".git", ".vscode", ".idea")
"""Folders that the guard creates, empty and read-only, for the duration of a command, so that the command cannot create
them. Files are not masked: host programs would see and obey an empty `.envrc` or `toolspeak.toml` in the meantime."""

BARE: Final = "bare"
BARE_REASON: Final = "git on the host takes it for a repository, and runs commands that its config names"
_BARE_PARTS: Final = frozenset(("head", "objects", "refs", "commondir"))
_IGNORED_BY_HFS: Final = frozenset(
    "\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u206a\u206b\u206c\u206d\u206e\u206f\ufeff"
)
_LONGEST: Final = max(map(len, RULES)) + 32


def canonical(name: str) -> str:
    """Return the name that other file systems would read this one as.

    A folder travels: to macOS, where `.GIT` and `.g\u200cit` are `.git`, and to Windows, where `git~1`, `.git.` and
    `.git::$INDEX_ALLOCATION` are. Git itself refuses these names in commits for the same reason (CVE-2014-9390).
    """
    if not name.isascii():
        name = unicodedata.normalize("NFKC", "".join(each for each in name if each not in _IGNORED_BY_HFS))
    name = name.split(":", 1)[0].replace("\\", "/").rstrip("/").rsplit("/", 1)[-1].rstrip(". ").casefold()
    return ".git" if name.startswith("git~") and name[4:].isdigit() else name


def rule_of(name: str, *, top: bool) -> ProtectionRule | None:
    """Return the rule for a name, at the top of the work folder or below it; None for ordinary files."""
    if name.isascii() and name.islower() and name not in RULES and name[-1] not in ". " and not _odd(name):
        return None  # the fast path for nearly every name of a walk
    if len(name) > _LONGEST:
        return None
    rule = RULES.get(canonical(name))
    if rule is not None and rule.top and not top:
        return ProtectionRule(REPORT, rule.reason)
    return rule


def _odd(name: str) -> bool:
    return "~" in name or ":" in name or "\\" in name


def is_git(name: str) -> bool:
    """Return whether a name is git's own folder or file, in any spelling."""
    return rule_of(name, top=False) is _GIT


def is_part_of_bare(name: str) -> bool:
    """Return whether a file of this name may turn its folder into a bare repository."""
    return name.casefold() in _BARE_PARTS


def is_bare(names: set[str]) -> bool:
    """Return whether git treats a folder with these names as a repository, whatever the folder's own name is.

    `objects` and `refs` may lie elsewhere if there is a `commondir`.
    """
    if not any(name in names for name in ("HEAD", "head", "Head")):
        return False
    lower = {name.casefold() for name in names}
    return "commondir" in lower or {"objects", "refs"} <= lower


def rule_for_path(parts: tuple[str, ...]) -> ProtectionRule | None:
    """Return the strictest rule for any part of a path relative to the work folder."""
    rules = [rule for level, part in enumerate(parts) if (rule := rule_of(part, top=level == 0))]
    return min(rules, key=lambda rule: (REFUSE, KEEP, REPORT).index(rule.action), default=None)


# ---------------------------------------------------------------- the walk


LONGEST_PATH: Final = 3500
"""Bytes. The walk cannot open longer paths (the kernel's limit is 4096), so a command may not create them."""
_SYSTEM: Final = ("/usr/", "/bin/", "/sbin/", "/lib", "/etc/alternatives/", "/dev/", "/proc/")
"""Targets in the system. Every virtual environment has links to programs there, so these links are not reported."""
_LINK: Final = ProtectionRule(REPORT, "it leads out of the folder, and programs on the host follow it")
_DEEP: Final = ProtectionRule(REFUSE, "it is nested too deeply to be looked into")
_CLOSED: Final = ProtectionRule(REPORT, "it cannot be read, so nobody knows what is in it")

Fingerprint: TypeAlias = tuple[int, ...]


class ProtectedPath(NamedTuple):
    """A path that the table names: its rule, its kind (`git`, `bare` or ``), and its state, to detect changes."""

    rule: ProtectionRule
    kind: str
    state: Fingerprint


ProtectedPaths: TypeAlias = dict[str, ProtectedPath]
"""By path relative to the work folder."""
GIT: Final = "git"


def survey(
    folder: str, start: str = "", enter: Callable[[str], None] | None = None, *, force: bool = False
) -> ProtectedPaths:
    """Walk from `start` (relative to `folder`) and return the paths that the table names.

    `enter` is called with each directory before its names are read, so that a watch set there misses nothing. With
    `force`, a directory that may not be read is made readable: a command could hide a repository by `chmod 0`.
    """
    found: ProtectedPaths = {}
    ahead = [start]
    while ahead:
        relative = ahead.pop()
        path = f"{folder}/{relative}" if relative else folder
        if len(os.fsencode(path)) > LONGEST_PATH:
            found[relative] = ProtectedPath(_DEEP, "", ())
            continue
        if enter is not None:
            enter(relative)
        entries = _entries(path, force=force)
        if entries is None:
            found[relative] = ProtectedPath(_CLOSED, "", ())
            continue
        if is_bare({each.name for each in entries}):
            found[relative] = ProtectedPath(ProtectionRule(REFUSE, BARE_REASON), BARE, identity(path))
        for each in entries:
            inner = f"{relative}/{each.name}" if relative else each.name
            one = None
            if (is_link := each.is_symlink()) or rule_of(each.name, top=not relative) is not None:
                one = finding(folder, inner, is_link=is_link)
            if one is not None:
                found[inner] = one
            if each.is_dir(follow_symlinks=False) and (one is None or one.kind != GIT):
                ahead.append(inner)
    return found


def _entries(path: str, *, force: bool) -> list["os.DirEntry[str]"] | None:
    for attempt in (False, True):
        try:
            with os.scandir(path) as found:
                return list(found)
        except PermissionError:
            if not force or attempt:
                return None
            with suppress(OSError):
                os.chmod(path, 0o700)  # noqa: PTH101 # pathlib takes longer to load than all this
        except OSError:  # the folder has just been removed
            return []
    return None


def finding(folder: str, relative: str, *, is_link: bool) -> ProtectedPath | None:
    """Return the table's verdict on one path."""
    parent, _, name = relative.rpartition("/")
    rule, path = rule_of(name, top=not parent), f"{folder}/{relative}"
    if rule is None:
        return ProtectedPath(_LINK, "", fingerprint(path)) if is_link and _leads_out(folder, path) else None
    return ProtectedPath(rule, GIT, identity(path)) if is_git(name) else ProtectedPath(rule, "", fingerprint(path))


def identity(path: str) -> Fingerprint:
    """Return device and inode. A repository gets no fingerprint: it may have a million objects, and is read-only."""
    try:
        status = os.lstat(path)  # as above
    except OSError:
        return ()
    return (status.st_dev, status.st_ino)


def fingerprint(path: str) -> Fingerprint:
    """Return numbers that change with any change of a file, or in a folder. Programs cannot set the change time."""
    try:
        status = os.lstat(path)  # as above
    except OSError:
        return ()
    found = [status.st_ino, status.st_mode, status.st_size, status.st_ctime_ns]
    if stat.S_ISDIR(status.st_mode):
        with suppress(OSError), os.scandir(path) as entries:
            for each in sorted(entries, key=lambda entry: entry.name):
                found += fingerprint(each.path)
    return tuple(found)


def _leads_out(folder: str, path: str) -> bool:
    try:
        target = os.readlink(path)  # noqa: PTH115 # as above
    except OSError:
        return False
    real = os.path.normpath(os.path.join(os.path.dirname(path), target))  # noqa: PTH118, PTH120 # as above
    return real != folder and not real.startswith((f"{folder}/", *_SYSTEM))
