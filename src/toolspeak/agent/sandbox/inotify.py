"""Notices names as they appear in a folder and in all folders below it, by the kernel's inotify.

It only shortens the time in which a forbidden name exists; `guard.py` does not rely on it for its verdict. If the
kernel has no watch left, `is_blind` says so, and the guard looks for itself from time to time.
"""

import ctypes
import os
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_MODIFIED, _ATTRIBUTES, _MOVED_FROM, _MOVED_TO, _CREATED, _DELETED = 0x2, 0x4, 0x40, 0x80, 0x100, 0x200
_OVERFLOW, _IS_FOLDER = 0x4000, 0x40000000
_ONLY_FOLDERS, _FOLLOW_NO_LINK, _NO_UNLINKED = 0x1000000, 0x2000000, 0x4000000
_NAMES: Final = _CREATED | _MOVED_TO | _ONLY_FOLDERS | _FOLLOW_NO_LINK | _NO_UNLINKED
_CHANGES: Final = _NAMES | _MODIFIED | _ATTRIBUTES | _MOVED_FROM | _DELETED
_HEAD: Final = struct.Struct("iIII")
_CHUNK: Final = 1 << 18


class Appeared(NamedTuple):
    """A name in a folder; `lost` says that the kernel has dropped events, so that all must be looked over."""

    folder: str
    name: str
    is_folder: bool = False
    lost: bool = False


class NameWatch:
    """Watches folders by their path relative to one root."""

    def __init__(self, root: str) -> None:
        """Open a queue; there may be none left for this user."""
        self._root: Final = root
        self.descriptor: Final[int] = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._paths: Final[dict[int, str]] = {}
        self.is_blind = self.descriptor < 0

    def add(self, relative: str, *, changes: bool = False) -> None:
        """Watch a folder: names that appear in it, or with `changes` whatever is done to what is in it."""
        if self.descriptor < 0:
            return
        path = os.fsencode(f"{self._root}/{relative}" if relative else self._root)
        watch: int = _LIBC.inotify_add_watch(self.descriptor, path, _CHANGES if changes else _NAMES)
        if watch >= 0:
            self._paths[watch] = relative  # a folder that was moved keeps its number, and gets its new path here
        elif ctypes.get_errno() == 28:  # noqa: PLR2004 # ENOSPC: fs.inotify.max_user_watches is reached
            self.is_blind = True

    def read(self) -> Iterator[Appeared]:
        """Give what has appeared since the last time."""
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
