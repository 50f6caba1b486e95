"""A walk over a work folder that finds what `protected.py` names. It follows no link and imports only that module."""

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

from toolspeak.agent.sandbox.protected import (
    BARE,
    BARE_REASON,
    REFUSE,
    REPORT,
    ProtectionRule,
    is_bare,
    is_git,
    rule_of,
)

LONGEST_PATH: Final = 3500
"""Bytes. Deeper folders cannot be looked into by their path, so a command may not make them."""
_SYSTEM: Final = ("/usr/", "/bin/", "/sbin/", "/lib", "/etc/alternatives/", "/dev/", "/proc/")
"""Links into these are made by every virtual environment, and lead to programs of the system."""
_LINK: Final = ProtectionRule(REPORT, "it leads out of the folder, and programs on the host follow it")
_DEEP: Final = ProtectionRule(REFUSE, "it is nested too deeply to be looked into")
_CLOSED: Final = ProtectionRule(REPORT, "it cannot be read, so nobody knows what is in it")

Fingerprint: TypeAlias = tuple[int, ...]


class ProtectedPath(NamedTuple):
    """Something that the table names: its rule, what it is (`git`, `bare` or ``), and its state."""

    rule: ProtectionRule
    kind: str
    state: Fingerprint


ProtectedPaths: TypeAlias = dict[str, ProtectedPath]
"""By path, relative to the work folder."""
GIT: Final = "git"


def survey(
    folder: str, start: str = "", enter: Callable[[str], None] | None = None, *, force: bool = False
) -> ProtectedPaths:
    """Walk from `start` (relative to `folder`) and return what the table names.

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
        except OSError:  # it is gone
            return []
    return None


def finding(folder: str, relative: str, *, is_link: bool) -> ProtectedPath | None:
    """Return what the table says about one path."""
    parent, _, name = relative.rpartition("/")
    rule, path = rule_of(name, top=not parent), f"{folder}/{relative}"
    if rule is None:
        return ProtectedPath(_LINK, "", fingerprint(path)) if is_link and _leads_out(folder, path) else None
    return ProtectedPath(rule, GIT, identity(path)) if is_git(name) else ProtectedPath(rule, "", fingerprint(path))


def identity(path: str) -> Fingerprint:
    """Return which file it is. A repository is not fingerprinted: it may hold a million objects, and is read-only."""
    try:
        status = os.lstat(path)  # as above
    except OSError:
        return ()
    return (status.st_dev, status.st_ino)


def fingerprint(path: str) -> Fingerprint:
    """Return numbers that change whenever a file, or anything in a folder, changes; the change time cannot be set."""
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
