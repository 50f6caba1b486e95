"""Notices that files have changed, by looking at them now and then.

Polling, not inotify: a ConfigMap or a Secret of Kubernetes is a symbolic link to a folder that is replaced as a whole
(`..data`), an editor renames a new file over the old one, and a network drive reports nothing. A look follows links and
compares what it finds, so it sees all three. It reads some kilobytes, which takes less than 0.1 ms.

A change counts when two looks in a row find the same: a file that is being written, and a certificate whose key has not
been replaced yet, are left alone until they are complete.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

_LOG: Final = logging.getLogger(__name__)
LOOK_EVERY: Final = 1.0
"""Seconds between two looks."""


@dataclass(frozen=True, slots=True)
class _FileState:
    """What a look finds. A file that was replaced by an equal one differs, but has the same digest."""

    inode: int
    modified: int
    digest: bytes


class FileWatch:
    """Watches some files. Its methods read them, and may block."""

    def __init__(self, paths: Iterable[Path]) -> None:
        """Take the files; their present content is no change."""
        self._paths: Final = tuple(paths)
        self._last: tuple[_FileState | None, ...] = ()
        self._taken: tuple[bytes, ...] = ()
        self._is_missing = False
        self.take()

    def take(self) -> None:
        """Note the present content: from now on only another one is a change."""
        self._last = tuple(map(_state_of, self._paths))
        self._taken = tuple(each.digest if each is not None else b"" for each in self._last)

    def look(self) -> bool:
        """Return whether the content has changed, and was the same at the last look; each change is reported once.

        A file that cannot be read is no change: it is logged once, and the next content counts.
        """
        before, self._last = self._last, tuple(map(_state_of, self._paths))
        if self._last != before:
            return False
        found = tuple(each for each in self._last if each is not None)
        if len(found) < len(self._paths):
            self._tell_missing()
            return False
        self._is_missing = False
        digests = tuple(each.digest for each in found)
        if digests == self._taken:
            return False
        self._taken = digests
        return True

    def _tell_missing(self) -> None:
        if not self._is_missing:
            gone = next(path for path, state in zip(self._paths, self._last, strict=True) if state is None)
            _LOG.warning("%s cannot be read: the gateway goes on with what it had. Put the file back", gone)
        self._is_missing = True


def _state_of(path: Path) -> _FileState | None:
    """Return what a path leads to; None if that is no file that can be read."""
    try:
        status, content = path.stat(), path.read_bytes()
    except OSError:
        return None
    return _FileState(status.st_ino, status.st_mtime_ns, sha256(content).digest())
