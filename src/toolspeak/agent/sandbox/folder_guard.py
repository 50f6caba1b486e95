"""The guard's part for one work folder: finds protected paths, watches for new names, and settles it at the end.

`guard.py` has one `FolderGuard` for each folder that the confined program can write to. `NameWatch` reports new names
through the kernel's inotify. It only shortens the time in which a forbidden name exists: the verdict at the end does
not rely on it. If the kernel has no watch left, `is_blind` is set, and the guard walks the folder periodically
instead. Like the guard, this module runs in its own interpreter and imports only the modules that it needs.
"""

import ctypes
import os
import struct
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from toolspeak.agent.sandbox.protected import (
    BARE,
    GIT,
    KEEP,
    MASKED,
    REFUSE,
    ProtectedPath,
    ProtectedPaths,
    finding,
    is_part_of_bare,
    rule_of,
    survey,
)
from toolspeak.agent.sandbox.quarantine import Copies, Mask, settle

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_MODIFIED, _ATTRIBUTES, _MOVED_FROM, _MOVED_TO, _CREATED, _DELETED = 0x2, 0x4, 0x40, 0x80, 0x100, 0x200
_OVERFLOW, _IS_FOLDER = 0x4000, 0x40000000
_ONLY_FOLDERS, _FOLLOW_NO_LINK, _NO_UNLINKED = 0x1000000, 0x2000000, 0x4000000
_NAMES: Final = _CREATED | _MOVED_TO | _ONLY_FOLDERS | _FOLLOW_NO_LINK | _NO_UNLINKED
_CHANGES: Final = _NAMES | _MODIFIED | _ATTRIBUTES | _MOVED_FROM | _DELETED
_HEAD: Final = struct.Struct("iIII")
_CHUNK: Final = 1 << 18


class Appeared(NamedTuple):
    """A new name in a folder. `lost` means that the kernel has dropped events, so the whole folder must be walked."""

    folder: str
    name: str
    is_folder: bool = False
    lost: bool = False


class NameWatch:
    """Watches folders by their path relative to one root."""

    def __init__(self, root: str) -> None:
        """Open an inotify queue. If this user has none left, the watch is blind from the beginning."""
        self._root: Final = root
        self.descriptor: Final[int] = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._paths: Final[dict[int, str]] = {}
        self.is_blind = self.descriptor < 0

    def add(self, relative: str, *, changes: bool = False) -> None:
        """Watch a folder for new names, or with `changes` for every change of its entries."""
        if self.descriptor < 0:
            return
        path = os.fsencode(f"{self._root}/{relative}" if relative else self._root)
        watch: int = _LIBC.inotify_add_watch(self.descriptor, path, _CHANGES if changes else _NAMES)
        if watch >= 0:
            self._paths[watch] = relative  # a folder that was moved keeps its watch number; its path is updated here
        elif ctypes.get_errno() == 28:  # noqa: PLR2004 # ENOSPC: fs.inotify.max_user_watches is reached
            self.is_blind = True

    def read(self) -> Iterator[Appeared]:
        """Yield the names that have appeared since the last call."""
        while True:
            try:
                data = os.read(self.descriptor, _CHUNK)
            except (BlockingIOError, OSError):
                return
            yield from self._parsed(data)

    def _parsed(self, data: bytes) -> Iterator[Appeared]:
        at = 0
        while at < len(data):
            watch, mask, _, length = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            name, at = os.fsdecode(data[at : at + length].rstrip(b"\0")), at + length
            if mask & _OVERFLOW:
                yield Appeared("", "", lost=True)
            elif watch in self._paths and name:
                yield Appeared(self._paths[watch], name, bool(mask & _IS_FOLDER))


# ---------------------------------------------------------------- one folder


class FolderGuard:
    """Protects one folder: `begin`, `mask`, then `look` and `read` until the program has ended, then `settle`."""

    def __init__(self, path: str, referenced: list[str], gitlinks: list[str]) -> None:
        """Take the folder, and the paths in it that git's settings name (see `guard_plan.py`)."""
        self.path: Final = path
        self.watch: Final = NameWatch(path)
        self.stopped = ""
        """The reason why the program must be stopped; empty if it need not be."""
        self._referenced: Final = referenced
        self._gitlinks: Final = gitlinks
        self._before: ProtectedPaths = {}
        self._copies: Copies | None = None
        self._masks: list[Mask] = []
        self._shut: list[str] = []

    # ------------------------------------------------------------ before

    def begin(self, *, mounts: bool) -> str:
        """Walk the folder, and take copies if mounting is impossible. Return why it cannot be protected, if so."""
        self._before = survey(self.path, enter=self.watch.add)
        if why := self._unprotectable():
            return why
        found = [path for path, each in self._before.items() if each.rule.action in (REFUSE, KEEP)]
        named = [path for path in self._referenced if os.path.lexists(f"{self.path}/{path}")]
        self._shut = [*dict.fromkeys((*found, *named))]
        if not mounts:
            self._copies = Copies.take(self.path, self._shut)
            for path in self._copies.folders():
                self.watch.add(path, changes=True)
        return ""

    def _unprotectable(self) -> str:
        """Return the problem with the folder: a link cannot be mounted over, and a bare repository is all read-only."""
        for path, each in self._before.items():
            if each.kind == BARE and not path:
                return (
                    "the folder is a bare git repository, which a command could reconfigure. Use a working tree of it."
                )
            if each.kind == GIT and os.path.islink(f"{self.path}/{path}"):  # noqa: PTH114 # pathlib takes time to load
                return f"{path!r} is a symbolic link, which cannot be made read-only. Replace it with what it leads to."
        return ""

    def record(self) -> dict[str, Any]:
        """Return the journal record with which the folder can be settled if the guard is killed."""
        known = {path: [*each] for path, each in self._before.items()}
        return {"folder": self.path, "known": known, "copies": self._copies.dump() if self._copies else None}

    def mask(self) -> None:
        """Create the masks: empty folders at paths that the program must not create.

        The `.git` of a submodule that was never fetched is such a path: git would enter a repository there.
        """
        for path in (*MASKED, *(f"{link}/.git" for link in self._gitlinks)):
            if (mask := Mask.make(self.path, path)) is not None:
                self._masks.append(mask)

    def readonly(self) -> list[str]:
        """Return the absolute paths that are read-only for the program."""
        found = dict.fromkeys((*self._shut, *(mask.path for mask in self._masks)))
        return [f"{self.path}/{path}" for path in sorted(found)]

    def pins(self) -> list[str]:
        """Return the parent folders of all read-only paths, outer ones first.

        Each is mounted on itself: a mount cannot be renamed or removed. Otherwise a command could move `libs` aside,
        with the read-only `libs/sub/.git` in it, and make a new `libs/sub/.git` where git on the host expects a
        submodule.
        """
        found = dict[str, None]()
        for path in (*self._shut, *(mask.path for mask in self._masks)):
            parts = path.split("/")[:-1]
            found |= dict.fromkeys("/".join(parts[: count + 1]) for count in range(len(parts)))
        return [f"{self.path}/{path}" for path in sorted(found, key=lambda path: path.count("/"))]

    # ------------------------------------------------------------ while it runs

    def look(self) -> None:
        """Walk the folder, for a kernel without watches left."""
        self._judge(survey(self.path))

    def read(self) -> None:
        """Judge the names that have appeared."""
        for each in self.watch.read():
            self._see(each)

    def _see(self, event: Appeared) -> None:
        """Judge a new name. A new folder is walked, since names may have appeared in it before it was watched."""
        if event.lost:
            return self._judge(survey(self.path, enter=self.watch.add))
        path = f"{event.folder}/{event.name}" if event.folder else event.name
        if self._copies is not None and self._copies.holds(path):
            return self._stop(path, "it is read-only for commands")
        if (
            not event.is_folder
            and rule_of(event.name, top=not event.folder) is None
            and not is_part_of_bare(event.name)
        ):
            return None
        found: ProtectedPaths = {}
        if (one := finding(self.path, path, is_link=False)) is not None:
            found[path] = one
        # The walk adds a watch to each new folder before it reads the names in it, so no name is missed in between.
        if event.is_folder and (one is None or one.kind != GIT):
            found |= survey(self.path, path, self.watch.add)
        if is_part_of_bare(event.name):
            found |= survey(self.path, event.folder)
        return self._judge(found)

    def _judge(self, found: ProtectedPaths) -> None:
        for path, each in found.items():
            if each.rule.action == REFUSE and self._is_new(path, each):
                return self._stop(path, each.rule.reason)
        return None

    def _is_new(self, path: str, each: ProtectedPath) -> bool:
        known = self._before.get(path)
        masked = any(mask.path == path and mask.is_intact() for mask in self._masks)
        return not masked and (known is None or (bool(each.kind) and each.state != known.state))

    def _stop(self, path: str, reason: str) -> None:
        self.stopped = self.stopped or f"it made or changed {path!r}: {reason}"

    # ------------------------------------------------------------ after it

    def settle(self) -> list[str]:
        """Restore copies, remove masks and rename forbidden files. Return a note about each change."""
        # The masks must be gone before `settle` walks the folder: it would take them for a new `.git`. A mask that
        # another command still uses stays, and is excluded.
        restored = self._copies.put_back() if self._copies is not None else []
        shared = {mask.path for mask in self._masks if not mask.remove()}
        return [*restored, *settle(self.path, self._before, shared)]
